"""What `MetricTracker`'s settings come to: the rows of a table, and what is built of them."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Annotated, Any, NamedTuple

from metrack.engine.ensemble.basis import Basis
from metrack.engine.ensemble.combine import CAPPED, OUTPUTS, Combination
from metrack.engine.ensemble.combiners.protocol import RECORDS
from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.ensemble.space import Space
from metrack.engine.ensemble.views import VIEWS
from metrack.engine.learners.bank import Row
from metrack.engine.learners.kinds import KINDS
from metrack.engine.numerics.losses import LOSSES
from metrack.engine.numerics.records import MOST, Number
from metrack.estimators.resolved.fields import UNITS, Name, Record, Several, scaled

ROWS = Several(Record(Row), most=64)  # a learner each
# How experts are combined.
TRACKING = Combination(
    LOSSES["hinge"], RECORDS["adaptive_share"], OUTPUTS["average"], CAPPED, cap=4.0
)


class TrackerSettings(NamedTuple):
    """Learners of several kinds on several features of the same pairs: MetricTracker.

    Attributes
    ----------
    n_features, units
        As of `EnsembleSettings`.
    learners : tuple of Row
    basis : int
        So many directions at least has a basis; narrower learners work on the first of these.
    """

    n_features: Annotated[int, Number(1, MOST, whole=True)]
    units: Annotated[str, Name(UNITS)]
    learners: Annotated[tuple[Row, ...], ROWS]
    basis: Annotated[int, Number(1, MOST, whole=True)]

    def build(self) -> Ensemble:
        """The learners and their combiner, at their start."""
        plans = plans_of(self.learners, self.n_features, self.basis)
        spaces = [plan.build(scaled(self.units)) for plan in plans]
        return Ensemble(self.n_features, spaces, [plan.view for plan in plans], TRACKING)

    def sizes(self) -> dict[str, int]:
        """How many features each holder of state has."""
        plans = plans_of(self.learners, self.n_features, self.basis)
        return {"views": self.n_features, **sizes_of(plans)}

    def smallest(self) -> "TrackerSettings":
        """The same for one feature: its engine has the same parts, and is small."""
        return self._replace(n_features=1)

    def check(self) -> None:
        """Refuse what cannot be built, before anything is allocated."""
        check_rows(self.learners, VIEWS)
        self.smallest().build()


class BankPlan(NamedTuple):
    """Learners of a kind on so many features, or directions."""

    n_features: int
    rows: Sequence[Row]


class SpacePlan(NamedTuple):
    """Learners that see the same, all on a basis or none."""

    view: str
    n_features: int
    width: int  # of the basis; 0: there is none
    banks: Sequence[BankPlan]

    def build(self, in_units: bool) -> Space:
        """The learners, at their start."""
        banks = [KINDS[own.rows[0].kind].of_rows(own.rows, own.n_features) for own in self.banks]
        basis = Basis(self.n_features, self.width) if self.width else None
        return Space(self.n_features, banks, in_units, basis, neighbours=True)


def plans_of(rows: Iterable[Row], n_features: int, basis: int) -> list[SpacePlan]:
    """What is to be built of a table: a space for all that see the same, a bank for each kind.

    A basis has so many directions at least: what is found on it follows the stream better than on
    the few that most learners work on.
    """
    found = []
    for (view, on_basis), own in _grouped(rows, lambda row: (row.view, row.width > 0)):
        widest = min(max(basis, *(row.width for row in own)), n_features)
        banks = [
            BankPlan(min(width or n_features, n_features), tuple(same))
            for (_, width), same in _grouped(own, lambda row: (row.kind, row.width))
        ]
        found.append(SpacePlan(view, n_features, widest if on_basis else 0, banks))
    return found


def sizes_of(plans: Sequence[SpacePlan]) -> dict[str, int]:
    """How many features each basis and each bank has, by their names in an ensemble."""
    bases = {f"basis {i}": plan.n_features for i, plan in enumerate(plans) if plan.width}
    banks = [bank.n_features for plan in plans for bank in plan.banks]
    return bases | {f"bank {i}": n for i, n in enumerate(banks)}


def check_rows(rows: Iterable[Row], views: Collection[str]) -> None:
    """Refuse learners of other kinds, or of other views, and those that have not what they need."""
    for i, row in enumerate(rows):
        Name(KINDS).checked(row.kind, f"learners.{i}.kind", {})
        Name(views).checked(row.view, f"learners.{i}.view", {})
        for name in KINDS[row.kind].NEEDS:
            if not getattr(row, name) > 0:
                raise ValueError(f"learners.{i}.{name} is 0, and {row.kind} learners need one")


def _grouped(rows: Iterable[Row], key: Callable[[Row], Any]) -> list[tuple[Any, list[Row]]]:
    """Rows by a key, in the order in which keys come first."""
    rows = list(rows)
    order = list(dict.fromkeys(map(key, rows)))
    return [(each, [row for row in rows if key(row) == each]) for each in order]
