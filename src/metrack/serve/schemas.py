"""What requests and answers hold, as the OpenAPI description says it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Vector = list[float]
Text = Annotated[str, Field(max_length=256)]
Key = Annotated[str, Field(min_length=1, max_length=256)]
Count = Annotated[int, Field(ge=1, le=1000)]


class Body(BaseModel):
    """What is sent; unknown entries are refused, since a misspelt one would be forgotten."""

    model_config = ConfigDict(extra="forbid", strict=True)


class MetricBody(Body):
    """A metric to make."""

    n_features: Annotated[int, Field(ge=1)]
    estimator: Text = "MetricTracker"
    settings: dict[Text, float | str | None] = {}
    features: list[Text] | None = None

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


class FeedbackBody(Body):
    """Judgements."""

    pairs: list[Pair]

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
    at: Annotated[
        Literal["now", "before"], Field(description="before: the last change that was noticed")
    ] = "now"

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "pear", "k": 1}]})


class SuggestBody(Body):
    """How many pairs to judge next are wanted, and by whom."""

    n: Count = 1
    judge: Text | None = None
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] | None = None


class ReplayBody(Body):
    """Whose log is learned again."""

    source: Text


class Described(BaseModel):
    """Where a metric stands."""

    name: str
    n_features: int
    estimator: str
    settings: dict[str, Any]
    features: list[str] | None
    pairs: Annotated[int, Field(description="learned")]
    sequence: Annotated[int, Field(description="of the last judgement that was acknowledged")]
    version: Annotated[int, Field(description="sequence of the last judgement behind the snapshot")]
    log_starts: Annotated[int, Field(description="sequence of the first judgement in the log")]
    loss: Annotated[float | None, Field(description="mean of the last 256 pairs")]
    plain_loss: Annotated[float | None, Field(description="plain distance's, on the same pairs")]
    effective_window: float | None
    last_change: int | None
    threshold: float | None
    rank: int | None
    error: str | None


class AllDescribed(BaseModel):
    """All metrics that a client may read."""

    metrics: list[Described]


class Accepted(BaseModel):
    """What became of feedback; it is on the disk."""

    accepted: int
    duplicates: int
    sequence: int


class Distances(BaseModel):
    """Distances of pairs, whether they are at most the threshold, and how likely they are alike.

    Learners of other kinds than an ensemble tell no probabilities.
    """

    distances: list[float]
    alike: list[bool]
    probabilities: list[float] | None
    threshold: float
    version: int


class Embedded(BaseModel):
    """Points where Euclidean distance is the learned one."""

    vectors: list[Vector]
    version: int


class ItemsPut(BaseModel):
    """How many items there are now."""

    items: int


class Neighbour(BaseModel):
    """An item and its distance."""

    id: str
    distance: float


class NeighboursFound(BaseModel):
    """Nearest items, the nearest first."""

    neighbours: list[Neighbour]
    version: int


class Shown(BaseModel):
    """An item as a judge sees it."""

    id: str
    text: str | None
    image: str | None
    vector: Vector


class Suggestion(BaseModel):
    """A pair to judge."""

    a: Shown
    b: Shown


class Suggestions(BaseModel):
    """Pairs to judge next."""

    pairs: list[Suggestion]
    version: int


class Picture(BaseModel):
    """Items in the plane."""

    ids: list[str]
    points: list[Vector]
    version: int


class Judge(BaseModel):
    """Answers of one judge."""

    judge: str
    alike: int
    not_alike: int
    unsure: int


class Judges(BaseModel):
    """Judges' answers, kept apart."""

    judges: list[Judge]


class Replayed(BaseModel):
    """How many judgements the log has now."""

    sequence: int


class LogCut(BaseModel):
    """Where the log starts now."""

    log_starts: int


class Problem(BaseModel):
    """Why a request was refused, and what to do."""

    detail: str
