"""``metrack track`` and what reads its state."""

import time
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from metrack.commands.settings import estimator_in, make_estimator, settings, value_of
from metrack.registry import PAIR_LEARNERS

if TYPE_CHECKING:
    from metrack.tracking.loop import Progress, Run

Settings = dict[str, float | str | None]  # of an estimator, as they were typed
LAYOUTS = ("auto", "wide", "ids")
FORMATS = ("auto", "csv", "jsonl", "parquet", "arrow")
EXIT_CODES = (
    "Exit codes: 0 done, 1 failed (a file, the disk), 2 wrong use (options, rows, a state)."
)


def add_to(app: typer.Typer) -> None:
    """Register the commands of this file."""
    app.command(
        cls=TrackCommand,
        epilog="Examples: metrack track feedback.csv --out state | "
        "metrack track clicks.jsonl --items items.parquet --out state | "
        f"tail -n +1 -F log.csv | metrack track - --out state. {EXIT_CODES}",
    )(track)
    app.command(
        epilog="Examples: metrack transform state items.csv --out embedded.npy | "
        f"metrack transform state items.parquet > embedded.csv. {EXIT_CODES}"
    )(transform)
    app.command(
        epilog="Examples: metrack distance state pairs.csv --out scores.csv | "
        f"metrack distance state pairs.csv --items items.npz. {EXIT_CODES}"
    )(distance)
    app.command(
        epilog="Examples: metrack inspect state | "
        f"metrack inspect state --html state.html --items items.csv. {EXIT_CODES}"
    )(inspect)


class TrackCommand(TyperCommand):
    """A command with an option for every setting of the estimators, looked up when it is used."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The command's own options, then the settings."""
        return [*super().get_params(ctx), *_setting_options()]

    def invoke(self, ctx: Any) -> Any:
        """Hand the settings over beside the declared parameters."""
        given = {option.name: ctx.params.pop(option.name, None) for option in _setting_options()}
        ctx.obj = {name: value_of(text) for name, text in given.items() if text is not None}
        return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Tell the settings estimator by estimator: one name may mean different things."""
        told = TyperCommand(
            self.name,
            help=self.help,
            epilog=self.epilog,
            params=[*super().get_params(ctx), *_described_options()],
            add_help_option=False,  # it is among the parameters
            rich_markup_mode=self.rich_markup_mode,
        )
        told.format_help(ctx, formatter)


@cache
def _setting_options() -> list[Any]:
    """An option for each name of a setting, none of them given."""
    return _options({setting.name: (None, {}) for setting in settings()})


def _described_options() -> list[Any]:
    """For the help alone: an option for each setting of each estimator, with its default."""
    first: dict[tuple[str, str], str] = {}  # which estimator was told to have such a setting
    found = []
    for estimator in PAIR_LEARNERS:
        told = {}
        for setting in settings():
            if setting.estimator == estimator:
                like = first.setdefault((setting.name, setting.help), estimator)
                text = setting.help if like == estimator else f"As for {like}."
                panel = f"Settings of {estimator}"
                told[setting.name] = setting.default, {"help": text, "rich_help_panel": panel}
        found += _options(told)
    return found


def _options(asked: Mapping[str, tuple[str | None, dict[str, str]]]) -> list[Any]:
    """Options by name, of a default and what else there is, as Typer makes them of parameters."""

    def carrier(**settings: str | None) -> None: ...

    carrier.__annotations__ = {
        name: Annotated[str | None, typer.Option(metavar="VALUE", **more)]  # type: ignore[arg-type]
        for name, (_, more) in asked.items()
    }
    carrier.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=default,
                annotation=carrier.__annotations__[name],
            )
            for name, (default, _) in asked.items()
        ]
    )
    app = typer.Typer(add_completion=False)
    app.command()(carrier)
    return [param for param in typer.main.get_command(app).params if param.name in asked]


def _read_config(ctx: typer.Context, path: Path | None) -> Path | None:
    """Take the file's values as defaults of the options."""
    if path is None or ctx.resilient_parsing:
        return path
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    found = {name.replace("-", "_"): value for name, value in config.items()}
    known = {str(param.name) for param in ctx.command.get_params(ctx)} - {"config", "help"}
    unknown = [name for name in found if name not in known]
    if unknown:
        raise ValueError(
            f"{path}: unknown setting {unknown[0]!r}; known are {', '.join(sorted(known))}"
        )
    ctx.default_map = {**(ctx.default_map or {}), **found}
    return path


