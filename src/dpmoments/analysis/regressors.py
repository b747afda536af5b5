"""Target and regressors of a regression, by feature names, column names or a formula."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmoments.analysis.description import mean_noise
from dpmoments.analysis.released import Moments, columns_with_indices, feature_index, named_features
from dpmoments.base.arrays import FloatArray, first_largest
from dpmoments.base.errors import InputTypeError, InputValueError, listed, meant, shown, wrong_type
from dpmoments.schema.columns import Categorical
from dpmoments.schema.derived import DerivedColumn, Product
from dpmoments.schema.schema import Schema

# R formulas over released features.

_CALL = re.compile(r"\b[A-Za-z_]\w*\([^()]*\)")
_NAME = re.compile(r"(`[^`]*`|[A-Za-z_.][\w.]*)(?:\s*(?:\*\*|\^)\s*(\d+))?")


def _read_formula(formula: str, schema: Schema) -> tuple[str, list[str], bool | None]:
    """Parse an R formula into target, names and intercept (None: by default).

    ``a*b`` is ``a + b + a:b``.

    >>> from dpmoments import Boolean, Numeric, Product
    >>> schema = Schema(Numeric("age", 0, 100), Boolean("smoker"), Numeric("y", 0, 1), Product("smoker", "age"))
    >>> _read_formula("y ~ age*smoker", schema)
    ('y', ['age', 'smoker', 'smoker:age'], None)
    """
    from formulaic import Formula
    from formulaic.errors import FormulaicError

    for match in _NAME.finditer(_CALL.sub("", formula)):
        name, exponent = match.groups()
        if exponent is None:
            continue
        column, power = name.strip("`"), int(exponent)
        refused = (
            f"In a formula, '{match[0]}' crosses {column} with itself, so {column} would be fitted without its power. Write "
            f"I({column}**{power})."
        )
        raise InputValueError(
            f"{refused} The release needs dpm.Power({column!r}, {power}) in its schema.",
            shell=f"{refused} It must be a column 'kind: power' of the schema of the release.",
        )
    try:
        read: Any = Formula(formula)
        left, right = list(read.lhs), list(read.rhs)
    except (FormulaicError, AttributeError, TypeError, ValueError) as error:
        raise InputValueError(
            f"the formula {shown(formula)} cannot be read ({type(error).__name__}): write it as 'target ~ "
            "feature + feature', names with other signs in backticks: `hours-per-week`"
        ) from None
    if len(left) != 1:
        raise InputValueError(f"the formula {shown(formula)} has {len(left)} targets: a regression has one")
    terms = [[str(factor.expr) for factor in term.factors] for term in right]
    constant = ["1"] in terms
    features = [_feature(factors, schema) for factors in terms if factors != ["1"]]
    return _feature([str(factor.expr) for factor in left[0].factors], schema), features, None if constant else False


def _feature(factors: list[str], schema: Schema) -> str:
    """Return the column or feature that a term names."""
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
        raise InputValueError(
            f"The formula has '{cut}', and '{_name(cut)}' is not a categorical column of the release. C() takes the name of "
            "one column; numbers cannot be cut into levels after the release."
        )
    if len(names) == 2:
        refused = f"The formula has the product of {listed(names)}, which was not released."
        raise InputValueError(
            f"{refused} It needs dpm.Product({', '.join(map(repr, names))}) in the schema of the release.",
            shell=f"{refused} It must be a column 'kind: product' of the schema of the release.",
        )
    term = ":".join(names)
    advice = "A formula may use columns, features, C(column) and I(column**2); put names such as `hours-per-week` in backticks."
    raise InputValueError(f"'{term}' is not a column or feature of this release.{meant(term, known, advice)}")


def _name(factor: str) -> str:
    """Convert ``C(region)`` to ``region`` and ``I(age ** 2)`` to ``age^2``."""
    # Other terms are names.
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


@dataclass(frozen=True)
class Regressors:
    """Target and regressors of a regression, as indices of the release's features."""

    target: int
    features: tuple[int, ...]
    intercept: bool
    references: Mapping[str, str]  # reference level of every categorical column among the regressors
    # levels with too few rows to count despite the noise: merged into the reference level
    too_few: tuple[str, ...] = ()
    # indices of `features` and `too_few`, in the order asked for; none stands for `features`
    unmerged: tuple[int, ...] = ()

    @classmethod
    def chosen(
        cls,
        release: Moments,
        target: str,
        features: Sequence[str] | None,
        intercept: bool | None,
        reference: Sequence[str] | Mapping[str, str | int] | None,
    ) -> Regressors:
        """Find the named features; arguments as for :func:`dpmoments.analysis.regression.ols`."""
        names = release.feature_names
        if not isinstance(target, str):
            raise wrong_type("target", "the name of a feature, or a formula", target)
        if "~" in target and target not in names:
            if features is not None:
                raise InputValueError(
                    f"{shown(target)} is a formula, which names its features: leave features={shown(list(features))} out"
                )
            target, features, stated = _read_formula(target, release.schema)
            intercept = stated if intercept is None else intercept
            if stated is False and intercept:
                raise InputValueError(
                    "the formula has no intercept (it ends in - 1 or + 0), and an intercept is asked for: take one of them"
                )
        with_mean = release.noisy_sum is not None
        if intercept and not with_mean:
            needs = "an intercept needs the mean, and the release has none: "
            raise InputValueError(f"{needs}pass intercept=False", shell=f"{needs}use --no-intercept")
        constant = with_mean if intercept is None else intercept
        y = feature_index(release, target)
        related = _computed_with(release, y)
        if features is None:
            own = next(indices for _, indices in columns_with_indices(release) if y in indices)
            named = [index for index in range(len(names)) if index not in {*own, *related}]
        else:
            named = named_features(release, features, word="features")
        if y in named:
            raise InputValueError(f"the target {shown(names[y])} is among the features: leave it out")
        if computed := [names[index] for index in named if index in related]:
            raise InputValueError(
                f"{shown(computed[0])} and the target {shown(names[y])} are computed one from the other: leave it out"
            )
        stated_references = _stated_references(release, reference)
        kept, references = _without_references(release, named, stated_references, constant)
        if unused := sorted(set(stated_references) - set(references)):
            raise InputValueError(
                f"reference names '{unused[0]}', of which the regression does not have all levels: leave it out"
            )
        if not kept:
            raise InputValueError("no features: name at least one")
        lost = _lost_levels(release, kept, references)
        too_few = tuple(names[index] for index in kept if index in lost)
        unmerged, kept = tuple(kept), [index for index in kept if index not in lost]
        if not kept:
            raise InputValueError(
                f"noise hides how many rows {', '.join(map(str, [*too_few]))} have, so that nothing can be compared "
                f"with {references}"
            )
        return cls(y, tuple(kept), constant, references, too_few, unmerged)

    @property
    def with_rare_levels(self) -> Regressors:
        """Regression with a coefficient for each level of too few rows."""
        return replace(self, features=self.unmerged or self.features, too_few=())


