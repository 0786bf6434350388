"""What a metric is about: what judges are asked, and how; it may be changed at any time."""

from typing import Any, NamedTuple, Self

QUESTION = "Are these two alike?"
SHARED = 0.2  # of the pairs that a judge gets, where others have answered too


class About(NamedTuple):
    """What a metric is about.

    Attributes
    ----------
    question : str
        That judges are asked of each pair.
    instructions : str
        For judges, as long as need be.
    shared : float
        Share of a judge's pairs that another judge has answered, so that they can be compared.
    """

    question: str = QUESTION
    instructions: str = ""
    shared: float = SHARED

    @classmethod
    def of(cls, content: dict[str, Any]) -> Self:
        """As a row or a request has it: what is missing is as always."""
        return cls(**{k: v for k, v in content.items() if k in cls._fields and v is not None})
