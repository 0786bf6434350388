"""All kinds of learners that a table may have, by name."""

from metrack.engine.learners.additive import AdditiveBank
from metrack.engine.learners.bank import Kind
from metrack.engine.learners.gradient import GradientBank
from metrack.engine.learners.moment import MomentBank
from metrack.engine.learners.plain import PlainBank
from metrack.engine.learners.target import TargetBank

KINDS: dict[str, Kind] = {
    "target": TargetBank,
    "additive": AdditiveBank,
    "moment": MomentBank,
    "gradient": GradientBank,
    "plain": PlainBank,
}