@dataclass(frozen=True, eq=False)
class PenalizedLevels:
    """Coefficients of a penalized fit, which has no reference level, and those that it prints.

    Slopes of encoded rows. A level with too few rows has no coefficient of its own: it counts as an average one.
    """

    # of the p features with a coefficient of their own, complete columns' reference levels too
    indices: tuple[int, ...]
    # (k, p): the slopes of `Regressors.with_rare_levels`, relative to the reference levels, are this times those of `indices`
    relative: FloatArray
    constant: FloatArray  # (p,): 1 for a level whose slope the constant has, in original units
    # (p, q): weights are this times what is penalized; without the directions in which predictions do not change, and
    # orthonormal unless features have sizes
    basis: FloatArray

    def map_of(self, constant: bool) -> FloatArray:
        """Return the map of a constant, the features and the target to those in the basis."""
        inner = np.pad(self.basis.T, ((int(constant), 1), (int(constant), 1)))
        inner[-1, -1] = 1.0
        if constant:
            inner[0, 0] = 1.0
        return inner

    @classmethod
    def of(cls, release: Moments, chosen: Regressors, sizes: FloatArray | None = None) -> PenalizedLevels:
        """Return the coefficients to penalize.

        With ``sizes``, shape (d,), each is multiplied by the size of its feature.
        """
        if sizes is not None:
            result = cls.of(release, chosen)
            return replace(result, basis=result.basis / sizes[list(result.indices), None])
        if not chosen.references:
            return cls.of_features(chosen.features)
        wide, scale = chosen.with_rare_levels.features, release.encoding.scale
        left_out = _left_out(release, chosen)
        lost = _lost_levels(release, [*wide, *left_out], chosen.references, len(wide))
        indices = tuple(index for index in (*wide, *left_out) if index not in lost)
        relative = np.zeros((len(wide), len(indices)))
        for column, index in enumerate(indices):
            if index in wide:
                relative[wide.index(index), column] = 1.0
                continue
            others, total = left_out[index]
            for sign, moved in ((-1.0, others), (1.0, total)):
                at = [wide.index(other) for other in moved]
                relative[at, column] += sign * scale[moved] / scale[index]
        _, sizes, rows = np.linalg.svd(relative, full_matrices=False)
        constant = np.array([index in left_out and chosen.intercept and not left_out[index][1] for index in indices])
        return cls(indices, relative, constant.astype(np.float64), rows[sizes > 1e-9 * sizes[0]].T)

    @classmethod
    def of_features(cls, features: tuple[int, ...]) -> PenalizedLevels:
        """Return features of which each has its own coefficient, as it is."""
        k = len(features)
        return cls(features, np.eye(k), np.zeros(k), np.eye(k))


