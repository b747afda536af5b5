"""Codes of all messages, each with the kinds of its facts.

A file that holds another code, or another fact, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from string import Formatter
from types import MappingProxyType
from typing import Any

from dpmoments.foundation.errors import StatedError
from dpmoments.messages.phrases import PHRASES
from dpmoments.messages.refusals import REFUSALS

Fact = bool | int | float | str | StatedError | tuple["Fact", ...]
"""A plain fact; in an error also another message, part of its sentence."""
Kinds = Mapping[str, str]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_word(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_.-]{1,80}", value) is not None


def _is_message(value: object) -> bool:
    return hasattr(value, "facts") and hasattr(value, "text")


def _every(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, tuple) and all(map(check, value))


KINDS: Mapping[str, Callable[[object], bool]] = MappingProxyType(
    {
        "number": _is_number,
        "numbers": _every(_is_number),
        "integer": _is_integer,
        "flag": lambda value: isinstance(value, bool),
        "name": _is_text,
        "names": _every(_is_text),
        "level": lambda value: isinstance(value, str | int),
        "word": _is_word,
        "words": _every(_is_word),
        "amount": _is_text,
        "phrase": lambda value: isinstance(value, str) and value in PHRASES,
        "fact": lambda value: isinstance(value, bool | int | float | str),
        "message": _is_message,
        "messages": _every(_is_message),
    }
)
"""Kinds of facts: a ``name`` is text that a person wrote.

A ``word`` is one that the library defines, and a ``phrase`` one of
:data:`PHRASES`; an ``amount`` is a privacy loss as it is printed, in an error only. A ``fact`` of an
error is a number or text, and a ``message`` another message that is part of its sentence.
"""
ARGUMENT = "argument"
"""Field of a sentence that is not a fact but an argument, as Python or the shell writes it."""

_BUDGET = {"epsilon?": "number", "delta?": "number", "rho?": "number"}
_STEP = {"step?": "integer", "last?": "flag", "round?": "integer"}
_FEATURE = {"feature": "integer"}
_LEVEL = {"feature": "integer", "level": "integer"}
_NAMES: Kinds = {"names": "names"}
_SHARE: Kinds = {"share": "number"}
_QUERY: Kinds = {"query": "name"}
_PATH: Kinds = {"path": "name"}
_NONE: Kinds = {}

_RULES: Mapping[str, Kinds] = {
    "values-clipped-to-bounds": {
        "column": "name",
        "lower": "number",
        "upper": "number",
        "missing": "word",
        "fill?": "number",
        "typical_lower?": "number",
        "typical_upper?": "number",
    },
    "dates-clipped-to-bounds": {
        "column": "name",
        "lower": "name",
        "upper": "name",
        "missing": "word",
        "fill?": "name",
        "unit": "word",
        "origin": "name",
    },
    "scale-range": {
        "column": "name",
        "least": "number",
        "largest": "number",
        "center": "number",
        "radius": "number",
        "missing": "word",
        "fill?": "number",
    },
    "two-values": {"column": "name", "missing": "word", "fill?": "number"},
    "public-levels": {"column": "name", "levels": "integer", "missing": "word", "other": "word"},
    "derived-feature": {"column": "name", "factors": "names"},
    "coordinates": {"coordinates": "integer", "missing": "words"},
    "row-norm-bound": {"norm": "number"},
    "no-row-norm-bound": _NONE,
    "noise-by-typical-range": _NONE,
    "noise-by-weight": {"names": "names", "weights": "numbers"},
    "noise-by-mean-weight": {"weight": "number"},
    "rows-scaled-to-ball": {"radius": "number"},
    "rows-of-query": {"clauses": "names"},
    "group-of-rows": {"column": "name", "level": "level", "groups": "integer"},
    "parallel-groups": {"column": "name", "groups": "integer"},
    "pooled-tables": {"tables": "integer", "neighbors": "word", "unit?": "name"},
    "pooled-part": {"mechanism": "name", **_BUDGET},
}
"""Rules of the privacy statement.

