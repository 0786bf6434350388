"""The textbook COMID against a general convex solver."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize

from .comid import HUGE, LOSSES, DenseCOMID

DIVERGENCES = ("frobenius", "von_neumann", "burg")
STEP = 0.15
TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
SLACK = 1e-7  # of the solver's objective where it does not reach its tolerances
ROUNDING = 1e-11  # of an objective worked out here: some thousand times that of its terms, about 10
# Of the solver's argument. Divergences are strongly convex, by 1 over the square of the largest
# eigenvalue (2 here) or more: sqrt(2 SLACK) * 2 at most. Quadratic problems it solves far better.
PRECISION = {"frobenius": 1e-6, "von_neumann": 1e-3, "burg": 1e-3}


def problem(seed, n, divergence, q=2.0):
    """A random metric, singular where the divergence allows, and a difference with u'Mu = q."""
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = rng.uniform(0.3, 2.0, n)
    if divergence == "frobenius":
        values[0] = 0.0
    M = (vectors * values) @ vectors.T
    M = (M + M.T) / 2
    u = rng.standard_normal(n)
    return M, u * np.sqrt(q / (u @ M @ u))


def learner_at(M, mu, **settings):
    """An oracle that stands at (M, mu)."""
    learner = DenseCOMID(len(M), learning_rate=STEP, **settings)
    learner.set_iterate(M, mu)
    return learner


def solve(objective, constraints=()):
    """Minimise with an interior-point solver, as precisely as it can.

    Whether it also says that its tolerances are met depends on the processor, and does not matter:
    the least is not above any feasible value, and those who call it ask how near the two are.
    """
    task = cp.Problem(cp.Minimize(objective), list(constraints))
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        task.solve(solver=cp.CLARABEL, **TIGHT)
    assert task.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)


def feasible(X):
    """The nearest metric: the solver may leave the cone by its tolerance."""
    values, vectors = np.linalg.eigh(X)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def log_matrix(M):
    """Logarithm of a positive definite matrix."""
    values, vectors = np.linalg.eigh(M)
    return (vectors * np.log(values)) @ vectors.T


def cvx_divergence(divergence, X, M):
    """B_psi(X, M) of matrices, up to a constant, as a convex expression of X."""
    if divergence == "frobenius":
        return cp.sum_squares(X - M) / 2
    if divergence == "von_neumann":
        return -cp.von_neumann_entr(X) - cp.trace((log_matrix(M) + np.eye(len(M))) @ X)
    return cp.trace(np.linalg.inv(M) @ X) - cp.log_det(X)


def cvx_scalar_divergence(divergence, x, mu):
    """B_psi(x, mu) of thresholds, up to a constant."""
    if divergence == "frobenius":
        return (x - mu) ** 2 / 2
    if divergence == "von_neumann":
        return -cp.entr(x) - (np.log(mu) + 1) * x
    return x / mu - cp.log(x)


def objective_value(divergence, X, M, slope):
    """B_psi(X, M) + <slope, X> in plain numpy, up to a constant."""
    linear = np.sum(slope * X)
    if divergence == "frobenius":
        return np.sum((X - M) ** 2) / 2 + linear
    values = np.linalg.eigvalsh(X)
    if divergence == "von_neumann":
        kept = values[values > 0]
        return kept @ np.log(kept) - values.sum() - np.sum(log_matrix(M) * X) + linear
    return np.sum(np.linalg.inv(M) * X) - np.log(values).sum() + linear


def total(divergence, X, x, M, mu, slope, push):
    """The whole subproblem's value: matrix part plus threshold part, which is its 1 x 1 case."""
    threshold = [np.array([[float(v)]]) for v in (x, mu, -push)]
    return objective_value(divergence, X, M, slope) + objective_value(divergence, *threshold)


EXPLICIT_CASES = [(1, 1.5, 0.0), (1, 1.5, 0.5), (-1, 1.5, 0.5), (-1, 1.05, 2.0)]  # y, mu, rho


