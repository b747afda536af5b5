"""Which test files judge which module, the likely killers first; a longer prefix wins over a shorter one.

The doctests of a module always judge it too. A file that is not named here is not asked: a mutant that only it would find counts
as a survivor.
"""

from __future__ import annotations

from tools.mutants.enumeration import ROOT, SOURCE

__all__ = ["PACKAGES", "modules", "test_files"]

PACKAGES = {
    "privacy": ("privacy",),
    "moments": ("moments",),
    "mechanisms": ("mechanisms",),
    "rows": (
        "rows/encode",
        "schema/cell_reading",
        "rows/summary",
        "rows/kernel",
        "rows/rounding",
        "rows/units",
        "rows/rows",
        "rows/level_sums",
    ),
    "analysis": ("analysis",),
    "planning": ("planning",),
    "plots": ("plots",),
    "releases/pooling": ("releases/pooling",),
}
"""Packages of the report, and the folders or modules of each."""

TESTS = {
    "privacy/": ("privacy_filter", "laws", "overspending"),
    "privacy/sensitivity": (
        "sensitivity",
        "laws",
        "privacy_filter",
        "release_file",
    ),
    "privacy/unit": ("sensitivity", "privacy_filter", "bad_input", "privacy_units"),
    "privacy/accounting": ("privacy_filter", "budget", "laws", "release_file", "overspending", "privacy_units"),
    "privacy/budget": ("budget", "privacy_filter", "release_file", "bad_input", "found_levels"),
    "privacy/filter": ("privacy_filter", "overspending", "low_bits", "replay"),
    "privacy/receipt": ("privacy_filter", "release_file", "overspending", "laws", "budget", "found_levels"),
    "base/values": ("privacy_filter", "sensitivity", "laws", "budget"),
    "privacy/sampling": (
        "low_bits",
        "laws",
        "privacy_filter",
        "noise_laws",
        "rejection",
        "k_norm",
    ),
    "privacy/origin": ("origin", "release_file", "release_groups"),
    "privacy/ledger": ("ledger", "ledger_composition", "ledger_file", "ledger_model", "found_levels"),
    "privacy/accounts": ("ledger", "ledger_composition", "ledger_file", "ledger_model"),
    "privacy/grants": ("ledger", "ledger_composition", "ledger_file", "ledger_model"),
    "privacy/laws": ("laws", "privacy_filter", "release_file", "k_norm", "sensitivity"),
    "privacy/curves": (
        "curve_gaussian",
        "curve_zcdp",
        "laws",
        "privacy_filter",
        "budget",
        "ledger_composition",
        "curve_discrete_gaussian",
        "privacy_profile",
        "curves",
    ),
    "releases/profile": ("privacy_profile",),
    "papers/curves": ("curves", "wishart_sampling", "laws", "privacy_filter"),
    "base/one_variable": ("curves", "curve_discrete_gaussian"),
    "moments/": ("plain_bounds", "noise_laws", "low_bits", "privacy_filter"),
    "moments/spectral": (
        "plain_bounds",
        "components",
        "noise_terms",
        "plots",
        "plain_repair",
        "repair",
        "possible",
    ),
    "papers/sphere": ("sphere", "noise_laws", "spectral_mechanisms"),
    "mechanisms/": ("additive", "overspending", "contract"),
    "mechanisms/auto": ("auto", "paper_claims", "contract"),
    "mechanisms/registry": ("registry", "contract"),
    "mechanisms/base": (
        "additive",
        "contract",
        "bad_input",
        "privacy_units",
    ),
    "papers/mechanisms/additive_wishart": ("wishart_sampling", "additive", "contract"),
    "papers/mechanisms/inverse_gaussian": ("inverse_gaussian", "contract"),
    "papers/mechanisms/log_scale_histogram": ("log_scale_histogram", "contract", "means"),
    "papers/mechanisms/private_preconditioning": ("private_preconditioning", "contract"),
    "papers/mechanisms/coinpress": ("coinpress",),
    "mechanisms/additive": ("additive", "isotropic", "low_bits", "overspending", "contract"),
    "papers/mechanisms/wishart_sampling": ("wishart_sampling", "contract"),
    "papers/mechanisms/eigenvectors": ("spectral_mechanisms", "contract", "utility_bounds_eigenvectors"),
    "papers/mechanisms/coinpress_": ("coinpress",),
    "papers/mechanisms/coinpress_schedule": ("coinpress", "coinpress_schedule"),
    "spending/release": ("release_groups",),
    "spending/imagined": ("imagined",),
    "mechanisms/lattice_noise": (
        "overspending",
        "additive",
        "privacy_filter",
        "contract",
        "noisy_step",
        "dropped_rows",
    ),
    "mechanisms/shape": ("noisy_step", "additive", "contract", "coinpress"),
    "papers/mechanisms/mapped_rows": (
        "noisy_step",
        "contract",
        "coinpress",
        "means_of_papers",
        "means_replayed",
    ),
    "mechanisms/means/": ("means_replayed", "means_of_papers", "means", "mean_noise"),
    "papers/mechanisms/coinpress_mean": ("means_replayed", "means_of_papers", "means"),
    "papers/mechanisms/coordinatewise": ("means_of_papers", "means_replayed", "means"),
    "schema/cell_reading": (
        "unit_selection",
        "encoding",
        "cell_rules",
        "rows",
    ),
    "rows/encode": ("encoding", "cell_rules", "rows", "derived"),
    "rows/summary": ("cell_rules", "encoding", "sources"),
    "rows/kernel": ("kernel", "exact_moments"),
    "rows/rounding": ("exact_moments", "kernel", "encoding", "affine"),
    "rows/units": (
        "unit_selection",
        "privacy_units",
        "weighted_rows",
        "weighted_replay",
    ),
    "rows/level_": ("level_sums", "sources"),
    "rows/rows": ("unit_selection", "privacy_units"),
    "moments/law": ("noise_terms", "coverage"),
    "moments/terms": ("noise_terms", "coverage"),
    "moments/cells": ("plain_bounds", "k_norm", "noise_law", "noise_terms", "coverage", "counts_release"),
    "mechanisms/counts": ("counts_release",),
    "rows/histogram": ("cell_counts", "counts_release"),
    "moments/models": ("plain_bounds", "noise_terms", "noise_law", "mean_noise", "release_file", "noise_contract"),
    "analysis/": (
        "reference_answers",
        "parts_of_answers",
        "objects",
        "analyses",
        "comparisons",
        "description",
        "coverage",
    ),
    "analysis/answers": (
        "parts_of_answers",
        "objects",
        "reference_answers",
        "comparisons",
        "description",
        "analyses",
        "coverage",
    ),
    "analysis/classifiers": (
        "reference_answers",
        "parts_of_answers",
        "comparisons",
        "naive_bayes",
        "analyses",
        "coverage",
    ),
    "analysis/components": (
        "reference_answers",
        "parts_of_answers",
        "components",
        "comparisons",
        "analyses",
        "coverage",
    ),
    "analysis/confidence": (
        "parts_of_answers",
        "reference_answers",
        "regression_inference",
        "resolvability",
        "analyses",
        "coverage",
        "comparisons",
    ),
    "analysis/contrasts": (
        "parts_of_answers",
        "reference_answers",
        "contrasts",
        "regression_inference",
        "analyses",
        "coverage",
    ),
    "analysis/correlations": (
        "reference_answers",
        "parts_of_answers",
        "comparisons",
        "analyses",
        "coverage",
    ),
    "analysis/cross_table": (
        "reference_answers",
        "parts_of_answers",
        "comparisons",
        "counts_release",
        "analyses",
        "coverage",
    ),
    "analysis/description": (
        "reference_answers",
        "parts_of_answers",
        "description",
        "comparisons",
        "analyses",
        "coverage",
    ),
    "analysis/effects": ("estimates", "reference_answers", "present_rows", "parts_of_answers", "analyses", "coverage"),
    "analysis/estimate": ("estimates", "reference_answers", "present_rows", "parts_of_answers", "analyses", "coverage"),
    "analysis/exports": ("estimates", "reference_answers", "parts_of_answers", "analyses", "coverage"),
    "analysis/instruments": ("estimates", "reference_answers", "parts_of_answers", "analyses", "coverage"),
    "analysis/scales": ("estimates", "reference_answers", "parts_of_answers", "analyses", "coverage"),
    "analysis/goals": ("goals", "parts_of_answers", "analyses", "coverage"),
    "analysis/formula": ("regression_inference", "other_programs", "reference_answers", "coverage"),
    "analysis/frames": ("parts_of_answers", "reference_answers", "comparisons", "synthetic", "analyses", "coverage"),
    "analysis/functionals": (
        "reference_answers",
        "parts_of_answers",
        "components",
        "comparisons",
        "analyses",
        "coverage",
    ),
    "analysis/group_": (
        "reference_answers",
        "parts_of_answers",
        "comparisons",
        "present_rows",
        "objects",
        "analyses",
        "coverage",
    ),
    "analysis/inverted_test": (
        "parts_of_answers",
        "reference_answers",
        "regression_inference",
        "contrasts",
        "analyses",
        "coverage",
    ),
    "analysis/normal_equations": (
        "reference_answers",
        "parts_of_answers",
        "regression_inference",
        "contrasts",
        "analyses",
        "coverage",
    ),
    "analysis/regress": (
        "reference_answers",
        "parts_of_answers",
        "regression_inference",
        "regression",
        "ridge_parameter",
        "contrasts",
        "objects",
        "analyses",
        "coverage",
    ),
    "analysis/regressors": ("reference_answers", "regression", "contrasts", "objects", "analyses", "coverage"),
    "analysis/released": ("reference_answers", "parts_of_answers", "comparisons", "analyses", "coverage"),
    "analysis/robust_errors": ("reference_answers", "parts_of_answers", "regression_inference", "analyses", "coverage"),
    "analysis/synthetic": ("reference_answers", "parts_of_answers", "synthetic", "analyses", "coverage"),
    "moments/repair": ("plain_repair", "repair", "possible"),
    "moments/possible": (
        "plain_repair",
        "repair",
        "possible",
    ),
    "analysis/available_cases": ("available_cases", "reference_answers", "available_release", "present_rows"),
    "planning/": ("forecast_units", "forecasts_and_releases", "forecast", "ways", "planner"),
    "planning/forecast": ("forecast_units", "counts_release", "forecast_mean", "forecast"),
    "planning/forecast_table": ("reference_pictures", "plots", "forecast_units"),
    "planning/typical_table": ("typical_table", "forecast_units"),
    "planning/ways": ("ways",),
    "plots/": ("parts_of_pictures", "reference_pictures", "plots", "pictures"),
    "releases/pooling": ("pooling", "available_release", "coverage"),
}


def modules(asked: list[str]) -> list[str]:
    """All modules whose path starts with one of the asked prefixes; all of the table where nothing is asked."""
    prefixes = [prefix for package in PACKAGES.values() for prefix in package]
    paths = sorted(SOURCE.rglob("*.py"), key=str)
    every = [str(path.relative_to(SOURCE).with_suffix("")) for path in paths]
    found = [module for prefix in prefixes for module in every if module == prefix or module.startswith(f"{prefix}/")]
    return [module for module in found if not asked or any(module.startswith(prefix) for prefix in asked)]


def test_files(module: str) -> tuple[str, ...]:
    """Paths from the root of the repository, likely killers first."""
    prefix = max((prefix for prefix in TESTS if module.startswith(prefix)), key=len)
    return (f"src/dpmoments/{module}.py", *(_test_file(name) for name in TESTS[prefix]))


def _test_file(name: str) -> str:
    (path,) = (ROOT / "tests").rglob(f"test_{name}.py")
    return str(path.relative_to(ROOT))


def package_of(module: str) -> str:
    """The line of the report that a module counts to."""
    return next(package for package, prefixes in PACKAGES.items() if module.startswith(prefixes))
