"""Comparisons: from pairs of records to what a tracker takes."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from metrack.compare import state
from metrack.compare.columns import Column, Table, table_of
from metrack.compare.kinds import KINDS, Kind, kind_of
from metrack.compare.steps import in_steps, step_names
from metrack.compare.texts import Text
from metrack.engine.numerics.kernels import Ints
from metrack.estimators.differences import Differences
from metrack.estimators.inputs.settings import Configurable, choice
from metrack.storage import State, StateFolder, read

ALL_TEXT = "all text"  # of which each field of text is a part


class Prepared(NamedTuple):
    """Records taken apart once, to be compared with any others."""

    n_records: int
    fields: dict[str, Any]

    def __len__(self) -> int:
        return self.n_records


class Comparisons(Configurable):
    """Pairs of records, compared field by field: from two tables to what a tracker learns from.

    A comparison is 0 where nothing differs and at most 1. Texts are compared by letters (trigrams),
    by words, by what the one has of the other, and by codes, which are words with a digit; rare
    ones count for more. Numbers and dates are compared by how far they are apart, and by being
    others at all. A value that is missing differs in nothing but in a comparison of its own, so
    that a tracker learns what that means. What `transform` gives are square roots: their squares,
    weighed, add up to the squared distance.

    Nothing here learns from judgements; what is learned are kinds of fields, and how rare terms
    are.

    Parameters
    ----------
    fields : "auto" or dict
        Of fields to kinds: "text"; "short", names and the like by edits, with rapidfuzz (the extra
        ``records``); "number"; "date"; "exact"; "vector", embeddings. Other fields are left out.
        "auto" tells the kinds by the values, and compares all text together, too; numbers and dates
        may be text, and digits that are no quantity, such as telephones, are texts.
    steps : bool
        Tell each comparison that is not just yes or no by how near it is to 1/3, 2/3 and 1. A
        tracker then learns what a little, much and all of a difference is worth each for itself,
        and in which company, as a forest would ask; there are up to three times as many features.

    Attributes
    ----------
    fields_ : dict
        The kind of each field.

    Examples
    --------
    >>> from metrack.compare import Comparisons
    >>> ours = [{"title": "Canon EOS 5D", "price": "1,999.00"}, {"title": "Nikon D90"}]
    >>> theirs = [{"title": "canon eos-5d camera", "price": 1899.0}, {"title": "Canon bag"}]
    >>> compare = Comparisons().fit(ours, theirs)
    >>> compare.fields_
    {'title': 'text', 'price': 'number'}
    >>> u = compare.transform(ours, theirs, [[0, 0], [0, 1], [1, 1]])
    >>> u.shape
    (3, 9)
    >>> u.names[:4]
    ['title: letters', 'title: words', 'title: contained', 'title: missing']
    """

    def __init__(self, fields: str | Mapping[str, str] = "auto", steps: bool = False) -> None:
        self.fields = fields
        self.steps = steps

    def fit(self, left: Any, right: Any = None) -> Self:
        """Forget everything, then learn what fields hold and how rare terms are.

        Parameters
        ----------
        left, right : DataFrame or list of dicts
            Records, of two sources whose fields have the same names; without right, of one.
        """
        choice("steps", self.steps, {False: False, True: True})
        tables = _tables(left, right)
        _check_common(tables)
        kinds = self._kinds(tables)
        whole = [name for name, kind in kinds.items() if kind == "text"]
        if self.fields != "auto" or len(whole) < 2:
            whole = []
        compared: dict[str, Kind] = {name: KINDS[kind]() for name, kind in kinds.items()}
        if whole:
            compared[ALL_TEXT] = Text(whole=True)
        for name, kind in compared.items():
            kind.start([each for table in tables for each in _column(table, name, whole)])
        self.fields_: dict[str, str] = kinds
        self._whole, self._compared = whole, compared
        self._tell_of_others(tables)
        return self

    def partial_fit(self, left: Any, right: Any = None) -> Self:
        """Go on with more records: what is compared stays, and how rare terms are is learned."""
        if not hasattr(self, "fields_"):
            return self.fit(left, right)
        tables = _tables(left, right)
        self._tell_of_others(tables)
        for name, kind in self._compared.items():
            for table in tables:
                kind.learn(_column(table, name, self._whole))
        return self

    def prepare(self, records: Any) -> Prepared:
        """Records taken apart once, to be compared often; by how rare terms are now.

        Parameters
        ----------
        records : DataFrame or list of dicts
        """
        check_is_fitted(self, "fields_")
        if isinstance(records, Prepared):
            return records
        table = table_of(records)
        self._tell_of_others([table])
        return Prepared(
            table.n_records,
            {
                name: kind.prepare(_column(table, name, self._whole))
                for name, kind in self._compared.items()
            },
        )

    def transform(self, left: Any, right: Any = None, rows: ArrayLike | None = None) -> Differences:
        """Compare pairs of records.

        Parameters
        ----------
        left, right : DataFrame, list of dicts, or what `prepare` gave
            Without right, both records of a pair are of the one table.
        rows : array (n_pairs, 2), optional
            Which row of left with which of right; by default each with the one at its place.

        Returns
        -------
        Differences (n_pairs, n_comparisons)
            Non-negative, 0 where nothing differs.
        """
        first = self.prepare(left)
        second = first if right is None else self.prepare(right)
        pairs = _rows(rows, len(first), len(second), right is None)
        found = [
            column
            for name, kind in self._compared.items()
            for column in kind.compare(first.fields[name], second.fields[name], pairs)
        ]
        if self.steps:
            named = zip(self._comparisons(), found, strict=True)
            found = [step for name, column in named for step in in_steps(name, column)]
        return Differences(np.sqrt(np.column_stack(found)), self._names())

    def fit_transform(self, left: Any, right: Any = None, rows: ArrayLike | None = None) -> Any:
        """Fit to records, then compare pairs of them."""
        return self.fit(left, right).transform(left, right, rows)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the comparisons: the field's, and what of it is compared."""
        check_is_fitted(self, "fields_")
        return np.array(self._names(), dtype=object)

    def save(self, path: str | Path, tracker: Any = None) -> None:
        """Write what was learned into a folder, from which `load` brings it back.

        Parameters
        ----------
        path : path of a folder
        tracker : optional
            A learner that belongs to it: both are written at once, and `metrack.load` brings the
            learner back from the same folder.
        """
        with StateFolder(Path(path)) as folder:
            folder.write(self.pack(tracker))

    @classmethod
    def load(cls, path: str | Path) -> "Comparisons":
        """Comparisons as they were saved."""
        return cls.unpack(read(Path(path)), str(path))

    def pack(self, tracker: Any = None) -> State:
        """What `save` writes."""
        check_is_fitted(self, "fields_")
        fields = self.fields if isinstance(self.fields, str) else dict(self.fields)
        learned = state.Learned(fields, self.steps, self.fields_, self._whole, self._compared)
        return state.packed(learned, tracker)

    @classmethod
    def unpack(cls, saved: State, where: str) -> "Comparisons":
        """The inverse of `pack`; ``where`` names the state in errors."""
        found = state.unpacked(saved, where)
        loaded = cls(found.fields, found.steps)
        loaded.fields_, loaded._whole, loaded._compared = found.kinds, found.whole, found.compared
        return loaded

    def _comparisons(self) -> list[str]:
        return [
            f"{name}: {comparison}"
            for name, kind in self._compared.items()
            for comparison in kind.comparisons
        ]

    def _names(self) -> list[str]:
        """Of what is given out."""
        names = self._comparisons()
        return [step for name in names for step in step_names(name)] if self.steps else names

    def _kinds(self, tables: list[Table]) -> dict[str, str]:
        """The kind of each field, as asked for or by the values."""
        known = dict.fromkeys(name for table in tables for name in table.columns)
        if not any(table.n_records for table in tables) or not known:
            raise ValueError("there are no records; pass at least one, with at least one field")
        if self.fields == "auto":
            found = {
                name: kind_of([each for table in tables for each in table.column(name)])
                for name in known
            }
        elif isinstance(self.fields, Mapping) and self.fields:
            found = dict(self.fields)
        else:
            raise ValueError(f"fields={self.fields!r}; give 'auto', or a dict of fields to kinds")
        for name, kind in found.items():
            choice(f"fields[{name!r}]", kind, KINDS)
            if name not in known:
                raise ValueError(
                    f"fields has {name!r}, which no record has; there are {', '.join(known)}"
                )
        return found

    def _tell_of_others(self, tables: list[Table]) -> None:
        """Warn of fields that came after "auto" had settled which ones are compared."""
        if self.fields != "auto":
            return
        others = [name for table in tables for name in table.columns if name not in self.fields_]
        if others:
            warnings.warn(
                f"the field {others[0]!r} was not there in fit, and is not compared; to compare "
                "it, fit anew on records that have it, with a tracker that starts anew",
                stacklevel=3,
            )


