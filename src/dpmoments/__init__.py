"""Release a table's count, mean and covariance once under differential privacy.

Analyze the release freely.
"""

from importlib import import_module
from typing import Any

from dpmoments.base import __version__ as __version__

_MODULES = {name: name for name in ("datasets", "mechanisms", "noise", "privacy", "rows")}
_PAPERS = {"metrics": "papers.metrics", "utility_bounds": "papers.bounds"}
"""Modules of the papers: in no list of names, so that a star import loads none of them."""
_BY_MODULE = {
    "base.databases": ("DatabaseQuery",),
    "base.errors": ("BudgetExceededError", "LedgerError"),
    "base.table_files": ("EngineFiles",),
    "base.text_files": ("TextFormat",),
    "planning.forecast": ("forecast", "forecast_counts", "forecast_mean"),
    "planning.preflight": ("Preflight", "preflight"),
    "privacy.budget": ("PrivacyBudget",),
    "privacy.ledger": ("Ledger",),
    "privacy.unit": ("Neighbors", "PrivacyUnit"),
    "releases.counts_release": ("CountsRelease",),
    "releases.disclosed": ("ReleaseWarning",),
    "releases.group_releases": ("GroupReleases",),
    "releases.loading": ("load",),
    "releases.mean_release": ("MeanRelease",),
    "releases.moment_release": ("MomentRelease",),
    "releases.pooling": ("PooledRelease", "pool"),
    "reporting.report": ("report",),
    "schema.columns": ("Boolean", "Categorical", "Coordinate", "Numeric", "SamplingWeight"),
    "schema.dates": ("Date",),
    "schema.derived": ("Power", "Product"),
    "schema.schema": ("Schema",),
    "spending.release": ("release", "release_counts", "release_groups", "release_mean"),
    "spending.run": ("UnsavedReleaseError",),
}
_NAMES = {name: module for module, names in _BY_MODULE.items() for name in names}
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
