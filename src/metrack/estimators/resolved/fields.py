"""What fields of settings hold: in memory, and as JSON says it."""

from collections.abc import Iterable, Mapping
from typing import Any

from metrack.engine.numerics.records import Sizes, declared

UNITS = ("root_mean_square", "data")  # in which differences are measured


class Name:
    """One of several names, of which one may be None.

    Parameters
    ----------
    names : collection, or mapping from names
    """

    def __init__(self, names: Iterable[str | None]) -> None:
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


class Record:
    """A NamedTuple, whose own fields declare what they hold."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def plain(self, value: Any) -> dict[str, Any]:
        """For JSON."""
        fields = declared(self.of).items()
        return {field: holds.plain(getattr(value, field)) for field, holds in fields}

    def checked(self, value: Any, name: str, sizes: Sizes) -> Any:
        """The record, if it holds what its fields declare."""
        fields = declared(self.of).items()
        found = {f: holds.checked(value[f], f"{name}.{f}", sizes) for f, holds in fields}
        return self.of(**found)


class RecordOf:
    """A record of one of several kinds, each of which has a name in JSON."""

    def __init__(self, kinds: Mapping[str, Any]) -> None:
        self.kinds = kinds

    def plain(self, value: Any) -> dict[str, Any]:
        """For JSON."""
        kind = next(name for name, of in self.kinds.items() if of is type(value))
        return {"kind": kind, **Record(type(value)).plain(value)}

    def checked(self, value: Any, name: str, sizes: Sizes) -> Any:
        """The record, if it is such a one."""
        kind = Name(self.kinds).checked(value["kind"], f"{name}.kind", sizes)
        return Record(self.kinds[str(kind)]).checked(value, name, sizes)


class Several:
    """Some values, of which each holds the same."""

    def __init__(self, each: Any, most: int) -> None:
        self.each, self.most = each, most

    def plain(self, value: tuple[Any, ...]) -> list[Any]:
        """For JSON."""
        return [self.each.plain(one) for one in value]

    def checked(self, value: Any, name: str, sizes: Sizes) -> tuple[Any, ...]:
        """The values, if they are such ones."""
        if not isinstance(value, list) or not 1 <= len(value) <= self.most:
            raise ValueError(f"{name} is {value!r}; it must be a list of 1 to {self.most}")
        return tuple(self.each.checked(one, f"{name}.{i}", sizes) for i, one in enumerate(value))


def scaled(units: str) -> bool:
    """Whether differences are scaled to a mean size."""
    return units == "root_mean_square"
