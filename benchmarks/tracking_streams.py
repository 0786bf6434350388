"""The streams of the tracking table: profiles of drift, and how hard they are made."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metrack.streams import (
    DriftingClusters,
    Segment,
    abrupt,
    gradual,
    paper_schedule,
    recurring,
)

DEVELOPMENT_SEEDS = (1001, 1002)
TEST_SEEDS = tuple(range(2001, 2009))

# Root-mean-square angles by which a step turns a point.
SLOW, MODERATE, FAST, BURST = 0.01, 0.03, 0.06, 0.15


def steady(drift):
    return lambda n: [Segment("A", "A", n, drift)]


def accelerating(n):
    return [Segment(f"A {i}", "A", n // 8, FAST * i / 7) for i in range(8)]


def bursts(n):
    calm, quick = n // 4 - n // 40, n // 40
    return [Segment("calm", "A", calm), Segment("burst", "A", quick, BURST)] * 4


PROFILES: dict[str, Callable] = {
    "static": steady(0.0),
    "slow": steady(SLOW),
    "moderate": steady(MODERATE),
    "fast": steady(FAST),
    "accelerating": accelerating,
    "bursts": bursts,
    "single switch": lambda n: abrupt("A", "B", length=n // 2, drift=SLOW),
    "frequent switches": lambda n: recurring("A", "B", "C", "D", length=n // 24, cycles=6),
    "recurring": lambda n: recurring("A", "B", length=n // 8, cycles=4),
    "gradual switch": lambda n: gradual("A", "B", length=n // 2, blend=n // 6),
    "relevant features": lambda n: abrupt("A", "B", "C", length=n // 3),
    "paper's mix": paper_schedule,
}


@dataclass(frozen=True)
class Case:
    """A kind of stream: a drift profile, and how hard it is made."""

    profile: str
    what: str = "n = 25"
    n_features: int = 25
    similar: float | None = None
    label_noise: float = 0.0
    badly_scaled: bool = False
    n_seeds: int = 8

    def stream(self, seed, n_pairs):
        schedule = list(PROFILES[self.profile](n_pairs))
        return DriftingClusters(
            n_features=self.n_features,
            partitions=sorted({segment.partition for segment in schedule}),
            schedule=schedule,
            similar=self.similar,
            label_noise=self.label_noise,
            random_state=seed,
        )

    def factors(self, seed):
        """What each feature is multiplied by: over two decades where badly scaled."""
        if not self.badly_scaled:
            return np.ones(self.n_features)
        return 10.0 ** np.random.default_rng(seed).uniform(-1.0, 1.0, self.n_features)


MAIN = [Case(profile) for profile in PROFILES]
SWEEP = [
    Case(profile, what, n_seeds=n_seeds, **settings)
    for what, n_seeds, settings in [
        ("n = 10", 3, {"n_features": 10}),
        ("10 % label noise", 3, {"label_noise": 0.1}),
        ("30 % label noise", 3, {"label_noise": 0.3}),
        ("5 % similar", 3, {"similar": 0.05}),
        ("10 % similar", 3, {"similar": 0.1}),
        ("25 % similar", 3, {"similar": 0.25}),
        ("50 % similar", 3, {"similar": 0.5}),
        ("badly scaled", 3, {"badly_scaled": True}),
        ("n = 100", 2, {"n_features": 100}),
    ]
    for profile in ("paper's mix", "recurring")
]
