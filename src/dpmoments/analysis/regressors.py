"""What a regression is of: its target and regressors, by feature names, column names or a formula."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.analysis.formulas import read_formula
from dpmoments.analysis.noise_of_run import noise_of_run
from dpmoments.analysis.released import Released
from dpmoments.plain_values import shown
from dpmoments.schema.columns import Categorical
from dpmoments.schema.derived import DerivedColumn, SchemaColumn, feature_slices

__all__ = ["Regressors", "feature_index"]

SHOWN_FEATURES = 4
"""Messages name so many features of a categorical column at most."""


@dataclass(frozen=True)
class Regressors:
    """The target and the regressors of a regression, as places among the release's features.

    Attributes
    ----------
    target : int
    features : tuple of int
    intercept : bool
    references : mapping of str to str
        For every categorical column among the regressors, the level that the others are compared with: its feature is left out.
    too_few : tuple of str
        Levels of so few rows that noise hides how many: they are left out too, and their rows count with the reference.
    """

    target: int
    features: tuple[int, ...]
    intercept: bool
    references: Mapping[str, str]
    too_few: tuple[str, ...] = ()

    @classmethod
    def chosen(
        cls,
        release: Released,
        target: str,
        features: Sequence[str] | None,
        intercept: bool | None,
        reference: Sequence[str] | Mapping[str, str | int] | None,
    ) -> Regressors:
        """Find the features that are named.

        Parameters
        ----------
        release : Released
        target : str
            A feature, or a formula ``target ~ terms`` (then ``features`` is None).
        features : sequence of str or None
            Feature or column names; None: all that neither are of the target's column nor computed from it.
        intercept : bool or None
            None: where a mean was released (and the formula does not say otherwise).
        reference : sequence of str, mapping or None
            Levels that others are compared with, ``["region=north"]`` or ``{"region": "north"}``.

        Raises
        ------
        ValueError, TypeError
            If a name is unknown or stands twice, the target is among the features, or an intercept is asked of a release without
            a mean.
        """
        names = release.feature_names
        if not isinstance(target, str):
            raise TypeError(f"target must be the name of a feature, or a formula, got {type(target).__name__}")
        if "~" in target and target not in names:
            if features is not None:
                raise ValueError(
                    f"{target!r} is a formula, which names its features: leave features={list(features)!r} out"
                )
            target, features, stated = read_formula(target, release.schema)
            intercept = stated if intercept is None else intercept
            if stated is False and intercept:
                raise ValueError(
                    "the formula has no intercept (it ends in - 1 or + 0) and intercept=True: take one of them"
                )
        with_mean = release.noisy_sum is not None
        if intercept and not with_mean:
            raise ValueError("an intercept needs the mean, and the release has none (mean=False): pass intercept=False")
        constant = with_mean if intercept is None else intercept
        y = feature_index(release, target)
        named = _default_features(release, y) if features is None else _named_features(release, features)
        if y in named:
            raise ValueError(f"the target {names[y]!r} is among the features: leave it out")
        if computed := [names[place] for place in named if _is_computed_from(release, place, y)]:
            raise ValueError(
                f"{computed[0]!r} and the target {names[y]!r} are computed one from the other: leave it out"
            )
        kept, references = _without_references(release, named, _stated_references(release, reference), constant)
        if unused := sorted(set(_stated_references(release, reference)) - set(references)):
            raise ValueError(
                f"reference names {unused[0]!r}, of which the regression does not have all levels: leave it out"
            )
        if not kept:
            raise ValueError("no features: name at least one")
        lost = _lost_levels(release, kept, references)
        too_few = tuple(names[place] for place in kept if place in lost)
        kept = [place for place in kept if place not in lost]
        if not kept:
            raise ValueError(
                f"noise hides how many rows {', '.join(too_few)} have, so that nothing can be compared with {references}"
            )
        return cls(y, tuple(kept), constant, references, too_few)


def feature_index(release: Released, name: str) -> int:
    """The place of a feature.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    names = release.feature_names
    if name in names:
        return names.index(name)
    for column in release.schema.columns:
        if column.name == name:
            such_as = "such as " if len(column.feature_names) > SHOWN_FEATURES else ""
            listed = ", ".join(map(repr, column.feature_names[:SHOWN_FEATURES]))
            raise ValueError(
                f"{name!r} is categorical and cannot be a target itself: name one of its features, {such_as}{listed}"
            )
    raise ValueError(f"the release has no feature {name!r}; its features are {', '.join(map(repr, names))}")


def _columns(release: Released) -> list[tuple[SchemaColumn, range]]:
    columns = release.schema.columns
    return [
        (column, range(release.schema.n_features)[place])
        for column, place in zip(columns, feature_slices(columns), strict=True)
    ]