Source = Annotated[
    str,
    typer.Argument(
        help="CSV, JSON Lines, Parquet or Arrow file, a folder of them, or - for a pipe."
    ),
]
StateArgument = Annotated[Path, typer.Argument(help="Folder of a state.")]
ItemsOption = Annotated[
    Path | None,
    typer.Option(
        help="File with a row of features per id: for pairs of ids, columns a and b. CSV, JSON "
        "Lines, Parquet, .npy or .npz (also CSR)."
    ),
]
LayoutOption = Annotated[str, typer.Option(help="wide (x_*, z_* or u_*), ids (a, b), or auto.")]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Which columns are which, where they have other names: a=id_a,b=id_b,y=label. Or all "
        "names in order, for CSV without a header: x_1,x_2,z_1,z_2,y.",
    ),
]
FormatOption = Annotated[str, typer.Option(help="csv, jsonl, parquet, arrow, or auto.")]


def track(
    ctx: typer.Context,
    source: Source,
    out: Annotated[Path, typer.Option(help="Folder for the state; made if missing.")],
    estimator: Annotated[
        str | None,
        typer.Option(help=f"{', '.join(PAIR_LEARNERS)}. MetricTracker where none is given."),
    ] = None,
    items: ItemsOption = None,
    layout: LayoutOption = "auto",
    format: FormatOption = "auto",
    columns: ColumnsOption = None,
    bad_rows: Annotated[
        str,
        typer.Option(
            help="stop at the first, skip them, or a FILE to set them aside (JSON Lines)."
        ),
    ] = "stop",
    new_source: Annotated[
        bool,
        typer.Option(
            "--new-source", help="SOURCE holds only rows not learned yet: read it from its start."
        ),
    ] = False,
    new_items: Annotated[
        bool,
        typer.Option(
            "--new-items", help="Items under the same ids have changed: go on with those of now."
        ),
    ] = False,
    save_pairs: Annotated[
        int, typer.Option(min=1, help="Save after so many pairs ...")
    ] = 1_000_000,
    save_seconds: Annotated[float, typer.Option(min=0.0, help="... or so many seconds.")] = 30.0,
    config: Annotated[
        Path | None,
        typer.Option(
            callback=_read_config,
            is_eager=True,
            exists=True,
            dir_okay=False,
            help="TOML file with values for any of these options: bad_rows = 'skip'.",
        ),
    ] = None,
) -> None:
    """Learn a metric from a stream of judged pairs, and keep its state on disk.

    Run the same command again to go on where it stopped: also after a crash, and also where the
    file has grown. Rows are pairs, with columns x_1, x_2, ..., z_1, z_2, ..., y; or their
    differences, u_1, u_2, ..., y; or a, b, y and --items; or others that --columns names. y is
    +1/-1, 1/0, true/false or same/different.
    """
    from metrack.tracking.columns import Columns, parse_columns
    from metrack.tracking.items import read_items
    from metrack.tracking.loop import Run
    from metrack.tracking.saving import SavePolicy

    asked: Settings = dict(ctx.obj or {})
    learner = make_estimator(estimator or estimator_in(out), asked)
    if estimator is not None:
        asked["estimator"] = estimator
    _track(
        Run(
            source=source,
            out=out,
            learner=learner,
            settings=asked,
            items=None if items is None else read_items(items),
            layout=_one_of("layout", layout, LAYOUTS),
            format_=_one_of("format", format, FORMATS),
            columns=Columns() if columns is None else parse_columns(columns),
            bad_rows=bad_rows,
            new_source=new_source,
            new_items=new_items,
            saves=SavePolicy(save_pairs, save_seconds),
        )
    )


