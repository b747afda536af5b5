"""Release a table's count, mean and covariance once under differential privacy; analyze the release freely."""

from typing import TYPE_CHECKING, Any

from dpmoments import mechanisms, noise, privacy, rows
from dpmoments.foundation.table_files import EngineFiles
from dpmoments.foundation.text_format import TextFormat
from dpmoments.foundation.version import __version__
from dpmoments.inspection.preflight import Preflight, preflight
from dpmoments.ledger import BudgetExceededError, Ledger, LedgerError
from dpmoments.planning.forecast import forecast
from dpmoments.planning.forecast_mean import forecast_mean
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.loading import load
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.releases.pooling import PooledRelease, pool
from dpmoments.releases.release_warning import ReleaseWarning
from dpmoments.reporting.report import report
from dpmoments.schema.columns import Boolean, Categorical, Coordinate
from dpmoments.schema.dates import Date
from dpmoments.schema.derived import Power, Product
from dpmoments.schema.numeric import Numeric
from dpmoments.schema.schema import Schema
from dpmoments.spending.release import release
from dpmoments.spending.release_groups import release_groups
from dpmoments.spending.release_mean import release_mean
from dpmoments.spending.run import UnsavedReleaseError

if TYPE_CHECKING:
    from dpmoments import datasets
    from dpmoments.papers import bounds as utility_bounds
    from dpmoments.papers import metrics

__all__ = [
    "Boolean",
    "BudgetExceededError",
    "Categorical",
    "Coordinate",
    "Date",
    "EngineFiles",
    "GroupReleases",
    "Ledger",
    "LedgerError",
    "MeanRelease",
    "MomentRelease",
    "Neighbors",
    "Numeric",
    "PooledRelease",
    "Power",
    "Preflight",
    "PrivacyBudget",
    "PrivacyUnit",
    "Product",
    "ReleaseWarning",
    "Schema",
    "TextFormat",
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
    "preflight",
    "privacy",
    "release",
    "release_groups",
    "release_mean",
    "report",
    "rows",
    "utility_bounds",
]


def __getattr__(name: str) -> Any:
    """Return a module that most scripts do not need, loaded when it is first asked for."""
    if name == "datasets":
        import dpmoments.datasets as datasets

        return datasets
    if name == "metrics":
        import dpmoments.papers.metrics as metrics

        return metrics
    if name == "utility_bounds":
        import dpmoments.papers.bounds as bounds

        return bounds
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
