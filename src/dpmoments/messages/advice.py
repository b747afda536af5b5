"""Advice that follows a message, for analysts and for curators.

A curator's advice is a Python call, or a command at the shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from types import MappingProxyType

from dpmoments.messages.codes import Fact
from dpmoments.messages.wording import Words

_CLIPPED = "Read all results as results about clipped rows."
_NO_RELIANCE = "Do not rely on it."

ANALYST: Mapping[str, Words] = MappingProxyType(
    {
        "rows-dropped": "Results describe the rest.",
        "too-few-rows": "Rely only on results that are marked as distinguishable from noise.",
        "location-lost": "Do not use them.",
        "values-clipped": _CLIPPED,
        "mean-lost": _NO_RELIANCE,
        "variance-lost": _NO_RELIANCE,
        "rows-outside-bounds": _CLIPPED,
        "rows-mostly-clipped": _CLIPPED,
        "tables-not-checked": "Ask the curators whether the tables have rows in common.",
        "dependent-rows": "Read p-values as upper bounds.",
    }
)
"""Advice by code; a message without any has nothing that an analyst can do."""


def _to_do_better(facts: Mapping[str, Fact]) -> str:
    """Return what makes the error of a mechanism that ``auto`` chose smaller."""
    budget = "more budget"
    if facts["kind"] == "pure":
        budget = "more epsilon (the error falls as 1/epsilon), or, with many columns, a small delta"
    return f"To do better: fewer columns, {budget}."


def _for_the_unit(facts: Mapping[str, Fact], release: str, unit: str) -> str:
    """Return the remedy for another privacy unit: never rows for people, nor a second budget."""
    if facts["unit"] != "row" and not facts["spent"]:
        return f"Nothing of it is spent yet: grant it again with {unit}. Nothing was spent."
    remedy = "" if facts["granted"] == "row" else f"{release}. "
    return (
        f"{remedy}Do not grant a second budget to the same people under another name: their losses would add up, and no budget "
        "would count them together. Nothing was spent."
    )


def _call(facts: Mapping[str, Fact]) -> str:
    """Return the call that grants the budget that a release lacks."""
    neighbors, unit = facts.get("neighbors", "add_remove"), facts.get("unit", "row")
    more = "" if neighbors == "add_remove" else f", neighbors={neighbors!r}"
    more += "" if unit == "row" else f", unit={str(unit)!r}"
    return f"ledger.grant({str(facts.get('dataset', 'people-2026'))!r}, epsilon=1.0{more})"


def _command(facts: Mapping[str, Fact]) -> str:
    """Return the command that grants the budget that a release lacks."""
    ledger, dataset, unit = (str(facts.get(name, usual)) for name, usual in _USUAL.items())
    of_unit = "" if unit == "row" else f" --privacy-unit {shlex.quote(unit)}"
    neighbors = facts.get("neighbors", "add_remove")
    return f"'dpmoments ledger grant {shlex.quote(ledger)} {shlex.quote(dataset)} --epsilon 1 --neighbors {neighbors}{of_unit}'"


_USUAL: Mapping[str, str] = MappingProxyType({"path": "LEDGER", "dataset": "people-2026", "unit": "row"})
_COUNTABLE: Mapping[Fact, str] = MappingProxyType(
    {
        "pure-grant": "Release with epsilon only, or grant epsilon and delta.",
        "draws-not-zcdp": "Release with rho, with epsilon only, or with a mechanism whose draws are Gaussian.",
        "no-mu": "Release with one of these.",
        "grant-in-mu": "Release with one of these.",
        "no-delta": "Release with epsilon, and delta if needed.",
        "no-rho": "Release with rho, with epsilon only, or with a mechanism whose draws are Gaussian.",
    }
)


def _to_be_counted(facts: Mapping[str, Fact]) -> str:
    return f"{_COUNTABLE.get(facts['reason'], '')} Nothing was read and nothing was spent.".strip()


_BOTH: Mapping[str, Words] = {
    "cost-not-countable": _to_be_counted,
    "ledger-foreign": "Name another file; it was not changed.",
    "rough-private-scales": _to_do_better,
    "least-error": _to_do_better,
    "row-count-uncertain": "More rows, a larger budget, or rules that drop no rows would help.",
    "location-lost": "Give public bounds, more rows or a larger budget.",
    "search-unsettled": "Give more rows or a larger budget, or use coinpress with a radius.",
    "values-clipped": "Give public bounds, or a larger radius or scale.",
    "values-unseen": "Public bounds, more rows or a larger budget would help.",
    "variance-lost": "Give public bounds, more rows or a larger budget.",
    "mean-lost": "Give more rows or a larger budget, or a smaller radius or scale if the stated one is too large.",
    "mean-beyond-radius": "Give a larger radius.",
    "values-beyond-radius": "Give a larger radius.",
    "mostly-clipped": "Use a larger radius or scale.",
    "rows-unseen": "More rows or a larger rho are needed.",
    "outlying-rows-clipped": "A mechanism with a public radius and scale includes them.",
    "rows-outside-bounds": "Widen the schema's scale or radius, or eigenvalue_bounds or mean_radius.",
    "rows-mostly-clipped": "Give a larger radius or scale.",
    "small-eigenvalues-lost": "Give more rows, a larger rho or a narrower range.",
    "clip-widened": "Give public bounds, or release a transformed column (its logarithm).",
    "variance-of-outlying-rows": "Give public bounds, or release a transformed column (its logarithm).",
    "variance-of-few-rows": "Declare columns of two values as Boolean, or give bounds.",
    "rounds-too-noisy": "This mechanism needs many more rows; coinpress needs fewer.",
    "dependent-rows": "A contribution bound of one row per unit avoids this.",
    "not-in-ledger": "Do not release again; the budget is counted.",
    "directions-lost": "More rows or a larger budget would help.",
}

IN_PYTHON: Mapping[str, Words] = MappingProxyType(
    {
        **_BOTH,
        "rows-dropped": "The release describes the rest. dpm.preflight shows which columns dropped them.",
        "too-few-rows": "More rows or a larger budget would help; see dpm.forecast before the next release.",
        "delta-too-large": "Use a delta well below 1/n.",
        "power-outside-i": "The release needs dpm.Power({column:python}, {exponent}) in its schema.",
        "product-not-released": "It needs dpm.Product({factors:python}) in the schema of the release.",
        "no-robust-errors": "A release of schema.with_products([...]) has them.",
        "unknown-file-ending": "Or read the file and pass a frame, such as pd.read_excel(...).",
        "unknown-mechanism": "Known: {known:all}.",
        "unknown-feature": "release.feature_names lists all {features:,}.",
        "no-grant": lambda facts: f"Grant one first: {_call(facts)}. Nothing was spent.",
        "budget-exceeded": (
            "Nothing was read and nothing was spent. Ask for less, or grant more with ledger.grant if more may be spent on this "
            "dataset."
        ),
        "grant-of-other-unit": lambda facts: _for_the_unit(
            facts, f"Release with privacy_unit=PrivacyUnit({facts['granted']!r}, max_rows=…)", f"unit={facts['unit']!r}"
        ),
        "grant-of-other-relation": (
            "Release with neighbors='add_remove', or grant a dataset of another name for replace_one. Nothing was spent."
        ),
        "ledger-missing": lambda facts: f"Create it with {_call(facts)}.",
        "no-ledger": "Release with ledger= and dataset=, so that all releases of the table add up.",
        "tables-not-checked": "Make releases with dataset='…', one name for each table.",
        "too-many-features": (
            "Give columns bounds or scale ranges and leave the mechanism out, or use coinpress; dpm.release_mean takes any "
            "number of columns."
        ),
        "not-a-release": "Make one with dpm.release(…), or read its file: dpm.load('people.json').",
        "fit-in-memory": (
            "Release it with dpm.release(table, schema, …), which reads files and engines, then call fit_release(release), which "
            "spends nothing."
        ),
        "public-bounds-needed": (
            "Give schema=dpm.Schema(dpm.Numeric('age', 0, 100), …), or bounds=(low, high) of every column, known without looking "
            "at the table."
        ),
    }
)
"""Advice by code, as Python calls."""

AT_THE_SHELL: Mapping[str, Words] = MappingProxyType(
    {
        **_BOTH,
        "nothing-counted": (
            "State --ledger FILE --dataset NAME ('dpmoments ledger grant' creates one), or --no-ledger"
        ),
        "contribution-bound-needed": "(--max-rows-per-unit 5)",
        "rows-dropped": "The release describes the rest. 'dpmoments preflight' shows which columns dropped them.",
        "too-few-rows": "More rows or a larger budget would help; see 'dpmoments forecast' before the next release.",
        "delta-too-large": "Use a --delta well below 1/n.",
        "power-outside-i": "It must be a column 'kind: power' of the schema of the release.",
        "product-not-released": "It must be a column 'kind: product' of the schema of the release.",
        "no-robust-errors": "They must be columns 'kind: power' or 'kind: product' of the schema of the release.",
        "unknown-file-ending": "Convert the file to one of these.",
        "unknown-mechanism": "'dpmoments mechanisms' lists all.",
        "unknown-feature": "'dpmoments show' and 'dpmoments forecast' list all {features:,}.",
        "no-grant": lambda facts: f"Grant one first: {_command(facts)}. Nothing was spent.",
        "budget-exceeded": (
            "Nothing was read and nothing was spent. Ask for less, or grant more with 'dpmoments ledger grant' if more may be "
            "spent on this dataset."
        ),
        "grant-of-other-unit": lambda facts: _for_the_unit(
            facts,
            f"Release with --privacy-unit {facts['granted']:shell} --max-rows-per-unit K",
            f"--privacy-unit {facts['unit']:shell}",
        ),
        "grant-of-other-relation": (
            "Release with --neighbors add_remove, or grant a dataset of another name for replace_one. Nothing was spent."
        ),
        "dependent-rows": "--max-rows-per-unit 1 avoids this.",
        "ledger-missing": lambda facts: f"Create it with {_command(facts)}.",
        "no-ledger": "Release with --ledger and --dataset, so that all releases of the table add up.",
        "tables-not-checked": "Make releases with --dataset NAME, one name for each table.",
        "too-many-features": "Give columns bounds or scale ranges and leave the mechanism out, or use coinpress.",
        "file-of-mean": "'dpmoments show {path:shell}' prints the mean.",
        "file-of-counts": "'dpmoments show {path:shell}' prints the tables.",
        "file-of-groups": "'dpmoments groups {path:shell} --into FOLDER' writes each to its own file.",
        "file-of-one-release": "'dpmoments release --by COLUMN' releases every level of a column.",
        "file-of-several-releases": "'dpmoments groups {path:shell} --into FOLDER' writes each to its own file.",
        "draft-exists": "Name another file with --output.",
    }
)
"""Advice by code, as commands."""