def _track(run: "Run") -> None:
    """Track, and say in a line how it went."""
    from metrack.tracking.loop import track

    start = time.monotonic()
    done = _with_bar(lambda show, log: track(run, show, log))
    speed = done.pairs / max(time.monotonic() - start, 1e-9)
    bad = f", {counted(done.bad, 'bad row')} left out" if done.bad else ""
    if done.seen == 0:
        typer.echo(f"{run.source}: no pairs{bad}; nothing saved")
        return
    typer.echo(
        f"{run.out}: {counted(done.seen, 'pair')} learned, {done.pairs:,} of them now "
        f"({speed:,.0f}/s){bad}; loss of late {done.loss:.4g}"
    )


def counted(number: int, thing: str) -> str:
    """A number of things, also of one."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ValueError(f"--{name} {value!r}; choose one of {', '.join(known)}")
    return value


def _with_bar(
    run: "Callable[[Callable[[Progress], None], Callable[[str], None]], Progress]",
) -> "Progress":
    """Show progress on a terminal; the log goes to the standard error everywhere."""
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    from metrack.terminal import plain_console

    console = plain_console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading", total=None)
        start = time.monotonic()

        def show(progress: "Progress") -> None:
            speed = progress.pairs / max(time.monotonic() - start, 1e-9)
            bad = f", {counted(progress.bad, 'bad row')}" if progress.bad else ""
            words = (
                f"{counted(progress.seen, 'pair')}, {speed:,.0f}/s, loss {progress.loss:.4g}{bad}"
            )
            bar.update(task, description=words)

        def log(line: str) -> None:
            stamp = time.strftime("%Y-%m-%d %H:%M:%S")
            console.print(f"{stamp} {line}", soft_wrap=True)

        return run(show, log)


def transform(
    state: StateArgument,
    items: Annotated[Path, typer.Argument(help="File of items: id and features.")],
    out: Annotated[
        Path | None, typer.Option(help=".csv, .npy, .npz or .parquet; without, CSV to the output.")
    ] = None,
    for_neighbours: Annotated[
        bool, typer.Option("--for-neighbours", help="For an index, neighbours or clusters.")
    ] = False,
) -> None:
    """Embed items where Euclidean distance is the learned one."""
    from metrack.tracking.outputs import transform as run

    n_items = run(state, items, out, for_neighbours)
    if out is not None:
        typer.echo(f"{out}: {counted(n_items, 'item')} embedded")


def distance(
    state: StateArgument,
    source: Source,
    items: ItemsOption = None,
    out: Annotated[Path | None, typer.Option(help="CSV file; without, CSV to the output.")] = None,
    layout: LayoutOption = "auto",
    format: FormatOption = "auto",
    columns: ColumnsOption = None,
) -> None:
    """Score pairs: their learned distance, whether they are alike (+1) or not (-1), how likely.

    Pairs have the columns of ``metrack track``; a label y is not needed.
    """
    from metrack.tracking.columns import parse_columns
    from metrack.tracking.items import read_items
    from metrack.tracking.outputs import distance as run

    points = None if items is None else read_items(items)
    n_pairs = run(
        state,
        source,
        points,
        out,
        _one_of("layout", layout, LAYOUTS),
        _one_of("format", format, FORMATS),
        None if columns is None else parse_columns(columns),
    )
    if out is not None:
        typer.echo(f"{out}: {counted(n_pairs, 'pair')} scored")


def inspect(
    state: StateArgument,
    html: Annotated[Path | None, typer.Option(help="Also write a page with figures.")] = None,
    items: ItemsOption = None,
) -> None:
    """See a state: what was learned, how it went, what matters now."""
    from rich.table import Table

    from metrack.terminal import plain_console, visible
    from metrack.tracking.inspection import page, sections
    from metrack.tracking.items import read_items
    from metrack.tracking.state import Tracking

    tracking = Tracking.load(state, None if items is None else read_items(items))
    console = plain_console()
    for section in sections(state, tracking):
        if not section.rows:
            console.print(visible(section.title))
        else:
            titled = any(section.columns)
            table = Table(title=visible(section.title), title_justify="left", show_header=titled)
            for i, name in enumerate(section.columns):
                table.add_column(name, justify="right" if i and titled else "left", overflow="fold")
            for row in section.rows:
                table.add_row(*map(visible, row))
            console.print(table)
        if section.note:
            console.print(section.note)
    if html is not None:
        page(state, tracking).write(html)
        console.print(f"Page: {html}", soft_wrap=True)
