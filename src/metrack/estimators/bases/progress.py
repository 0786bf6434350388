"""How a long fit shows that it goes on, and says that it did not arrive."""

import time
import warnings
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.exceptions import ConvergenceWarning

from metrack.estimators.inputs.settings import is_number

PATIENCE = 1.0  # seconds before a bar appears


class Fitting:
    """Progress of a fit: nothing (``verbose=0``), a bar (1), or a line a report (2 and more).

    The bar appears on a terminal only, and only where a fit takes more than a second. Both are
    written to the standard error.

    Parameters
    ----------
    name : str
        Of the learner.
    verbose : int
    most : int
        What there is to do, in a unit of its own.
    unit : str
    """

    def __init__(
        self, name: str, verbose: Any, most: int, unit: str = "iterations at most"
    ) -> None:
        if not (isinstance(verbose, bool) or (is_number(verbose) and verbose >= 0)):
            raise ValueError(f"verbose={verbose!r}; it must be a number >= 0")
        self.name, self.verbose, self.most, self.unit = name, int(verbose), most, unit
        self.bar: Progress | None = None

    def __enter__(self) -> Self:
        self.start = time.monotonic()
        self.console = Console(stderr=True)
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def report(self, done: int, words: str = "") -> None:
        """Tell how far the fit has come."""
        if self.verbose >= 2:
            line = f"[{self.name}] {done:,} of {self.most:,} {self.unit}{words and f': {words}'}"
            self.console.print(line, markup=False, highlight=False)
        elif self.verbose and self.console.is_terminal:
            if self.bar is None and time.monotonic() - self.start > PATIENCE:
                self.bar = _bar(self.console, self.unit)
                self.task = self.bar.add_task(self.name, total=self.most, words="")
                self.bar.start()
            if self.bar is not None:
                self.bar.update(self.task, completed=done, words=words and f", {words}")


def _bar(console: Console, unit: str) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit + "{task.fields[words]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


def warn_not_converged(
    name: str, n_iter: int, max_iter: int, goal: str, tol: float, remedy: str
) -> None:
    """Warn that a fit ended before its goal, and say what to do."""
    if n_iter < max_iter:
        end = f"at iteration {n_iter}, as rounding hides any way further,"
        advice = "is as good as numbers of this precision tell: raise tol"
    else:
        end = f"at max_iter={max_iter}"
        advice = f"is not the best one yet: raise max_iter or tol{remedy}"
    warnings.warn(
        f"{name} stopped {end} before {goal} fell below tol={tol:g}. The metric can be used, but "
        f"{advice}.",
        ConvergenceWarning,
        stacklevel=4,
    )
