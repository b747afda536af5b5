"""Release a table's count, mean and covariance once under differential privacy.

Analyze the release freely.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpmoments.foundation import __version__
from dpmoments.foundation.errors import InputError

if TYPE_CHECKING:
    from dpmoments import datasets, mechanisms, noise, privacy, rows
    from dpmoments.foundation.databases import DatabaseQuery
    from dpmoments.foundation.table_files import EngineFiles
    from dpmoments.foundation.text_format import TextFormat
    from dpmoments.inspection.preflight import Preflight, preflight
    from dpmoments.ledger import BudgetExceededError, Ledger, LedgerError
    from dpmoments.papers import bounds as utility_bounds
    from dpmoments.papers import metrics
    from dpmoments.planning.forecast import forecast, forecast_counts, forecast_mean
    from dpmoments.privacy.budget import PrivacyBudget
    from dpmoments.privacy.unit import Neighbors, PrivacyUnit
    from dpmoments.releases.counts_release import CountsRelease
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
    from dpmoments.spending.release import release, release_counts, release_groups, release_mean
    from dpmoments.spending.run import UnsavedReleaseError

__all__ = [
    "Boolean",
    "BudgetExceededError",
    "Categorical",
    "Coordinate",
    "CountsRelease",
    "DatabaseQuery",
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
    "forecast_counts",
    "forecast_mean",
    "load",
    "mechanisms",
    "metrics",
    "noise",
    "pool",
    "preflight",
    "privacy",
    "release",
    "release_counts",
    "release_groups",
    "release_mean",
    "report",
    "rows",
    "utility_bounds",
]


_MODULES = {
    "datasets": "datasets",
    "mechanisms": "mechanisms",
    "metrics": "papers.metrics",
    "noise": "noise",
    "privacy": "privacy",
    "rows": "rows",
    "utility_bounds": "papers.bounds",
}
"""Public modules, and those that they are."""
_NAMES: dict[str, str] = {
    "Boolean": "schema.columns",
    "BudgetExceededError": "ledger",
    "Categorical": "schema.columns",
    "Coordinate": "schema.columns",
    "CountsRelease": "releases.counts_release",
    "DatabaseQuery": "foundation.databases",
    "Date": "schema.dates",
    "EngineFiles": "foundation.table_files",
    "GroupReleases": "releases.group_releases",
    "Ledger": "ledger",
    "LedgerError": "ledger",
    "MeanRelease": "releases.mean_release",
    "MomentRelease": "releases.moment_release",
    "Neighbors": "privacy.unit",
    "Numeric": "schema.numeric",
    "PooledRelease": "releases.pooling",
    "Power": "schema.derived",
    "Preflight": "inspection.preflight",
    "PrivacyBudget": "privacy.budget",
    "PrivacyUnit": "privacy.unit",
    "Product": "schema.derived",
    "ReleaseWarning": "releases.release_warning",
    "Schema": "schema.schema",
    "TextFormat": "foundation.text_format",
    "UnsavedReleaseError": "spending.run",
    "forecast": "planning.forecast",
    "forecast_counts": "planning.forecast",
    "forecast_mean": "planning.forecast",
    "load": "releases.loading",
    "pool": "releases.pooling",
    "preflight": "inspection.preflight",
    "release": "spending.release",
    "release_counts": "spending.release",
    "release_groups": "spending.release",
    "release_mean": "spending.release",
    "report": "reporting.report",
}
"""Modules of the other public names."""


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: a script loads only what it needs."""
    if name in _MODULES:
        value = import_module(f"dpmoments.{_MODULES[name]}")
    elif name in _NAMES:
        value = getattr(import_module(f"dpmoments.{_NAMES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _message(code: str, **facts: Any) -> Any:
    """Return the message of an error."""
    return import_module("dpmoments.messages.message").Message(code, **facts)


InputError.make_message = _message
