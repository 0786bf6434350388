"""``metrack serve``, its tokens, and what is well with its folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

PANEL = "Limits"


def add_to(app: typer.Typer) -> None:
    """Register the commands of this file."""
    app.command(
        epilog="Examples: metrack serve data | metrack token tokens.txt team && "
        "metrack serve data --host 0.0.0.0 --tokens tokens.txt"
    )(serve)
    app.command(epilog="Example: metrack token tokens.txt clicks --scopes write --metrics shop")(
        token
    )
    app.command(epilog="Example: metrack tokens tokens.txt --withdraw clicks")(tokens)
    app.command(epilog="Example: metrack doctor data")(doctor)


def serve(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder for log and states; made if missing.")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            envvar="METRACK_DATABASE",
            help="postgresql://... instead of a folder; any number of servers share it.",
        ),
    ] = None,
    reader: Annotated[
        bool, typer.Option("--reader", help="Leave the learning to other servers of the database.")
    ] = False,
    copy_to: Annotated[
        str | None, typer.Option(help="Copy the folder's metrics to this database, and stop.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address; other than loopback needs --tokens.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes one that is free.")] = 8000,
    tokens: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="File made by metrack token.")
    ] = None,
    max_body: Annotated[
        int, typer.Option(min=1024, help="Bytes of a request.", rich_help_panel=PANEL)
    ] = 16 << 20,
    max_pairs: Annotated[
        int, typer.Option(min=1, help="Pairs or items of a request.", rich_help_panel=PANEL)
    ] = 10_000,
    max_metrics: Annotated[
        int, typer.Option(min=1, help="Of the server.", rich_help_panel=PANEL)
    ] = 10_000,
    max_items: Annotated[
        int, typer.Option(min=1, help="Of a metric.", rich_help_panel=PANEL)
    ] = 1_000_000,
    memory: Annotated[
        int,
        typer.Option(min=1, help="Megabytes of learners and items.", rich_help_panel=PANEL),
    ] = 4096,
) -> None:
    """Serve metrics over HTTP: feedback in, the metric of the moment out; with a page to watch.

    A judgement is on the disk when it is acknowledged. Whatever ends the process, the same command
    goes on as if it had not.
    """
    source = _source(folder, database)
    with _needing("serve"):
        from metrack.serve.limits import Limits
        from metrack.serve.server import copy
        from metrack.serve.server import serve as run

    if copy_to is not None:
        if folder is None:
            raise ValueError("--copy-to copies the metrics of a folder: give one")
        with _needing("postgres"):
            copied = copy(folder, copy_to)
        typer.echo(f"copied: {', '.join(copied) or 'nothing, all of it is there'}")
        return
    limits = Limits(
        body=max_body,
        pairs=max_pairs,
        metrics=max_metrics,
        items=max_items,
        memory=memory << 20,
    )
    with _needing("postgres" if database else "serve"):
        run(source, host, port, tokens, limits, learns=not reader)


def _source(folder: Path | None, database: str | None) -> Path | str:
    if folder is not None and database is None:
        return folder
    if database is not None and folder is None:
        return database
    raise ValueError("give either a folder or --database postgresql://...")


@contextmanager
def _needing(extra: str) -> Iterator[None]:
    """Name the extra that is missing."""
    try:
        yield
    except ImportError as error:
        needed = f"pip install 'metrack[{extra}]'"
        raise ImportError(f"metrack serve needs: {needed} ({error})") from None


FILE = typer.Argument(help="File of tokens, made if missing; or postgresql://...")


def token(
    file: Annotated[str, FILE],
    name: Annotated[str, typer.Argument(help="Whose token it is.")],
    scopes: Annotated[
        str, typer.Option(help="read, write and admin, with commas between.")
    ] = "read,write",
    metrics: Annotated[str, typer.Option(help="Names with commas between, or * for all.")] = "*",
    days: Annotated[
        float | None, typer.Option(help="Days until it expires; without, it never does.")
    ] = None,
) -> None:
    """Make a token for metrack serve; only its digest is kept, so note it down."""
    if "://" in file:
        with _needing("postgres"):
            from metrack.serve.databases.tokens import add_to_database

            typer.echo(add_to_database(file, name, scopes, metrics, days))
    else:
        from metrack.serve.tokens import add_token

        typer.echo(add_token(Path(file), name, scopes, metrics, days))


def tokens(
    file: Annotated[str, typer.Argument(help="File of tokens; or postgresql://...")],
    withdraw: Annotated[
        str | None, typer.Option(help="Withdraw all tokens of this name, within a second.")
    ] = None,
) -> None:
    """List the tokens of metrack serve, or withdraw some."""
    from metrack.serve import tokens as in_file

    if "://" in file:
        with _needing("postgres"):
            from metrack.serve.databases import tokens as rows
        entries, take_back = partial(rows.read_from_database, file), rows.withdraw_from_database
        gone = None if withdraw is None else take_back(file, withdraw)
    else:
        entries = partial(in_file.read_file, Path(file))
        gone = None if withdraw is None else in_file.withdraw(Path(file), withdraw)
    if gone == 0:
        raise ValueError(f"{file} has no token of {withdraw!r}; metrack tokens {file} lists them")
    if gone:
        typer.echo(f"withdrawn: {gone} of {withdraw}")
    elif found := in_file.listed(entries()):
        typer.echo(found)
    else:
        typer.echo(f"no tokens; make one: metrack token {file} NAME")


def doctor(
    folder: Annotated[Path, typer.Argument(help="Folder of metrack serve.")],
) -> None:
    """Check a server's folder - log, states, disk, clock - and say what to do; changes nothing.

    The server may be running. Ends with 1 where something is wrong.
    """
    with _needing("serve"):
        from metrack.serve.doctor import examined

    found = list(examined(folder))
    for each in found:
        typer.echo(f"{each.level:<5} {each.what}: {each.text}")
    if any(each.level == "wrong" for each in found):
        raise typer.Exit(1)
