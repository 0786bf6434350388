"""What answers hold, as the OpenAPI description says it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from metrack.serve.schemas import Vector


class Sparks(BaseModel):
    """Mean losses of the last stretches."""

    loss: list[float | None]
    plain_loss: list[float | None]


class Health(BaseModel):
    """How a metric is doing."""

    level: Literal["new", "good", "watch", "bad"]
    text: str


class Described(BaseModel):
    """Where a metric stands."""

    name: str
    question: str
    instructions: str
    shared: float
    learns_from: Annotated[str, Field(description="pairs, triplets or points")]
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
    accuracy: Annotated[float | None, Field(description="of the last 256, before learning")]
    auc: Annotated[float | None, Field(description="of the last 256, before learning")]
    effective_window: float | None
    last_change: int | None
    last_change_time: Annotated[float | None, Field(description="seconds since 1970")]
    threshold: float | None
    rank: int | None
    sparks: Annotated[Sparks, Field(description="losses of the last stretches")]
    hours: Annotated[
        list[tuple[int, int]], Field(description="hours since 1970, and judgements of each")
    ]
    error: str | None
    health: Health


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

    Learners of other kinds than an ensemble tell no probabilities; those of triplets or classes
    call no pair alike.
    """

    distances: list[float]
    alike: list[bool] | None
    probabilities: list[float] | None
    threshold: float | None
    version: int


class Probabilities(BaseModel):
    """How likely pairs are alike; or how likely points are of each class, and the likeliest."""

    probabilities: list[float] | list[list[float]]
    classes: list[str] | None
    predicted: list[str] | None
    version: int


class Embedded(BaseModel):
    """Points where Euclidean distance is the learned one."""

    vectors: list[Vector]
    version: int


class ItemsPut(BaseModel):
    """How many items there are now."""

    items: int


class Face(BaseModel):
    """What judges see of an item beside its features."""

    text: str | None
    image: str | None
    record: dict[str, Any] | None


class Named(Face):
    """The same, with the item's id."""

    id: str


class Neighbour(BaseModel):
    """An item and its distance; where it was asked for, with what judges see of it."""

    id: str
    distance: float
    text: str | None = None
    image: str | None = None
    record: dict[str, Any] | None = None


class NeighboursFound(BaseModel):
    """Nearest items, the nearest first."""

    neighbours: list[Neighbour]
    of: Named | None = None
    version: int


class Shown(Named):
    """An item as a judge sees it."""

    vector: Vector


class Suggestion(BaseModel):
    """A pair to judge."""

    a: Shown
    b: Shown


class Progress(BaseModel):
    """How far judging has come."""

    answers: Annotated[int, Field(description="sure ones, to the question of today")]
    alike: int
    unsure: int
    question: Annotated[int, Field(description="1, and one more with each change that was noticed")]
    auc: Annotated[float | None, Field(description="expected of pairs drawn at random")]
    ahead: Annotated[
        float | None,
        Field(description="share of what is called alike that as many answers again may change"),
    ]
    stop: Annotated[bool, Field(description="whether that is little")]


class Suggestions(BaseModel):
    """Pairs to judge next."""

    pairs: list[Suggestion]
    progress: Progress
    version: int


class Picture(BaseModel):
    """Items in the plane."""

    ids: list[str]
    points: list[Vector]
    before: Annotated[list[Vector] | None, Field(description="the last change")]
    version: int


class Judge(BaseModel):
    """Answers of one judge."""

    judge: str
    alike: int
    not_alike: int
    unsure: int


class Agreement(BaseModel):
    """How far two judges agree on pairs that both have answered, by their first answers."""

    judges: list[str]
    pairs: int
    share: float
    kappa: Annotated[float | None, Field(description="Cohen's")]


class Judges(BaseModel):
    """Judges' answers, kept apart; how far they agree; pairs that they disagree on."""

    judges: list[Judge]
    agreement: list[Agreement]
    disagreements: int


class Said(BaseModel):
    """What somebody has answered."""

    sequence: int
    time: float
    judge: str
    y: int | None


class Answer(Said):
    """The same, with the pair."""

    a: Shown
    b: Shown
    corrects: int | None


class Answers(BaseModel):
    """Answers, the last first."""

    answers: list[Answer]


class Disagreement(BaseModel):
    """A pair that some call alike and others not."""

    a: Shown
    b: Shown
    answers: list[Said]


class Disagreements(BaseModel):
    """Pairs to be settled."""

    pairs: list[Disagreement]
    total: int


class Replayed(BaseModel):
    """How many judgements the log has now."""

    sequence: int


class LogCut(BaseModel):
    """Where the log starts now."""

    log_starts: int


class Problem(BaseModel):
    """Why a request was refused, and what to do."""

    detail: str
    request: Annotated[str, Field(description="by which the server's log has it")]
