"""The kinds of column a schema is made of, and the rule each has for cells that break it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

__all__ = ["Boolean", "Categorical", "Column", "Coordinate", "Numeric", "blank_entries", "column_from_dict"]

FloatArray = npt.NDArray[np.float64]
MissingNumber = Literal["error", "center", "drop"]
MissingLevel = Literal["error", "zero", "drop"]

LARGEST_BOUND = 1e100
"""Beyond it, or with bounds closer than its inverse, squares of a column's unit times noise could leave float64's range."""
LARGEST_LEVEL = 2**53 - 1
"""Integers up to here are told apart by float64, in which frames hold integer columns with gaps."""


@dataclass(frozen=True)
class Numeric:
    """A numeric column with public bounds.

    Parameters
    ----------
    name : str
    lower, upper : float
        Public bounds, lower < upper; cells outside are moved to the nearer bound. They must come from public knowledge
        (a codebook, physics, law), never from the table: a bound read off the data leaks it.
    missing : {"error", "center", "drop"}
        What an empty, NaN or infinite cell does: stop the release (``"error"``: whoever sees that a release stopped learns
        that such a cell exists), count as the midpoint of the bounds (``"center"``), or drop its row (``"drop"``).

    Raises
    ------
    ValueError
        If a bound is blank, not finite, or the bounds are reversed or equal.

    Examples
    --------
    >>> Numeric("income", 0, 200_000, missing="center")
    Numeric(name='income', lower=0.0, upper=200000.0, missing='center')
    """

    name: str
    lower: float | None = None
    upper: float | None = None
    missing: MissingNumber = "error"

    kind: ClassVar[str] = "numeric"

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_choice(self.name, "missing", self.missing, ("error", "center", "drop"))
        if self.lower is None or self.upper is None:
            raise ValueError(
                f"column {self.name!r} has no bounds: give lower and upper from public knowledge (they are never read "
                "off the data, because that would leak it)"
            )
        for label, bound in (("lower", self.lower), ("upper", self.upper)):
            if isinstance(bound, bool) or not isinstance(bound, int | float | np.integer | np.floating):
                raise TypeError(f"column {self.name!r}: {label} must be a number, got {type(bound).__name__}")
            number = bound if isinstance(bound, int) else float(bound)  # an int may be beyond floats
            if not -LARGEST_BOUND <= number <= LARGEST_BOUND:
                raise ValueError(
                    f"column {self.name!r}: {label}={bound!r} must be finite, and at most {LARGEST_BOUND:g} in magnitude"
                )
        object.__setattr__(self, "lower", float(self.lower))
        object.__setattr__(self, "upper", float(self.upper))
        lower, upper = self.bounds
        if not lower < upper:
            raise ValueError(f"column {self.name!r}: lower={lower!r} must be below upper={upper!r}")
        if upper - lower < 1.0 / LARGEST_BOUND:
            raise ValueError(
                f"column {self.name!r}: lower={lower!r} and upper={upper!r} are too close together for floating point: "
                "describe the column in a smaller unit"
            )

    @property
    def bounds(self) -> tuple[float, float]:
        """(lower, upper)."""
        assert self.lower is not None
        assert self.upper is not None
        return self.lower, self.upper

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One feature, of the column's name."""
        return (self.name,)

    def offset(self, centered: bool) -> FloatArray:
        """The value that maps to 0, shape (1,)."""
        lower, upper = self.bounds
        return np.array([lower + (upper - lower) / 2.0 if centered else 0.0])

    def unit(self, centered: bool) -> FloatArray:
        """The distance from the offset that maps to 1, shape (1,).

        The greater of the offset's computed distances to the bounds: where the midpoint is rounded they differ, and
        (value − offset)/unit stays in [−1, 1] all the same.
        """
        lower, upper = self.bounds
        offset = float(self.offset(centered)[0])
        return np.array([max(upper - offset, offset - lower)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        return _to_dict(self)


@dataclass(frozen=True)
class Boolean:
    """A true/false column: one feature, 0 or 1 in the table's units.

    Parameters
    ----------
    name : str
    missing : {"error", "center", "drop"}
        As for :class:`Numeric`; ``"center"`` counts as one half.

    Examples
    --------
    >>> Boolean("employed").feature_names
    ('employed',)
    """

    name: str
    missing: MissingNumber = "error"

    kind: ClassVar[str] = "boolean"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_choice(self.name, "missing", self.missing, ("error", "center", "drop"))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One feature, of the column's name."""
        return (self.name,)

    def offset(self, centered: bool) -> FloatArray:
        """The value that maps to 0, shape (1,)."""
        return np.array([0.5 if centered else 0.0])

    def unit(self, centered: bool) -> FloatArray:
        """The distance from the offset that maps to 1, shape (1,)."""
        return np.array([0.5 if centered else 1.0])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        return _to_dict(self)


@dataclass(frozen=True)
class Categorical:
    """A column of k public levels, encoded as k features ``name=level``, one of them 1 and the others 0.

    Parameters
    ----------
    name : str
    levels : sequence of str or int
        All levels that count, from public knowledge. A file's text cells are compared with ``str(level)``.
    missing : {"error", "zero", "drop"}
        What an empty cell does: stop the release, count as no level (all k features 0), or drop its row.
    other : {"drop", "zero"}
        What a value outside ``levels`` does: drop its row, or count as no level.

    Examples
    --------
    >>> Categorical("region", ["north", "south"]).feature_names
    ('region=north', 'region=south')
    """

    name: str
    levels: tuple[str | int, ...]
    missing: MissingLevel = "error"
    other: Literal["drop", "zero"] = "drop"

    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_choice(self.name, "missing", self.missing, ("error", "zero", "drop"))
        _check_choice(self.name, "other", self.other, ("drop", "zero"))
        if self.levels is None or isinstance(self.levels, str) or not isinstance(self.levels, Sequence | np.ndarray):
            raise ValueError(
                f"column {self.name!r} has no levels: list them from public knowledge (they are never read off the data)"
            )
        levels = tuple(level.item() if isinstance(level, np.generic) else level for level in self.levels)
        if not levels:
            raise ValueError(f"column {self.name!r} has no levels: list them from public knowledge")
        if any(isinstance(level, bool) or not isinstance(level, str | int) for level in levels):
            raise TypeError(f"column {self.name!r}: levels must be strings or integers (Boolean is for true/false)")
        if len({type(level) for level in levels}) > 1:
            raise TypeError(f"column {self.name!r}: levels must be all strings or all integers")
        if len(set(levels)) < len(levels):
            raise ValueError(f"column {self.name!r}: a level is listed twice")
        for level in levels:
            if isinstance(level, int) and abs(level) > LARGEST_LEVEL:
                raise ValueError(
                    f"column {self.name!r}: integer levels go up to 2^53 − 1, which {level} is beyond: give the levels, and the "
                    "column, as text"
                )
            if isinstance(level, str):
                _check_text(level, f"column {self.name!r}: a level")
        object.__setattr__(self, "levels", levels)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """``name=level`` for every level."""
        return tuple(f"{self.name}={level}" for level in self.levels)

    def offset(self, centered: bool) -> FloatArray:
        """Zeros: a one-hot block is not centred."""
        del centered
        return np.zeros(len(self.levels))

    def unit(self, centered: bool) -> FloatArray:
        """Ones: a one-hot block has norm 1 as it is."""
        del centered
        return np.ones(len(self.levels))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        return _to_dict(self) | {"levels": list(self.levels)}


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of an array whose rows are bounded together (``Schema.unit_ball``) or not at all.

    Parameters
    ----------
    name : str
    missing : {"error", "center", "drop"}
        What a NaN or infinite cell does: stop, count as 0, or drop its row.
    """

    name: str
    missing: MissingNumber = "error"

    kind: ClassVar[str] = "coordinate"

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_choice(self.name, "missing", self.missing, ("error", "center", "drop"))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One feature, of the coordinate's name."""
        return (self.name,)

    def offset(self, centered: bool) -> FloatArray:
        """0: a coordinate is taken as it is."""
        del centered
        return np.zeros(1)

    def unit(self, centered: bool) -> FloatArray:
        """1: a coordinate is taken as it is."""
        del centered
        return np.ones(1)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        return _to_dict(self)


Column = Numeric | Categorical | Boolean | Coordinate
KINDS: Mapping[str, type[Column]] = {column.kind: column for column in (Numeric, Categorical, Boolean, Coordinate)}


def column_from_dict(values: object) -> Column:
    """Read one column of a schema file.

    Raises
    ------
    ValueError
        If the kind is unknown, an entry is unknown or a needed one is blank.
    """
    if not isinstance(values, Mapping):
        raise ValueError("every column is a mapping with a name and a kind")
    entries = dict(values)
    name, kind = entries.get("name"), entries.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"column {name!r} has kind {kind!r}: use {', '.join(KINDS)}")
    options = {option.name for option in fields(KINDS[kind])}
    if unknown := sorted(set(entries) - options, key=str):
        raise ValueError(
            f"column {name!r} has unknown entries {', '.join(map(repr, unknown))}: use {', '.join(sorted(options))}"
        )
    if name is None:
        raise ValueError("a column has no name")
    if kind == "categorical":
        entries.setdefault("levels", None)
    return KINDS[kind](**entries)


def blank_entries(values: object) -> str | None:
    """What is still to be filled in of one column of a schema file, in words; None where nothing is.

    Examples
    --------
    >>> blank_entries({"name": "age", "kind": "numeric", "lower": 0, "upper": None})
    "column 'age' has no bounds (upper)"
    """
    if not isinstance(values, Mapping):
        return None
    needed = {"numeric": ("lower", "upper"), "categorical": ("levels",)}.get(str(values.get("kind")), ())
    blank = [key for key in dict.fromkeys(("name", "kind", *needed, *values)) if values.get(key) in (None, [])]
    bounds = [key for key in blank if key in ("lower", "upper")]
    parts = [key for key in blank if key not in bounds] + ([f"bounds ({', '.join(bounds)})"] if bounds else [])
    return f"column {values.get('name')!r} has no {' and no '.join(parts)}" if parts else None


def _to_dict(column: Column) -> dict[str, Any]:
    return {"kind": column.kind} | {option.name: getattr(column, option.name) for option in fields(column)}


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"a column's name is a non-empty string, got {name!r}")
    _check_text(name, "a column's name")


def _check_text(text: str, what: str) -> None:
    # Found now, not when a release that has spent its budget is written to a file.
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what}, {text!r}, is not valid Unicode text (it holds half of a surrogate pair)") from None


def _check_choice(column: str, option: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"column {column!r}: {option}={value!r} must be one of {', '.join(map(repr, choices))}")
