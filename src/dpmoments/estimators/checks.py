"""Common checks of scikit-learn that the estimators do not pass, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dpmoments.privacy.unit import Neighbors

_NOISE = "it compares two fits of one table, and each draws its own noise"
_EMPTY = (
    "it asks for an error on an empty table: under neighbors='add_remove' how many rows there are is private, and a table "
    "of none is released like any other (under 'replace_one' it passes)"
)
_PENALTY = (
    "it sets alpha=0.01, which is little in scikit-learn's units and much in those of the unit ball; with alpha='auto' the same "
    "data give the score it asks for"
)


@dataclass(frozen=True)
class _Reason:
    """Reason why a check cannot pass."""

    words: str
    estimators: tuple[str, ...]
    only_noise: bool = True
    skipped: bool = False
    under: Neighbors | None = None


_TRANSFORMERS = ("DPPCA", "DPLinearDiscriminant")
_REASONS: Mapping[str, _Reason] = MappingProxyType(
    {
        "check_estimators_empty_data_messages": _Reason(
            _EMPTY, ("DPCovariance", "DPPCA", "DPRidge", "DPLinearDiscriminant"), False, under=Neighbors.ADD_REMOVE
        ),
        "check_regressors_train": _Reason(_PENALTY, ("DPRidge",), False),
        "check_fit_idempotent": _Reason(_NOISE, ("DPPCA", "DPRidge", "DPLinearDiscriminant")),
        "check_supervised_y_2d": _Reason(_NOISE, ("DPRidge", "DPLinearDiscriminant")),
        "check_regressors_int": _Reason(_NOISE, ("DPRidge",)),
        "check_regressor_data_not_an_array": _Reason(_NOISE, ("DPRidge",)),
        "check_classifier_data_not_an_array": _Reason(_NOISE, ("DPLinearDiscriminant",)),
        "check_transformer_data_not_an_array": _Reason(_NOISE, _TRANSFORMERS, skipped=True),
        "check_transformer_general": _Reason(_NOISE, _TRANSFORMERS, skipped=True),
        "check_pipeline_consistency": _Reason(_NOISE, (*_TRANSFORMERS, "DPRidge"), skipped=True),
    }
)
"""Every check that an estimator of this package does not pass, by its name in scikit-learn."""


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Return the argument of this name for ``check_estimator`` and ``parametrize_with_checks``.

    Parameters
    ----------
    estimator : DPCovariance, DPPCA, DPRidge or DPLinearDiscriminant

    Returns
    -------
    dict
        Reason by name of the check.

    Examples
    --------
    >>> from dpmoments.estimators import DPCovariance
    >>> sorted(expected_failed_checks(DPCovariance()))
    ['check_estimators_empty_data_messages']
    """
    names = {parent.__name__ for parent in type(estimator).__mro__}
    relation = Neighbors.of(estimator.neighbors)
    return {
        check: reason.words
        for check, reason in _REASONS.items()
        if names & set(reason.estimators) and reason.under in (None, relation)
    }
