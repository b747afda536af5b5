"""Linear discriminant analysis with scikit-learn's interface, from one release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from dpmoments.analysis.classifiers import most_likely, require_shrinkage
from dpmoments.estimators.base import PrivateEstimator, class_column, column_of, public_schema, target_column
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.ledger import Ledger
from dpmoments.mechanisms.base import Mechanism
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.derived import DerivedColumn, SchemaColumn
from dpmoments.schema.schema import Schema

_MADE_UP = "y"


class DPLinearDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, PrivateEstimator):
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

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        bounds: Any = None,
        target: str | None = None,
        classes: Sequence[Any] | None = None,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        neighbors: Neighbors | str = "add_remove",
        mechanism: Mechanism | str = "auto",
        privacy_unit: PrivacyUnit | None = None,
        ledger: Ledger | Any = None,
        dataset: str | None = None,
        insecure_seed: int | None = None,
        shrinkage: float | Literal["auto"] = "auto",
    ) -> None:
        self.schema = schema
        self.bounds = bounds
        self.target = target
        self.classes = classes
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.neighbors = neighbors
        self.mechanism = mechanism
        self.privacy_unit = privacy_unit
        self.ledger = ledger
        self.dataset = dataset
        self.insecure_seed = insecure_seed
        self.shrinkage = shrinkage

    def fit(self, X: Any, y: Any) -> Self:
        """Release the moments of X and the classes; spends the budget.

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

    def _schema_for(self, names: tuple[str, ...], y: Any) -> tuple[Schema, str]:  # noqa: ARG002
        beside = None
        if self.schema is None and self.bounds is not None:
            beside = class_column(self.target or _MADE_UP, self.classes)
        elif self.classes is not None:
            raise InputValueError(
                "classes are for bounds=; a schema already lists the levels of every column: leave them out"
            )
        schema = public_schema(self.schema, self.bounds, None, names, beside)
        return schema, self._target_of(schema)

    def _name_of_target(self, schema: Schema) -> str | None:
        made_up = _MADE_UP if self.schema is None and _MADE_UP in schema.names else None
        return self.target or made_up

    def _target_of(self, schema: Schema) -> str:
        return target_column(schema, self._name_of_target(schema), (Categorical, Boolean), "categorical").name

    def _check_analysis(self, schema: Schema) -> None:  # noqa: ARG002
        require_shrinkage(self.shrinkage)

    def _read(self) -> None:
        schema = self.release_.schema
        target = self._target_of(schema)
        beside = [column.name for column in schema.columns if target not in _columns_behind(column)]
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


def _columns_behind(column: SchemaColumn) -> set[str]:
    """Return the table columns that a feature is computed from."""
    return {factor.name for factor in column.factors} if isinstance(column, DerivedColumn) else {column.name}