def explicit_case(loss, divergence, n, case):
    """The oracle after one step, and the subproblem: learner, M_t, slope on M, push on mu."""
    y, mu, rho = EXPLICIT_CASES[case]
    M, u = problem(case + 10 * n, n, divergence)
    learner = learner_at(M, mu, loss=loss, divergence=divergence, rho=rho)
    learner.observe(u, y)
    alpha = y * LOSSES[loss][1](1 - y * (mu - u @ M @ u))
    assert alpha != 0
    return learner, M, STEP * (alpha * np.outer(u, u) + rho * np.eye(n)), STEP * alpha


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("loss", LOSSES)
def test_explicit_step_solves_the_subproblem(loss, divergence, n):
    """argmin over M >= 0 of B(M, M_t) + e <grad, M> + e rho tr M, and the same over mu >= 1."""
    for case, (_, mu, _) in enumerate(EXPLICIT_CASES):
        learner, M, slope, push = explicit_case(loss, divergence, n, case)
        X, x = cp.Variable((n, n), PSD=True), cp.Variable()
        solve(cvx_divergence(divergence, X, M) + cp.sum(cp.multiply(slope, X)))
        solve(cvx_scalar_divergence(divergence, x, mu) - push * x, [x >= 1])

        np.testing.assert_allclose(learner.M, X.value, atol=PRECISION[divergence])
        np.testing.assert_allclose(learner.mu, x.value, atol=PRECISION[divergence])
        ours = total(divergence, learner.M, learner.mu, M, mu, slope, push)
        theirs = total(divergence, feasible(X.value), max(x.value, 1), M, mu, slope, push)
        assert theirs - SLACK <= ours <= theirs + ROUNDING


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("divergence", ["von_neumann", "burg"])
@pytest.mark.parametrize("loss", LOSSES)
def test_explicit_step_solves_the_subproblem_precisely(loss, divergence, n):
    """Where the cone solver is coarse: a smooth minimiser over M = LL', from several starts."""
    rng = np.random.default_rng(n)
    for case in range(len(EXPLICIT_CASES)):
        learner, M, slope, _ = explicit_case(loss, divergence, n, case)
        for _ in range(2):
            L = smooth_minimum(divergence, M, slope, rng.standard_normal((n, n)) + np.eye(n))
            np.testing.assert_allclose(learner.M, L @ L.T, atol=1e-6)


def smooth_minimum(divergence, M, slope, start):
    """The factor L that minimises B_psi(LL', M) + <slope, LL'>."""
    base = log_matrix(M) if divergence == "von_neumann" else -np.linalg.inv(M)

    def value_and_gradient(flat):
        L = flat.reshape(M.shape)
        X = L @ L.T
        dual = log_matrix(X) if divergence == "von_neumann" else -np.linalg.inv(X)
        gradient = 2 * (dual - base + slope) @ L
        return objective_value(divergence, X, M, slope), gradient.ravel()

    found = minimize(value_and_gradient, start.ravel(), jac=True, options={"gtol": 1e-9})
    return found.x.reshape(M.shape)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_no_small_move_improves_the_explicit_step(divergence):
    """The oracle's point beats its feasible neighbours to the precision of doubles."""
    rng = np.random.default_rng(3)
    for y in (1, -1):
        M, u = problem(5, 4, divergence)
        learner = learner_at(M, 1.5, divergence=divergence, rho=0.5)
        learner.observe(u, y)
        slope = STEP * (y * np.outer(u, u) + 0.5 * np.eye(4))
        best = objective_value(divergence, learner.M, M, slope)
        values, vectors = np.linalg.eigh(learner.M)
        root = vectors * np.sqrt(np.maximum(values, 0))
        for size in (1e-1, 1e-2, 1e-3):
            for _ in range(50):
                factor = root + size * rng.standard_normal((4, 4))
                assert objective_value(divergence, factor @ factor.T, M, slope) >= best - ROUNDING


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_zero_loss_round_only_shrinks(divergence):
    """Without loss the eigenvalues shrink by the full e rho and mu stays."""
    M, u = problem(1, 3, divergence, q=0.2)
    expected = {
        "frobenius": lambda s: np.maximum(s - STEP * 0.4, 0),
        "von_neumann": lambda s: s * np.exp(-STEP * 0.4),
        "burg": lambda s: 1 / (1 / s + STEP * 0.4),
    }[divergence]
    for step in ("explicit", "implicit"):
        learner = learner_at(M, 1.5, divergence=divergence, rho=0.4, step=step)
        assert learner.observe(u, 1) == 0.0
        assert learner.mu == 1.5
        np.testing.assert_allclose(
            np.linalg.eigvalsh(learner.M), np.sort(expected(np.linalg.eigvalsh(M))), atol=1e-12
        )


def cvx_loss(loss, m):
    """The loss as a convex expression of the margin."""
    return {
        "hinge": lambda: cp.pos(1 - m),
        "squared_hinge": lambda: cp.square(cp.pos(1 - m)) / 2,
        "logistic": lambda: cp.logistic(-m),
        "exponential": lambda: cp.exp(-m),
        "least_squares": lambda: cp.square(1 - m) / 2,
    }[loss]()


