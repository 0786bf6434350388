"""The single learning rates that a tracker is compared with."""

import numpy as np
from sklearn.base import clone

from metrack import COMID

RATES = np.geomspace(1 / 80, 6.25, 12)  # times the tracker's eta0: on both sides of the best


def single_rates(tracker, n_features, rates=RATES):
    """The COMID learners among which the best is chosen; all else is as the tracker has it.

    What the tracker leaves to "auto" is what it takes that to be.
    """
    probe = clone(tracker).fit(np.eye(2, n_features)[None], [1])
    own, learners = probe.get_params(), probe.resolved_.learners
    shared = {name: own[name] for name in COMID().get_params() if name in own}
    shared |= {"divergence": learners.divergence, "regularizer": learners.regularizer}
    return {
        f"{kind} {rate:.3g}": COMID(**shared | {"learning_rate": float(rate), "rho": rho})
        for kind, rho in (("regularised", learners.rho), ("plain", 0.0))
        for rate in learners.learning_rate * np.asarray(rates)
    }
