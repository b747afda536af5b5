"""What a regression is of: its target and regressors, by feature names, column names or a formula."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.analysis.formulas import read_formula
from dpmoments.analysis.levels import columns_with_places, feature_place, named_features
from dpmoments.analysis.noise_of_run import noise_of_run
from dpmoments.analysis.released import Released
from dpmoments.foundation.values import shown
from dpmoments.schema.columns import Categorical
from dpmoments.schema.derived import DerivedColumn

__all__ = ["Regressors"]


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
        y = feature_place(release, target)
        named = (
            _default_features(release, y) if features is None else named_features(release, features, word="features")
        )
        if y in named:
            raise ValueError(f"the target {names[y]!r} is among the features: leave it out")
        related = _computed_with(release, y)
        if computed := [names[place] for place in named if place in related]:
            raise ValueError(
                f"{computed[0]!r} and the target {names[y]!r} are computed one from the other: leave it out"
            )
        stated_references = _stated_references(release, reference)
        kept, references = _without_references(release, named, stated_references, constant)
        if unused := sorted(set(stated_references) - set(references)):
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


def _default_features(release: Released, target: int) -> list[int]:
    own = next(places for _, places in columns_with_places(release) if target in places)
    left_out = {*own, *_computed_with(release, target)}
    return [place for place in range(len(release.feature_names)) if place not in left_out]


def _computed_with(release: Released, target: int) -> set[int]:
    """Features that are powers or products of the target's column, or that it is one of."""
    columns = columns_with_places(release)
    own = next(column for column, places in columns if target in places)
    return {
        place
        for column, places in columns
        for derived, other in ((column, own), (own, column))
        if isinstance(derived, DerivedColumn) and other.name in derived.stated.factors
        for place in places
    }


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
    blocks = [(column, places) for column, places in columns_with_places(release) if set(places) <= chosen]
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
            own = next(places for block, places in columns_with_places(release) if block.name == column.levels.name)
            left_out = levels.index(feature) if feature else _most_frequent(release, own) - own.start
            references[column.name] = column.feature_names[left_out]
            dropped.add(places[left_out])
    return [place for place in named if place not in dropped], references


def _lost_levels(release: Released, kept: Sequence[int], references: Mapping[str, str]) -> set[int]:
    """Levels, of columns with a reference, whose variance is below what identifies a coefficient among so many regressors."""
    if not references or release.noisy_sum is None or (noise := noise_of_run(release)) is None:
        return set()
    mean = release.unit_ball_mean if release.center is None else release.unit_ball_mean - release.center
    spread = np.diag(release.unit_ball_covariance) * release.n_rows
    levels = {
        place
        for column, places in columns_with_places(release)
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
