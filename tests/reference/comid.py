"""COMID, textbook form: dense matrices, a full ``eigh`` every round, bisection for implicit steps.

Notation: u = x - z is the difference of a pair, y = +1 (similar) or -1 (dissimilar), q = u'Mu the
squared distance, m = y (mu - q) the margin, l(m) the loss, a(m) = -l'(m), e the step size.
Losses are written in the shortfall s = 1 - m, which keeps its digits where mu is 1 and q tiny.
One round moves M by -b uu' and mu by +b in the divergence's dual, b = e y a, then shrinks M's
eigenvalues by e rho (nuclear norm) and projects on M >= 0, mu >= 1.
LogDet, for Burg: a round whose step moves q ends at M^-1 = (M^-1 + b uu' + a S) / (1 + a), where
a = min(e rho, 1 / n) and S = n uu' / |u|^2, in every 4n-th of them + n I.
"""

import numpy as np

HUGE = 1e60  # eigenvalues and mu never exceed this
LOG_HUGE = 60 * np.log(10.0)
EXP_KNEE = 30.0  # the exponential loss goes on linearly below m = -30

# name: (l, a = -dl/dm), both of the shortfall s = 1 - m
LOSSES = {
    "hinge": (lambda s: max(0.0, s), lambda s: 1.0 if s > 0.0 else 0.0),
    "squared_hinge": (lambda s: max(0.0, s) ** 2 / 2, lambda s: max(0.0, s)),
    "logistic": (lambda s: np.logaddexp(0.0, s - 1), lambda s: np.exp(-np.logaddexp(0.0, 1 - s))),
    "exponential": (
        lambda s: np.exp(min(s - 1, EXP_KNEE)) * (1.0 + max(s - 1 - EXP_KNEE, 0.0)),
        lambda s: np.exp(min(s - 1, EXP_KNEE)),
    ),
    "least_squares": (lambda s: s**2 / 2, lambda s: s),
}


def shortfall(y, mu, q, gain=0.0):
    """1 - y (mu + gain - q), summed so that nothing cancels that need not."""
    return (1.0 - mu) - gain + q if y > 0 else (1.0 + mu) + gain - q


