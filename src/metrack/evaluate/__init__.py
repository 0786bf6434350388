"""How well it goes: prequential losses, recovery after a change, and regret, as plain arrays.

Rounds are counted from 0, and an interval (start, stop) is the rounds from ``start`` up to, not
including, ``stop``, as in a slice of the losses.
"""

from metrack.evaluate.hindsight import BestFixed, best_fixed
from metrack.evaluate.meta import MetaRegret, Trace, meta_regret, trace
from metrack.evaluate.prequential import fading_mean, recovery_times, running_mean, windowed_mean
from metrack.evaluate.regret import (
    adaptive_regret,
    comparator_losses,
    dynamic_regret,
    interval_regret,
    path_length,
    static_regret,
)

__all__ = [
    "BestFixed",
    "MetaRegret",
    "Trace",
    "adaptive_regret",
    "best_fixed",
    "comparator_losses",
    "dynamic_regret",
    "fading_mean",
    "interval_regret",
    "meta_regret",
    "path_length",
    "recovery_times",
    "running_mean",
    "static_regret",
    "trace",
    "windowed_mean",
]
