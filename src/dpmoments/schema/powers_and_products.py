"""Powers and products as they are stated, by the names of columns: what derived features are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpmoments.foundation.checks import check_name
from dpmoments.foundation.values import shown

__all__ = ["Power", "Product"]

EXPONENTS = (2, 3, 4)


@dataclass(frozen=True, repr=False)
class Power:
    """A whole power of a numeric column of the schema: one feature, ``age^2``.

    Parameters
    ----------
    column : str
        The name of a :class:`~dpmoments.Numeric` column with bounds, which may stand before or after in the schema.
    exponent : {2, 3, 4}

    Raises
    ------
    TypeError, ValueError
        If the column is not given by its name, or the exponent is none of these.

    Notes
    -----
    It is computed from the cell that the column's own rules leave: moved into its bounds, at their midpoint where it is missing
    under ``"center"``. Its bounds follow from those of the column. It counts as one column in the bound on a row's norm, so that
    all other cells get more noise: :func:`dpmoments.forecast` says how much.

    Examples
    --------
    >>> from dpmoments import Numeric, Schema
    >>> schema = Schema(Numeric("age", -10, 100), Power("age", 2))
    >>> schema.feature_names, schema.columns[1].bounds
    (('age', 'age^2'), (0.0, 10000.0))
    """

    column: str
    exponent: int

    kind: ClassVar[str] = "power"

    def __post_init__(self) -> None:
        check_name(self.column)
        exponent = self.exponent
        if isinstance(exponent, bool) or not isinstance(exponent, int | np.integer):
            raise TypeError(
                f"power of {self.column!r}: the exponent must be a whole number, got {type(exponent).__name__}"
            )
        if exponent not in EXPONENTS:
            raise ValueError(
                f"power of {self.column!r}: exponent={shown(exponent)} must be 2, 3 or 4 (the column itself is its first power)"
            )
        object.__setattr__(self, "exponent", int(exponent))

    @property
    def name(self) -> str:
        """``column^exponent``."""
        return f"{self.column}^{self.exponent}"

    @property
    def factors(self) -> tuple[str, ...]:
        """The column's name."""
        return (self.column,)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {"kind": self.kind, "column": self.column, "exponent": self.exponent}

    def __repr__(self) -> str:
        return f"Power({self.column!r}, {self.exponent})"


@dataclass(frozen=True, repr=False, init=False)
class Product:
    """The product of two columns of the schema: an interaction, ``age:smoker``.

    Parameters
    ----------
    *factors : str
        The names of two columns: numeric ones with bounds, Booleans, and one categorical at most. A Boolean is 0 or 1. With a
        categorical of k levels the product is k features, ``age:region=north``, …: the other factor in the feature of the
        row's level, 0 in the others.

    Raises
    ------
    TypeError, ValueError
        If there are not two names, or they are the same.

    Notes
    -----
    It is computed from the cells that the columns' own rules leave, as a :class:`Power` is; a block of k features counts as one
    column, too.

    Examples
    --------
    >>> from dpmoments import Boolean, Categorical, Numeric, Schema
    >>> age, region = Numeric("age", 0, 100), Categorical("region", ["north", "south"])
    >>> schema = Schema(age, Boolean("smoker"), region, Product("age", "smoker"), Product("age", "region"))
    >>> schema.feature_names[4:]
    ('age:smoker', 'age:region=north', 'age:region=south')
    """

    factors: tuple[str, ...]

    kind: ClassVar[str] = "product"

    def __init__(self, *factors: str) -> None:
        if len(factors) != 2:
            raise ValueError(f"a product has two factors, the names of two columns, got {len(factors)}")
        for factor in factors:
            check_name(factor)
        if factors[0] == factors[1]:
            raise ValueError(f"the product of {factors[0]!r} with itself: use Power({factors[0]!r}, 2)")
        object.__setattr__(self, "factors", factors)

    @property
    def name(self) -> str:
        """``first:second``."""
        return ":".join(self.factors)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {"kind": self.kind, "factors": list(self.factors)}

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.factors))})"
