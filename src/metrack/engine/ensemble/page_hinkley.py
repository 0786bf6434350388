"""When losses last rose: Page's test (Page, 1954; as in River's ``PageHinkley``)."""

from metrack.engine.numerics.kernels import Record, inner
from metrack.engine.numerics.records import Structure, counts, floats

# A change is noticed when the latest losses, of at most WORST each and in units of it, exceed their
# running mean by more than DELTA each and THRESHOLD together.
WORST = 2.0
WINDOW = 500  # of the running mean, in pairs
DELTA = 0.05
THRESHOLD = 7.0

# The running mean of the capped losses, by how much the latest together exceed it, and the pair at
# which a change was last noticed.
PAGE_HINKLEY = Structure(
    mean=floats(1, least=0.0, most=1.0),
    cusum=floats(1, least=0.0, most=THRESHOLD),
    changed=counts(1),
)


def check(detector: Record, n_pairs: int) -> None:
    """Refuse a change after the last pair."""
    changed = int(detector["changed"][0])
    if changed > n_pairs:
        raise ValueError(f"detector.changed is pair {changed:,} of {n_pairs:,}")


@inner
def detect(detector: Record, t: int, loss: float) -> None:
    """Take in the loss suffered on pair t (counted from 1)."""
    test = detector[0]
    x = min(WORST, loss) / WORST
    test.mean += (x - test.mean) / min(t - test.changed, WINDOW)
    test.cusum = max(0.0, test.cusum + x - test.mean - DELTA)
    if test.cusum > THRESHOLD:
        test.cusum = 0.0
        test.changed = t
