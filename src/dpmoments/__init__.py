"""Release a table's count, mean and covariance once under differential privacy.

Analyze the release freely.
"""

from importlib import import_module
from typing import Any

from dpmoments.base import __version__ as __version__

_MODULES = {name: name for name in ("datasets", "mechanisms", "noise", "privacy", "rows")}
_PAPERS = {"metrics": "papers.metrics", "utility_bounds": "papers.bounds"}
"""Modules of the papers: in no list of names, so that a star import loads none of them."""
_NAMES: dict[str, str] = {
    "Boolean": "schema.columns",
    "BudgetExceededError": "base.errors",
    "Categorical": "schema.columns",
    "Coordinate": "schema.columns",
    "CountsRelease": "releases.counts_release",
    "DatabaseQuery": "base.databases",
    "Date": "schema.dates",
    "EngineFiles": "base.table_files",
    "GroupReleases": "releases.group_releases",
    "Ledger": "privacy.ledger",
    "LedgerError": "base.errors",
    "MeanRelease": "releases.mean_release",
    "MomentRelease": "releases.moment_release",
    "Neighbors": "privacy.unit",
    "Numeric": "schema.columns",
    "PooledRelease": "releases.pooling",
    "Power": "schema.derived",
    "Preflight": "planning.preflight",
    "PrivacyBudget": "privacy.budget",
    "PrivacyUnit": "privacy.unit",
    "Product": "schema.derived",
    "ReleaseWarning": "releases.disclosed",
    "SamplingWeight": "schema.columns",
    "Schema": "schema.schema",
    "TextFormat": "base.text_format",
    "UnsavedReleaseError": "spending.run",
    "forecast": "planning.forecast",
    "forecast_counts": "planning.forecast",
    "forecast_mean": "planning.forecast",
    "load": "releases.loading",
    "pool": "releases.pooling",
    "preflight": "planning.preflight",
    "release": "spending.release",
    "release_counts": "spending.release",
    "release_groups": "spending.release",
    "release_mean": "spending.release",
    "report": "reporting.report",
}
"""Modules of the other public names."""
__all__ = sorted([*_NAMES, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: a script loads only what it needs."""
    if module := (_MODULES | _PAPERS).get(name):
        value = import_module(f"dpmoments.{module}")
    elif name in _NAMES:
        value = getattr(import_module(f"dpmoments.{_NAMES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_PAPERS})
