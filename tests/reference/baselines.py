"""Online ITML, LEGO, POLA and OASIS as their papers write them: dense, plain numpy."""

import numpy as np


class DenseITML:
    """Davis et al. (2007), with the step cut where it would more than double q.

    In long double: what an update takes from M may leave few of its digits.
    """

    def __init__(self, n_features, e, upper, lower):
        self.M = np.eye(n_features, dtype=np.longdouble)
        self.e, self.upper, self.lower = e, upper, lower

    def missed_target(self, q, y):
        """The target of a pair at squared distance q, None where it is met."""
        if y > 0:
            return self.upper if q > self.upper else None
        return self.lower if q < self.lower else None

    def observe(self, u, y):
        """Return the loss on the pair, then learn from it."""
        Mu = self.M @ u
        q = u @ Mu
        g = self.missed_target(q, y)
        if g is None:
            return 0.0
        k = self.slope(q, g)
        self.M = self.M - k * np.outer(Mu, Mu) / (1 + k * q)
        return self.loss(q, g)

    def loss(self, q, g):
        return (q - g) ** 2

    def slope(self, q, g):
        e = self.e
        if q < g and q > 0:
            e = min(e, 1 / (4 * q * (g - q)))
        return 2 * e * (q - g)


class DenseLEGO(DenseITML):
    """Jain et al. (2008)."""

    def loss(self, q, g):
        return (q - g) ** 2 / 2

    def slope(self, q, g):
        if q == 0:
            return 0.0
        e = self.e
        ybar = (e * g * q - 1 + np.sqrt((e * g * q - 1) ** 2 + 4 * e * q**2)) / (2 * e * q)
        return e * (ybar - g)


class DensePOLA:
    """Shalev-Shwartz et al. (2004): onto the half-space of the pair, then onto the cone."""

    def __init__(self, n_features):
        self.M, self.b = np.zeros((n_features, n_features)), 1.0

    def observe(self, u, y):
        """Return the loss on the pair, then learn from it."""
        loss = max(0.0, 1 - y * (self.b - u @ self.M @ u))
        tau = loss / ((u @ u) ** 2 + 1)
        values, vectors = np.linalg.eigh(self.M - tau * y * np.outer(u, u))
        assert (values < -1e-12).sum() <= 1  # as the paper shows
        self.M = (vectors * np.maximum(values, 0.0)) @ vectors.T
        self.b = max(1.0, self.b + tau * y)
        return loss


class DenseOASIS:
    """Chechik et al. (2010)."""

    def __init__(self, n_features, C):
        self.W, self.C = np.eye(n_features), C

    def observe(self, p, positive, negative):
        """Return the loss on the triplet, then learn from it."""
        V = np.outer(p, positive - negative)
        loss = max(0.0, 1 - (self.W * V).sum())
        if V.any():
            self.W = self.W + min(self.C, loss / (V**2).sum()) * V
        return loss
