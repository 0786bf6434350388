"""The families of streams of benchmarks/families.py.

CHOSEN_ON are the families for choosing defaults, with development seeds; the others are reported,
and nothing is chosen on them. Half of the pairs are alike, where nothing else is said.

Made-up points: a question has clusters, one more than dimensions, in a random subspace of its own.
Their centres are drawn at random, 3 apart, root mean square, in each direction of that subspace;
the spread is 1 in every direction of the whole space. Points turn steadily; those of
`DriftingClusters` turn as a random walk does. In a first version centres were 3 apart altogether,
which leaves little to learn, as losses showed; such are the "overlapping clusters".

Of ANSWERED streams it is also asked whether answers can be acted on: few pairs are alike there, or
features have units of their own.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from metrack.streams import LabelledStream, PairStream, Segment, abrupt, gradual

SHARED = Path(__file__).parents[2] / "shared"

QUESTION = 2_000  # pairs of a question, where nothing else is said
N_POINTS = 2_000
APART = 3.0  # centres, in each direction of the subspace, root mean square
N_EVEN_POINTS = 10_000  # where plain distance is right

# Angles by which a step turns a point, root mean square.
SLOW, MODERATE, FAST = 0.0003, 0.001, 0.003


class TurningPoints(PairStream):
    """Labelled points that turn steadily: at step t they are turned by exp(t S), S skew."""

    def __init__(self, points, questions, schedule, drift=0.0, similar=0.5, seed=0):
        super().__init__(questions, schedule, similar, 0.0, seed)
        self._points = points
        n = points.shape[1]
        skew = np.triu(np.random.default_rng([seed, 1]).normal(size=(n, n)), 1)
        skew = (skew - skew.T) * drift / np.sqrt(n - 1)
        self._frequencies, self._basis = np.linalg.eigh(-1j * skew)  # exp(tS) = V exp(itw) V*

    def pairs(self, start=0, stop=None):
        """Pairs of points, each as of its own step, and judgements."""
        stop = len(self) if stop is None else stop
        rows, y = self.rows(start, stop)
        return self._turned(self._points[rows], np.arange(start, stop)[:, None, None]), y

    def points(self, t):
        """All points at step t."""
        return self._turned(self._points, t)

    def _turned(self, points, t):
        waves = np.exp(1j * t * self._frequencies)
        return ((points @ self._basis.conj() * waves) @ self._basis.T).real


def random_basis(n, rng):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def clusters(
    seed,
    schedule,
    drift=0.0,
    n=25,
    dim=6,
    apart=APART,
    shares=None,
    tails=None,
    spectrum=None,
    similar=0.5,
    decades=None,
):
    """Points with clusters in subspaces.

    ``apart``: centres, root mean square, in each direction of their subspace.
    ``shares``: of the clusters; pairs are then random ones, as many alike as that gives.
    ``tails``: degrees of freedom of Student's t, in place of normal; the variance stays 1.
    ``spectrum``: least and largest factor by which directions of a random basis are stretched.
    ``similar``: share of pairs that are alike, where clusters have equal shares.
    ``decades``: units; each feature is multiplied by 10^uniform(-decades / 2, decades / 2). Such
    points must not turn, which would mix features of different units.
    """
    rng = np.random.default_rng([seed, 0])
    points = rng.normal(size=(N_POINTS, n))
    if tails is not None:
        points = rng.standard_t(tails, size=(N_POINTS, n)) / np.sqrt(tails / (tails - 2))
    p = np.full(dim + 1, 1 / (dim + 1)) if shares is None else shares
    questions = {}
    for i, name in enumerate(dict.fromkeys(segment.partition for segment in schedule)):
        questions[name] = rng.choice(len(p), size=N_POINTS, p=p)
        centres = apart / np.sqrt(2.0) * rng.normal(size=(len(p), dim))
        points[:, i * dim : (i + 1) * dim] += centres[questions[name]]
    points = points @ random_basis(n, rng)
    if spectrum is not None:
        basis = random_basis(n, rng)
        points = points @ (basis * np.geomspace(*spectrum, n)) @ basis.T
    if decades is not None:
        points *= 10.0 ** rng.uniform(-decades / 2, decades / 2, size=n)
    share = similar if shares is None else None
    return TurningPoints(points, questions, schedule, drift, share, seed)


def steady(seed, question, **settings):
    return clusters(seed, [Segment("A", "A", question)] * 3, **settings)


def switching(seed, question, **settings):
    return clusters(seed, abrupt(*"ABCABC", length=question // 2), **settings)


def fading(seed, question, **settings):
    return clusters(seed, gradual(*"ABC", length=question, blend=question // 2), **settings)


def isotropic(seed, question, n):
    """Classes around 3 and -3 on each axis, with unit spread: no metric beats plain distance.

    Changing signs and order of the axes changes nothing. So the expected hinge loss, convex in M
    and mu, is the same for M turned by any of these, and no larger for their mean: a multiple of I.
    Points are many, so that a sample is nearly as even.
    """
    rng = np.random.default_rng([seed, 0])
    labels = np.arange(N_EVEN_POINTS) % (2 * n)
    centres = APART * np.concatenate([np.eye(n), -np.eye(n)])
    points = (centres[labels] + rng.normal(size=(N_EVEN_POINTS, n))) @ random_basis(n, rng)
    return TurningPoints(points, {"A": labels}, [Segment("A", "A", question)] * 3, seed=seed)


def digits(seed, question):
    X, y = load_digits(return_X_y=True)
    labels = {"digit": y, "parity": y % 2, "below 5": y < 5}
    schedule = abrupt("digit", "parity", "below 5", "digit", length=question)
    return LabelledStream(X, labels, schedule=schedule, similar=0.5, random_state=seed)


def banking_path():
    return Path(os.environ.get("METRACK_BANKING", SHARED / "data" / "banking.npz"))


def banking(seed, question, n_directions=None):
    with np.load(banking_path(), allow_pickle=False) as data:
        X, labels = data["X"].astype(float), {name: data[name] for name in ("group", "intent")}
    if n_directions is not None:
        X = PCA(n_directions, svd_solver="covariance_eigh").fit_transform(X)
    schedule = abrupt("group", "intent", "group", length=question)
    return LabelledStream(X, labels, schedule=schedule, similar=0.5, random_state=seed)


@dataclass(frozen=True)
class FamilyStream:
    """A kind of stream: its family, its name there, and ``make(seed, pairs of a question)``.

    ``answered``: average precision, thresholds and probabilities are looked at too.
    """

    family: str
    name: str
    make: Callable
    answered: bool = False


SETTLED = {"slow": partial(steady, drift=SLOW), "switches": switching}
PROFILES = {
    "static": steady,
    **SETTLED,
    "moderate": partial(steady, drift=MODERATE),
    "fast": partial(steady, drift=FAST),
}


def variants(family, profiles, **settings):
    return [
        FamilyStream(family, name, partial(make, **settings)) for name, make in profiles.items()
    ]


CHOSEN_ON = [
    *variants("clusters", PROFILES),
    *variants("heavy tails", SETTLED, tails=3),
    FamilyStream("digits", "n = 64", digits),
]
SHARES = (0.02, 0.05, 0.1, 0.5)
FEW_ALIKE, UNITS = "few alike", "units over four decades"
ANSWERED = [
    *(
        FamilyStream(
            FEW_ALIKE, f"{100 * share:.0f} %, {name}", partial(make, similar=share), answered=True
        )
        for share in SHARES
        for name, make in SETTLED.items()
    ),
    *(
        FamilyStream(UNITS, name, partial(make, decades=4.0), answered=True)
        for name, make in {"static": steady, "switches": switching}.items()
    ),
]
REPORTED = [
    *variants("overlapping clusters", SETTLED, apart=APART / np.sqrt(6)),  # 3 apart altogether
    *variants("correlated features", SETTLED, spectrum=(0.3, 3.0)),
    *variants("imbalance", SETTLED, shares=(0.7, 0.1, 0.1, 0.1)),
    *(
        FamilyStream("other dimensions", f"{dim} of 40, {name}", partial(make, n=40, dim=dim))
        for dim in (2, 12)
        for name, make in SETTLED.items()
    ),
    FamilyStream("gradual change", "n = 25", fading),
    FamilyStream("banking", "n = 64", partial(banking, n_directions=64)),
    FamilyStream("plain is right", "n = 10", partial(isotropic, n=10)),
    FamilyStream("plain is right", "n = 25", partial(isotropic, n=25)),
    *ANSWERED,
]
WIDE = [FamilyStream("banking, wide", "n = 512", banking)]
