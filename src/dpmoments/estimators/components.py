"""Principal components with the interface of scikit-learn's PCA, from one release."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from dpmoments.analysis.components import Scaling, number_of_components, require_scaling
from dpmoments.estimators.base import PrivateEstimator
from dpmoments.foundation.arrays import FloatArray
from dpmoments.ledger import Ledger
from dpmoments.mechanisms.base import Mechanism
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.schema.schema import Schema


class DPPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):
    """Principal components under differential privacy.

    Parameters
    ----------
    n_components : int, optional
        Number of components, k; default: all.
    schema, bounds, row_norm, epsilon, delta, rho, neighbors, mechanism, privacy_unit, ledger, dataset, insecure_seed
        As for every estimator (:mod:`dpmoments.estimators`).
    scaling : {"units", "bounds", "correlation"}
        Divisor of the features (:func:`dpmoments.analysis.components.pca`): none; the half-width of their public
        bounds; or their released standard deviation. A StandardScaler before this would read the table, unprotected.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Unit vectors in scaled feature space; d the encoded features (``feature_names_released_``).
    explained_variance_, explained_variance_ratio_ : ndarray of shape (k,)
        Variances divided by n; scikit-learn divides by n − 1.
    is_noise_ : ndarray of bool of shape (k,)
        True for components that are not distinguishable from noise.
    mean_, scale_ : ndarray of shape (d,)
        Subtracted first; divided by next.
    n_components_ : int
    answer_ : PrincipalComponents
        Includes intervals of the variances.
    release_, n_features_in_, feature_names_in_
        As for every estimator.

    Notes
    -----
    **Privacy.** ``fit`` makes one :func:`dpmoments.release`, which satisfies the stated budget; everything else is
    computed from it. ``transform`` applies it to the caller's rows: scores of private rows are private, including those
    from ``fit_transform``.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.random.default_rng(0).normal(0, [0.3, 0.1, 0.1], (20_000, 3))
    >>> model = DPPCA(n_components=1, row_norm=1.0, epsilon=1.0, insecure_seed=0).fit(table)
    >>> abs(model.components_).round(1), model.is_noise_
    (array([[1., 0., 0.]]), array([False]))
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        schema: Schema | None = None,
        bounds: Any = None,
        row_norm: float | None = None,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        neighbors: Neighbors | str = "add_remove",
        mechanism: Mechanism | str = "auto",
        privacy_unit: PrivacyUnit | None = None,
        ledger: Ledger | Any = None,
        dataset: str | None = None,
        insecure_seed: int | None = None,
        scaling: Scaling = "units",
    ) -> None:
        self.n_components = n_components
        self.schema = schema
        self.bounds = bounds
        self.row_norm = row_norm
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.neighbors = neighbors
        self.mechanism = mechanism
        self.privacy_unit = privacy_unit
        self.ledger = ledger
        self.dataset = dataset
        self.insecure_seed = insecure_seed
        self.scaling = scaling

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Release the table's moments; spends the budget.

        Parameters
        ----------
        X : array, frame or list of rows, of shape (n, n_features_in_)
            Never modified. A frame is read by column name.
        y : ignored

        Raises
        ------
        BudgetExceededError
            If the ledger refuses it, or without a ledger if the one fit was already made.
        ValueError, TypeError
            If the parameters or the table are refused; nothing is spent.
        """
        return self._fit(X)

    def _check_analysis(self, schema: Schema) -> None:
        require_scaling(self.scaling)
        number_of_components(self.n_components, schema.n_features)

    def _read(self) -> None:
        answer = self.release_.pca(self.n_components, scaling=self.scaling)
        self.components_ = answer.components
        self.explained_variance_ = answer.explained_variance
        self.explained_variance_ratio_ = answer.explained_variance_ratio
        self.is_noise_ = answer.is_noise
        self.mean_, self.scale_ = answer.mean, answer.scale
        self.n_components_ = len(answer.components)
        self.answer_ = answer

    def transform(self, X: Any) -> FloatArray:
        """Compute scores of rows, shape (m, k); scores of private rows are private."""
        rows = self._rows(X)
        return np.asarray(self.answer_.transform(rows))

    def inverse_transform(self, X: Any) -> FloatArray:
        """Convert scores, shape (m, k), to encoded features in original units, shape (m, d)."""
        check_is_fitted(self)
        scores = check_array(X, input_name="X")
        return np.asarray((scores @ self.components_) * self.scale_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_
