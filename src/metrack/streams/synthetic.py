"""The synthetic drift of the COMID-SADL paper: clusters in subspaces of a turning space."""

from collections.abc import Iterable, Sequence

import numpy as np

from metrack.checks import Floats, Ints, number, whole
from metrack.streams.base import PairStream, RandomState, generator, seed_of
from metrack.streams.blocks import pieces
from metrack.streams.schedule import Segment, paper_schedule

BLOCK = 128  # steps whose rotations are made together; the rotation before each block is kept


class DriftingClusters(PairStream):
    """Points with two independent clusterings, hidden in noise, in a space that turns.

    Each partition of the points shows as Gaussian blobs in a subspace of its own; what no partition
    takes is filled with noise. At each step the whole dataset may turn a little, by a random
    rotation. A schedule says which partition decides what is alike, and how fast the data turns.
    The defaults are the paper's study; k-means finds the clusters in the right subspace (NMI above
    0.9) and nothing in the raw points (below 0.1).

    At step 0 nothing has turned yet: the first partition lies in the first ``subspace_dim``
    features, the second in the next.

    Parameters
    ----------
    n_points : int
    n_features : int
    proportions : sequence of float
        Share of the points in each cluster, for every partition.
    subspace_dim : int
        Dimension of each partition's subspace.
    partitions : sequence of str
        Names of the partitions.
    separation : float
        Distance between any two centres of a partition.
    spread : float
        Standard deviation of a blob in each direction of the subspace.
    noise : float
        Standard deviation of the remaining features.
    schedule : iterable of Segment
        By default `paper_schedule`, 6,000 pairs long.
    similar : float, optional
        Share of similar pairs; by default the natural one of random pairs, 38 %.
    label_noise : float
        Share of judgements that are turned around.
    random_state : int, RandomState or None
        Same number, same stream; of a RandomState or None, a number is drawn.

    Examples
    --------
    >>> from metrack import COMID
    >>> from metrack.streams import DriftingClusters
    >>> stream = DriftingClusters(random_state=1)
    >>> stream.marks
    [(0, 'A static'), (1500, 'B moderate'), (2500, 'B fast'), (3500, 'B moderate'),
     (4500, 'A slow')]
    >>> learner = COMID()
    >>> learner = learner.partial_fit(*stream.pairs(0, 1000))
    >>> learner.score(*stream.pairs(1000, 1500)) > 0.75  # still partition A
    True
    >>> learner.score(*stream.pairs(1500, 2000)) > 0.6  # now B: nothing learned helps
    False

    What there is to learn, at any step:

    >>> stream.points(3000).shape, stream.labels(3000).shape, stream.metric(3000).shape
    ((2000, 25), (2000,), (25, 25))
    """

    preprocessor = None  # pairs are points, not row numbers

    def __init__(
        self,
        n_points: int = 2000,
        n_features: int = 25,
        proportions: Sequence[float] = (0.5, 0.2, 0.3),
        subspace_dim: int = 3,
        partitions: Sequence[str] = ("A", "B"),
        separation: float = 1.9,
        spread: float = 0.34,
        noise: float = 1.0,
        schedule: Iterable[Segment] | None = None,
        similar: float | None = None,
        label_noise: float = 0.0,
        random_state: RandomState = 0,
    ) -> None:
        self.n_points = whole("n_points", n_points, least=2)
        self.n_features = whole("n_features", n_features)
        self.proportions = _check_proportions(proportions, self.n_points)
        self.subspace_dim = whole("subspace_dim", subspace_dim)
        self.partitions = _check_partitions(partitions, self.subspace_dim, self.n_features)
        self.separation = number("separation", separation, 0.0)
        self.spread = number("spread", spread, 0.0)
        self.noise = number("noise", noise, 0.0)
        if len(self.proportions) > self.subspace_dim + 1:
            raise ValueError(
                f"{len(self.proportions)} clusters cannot all be equally far apart in "
                f"{self.subspace_dim} dimensions; raise subspace_dim to {len(self.proportions) - 1}"
            )
        self.random_state = seed_of(random_state)
        counts = _counts(self.proportions, self.n_points)
        codes = np.repeat(np.arange(len(counts)), counts)
        labels = {
            name: generator(self.random_state, "labels", i).permutation(codes)
            for i, name in enumerate(self.partitions)
        }
        schedule = paper_schedule() if schedule is None else schedule
        super().__init__(labels, schedule, similar, label_noise, self.random_state)
        self._origin = self._make_points(list(labels.values()))
        self._before = [np.eye(self.n_features)]  # the rotation before each block
        self._recent: dict[int, Floats] = {}  # the rotations of the last two blocks used

    def pairs(self, start: int = 0, stop: int | None = None) -> tuple[Floats, Ints]:
        """Pairs of points (n_pairs, 2, n_features), each as of its own step, and judgements y.

        Parameters
        ----------
        start, stop : int
            The steps from ``start`` up to, not including, ``stop``; by default all.
        """
        start, stop = self._range(start, stop)
        rows, y = self.rows(start, stop)
        pairs = np.empty((stop - start, 2, self.n_features))
        done = 0
        for block, part in pieces(start, stop, BLOCK):
            rotations = self._rotations(block)[part]
            here = slice(done, done + len(rotations))
            np.matmul(self._origin[rows[here]], rotations.transpose(0, 2, 1), out=pairs[here])
            done += len(rotations)
        return pairs, y

    def points(self, t: int) -> Floats:
        """All points at step t, (n_points, n_features)."""
        return self._origin @ self.rotation(t).T

    def rotation(self, t: int) -> Floats:
        """The orthogonal matrix that has led from step 0 to step t."""
        block, within = divmod(self._step(t), BLOCK)
        rotation: Floats = self._rotations(block)[within].copy()
        return rotation

    def components(self, t: int) -> Floats:
        """L with ``metric(t)`` = L'L: orthonormal rows that span the subspace that matters."""
        return self.rotation(t)[:, self._subspace(self._code(t))].T

    def metric(self, t: int) -> Floats:
        """The generating metric at step t: the projector onto the subspace that matters."""
        components = self.components(t)
        return components.T @ components

    def rate_of_change(self) -> Floats:
        """Frobenius norm of the change of the generating metric at each step, 0 at step 0."""
        rates = np.empty(len(self))
        last = self.rotation(0)[:, self._subspace(self._code(0))]
        for block, part in pieces(0, len(self), BLOCK):
            steps = np.arange(block * BLOCK + part.start, block * BLOCK + part.stop)
            codes = self._schedule.codes[self._schedule.segment(steps)]
            columns = self.subspace_dim * codes[:, None] + np.arange(self.subspace_dim)
            bases = np.take_along_axis(self._rotations(block)[part], columns[:, None, :], axis=2)
            before = np.concatenate([last[None], bases[:-1]])
            rates[steps] = _projector_distance(before, bases)
            last = bases[-1]
        return rates

    def _subspace(self, code: int) -> slice:
        return slice(code * self.subspace_dim, (code + 1) * self.subspace_dim)

    def _make_points(self, labels: list[Ints]) -> Floats:
        """The points at step 0."""
        points = self.noise * generator(self.random_state, "points").normal(
            size=(self.n_points, self.n_features)
        )
        for code, classes in enumerate(labels):
            rng = generator(self.random_state, "blobs", code)
            centres = self.separation * _simplex(len(self.proportions), self.subspace_dim, rng)
            blobs = self.spread * rng.normal(size=(self.n_points, self.subspace_dim))
            points[:, self._subspace(code)] = centres[classes] + blobs
        return points

    def _rotations(self, block: int) -> Floats:
        """The rotations of a block's steps; blocks are made in order, whatever is asked first."""
        for each in range(len(self._before) - 1, block):
            self._keep(each)
        if block not in self._recent:
            self._keep(block)
        return self._recent[block]

    def _keep(self, block: int) -> None:
        if len(self._recent) == 2:
            del self._recent[next(iter(self._recent))]
        rotations = self._recent[block] = self._turn(block)
        if len(self._before) == block + 1:
            self._before.append(rotations[-1].copy())

    def _turn(self, block: int) -> Floats:
        rotations = np.empty((BLOCK, self.n_features, self.n_features))
        steps = np.minimum(np.arange(block * BLOCK, (block + 1) * BLOCK), len(self) - 1)
        drift = self._schedule.drift(steps)
        current = self._before[block]
        if not drift.any():
            rotations[:] = current
            return rotations
        rng = generator(self.random_state, "rotations", block)
        for i, turn in enumerate(_small_rotations(drift, self.n_features, rng)):
            current = np.matmul(turn, current, out=rotations[i])
        return rotations