@pytest.mark.parametrize("q", [0.6, 2.0, 2.5])
@pytest.mark.parametrize("y", [1, -1])
@pytest.mark.parametrize("divergence", ["frobenius", "burg"])
@pytest.mark.parametrize("loss", LOSSES)
def test_implicit_step_is_the_proximal_step(loss, divergence, y, q):
    """Before clipping, (M, mu) minimises B(M, M_t) + B(mu, mu_t) + e l(margin) over all (M, mu)."""
    n, mu = 3, 1.7
    M, u = problem(8, n, divergence, q=q)
    learner = learner_at(M, mu, loss=loss, divergence=divergence, step="implicit")
    b = learner.signed_step(u, y, STEP)
    assert abs(b) < learner.step_limit(u, np.sign(b))
    if divergence == "frobenius":
        moved = M - b * np.outer(u, u)
    else:
        moved = np.linalg.inv(np.linalg.inv(M) + b * np.outer(u, u))

    X, x = cp.Variable((n, n), symmetric=True), cp.Variable()
    margin = y * (x - cp.sum(cp.multiply(np.outer(u, u), X)))
    distance = cvx_divergence(divergence, X, M) + cvx_scalar_divergence(divergence, x, mu)
    solve(distance + STEP * cvx_loss(loss, margin))
    coarse = 1e-3 if loss in ("logistic", "exponential") else PRECISION[divergence]
    np.testing.assert_allclose(moved, X.value, atol=coarse)
    np.testing.assert_allclose(learner.mu + learner.gain(b), x.value, atol=coarse)

    def value(X, x):
        suffered = LOSSES[loss][0](1 - y * (x - u @ X @ u))
        return total(divergence, X, x, M, mu, np.zeros((n, n)), 0.0) + STEP * suffered

    ours, theirs = value(moved, learner.mu + learner.gain(b)), value(X.value, x.value)
    assert theirs - SLACK <= ours <= theirs + ROUNDING


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("loss", LOSSES)
def test_implicit_step_solves_its_equation(loss, divergence):
    """beta = e a(m'(beta)), or the limit if that comes first; never beyond the explicit step."""
    rng = np.random.default_rng(11)
    for _ in range(40):
        M, u = problem(rng.integers(1000), 3, divergence, q=rng.uniform(0.1, 6))
        y, e, mu = rng.choice([-1, 1]), 10 ** rng.uniform(-3, 1), rng.uniform(1, 3)
        learner = learner_at(M, mu, loss=loss, divergence=divergence, step="implicit")
        b = learner.signed_step(u, y, e)
        learner.step = "explicit"
        assert abs(b) <= abs(learner.signed_step(u, y, e))
        if b != 0 and abs(b) < learner.step_limit(u, np.sign(b)):
            after = y * (learner.mu + learner.gain(b) - learner.moved_q(u, b))
            if loss == "hinge" and y * b < e:
                assert after == pytest.approx(1.0, abs=1e-9)
            else:
                assert y * b == pytest.approx(e * LOSSES[loss][1](1 - after), rel=1e-8, abs=1e-12)


def test_implicit_hinge_is_the_passive_aggressive_step():
    """Frobenius: beta = min(e, l / (|u|^4 + 1))."""
    M, u = problem(2, 4, "frobenius", q=3.0)
    for e in (1e-3, 1e-1, 1.0, 10.0):
        learner = learner_at(M, 1.2, step="implicit")
        hinge = max(0.0, 1 - (1.2 - u @ M @ u))
        expected = min(e, hinge / ((u @ u) ** 2 + 1))
        assert learner.signed_step(u, 1, e) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_implicit_hinge_never_overshoots(divergence):
    """A margin below 1 ends at 1 at most, whatever the rate: clipping only pulls it back."""
    rng = np.random.default_rng(17)
    checked = 0
    for _ in range(300):
        M, u = problem(rng.integers(1000), 3, divergence, q=rng.uniform(0.1, 8))
        learner = learner_at(M, rng.uniform(1, 4), divergence=divergence, step="implicit")
        learner.learning_rate = 10 ** rng.uniform(-3, 2)
        y = rng.choice([-1, 1])
        before = learner.shortfall(u, y)
        if before > 0:
            checked += 1
            learner.observe(u, y)
            assert -1e-9 <= learner.shortfall(u, y) <= before + 1e-9
    assert checked > 100