def _computed_with(release: Moments, target: int) -> set[int]:
    """Return features derived from the target's column, and those that it is derived from."""
    columns = columns_with_indices(release)
    own = next(column for column, indices in columns if target in indices)
    return {
        index
        for column, indices in columns
        for derived, other in ((column, own), (own, column))
        if isinstance(derived, DerivedColumn) and other.name in derived.stated.factors
        for index in indices
    }


def _stated_references(release: Moments, reference: Sequence[str] | Mapping[str, str | int] | None) -> dict[str, str]:
    """Return the feature to leave out of every named column."""
    if reference is None:
        return {}
    if isinstance(reference, str):
        raise InputTypeError("reference is a list of features, or a mapping of column to level, not one string")
    features = [f"{name}={level}" for name, level in reference.items()] if isinstance(reference, Mapping) else reference
    blocks = [column for column in release.schema.columns if isinstance(column, Categorical)]
    result: dict[str, str] = {}
    for feature in features:
        column = next((column for column in blocks if feature in column.feature_names), None)
        if column is None:
            raise InputValueError(
                f"reference {shown(feature)} is not a level of a categorical column of the release: give one as "
                "'column=level'"
            )
        if column.name in result:
            raise InputValueError(f"reference names two levels of '{column.name}': give one")
        result[column.name] = feature
    return result


def _without_references(
    release: Moments, named: Sequence[int], stated: Mapping[str, str], constant: bool
) -> tuple[list[int], dict[str, str]]:
    """Drop one level of every categorical whose levels add up to one."""
    names, chosen = release.feature_names, set(named)
    blocks = [(column, indices) for column, indices in columns_with_indices(release) if set(indices) <= chosen]
    references: dict[str, str] = {}
    dropped: set[int] = set()
    keeps_all = not constant
    for column, indices in blocks:
        if not isinstance(column, Categorical):
            continue
        if keeps_all and column.name not in stated:
            keeps_all = False
            continue
        reference = stated.get(column.name) or names[_most_frequent(release, indices)]
        references[column.name] = reference
        dropped.add(names.index(reference))
    for column, indices in blocks:
        if isinstance(column, DerivedColumn) and column.levels is not None:
            (other,) = (factor for factor in column.factors if not isinstance(factor, Categorical))
            if names.index(other.name) not in chosen:
                continue
            feature = references.get(column.levels.name) or stated.get(column.levels.name)
            levels = column.levels.feature_names
            own = next(indices for block, indices in columns_with_indices(release) if block.name == column.levels.name)
            left_out = levels.index(feature) if feature else _most_frequent(release, own) - own.start
            references[column.name] = column.feature_names[left_out]
            dropped.add(indices[left_out])
    return [index for index in named if index not in dropped], references


