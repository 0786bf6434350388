"""The table of metrics in a server's database: a row each."""

import json
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from metrack.serve.about import About
from metrack.serve.databases.database import Connection
from metrack.serve.learning import Config
from metrack.serve.limits import Refused

COLUMNS = (
    "id, name, n_features, estimator, settings, features, about, sequence, cut, saved, items, "
    "summary"
)
AT_A_TIME = 500  # numbers of a query


class Row(NamedTuple):
    """What the database has of a metric.

    Attributes
    ----------
    number : int
    name : str
    config : Config
    about : About
    sequence, cut, saved : int
        Of the last judgement; of the last that was cut off; of the last that is in a saved state.
    items : int
        Changes of its items.
    summary : dict
        Of what was learned, as it is known to all.
    """

    number: int
    name: str
    config: Config
    about: About
    sequence: int
    cut: int
    saved: int
    items: int
    summary: dict[str, Any]


def read(connection: Connection, numbers: Sequence[int] | None = None) -> list[Row]:
    """All metrics, or those of some numbers."""
    if numbers is None:
        return [_row(each) for each in connection.execute(f"SELECT {COLUMNS} FROM metrics")]
    found = []
    for start in range(0, len(numbers), AT_A_TIME):
        some = numbers[start : start + AT_A_TIME]
        marks = ", ".join("?" * len(some))
        sql = f"SELECT {COLUMNS} FROM metrics WHERE id IN ({marks})"
        found += [_row(each) for each in connection.execute(sql, some)]
    return found


def _row(columns: Sequence[Any]) -> Row:
    number, name, n_features, kind, settings, features, told, *counts, summary = columns
    try:
        names = None if features is None else json.loads(features)
        config = Config(n_features, kind, json.loads(settings), names)
        sequence, cut, saved, items = counts
        about = About.of(json.loads(told))
        return Row(number, name, config, about, sequence, cut, saved, items, json.loads(summary))
    except (ValueError, TypeError) as error:
        raise ValueError(f"the row of metric {name!r} was changed by hand: {error}") from None


def insert(
    connection: Connection, name: str, config: Config, about: About | None = None
) -> int | None:
    """A new metric; returns its number, or None where there is one by that name."""
    row: tuple[int] | None = connection.execute(
        "INSERT INTO metrics (name, n_features, estimator, settings, features, about, created) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING RETURNING id",
        (name, *_columns(config), _about(about or About()), time.time()),
    ).fetchone()
    return None if row is None else row[0]


def configure(connection: Connection, number: int, config: Config) -> bool:
    """Change a metric that has no judgements; those on their way are written after this."""
    done = connection.execute(
        "UPDATE metrics SET n_features = ?, estimator = ?, settings = ?, features = ? "
        "WHERE id = ? AND sequence = 0",
        (*_columns(config), number),
    )
    return done.rowcount > 0


def tell(connection: Connection, number: int, about: About) -> None:
    """Say anew what a metric is about."""
    connection.execute("UPDATE metrics SET about = ? WHERE id = ?", (_about(about), number))


def note_saved(connection: Connection, number: int, saved: int, summary: str) -> None:
    """Up to which judgement a saved state has learned, and what there is to say of it."""
    connection.execute(
        "UPDATE metrics SET saved = ?, summary = ? WHERE id = ?", (saved, summary, number)
    )


def set_learned(connection: Connection, number: int, sequence: int, summary: str) -> None:
    """As if judgements had been learned and cut off the log."""
    connection.execute(
        "UPDATE metrics SET sequence = ?, cut = ?, saved = ?, summary = ? WHERE id = ?",
        (sequence, sequence, sequence, summary, number),
    )


def changed_items(connection: Connection, number: int) -> int:
    """Count a change of a metric's items; returns how many there were."""
    row = connection.execute(
        "UPDATE metrics SET items = items + 1 WHERE id = ? RETURNING items", (number,)
    ).fetchone()
    if row is None:
        raise Refused(404, "the metric was deleted meanwhile")
    found: int = row[0]
    return found


def delete(connection: Connection, number: int) -> None:
    """Forget a metric; `log.sweep` removes what it leaves."""
    connection.execute("DELETE FROM metrics WHERE id = ?", (number,))
    connection.execute("INSERT INTO gone VALUES (?) ON CONFLICT DO NOTHING", (number,))


def _about(about: About) -> str:
    return json.dumps(about._asdict())


def _columns(config: Config) -> tuple[Any, ...]:
    features = None if config.features is None else json.dumps(config.features)
    return config.n_features, config.estimator, json.dumps(config.settings), features
