"""Which layout the columns of a file have."""

import csv
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from metrack.tracking.layouts import Layout, list_of

EXPECTED = (
    "expected x_..., z_... and y (wide), or u_... and y (differences), or a, b and y (with "
    "--items); say which columns these are with --columns, as in a=id_a,b=id_b,y=label"
)
LAYOUTS = ("auto", "wide", "ids")
ROLES = ("a", "b", "y", "x", "z", "u")


class Columns(NamedTuple):
    """What a user says about the columns of a file of pairs."""

    header: Sequence[str] | None = None  # all names in order, for CSV that has none
    names: Mapping[str, str] = {}  # of those that are named otherwise, by role


def parse_columns(text: str) -> Columns:
    """The option ``--columns``: ROLE=COLUMN for some, or names for all, in order.

    Examples
    --------
    >>> parse_columns("a=id_a, b=id_b, y=label").names
    {'a': 'id_a', 'b': 'id_b', 'y': 'label'}
    >>> parse_columns("x_1,z_1,y").header
    ['x_1', 'z_1', 'y']
    """
    entries = [entry.strip() for entry in next(csv.reader([text], skipinitialspace=True), [])]
    if not any("=" in entry for entry in entries):
        return Columns(header=entries)
    names: dict[str, str] = {}
    for entry in entries:
        role, _, column = (part.strip() for part in entry.partition("="))
        if not (column and (role in ROLES or role[:2] in ("x_", "z_", "u_"))):
            raise ValueError(
                f"--columns: {entry!r} is not ROLE=COLUMN, as in a=id_a,b=id_b,y=label; roles are "
                f"{', '.join(ROLES)}, x_..., z_... and u_..."
            )
        if role in names or column in names.values():
            raise ValueError(f"--columns: {role if role in names else column} is there twice")
        names[role] = column
    return Columns(names=names)


class ReadSpec(NamedTuple):
    """What the rows of a file are to be."""

    layout: str = "auto"  # of LAYOUTS
    known: Mapping[str, int] | None = None  # ids of the items, where there are any
    labelled: bool = True
    features: Sequence[str] | None = None  # what was learned before, in this order
    columns: Columns = Columns()

    def column(self, role: str) -> str:
        """The file's own name for a column."""
        return self.columns.names.get(role, role)


def pair_layout(
    columns: Sequence[str], example: Mapping[str, object], spec: ReadSpec
) -> tuple[Layout, list[str]]:
    """The layout of a file of pairs, and the names of its features.

    Parameters
    ----------
    columns : names in the order of the file
    example : one row
        Only looked at where points are lists.
    spec : ReadSpec
    """
    _check_unique(columns)
    names = {
        role: column
        for role, column in spec.columns.names.items()
        if column in columns or spec.labelled or role != "y"
    }
    for role, column in names.items():
        if column not in columns:
            raise ValueError(f"there is no column {column} for {role}; {_found(columns)}")
    roles = {column: role for role, column in names.items()}
    # A column that has the name of a role which another one plays is left alone.
    taken = [c for c in names if c not in roles]
    cast = [roles.get(column, column) for column in columns if column not in taken]
    shown = {**example, **{role: example.get(column) for role, column in names.items()}}
    layout, features = _pair_layout(cast, shown, spec)
    return _renamed(layout, names), features


def _pair_layout(
    columns: Sequence[str], example: Mapping[str, object], spec: ReadSpec
) -> tuple[Layout, list[str]]:
    """The same, where columns are named by their roles."""
    label = None
    if spec.labelled:
        if "y" not in columns:
            raise ValueError(f"there is no column y; {_found(columns)}; {EXPECTED}")
        label = "y"
    kind = spec.layout
    if kind == "auto":
        kind = "ids" if spec.known is not None else "wide"
    if kind == "ids":
        return _by_id(columns, spec, label), list(spec.features or [])
    if spec.known is not None:
        raise ValueError("items are for pairs of ids; leave out --items or choose --layout ids")
    return _wide(columns, example, spec, label)


def _renamed(layout: Layout, names: Mapping[str, str]) -> Layout:
    """The layout with the file's own names, which are those that messages should have."""

    def of(roles: Sequence[str]) -> tuple[str, ...]:
        return tuple(names.get(role, role) for role in roles)

    return layout._replace(
        vectors=tuple(of(roles) for roles in layout.vectors),
        keys=of(layout.keys),
        label=layout.label and names.get(layout.label, layout.label),
    )


