"""The ``metrack`` command.

Commands import what they need when they run, so that ``metrack --help`` stays quick.
Exit codes: 0 done, 1 failed, 2 wrong use.
"""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NoReturn

import typer

app = typer.Typer(
    name="metrack",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"metrack {version('metrack')}")
        raise typer.Exit


@app.callback()
def _metrack(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Keep a distance metric right while the world changes."""


@app.command(epilog="Example: metrack demo --out demo --seed 1")
def demo(
    out: Annotated[
        Path, typer.Option(file_okay=False, help="Folder for the results; made if missing.")
    ] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same results.")] = 0,
    pairs: Annotated[int, typer.Option(min=1, help="Length of the stream.")] = 3000,
) -> None:
    """Track a metric that drifts, on synthetic data; print a table and save a figure."""
    from metrack.experiments.demo import run

    run(out=out, seed=seed, n_pairs=pairs)


def main() -> None:
    """Run the command line; an error the user can mend is one line on stderr, not a traceback."""
    try:
        app()
    except ValueError as error:  # the library raises it for input to change, and says how
        _stop(error, code=2)
    except (OSError, ImportError) as error:  # a file, or an extra that is not installed
        _stop(error, code=1)


def _stop(error: Exception, code: int) -> NoReturn:
    typer.echo(f"metrack: {' '.join(str(error).split())}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
