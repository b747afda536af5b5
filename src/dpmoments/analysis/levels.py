"""Columns that sort rows into groups: the levels of a categorical, and the two of a Boolean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.analysis.released import Released, Stated
from dpmoments.foundation.arrays import FloatArray
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.derived import SchemaColumn, feature_slices

_SHOWN_NAMES = 8
"""Messages name so many at most."""
_SHOWN_FEATURES = 4
"""Of a categorical column they name so many features."""


@dataclass(frozen=True, eq=False)
class Levels:
    """The groups of a categorical or Boolean column, each the sum of features that counts its rows.

    Attributes
    ----------
    column : str
    names : tuple of str
        ``region=north``, …; of a Boolean ``smoker=false`` and ``smoker=true``.
    features : tuple of int
        The column's features in the release.
    weights : ndarray of shape (k, 1 + number of features)
        A row of the table is in group g where weights[g] · (1, its features) is 1: else that is 0.
    """

    column: str
    names: tuple[str, ...]
    features: tuple[int, ...]
    weights: FloatArray

    @classmethod
    def of(cls, release: Released, name: str) -> Levels:
        """The groups of a column.

        Raises
        ------
        ValueError
            If there is no such column, or it holds numbers.

        Examples
        --------
        >>> import dpmoments as dpm, pyarrow as pa
        >>> schema = dpm.Schema(dpm.Boolean("smoker"))
        >>> released = dpm.release(pa.table({"smoker": [True] * 900}), schema, epsilon=1.0, insecure_seed=0)
        >>> Levels.of(released, "smoker").names
        ('smoker=false', 'smoker=true')
        """
        sorting = []
        for column, features in columns_with_places(release):
            if isinstance(column, Categorical | Boolean):
                sorting.append(column.name)
            if column.name == name:
                indices = tuple(features)
                if isinstance(column, Categorical):
                    return cls(name, column.feature_names, indices, np.eye(len(indices) + 1)[1:])
                if isinstance(column, Boolean):
                    return cls(name, (f"{name}=false", f"{name}=true"), indices, np.array([[1.0, -1.0], [0.0, 1.0]]))
        which = f"of columns that do there are {shown_names(sorting)}" if sorting else "no column of this release does"
        if name in [column.name for column in release.schema.columns]:
            raise ValueError(f"{name!r} holds numbers, and groups are made by a categorical or Boolean column: {which}")
        raise ValueError(f"the release has no column {name!r} that sorts rows into groups: {which}")

    def chosen(self, names: Sequence[str]) -> Levels:
        """Some of the groups, by full name or by level.

        Raises
        ------
        ValueError
            If a name is none of them, or stands there twice.
        """
        if isinstance(names, str):
            raise TypeError("groups are a list of names, not one string")
        full = [name if name in self.names else f"{self.column}={name}" for name in map(str, names)]
        if unknown := [str(name) for name, whole in zip(names, full, strict=True) if whole not in self.names]:
            raise ValueError(
                f"{self.column!r} has no level {', '.join(map(repr, unknown))}: its levels are {shown_names(self.names)}"
            )
        if len(set(full)) < len(full):
            raise ValueError("a level is named twice")
        indices = [index for index, name in enumerate(self.names) if name in full]
        return Levels(self.column, tuple(self.names[index] for index in indices), self.features, self.weights[indices])

    def own_values(self, release: Released, feature: str) -> list[int | None]:
        """For each group, the feature that is ``feature`` in its rows and 0 elsewhere, where the schema has it as a product."""
        names = release.feature_names
        result: list[int | None] = []
        for name in self.names:
            of_level = self.column if name == f"{self.column}=true" and len(self.features) == 1 else name
            both = [f"{feature}:{of_level}", f"{of_level}:{feature}"]
            result.append(next((names.index(product) for product in both if product in names), None))
        return result


def feature_place(release: Stated, name: str) -> int:
    """The place of a feature; a column of one feature has its name.

    Raises
    ------
    ValueError
        If there is no such feature.
    """
    names = release.feature_names
    if name in names:
        return names.index(name)
    for column in release.schema.columns:
        if column.name == name:
            such_as = "such as " if len(column.feature_names) > _SHOWN_FEATURES else ""
            listed = ", ".join(map(repr, column.feature_names[:_SHOWN_FEATURES]))
            raise ValueError(
                f"{name!r} is categorical, and one feature is wanted: name one of its features, {such_as}{listed}"
            )
    raise ValueError(f"the release has no feature {name!r}; its features are {shown_names(names)}")


def chosen_features(release: Released, columns: Sequence[str] | None) -> list[int]:
    """Places of features named by feature or by column, in the release's order; all where none are named.

    Raises
    ------
    TypeError
        If it is one string.
    ValueError
        If a name is neither, or there is none, or a feature is named twice.
    """
    if columns is None:
        return list(range(len(release.feature_names)))
    return sorted(named_features(release, columns, word="columns"))


def named_features(release: Stated, names: Sequence[str], *, word: str) -> list[int]:
    """Places of features named by feature or by column, in the order in which they are named.

    Parameters
    ----------
    release : Released
    names : sequence of str
    word : str
        What they are called where they are asked for, for the messages.

    Raises
    ------
    TypeError
        If it is one string.
    ValueError
        If a name is neither, or there is none, or a feature is named twice.
    """
    if isinstance(names, str):
        raise TypeError(f"{word} are a list of names, not one string")
    of_columns = {column.name: indices for column, indices in columns_with_places(release)}
    result: list[int] = []
    for name in names:
        result += of_columns[name] if name in of_columns else [feature_place(release, name)]
    if not result:
        raise ValueError(f"no {word}: name at least one")
    if len(set(result)) < len(result):
        raise ValueError("a feature is named twice")
    return result


def columns_with_places(release: Stated) -> list[tuple[SchemaColumn, range]]:
    """The columns of the schema, each with the places of its features."""
    columns = release.schema.columns
    every = range(release.schema.n_features)
    return [(column, every[index]) for column, index in zip(columns, feature_slices(columns), strict=True)]


def columns_of(release: Stated, features: Sequence[int]) -> tuple[str, ...]:
    """The name of the column that each feature belongs to."""
    every = [column.name for column in release.schema.columns for _ in column.feature_names]
    return tuple(every[feature] for feature in features)


def shown_names(names: Sequence[str]) -> str:
    """Names as a message lists them.

    Examples
    --------
    >>> shown_names(["a", "b"])
    "'a', 'b'"
    """
    more = f", … ({len(names)} in all)" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(map(repr, names[:_SHOWN_NAMES])) + more