def _small_rotations(drift: Floats, n_features: int, rng: np.random.Generator) -> Floats:
    """Random rotations that turn a point by the given small angles, root mean square.

    The Cayley transform of a skew-symmetric S, (I - S/2)^-1 (I + S/2) = 2 (I - S/2)^-1 - I, is
    exactly orthogonal and agrees with exp(S) to second order. A unit vector x moves by |Sx|, whose
    mean square is n - 1 times the variance of S's entries.
    """
    rows, columns = np.triu_indices(n_features, 1)
    entries = rng.normal(size=(len(drift), len(rows)))
    entries *= drift[:, None] / np.sqrt(max(n_features - 1, 1))
    upper = np.zeros((len(drift), n_features, n_features))
    upper[:, rows, columns] = entries / 2
    return 2 * np.linalg.inv(np.eye(n_features) + upper.swapaxes(1, 2) - upper) - np.eye(n_features)


def _projector_distance(old: Floats, new: Floats) -> Floats:
    """Frobenius norm of the difference of two projectors, from orthonormal columns (..., n, k).

    The two halves of |P - Q|^2 = |(I-P)Q|^2 + |(I-Q)P|^2 are equal; taking the remainder of a
    projection loses no digits where the change is small.
    """
    remainder = new - old @ (old.swapaxes(-1, -2) @ new)
    distance: Floats = np.sqrt(2 * np.einsum("...ij,...ij->...", remainder, remainder))
    return distance


