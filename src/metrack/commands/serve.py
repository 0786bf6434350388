"""``metrack serve`` and its tokens."""

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


def serve(
    folder: Annotated[Path, typer.Argument(help="Folder for log and states; made if missing.")],
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
    try:
        from metrack.serve.limits import Limits
        from metrack.serve.server import serve as run
    except ImportError as error:
        raise ImportError(f"metrack serve needs: pip install 'metrack[serve]' ({error})") from None

    limits = Limits(
        body=max_body,
        pairs=max_pairs,
        metrics=max_metrics,
        items=max_items,
        memory=memory << 20,
    )
    run(folder, host, port, tokens, limits)


def token(
    file: Annotated[Path, typer.Argument(help="File of tokens; made if missing.")],
    name: Annotated[str, typer.Argument(help="Whose token it is.")],
    scopes: Annotated[
        str, typer.Option(help="read, write and admin, with commas between.")
    ] = "read,write",
    metrics: Annotated[str, typer.Option(help="Names with commas between, or * for all.")] = "*",
) -> None:
    """Make a token for metrack serve; only its digest is kept, so note it down."""
    from metrack.serve.auth import add_token

    typer.echo(add_token(file, name, scopes, metrics))
