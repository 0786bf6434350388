"""Kinds of learners and their combiner, textbook form: dense matrices, one pair after another.

A target learner is pulled to plain distance as `DenseCOMID` is with LogDet. Learners that replay
learn, after each new pair, the (r mod min(t, window))-th latest pair for each drawn number r.
"""

import numpy as np
from scipy.linalg import sqrtm

from .comid import DenseCOMID
from .sadl import cover


class DenseTarget(DenseCOMID):
    """ITML's step on fixed targets: M <- M - k Mu (Mu)' / (1 + k q), k = 2 e (q - g).

    No step goes beyond its target g.
    """

    def __init__(self, n_features, *, learning_rate, rho, upper=0.25, lower=1.75):
        settings = {"divergence": "burg", "regularizer": "logdet", "rho": rho}
        super().__init__(n_features, learning_rate=learning_rate, **settings)
        self.targets = {1: upper, -1: lower}

    def signed_step(self, u, y, e):
        """The gradient step k, if q / (1 + k q) is between q and g, and no more than 2 q."""
        q, g = u @ self.M @ u, self.targets[int(y)]
        k = 2.0 * e * (q - g)
        if y > 0:
            return np.clip(k, 0.0, max(1.0 / g - 1.0 / q, 0.0))
        return np.clip(k, min(max(1.0 / g - 1.0 / q, -0.5 / q), 0.0), 0.0)


def numbers_drawn(n_pairs, most):
    """What each round draws: Knuth's linear congruential generator, its upper bits."""
    state, found = 0, []
    for _ in range(n_pairs * most):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        found.append((state >> 33) & 0x3FFFFFFF)
    return np.array(found, dtype=np.int64).reshape(n_pairs, most)


class DenseAdditive:
    """A linear classifier of the products of features, that forgets."""

    def __init__(self, n_features, learning_rate, forgets, plain=0.02):
        self.M, self.mu = np.zeros((n_features, n_features)), 1.0
        self.rate, self.forgets, self.plain = learning_rate, forgets, plain

    def observe(self, u, y):
        """The squared distance before learning the pair; |y| is its weight."""
        q, product = u @ self.M @ u, np.outer(u, u)
        if y != 0.0:
            lacking = 1.0 - np.sign(y) * (self.mu - q)
            to_the_margin = lacking / (np.sum(product**2) + 1.0)
            step = np.sign(y) * np.clip(to_the_margin, 0.0, self.rate * abs(y))
            self.M = (1.0 - self.forgets * min(abs(y), 1.0)) * (self.M - step * product)
            self.mu = max(self.mu + step, 1.0)
        return q + self.plain * (u @ u)

    @property
    def form(self):
        return self.M + self.plain * np.eye(len(self.M))


class DenseMoments:
    """The form of two covariances, from all pairs so far; |y| is a pair's weight.

    S is known as far as its pairs tell; D is larger than it by what noise would not show.
    """

    def __init__(self, memory, noise=0.7, plain=0.01):
        self.memory, self.noise, self.plain = memory, noise, plain

    def weights(self, y):
        """Of each pair, by those after it; a pair of weight below 1 makes others fade less."""
        fades = np.minimum(np.abs(y), 1.0)
        after = np.array([fades[i + 1 :].sum() for i in range(len(y))])
        return np.abs(y) * (1.0 - 1.0 / self.memory) ** after

    def counted_less(self, u, y, blocks):
        """What of each weight is left, by how far a pair is, as of the end of its block."""
        far, norm2 = np.empty(len(y)), (u**2).sum(axis=1)
        for start, stop in blocks:
            p = self.weights(y[:stop])
            far[start:stop] = norm2[start:stop] / (p @ norm2[:stop] / p.sum())
        return 1.0 / (1.0 + far)

    def metrics(self, u, y, blocks):
        """With S as it is, and with tI."""
        n, p, less = u.shape[1], self.weights(y), self.counted_less(u, y, blocks)
        S, D = (
            np.einsum("i,ij,ik->jk", (p * less)[those], u[those], u[those]) / p[those].sum()
            for those in (y > 0.0, y < 0.0)
        )
        per_pair = [n * np.sum(p[those] ** 2) / p[those].sum() ** 2 for those in (y > 0, y < 0)]
        noise = 2.0 * self.noise * np.sqrt(sum(per_pair))
        t, share = np.trace(S) / n, min(1.0, per_pair[0])
        shrunk = (1.0 - share) * S + share * t * np.eye(n)
        return [self._metric(A / t, (D - S) / t, noise) for A in (shrunk, t * np.eye(n))]

    def _metric(self, S, larger, noise):
        """S^-1 - D^-1 of a D that is larger than S by less than it seems, and plain distance."""
        root = np.real(sqrtm(S))
        values, vectors = np.linalg.eigh(np.linalg.solve(root, np.linalg.solve(root, larger).T))
        believed = root @ (vectors * np.maximum(values - noise, 0.0)) @ vectors.T @ root
        return np.linalg.inv(S) - np.linalg.inv(S + believed) + self.plain * np.eye(len(S))


