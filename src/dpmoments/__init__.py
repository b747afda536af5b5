"""Release a table's count, mean and covariance once under differential privacy; analyse the release freely."""

from dpmoments import datasets, mechanisms, metrics, noise, privacy, rows, utility_bounds
from dpmoments.forecast import forecast
from dpmoments.forecast_mean import forecast_mean
from dpmoments.group_releases import GroupReleases
from dpmoments.loading import load
from dpmoments.mean_release import MeanRelease
from dpmoments.moment_release import MomentRelease
from dpmoments.pooling import PooledRelease, pool
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.ledger import BudgetExceededError, Ledger, LedgerError
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.release import release
from dpmoments.release_groups import release_groups
from dpmoments.release_mean import release_mean
from dpmoments.release_outcome import ReleaseWarning, UnsavedReleaseError
from dpmoments.schema.columns import Boolean, Categorical, Coordinate, Numeric
from dpmoments.schema.derived import Power, Product
from dpmoments.schema.schema import Schema
from dpmoments.version import __version__

__all__ = [
    "Boolean",
    "BudgetExceededError",
    "Categorical",
    "Coordinate",
    "GroupReleases",
    "Ledger",
    "LedgerError",
    "MeanRelease",
    "MomentRelease",
    "Neighbors",
    "Numeric",
    "PooledRelease",
    "Power",
    "PrivacyBudget",
    "Product",
    "ReleaseWarning",
    "Schema",
    "UnsavedReleaseError",
    "__version__",
    "datasets",
    "forecast",
    "forecast_mean",
    "load",
    "mechanisms",
    "metrics",
    "noise",
    "pool",
    "privacy",
    "release",
    "release_groups",
    "release_mean",
    "rows",
    "utility_bounds",
]
