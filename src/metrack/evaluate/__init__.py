"""How well it goes: k-NN error, NMI of clusters, prequential losses, recovery, and regret.

Rounds are counted from 0, and an interval (start, stop) is the rounds from ``start`` up to, not
including, ``stop``, as in a slice of the losses.
"""

from metrack.evaluate.clustering import Interval, exceedance, kmeans_nmi, wilson_interval
from metrack.evaluate.hindsight import BestFixed, best_fixed
from metrack.evaluate.meta import MetaRegret, Trace, meta_regret, trace
from metrack.evaluate.neighbours import knn_error, leave_one_out_error
from metrack.evaluate.prequential import fading_mean, running_mean, windowed_mean
from metrack.evaluate.recovery import rate_of_change, recovery_times, time_to_recover
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
    "Interval",
    "MetaRegret",
    "Trace",
    "adaptive_regret",
    "best_fixed",
    "comparator_losses",
    "dynamic_regret",
    "exceedance",
    "fading_mean",
    "interval_regret",
    "kmeans_nmi",
    "knn_error",
    "leave_one_out_error",
    "meta_regret",
    "path_length",
    "rate_of_change",
    "recovery_times",
    "running_mean",
    "static_regret",
    "time_to_recover",
    "trace",
    "wilson_interval",
    "windowed_mean",
]
