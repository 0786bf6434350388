"""The table of metrics in a server's database: a row each."""

import json
import sqlite3
import time
from typing import Any

from metrack.serve.learning import Config
from metrack.serve.metric import Metric


def read(connection: sqlite3.Connection) -> dict[str, Metric]:
    """All metrics, by name."""
    found = {}
    rows = connection.execute(
        "SELECT id, name, n_features, estimator, settings, features, sequence, cut, saved, "
        "summary FROM metrics"
    )
    for number, name, n_features, kind, settings, features, *counts in rows:
        names = None if features is None else json.loads(features)
        config = Config(n_features, kind, json.loads(settings), names)
        found[name] = Metric(number, name, config, *counts)
    return found


def insert(connection: sqlite3.Connection, name: str, config: Config) -> int:
    """A new metric; returns its number."""
    done = connection.execute(
        "INSERT INTO metrics (name, n_features, estimator, settings, features, created) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (name, *_columns(config), time.time()),
    )
    assert done.lastrowid is not None
    return done.lastrowid


def configure(connection: sqlite3.Connection, number: int, config: Config) -> bool:
    """Change a metric that has no judgements; those on their way are written after this."""
    done = connection.execute(
        "UPDATE metrics SET n_features = ?, estimator = ?, settings = ?, features = ? "
        "WHERE id = ? AND sequence = 0",
        (*_columns(config), number),
    )
    return done.rowcount > 0


def note_saved(connection: sqlite3.Connection, number: int, saved: int, summary: str) -> None:
    """Up to which judgement a saved state has learned, and what there is to say of it."""
    connection.execute(
        "UPDATE metrics SET saved = ?, summary = ? WHERE id = ?", (saved, summary, number)
    )


def delete(connection: sqlite3.Connection, number: int) -> None:
    """Forget a metric; `log.sweep` removes what it leaves."""
    connection.execute("DELETE FROM metrics WHERE id = ?", (number,))


def _columns(config: Config) -> tuple[Any, ...]:
    features = None if config.features is None else json.dumps(config.features)
    return config.n_features, config.estimator, json.dumps(config.settings), features