def _left_out(release: Moments, chosen: Regressors) -> dict[int, tuple[list[int], list[int]]]:
    """Return reference levels that are a sum less the other levels: those, and the sum."""
    # So it is in a complete column: the sum is the constant (none), or another column that has all its levels.
    wide, names, blocks = set(chosen.with_rare_levels.features), release.feature_names, columns_with_indices(release)
    complete = {column.name for column, _ in blocks if isinstance(column, Categorical) and column.complete}
    whole = [[*own] for column, own in blocks if column.name in complete and set(own) <= wide]
    result: dict[int, tuple[list[int], list[int]]] = {}
    for column, own in blocks:
        if column.name not in chosen.references:
            continue
        reference = names.index(chosen.references[column.name])
        others = [index for index in own if index != reference]
        if isinstance(column, DerivedColumn):
            assert column.levels is not None
            total = [names.index(factor.name) for factor in column.factors if factor is not column.levels]
            if column.levels.name in complete:
                result[reference] = others, total
        elif column.name in complete and (chosen.intercept or whole):
            result[reference] = others, [] if chosen.intercept else whole[0]
    return result


_RARE_SHARE = 0.1
"""Share of the rows below which a level is rare."""


def _lost_levels(
    release: Moments, kept: Sequence[int], references: Mapping[str, str], k: int | None = None
) -> set[int]:
    """Return rare levels whose variance identifies no coefficient among k, or these."""
    # A level that is not rare keeps its own line, if only to say that its coefficient is not estimable.
    if not references or release.noisy_sum is None or (noise := release.noise) is None:
        return set()
    mean = release.unit_ball_mean if release.center is None else release.unit_ball_mean - release.center
    spread = np.diag(release.unit_ball_covariance) * release.n_rows
    shares, of_shares = release.mean, np.nan_to_num(mean_noise(release)[0], nan=np.inf)
    levels = set()
    for column, indices in columns_with_indices(release):
        if isinstance(column, Categorical) and column.name in references:
            # where noise hides a share, it is as likely to be any other: 1/k
            weights = 1.0 / (1.0 + (len(indices) * of_shares[indices]) ** 2)
            likely = weights * shares[indices] + (1.0 - weights) / len(indices)
            levels |= {index for index, share in zip(indices, likely.tolist(), strict=True) if share < _RARE_SHARE}

    def floor(feature: int) -> float:
        direction = np.zeros(len(mean) + 1)
        direction[0], direction[feature + 1] = -mean[feature], 1.0
        return 2.0 * math.sqrt(0.5 * noise.variance_of_square(direction) * ((k or len(kept)) + 1))

    lost = {index for index in kept if index in levels and spread[index] < floor(index)}
    for _, indices in columns_with_indices(release):
        named = [index for index in indices if index in kept]
        if named and lost.issuperset(named):  # what was asked for keeps a line of its own
            lost.discard(max(named, key=lambda index: float(shares[index])))
    return lost


def _most_frequent(release: Moments, levels: range) -> int:
    """Return the level of the largest released share (the largest square without a mean)."""
    shares = release.mean if release.noisy_sum is not None else np.diag(release.second_moment)
    return levels[int(first_largest(shares[levels.start : levels.stop]))]


# The matrix that a regression solves with, as the release's repair leaves it.


def regressed_moment(release: Moments, *, intercept: bool) -> FloatArray:
    """Return the covariance, or without an intercept the second moment about zero, shape (d, d)."""
    # In encoded units; zero is the zero of the original units, or of the unit ball if no mean was released.
    if intercept:
        return release.unit_ball_covariance
    if release.noisy_sum is None:
        return release.unit_ball_gram / release.n_rows
    scale = release.encoding.scale
    return release.second_moment / np.outer(scale, scale)
