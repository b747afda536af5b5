"""What every estimator does: from parameters and a table to one release, and from that to attributes."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, _clone_parametrized
from sklearn.utils.validation import check_is_fitted, validate_data

from dpmoments.array_types import FloatArray
from dpmoments.estimators.one_fit import begin, identity_of, join, share, spent_by
from dpmoments.estimators.tables import (
    array_of,
    as_frame,
    by_name,
    feature_columns,
    missing_cells_allowed,
    names_alone,
    names_for,
    public_schema,
    require_same_length,
    table_of,
)
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.moment_release import MomentRelease
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.ledger import Ledger
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.origin import check_dataset
from dpmoments.privacy.privacy_unit import PrivacyUnit
from dpmoments.release import release
from dpmoments.release_run import require_whole_numbers
from dpmoments.schema.columns import Categorical, Column
from dpmoments.schema.schema import Schema
from dpmoments.table_libraries import nw

__all__ = ["PrivateEstimator"]

FITTED_RELEASE = (
    "the release was made, and its budget is spent: it is the estimator's release_, from which other analyses can be tried for "
    "nothing"
)
NOT_FINITE = (
    "Input X contains NaN, infinity or an empty cell, and the schema's rule of some column is missing='error': fill the cells, "
    "leave the rows out, or release with another rule"
)


class PrivateEstimator(BaseEstimator):
    """Fit by one release: the parameters and the bookkeeping that all estimators share.

    Parameters
    ----------
    schema : Schema
        Public bounds, levels and rules of the columns of X, in their order, and of y.
    bounds : pair of float or of array-like of shape (d,)
        In place of a schema, for numbers alone: (low, high) of every column.
    row_norm : float
        In place of a schema, where there is no y: the Euclidean norm that no row exceeds; longer rows are scaled back.
    epsilon, delta, rho, neighbors, mechanism, privacy_unit
        As for :func:`dpmoments.release`: of one fit.
    ledger : Ledger or path
        Where every fit, of this estimator and its copies, is charged. Without one there is one fit for all of them.
    dataset : str
        What the ledger calls the table.
    insecure_seed : int
        For tests: repeats the noise, and marks the release not private. Fits are then not counted, since they protect nobody.

    Attributes
    ----------
    release_ : MomentRelease
        What the fit published; everything else is computed from it.
    answer_ : object
        The analysis of the release that the attributes are of, with its errors: ``print(model.answer_)``.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X was a frame.
    """

    schema: Schema | None
    bounds: Any
    row_norm: float | None = None
    epsilon: float | None
    delta: float
    rho: float | None
    neighbors: Neighbors | str
    mechanism: Mechanism | str
    privacy_unit: PrivacyUnit | None
    ledger: Ledger | Any
    dataset: str | None
    insecure_seed: int | None

    release_: MomentRelease
    answer_: Any
    n_features_in_: int

    def __new__(cls, *_: Any, **__: Any) -> Self:
        made: Self = super().__new__(cls)
        begin(made)
        return made

    def __sklearn_clone__(self) -> Self:
        copied: Self = _clone_parametrized(self)
        share(self, copied)
        return copied

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__()) | {"one_fit": identity_of(self)}
        if "release_" in state:
            state["release_"] = self.release_.to_dict()
        state.pop("answer_", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        join(self, state.pop("one_fit", None))
        content = state.pop("release_", None)
        super().__setstate__(state)
        if content is not None:
            self._take(MomentRelease.from_dict(content))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "answer_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.insecure_seed is None
        if isinstance(self.schema, Schema):
            columns = feature_columns(self.schema, self._name_of_target(self.schema))
            tags.input_tags.allow_nan = missing_cells_allowed(columns)
            tags.input_tags.categorical = any(isinstance(column, Categorical) for column in columns)
            tags.input_tags.string = tags.input_tags.categorical
        return tags

    @property
    def _with_mean(self) -> bool:
        """Whether the release has a mean."""
        return True

    def _schema_for(self, names: tuple[str, ...], y: Any) -> tuple[Schema, str | None]:  # noqa: ARG002
        """The public schema for columns of these names, and which of its columns is y."""
        return public_schema(self.schema, self.bounds, self.row_norm, names), None

    def _check_analysis(self, schema: Schema) -> None:
        """Refuse parameters that the analysis of a release of this schema would refuse, before anything is spent."""

    @abstractmethod
    def _read(self) -> None:
        """Set ``answer_`` and the attributes, from ``release_`` and parameters alone."""

    def _name_of_target(self, schema: Schema) -> str | None:  # noqa: ARG002
        """Which column of a schema is y, if any; it may be none of it."""
        return None

    def _target_of(self, schema: Schema) -> str | None:
        """Which column of a schema is y; raises ValueError where it is none that can be."""
        return self._name_of_target(schema)

    def _fit(self, X: Any, y: Any = None) -> Self:
        """Release the table, charged and once, and read the attributes off the release."""
        self._check_parameters()
        frame, array = self._frame_or_array(X, self.schema if isinstance(self.schema, Schema) else None, at_least=0)
        own = names_for(array.shape[1]) if frame is None else self._feature_names(frame, self.privacy_unit)
        schema, target = self._schema_for(own, y)
        expected = tuple(column.name for column in feature_columns(schema, target))
        self._require_columns(own, expected, named=frame is not None)
        self._check_analysis(schema)
        if target is not None:
            require_same_length(len(array if frame is None else frame), y)
        whole = frame is None and target is None and array.dtype.kind != "O"
        rows = by_name(None, array, expected) if frame is None else frame.to_native()
        table = array if whole else table_of(rows, target, y)
        shaped = X if frame is None else names_alone(own)
        validate_data(self, shaped, y="no_validation", skip_check_array=True)
        with nullcontext() if self._is_counted_elsewhere else spent_by(self):
            released = release(
                table,
                schema,
                epsilon=self.epsilon,
                delta=self.delta,
                rho=self.rho,
                neighbors=self.neighbors,
                mechanism=self.mechanism,
                mean=self._with_mean,
                privacy_unit=self.privacy_unit,
                ledger=self.ledger,
                dataset=self.dataset,
                insecure_seed=self.insecure_seed,
            )
        return self._take(released)

    def _check_parameters(self) -> None:
        """Refuse what a release would refuse, before the one fit is taken."""
        PrivacyBudget.of(epsilon=self.epsilon, delta=self.delta, rho=self.rho)
        Neighbors.of(self.neighbors)
        make_mechanism(self.mechanism)
        check_dataset(self.dataset)
        require_whole_numbers(insecure_seed=self.insecure_seed)

    @property
    def _is_counted_elsewhere(self) -> bool:
        """By the ledger; or nowhere, since a release with an insecure seed protects nobody."""
        return self.ledger is not None or self.insecure_seed is not None

    def fit_release(self, release: MomentRelease) -> Self:
        """Fit from a release that was made: post-processing, free of privacy cost.

        For tables in files and engines, for releases of others, and to try another parameter on the release of a fit.

        Parameters
        ----------
        release : MomentRelease
            Its schema, budget and mechanism are what they are: those of the estimator are not looked at.

        Returns
        -------
        self
        """
        if not isinstance(release, MomentRelease):
            raise TypeError(
                f"fit_release takes a dpmoments release, got {type(release).__name__}: dpm.release(…), or dpm.load('people.json')"
            )
        columns = tuple(column.name for column in feature_columns(release.schema, self._target_of(release.schema)))
        self.feature_names_in_ = np.array(columns, dtype=object)
        self.n_features_in_ = len(columns)
        return self._take(release)

    def _take(self, released: MomentRelease) -> Self:
        self.release_ = released
        if hasattr(self, "answer_"):
            del self.answer_
        try:
            self._read()
        except Exception as error:
            error.add_note(FITTED_RELEASE)
            raise
        return self

    def _frame_or_array(self, X: Any, schema: Schema | None, *, at_least: int) -> tuple[nw.DataFrame[Any] | None, Any]:
        """X as a frame with names, else as an array that was checked."""
        frame = as_frame(X)
        if frame is not None:
            return frame, None
        columns = () if schema is None else feature_columns(schema, self._name_of_target(schema))
        return None, array_of(
            X,
            numeric=not any(isinstance(column, Categorical) for column in columns),
            allow_nan=schema is not None and missing_cells_allowed(columns),
            estimator=self,
            at_least=at_least,
        )

    @staticmethod
    def _feature_names(frame: nw.DataFrame[Any], unit: PrivacyUnit | None) -> tuple[str, ...]:
        """Names of the frame's columns, less the one that tells people apart."""
        return tuple(name for name in frame.columns if not isinstance(unit, PrivacyUnit) or name != unit.column)

    @staticmethod
    def _require_columns(own: tuple[str, ...], expected: tuple[str, ...], *, named: bool) -> None:
        """Raise ValueError unless the columns of X are those of the schema, in its order: arrays of results are in the same."""
        if len(own) != len(expected) and not named:
            raise ValueError(
                f"X has {len(own)} columns, and the schema has {len(expected)} beside y ({', '.join(map(repr, expected))}): "
                "the columns of an array are the schema's, in order"
            )
        if named and own != expected:
            absent = [name for name in expected if name not in own]
            more = [name for name in own if name not in expected]
            why = (
                f"lacks {', '.join(map(repr, absent))}"
                if absent
                else f"has {', '.join(map(repr, more))}, which the schema has not"
                if more
                else "has them in another order"
            )
            raise ValueError(
                f"the columns of X must be the schema's, in its order, so that results are in the order of X, and X {why}: pass "
                f"X[{list(expected)!r}]"
            )

    @property
    def _columns_read(self) -> tuple[Column, ...]:
        return feature_columns(self.release_.schema, self._name_of_target(self.release_.schema))

    def _rows(self, X: Any) -> Any:
        """Rows to apply the fit to, by the names of the release; checked as scikit-learn does."""
        check_is_fitted(self)
        frame, array = self._frame_or_array(X, self.release_.schema, at_least=1)
        if frame is not None:
            frame = frame.select(self._feature_names(frame, self.release_.privacy.privacy_unit))
        shaped = X if frame is None else names_alone(frame.columns)
        validate_data(self, shaped, y="no_validation", reset=False, skip_check_array=True)
        return by_name(frame, array, [column.name for column in self._columns_read])

    def _finite(self, values: FloatArray) -> FloatArray:
        """Results for rows; refuses those of missing cells where the schema's rules do."""
        strict = any(column.missing == "error" for column in self._columns_read)
        if strict and (np.isnan(values).any() or np.isposinf(values).any()):
            raise ValueError(NOT_FINITE)
        return values

    @property
    def feature_names_released_(self) -> FloatArray:
        """Names of the encoded features, in the order of arrays: a categorical of k levels is k of them."""
        return np.array(self.release_.feature_names, dtype=object)
