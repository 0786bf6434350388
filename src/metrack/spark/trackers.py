"""Feedback to events: a tracker for each key."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql import types as T

from metrack.checks import whole
from metrack.estimators.bases.online import OnlineLearner
from metrack.estimators.states.persistence import dump
from metrack.registry import PAIR_LEARNERS
from metrack.registry import estimator as class_of
from metrack.spark.keyed import NO_SEQUENCE, Columns, Event, Kept, Recipe, learn, without_key
from metrack.spark.schemas import (
    EVENT,
    KEPT,
    POINT,
    check_columns,
    check_key,
    check_labels,
    check_points,
    check_sequence,
)


def track(
    feedback: Any,
    key: str = "metric",
    settings: Mapping[str, Any] | None = None,
    *,
    order: str = "sequence",
    estimator: str = "MetricTracker",
    items: Any = None,
    start: OnlineLearner | None = None,
    states_every: int = 1,
    single: bool = False,
    max_features: int = 4096,
) -> Any:
    """Learn a metric for each key, from a stream or a table of judged pairs.

    Parameters
    ----------
    feedback : DataFrame
        Streaming or not. A row is a judged pair: its key; its sequence number; the points ``x``
        and ``z``, arrays of numbers, or with ``items`` their ids ``a`` and ``b``; and the label
        ``y``: +1/-1, 1/0, true/false or same/different.
    key : str
        Column that says whose metric a row is about.
    settings : dict, optional
        Of the learners, such as ``{"n_components": 8}``.
    order : str
        Column of sequence numbers: whole, and growing within a key. A row whose number has been
        learned is not learned again; one that comes after a later one is set aside as late.
    estimator : str
        Which learner: "MetricTracker", "COMID", "OnlineITML", "LEGO" or "POLA".
    items : DataFrame, optional
        Columns ``id`` and ``embedding``, arrays of numbers; not streaming.
    start : fitted learner, optional
        What a new key starts from, such as a metric learned from everybody's feedback. It is
        sent to the workers, and not kept with each key. It brings its own settings.
    states_every : int
        After how many pairs of a key an event has its state; a table's events always have it.
    single : bool
        Hand states out in single precision: half the bytes, and no longer what was learned to the
        last bit. What is kept to go on with is exact in any case.
    max_features : int
        Most features of a point: bounds what a key can cost. Rows with more are set aside.

    Returns
    -------
    DataFrame
        An event per key and micro-batch; of a table, one per key. Streaming if ``feedback`` is.

        ``pairs``: how many were learned; ``loss``: their mean loss, each judged before it was
        learned; ``window``: how many recent pairs the metric rests on, if the learner can tell;
        ``change``: the pair at which a change was noticed just now, if one was; ``version``: pairs
        learned in all, those of ``start`` too; ``last``: the highest sequence number learned;
        ``repeated``: rows that had been learned before; ``bad``: rows set aside, see `bad_rows`;
        ``state_bytes``: what Spark keeps for the key; ``state``: bytes for `metrack.load`.

    Raises
    ------
    ValueError, TypeError
        Where columns or settings are wrong; before anything runs. Bad rows never stop a query.

    Notes
    -----
    The same rows give the same states, bit for bit, as a stream and as a table, with any
    number of partitions, and when the query was stopped or killed and started again with its
    checkpoint; and the same as one tracker after another, without Spark.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> import metrack
    >>> from metrack.spark import track
    >>> session = SparkSession.builder.master("local[1]").getOrCreate()
    >>> rows = [("ann", i, [0.0, i % 3.0], [i % 2.0, 0.0], 1 - i % 2) for i in range(40)]
    >>> columns = "metric string, sequence int, x array<double>, z array<double>, y int"
    >>> event = track(session.createDataFrame(rows, columns)).first()
    >>> event.pairs, event.bad
    (40, [])
    >>> metrack.load(event.state).predict([[[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]])
    array([-1,  1])
    >>> session.stop()
    """
    most = whole("max_features", max_features)
    recipe = _recipe(settings, estimator, start, most)._replace(
        key=key,
        order=order,
        # A table has one event per key, which would be of no use without its state.
        states_every=whole("states_every", states_every) if feedback.isStreaming else 1,
        single=single,
        max_features=most,
    )
    check_key(feedback, key, "feedback")
    check_sequence(feedback, order)
    check_labels(feedback)
    if key in EVENT.fieldNames():
        raise ValueError(f"key {key!r} is the name of a column of events; rename it")
    kind = T.StructType([T.StructField(key, feedback.schema[key].dataType), *EVENT.fields])
    grouped = _columns(feedback, recipe, items).groupBy(key)
    if not feedback.isStreaming:
        return grouped.applyInPandas(_on_table(recipe), kind)
    return grouped.applyInPandasWithState(
        _on_stream(recipe), kind, KEPT, outputMode="append", timeoutConf="NoTimeout"
    )


def _recipe(
    settings: Mapping[str, Any] | None,
    estimator: str,
    start: OnlineLearner | None,
    max_features: int,
) -> Recipe:
    """Learner and settings, found to be of use."""
    if start is not None:
        if type(start).__name__ not in PAIR_LEARNERS:
            raise TypeError(f"start is a {type(start).__name__}, which learns no pairs")
        if settings or estimator != "MetricTracker":
            raise ValueError("start brings its own learner and settings: leave these out")
        _check_repeatable(start)
        return Recipe(start=dump(start))
    if estimator not in PAIR_LEARNERS:
        raise ValueError(f"estimator is {estimator!r}; there are {', '.join(PAIR_LEARNERS)}")
    asked = dict(settings or {})
    if "preprocessor" in asked:
        raise TypeError("preprocessor is no setting here: pass items")
    if not isinstance(asked.get("random_state"), int | None):
        raise TypeError("random_state is a whole number here: each key has a generator of its own")
    learner = class_of(estimator)(**asked)
    learner.resolve(max_features)  # refuses settings that are wrong
    _check_repeatable(learner)
    return Recipe(estimator, asked)


def _check_repeatable(learner: OnlineLearner) -> None:
    """Refuse draws that would be others when a micro-batch is run again."""
    if getattr(learner, "output", None) == "sample" and learner.random_state is None:
        raise ValueError("output='sample' draws: give random_state, a whole number")


def _columns(feedback: Any, recipe: Recipe, items: Any) -> Any:
    """The columns that workers need, in types that pandas keeps."""
    number = F.coalesce(F.col(recipe.order).cast("bigint"), F.lit(NO_SEQUENCE))
    chosen = [
        F.col(recipe.key),
        number.alias("__sequence"),
        F.col("y").cast("string").alias("__y"),
    ]
    if items is None:
        check_points(feedback, ["x", "z"], "feedback")
        return feedback.select(
            *chosen, F.col("x").cast(POINT).alias("__x"), F.col("z").cast(POINT).alias("__z")
        )
    check_columns(feedback, ["a", "b"], "feedback")
    check_columns(items, ["id"], "items")
    check_points(items, ["embedding"], "items")
    if items.isStreaming:
        raise ValueError("items is a stream; give a table")
    ids = [F.col(name).cast("string").alias(f"__{name}") for name in ("a", "b")]
    found = feedback.select(*chosen, *ids)
    for id_, point in (("__a", "__x"), ("__b", "__z")):
        side = items.select(
            F.col("id").cast("string").alias(id_), F.col("embedding").cast(POINT).alias(point)
        )
        found = found.join(side, id_, "left")
    return found


def _on_table(recipe: Recipe) -> Callable[..., pd.DataFrame]:
    def learn_all(key: tuple[Any, ...], rows: pd.DataFrame) -> pd.DataFrame:
        return _frame(key, _learn(key, rows, None, recipe)[0], recipe)

    return learn_all


def _on_stream(recipe: Recipe) -> Callable[..., Iterator[pd.DataFrame]]:
    def learn_more(
        key: tuple[Any, ...], batches: Iterator[pd.DataFrame], state: Any
    ) -> Iterator[pd.DataFrame]:
        kept = Kept(*state.get) if state.exists else None
        frames = list(batches)
        rows = frames[0] if len(frames) == 1 else pd.concat(frames)
        event, now = _learn(key, rows, kept, recipe)
        if now is not None and now is not kept:
            state.update(tuple(now))
        yield _frame(key, event, recipe)

    return learn_more


def _learn(
    key: tuple[Any, ...], rows: pd.DataFrame, kept: Kept | None, recipe: Recipe
) -> tuple[Event, Kept | None]:
    columns = {name: rows[f"__{name}"].to_numpy() for name in ("sequence", "x", "z", "y")}
    ids = None
    if "__a" in rows:
        texts = ([v if isinstance(v, str) else None for v in rows[name]] for name in ("__a", "__b"))
        ids = list(zip(*texts, strict=True))
    found = Columns(**columns, ids=ids)
    if pd.isna(key[0]):
        return without_key(found, recipe), kept
    return learn(found, kept, recipe)


def _frame(key: tuple[Any, ...], event: Event, recipe: Recipe) -> pd.DataFrame:
    bad = [row._asdict() for row in event.bad]
    row = {recipe.key: key[0], **event._asdict(), "bad": bad}
    # Objects: pandas would guess a type for columns that hold None, another one for each key.
    return pd.DataFrame({name: [value] for name, value in row.items()}, dtype=object)
