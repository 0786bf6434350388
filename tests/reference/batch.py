"""The batch methods in plain form: all triplets listed, general solvers, nothing clever."""

import cvxpy as cp
import numpy as np


def lmnn_targets(X, y, n_neighbors):
    """Nearest points of the same class, for each point a list of at most n_neighbors."""
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    targets = []
    for i in range(len(X)):
        others = [j for j in range(len(X)) if j != i and y[j] == y[i]]
        targets.append(sorted(others, key=lambda j, i=i: distances[i, j])[:n_neighbors])
    return targets


def lmnn(M, X, y, targets, pull):
    """Objective and gradient in M, with all triplets listed."""
    i, j = np.array([(i, j) for i, of_i in enumerate(targets) for j in of_i]).T
    near, far = X[i] - X[j], X[i][:, None] - X[None]
    d_near = np.einsum("ia,ab,ib->i", near, M, near)
    hinge = 1.0 + d_near[:, None] - np.einsum("ila,ab,ilb->il", far, M, far)
    active = (hinge > 0.0) & (y[i][:, None] != y)
    value = pull * d_near.sum() + (1.0 - pull) * hinge[active].sum()
    weights = pull + (1.0 - pull) * active.sum(axis=1)
    gradient = (near * weights[:, None]).T @ near - (1.0 - pull) * far[active].T @ far[active]
    return value, gradient


def lmnn_by_projected_gradient(X, y, targets, pull, n_iter):
    """Least objective found on the PSD cone by steps along the gradient, halved where it rises."""
    M = np.eye(X.shape[1])
    value, gradient = lmnn(M, X, y, targets, pull)
    step = 0.1 / np.linalg.norm(gradient)
    for _ in range(n_iter):
        values, vectors = np.linalg.eigh(M - step * gradient)
        trial = (vectors * np.maximum(values, 0.0)) @ vectors.T
        new_value, new_gradient = lmnn(trial, X, y, targets, pull)
        if new_value < value:
            M, value, gradient = trial, new_value, new_gradient
            step *= 1.2
        else:
            step /= 2.0
    return value


def itml(prior, u, y, bounds, gamma):
    """The LogDet projection with slack, or without where gamma is infinite, by a conic solver."""
    n_features = u.shape[1]
    M = cp.Variable((n_features, n_features), PSD=True)
    squares = np.where(y > 0, bounds[0] ** 2, bounds[1] ** 2)
    inverse = np.linalg.inv(prior)
    cost = cp.trace(inverse @ M) - cp.log_det(M)
    if gamma < np.inf:
        ratios = cp.Variable(len(y))  # of the slack variables to the bounds
        cost += gamma * cp.sum(ratios - cp.log(ratios))
    constraints = []
    for i in range(len(y)):
        p = cp.sum(cp.multiply(np.outer(u[i], u[i]), M))
        limit = squares[i] * (ratios[i] if gamma < np.inf else 1.0)
        constraints.append(y[i] * (limit - p) >= 0)
    cp.Problem(cp.Minimize(cost), constraints).solve(solver=cp.CLARABEL)
    return M.value


def mmc(u, y, diagonal):
    """Least mean square of similar distances at a mean of 1 of dissimilar ones."""
    n_features = u.shape[1]
    if diagonal:
        M = cp.diag(cp.Variable(n_features, nonneg=True))
    else:
        M = cp.Variable((n_features, n_features), PSD=True)
    alike, others = u[y > 0], u[y < 0]
    near = cp.trace(M @ (alike.T @ alike)) / len(alike)
    apart = [cp.sqrt(cp.sum(cp.multiply(np.outer(v, v), M))) for v in others]
    problem = cp.Problem(cp.Minimize(near), [sum(apart) / len(others) >= 1.0])
    problem.solve(solver=cp.CLARABEL)
    return problem.value
