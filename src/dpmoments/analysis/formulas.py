"""R formulas over released features."""

from __future__ import annotations

import ast
import re
from typing import Any

from dpmoments.foundation.values import shown
from dpmoments.schema.columns import Categorical
from dpmoments.schema.derived import DerivedColumn
from dpmoments.schema.powers_and_products import Product
from dpmoments.schema.schema import Schema

__all__ = ["read_formula"]

NO_ARITHMETIC = (
    "a release holds sums of products of its features, and nothing can be computed from cells any more: columns, C(column), "
    "a:b and a*b of products, and I(a**2) of powers that the schema has are all that a formula can name"
)


def read_formula(formula: str, schema: Schema) -> tuple[str, list[str], bool | None]:
    """The target, the columns or features, and whether there is an intercept (None: as usual), of an R formula.

    ``income ~ age + C(region) + age:smoker``: terms are columns or features of the release, in backticks where their names have
    other signs; ``a:b`` is the product of the schema of that name, ``I(age**2)`` its power; ``a*b`` is ``a + b + a:b``; ``- 1``
    leaves the intercept out.

    Raises
    ------
    ValueError
        If the formula cannot be read, or a term is not in the release.

    Examples
    --------
    >>> from dpmoments import Boolean, Numeric, Product
    >>> schema = Schema(Numeric("age", 0, 100), Boolean("smoker"), Numeric("y", 0, 1), Product("smoker", "age"))
    >>> read_formula("y ~ age*smoker", schema)
    ('y', ['age', 'smoker', 'smoker:age'], None)
    """
    from formulaic import Formula
    from formulaic.errors import FormulaicError

    try:
        read: Any = Formula(formula)
        left, right = list(read.lhs), list(read.rhs)
    except (FormulaicError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"the formula {shown(formula)} cannot be read ({type(error).__name__}): write it as 'target ~ feature + feature', "
            "names with other signs in backticks: `hours-per-week`"
        ) from None
    if len(left) != 1:
        raise ValueError(f"the formula {shown(formula)} has {len(left)} targets: a regression has one")
    terms = [[str(factor.expr) for factor in term.factors] for term in right]
    constant = ["1"] in terms
    features = [_feature(factors, schema) for factors in terms if factors != ["1"]]
    return _feature([str(factor.expr) for factor in left[0].factors], schema), features, None if constant else False


def _feature(factors: list[str], schema: Schema) -> str:
    """The column or feature that a term is."""
    known = {*schema.feature_names, *(column.name for column in schema.columns)}
    names = [_name(factor) for factor in factors]
    levels = {column.name for column in schema.columns if isinstance(column, Categorical)}
    treated = [
        name for factor, name in zip(factors, names, strict=True) if factor.startswith("C(") and name not in levels
    ]
    if len(names) == 1 and names[0] in known and not treated:
        return names[0]
    for column in schema.columns:
        if not isinstance(column, DerivedColumn) or not isinstance(column.stated, Product):
            continue
        if sorted(column.stated.factors) == sorted(names):
            return column.name
        for feature in column.feature_names:
            if sorted(feature.split(":")) == sorted(names):
                return feature
    if cut := next((factor for factor in factors if factor.startswith("C(")), ""):
        raise ValueError(
            f"the formula has {cut!r}, and {_name(cut)!r} is no categorical column of the release: C() takes the name of one "
            "alone (its reference level is given by reference=), and nothing else can be cut into levels any more"
        )
    if len(names) == 2:
        raise ValueError(
            f"the formula has {':'.join(names)!r}, and the schema has no product of the two: it must be released with "
            f"dpm.Product({names[0]!r}, {names[1]!r}) in the schema"
        )
    raise ValueError(
        f"the formula has {':'.join(names)!r}, which is no column and no feature of the release: {NO_ARITHMETIC}; names with "
        "other signs than letters, digits, points and underscores stand in backticks, `hours-per-week`"
    )


def _name(factor: str) -> str:
    """``C(region)`` → ``region``; ``I(age ** 2)`` → ``age^2``; what is no call is a name."""
    if treated := re.fullmatch(r"C\(\s*`?([^`(),]+?)`?\s*\)", factor):
        return treated[1]
    try:
        tree = ast.parse(factor, mode="eval").body
    except SyntaxError:
        return factor  # a name in backticks
    if isinstance(tree, ast.Call) and ast.unparse(tree.func) == "I" and len(tree.args) == 1:
        tree = tree.args[0]
    match tree:
        case ast.BinOp(left=ast.Name(id=base), op=ast.Pow() | ast.BitXor(), right=ast.Constant(value=int(exponent))):
            return f"{base}^{exponent}"
    return factor