What was done to values and rows, and why budgets need not be added.
"""

_GUARANTEE: Mapping[str, Kinds] = {
    "zcdp": {"rho": "number", "epsilon": "number", "delta": "number", "neighbors": "word", "unit?": "name"},
    "pure-dp": {"epsilon": "number", "neighbors": "word", "unit?": "name"},
    "approximate-dp": {"epsilon": "number", "delta": "number", "neighbors": "word", "unit?": "name"},
    "unit-is-row": {"kind": "word"},
    "unit-is-rows": {"column": "name", "max_rows": "integer", "missing": "word", "kind": "word"},
    "exact-lattice": _NONE,
    "lattice-rounded": _NONE,
    "idealized": _NONE,
    "not-private": _NONE,
    "no-ledger": _NONE,
}
"""Sentences of the privacy statement that follow from its entries; no file stores them."""

_WARNINGS: Mapping[str, Kinds] = {
    "rows-dropped": {"share": "number", "rows": "integer"},
    "row-count-uncertain": {"noise": "number", "rows": "number"},
    "too-few-rows": {"rows": "number", "noise": "number"},
    "delta-too-large": {"delta": "number", "rows?": "integer"},
    "location-lost": _NAMES,
    "search-unsettled": _NAMES,
    "values-clipped": {"share": "number", "names": "names"},
    "values-unseen": {"share": "number", "names": "names"},
    "values-mostly-equal": _NONE,
    "variance-lost": _NONE,
    "mean-lost": {"names?": "names"},
    "mean-beyond-radius": {"names?": "names"},
    "values-beyond-radius": _NAMES,
    "mostly-clipped": {"names?": "names"},
    "rows-mostly-clipped": _NONE,
    "rows-unseen": _NONE,
    "outlying-rows-clipped": _SHARE,
    "noise-incomplete": _NONE,
    "rows-outside-bounds": _NONE,
    "small-eigenvalues-lost": _NONE,
    "clip-widened": {"times": "number"},
    "variance-of-few-rows": _NONE,
    "variance-of-outlying-rows": _SHARE,
    "noise-above-covariance": _NONE,
    "rows-unseen-tail": _SHARE,
    "tail-not-excluded": {"share": "number", "names": "names"},
    "fewer-rows-than-features": _NONE,
    "rounds-too-noisy": _NONE,
    "tables-not-checked": _NAMES,
    "dependent-rows": {"column": "name", "max_rows": "integer"},
    "not-in-ledger": {"entry": "integer", "reason": "message"},
    "directions-lost": {"directions": "integer", "features": "integer"},
}
"""Reasons not to trust a release, or an answer."""

_CAVEATS: Mapping[str, Kinds] = {
    "linearized": _NONE,
    "clipped-in-last-step": _NONE,
    "asserted-smallest-eigenvalue": _NONE,
}
"""Conditions under which the noise of a release is known.

Codes of :class:`dpmoments.noise.terms.NoiseLaw`.
"""


def _kinds_of(sentence: str) -> Kinds:
    """Return the kinds of a sentence's fields: how a fact is formatted says what it is."""
    kinds: dict[str, str] = {}
    for _, name, spec, _ in Formatter().parse(sentence):
        if name == ARGUMENT:
            kinds |= _kinds_of(spec or "")
        elif name and spec == "message?":
            kinds[f"{name}?"] = "message"
        elif name:
            own = spec in ("phrase", "message", "messages")
            kinds[name] = (
                str(spec) if own else "names" if spec in ("all", "and no", "listed") else "number" if spec else "fact"
            )
    return kinds


