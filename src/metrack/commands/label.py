"""``metrack suggest`` and ``metrack judge``: which pairs to judge, and judging them."""

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias

import typer

from metrack.commands.state import EXIT_CODES, StateArgument, counted

if TYPE_CHECKING:
    from metrack.storage import StateFolder


class Session(Protocol):
    """Questions about pairs of items, or of records; a pair is whatever `question` gives."""

    @property
    def n_answers(self) -> int:
        """How many pairs have been judged."""

    def question(self) -> Any:
        """The next pair; None: all have been asked about."""

    def answer(self, pair: Any, alike: bool | None) -> None:
        """Learn a judgement, and keep it."""

    def undo(self) -> Any:
        """Be as before the last answer; its pair, or None."""


Begin: TypeAlias = "Callable[[StateFolder], tuple[Session, Callable[[Any], list[str]]]]"

KEYS = "y alike, n not alike, s skip, u undo, q quit"
Items = Annotated[
    Path,
    typer.Option(
        help="File with a row of features per id. CSV, JSON Lines, Parquet, .npy or .npz."
    ),
]

OptionalItems = Annotated[
    Path | None,
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
        epilog="Examples: metrack judge state --items items.npz --texts texts.csv | metrack judge "
        "shops --left ours.csv --right theirs.csv --candidates near.csv. "
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
    items: OptionalItems = None,
    texts: Annotated[
        Path | None, typer.Option(help="CSV file of id and text, to be shown in place of ids.")
    ] = None,
    left: Annotated[
        Path | None,
        typer.Option(
            help="In place of items: records to judge field by field. CSV, .jsonl, .parquet."
        ),
    ] = None,
    right: Annotated[
        Path | None, typer.Option(help="Those of the other source, if there is one.")
    ] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(help="Pairs of records to ask about: columns a (left) and b (right) of ids."),
    ] = None,
) -> None:
    """Judge pairs of items, or of records, on the terminal, one key per answer.

    Every answer is learned and on the disk before the next question. The folder is made if
    missing; undo goes back up to 20 answers of this session, to the bit. Without a terminal, keys
    are read from the input, one a line. Records are shown and compared field by field; the state
    then holds the comparisons, too.
    """
    from metrack.storage import StateFolder

    if (items is None) == (left is None):
        raise ValueError("give --items, or --left and --candidates")
    begin = _with_items(items, texts) if items else _with_records(left, right, candidates)
    with StateFolder(state) as folder:
        session, show = begin(folder)
        before = session.n_answers
        try:
            _ask(session, show, _key_reader())
        except KeyboardInterrupt:
            typer.echo()
        typer.echo(
            f"{state}: {counted(session.n_answers, 'pair')} learned, "
            f"{session.n_answers - before:,} of them now"
        )


def _with_items(items: Path, texts: Path | None) -> Begin:
    """A session about items: their ids, or texts, are shown."""
    from metrack.terminal import visible
    from metrack.tracking.items import read_items
    from metrack.tracking.judging import Judging

    shown = {} if texts is None else _read_texts(texts)
    known = read_items(items)

    def show(pair: tuple[int, int]) -> list[str]:
        names = [known.ids[row] for row in pair]
        return [visible(shown.get(name, name)) for name in names]

    return lambda folder: (Judging(folder, known), show)


def _with_records(left: Path | None, right: Path | None, candidates: Path | None) -> Begin:
    """A session about records: both are shown field by field."""
    from metrack.terminal import visible
    from metrack.tracking.record_judging import RecordJudging
    from metrack.tracking.records import read_candidates, read_records

    if left is None or candidates is None:
        raise ValueError("--left needs --candidates: a file of pairs to ask about, columns a and b")
    ours = read_records(left)
    theirs = ours if right is None else read_records(right)
    rows = read_candidates(candidates, ours, theirs)

    def begin(folder: "StateFolder") -> tuple[Session, Callable[[Any], list[str]]]:
        session = RecordJudging(folder, ours, theirs, rows)

        def show(row: int) -> list[str]:
            told = session.fields(row)
            width = max(len(field) for field, *_ in told)
            return [
                f"{name:<{width}}  {visible('-' if value in (None, '') else str(value))}"
                for field, *values in told
                for name, value in zip((visible(field), ""), values, strict=True)
            ]

        return session, show

    return begin


def _ask(session: Session, show: Callable[[Any], list[str]], read_key: Callable[[], str]) -> None:
    typer.echo(f"Are these two alike? Keys: {KEYS}.")
    pair = session.question()
    while pair is not None:
        typer.echo("\n" + "\n".join(f"  {line}" for line in show(pair)))
        key = read_key()
        if key in ("q", ""):
            return
        if key in ("y", "n"):
            session.answer(pair, alike=key == "y")
            typer.echo(f"  {'alike' if key == 'y' else 'not alike'} ({session.n_answers:,} kept)")
        elif key == "u":
            undone = session.undo()
            typer.echo("  there is nothing to undo" if undone is None else "  undone")
            pair = pair if undone is None else undone
            continue
        elif key == "s":
            session.answer(pair, alike=None)
            typer.echo("  skipped")
        else:
            typer.echo(f"  keys: {KEYS}")
            continue
        pair = session.question()
    typer.echo("All pairs have been asked about.")


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
