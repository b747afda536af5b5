"""Target and regressors of a regression, by feature names, column names or a formula."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpmoments.analysis.description import mean_noise
from dpmoments.analysis.formula import WithTerms, most_frequent, read_formula
from dpmoments.analysis.released import Moments, columns_with_indices, feature_index, named_features
from dpmoments.base.errors import InputTypeError, InputValueError, listed, shown, wrong_type
from dpmoments.base.values import FloatArray
from dpmoments.schema.columns import Categorical
from dpmoments.schema.derived import DerivedColumn


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
    def read(
        cls,
        release: Moments,
        target: str,
        features: Sequence[str] | None = None,
        intercept: bool | None = None,
        reference: Sequence[str] | Mapping[str, str | int] | None = None,
    ) -> tuple[Moments, Regressors]:
        """Find the features of a formula, or named ones, and the release that has its terms."""
        if not isinstance(target, str):
            raise wrong_type("target", "the name of a feature, or a formula", target)
        if "~" in target and target not in release.feature_names:
            if features is not None:
                raise InputValueError(
                    f"{shown(target)} is a formula, which names its features: leave features={shown(list(features))} out"
                )
            release, target, features, has_intercept, named = read_formula(
                release, target, _stated_references(release, reference)
            )
            if intercept and not has_intercept:
                raise InputValueError(
                    "the formula has no intercept (it ends in - 1 or + 0), and an intercept is asked for: take one of them"
                )
            intercept, reference = (intercept if has_intercept else False), list(named.values())
        return release, cls.chosen(release, target, features, intercept, reference)

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
        of_products = {
            name
            for column in release.schema.derived_columns
            if column.name in references
            for name in column.stated.factors
        }
        if unused := sorted(set(stated_references) - set(references) - of_products):
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
                f"noise hides how many rows {', '.join(map(str, too_few))} have, so that nothing can be compared "
                f"with {references}"
            )
        return cls(y, tuple(kept), constant, references, too_few, unmerged)

    def require_independent(self, release: Moments) -> None:
        """Raise if terms of a formula follow from each other in every row."""
        if not isinstance(release, WithTerms):
            return
        # weights of the constant and the features; levels of a complete column add up to the constant
        scale, columns = release.base.encoding.scale, columns_with_indices(release)
        complete = [levels for column, levels in columns if isinstance(column, Categorical) and column.complete]
        sums = [np.append(-1.0, np.isin(np.arange(len(scale)), levels)) for levels in complete]
        weights = np.vstack([*sums, release.weights[list(self.features)]]) * np.append(float(not self.intercept), scale)
        combined, sizes, _ = np.linalg.svd(weights / np.linalg.norm(weights, axis=1)[:, None])
        if len(sizes) == len(weights) and sizes[-1] > 1e-9:
            return
        own = np.abs(combined[len(sums) :, -1]) > 1e-6
        names = listed(release.feature_names[index] for index in np.array(self.features)[own])
        raise InputValueError(
            f"of {names}{' and the constant' if self.intercept else ''} one follows from the others in every row, so that no "
            "table tells their coefficients apart: leave one out of the formula"
        )

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
        wide, scale, names = chosen.with_rare_levels.features, release.encoding.scale, release.feature_names
        blocks = columns_with_indices(release)

        # Reference levels that are a sum less the other levels: these, and the sum. So it is in a complete column: the sum
        # is the constant (none), or another column that has all its levels.
        complete = {column.name for column, _ in blocks if isinstance(column, Categorical) and column.complete}
        whole = [[*own] for column, own in blocks if column.name in complete and set(own) <= set(wide)]
        left_out: dict[int, tuple[list[int], list[int]]] = {}
        for column, own in blocks:
            if column.name not in chosen.references:
                continue
            reference = names.index(chosen.references[column.name])
            others = [index for index in own if index != reference]
            if isinstance(column, DerivedColumn):
                assert column.levels is not None
                if column.levels.name in complete:
                    total = [names.index(factor.name) for factor in column.factors if factor is not column.levels]
                    left_out[reference] = others, total
            elif column.name in complete and (chosen.intercept or whole):
                left_out[reference] = others, [] if chosen.intercept else whole[0]

        lost = _lost_levels(release, [*wide, *left_out], chosen.references, len(wide))
        indices = tuple(index for index in (*wide, *left_out) if index not in lost)
        relative = np.zeros((len(wide), len(indices)))
        for at, index in enumerate(indices):
            if index in wide:
                relative[wide.index(index), at] = 1.0
                continue
            for sign, moved in zip((-1.0, 1.0), left_out[index], strict=True):
                relative[[wide.index(other) for other in moved], at] += sign * scale[moved] / scale[index]
        _, sizes, rows = np.linalg.svd(relative, full_matrices=False)
        constant = np.array([index in left_out and chosen.intercept and not left_out[index][1] for index in indices])
        return cls(indices, relative, constant.astype(np.float64), rows[sizes > 1e-9 * sizes[0]].T)

    @classmethod
    def of_features(cls, features: tuple[int, ...]) -> PenalizedLevels:
        """Return features of which each has its own coefficient, as it is."""
        k = len(features)
        return cls(features, np.eye(k), np.zeros(k), np.eye(k))


def _computed_with(release: Moments, target: int) -> set[int]:
    """Return features derived from the target's column or its factors, and terms made of them."""
    columns = columns_with_indices(release)
    weights = release.weights[:, 1:] if isinstance(release, WithTerms) else np.eye(len(release.feature_names))
    of_target = set(np.flatnonzero(weights[target]).tolist())
    owns = [column for column, indices in columns if of_target & set(indices)]
    related = {
        index
        for own in owns
        for column, indices in columns
        for derived, other in ((column, own), (own, column))
        if isinstance(derived, DerivedColumn) and other.name in derived.stated.factors
        for index in indices
    }
    same = {index for column, indices in columns if column in owns for index in indices}
    used = np.array(sorted(related | same))
    terms = {index for index in np.flatnonzero(weights[:, used].any(axis=1)).tolist() if index >= weights.shape[1]}
    return (related | terms | (same if target >= weights.shape[1] else set())) - {target}


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
        reference = stated.get(column.name) or names[most_frequent(release, indices)]
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
            left_out = levels.index(feature) if feature else most_frequent(release, own) - own.start
            references[column.name] = column.feature_names[left_out]
            dropped.add(indices[left_out])
    return [index for index in named if index not in dropped], references


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
    spread = np.diag(release.unit_ball_covariance) * release.sample_size
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


def regressed_moment(release: Moments, *, intercept: bool) -> FloatArray:
    """Return the covariance, or without an intercept the second moment about zero, shape (d, d)."""
    # In encoded units; zero is the zero of the original units, or of the unit ball if no mean was released.
    if intercept:
        return release.unit_ball_covariance
    if release.noisy_sum is None:
        return release.unit_ball_gram / release.sample_size
    scale = release.encoding.scale
    return release.second_moment / np.outer(scale, scale)
