"""Elementwise L1, textbook form: dense matrices, thresholds in every round, a general solver."""

import cvxpy
import numpy as np

from .comid import DenseCOMID

SPLITTING_STEPS = 20_000


class DenseL1(DenseCOMID):
    """One online metric learner with r(M) = sum |M_ij|, in one of three forms.

    Without the cone (``on_read``) ``M`` is any symmetric matrix.
    """

    def __init__(self, n_features, *, psd, rho=0.0, **settings):
        super().__init__(n_features, rho=rho, **settings)
        self.psd = psd

    def move_metric(self, u, b, shrink):
        """Move M by -b uu', and take the proximal step of the L1 norm."""
        if self.psd == "diagonal":
            weights = np.diag(self.M) - b * u**2 - shrink
            self.M = np.diag(np.maximum(weights, 0.0))
        elif self.psd == "on_read":
            self.M = soft(self.M - b * np.outer(u, u), shrink)
        else:
            self.M = split(self.M - b * np.outer(u, u), shrink)

    def moved_q(self, u, b):
        """The pair's q after the signed step b, before the proximal step."""
        if self.psd == "diagonal":
            return u @ self.M @ u - b * np.sum(u**4)
        return super().moved_q(u, b)


def soft(M, amount):
    """Soft thresholds on all entries."""
    return np.sign(M) * np.maximum(np.abs(M) - amount, 0.0)


def positive_part(M):
    """The nearest matrix on the cone."""
    values, vectors = np.linalg.eigh(M)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def split(A, amount, precision=1e-11):
    """The proximal step on the cone by ADMM: one copy is thresholded, the other projected."""
    on_cone, prices = positive_part(A), np.zeros_like(A)
    for _ in range(SPLITTING_STEPS):
        thresholded = soft((A + on_cone - prices) / 2, amount / 2)
        last, on_cone = on_cone, positive_part(thresholded + prices)
        prices += thresholded - on_cone
        if max(np.abs(thresholded - on_cone).max(), np.abs(on_cone - last).max()) <= precision:
            break
    return thresholded


def objective(M, A, amount):
    """What the proximal step minimises."""
    return 0.5 * np.sum((M - A) ** 2) + amount * np.abs(M).sum()


def solve(A, amount, diagonal=False):
    """The proximal step by a general convex solver."""
    n = len(A)
    if diagonal:
        weights = cvxpy.Variable(n, nonneg=True)
        M = cvxpy.diag(weights)
    else:
        M = cvxpy.Variable((n, n), PSD=True)
    aim = 0.5 * cvxpy.sum_squares(M - A) + amount * cvxpy.sum(cvxpy.abs(M))
    precise = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    cvxpy.Problem(cvxpy.Minimize(aim)).solve(solver="CLARABEL", **precise)
    return M.value
