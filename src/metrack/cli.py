"""The ``metrack`` command.

Commands import what they need when they run, so that ``metrack --help`` stays quick.
Exit codes: 0 done, 1 failed, 2 wrong use.
"""

import sys
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

from metrack.commands import label, serve, state, studies

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


studies.add_to(app)
state.add_to(app)
label.add_to(app)
serve.add_to(app)


def main() -> None:
    """Run the command line; an error the user can mend is one line on stderr, not a traceback."""
    try:
        app()
    except ValueError as error:  # the library raises it for input to change, and says how
        _stop(error, code=2)
    except (OSError, ImportError) as error:  # a file, or an extra that is not installed
        _stop(error, code=1)


def _stop(error: Exception, code: int) -> NoReturn:
    from metrack.terminal import visible

    typer.echo(f"metrack: {visible(' '.join(_words(error).split()))}", err=True)
    sys.exit(code)


def _words(error: Exception) -> str:
    """What an error says; of one of the operating system which file, and what is wrong with it."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror.lower()}"
    return str(error)


if __name__ == "__main__":
    main()
