"""Many trials of a study, on all cores or on a Dask cluster, that lose little when interrupted.

A trial is a pure function of its number, so that any number of workers on any engine gives the same
numbers. Finished trials are kept in the study's folder as Parquet files of a few trials each; the
same call later goes on with those that are missing.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from metrack.experiments.report import write_json

if TYPE_CHECKING:
    from distributed import Client

Table = dict[str, NDArray[Any]]  # a trial's numbers: columns of equal lengths
Item = TypeVar("Item")
Found = TypeVar("Found")
PATIENCE = 5  # seconds until a cluster must answer


def check_available() -> None:
    """Raise an ImportError that says what to install, unless trials can be kept."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError("raw results need pyarrow: pip install 'metrack[io]'") from None


class Trials(NamedTuple):
    """The trials of a study.

    Attributes
    ----------
    run : callable
        From a trial's number to its columns; can be pickled.
    n : int
        How many: 0 to n - 1.
    warm_up : callable, optional
        Compiles all that trials need, so that workers find it on disk.
    per_file : int
        Trials that are kept together: what an interruption may cost.
    """

    run: Callable[[int], Table]
    n: int
    warm_up: Callable[[], object] | None = None
    per_file: int = 20


class TrialStore:
    """The finished trials of a study, in a folder.

    Parameters
    ----------
    folder : Path
        Its ``raw`` holds the Parquet files, its ``settings.json`` says what they are of.
    settings : JSON object
        All that the numbers depend on. A folder with others is refused.
    """

    def __init__(self, folder: Path, settings: Mapping[str, object]) -> None:
        self.raw = folder / "raw"
        self.raw.mkdir(parents=True, exist_ok=True)
        described = folder / "settings.json"
        if described.exists():
            _check_same(folder, json.loads(described.read_text(encoding="utf-8")), settings)
        else:
            write_json(described, settings)

    def finished(self) -> set[int]:
        """Numbers of the trials that need not be run again."""
        return set(self.load(columns=["trial"])["trial"].tolist())

    def add(self, trials: Mapping[int, Table]) -> None:
        """Keep some trials: a file that is there is whole."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = list(next(iter(trials.values())))
        columns: Table = {
            "trial": np.repeat(list(trials), [len(each[names[0]]) for each in trials.values()])
        }
        for name in names:
            columns[name] = np.concatenate([each[name] for each in trials.values()])
        path = self.raw / f"trials-{min(trials):06d}-{max(trials):06d}.parquet"
        beside = path.with_suffix(".writing")
        pq.write_table(pa.table(columns), beside)
        beside.replace(path)

    def load(self, columns: Sequence[str] | None = None) -> Table:
        """Columns of all trials, in the order of their numbers."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        paths = sorted(self.raw.glob("trials-*.parquet"))
        if not paths:
            return {"trial": np.empty(0, dtype=np.int64)}
        table = pa.concat_tables([pq.read_table(path, columns=columns) for path in paths])
        found = {name: table[name].to_numpy() for name in table.column_names}
        order = np.argsort(found["trial"], kind="stable")
        return {name: column[order] for name, column in found.items()}


def _check_same(folder: Path, old: Mapping[str, object], new: Mapping[str, object]) -> None:
    now = json.loads(json.dumps(new))
    for name in sorted({*old, *now}):
        if old.get(name) != now.get(name):
            raise ValueError(
                f"{folder} holds trials with another {name} ({old.get(name)}, not "
                f"{now.get(name)}); choose another folder, or delete this one"
            )


def run_trials(
    trials: Trials,
    store: TrialStore,
    n_jobs: int = -1,
    cluster: str | None = None,
    console: Console | None = None,
) -> None:
    """Run the trials that are missing from a store, and keep them there.

    Parameters
    ----------
    trials : Trials
    store : TrialStore
    n_jobs : int
        Processes on this machine; -1 for one per core.
    cluster : str, optional
        Address of a Dask scheduler: then its workers run the trials.
    console : Console, optional
        For a progress bar, if it is a terminal.
    """
    missing = sorted(set(range(trials.n)) - store.finished())
    if not missing:
        return
    console = console or Console()
    if trials.warm_up is not None and cluster is None:
        with console.status("Compiling, once ..."):
            trials.warm_up()
    results = run_each(trials.run, missing, n_jobs, cluster)
    done = _shown(zip(missing, results, strict=True), trials.n, len(missing), console)
    while part := dict(islice(done, trials.per_file)):
        store.add(part)


def run_each(
    run: Callable[[Item], Found], items: Sequence[Item], n_jobs: int, cluster: str | None = None
) -> Iterator[Found]:
    """Results of a function for each item, in their order, from many workers.

    Parameters
    ----------
    run : callable
        Pure, and can be pickled.
    items : sequence
    n_jobs, cluster
        As `run_trials` takes them.
    """
    from joblib import Parallel, delayed
    from threadpoolctl import threadpool_limits

    # Some may run in this process: afterwards it has its threads back.
    with _engine(cluster, n_jobs) as workers, threadpool_limits(1):
        # Data is copied to workers: arrays on disk would be read-only, and compiled for again.
        yield from Parallel(n_jobs=workers, return_as="generator", max_nbytes=None)(
            delayed(_single_threaded)(run, item) for item in items
        )


def _single_threaded(run: Callable[[Item], Found], item: Item) -> Found:
    """A trial with one BLAS thread: more are slower on small matrices, and round differently."""
    from threadpoolctl import threadpool_limits

    # While the worker lives: this may be one of its threads, and others are at work.
    threadpool_limits(1)
    return run(item)


@contextmanager
def _engine(cluster: str | None, n_jobs: int) -> Iterator[int]:
    """Where joblib runs things; gives the number of jobs to ask for."""
    if cluster is None:
        yield n_jobs
        return
    from joblib import parallel_config

    with connect(cluster), parallel_config("dask"):
        yield -1


@contextmanager
def connect(cluster: str) -> Iterator["Client"]:
    """A client of a Dask cluster; refuses one that does not answer, or has no workers."""
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("a cluster needs Dask: pip install 'metrack[dask]'") from None
    # What goes wrong is said once, below.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = Client(cluster, timeout=PATIENCE)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"no Dask scheduler answers at {cluster!r} ({reason}); start one with `dask scheduler`"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise ValueError(
                f"the Dask scheduler at {cluster!r} has no workers; start some with `dask worker`"
            ) from None
        yield client


def _shown(
    done: Iterator[tuple[int, Table]], n_trials: int, n_missing: int, console: Console
) -> Iterator[tuple[int, Table]]:
    """The same, with a bar that says how long it will take."""
    columns = (
        TextColumn("Trials"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(elapsed_when_finished=False),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=n_trials, completed=n_trials - n_missing)
        for each in done:
            progress.advance(task)
            yield each