def _default_features(release: Released, target: int) -> list[int]:
    own = next(places for _, places in _columns(release) if target in places)
    return [
        place
        for place in range(len(release.feature_names))
        if place not in own and not _is_computed_from(release, place, target)
    ]


def _named_features(release: Released, features: Sequence[str]) -> list[int]:
    if isinstance(features, str):
        raise TypeError("features is a list of names, not one string")
    columns = {column.name: places for column, places in _columns(release)}
    chosen: list[int] = []
    for name in features:
        chosen += columns[name] if name in columns else [feature_index(release, name)]
    if not chosen:
        raise ValueError("no features: name at least one")
    if len(set(chosen)) < len(chosen):
        raise ValueError("a feature is named twice")
    return chosen


def _is_computed_from(release: Released, place: int, target: int) -> bool:
    """Whether a feature is a power or a product of the target's column, or the other way round."""
    by_place = {feature: column for column, places in _columns(release) for feature in places}
    first, second = by_place[place], by_place[target]
    return any(
        isinstance(derived, DerivedColumn) and other.name in {factor.name for factor in derived.factors}
        for derived, other in ((first, second), (second, first))
    )


def _stated_references(release: Released, reference: Sequence[str] | Mapping[str, str | int] | None) -> dict[str, str]:
    """The feature to leave out of every column that is named."""
    if reference is None:
        return {}
    if isinstance(reference, str):
        raise TypeError("reference is a list of features, or a mapping of column to level, not one string")
    features = [f"{name}={level}" for name, level in reference.items()] if isinstance(reference, Mapping) else reference
    blocks = [column for column in release.schema.columns if isinstance(column, Categorical)]
    found: dict[str, str] = {}
    for feature in features:
        column = next((column for column in blocks if feature in column.feature_names), None)
        if column is None:
            raise ValueError(
                f"reference {shown(feature)} is no level of a categorical column of the release: give one as 'column=level'"
            )
        if column.name in found:
            raise ValueError(f"reference names two levels of {column.name!r}: give one")
        found[column.name] = feature
    return found


def _without_references(
    release: Released, named: Sequence[int], stated: Mapping[str, str], constant: bool
) -> tuple[list[int], dict[str, str]]:
    """Leave one level out of every categorical whose levels are all there, since they add up to one.

    So do the products of a number with all levels, which add up to the number. Without a constant the first categorical keeps all
    of its levels, unless its reference is stated.
    """
    names, chosen = release.feature_names, set(named)
    blocks = [(column, places) for column, places in _columns(release) if set(places) <= chosen]
    references: dict[str, str] = {}
    dropped: set[int] = set()
    keeps_all = not constant
    for column, places in blocks:
        if not isinstance(column, Categorical):
            continue
        if keeps_all and column.name not in stated:
            keeps_all = False
            continue
        reference = stated.get(column.name) or names[_most_frequent(release, places)]
        references[column.name] = reference
        dropped.add(names.index(reference))
    for column, places in blocks:
        if isinstance(column, DerivedColumn) and column.levels is not None:
            (other,) = (factor for factor in column.factors if not isinstance(factor, Categorical))
            if names.index(other.name) not in chosen:
                continue
            feature = references.get(column.levels.name) or stated.get(column.levels.name)
            levels = column.levels.feature_names
            own = next(places for block, places in _columns(release) if block.name == column.levels.name)
            left_out = levels.index(feature) if feature else _most_frequent(release, own) - own.start
            references[column.name] = column.feature_names[left_out]
            dropped.add(places[left_out])
    return [place for place in named if place not in dropped], references


def _lost_levels(release: Released, kept: Sequence[int], references: Mapping[str, str]) -> set[int]:
    """Levels, of columns with a reference, whose variance is below what identifies a coefficient among so many regressors."""
    noise = noise_of_run(release)
    if noise is None or release.noisy_sum is None:
        return set()
    mean = release.unit_ball_mean if release.center is None else release.unit_ball_mean - release.center
    spread = np.diag(release.unit_ball_covariance) * release.n_rows
    levels = {
        place
        for column, places in _columns(release)
        if isinstance(column, Categorical) and column.name in references
        for place in places
    }

    def floor(place: int) -> float:
        direction = np.zeros(len(mean) + 1)
        direction[0], direction[place + 1] = -mean[place], 1.0
        return 2.0 * math.sqrt(noise.direction_variance(direction) * (len(kept) + 1))

    return {place for place in kept if place in levels and spread[place] < floor(place)}


def _most_frequent(release: Released, places: range) -> int:
    """By the release: the level with the largest share, or the largest square where no mean was released."""
    shares = release.mean if release.noisy_sum is not None else np.diag(release.second_moment)
    return places[int(np.argmax(shares[places.start : places.stop]))]