_ERRORS: Mapping[str, Kinds] = {
    **{code: _kinds_of(sentence) for code, sentence in REFUSALS.items()},
    "wrong-type": {"column?": "name", "parameter": "name", "expected": "phrase", "got": "name"},
    "out-of-range": {"column?": "name", "parameter": "name", "value": "fact", "expected": "phrase"},
    "not-between": {"parameter": "name", "value": "fact", "least": "number", "most": "number"},
    "not-one-of": {"column?": "name", "parameter": "name", "value": "fact", "choices": "names"},
    "needs-mean": {"analysis?": "phrase"},
    "file-inconsistent": {"path": "fact", "noun": "name", "failure": "message", "cause": "word"},
    "power-outside-i": {"term": "name", "column": "name", "exponent": "integer"},
    "not-categorical-in-formula": {"term": "name", "column": "name"},
    "product-not-released": {"factors": "names"},
    "no-robust-errors": {"missing": "names"},
    "unknown-term": {"term": "name", "close?": "name"},
    "unknown-feature": {"name": "name", "features": "integer", "close?": "name"},
    "column-of-several-features": {"name": "name", "features": "names"},
    "unknown-grouping-column": {"name": "name", "columns": "names", "close?": "name"},
    "not-a-grouping-column": {"name": "name", "kind": "word", "columns": "names"},
    "unknown-file-ending": {"path": "name", "endings": "names"},
    "unknown-mechanism": {"name": "name", "of_means": "flag", "close?": "name", "known": "names"},
    "target-needed": {"columns": "names"},
    "target-not-a-column": {"name": "name", "kind": "word", "columns": "names", "close?": "name"},
    "unknown-coefficient": {"name": "name", "coefficients": "integer", "close?": "name"},
    "penalized-errors": {"method": "word"},
    "too-many-predictions": {"rows": "integer", "most": "integer"},
    "unknown-column": {"name": "name", "close?": "name"},
    "unknown-name": {"name": "name", "close?": "name"},
    "unknown-level": {"column": "name", "names": "names", "levels": "names", "close?": "name"},
    "no-grant": {"dataset": "name", "datasets": "names", "path?": "name", "unit?": "name", "neighbors?": "word"},
    "budget-exceeded": {
        "dataset": "name",
        "cost": "amount",
        "granted": "amount",
        "spent": "amount",
        "releases": "integer",
        "remaining": "amount",
    },
    "cost-not-countable": {
        "dataset": "name",
        "cost": "amount",
        "granted": "amount",
        "reason": "word",
        "max_gaussian": "integer",
    },
    "grant-of-other-unit": {"dataset": "name", "granted": "name", "unit": "name", "spent": "flag"},
    "grant-of-other-relation": {"dataset": "name", "granted": "word", "neighbors": "word"},
    "grant-fixed": {"dataset": "name", "what": "word", "granted": "name", "asked": "name"},
    "grant-below-spent": {"dataset": "name", "spent": "amount", "asked": "amount"},
    "ledger-missing": {**_PATH, "dataset?": "name", "unit?": "name", "neighbors?": "word"},
    "ledger-is-a-folder": _PATH,
    "ledger-folder-missing": _PATH,
    "ledger-not-made": {"path": "name", "reason": "name"},
    "ledger-hard-links": {"path": "name", "names": "integer"},
    "ledger-foreign": {"path": "name", "content": "word"},
    "ledger-version": {"path": "name", "version": "integer", "known": "integer"},
    "ledger-journal-mode": {"path": "name", "mode": "name"},
    "ledger-damaged": {"path": "name", "what": "word"},
    "ledger-locked": {"path": "name", "seconds?": "number"},
    "ledger-not-writable": {"path": "name", "cause": "word"},
    "ledger-not-opened": _PATH,
    "ledger-failure": {"path": "name", "reason": "name"},
    "ledger-replaced": _PATH,
    "entry-of-other-ledger": {"path": "name", "entry": "integer"},
    "entry-reserved-elsewhere": {"path": "name", "entry": "integer"},
    "entry-ended": {"entry": "integer", "state": "word"},
    "entry-without-reservation": {"entry": "integer", "dataset": "name"},
    "history-broken": {"entry": "integer", "reason": "message"},
    "run-ended": _NONE,
    "draw-over-budget": _QUERY,
    "draw-over-coordinates": _QUERY,
    "draw-of-other-relation": _QUERY,
    "draw-without-bound": _QUERY,
    "draw-not-in-integers": _QUERY,
    "draw-invalid": {"query": "name", "reason": "message"},
}
"""Errors that are messages; the others are text, and their code is their kind."""

