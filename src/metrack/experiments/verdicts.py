"""Which claims held: the paper's about its own five methods, and this library's for its default.

Every claim is a lead, trial by trial on the same streams, of one method over another. It held where
the interval of its mean lies above 0, it did not where it lies below, and else it is open.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from metrack.checks import Floats
from metrack.experiments.drift import LEVEL, REFERENCES, Study, segment_weights
from metrack.experiments.report import Json
from metrack.experiments.summary import Numbers, mean_interval, recovery_times

LABELLED = ("lmnn", "lmnn-window")  # are given the classes of points, not judgements of pairs
PAIRS_ONLY = ", of pairs"  # ends the name of a claim about the others alone
OURS, THEIRS = "tracker", "sadl-published"
PUBLISHED = (THEIRS, "comid-high", "comid-low", "lmnn", "online-itml")
MEASURES = {"knn_error": "k-NN error", "p_nmi": f"P(NMI > {LEVEL})"}


class Lead(NamedTuple):
    """By how much a method is ahead, as shares: a mean over trials and its interval."""

    mean: float
    low: float
    high: float

    def held(self, ties: bool = False) -> bool | None:
        """Whether it is one; None where that is open. Exact ties may count."""
        if self.low > 0.0 or (ties and self.low == self.high == 0.0):
            return True
        return False if self.high < 0.0 else None


class Claim(NamedTuple):
    """A statement, whether it held here, and the numbers.

    Attributes
    ----------
    name : str
        In a few words.
    source : str
        "paper" or "aim".
    claim : str
    held : bool or None
    margin : Lead
    evidence : str
    """

    name: str
    source: str
    claim: str
    held: bool | None
    margin: Lead
    evidence: str

    def as_json(self) -> Json:
        """The claim as JSON."""
        return self._asdict() | {"margin": self.margin._asdict()}


class Field:
    """The methods' numbers, trial by trial.

    Parameters
    ----------
    study : Study
    numbers : mapping from a method to (2, n_trials, n_steps)
    """

    def __init__(self, study: Study, numbers: Numbers) -> None:
        self.study = study
        self.numbers = numbers
        self.names = [name for name in numbers if name not in REFERENCES]
        *self.segments, self.whole = segment_weights(study)
        steps = study.steps()
        gaps = np.where(steps > study.switches[0], np.diff(steps, prepend=0), 0)
        self.later = gaps / gaps.sum()
        self.n_switches = len(study.switches)
        # Pairs to recover from each switch, in each trial.
        self.times = {
            name: [recovery_times(study, numbers[name], numbers, i) for i in range(self.n_switches)]
            for name in self.names
        }

    def mean(self, name: str, measure: str, weights: Floats) -> Floats:
        """Mean of a measure in each trial."""
        error, nmi = self.numbers[name]
        found: Floats = (error if measure == "knn_error" else nmi > LEVEL) @ weights
        return found

    def lead(self, ours: str, theirs: str, measure: str, weights: Floats) -> Lead:
        """By how much one is better than another in a mean."""
        difference = self.mean(ours, measure, weights) - self.mean(theirs, measure, weights)
        return _lead(-difference if measure == "knn_error" else difference)

    def sooner(self, ours: str, theirs: str, switch: int) -> Lead:
        """Share of trials in which one recovers before another, less those of the reverse."""
        a, b = self.times[ours][switch], self.times[theirs][switch]
        return _lead((a < b).astype(float) - (a > b))

    def best(self, names: Iterable[str], measure: str, weights: Floats) -> str:
        """The best of some methods in a mean."""
        sign = 1 if measure == "knn_error" else -1
        return min(names, key=lambda name: sign * self.mean(name, measure, weights).mean())

    def first(self, names: Iterable[str], switch: int) -> str:
        """The method with the least median time to recover."""
        return min(names, key=lambda name: _median(self.times[name][switch]))


def claims(study: Study, numbers: Numbers) -> list[Claim]:
    """All claims; those about methods that were not run are left out."""
    field = Field(study, numbers)
    if field.n_switches < 2:
        return []
    found = []
    if set(PUBLISHED) <= set(field.names):
        found += _published(field)
    rivals = [name for name in field.names if name != OURS]
    if OURS in field.names and rivals:
        found += _aims(field, rivals, "all methods", "")
        of_pairs = [name for name in rivals if name not in LABELLED]
        if of_pairs and len(of_pairs) < len(rivals):
            found += _aims(field, of_pairs, "those that learn from pairs", PAIRS_ONLY)
    return found


def _published(field: Field) -> list[Claim]:
    clusters = field.lead(THEIRS, "online-itml", "p_nmi", field.whole)
    recovers = _weakest(
        field.sooner(THEIRS, "comid-high", switch) for switch in range(field.n_switches)
    )

    def fails(name: str, title: str, words: str) -> Claim:
        lead = field.lead(THEIRS, name, "knn_error", field.later)
        ranking = _ranking(field, (THEIRS, name), "knn_error", field.later)
        return _claim(title, "paper", words, lead, f"{ranking}, after the first switch")

    return [
        *(_tracks_best(field, measure) for measure in MEASURES),
        _claim(
            "high rate recovers later",
            "paper",
            "COMID at a high rate recovers more slowly from both switches than COMID-SADL",
            recovers,
            _recoveries(field, (THEIRS, "comid-high")),
            of=" of trials",
        ),
        fails("comid-low", "low rate fails", "COMID at a low rate fails to adapt"),
        fails("lmnn", "batch method fails", "The batch method fails to adapt"),
        _claim(
            "online ITML fails",
            "paper",
            "Online ITML fails: its clusters are found less often than COMID-SADL's",
            clusters,
            _ranking(field, (THEIRS, "online-itml"), "p_nmi", field.whole),
        ),
    ]


def _tracks_best(field: Field, measure: str) -> Claim:
    rival = field.best(PUBLISHED[1:], measure, field.whole)
    return _claim(
        f"published MetricTracker is best, {MEASURES[measure]}",
        "paper",
        f"COMID-SADL as published tracks best of the paper's five methods, by {MEASURES[measure]}",
        field.lead(THEIRS, rival, measure, field.whole),
        _ranking(field, PUBLISHED, measure, field.whole),
    )


def _aims(field: Field, rivals: Sequence[str], words: str, among: str) -> list[Claim]:
    everybody = (OURS, *rivals)
    overall = {
        "knn_error": ("has the lowest error", "lowest error"),
        "p_nmi": ("has its clusters found most often", "clusters found most often"),
    }
    found = []
    for measure, (does, title) in overall.items():
        rival = field.best(rivals, measure, field.whole)
        lead = field.lead(OURS, rival, measure, field.whole)
        ranking = _ranking(field, everybody, measure, field.whole)
        claim = f"MetricTracker's default {does} of {words}"
        found.append(_claim(f"MetricTracker(): {title}{among}", "aim", claim, lead, ranking))
    found.append(_in_every_segment(field, rivals, words, among))
    sooner = _weakest(
        field.sooner(OURS, field.first(rivals, switch), switch)
        for switch in range(field.n_switches)
    )
    found.append(
        _claim(
            f"MetricTracker(): recovers first{among}",
            "aim",
            f"MetricTracker's default recovers first of {words} from both switches",
            sooner,
            _recoveries(field, everybody),
            of=" of trials",
        )
    )
    return found


def _in_every_segment(field: Field, rivals: Sequence[str], words: str, among: str) -> Claim:
    """The best on both measures in each segment; the evidence says where not."""
    leads, not_best = [], []
    for segment, weights in zip(field.study.segments, field.segments, strict=True):
        for measure in MEASURES:
            rival = field.best(rivals, measure, weights)
            lead = field.lead(OURS, rival, measure, weights)
            leads.append(lead)
            if not lead.held(ties=True):
                pair = _ranking(field, (OURS, rival), measure, weights)
                level = "level with" if lead.held() is None else "behind"
                not_best.append(f"{level} {rival} in {segment.name} ({pair})")
    weakest = _weakest(leads)
    claim = _claim(
        f"MetricTracker(): best in every segment{among}",
        "aim",
        f"MetricTracker's default is best of {words} in every segment, on both measures",
        weakest,
        "; ".join(not_best) or "in each by k-NN error and by P(NMI > 0.8)",
    )
    return claim._replace(held=weakest.held(ties=True))  # both may find all clusters


def _claim(name: str, source: str, claim: str, lead: Lead, evidence: str, of: str = "") -> Claim:
    by = f"; lead {_points(lead.mean)} ({_points(lead.low)} to {_points(lead.high)}) points{of}"
    return Claim(name, source, claim, lead.held(), lead, evidence + by)


def _lead(values: Floats) -> Lead:
    return Lead(**mean_interval(values))


def _weakest(leads: Iterable[Lead]) -> Lead:
    """The lead that decides whether all are leads."""
    order = (False, None, True)
    return min(leads, key=lambda lead: (order.index(lead.held(ties=True)), lead.low))


def _median(times: Floats) -> float:
    return float(np.sort(times)[(len(times) - 1) // 2])


def _ranking(field: Field, names: Iterable[str], measure: str, weights: Floats) -> str:
    means = {name: float(field.mean(name, measure, weights).mean()) for name in names}
    order = sorted(means, key=lambda name: means[name], reverse=measure == "p_nmi")
    return f"{MEASURES[measure]}: " + ", ".join(
        f"{name} {100 * means[name]:.2f} %" for name in order
    )


def _recoveries(field: Field, names: Iterable[str]) -> str:
    medians = {name: [_median(times) for times in field.times[name]] for name in names}
    order = sorted(medians, key=lambda name: medians[name])
    words = (
        f"{name} " + " and ".join("never" if t == np.inf else f"{t:.0f}" for t in medians[name])
        for name in order
    )
    return "median pairs to recover: " + ", ".join(words)


def _points(share: float) -> str:
    return f"{100 * share:+.2f}"