def _tables(left: Any, right: Any) -> list[Table]:
    tables = [table_of(left, "left")]
    return tables if right is None else [*tables, table_of(right, "right")]


def _check_common(tables: list[Table]) -> None:
    """Refuse two tables that have no field of the same name."""
    fields = [list(table.columns) for table in tables if table.columns]
    if len(fields) == 2 and not set(fields[0]) & set(fields[1]):
        left, right = (", ".join(each) for each in fields)
        raise ValueError(
            f"no field is in both tables: left has {left}; right has {right}. Give those that "
            "belong together the same name"
        )


def _column(table: Table, name: str, whole: list[str]) -> Column:
    """A field's values; for all text together, those of its fields one after another."""
    if name != ALL_TEXT or not whole:
        return table.column(name)
    columns = [table.column(each) for each in whole]
    return [
        " ".join(str(each) for each in values if each is not None)
        for values in zip(*columns, strict=True)
    ]


def _rows(rows: ArrayLike | None, n_left: int, n_right: int, alone: bool) -> Ints:
    """Row numbers, all of which there are."""
    if rows is None:
        if alone:
            raise ValueError("one table: give rows, the pairs of its row numbers to compare")
        if n_left != n_right:
            raise ValueError(
                f"left has {n_left} records and right {n_right}; give rows, or as many of each"
            )
        return np.column_stack([np.arange(n_left)] * 2)
    found = np.asarray(rows)
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise ValueError(
            "rows must be whole numbers, the row of left and that of right for each pair: shape "
            f"(n_pairs, 2); got {found.dtype} of shape {found.shape}"
        )
    for side, (name, n) in enumerate((("left", n_left), ("right", n_right))):
        wrong = np.flatnonzero((found[:, side] < 0) | (found[:, side] >= n))
        if wrong.size:
            raise ValueError(
                f"rows[{wrong[0]}, {side}] = {found[wrong[0], side]}; {name} has {n} records, "
                f"numbered from 0"
            )
    return found.astype(np.int64)