_REASONS: Mapping[str, Kinds] = {
    "rough-private-scales": {"mechanism": "word", "kind": "word", "unit_rows?": "integer"},
    "least-error": {
        "mechanism": "word",
        "kind": "word",
        "second?": "word",
        "times?": "number",
        "unit_rows?": "integer",
        **_BUDGET,
    },
}
"""Reasons of a choice: why ``auto`` took a mechanism."""

_QUERIES: Mapping[str, Kinds] = {
    "query": {"name": "name"},
    "count": _NONE,
    "sum": _STEP,
    "sum-and-count": _NONE,
    "gram": _STEP,
    "sum-and-gram": _STEP,
    "squares": _STEP,
    "count-sum-gram": _NONE,
    "sum-and-squares": _NONE,
    "mapped-rows": _NONE,
    "eigenvalues": _NONE,
    "directions": _NONE,
    "direction": {"direction": "integer"},
    "inverse-gram": _NONE,
    "padded-gram": _NONE,
    "eigenvalue-bound": _NONE,
    "norm-histogram": {"histogram?": "integer"},
    "outlying-rows": _NONE,
    "rough-sums": _NONE,
    "rough-sums-again": _NONE,
    "row-lengths": _NONE,
    "coordinate-mean": _FEATURE,
    "coordinate-scale": _FEATURE,
    "coordinate-bin": _LEVEL,
    "coordinate-quantile": {**_LEVEL, "quantile": "number"},
    "clamped-values": _FEATURE,
    "values-beyond-noise": _FEATURE,
    "median": _LEVEL,
    "rows-far-from-median": _LEVEL,
    "log-scale-histogram": _FEATURE,
    "clipped-rows-of-feature": _FEATURE,
    "cell-counts": _NAMES,
}
"""Queries of a receipt: what got noise. Features, levels and steps are numbered from 1."""

CODES: Mapping[str, Kinds] = MappingProxyType(
    {**_RULES, **_GUARANTEE, **_WARNINGS, **_CAVEATS, **_ERRORS, **_REASONS, **_QUERIES}
)
"""Kinds of the facts of every message; a ``?`` marks a fact that may be absent."""
QUERIES = frozenset(_QUERIES)
RULES = frozenset(_RULES)
GUARANTEES = frozenset(_GUARANTEE)
WARNINGS = frozenset(_WARNINGS)
CAVEATS = frozenset(_CAVEATS)
ERRORS = frozenset(_ERRORS)
REASONS = frozenset(_REASONS)
PART = "part"
"""A fact of any message: the group or pooled table that it is about, from the outside in."""


def fault_of(code: object, facts: Mapping[str, object]) -> tuple[str, dict[str, Any]] | None:
    """Return the code and the facts of the error if facts are not those of a code."""
    if not isinstance(code, str) or code not in CODES:
        return "message-of-other-code", {"value": code}
    kinds = {name.removesuffix("?"): kind for name, kind in CODES[code].items()} | {PART: "names"}
    needed = {name for name in CODES[code] if not name.endswith("?")}
    if missing := needed - facts.keys():
        return "message-without-facts", {"value": code, "names": sorted(missing)}
    for name, value in facts.items():
        if name not in kinds:
            return "message-unknown-fact", {"value": code, "name": name}
        if not KINDS[kinds[name]](value):
            return "message-fact-kind", {"value": code, "name": name, "kind": kinds[name]}
    return None
