"""How a metric is doing, in a word for a colour and a sentence."""

from typing import Any, NamedTuple

FEW = 50  # judgements of which nothing can be said yet
LATE = 512  # pairs for which a change counts as new
WAITING = 5000  # judgements that wait
WORSE = 1.02  # times plain distance's loss


class Health(NamedTuple):
    """How a metric is doing.

    Attributes
    ----------
    level : str
        "new", "good", "watch" or "bad".
    text : str
    """

    level: str
    text: str


def health(described: dict[str, Any]) -> Health:
    """Of a metric as clients see it."""
    pairs, waits = described["pairs"], described["sequence"] - described["version"]
    loss, plain_loss = described["loss"], described["plain_loss"]
    changed = described["last_change"]
    if described["error"]:
        return Health("bad", f"Learning has stopped: {described['error']}")
    if waits > WAITING:
        return Health("watch", f"{waits:,} judgements wait to be learned.")
    if pairs == 0:
        return Health("new", "No judgements yet: judge some pairs, or send them.")
    if pairs < FEW:
        return Health("new", f"{pairs} judged so far: the first figures mean something from {FEW}.")
    if changed and pairs - changed < LATE:
        return Health("watch", "What counts has just changed, and is being learned anew.")
    if loss is not None and plain_loss is not None and loss > WORSE * plain_loss:
        return Health("watch", "No better than plain distance on the latest judgements.")
    if described["accuracy"] is not None:
        right = int(100.0 * described["accuracy"] + 0.5)  # as the page rounds
        return Health("good", f"Well: {right} % of the latest judgements were as predicted.")
    return Health("good", "Well: it learns as judgements come.")