def follow(learner, u, y, replays, window, most):
    """Squared distance and threshold before each pair is learned."""
    drawn = numbers_drawn(len(u), most)
    said = []
    for t in range(len(u)):
        said.append((u[t] @ learner.M @ u[t], learner.mu))
        learner.observe(u[t], y[t])
        for r in drawn[t, :replays]:
            again = t - int(r) % min(t + 1, window)
            learner.observe(u[again], y[again])
    return np.array(said)


def calibrated(q, y, rate=2.0, memory=300.0, start=2.0):
    """What squared distances of one learner mean: c q / m and the threshold a, before each pair."""
    kept = 1.0 - 1.0 / memory
    now, mean_of_late = np.full(2, start), np.full(2, start)  # a and c
    squares = np.full(2, 1e-8)
    said = []
    for t in range(len(q)):
        past = kept ** np.arange(t - 1, -1, -1)
        positive = np.maximum(q[:t], 0.0)  # those of a form may be negative
        mean = past @ positive / past.sum() if positive.any() else max(q[t], 0.0) or 1.0
        x = q[t] / mean
        said.append((mean_of_late[1] * x, mean_of_late[0]))
        gradient = np.array([1.0, -x])  # of y times the margin, with regard to a and c
        lacking = 1.0 - y[t] * (gradient @ now)
        squares *= kept
        if lacking > 0.0:
            squares += gradient**2
            direction = gradient / np.sqrt(squares)
            size = min(rate, lacking / (gradient @ direction))
            now = np.maximum(now + y[t] * size * direction, [1.0, 1e-3])
        mean_of_late += max(1.0 / memory, 1.0 / (past.sum() + 2.0)) * (now - mean_of_late)
    return np.array(said)


class AdaptiveShare:
    """Coin betting on every interval of the cover, for every expert and for their fixed share."""

    def __init__(self, n_experts, n_pairs, sharpness=2.0, shared=0.003, prior=0.99):
        self.sharpness, self.shared = sharpness, shared
        self.share = np.full(n_experts, 1.0 / n_experts)
        self.priors = np.append(np.full(n_experts, (1.0 - prior) / n_experts), prior)
        self.intervals = cover(n_pairs + 1)
        shape = len(self.intervals), n_experts + 1
        self.z, self.v, self.k = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.t = 1

    def active(self):
        """Numbers of the intervals that contain the present round."""
        return [i for i, (start, end) in enumerate(self.intervals) if start <= self.t <= end]

    def bets(self, i):
        """Signed bets on one interval."""
        return self.z[i] / (self.k[i] + 1.0) * (1.0 + self.v[i])

    def p(self):
        """Probabilities of the experts."""
        weights = np.zeros(len(self.priors))
        for i in self.active():
            start = self.intervals[i][0]
            prior = 1.0 / (start**2 * (1 + np.floor(np.log2(start))))
            weights += prior * self.priors * np.maximum(self.bets(i), 0.0)
        if not weights.any():
            weights[-1] = 1.0
        p = weights[:-1] + weights[-1] * self.share
        return p / p.sum()

    def update(self, losses):
        """Learn from the experts' losses."""
        told = np.append(losses, self.share @ losses)
        regrets = self.p() @ losses - told
        regrets[np.abs(regrets) < 1e-12] = 0.0
        for i in self.active():
            bets = self.bets(i)
            gains = np.where(bets > 0.0, regrets, np.maximum(regrets, 0.0))
            self.z[i] += gains
            self.v[i] += gains * bets
            self.k[i] += 1.0
        hedged = self.share * np.exp(-self.sharpness * losses)
        self.share = (1.0 - self.shared) * hedged / hedged.sum() + self.shared / len(losses)
        self.t += 1
