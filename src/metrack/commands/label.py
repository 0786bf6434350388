"""``metrack suggest`` and ``metrack judge``: which pairs to judge, and judging them."""

import csv
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metrack.commands.state import EXIT_CODES, StateArgument, counted

if TYPE_CHECKING:
    from metrack.tracking.judging import Judging

KEYS = "y alike, n not alike, s skip, u undo, q quit"
Items = Annotated[
    Path,
    typer.Option(
        help="File with a row of features per id. CSV, JSON Lines, Parquet, .npy or .npz."
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register the commands of this file."""
    app.command(
        epilog="Examples: metrack suggest state --items items.csv --n 20 > to-judge.csv. "
        f"{EXIT_CODES}"
    )(suggest)
    app.command(
        epilog="Examples: metrack judge state --items items.npz --texts texts.csv. "
        f"Keys: {KEYS}. {EXIT_CODES}"
    )(judge)


def suggest(
    state: StateArgument,
    items: Items,
    n: Annotated[int, typer.Option(min=1, help="How many pairs.")] = 20,
    out: Annotated[Path | None, typer.Option(help="CSV file; without, CSV to the output.")] = None,
) -> None:
    """Choose pairs of items that are worth judging, the best first.

    Add a column y, and metrack track learns from the file. Where there is no state yet, pairs are
    chosen by what the items say. Weights say how many random pairs each stands for: what is
    averaged with them is not biased by the choice.
    """
    from metrack.tracking.items import read_items
    from metrack.tracking.judging import suggestions
    from metrack.tracking.outputs import write_csv

    found = suggestions(state, read_items(items), n)
    write_csv(out, ["a", "b", "informativeness", "weight"], ([each] for each in found))
    if out is not None:
        typer.echo(f"{out}: {counted(n, 'pair')} to judge")


def judge(
    state: StateArgument,
    items: Items,
    texts: Annotated[
        Path | None, typer.Option(help="CSV file of id and text, to be shown in place of ids.")
    ] = None,
) -> None:
    """Judge pairs of items on the terminal, one key per answer.

    Every answer is learned and on the disk before the next question. The folder is made if
    missing; undo goes back up to 20 answers of this session, to the bit. Without a terminal, keys
    are read from the input, one a line.
    """
    from metrack.storage import StateFolder
    from metrack.tracking.items import read_items
    from metrack.tracking.judging import Judging

    shown = {} if texts is None else _read_texts(texts)
    known = read_items(items)
    with StateFolder(state) as folder:
        session = Judging(folder, known)
        before = session.n_answers
        try:
            _ask(session, shown, _key_reader())
        except KeyboardInterrupt:
            typer.echo()
        typer.echo(
            f"{state}: {counted(session.n_answers, 'pair')} learned, "
            f"{session.n_answers - before:,} of them now"
        )


def _ask(session: "Judging", shown: Mapping[str, str], read_key: Callable[[], str]) -> None:
    typer.echo(f"Are these two alike? Keys: {KEYS}.")
    pair = session.question()
    while pair is not None:
        _show(session, pair, shown)
        key = read_key()
        if key in ("q", ""):
            return
        if key in ("y", "n"):
            session.answer(pair, alike=key == "y")
            typer.echo(f"  {'alike' if key == 'y' else 'not alike'} ({session.n_answers:,} kept)")
        elif key == "u":
            undone = session.undo()
            typer.echo("  undone" if undone else "  there is nothing to undo")
            pair = undone or pair
            continue
        elif key == "s":
            session.answer(pair, alike=None)
            typer.echo("  skipped")
        else:
            typer.echo(f"  keys: {KEYS}")
            continue
        pair = session.question()
    typer.echo("All pairs have been asked about.")


def _show(session: "Judging", pair: tuple[int, int], shown: Mapping[str, str]) -> None:
    from metrack.terminal import visible

    names = [session.items.ids[row] for row in pair]
    typer.echo("\n" + "\n".join(f"  {visible(shown.get(name, name))}" for name in names))


def _read_texts(path: Path) -> dict[str, str]:
    with open(path, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row]
    for i, row in enumerate(rows):
        if len(row) < 2:
            raise ValueError(f"{path}: row {i + 1} has no text; give two columns, id and text")
    return {row[0]: row[1] for row in rows}


def _key_reader() -> Callable[[], str]:
    """What gives the next key: of a terminal at once, else the first letter of a line."""
    if sys.stdin.isatty():
        return lambda: _lower(typer.getchar())
    return lambda: _lower(sys.stdin.readline())


def _lower(key: str) -> str:
    return key[:1].lower()
