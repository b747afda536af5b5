"""Columns that sort rows into groups: the levels of a categorical, and the two of a Boolean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.analysis.released import Released, columns_with_places, shown_names
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.schema.columns import Boolean, Categorical


@dataclass(frozen=True, eq=False)
class Levels:
    """The groups of a categorical or Boolean column, each the sum of features that counts its rows.

    Attributes
    ----------
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
            raise InputValueError(
                f"{name!r} holds numbers, and groups are made by a categorical or Boolean column: {which}"
            )
        raise InputValueError(f"the release has no column {name!r} that sorts rows into groups: {which}")

    def chosen(self, names: Sequence[str]) -> Levels:
        """Some of the groups, by full name or by level."""
        if isinstance(names, str):
            raise InputTypeError("groups are a list of names, not one string")
        full = [name if name in self.names else f"{self.column}={name}" for name in map(str, names)]
        if unknown := [str(name) for name, whole in zip(names, full, strict=True) if whole not in self.names]:
            raise InputValueError(
                f"{self.column!r} has no level {', '.join(map(repr, unknown))}: its levels are {shown_names(self.names)}"
            )
        if len(set(full)) < len(full):
            raise InputValueError("a level is named twice")
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