class DenseCOMID:
    """One online metric learner; its state is ``M``, ``mu`` and ``t``, the number of pairs seen.

    The von Neumann divergence also keeps ``H`` = log M.
    """

    def __init__(
        self,
        n_features,
        *,
        loss="hinge",
        divergence="frobenius",
        regularizer="nuclear",
        rho=0.0,
        learning_rate=0.1,
        schedule="constant",
        step="explicit",
        init="auto",
    ):
        _check_choice("divergence", divergence, ("frobenius", "von_neumann", "burg"))
        _check_choice("regularizer", regularizer, ("nuclear", "logdet", None))
        _check_choice("schedule", schedule, ("constant", "invsqrt"))
        _check_choice("step", step, ("explicit", "implicit"))
        if init == "auto":
            init = "zero" if divergence == "frobenius" else "identity"
        _check_choice(
            "init", init, ("zero", "identity") if divergence == "frobenius" else ("identity",)
        )
        self.loss, self.slope = LOSSES[loss]
        self.divergence = divergence
        self.regularizer = regularizer
        self.rho = 0.0 if regularizer is None else rho
        self.steps = 0
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.step = step
        self.t = 0
        self.set_iterate(
            np.eye(n_features) if init == "identity" else np.zeros((n_features,) * 2), 1.0
        )

    def set_iterate(self, M, mu):
        """Go on from a given metric and threshold."""
        self.M, self.mu = np.array(M, dtype=float), float(mu)
        if self.divergence == "von_neumann":
            self.H = _spectral(np.log, self.M)

    def start_from(self, other):
        """Go on from another learner's iterate."""
        self.M, self.mu, self.steps = other.M.copy(), other.mu, other.steps
        if self.divergence == "von_neumann":
            self.H = other.H.copy()

    def shortfall(self, u, y):
        """What the margin y (mu - u'Mu) of a pair lacks to 1."""
        return shortfall(y, self.mu, u @ self.M @ u)

    def observe(self, u, y):
        """Return the loss on the pair, then learn from it."""
        u = np.asarray(u, dtype=float)
        suffered = float(self.loss(self.shortfall(u, y)))
        self.t += 1
        e = self.learning_rate / (np.sqrt(self.t) if self.schedule == "invsqrt" else 1.0)
        b = self.signed_step(u, y, e)
        mu = float(np.clip(self.mu + self.gain(b), 1.0, HUGE))
        if self.regularizer == "logdet":
            self.move_towards_identity(u, b, min(e * self.rho, 1.0 / len(u)))
        else:
            self.move_metric(u, b, e * self.rho)
        self.mu = mu
        return suffered

    def move_metric(self, u, b, shrink):
        """Move M by -b uu' in the dual, shrink its eigenvalues, keep them in range."""
        if self.divergence == "frobenius":
            self.M = _spectral(
                lambda s: np.clip(s - shrink, 0.0, HUGE), self.M - b * np.outer(u, u)
            )
        elif self.divergence == "von_neumann":
            moved = self.H - b * np.outer(u, u)
            self.H = _spectral(lambda h: np.clip(h - shrink, -LOG_HUGE, LOG_HUGE), moved)
            self.M = _spectral(np.exp, self.H)
        else:
            moved = _inverse_plus(self.M, b, u)
            self.M = _spectral(lambda s: _burg_shrunk(np.maximum(s, 0.0), shrink), moved)

    def move_towards_identity(self, u, b, a):
        """Burg's step with the LogDet regulariser."""
        if abs(b) * (u @ self.M @ u) < 1e-12:
            return
        n = len(u)
        self.M = _inverse_plus(self.M, b + a * n / (u @ u), u)
        self.steps += 1
        if self.steps % (4 * n) == 0:
            self.M = _spectral(lambda s: s / (1.0 + a * n * s), self.M)
        self.M *= 1.0 + a

    def gain(self, b):
        """By how much the signed step b moves the threshold, before clipping."""
        if self.divergence == "frobenius":
            return b
        if self.divergence == "von_neumann":
            return self.mu * np.expm1(b)
        return b * self.mu**2 / (1.0 - b * self.mu)  # 1 / (1 / mu - b) - mu

    def moved_q(self, u, b):
        """The pair's q after the signed step b: exact, but for von Neumann the most it can move."""
        q = u @ self.M @ u
        if self.divergence == "frobenius":
            return q - b * (u @ u) ** 2
        if self.divergence == "von_neumann":
            return q * np.exp(-b * (u @ u))
        return q / (1.0 + b * q)

    def step_limit(self, u, sign):
        """The largest |b| allowed when b has the given sign."""
        if self.divergence == "frobenius":
            return np.inf
        if self.divergence == "von_neumann":
            return 50.0 / max(u @ u, 1.0)
        reach = self.mu if sign > 0 else u @ self.M @ u
        return 0.5 / reach if reach > 0 else np.inf

    def signed_step(self, u, y, e):
        """b = y beta within its limit; explicit beta = e a(m), implicit beta = e a(m'(beta))."""
        full = e * self.slope(self.shortfall(u, y))
        sign = np.sign(full)  # least squares also steps backwards
        most = min(abs(full), self.step_limit(u, sign * y))
        if self.step == "explicit":
            return sign * y * most

        def excess(size):  # increases with size
            b = sign * y * size
            after = shortfall(y, self.mu, self.moved_q(u, b), self.gain(b))
            return size - sign * e * self.slope(after)

        return sign * y * _bisect(excess, most)


def _bisect(increasing, upper):
    """Where an increasing function, at most 0 at 0, crosses 0 on [0, upper]; else upper."""
    if increasing(upper) <= 0:
        return upper
    low, high = 0.0, upper
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if increasing(middle) <= 0 else (low, middle)
    return low


def _inverse_plus(M, b, u):
    """(M^-1 + b uu')^-1, by Sherman and Morrison."""
    Mu = M @ u
    return M - b * np.outer(Mu, Mu) / (1.0 + b * (u @ Mu))


def _spectral(function, symmetric):
    """Apply a function to the eigenvalues of a symmetric matrix."""
    values, vectors = np.linalg.eigh(symmetric)
    return (vectors * function(values)) @ vectors.T


def _burg_shrunk(values, shrink):
    """1 / (1 / s + shrink) for eigenvalues s >= 0, kept in range."""
    return np.clip(values / (1.0 + shrink * values), 1 / HUGE, HUGE)


def _check_choice(name, value, choices):
    """Refuse a setting that the textbook form does not have."""
    if value not in choices:
        raise ValueError(f"{name}={value!r}; choose one of {choices}")
