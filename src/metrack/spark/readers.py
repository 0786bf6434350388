"""What is read from events: the newest states, rows set aside, points and pairs under a metric."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from metrack.estimators.bases.online import OnlineLearner
from metrack.estimators.states.persistence import dump, load
from metrack.spark.schemas import POINT, check_columns, check_free, check_key, check_points
from metrack.tracking.layouts import Layout

# Columns that are added, and their types for Spark and for Arrow.
EMBEDDED = {"embedding": (POINT, pa.list_(pa.float64()))}
JUDGED = {"distance": (T.DoubleType(), pa.float64()), "alike": (T.IntegerType(), pa.int32())}


def latest(states: Any, key: str = "metric") -> Any:
    """The newest state of each key.

    Parameters
    ----------
    states : DataFrame
        Events as `track` gives them, or some of them; or what this function gave.
    key : str

    Returns
    -------
    DataFrame
        Columns key, ``version``, ``state``; a row for each key that has a state.
    """
    check_key(states, key, "states")
    check_columns(states, ["version", "state"], "states")
    newest = F.max_by(F.struct("version", "state"), "version").alias("newest")
    found = states.where(F.col("state").isNotNull()).groupBy(key).agg(newest)
    return found.select(key, "newest.version", "newest.state")


def bad_rows(events: Any, key: str = "metric") -> Any:
    """The rows that were set aside: bad, late or contradictory.

    Parameters
    ----------
    events : DataFrame
        As `track` gives them.
    key : str

    Returns
    -------
    DataFrame
        Columns key, ``sequence``, ``why`` and ``row``, which is JSON.
    """
    check_key(events, key, "events")
    check_columns(events, ["bad"], "events")
    return events.select(key, F.explode("bad").alias("bad")).select(key, "bad.*")


def transform(df: Any, states: Any, key: str = "metric", start: OnlineLearner | None = None) -> Any:
    """Embed points where Euclidean distance is the learned one, each under its key's metric.

    Parameters
    ----------
    df : DataFrame
        Not streaming. Columns key and ``x``, arrays of numbers; others are kept.
    states : DataFrame
        Events, or what `latest` gave.
    key : str
    start : fitted learner, optional
        For keys that have no state yet; as in `track`.

    Returns
    -------
    DataFrame
        With a column ``embedding``; null where there is no metric, or where a point is none:
        missing, not finite, of another number of features.
    """

    def embedded(learner: Any, points: Any) -> list[list[Any]]:
        return [list(learner.transform(points[:, 0]))]

    return _applied(df, states, key, start, ["x"], EMBEDDED, embedded)


def distance(df: Any, states: Any, key: str = "metric", start: OnlineLearner | None = None) -> Any:
    """Distances of pairs, each under its key's metric, and whether these are alike.

    Parameters
    ----------
    df : DataFrame
        Not streaming. Columns key, ``x`` and ``z``, arrays of numbers; others are kept.
    states : DataFrame
        Events, or what `latest` gave.
    key : str
    start : fitted learner, optional
        For keys that have no state yet; as in `track`.

    Returns
    -------
    DataFrame
        With columns ``distance`` and ``alike``, +1 or -1; null where there is no metric, or where
        a point is none: missing, not finite, of another number of features.
    """

    def judged(learner: Any, points: Any) -> list[list[Any]]:
        distances = learner.pair_distance(points)
        alike = np.where(distances <= learner.threshold_, 1, -1)
        return [distances.tolist(), alike.tolist()]

    return _applied(df, states, key, start, ["x", "z"], JUDGED, judged)


def _applied(
    df: Any,
    states: Any,
    key: str,
    start: OnlineLearner | None,
    points: Sequence[str],
    added: Mapping[str, tuple[Any, Any]],
    read_out: Callable[[Any, Any], list[list[Any]]],
) -> Any:
    """The rows of each key beside its state: a state travels once, and not with every row."""
    check_key(df, key, "df")
    check_points(df, points, "df")
    check_free(df, list(added))
    if df.isStreaming or states.isStreaming:
        raise ValueError("streams cannot be joined like this: do it in foreachBatch, on tables")

    shared = None if start is None else dump(start)

    def apply(rows: pa.Table, state: pa.Table) -> pa.Table:
        values: list[list[Any]] = [[None] * rows.num_rows for _ in added]
        own = state["state"][0].as_py() if state.num_rows else shared
        if rows.num_rows and own is not None:
            learner = load(own)
            layout = Layout(tuple((name,) for name in points), learner.n_features_in_, lists=True)
            found = layout.batch(rows)
            if found.good.any():
                for column, read in zip(values, read_out(learner, found.points), strict=True):
                    for i, value in zip(np.flatnonzero(found.good), read, strict=True):
                        column[i] = value
        for (name, (_, kind)), column in zip(added.items(), values, strict=True):
            rows = rows.append_column(name, pa.array(column, kind))
        return rows

    more = [T.StructField(name, kind) for name, (kind, _) in added.items()]
    kind = T.StructType([*df.schema.fields, *more])
    newest = latest(states, key)
    return df.groupBy(key).cogroup(newest.groupBy(key)).applyInArrow(apply, kind)
