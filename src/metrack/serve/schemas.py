"""What requests hold, as the OpenAPI description says it; see `answers`."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Vector = list[float]
Text = Annotated[str, Field(max_length=256)]
Key = Annotated[str, Field(min_length=1, max_length=256)]
Value = Annotated[float, Field(allow_inf_nan=False)] | str | None
Record = dict[Text, Value]
Count = Annotated[int, Field(ge=1, le=1000)]


class Body(BaseModel):
    """What is sent; unknown entries are refused, since a misspelt one would be forgotten."""

    model_config = ConfigDict(extra="forbid", strict=True)


class MetricBody(Body):
    """A metric to make."""

    n_features: Annotated[int, Field(ge=1)]
    estimator: Text = "MetricTracker"
    settings: dict[Text, bool | int | float | str | None] = {}
    features: list[Text] | None = None
    question: Annotated[
        Text | None, Field(description="that judges are asked; may be changed at any time")
    ] = None
    instructions: Annotated[str, Field(max_length=10_000)] | None = None
    shared: Annotated[
        float | None,
        Field(ge=0.0, le=1.0, description="share of a judge's pairs that others have answered"),
    ] = None

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"n_features": 3, "estimator": "MetricTracker"}]}
    )


class Pair(Body):
    """A judgement: two points, or the ids of two items."""

    x: Vector | None = None
    z: Vector | None = None
    a: Key | None = None
    b: Key | None = None
    # No default: who forgets it would be unsure of everything.
    y: Annotated[
        float | bool | None,
        Field(
            description="1 alike, -1 not alike, or true and false, or 1 and 0; null unsure",
            json_schema_extra={"enum": [1, -1, 0, True, False, None]},
        ),
    ]
    id: Annotated[Key | None, Field(description="A repeated id is not learned twice.")] = None
    judge: Text | None = None


class Triplet(Body):
    """The anchor is more like the one that is near than like the one that is far."""

    anchor: Vector | Key
    near: Vector | Key
    far: Vector | Key
    id: Key | None = None
    judge: Text | None = None


class Labelled(Body):
    """A point, or the id of an item, with its class."""

    x: Vector | None = None
    a: Key | None = None
    label: Key
    id: Key | None = None
    judge: Text | None = None


class FeedbackBody(Body):
    """Judgements: pairs, triplets or points, as the metric learns from."""

    pairs: list[Pair] | None = None
    triplets: list[Triplet] | None = None
    points: list[Labelled] | None = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"pairs": [{"x": [1, 2, 3], "z": [1, 2, 4], "y": 1, "id": "click-17"}]}]
        },
    )


class Unjudged(Body):
    """Two points, or the ids of two items."""

    x: Vector | None = None
    z: Vector | None = None
    a: Key | None = None
    b: Key | None = None


class PairsBody(Body):
    """Pairs to compare."""

    pairs: list[Unjudged]

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"pairs": [{"x": [1, 2, 3], "z": [1, 2, 4]}]}]},
    )


class ProbabilityBody(Body):
    """Pairs; or, of a metric that predicts classes, points or the ids of items."""

    pairs: list[Unjudged] | None = None
    vectors: list[Vector] | None = None
    ids: list[Key] | None = None

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"pairs": [{"x": [1, 2, 3], "z": [1, 2, 4]}]}]},
    )


class PointsBody(Body):
    """Points to embed, or the ids of items."""

    vectors: list[Vector] | None = None
    ids: list[Key] | None = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"vectors": [[1, 2, 3]]}]})


class ItemsBody(Body):
    """Items: known ids are changed, others added."""

    ids: list[Key]
    vectors: list[Vector]
    texts: list[Annotated[str, Field(max_length=10_000)] | None] | None = None
    images: list[Annotated[str, Field(max_length=2000)] | None] | None = None
    records: Annotated[
        list[Record | None] | None, Field(description="fields by name, which judges see aligned")
    ] = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"ids": ["pear", "fig"], "vectors": [[1, 2, 3], [1, 2, 4]]}]
        },
    )


class NeighboursBody(Body):
    """Whose neighbours are wanted."""

    id: Key | None = None
    vector: Vector | None = None
    k: Count = 10
    shown: Annotated[bool, Field(description="with what judges see of them")] = False
    at: Annotated[
        Literal["now", "before"], Field(description="before: the last change that was noticed")
    ] = "now"

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "pear", "k": 1}]})


class SuggestBody(Body):
    """How many pairs to judge next are wanted, and by whom."""

    n: Count = 1
    judge: Text | None = None
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] | None = None


class CorrectionBody(Body):
    """Another answer in the place of an earlier one."""

    sequence: Annotated[int, Field(ge=1, lt=1 << 62, description="of the one that was wrong")]
    y: Annotated[
        float | bool | None, Field(description="1 alike, -1 not alike, or true, false; null unsure")
    ]
    judge: Text | None = None
    id: Annotated[Key | None, Field(description="A repeated id is not learned twice.")] = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"sequence": 1, "y": -1}]})


class ReplayBody(Body):
    """Whose log is learned again."""

    source: Text
