"""What fields of settings hold, and records of settings as JSON says them."""

from collections.abc import Collection, Mapping
from typing import Any

from metrack.engine.numerics.records import Sizes, declared

UNITS = ("root_mean_square", "data")  # in which differences are measured


class Name:
    """What a field holds: one of several names, of which one may be None.

    Parameters
    ----------
    names : collection, or mapping from names
    """

    def __init__(self, names: Collection[str | None]) -> None:
        self.names = names

    def plain(self, value: str | None) -> str | None:
        """For JSON."""
        return value

    def checked(self, value: Any, name: str, sizes: Sizes) -> str | None:
        """The name, if it is known."""
        if not (value is None or isinstance(value, str)) or value not in self.names:
            known = ", ".join(map(str, self.names))
            raise ValueError(f"{name} is {value!r}, which is unknown; known are {known}")
        return value


def to_plain(resolved: Any) -> dict[str, Any]:
    """What JSON can say of it."""
    fields = declared(type(resolved)).items()
    plain = {field: holds.plain(getattr(resolved, field)) for field, holds in fields}
    return {"kind": resolved.kind, **plain}


def from_plain_of(kinds: Mapping[str, Any], plain: Mapping[str, Any], name: str) -> Any:
    """The record of one of these kinds, if it holds what its fields declare."""
    kind = kinds[str(Name(kinds).checked(plain["kind"], f"{name}.kind", {}))]
    fields = declared(kind).items()
    return kind(**{f: holds.checked(plain[f], f"{name}.{f}", {}) for f, holds in fields})


def scaled(units: str) -> bool:
    """Whether differences are scaled to a mean size."""
    return units == "root_mean_square"
