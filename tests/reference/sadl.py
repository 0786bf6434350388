"""COMID-SADL, textbook form: one dense COMID learner a scale, on a dyadic cover of time.

Time runs tau = t + I0 - 1 for t = 1, 2, ...; the cover has the intervals [iL, (i+1)L - 1] with
L = I0 2^j, i >= 1, j >= 0, so at every tau one interval of each level j with L <= tau is active.

Beyond the paper, the LogDet regulariser's rho fades with L, as rho sqrt(32 / L) for L > 32.
"""

import numpy as np

from .comid import DenseCOMID, shortfall


def cover(tau_max, first_interval=1):
    """List all intervals (start, end) that start at or before ``tau_max``, shortest scale first."""
    intervals = []
    length = first_interval
    while length <= tau_max:
        intervals += [(s, s + length - 1) for s in range(length, tau_max + 1, length)]
        length *= 2
    return intervals


class DenseSADL:
    """Strongly adaptive combination of COMID learners with rates eta0 / sqrt(L).

    Readable after each round: ``levels`` active in it, their ``learners``, ``p`` the normalised
    weights it predicted with, ``drawn`` the level it predicted with (None for the average),
    ``losses`` of the active learners, ``regrets`` r_I, and ``weights`` after the update.
    """

    def __init__(
        self,
        n_features,
        *,
        eta0,
        first_interval=1,
        cap=2.0,
        output="sample",
        rng=None,
        **comid_settings,
    ):
        if output not in ("sample", "average", "best"):
            raise ValueError(f"output={output!r}; choose 'sample', 'average' or 'best'")
        self.n_features = n_features
        self.eta0 = eta0
        self.first_interval = first_interval
        self.cap = cap
        self.output = output
        self.rng = np.random.RandomState(0) if rng is None else rng
        self.comid_settings = comid_settings
        self.t = 0
        self.levels, self.learners = [], []
        self.weights = np.zeros(0)
        self.p = self.losses = self.regrets = self.drawn = None

    def length(self, level):
        """Length of a level's intervals."""
        return self.first_interval * 2**level

    def weight_rate(self, level):
        """eta_I, the weight at birth and the rate of the weight's update."""
        return min(0.5, 1.0 / np.sqrt(self.length(level)))

    def observe(self, u, y):
        """Return the loss of the output on the pair, then learn from it."""
        u = np.asarray(u, dtype=float)
        self.t += 1
        self.births(self.t + self.first_interval - 1)
        self.p = self.weights / self.weights.sum()
        suffered = self.output_loss(u, y)
        self.losses = np.array([learner.loss(learner.shortfall(u, y)) for learner in self.learners])
        self.update_weights()
        for learner in self.learners:
            learner.observe(u, y)
        return suffered

    def births(self, tau):
        """Start the intervals that begin at tau, longest first: each takes the iterate below it."""
        if tau >= self.length(len(self.levels)):
            self.add_level()
        for level in reversed(self.levels):
            if tau % self.length(level) == 0:
                if level > 0:
                    self.learners[level].start_from(self.learners[level - 1])
                self.weights[level] = self.weight_rate(level)

    def add_level(self):
        """Make room for the next longer scale."""
        level = len(self.levels)
        rate = self.eta0 / np.sqrt(self.length(level))
        self.levels.append(level)
        self.weights = np.append(self.weights, 0.0)
        settings = dict(self.comid_settings)
        if settings.get("regularizer") == "logdet":
            settings["rho"] *= min(1.0, np.sqrt(32 / self.length(level)))
        self.learners.append(DenseCOMID(self.n_features, learning_rate=rate, **settings))

    def output_loss(self, u, y):
        """Choose the output metric by p and return its loss on the pair."""
        loss = self.learners[0].loss
        if self.output == "average":
            self.drawn = None
            M = sum(p * learner.M for p, learner in zip(self.p, self.learners, strict=True))
            mu = sum(p * learner.mu for p, learner in zip(self.p, self.learners, strict=True))
            return float(loss(shortfall(y, mu, u @ M @ u)))
        if self.output == "sample":
            passed = int(np.sum(np.cumsum(self.p) <= self.rng.random_sample()))
            self.drawn = min(passed, self.levels[-1])
        else:
            self.drawn = int(np.argmax(self.p))
        return float(loss(self.learners[self.drawn].shortfall(u, y)))

    def update_weights(self):
        """r_I = sum_J p_J l_J - l_I on capped losses; w <- w (1 + eta_I r_I)."""
        capped = np.minimum(self.cap, self.losses) / self.cap
        rates = np.array([self.weight_rate(level) for level in self.levels])
        self.regrets = self.p @ capped - capped
        self.weights = self.weights * (1.0 + rates * self.regrets)
