"""What columns must be: checked before a query starts, since later nobody would see the error."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as T

BAD_ROW = T.StructType().add("sequence", "long").add("why", "string").add("row", "string")
EVENT = (
    T.StructType()
    .add("pairs", "long")
    .add("loss", "double")
    .add("window", "double")
    .add("change", "long")
    .add("version", "long")
    .add("last", "long")
    .add("repeated", "long")
    .add("bad", T.ArrayType(BAD_ROW))
    .add("state_bytes", "long")
    .add("state", "binary")
)
KEPT = (
    T.StructType()
    .add("header", "string")
    .add("low", "string")
    .add("high", "string")
    .add("last", "long")
    .add("recent", "binary")
)
POINT = T.ArrayType(T.DoubleType())

WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
NUMBERS = (*WHOLE, T.FloatType, T.DoubleType, T.DecimalType)
LABELS = (*NUMBERS, T.BooleanType, T.StringType)
NO_KEYS = (T.ArrayType, T.MapType, T.StructType, T.FloatType, T.DoubleType)


def check_columns(df: Any, names: Sequence[str], what: str) -> None:
    """Refuse a DataFrame that lacks some columns."""
    for name in names:
        if name not in df.columns:
            raise ValueError(f"{what} has no column {name!r}; it has {', '.join(df.columns)}")


def check_key(df: Any, key: str, what: str) -> None:
    """Refuse keys that rows cannot be grouped by."""
    check_columns(df, [key], what)
    kind = df.schema[key].dataType
    if isinstance(kind, NO_KEYS):
        raise ValueError(f"{key} is {kind.simpleString()}; a key is text, a whole number or a date")


def check_sequence(df: Any, order: str) -> None:
    """Refuse sequence numbers that are not whole."""
    check_columns(df, [order], "feedback")
    kind = df.schema[order].dataType
    if not isinstance(kind, WHOLE):
        raise ValueError(
            f"{order} is {kind.simpleString()}; it must be a whole number that grows within a key, "
            "such as Kafka's offset, or unix_micros of a timestamp"
        )


def check_points(df: Any, names: Sequence[str], what: str) -> None:
    """Refuse points that are not arrays of numbers."""
    check_columns(df, names, what)
    for name in names:
        kind = df.schema[name].dataType
        if not (isinstance(kind, T.ArrayType) and isinstance(kind.elementType, NUMBERS)):
            raise ValueError(
                f"{name} is {kind.simpleString()}; it must be an array of numbers. Of vectors "
                "pyspark.ml.functions.vector_to_array makes arrays, array(...) of single columns"
            )


def check_labels(df: Any) -> None:
    """Refuse labels that can be none."""
    check_columns(df, ["y"], "feedback")
    kind = df.schema["y"].dataType
    if not isinstance(kind, LABELS):
        raise ValueError(f"y is {kind.simpleString()}; labels are +1/-1, 1/0, booleans or text")


def check_free(df: Any, names: Sequence[str]) -> None:
    """Refuse a DataFrame that has columns which are to be added."""
    for name in names:
        if name in df.columns:
            raise ValueError(f"there is a column {name!r} already; rename it")
