"""Linear regression and discriminant analysis with scikit-learn's interface."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin
from sklearn.exceptions import DataConversionWarning

from dpmoments.analysis.classifiers import most_likely, require_shrinkage
from dpmoments.analysis.regression import stated_penalty
from dpmoments.base.errors import InputValueError, listed, meant, shown
from dpmoments.base.table_libraries import nw
from dpmoments.base.values import FloatArray
from dpmoments.estimators.base import Features, PrivateEstimator, frame_of, pairs_of_bounds, public_schema
from dpmoments.schema.cells import declared_column
from dpmoments.schema.columns import Boolean, Categorical, Column, Coordinate, Numeric
from dpmoments.schema.dates import Date
from dpmoments.schema.derived import DerivedColumn
from dpmoments.schema.schema import Schema

_MADE_UP = "y"
"""Name of a y that has none."""


@dataclass(eq=False, repr=False, kw_only=True)
class TargetEstimator(PrivateEstimator):
    """Base of estimators with y."""

    target: str | None = None

    _target_kinds: ClassVar[tuple[type, ...]]
    _target_kind: ClassVar[str]

    def fit(self, X: Any, y: Any) -> Self:
        """Release the moments of X and y; spends the budget.

        Parameters
        ----------
        X : array, frame or list of rows, of shape (n, n_features_in_)
            Never modified. A frame is read by column name.
        y : array, list, or column of a frame, of n values
            Matched to the rows of X by position.

        Raises
        ------
        BudgetExceededError
            If the ledger refuses it, or without a ledger if the one fit was already made.
        ValueError, TypeError
            If the parameters or the table are refused; nothing is spent.
        """
        return self._fit(X, column_of(y, of=self))

    @abstractmethod
    def _target_beside_bounds(self) -> Column | None:
        """Return the column of y that goes with ``bounds``; None with a schema."""

    def _schema_for(self, names: tuple[str, ...], y: Any) -> tuple[Schema, str]:
        schema = public_schema(self.schema, self.bounds, None, names, self._target_beside_bounds())
        return schema, self._target_of(schema)

    def _name_of_target(self, schema: Schema) -> str | None:
        made_up = _MADE_UP if self.schema is None and _MADE_UP in schema.names else None
        return self.target or made_up

    def _target_of(self, schema: Schema) -> str:
        target = self._name_of_target(schema)
        if target is None:
            raise InputValueError(f"With schema=, target= must name the column that y holds: {listed(schema.names)}.")
        if not any(column.name == target and isinstance(column, self._target_kinds) for column in schema.table_columns):
            advice = meant(target, schema.names, f"Its columns are {listed(schema.names)}.")
            raise InputValueError(f"target='{target}' is not a {self._target_kind} column of the schema.{advice}")
        return target


def column_of(y: Any, *, of: Any) -> Any:
    """Convert y to an array or series of n values."""
    # Shape (n, 1) is accepted with scikit-learn's warning.
    if y is None:
        raise InputValueError(f"This {type(of).__name__} estimator requires y to be passed, but the target y is None")
    column = y
    if isinstance(frame_of(y), nw.DataFrame):
        columns = Features.of(y).columns
        column = columns[0] if len(columns) == 1 else np.empty((0, len(columns)))
    elif isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        column = y.reshape(-1) if isinstance(y, np.ma.MaskedArray) else np.asarray(y).reshape(-1)
    if column is not y:
        warnings.warn(
            DataConversionWarning("A column-vector y was passed when a 1d array was expected: pass y.ravel()"),
            stacklevel=4,
        )
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise InputValueError(f"y should be a 1d array, one value per row, and has {column.ndim} dimensions")
    if isinstance(column, np.ndarray) and column.dtype.kind == "c":
        raise InputValueError("Complex data not supported: y must hold numbers or levels")
    declared = declared_column(column, "y")
    # By the type alone: no cell decides. Sequences declare none; their fractions are of no class.
    floating = declared.dtype.is_float() if isinstance(declared, nw.Series) else declared.dtype.kind == "f"
    if floating and isinstance(of, ClassifierMixin):
        raise InputValueError(
            "Unknown label type: y is of floating-point numbers, which a continuous y has, and classes are texts, whole "
            "numbers, or true and false: use y.astype(int), or y.astype('Int64') in pandas if labels are missing. For a "
            "continuous y use DPRidge"
        )
    return declared


def class_column(name: str, classes: Any) -> Column:
    """Return the column of the listed classes."""
    if classes is None:
        raise InputValueError(
            "classes=None: the classes must be public, and are never read from y. Give classes=[…], or a "
            "schema with a Categorical column and target=…"
        )
    if isinstance(classes, str | bytes | Mapping):
        raise InputValueError(f"classes={shown(classes)} is not a list: give classes=[…]")
    listed = classes if isinstance(classes, list | tuple) or not hasattr(classes, "__array__") else np.asarray(classes)
    if not hasattr(listed, "__iter__") or np.ndim(listed) > 1:
        listed = [classes]
    levels = [level.item() if isinstance(level, np.generic) else level for level in listed]
    flags = [isinstance(level, bool) for level in levels]
    if not all(isinstance(level, str | Integral) for level in levels) or (any(flags) and not all(flags)):
        raise InputValueError(
            f"Unknown label type: classes={shown(classes)} must be a list of texts, whole numbers, or true and false"
        )
    return Boolean(name) if levels and all(flags) else Categorical(name, tuple(levels))


@dataclass(eq=False, repr=False, kw_only=True)
class DPRidge(RegressorMixin, TargetEstimator):
    """Linear regression under differential privacy.

    Parameters
    ----------
    alpha : float or "auto"
        The penalty in units of the unit ball (:func:`dpmoments.analysis.regression.ridge`), not scikit-learn's; "auto":
        from the noise distribution. Another value costs no budget: ``DPRidge(alpha=…,
        target=…).fit_release(model.release_)``.
    schema, bounds, epsilon, delta, rho, neighbors, mechanism, privacy_unit, ledger, dataset, insecure_seed
        As for every estimator (:mod:`dpmoments.estimators`). The schema also has a column for y.
    target : str
        The schema's column for y. With ``bounds``, a name for it; default "y".
    target_bounds : pair of float
        With ``bounds``: the public bounds of y.
    fit_intercept : bool

    Attributes
    ----------
    coef_ : ndarray of shape (k,)
        Coefficients of ``coef_names_``: the numeric columns of X, and the levels of categorical ones without the
        reference level.
    intercept_ : float
    coef_names_ : tuple of str
    alpha_ : float
        Penalty used.
    answer_ : FittedLine
        ``print(model.answer_)`` shows a table. Errors of penalized coefficients are not known; least squares has
        them, with intervals and p-values: ``model.release_.ols(target)``.
    release_, n_features_in_, feature_names_in_
        As for every estimator.

    Notes
    -----
    **Privacy.** ``fit`` makes one :func:`dpmoments.release` of X and y together, which satisfies the stated budget;
    everything else is computed from it. ``score`` on private rows is private, and so is a parameter chosen by it.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(-1, 1, (20_000, 1))
    >>> model = DPRidge(bounds=(-1, 1), target_bounds=(-2, 4), epsilon=1.0, insecure_seed=0)
    >>> model.fit(x, 1 + 2 * x[:, 0]).coef_.round(1), round(model.intercept_, 1)
    (array([2.]), 1.0)
    """

    alpha: float | Literal["auto"] = field(default="auto", kw_only=False)
    target_bounds: tuple[float, float] | None = None
    fit_intercept: bool = True

    _target_kinds = (Numeric, Boolean, Date, Coordinate)
    _target_kind = "numeric"

    def _target_beside_bounds(self) -> Column | None:
        if self.schema is None and self.bounds is not None:
            if self.target_bounds is None:
                raise InputValueError(
                    "target_bounds=None: noise must also hide every y, and its bounds are never read from y. Give "
                    "target_bounds=(low, high), known without looking at the table"
                )
            ((low, high),) = pairs_of_bounds(self.target_bounds, 1)
            return Numeric(self.target or _MADE_UP, low, high)
        if self.target_bounds is not None:
            raise InputValueError("target_bounds are for bounds=; a schema already bounds every column: leave them out")
        return None

    def _check_analysis(self, schema: Schema) -> None:
        stated_penalty(self.alpha)

    def _read(self) -> None:
        target = self._target_of(self.release_.schema)
        answer = self.release_.ridge(target, alpha=self.alpha, intercept=self.fit_intercept)
        self.coef_, self.intercept_ = answer.coefficients, answer.intercept
        self.coef_names_ = answer.features
        self.alpha_ = answer.alpha
        self.answer_ = answer

    def predict(self, X: Any) -> FloatArray:
        """Predict y for rows, shape (m,); private for private rows."""
        rows = self._rows(X)
        return np.asarray(self.answer_.predict(rows))


@dataclass(eq=False, repr=False, kw_only=True)
class DPLinearDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, TargetEstimator):
    """Linear discriminant analysis under differential privacy.

    A classifier, and a map to discriminating directions.

    Parameters
    ----------
    schema, bounds, epsilon, delta, rho, neighbors, mechanism, privacy_unit, ledger, dataset, insecure_seed
        As for every estimator (:mod:`dpmoments.estimators`). The schema has a Categorical or Boolean column for y.
    target : str
        The schema's column for y. With ``bounds``, a name for it; default "y".
    classes : sequence of str, int or bool
        With ``bounds``: all possible classes, public; never read from y. Rows of other classes are dropped.
    shrinkage : float or "auto"
        As for :func:`dpmoments.analysis.classifiers.lda`.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        The public levels, sorted.
    priors_ : ndarray of shape (c,)
        Released shares; 0 for noise-dominated classes, which are never predicted.
    means_, coef_ : ndarray of shape (c, k)
        One row per class, even with two classes.
    intercept_ : ndarray of shape (c,)
    coef_names_ : tuple of str
        The k features.
    answer_ : LinearDiscriminant
        Includes a test of no difference between classes.
    release_, n_features_in_, feature_names_in_
        As for every estimator.

    Notes
    -----
    **Privacy.** ``fit`` makes one :func:`dpmoments.release` of X and y together, which satisfies the stated budget;
    everything else is computed from it. ``score`` on private rows is private, and so is a parameter chosen by it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 20_000)
    >>> x = rng.normal(np.where(y == 1, 2.0, -2.0))[:, np.newaxis]
    >>> model = DPLinearDiscriminant(bounds=(-10, 10), classes=[0, 1], epsilon=1.0, insecure_seed=0)
    >>> model.fit(x, y).predict([[-2.0], [2.0]])
    array([0, 1])
    """

    schema: Schema | None = field(default=None, kw_only=False)
    classes: Sequence[Any] | None = None
    shrinkage: float | Literal["auto"] = "auto"

    _target_kinds = (Categorical, Boolean)
    _target_kind = "categorical"

    def _target_beside_bounds(self) -> Column | None:
        if self.schema is None and self.bounds is not None:
            return class_column(self.target or _MADE_UP, self.classes)
        if self.classes is not None:
            raise InputValueError(
                "classes are for bounds=; a schema already lists the levels of every column: leave them out"
            )
        return None

    def _check_analysis(self, schema: Schema) -> None:
        require_shrinkage(self.shrinkage)

    def _read(self) -> None:
        schema = self.release_.schema
        target = self._target_of(schema)
        beside = [
            column.name
            for column in schema.columns
            if target not in (column.stated.factors if isinstance(column, DerivedColumn) else (column.name,))
        ]
        answer = self.release_.lda(target, beside, shrinkage=self.shrinkage)
        levels = np.array(answer.classes)
        self._order = np.argsort(levels, kind="stable")
        self.classes_ = levels[self._order]
        self.priors_, self.means_ = answer.priors[self._order], answer.means[self._order]
        self.coef_, self.intercept_ = answer.coef[self._order], answer.intercept[self._order]
        self.coef_names_ = answer.feature_names
        self.answer_ = answer

    def _scores(self, X: Any) -> FloatArray:
        rows = self._rows(X)
        return np.asarray(self.answer_.decision_function(rows)[:, self._order])

    def decision_function(self, X: Any) -> FloatArray:
        """Compute scores of rows, shape (m, c); with two classes second minus first, shape (m,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> Any:
        """Predict the most likely class of rows, shape (m,); private for private rows."""
        scores = self._scores(X)  # refuses if there was no fit
        return most_likely(self.classes_, scores)

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict class probabilities, shape (m, c).

        For normal rows with one covariance within classes.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Predict log-probabilities; −∞ for a noise-dominated class."""
        return np.asarray(log_softmax(self._scores(X), axis=1))

    def transform(self, X: Any) -> FloatArray:
        """Compute scores on the discriminating directions, shape (m, r), r ≤ c − 1.

        Private for private rows.
        """
        rows = self._rows(X)
        return np.asarray(self.answer_.transform(rows))

    @property
    def _n_features_out(self) -> int:
        return int(self.answer_.axes.shape[0])
