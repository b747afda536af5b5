"""Estimators with scikit-learn's interface: every fit is one private release, charged once.

What they have in common, the page ``docs/scikit-learn.md`` shows with what a user of scikit-learn must do otherwise:

- What is public is said in parameters (``schema``, or ``bounds`` or ``row_norm``); nothing is read off the table.
- ``epsilon`` is what *one* fit costs. With ``ledger`` and ``dataset`` every fit of the estimator and of its copies is charged
  and refused beyond the grant; without a ledger there is one fit for the estimator and all its copies together.
- The rows given to ``predict``, ``transform`` and ``score`` are the caller's: what comes back is as private as those rows.
"""

from dpmoments.estimators.checks import expected_failed_checks
from dpmoments.estimators.components import DPPCA
from dpmoments.estimators.covariance import DPCovariance
from dpmoments.estimators.discriminant import DPLinearDiscriminant
from dpmoments.estimators.ridge import DPRidge

__all__ = ["DPPCA", "DPCovariance", "DPLinearDiscriminant", "DPRidge", "expected_failed_checks"]
