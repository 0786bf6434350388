"""Cyclic Bregman projections in the LogDet divergence: the inner loop of ITML.

A constraint says that the squared distance p = u'Mu of a pair is at most (sign +1) or at least
(sign -1) a slack variable of its own, which starts at the bound and pays gamma times its own
divergence for leaving it. Projecting on one constraint has a closed form, a rank-one change of M;
``dual`` takes back what a constraint asked for once others make it unnecessary
(Davis, Kulis, Jain, Sra and Dhillon, 2007).
"""

from metrack.engine.numerics.kernels import Floats, Ints, add_scaled, combine, dot, kernel


@kernel
def sweep(
    M: Floats,
    u: Floats,
    signs: Floats,
    slacks: Floats,
    dual: Floats,
    gamma: float,
    order: Ints,
    work: Floats,
) -> float:
    """Project once on each constraint, in order; M, slacks and dual change.

    Rows of ``u`` are differences, none of them 0; ``gamma`` is infinite where there is no slack;
    ``order`` is 0, 1, ... and ``work`` working memory. Returns the sum of the changes of ``dual``.
    """
    n = M.shape[0]
    share = gamma / (gamma + 1.0) if gamma < float("inf") else 1.0
    changed = 0.0
    for c in range(u.shape[0]):
        combine(work, u[c], M, order, n, n)
        p = dot(work, u[c], n)
        sign = signs[c]
        alpha = min(dual[c], sign * share * (1.0 / p - 1.0 / slacks[c]))
        if alpha != 0.0:
            dual[c] -= alpha
            changed += abs(alpha)
            slacks[c] = 1.0 / (1.0 / slacks[c] + sign * alpha / gamma)
            beta = sign * alpha / (1.0 - sign * alpha * p)
            for i in range(n):
                add_scaled(M[i], beta * work[i], work, n)
    return changed
