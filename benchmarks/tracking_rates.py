"""The single learning rates that a tracker is compared with."""

import numpy as np
from sklearn.base import clone

from metrack import COMID
from metrack.engine.numerics.divergences import DIVERGENCES

RATES = np.geomspace(1 / 80, 6.25, 12)  # times the tracker's eta0: on both sides of the best


def single_rates(tracker, n_features, rates=RATES):
    """The COMID learners among which the best is chosen; all else is as the tracker has it.

    What the tracker leaves to "auto" is what it takes that to be.
    """
    probe = clone(tracker).fit(np.eye(2, n_features)[None], [1])
    own, bank = probe.get_params(), probe.bank_.banks[0]
    shared = {name: own[name] for name in COMID().get_params() if name in own}
    names = {code: name for name, code in DIVERGENCES.items()}
    shared |= {"divergence": names[bank.rule.divergence]}
    return {
        f"{kind} {rate:.3g}": COMID(**shared | {"learning_rate": float(rate), "rho": rho})
        for kind, rho in (("regularised", float(bank.rule.rho)), ("plain", 0.0))
        for rate in bank.ladder.rate * np.asarray(rates)
    }
