"""Learners on a basis, textbook form: n x n matrices M = PMP + s (I - P), P = BB'.

The bases are given. A step is that of the whole matrix on the part of a pair within them, sized by
its whole squared distance. When they change, M is restricted to the new form.
"""

import numpy as np

from .comid import _inverse_plus
from .kinds import DenseTarget, numbers_drawn


class OnDirections:
    """A learner of LogDet's, whose metric is s times plain distance outside of its directions."""

    def use(self, B, outside):
        """Start on directions, the columns of B."""
        self.outside = outside
        self.M = np.eye(len(B))
        self.change(B)

    def change(self, B):
        """Go on with other directions."""
        self.B, P = B, B @ B.T
        self.M = P @ self.M @ P + self.outside * (np.eye(len(B)) - P)

    def move_towards_identity(self, u, b, a):
        n = self.B.shape[1]
        P = self.B @ self.B.T
        inside = P @ u
        if abs(b) * (inside @ self.M @ inside) < 1e-12:
            return
        a = min(self.learning_rate * self.rho, 1.0 / n)
        self.M = _inverse_plus(self.M, b + a * n / (inside @ inside), inside)
        self.steps += 1
        if self.steps % (4 * n) == 0:
            values, vectors = np.linalg.eigh(self.B.T @ self.M @ self.B)
            turned = self.B @ vectors
            moved = (turned * (values / (1.0 + a * n * values))) @ turned.T
            self.M = moved + self.outside * (np.eye(len(P)) - P)
        self.M = (1.0 + a) * (P @ self.M @ P) + self.outside * (np.eye(len(P)) - P)


class TargetOnDirections(OnDirections, DenseTarget):
    pass


def follow(learner, u, y, bases, width, pace, most, last):
    """The metric after each block, with the squared distances predicted in it.

    ``bases`` are B by the first pair that they are used for, ``pace`` is (replays, window, outside)
    of a learner on the first ``width`` directions. Of a pair, what is within the basis of its time
    is known later on, and its length; of the ``last`` pairs before a change all is known.
    """
    replays, window, outside = pace
    drawn, known, said, found = numbers_drawn(len(u), most), u.copy(), [], []
    for t in range(len(u)):
        if t in bases:
            P = bases[t] @ bases[t].T
            known[:t] = np.vstack([known[: max(t - last, 0)], u[max(t - last, 0) : t]]) @ P
            spare = np.linalg.eigh(P)[1][:, 0]  # outside of the basis, if anything is
            if t == 0:
                learner.use(bases[t][:, :width], outside)
            else:
                found.append(learner.M)
                learner.change(bases[t][:, :width])
        known[t] = P @ u[t]
        said.append(_whole(known[t], u[t], spare) @ learner.M @ _whole(known[t], u[t], spare))
        for again in [t, *(t - int(r) % min(t + 1, window) for r in drawn[t, :replays])]:
            learner.observe(_whole(known[again], u[again], spare), y[again])
    return [*found, learner.M], np.array(said)


def _whole(inside, u, spare):
    """A pair of the same length as u, of which this is within the basis."""
    return inside + np.sqrt(max(u @ u - inside @ inside, 0.0)) * spare
