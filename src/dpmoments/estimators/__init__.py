"""Estimators with scikit-learn's interface: every fit is one private release, charged once.

``docs/scikit-learn.md`` shows what they share and what users of scikit-learn must do differently:

- Parameters state public knowledge (``schema``, or ``bounds`` or ``row_norm``); nothing is read from the table.
- ``epsilon`` is the cost of *one* fit. With ``ledger`` and ``dataset`` every fit of the estimator and of its copies is
  charged, and refused beyond the grant; without a ledger the estimator and all its copies have one fit together.
- The rows given to ``predict``, ``transform`` and ``score`` are the caller's: the results are as private as those rows.
"""

from dpmoments.estimators.base import expected_failed_checks as expected_failed_checks
from dpmoments.estimators.supervised import DPLinearDiscriminant, DPRidge
from dpmoments.estimators.unsupervised import DPPCA, DPCovariance

__all__ = ["DPPCA", "DPCovariance", "DPLinearDiscriminant", "DPRidge"]
