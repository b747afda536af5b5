"""Covariance and principal components from one release, with the interfaces of scikit-learn."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.covariance import EmpiricalCovariance, empirical_covariance, log_likelihood
from sklearn.utils.validation import check_array, check_is_fitted

from dpmoments.analysis.components import SCALINGS, Scaling, number_of_components
from dpmoments.analysis.frames import feature_values
from dpmoments.analysis.functionals import precision
from dpmoments.base.checks import check_one_of
from dpmoments.base.errors import InputValueError
from dpmoments.base.message import Message
from dpmoments.base.values import FloatArray
from dpmoments.estimators.base import PrivateEstimator, public_schema
from dpmoments.privacy.unit import Neighbors
from dpmoments.releases.disclosed import ReleaseWarning
from dpmoments.schema.schema import Schema


@dataclass(eq=False, repr=False, kw_only=True)
class MomentsEstimator(PrivateEstimator):
    """Base of estimators without y."""

    row_norm: float | None = None
    _center: FloatArray = field(init=False)

    def fit(self, X: Any, y: Any = None) -> Self:
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

    def _schema_for(self, names: tuple[str, ...], y: Any) -> tuple[Schema, None]:
        return public_schema(self.schema, self.bounds, self.row_norm, names), None

    @abstractmethod
    def get_precision(self) -> FloatArray:
        """Return the precision of the fit, shape (d, d)."""

    def _deviations_of(self, X: Any) -> FloatArray:
        rows, schema = self._rows(X), self.release_.schema
        return np.asarray(feature_values(schema, rows, range(schema.n_features)) - self._center)

    def score(self, X_test: Any, y: Any = None) -> float:
        """Compute the mean log-likelihood of rows under a normal distribution with these moments.

        −∞ if the precision has no inverse. The score of private rows is private.
        """
        covariance = empirical_covariance(self._deviations_of(X_test), assume_centered=True)
        return float(log_likelihood(covariance, self.get_precision()))


@dataclass(eq=False, repr=False, kw_only=True)
class DPCovariance(MomentsEstimator, EmpiricalCovariance):
    """Mean and covariance under differential privacy.

    Parameters
    ----------
    schema, bounds, row_norm, epsilon, delta, rho, neighbors, mechanism, privacy_unit, ledger, dataset, insecure_seed
        As for every estimator (:mod:`dpmoments.estimators`).
    store_precision : bool
        True to store ``precision_``.
    assume_centered : bool
        True: the second moment about zero, with the whole budget spent on it and none on a mean. Requires
        ``neighbors="replace_one"``, where the number of rows to divide by is public.

    Attributes
    ----------
    covariance_ : ndarray of shape (d, d)
        Covariance of the encoded features (``feature_names_released_``; the columns of X if all are numeric), in
        original units, repaired.
    location_ : ndarray of shape (d,)
        The released mean; zeros with ``assume_centered``.
    precision_ : ndarray of shape (d, d)
        Pseudo-inverse of the covariance on the directions above the noise floor: others would be divided by noise.
    n_noise_directions_ : int
        Number of directions left out of it; a warning reports them.
    answer_ : Description
        ``release_.describe()``: every feature's mean and standard deviation with their noise; with ``assume_centered``
        the release.
    release_, n_features_in_, feature_names_in_
        As for every estimator.

    Notes
    -----
    **Privacy.** ``fit`` makes one :func:`dpmoments.release`, which satisfies the stated budget; everything else is
    computed from it. Results of ``mahalanobis`` and ``score`` on private rows are private.

    Distances of :meth:`mahalanobis` are the squares of those of ``release_.mahalanobis``. :meth:`score` is −∞ if a
    direction is left out of the precision.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.random.default_rng(0).normal(0, 0.2, (20_000, 2))
    >>> model = DPCovariance(row_norm=1.0, epsilon=1.0, insecure_seed=0).fit(table)
    >>> model.covariance_.round(2) + 0.0
    array([[0.04, 0.  ],
           [0.  , 0.04]])
    """

    schema: Schema | None = field(default=None, kw_only=False)
    store_precision: bool = True
    assume_centered: bool = False

    @property
    def _with_mean(self) -> bool:  # type: ignore[override]
        return not self.assume_centered

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.assume_centered and not Neighbors.of(self.neighbors).table_size_is_public:
            refused = (
                "assume_centered=True under neighbors='add_remove' has no public number of rows to divide by: use "
                "neighbors='replace_one', or assume_centered=False"
            )
            raise InputValueError(refused)

    def _read(self) -> None:
        released = self.release_
        centered = released.noisy_sum is not None
        d = len(released.feature_names)
        self.location_ = self._center = released.mean.copy() if centered else np.zeros(d)
        self._set_covariance(released.covariance if centered else released.second_moment)
        self.n_noise_directions_ = 0
        if centered:
            result, self.n_noise_directions_ = precision(released)
            self.precision_ = result if self.store_precision else None
        self.answer_ = released.describe() if centered else released
        if self.n_noise_directions_:
            lost = Message("directions-lost", directions=self.n_noise_directions_, features=d)
            warnings.warn(ReleaseWarning(lost, released), stacklevel=5)

    def get_precision(self) -> FloatArray:
        """Return ``precision_``, recomputed if it was not stored."""
        if self.store_precision or self.release_.noisy_sum is None:
            return np.asarray(EmpiricalCovariance.get_precision(self))
        return precision(self.release_)[0]

    def mahalanobis(self, X: Any) -> FloatArray:
        """Compute squared Mahalanobis distances of rows from ``location_``, shape (m,)."""
        deviations = self._deviations_of(X)
        return np.asarray(np.einsum("ij,jk,ik->i", deviations, self.get_precision(), deviations))


@dataclass(eq=False, repr=False, kw_only=True)
class DPPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MomentsEstimator):
    """Principal components under differential privacy.

    Parameters
    ----------
    n_components : int or float, optional
        Number of components, k; default: all. Between 0 and 1: as many as explain more than this share of the variance.
    schema, bounds, row_norm, epsilon, delta, rho, neighbors, mechanism, privacy_unit, ledger, dataset, insecure_seed
        As for every estimator (:mod:`dpmoments.estimators`).
    scaling : {"units", "bounds", "correlation"}
        Divisor of the features (:func:`dpmoments.analysis.components.pca`): none; the half-width of their public
        bounds; or their released standard deviation. A StandardScaler before this would read the table, unprotected.
    whiten : bool
        True: scores have the variance 1.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Unit vectors in scaled feature space; d the encoded features (``feature_names_released_``).
    explained_variance_, explained_variance_ratio_ : ndarray of shape (k,)
        Variances divided by n; scikit-learn divides by n − 1.
    singular_values_ : ndarray of shape (k,)
        Of the centered and scaled rows.
    noise_variance_ : float
        Mean of the variances of the components left out; 0 without any (Tipping & Bishop 1999).
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
    computed from it. ``transform`` and ``score`` apply it to the caller's rows: scores of private rows are private,
    including those from ``fit_transform``.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.random.default_rng(0).normal(0, [0.3, 0.1, 0.1], (20_000, 3))
    >>> model = DPPCA(n_components=1, row_norm=1.0, epsilon=1.0, insecure_seed=0).fit(table)
    >>> abs(model.components_).round(1), model.is_noise_
    (array([[1., 0., 0.]]), array([False]))
    """

    n_components: int | float | None = field(default=None, kw_only=False)
    scaling: Scaling = "units"
    whiten: bool = False

    def _number(self, shares: FloatArray) -> int:
        """Return k by the shares of the variance, shape (d,)."""
        if not isinstance(self.n_components, float) or not 0.0 < self.n_components < 1.0:
            return number_of_components(self.n_components, len(shares))
        return min(int((np.cumsum(shares) <= self.n_components).sum()) + 1, len(shares))

    def _check_analysis(self, schema: Schema) -> None:
        check_one_of("scaling", self.scaling, SCALINGS)
        self._number(np.ones(schema.n_features))

    def _read(self) -> None:
        every = self.release_.pca(scaling=self.scaling)
        k = self._number(every.explained_variance_ratio)
        answer = self.release_.pca(k, scaling=self.scaling)
        left = every.explained_variance[k:]
        self.components_ = answer.components
        self.explained_variance_ = answer.explained_variance
        self.explained_variance_ratio_ = answer.explained_variance_ratio
        self.singular_values_ = np.sqrt(answer.explained_variance * self.release_.n_rows)
        self.noise_variance_ = float(left.mean()) if len(left) else 0.0
        self.is_noise_ = answer.is_noise
        self.mean_ = self._center = answer.mean
        self.scale_ = answer.scale
        self.n_components_ = len(answer.components)
        self.answer_ = answer

    @property
    def _deviations(self) -> FloatArray:
        """Divisors of scores."""
        if not self.whiten:
            return np.ones(self.n_components_)
        return np.sqrt(np.maximum(self.explained_variance_, np.finfo(float).tiny))

    def transform(self, X: Any) -> FloatArray:
        """Compute scores of rows, shape (m, k); scores of private rows are private."""
        rows = self._rows(X)
        return np.asarray(self.answer_.transform(rows) / self._deviations)

    def inverse_transform(self, X: Any) -> FloatArray:
        """Convert scores, shape (m, k), to encoded features in original units, shape (m, d)."""
        check_is_fitted(self)
        scores = check_array(X, input_name="X")
        return np.asarray((scores * self._deviations @ self.components_) * self.scale_ + self.mean_)

    def get_covariance(self) -> FloatArray:
        """Compute the covariance of the probabilistic model in original units, shape (d, d)."""
        check_is_fitted(self)
        beyond = np.maximum(self.explained_variance_ - self.noise_variance_, 0.0)
        result = (self.components_.T * beyond) @ self.components_ + self.noise_variance_ * np.eye(len(self.scale_))
        return np.asarray(result * np.outer(self.scale_, self.scale_))

    def get_precision(self) -> FloatArray:
        """Compute the inverse of :meth:`get_covariance`, its pseudo-inverse if it is singular."""
        return np.asarray(np.linalg.pinv(self.get_covariance(), hermitian=True), dtype=np.float64)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_