def item_layout(
    columns: Sequence[str], example: Mapping[str, object], features: Sequence[str] | None = None
) -> tuple[Layout, list[str]]:
    """The layout of a file of items: an id where there is one, and a point."""
    _check_unique(columns)
    keys = ("id",) if "id" in columns else ()
    if "embedding" in columns:
        width = len(list_of(example.get("embedding"), "embedding"))
        _check_features(width, None, features)
        layout = Layout((("embedding",),), width, lists=True, keys=keys)
        return layout, list(features or numbered(width))
    names = [name for name in columns if name != "id"]
    if features is not None and set(features) <= set(names):
        names = list(features)
    if not names:
        raise ValueError(f"no columns of features; {_found(columns)}")
    _check_features(len(names), names, features)
    return Layout((tuple(names),), len(names), keys=keys), names


def numbered(n_features: int) -> list[str]:
    """Names for features that have none."""
    return [str(i) for i in range(n_features)]


def _by_id(columns: Sequence[str], spec: ReadSpec, label: str | None) -> Layout:
    if spec.known is None:
        raise ValueError("pairs of ids need the items they refer to: --items FILE")
    missing = [name for name in ("a", "b") if name not in columns]
    if missing:
        raise ValueError(f"there is no column {missing[0]}; {_found(columns)}; {EXPECTED}")
    return Layout(keys=("a", "b"), known=spec.known, label=label)


def _wide(
    columns: Sequence[str], example: Mapping[str, object], spec: ReadSpec, label: str | None
) -> tuple[Layout, list[str]]:
    left = [name[2:] for name in columns if name.startswith("x_")]
    right = {name[2:] for name in columns if name.startswith("z_")}
    if left or right:
        single = sorted(set(left) ^ right)
        if single:
            name = f"x_{single[0]}" if single[0] in right else f"z_{single[0]}"
            raise ValueError(f"there is no column {name} beside its counterpart")
        return _by_feature("xz", left, spec, label)
    if "x" in columns and "z" in columns:
        return _by_list("xz", example, spec, label)
    if own := [name[2:] for name in columns if name.startswith("u_")]:
        return _by_feature("u", own, spec, label)
    if "u" in columns:
        return _by_list("u", example, spec, label)
    if "a" in columns and "b" in columns:
        raise ValueError("pairs of ids (a, b) need the items they refer to: --items FILE")
    raise ValueError(f"no columns of pairs; {_found(columns)}; {EXPECTED}")


def _by_feature(
    sides: str, names: list[str], spec: ReadSpec, label: str | None
) -> tuple[Layout, list[str]]:
    """A column for each feature of each side; of differences there is one."""
    if spec.features is not None and set(spec.features) == set(names):
        names = list(spec.features)
    _check_features(len(names), names, spec.features)
    vectors = tuple(tuple(f"{side}_{name}" for name in names) for side in sides)
    return Layout(vectors, len(names), label=label), names


def _by_list(
    sides: str, example: Mapping[str, object], spec: ReadSpec, label: str | None
) -> tuple[Layout, list[str]]:
    """A column of lists for each side."""
    width = len(list_of(example.get(sides[0]), sides[0]))
    _check_features(width, None, spec.features)
    layout = Layout(tuple((side,) for side in sides), width, lists=True, label=label)
    return layout, list(spec.features or numbered(width))


def _check_features(width: int, names: Sequence[str] | None, learned: Sequence[str] | None) -> None:
    """Refuse features other than those learned before."""
    if width == 0:
        raise ValueError("points have 0 features; at least 1 is needed")
    if learned is None:
        return
    if len(learned) != width:
        raise ValueError(f"{width} features, but the state was learned on {len(learned)}")
    if names is not None and list(names) != list(learned):
        differing = next(a for a, b in zip(names, learned, strict=True) if a != b)
        raise ValueError(
            f"feature {differing!r} is not one that the state was learned on; those are "
            f"{', '.join(learned[:5])}{', ...' if len(learned) > 5 else ''}"
        )


def _check_unique(columns: Sequence[str]) -> None:
    twice = [name for i, name in enumerate(columns) if name in columns[:i]]
    if twice:
        raise ValueError(f"column {twice[0]!r} is there twice")


def _found(columns: Sequence[str]) -> str:
    shown = ", ".join(columns[:8])
    return f"found {shown}{', ...' if len(columns) > 8 else ''}"