def test_von_neumann_model_of_q_is_conservative():
    """u' exp(H - b uu') u moves no further than q exp(-b |u|^2) says."""
    rng = np.random.default_rng(23)
    for _ in range(100):
        M, u = problem(rng.integers(1000), 3, "von_neumann", q=rng.uniform(0.1, 4))
        learner = learner_at(M, 1.0, divergence="von_neumann")
        b = rng.uniform(-1, 1)
        q, model = u @ M @ u, learner.moved_q(u, b)
        learner.move_metric(u, b, 0.0)
        assert min(q, model) - 1e-12 <= u @ learner.M @ u <= max(q, model) + 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_slope_is_minus_the_derivative(loss):
    """a(m) against central differences of l(m), also beyond the exponential's knee."""
    value, slope = LOSSES[loss]
    for m in (-45.0, -31.0, -29.0, -3.0, -0.7, 0.0, 0.4, 0.99, 1.01, 2.5, 20.0):
        h = 1e-5
        difference = (value(1 - m + h) - value(1 - m - h)) / (2 * h)
        assert slope(1 - m) == pytest.approx(difference, rel=1e-6, abs=1e-9)


def test_losses_stay_finite():
    """Huge margins of either sign give finite losses and slopes."""
    for value, slope in LOSSES.values():
        for m in (-1e100, -800.0, 800.0, 1e100):
            assert np.isfinite(value(1 - m))
            assert np.isfinite(slope(1 - m))
    value, _ = LOSSES["exponential"]
    assert value(1 + 30.0) == pytest.approx(np.exp(30))
    assert value(1 + 32.0) == pytest.approx(3 * np.exp(30))


@pytest.mark.parametrize("step", ["explicit", "implicit"])
def test_limits_of_the_step(step):
    """Large rates meet the divergences' limits."""
    u = np.array([2.0, 1.0])
    settings = {"loss": "logistic", "step": step}
    burg = DenseCOMID(2, divergence="burg", **settings)
    assert -burg.signed_step(u, -1, 1e9) * (u @ u) == pytest.approx(0.5)
    assert burg.signed_step(u, 1, 1e9) * burg.mu == pytest.approx(0.5)
    entropy = DenseCOMID(2, divergence="von_neumann", **settings)
    if step == "explicit":
        assert entropy.signed_step(u, 1, 1e9) * 5 == pytest.approx(50)
        assert entropy.signed_step(u / 10, -1, 1e9) == pytest.approx(-50)


@pytest.mark.parametrize("step", ["explicit", "implicit"])
@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("loss", LOSSES)
def test_long_streams_stay_in_range(loss, divergence, step):
    """A long stream at a harsh rate keeps M finite and PSD and mu in [1, 1e60]."""
    rng = np.random.default_rng(29)
    learner = DenseCOMID(
        3, loss=loss, divergence=divergence, step=step, rho=0.01, learning_rate=3.0
    )
    for _ in range(60):
        assert np.isfinite(learner.observe(rng.standard_normal(3), rng.choice([-1, 1])))
        values = np.linalg.eigvalsh(learner.M)
        assert np.all(np.isfinite(values))
        assert values[0] >= -1e-12 * max(values[-1], 1.0)
        assert 1.0 <= learner.mu <= HUGE
    assert learner.t == 60


def test_schedule_and_start():
    """invsqrt divides by sqrt(t) from t = 1; zero and identity starts; no regulariser, no rho."""
    u = np.array([1.0, 0.0])
    learner = DenseCOMID(2, loss="least_squares", learning_rate=0.1, schedule="invsqrt")
    assert learner.mu == 1.0
    np.testing.assert_array_equal(learner.M, np.zeros((2, 2)))
    learner.observe(u, -1)  # m = -1, a = 2
    np.testing.assert_allclose(learner.M, np.diag([0.2, 0.0]))
    learner.observe(u, -1)  # m = 0.2 - 1, a = 1.8
    np.testing.assert_allclose(learner.M, np.diag([0.2 + 0.18 / np.sqrt(2), 0.0]))
    for divergence in ("von_neumann", "burg"):
        np.testing.assert_array_equal(DenseCOMID(2, divergence=divergence).M, np.eye(2))
        with pytest.raises(ValueError, match="init"):
            DenseCOMID(2, divergence=divergence, init="zero")
    assert DenseCOMID(2, rho=0.3, regularizer=None).rho == 0.0
