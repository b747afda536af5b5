"""Every mechanism by name; the command line, the forecast, the docs table and the contract tests read this."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from dpmoments.mechanisms.adaptive_ball import AdaptiveBall
from dpmoments.mechanisms.auto import Auto
from dpmoments.mechanisms.base import ConfiguredMechanism, Mechanism
from dpmoments.mechanisms.coinpress import CoinPress
from dpmoments.mechanisms.gaussian import Gaussian
from dpmoments.mechanisms.isotropic import Isotropic
from dpmoments.mechanisms.laplace import Laplace
from dpmoments.mechanisms.log_scale_histogram import LogScaleHistogram
from dpmoments.mechanisms.matrix_laplace import MatrixLaplace
from dpmoments.mechanisms.means.base import MeanMechanism
from dpmoments.mechanisms.means.coinpress import CoinPressMean
from dpmoments.mechanisms.means.log_scale_histogram import LogScaleHistogramMean
from dpmoments.mechanisms.means.variance_aware import VarianceAware
from dpmoments.papers.mechanisms.additive_wishart import AdditiveWishart
from dpmoments.papers.mechanisms.inverse_gaussian import InverseGaussian
from dpmoments.papers.mechanisms.inverse_wishart import InverseWishart
from dpmoments.papers.mechanisms.iterative_eigenvectors import IterativeEigenvectors
from dpmoments.papers.mechanisms.johnson_lindenstrauss import JohnsonLindenstrauss
from dpmoments.papers.mechanisms.kapralov_talwar import KapralovTalwar
from dpmoments.papers.mechanisms.karwa_vadhan import KarwaVadhan
from dpmoments.papers.mechanisms.naive import Naive
from dpmoments.papers.mechanisms.private_preconditioning import PrivatePreconditioning
from dpmoments.papers.mechanisms.symmetric_quantiles import SymmetricQuantiles

__all__ = ["MEAN_MECHANISMS", "MECHANISMS", "make_mean_mechanism", "make_mechanism"]

Configured = TypeVar("Configured", bound=ConfiguredMechanism[Any])


def _by_name(*kinds: type[Configured]) -> Mapping[str, type[Configured]]:
    return MappingProxyType(dict(sorted((kind.registry_name(), kind) for kind in kinds)))


MECHANISMS: Mapping[str, type[Mechanism]] = _by_name(
    AdaptiveBall,
    AdditiveWishart,
    Auto,
    CoinPress,
    Gaussian,
    InverseGaussian,
    InverseWishart,
    Isotropic,
    IterativeEigenvectors,
    JohnsonLindenstrauss,
    KapralovTalwar,
    Laplace,
    LogScaleHistogram,
    MatrixLaplace,
    PrivatePreconditioning,
)
"""All mechanism classes by registry name, sorted."""

MEAN_MECHANISMS: Mapping[str, type[MeanMechanism]] = _by_name(
    CoinPressMean, KarwaVadhan, LogScaleHistogramMean, Naive, SymmetricQuantiles, VarianceAware
)
"""All estimators of means by registry name, sorted."""


def make_mechanism(mechanism: Mechanism | str, **options: Any) -> Mechanism:
    """Return the mechanism named, with its options; a configured one is returned as it is.

    Raises
    ------
    ValueError
        If no mechanism has that name, or options are given for a configured one.
    TypeError
        If it is neither a name nor a mechanism, or takes no such option.

    Examples
    --------
    >>> make_mechanism("laplace", calibration="paper")
    Laplace(calibration='paper')
    """
    if isinstance(mechanism, Mechanism):
        return _as_configured(mechanism, options)
    return _class_named(mechanism, MECHANISMS, "mechanism")(**options)


def make_mean_mechanism(mechanism: MeanMechanism | str, **options: Any) -> MeanMechanism:
    """Return the estimator of means named, with its options; a configured one is returned as it is.

    Raises
    ------
    ValueError, TypeError
        As for :func:`make_mechanism`.

    Examples
    --------
    >>> make_mean_mechanism("symq", radius=10.0)
    SymmetricQuantiles(radius=10.0, quantile=0.35)
    """
    if isinstance(mechanism, MeanMechanism):
        return _as_configured(mechanism, options)
    return _class_named(mechanism, MEAN_MECHANISMS, "estimator of means")(**options)


def _as_configured(mechanism: Configured, options: Mapping[str, Any]) -> Configured:
    if options:
        raise ValueError(f"{mechanism.name!r} is configured already: leave out {', '.join(options)}")
    return mechanism


def _class_named(name: object, known: Mapping[str, type[Configured]], noun: str) -> type[Configured]:
    if not isinstance(name, str):
        raise TypeError(f"mechanism must be a name or a configured {noun}, got {type(name).__name__}")
    if name not in known:
        raise ValueError(f"there is no {noun} {name!r}: use one of {', '.join(known)}")
    return known[name]
