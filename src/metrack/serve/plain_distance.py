"""Plain distance on the same pairs, to compare a metric with."""

import numpy as np

from metrack.checks import Floats
from metrack.engine.learners.bank import Predictions
from metrack.engine.learners.calibration import MEMORY, Calibration, calibrate, new_calibration
from metrack.storage import Arrays

PREFIX = "serve.plain."


class PlainDistance:
    """What plain distance loses on the same pairs: hinge, with a scale and a threshold learned."""

    def __init__(self) -> None:
        self.calibration = new_calibration(1)

    def observe(self, pairs: Floats, y: Floats) -> Floats:
        """Losses on pairs, each before it is learned from."""
        apart = pairs[:, 0] - pairs[:, 1]
        q = np.einsum("ij,ij->i", apart, apart)[:, None]
        said = Predictions(q, np.empty_like(q))
        calibrate(self.calibration, said, y, MEMORY)
        return np.maximum(0.0, 1.0 - y * (said.mu - said.q)[:, 0])

    def pack(self) -> Arrays:
        """Its state."""
        return {f"{PREFIX}{k}": v for k, v in self.calibration._asdict().items()}

    def unpack(self, arrays: Arrays) -> None:
        """The inverse of `pack`."""
        found = {name: arrays[f"{PREFIX}{name}"] for name in Calibration._fields}
        self.calibration = Calibration(**found)


def unknown(n: int) -> Floats:
    """Of so many pairs nothing is known."""
    return np.full(n, np.nan)
