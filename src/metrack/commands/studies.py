"""``metrack demo`` and ``metrack reproduce``: the studies, from one command each."""

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path, typer.Option(help="Folder for the results; made if missing.")]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same results.")]
Pairs = Annotated[
    int | None,
    typer.Option(min=1, help="Pairs of each trial, in place of the schedule's; drift stays."),
]
Schedule = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="long: 24,000 pairs, learners converge between changes; or fast: 6,000 pairs, four "
        "times the drift per pair.",
    ),
]
Jobs = Annotated[int, typer.Option(help="Processes; -1 for one per core.")]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on the Dask cluster whose scheduler is there."),
]


def add_to(app: typer.Typer) -> None:
    """Register the commands of this file."""
    app.command(epilog="Example: metrack demo --out demo --seed 1")(demo)
    reproduce = typer.Typer(no_args_is_help=True, help="Run a study of the paper at full size.")
    reproduce.command(
        epilog="Example: metrack reproduce synthetic --trials 100 --out results --method tracker "
        "--method mypackage.mymodule:MyEstimator"
    )(synthetic)
    reproduce.command(
        name="synthetic-tuning", epilog="Example: metrack reproduce synthetic-tuning --out tuning"
    )(synthetic_tuning)
    reproduce.command(epilog="Example: metrack reproduce claims --trials 24 --out results/claims")(
        claims
    )
    reproduce.command(
        epilog="Example: metrack reproduce reviews --data reviews.npz --out results/reviews"
    )(reviews)
    app.add_typer(reproduce, name="reproduce")


def demo(
    out: Out = Path("demo"),
    seed: Seed = 0,
    pairs: Pairs = None,
) -> None:
    """Run the paper's drift study with few trials; about a minute."""
    from metrack.experiments.demo import run

    run(out=out, seed=seed, n_pairs=pairs or 0)


def synthetic(
    out: Out = Path("results/synthetic"),
    trials: Annotated[int, typer.Option(min=1, help="Number of random trials.")] = 3000,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Method to run, or package.module:Class of yours; repeatable."
        ),
    ] = None,
    schedule: Schedule = "long",
    pairs: Pairs = None,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    seed: Seed = 0,
) -> None:
    """Run the paper's drift study: every method on the same drifting streams.

    Run the same command again to continue one that was interrupted. Without --method, all known
    ones run: sadl, sadl-published, comid-high, comid-low, lmnn, lmnn-window, online-itml.
    """
    from metrack.experiments.synthetic import reproduce

    _import_from_here()
    reproduce(out, trials, method or (), seed, schedule, pairs or 0, jobs, cluster)


def synthetic_tuning(
    out: Out = Path("results/synthetic-tuning"),
    trials: Annotated[int, typer.Option(min=1, help="Streams that each setting is tried on.")] = 10,
    jobs: Jobs = -1,
) -> None:
    """Choose the settings of the drift study's methods anew, on streams of their own.

    Grids grow until the best setting lies inside; where that does not end, the command fails.
    """
    from metrack.experiments.tuning import tune

    tune(out, trials, jobs)


def claims(
    out: Out = Path("results/claims"),
    trials: Annotated[int, typer.Option(min=1, help="Random trials of each cell.")] = 24,
    length: Annotated[
        list[int] | None,
        typer.Option(min=1, metavar="PAIRS", help="Pairs of a trial; repeatable."),
    ] = None,
    speed: Annotated[
        list[float] | None,
        typer.Option(
            min=0, metavar="FACTOR", help="Drift per pair, 1 as in the fast schedule; repeatable."
        ),
    ] = None,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    seed: Seed = 0,
) -> None:
    """Map where the paper's claims hold: its drift study at many lengths and speeds of drift.

    Run the same command again to continue one that was interrupted. Without --length there are four
    time scales, 3,000 to 24,000 pairs, and without --speed four speeds of drift, 0.125 to 1.
    """
    from metrack.experiments.claims import LENGTHS, SPEEDS, reproduce

    reproduce(out, trials, seed, length or LENGTHS, speed or SPEEDS, jobs, cluster)


def _import_from_here() -> None:
    """Let --method find modules in the working directory, as ``python -m`` does."""
    import sys

    if "" not in sys.path:
        sys.path.insert(0, "")


def reviews(
    data: Annotated[
        Path | None,
        typer.Option(
            help="The published processed_acl.tar.gz, its folder, or an npz file; without it, the "
            "environment variable METRACK_REVIEWS, else a download."
        ),
    ] = None,
    out: Out = Path("results/reviews"),
    runs: Annotated[int, typer.Option(min=1, help="Runs of each change.")] = 20,
    pairs: Annotated[
        int,
        typer.Option(
            min=100,
            help="Pairs before a change and after it; a static embedding gets 15 times as many.",
        ),
    ] = 20_000,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    seed: Seed = 0,
) -> None:
    """Run the paper's study of Amazon reviews: two questions, and a change between them.

    Run the same command again to continue one that was interrupted.
    """
    from metrack.experiments.reviews import reproduce

    reproduce(data, out, runs, pairs, seed, jobs, cluster)
