"""What a pair asks of a learner: a file for each kind."""

from metrack.engine.ensemble.kinds.margin import MARGIN, Margin
from metrack.engine.ensemble.kinds.protocol import KINDS, Asked, Kind, Question, asked, kind_of
from metrack.engine.ensemble.kinds.target import TARGET, Target

__all__ = [
    "KINDS",
    "MARGIN",
    "TARGET",
    "Asked",
    "Kind",
    "Margin",
    "Question",
    "Target",
    "asked",
    "kind_of",
]
