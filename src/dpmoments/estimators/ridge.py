"""Ridge regression with standard errors from one release, with scikit-learn's interface."""

from __future__ import annotations

from typing import Any, Literal, Self

from sklearn.base import RegressorMixin

from dpmoments.analysis.regression import stated_penalty
from dpmoments.estimators.base import PrivateEstimator, column_of, numeric_column, public_schema, target_column
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.ledger import Ledger
from dpmoments.mechanisms.base import Mechanism
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.schema.columns import Boolean, Coordinate
from dpmoments.schema.dates import Date
from dpmoments.schema.numeric import Numeric
from dpmoments.schema.schema import Schema

_MADE_UP = "y"


class DPRidge(RegressorMixin, PrivateEstimator):
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

    def __init__(
        self,
        alpha: float | Literal["auto"] = "auto",
        *,
        schema: Schema | None = None,
        bounds: Any = None,
        target: str | None = None,
        target_bounds: tuple[float, float] | None = None,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        neighbors: Neighbors | str = "add_remove",
        mechanism: Mechanism | str = "auto",
        privacy_unit: PrivacyUnit | None = None,
        ledger: Ledger | Any = None,
        dataset: str | None = None,
        insecure_seed: int | None = None,
        fit_intercept: bool = True,
    ) -> None:
        self.alpha = alpha
        self.schema = schema
        self.bounds = bounds
        self.target = target
        self.target_bounds = target_bounds
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.neighbors = neighbors
        self.mechanism = mechanism
        self.privacy_unit = privacy_unit
        self.ledger = ledger
        self.dataset = dataset
        self.insecure_seed = insecure_seed
        self.fit_intercept = fit_intercept

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

    def _schema_for(self, names: tuple[str, ...], y: Any) -> tuple[Schema, str]:  # noqa: ARG002
        name = self.target or _MADE_UP
        beside = None
        if self.schema is None and self.bounds is not None:
            if self.target_bounds is None:
                raise InputValueError(
                    "target_bounds=None: noise must also hide every y, and its bounds are never read from y. Give "
                    "target_bounds=(low, high), known without looking at the table"
                )
            beside = numeric_column(name, self.target_bounds)
        elif self.target_bounds is not None:
            raise InputValueError("target_bounds are for bounds=; a schema already bounds every column: leave them out")
        schema = public_schema(self.schema, self.bounds, None, names, beside)
        return schema, self._target_of(schema)

    def _name_of_target(self, schema: Schema) -> str | None:
        made_up = _MADE_UP if self.schema is None and _MADE_UP in schema.names else None
        return self.target or made_up

    def _target_of(self, schema: Schema) -> str:
        return target_column(schema, self._name_of_target(schema), (Numeric, Boolean, Date, Coordinate), "numeric").name

    def _check_analysis(self, schema: Schema) -> None:  # noqa: ARG002
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
        predicted: FloatArray = self.answer_.predict(rows)
        return predicted