def _simplex(n_centres: int, n_dimensions: int, rng: np.random.Generator) -> Floats:
    """Points at distance 1 from each other, their mean at 0, turned at random."""
    corners = np.eye(n_centres) / np.sqrt(2)
    left, sizes, _ = np.linalg.svd(corners - corners.mean(axis=0))
    basis = np.linalg.qr(rng.normal(size=(n_dimensions, n_dimensions)))[0]
    simplex: Floats = (left * sizes)[:, : n_centres - 1] @ basis[: n_centres - 1]
    return simplex


def _counts(proportions: tuple[float, ...], n_points: int) -> Ints:
    """Whole numbers of points in these proportions, that add up."""
    ends = np.round(np.cumsum(proportions) * n_points).astype(np.int64)
    ends[-1] = n_points
    return np.diff(ends, prepend=0)


def _check_proportions(proportions: Sequence[float], n_points: int) -> tuple[float, ...]:
    shares = tuple(number(f"proportions[{i}]", p, 0.0, 1.0) for i, p in enumerate(proportions))
    if not shares or abs(sum(shares) - 1.0) > 1e-9:
        raise ValueError(f"proportions add up to {sum(shares):g}; they must add up to 1")
    if _counts(shares, n_points).min() < 1:
        raise ValueError(f"proportions={shares} leave a cluster of {n_points} points empty")
    return shares


def _check_partitions(
    partitions: Sequence[str], subspace_dim: int, n_features: int
) -> tuple[str, ...]:
    names = tuple(partitions)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"partitions={names!r}; give at least one name, each only once")
    if len(names) * subspace_dim > n_features:
        raise ValueError(
            f"{len(names)} partitions of {subspace_dim} dimensions each need "
            f"{len(names) * subspace_dim} features, but n_features is {n_features}"
        )
    return names
