"""Release a table's count, mean and covariance once under differential privacy; analyse the release freely."""

from typing import TYPE_CHECKING, Any

from dpmoments import mechanisms, metrics, noise, privacy, rows, utility_bounds
from dpmoments.forecast import forecast
from dpmoments.forecast_mean import forecast_mean
from dpmoments.group_releases import GroupReleases
from dpmoments.loading import load
from dpmoments.mean_release import MeanRelease
from dpmoments.moment_release import MomentRelease
from dpmoments.pooling import PooledRelease, pool
from dpmoments.preflight import Preflight, preflight
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.ledger import BudgetExceededError, Ledger, LedgerError
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.privacy_unit import PrivacyUnit
from dpmoments.release import release
from dpmoments.release_groups import release_groups
from dpmoments.release_mean import release_mean
from dpmoments.release_outcome import UnsavedReleaseError
from dpmoments.release_warning import ReleaseWarning
from dpmoments.report.report import report
from dpmoments.schema.columns import Boolean, Categorical, Coordinate, Date, Numeric
from dpmoments.schema.derived import Power, Product
from dpmoments.schema.schema import Schema
from dpmoments.table_files import EngineFiles
from dpmoments.text_files.text_format import TextFormat
from dpmoments.version import __version__

if TYPE_CHECKING:
    from dpmoments import datasets

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
    """``datasets`` when it is first asked for: a release of one's own table needs none of it."""
    if name == "datasets":
        import dpmoments.datasets as datasets

        return datasets
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
