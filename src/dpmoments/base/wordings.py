"""Words of every message, with the kinds of its facts and advice for each reader.

Templates are the library's own: no text of a fact is ever read as one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from string import Formatter
from types import MappingProxyType
from typing import Any, Literal

from dpmoments.base.errors import listed, visible
from dpmoments.base.values import leading_decimals, no_less

Fact = bool | int | float | str | tuple["Fact", ...]
Facts = Mapping[str, Any]
"""Facts by name, of the kinds that a code declares."""
Words = str | Callable[[Facts], str]
"""A template with the facts' names in braces, or a function of the facts."""
Audience = Literal["analyst", "curator", "shell", "short"]
"""Reader of a message.

``curator`` reads Python, ``shell`` is a curator at the command line, ``short`` is a caption or a cell.
"""


@dataclass(frozen=True)
class Wording:
    """Words of a code, and advice for its readers.

    ``others`` names the facts that the words do not name in braces. A ``?`` marks a fact that may be absent, and ``=`` a kind
    other than the usual one of its name. A curator at the shell gets the curator's advice unless ``shell`` is given.
    """

    words: Words
    others: str = ""
    analyst: str = ""
    curator: Words = ""
    shell: str = ""

    @cached_property
    def facts(self) -> Mapping[str, str]:
        """Kinds of the facts by name, ``?`` after those that may be absent."""
        named = () if callable(self.words) else Formatter().parse(self.words)
        stated = [*filter(None, (name for _, name, _, _ in named)), *self.others.split()]
        pairs = (fact.partition("=") for fact in stated)
        return {name: kind or _KIND_OF[name.removesuffix("?")] for name, _, kind in pairs}

    def text(self, facts: Facts, audience: Audience) -> str:
        """Return the sentences for an audience.

        Characters of names that a terminal obeys are shown.

        >>> print(Wording("{names} and {share}").text({"names": ("a", "{share}"), "share": 0.2}, "short"))
        'a', '{share}' and 20%
        """
        advice = {"analyst": self.analyst, "curator": self.curator, "shell": self.shell or self.curator}
        seen = {name: _visible(fact) for name, fact in facts.items()}
        shares = {"share": percent(facts["share"])} if "share" in facts else {}
        return " ".join(
            words(seen) if callable(words) else words.format(**seen | shares)
            for words in (self.words, advice.get(audience, ""))
            if words
        )


_KIND_OF: Mapping[str, str] = {
    **dict.fromkeys(("column", "computed_from", "name", "origin", "reason", "unit"), "name"),
    **dict.fromkeys(("clauses", "factors", "names"), "names"),
    **dict.fromkeys(("kind", "mechanism", "missing", "neighbors", "second"), "word"),
    **dict.fromkeys(("coordinates", "direction", "directions", "entry", "feature", "features", "groups"), "integer"),
    **dict.fromkeys(("histogram", "levels", "max_levels", "max_rows", "round", "rows", "step"), "integer"),
    **dict.fromkeys(("tables", "unit_rows"), "integer"),
    **dict.fromkeys(("center", "clipped", "delta", "effective", "epsilon", "fill", "largest", "least"), "number"),
    **dict.fromkeys(("lower", "noise", "norm", "quantile", "radius", "rho", "share", "times", "total"), "number"),
    **dict.fromkeys(("typical_lower", "typical_upper", "upper", "weight"), "number"),
    **dict.fromkeys(("level", "other"), "level"),
    "last": "flag",
    "weights": "numbers",
}
"""Kinds of facts by their names."""


class _Names(tuple[Fact, ...]):
    """Facts that are formatted as a list: in quotes, as ``plain`` text, or ``all`` of them."""

    def __format__(self, spec: str) -> str:
        return ", ".join(map(str, self)) if spec == "all" else listed(self, quoted=spec != "plain")


def _visible(fact: Fact) -> Fact:
    """Return a fact without characters of names that a terminal obeys."""
    if isinstance(fact, tuple):
        return _Names(map(_visible, fact))
    return visible(fact) if isinstance(fact, str) else fact


def percent(share: Any) -> str:
    """Format a share of rows or values with two digits, rounded up.

    >>> percent(0.1318), percent(0.0025), percent(1.0)
    ('14%', '0.25%', '100%')
    """
    return f"{float(no_less(100.0 * share, 2)):g}%"


def _tables(facts: Facts) -> str:
    """Return which two tables a guarantee is about."""
    if "unit" in facts:
        return (
            f"tables that differ by all rows with one value of {facts['unit']}, present or absent (add-remove; the numbers of "
            "units and of rows are private)"
        )
    if facts["neighbors"] == "add_remove":
        return "tables that differ by one row, present or absent (add-remove; the number of rows is private)"
    return "tables that differ in one row's values (replace-one; the number of rows of the table is public)"


def _zcdp(facts: Facts) -> str:
    rho, epsilon, delta = _losses(facts, "rho"), _losses(facts, "epsilon", 4), f"{facts['delta']:g}"
    return (
        f"The Rényi divergence of order α between the outputs on any two {_tables(facts)} is at most {rho}·α for every α > 1 "
        f"(ρ-zero-concentrated differential privacy, ρ = {rho}). For example, it implies ε = {epsilon} at δ = {delta}."
    )


def _bounded_ratio(facts: Facts) -> str:
    epsilon = _losses(facts, "epsilon")
    more, meaning = "", f"(ε-differential privacy, ε = {epsilon})"
    if "delta" in facts:
        delta = _losses(facts, "delta")
        more, meaning = f", plus {delta}", f"((ε, δ)-differential privacy, ε = {epsilon}, δ = {delta})"
    return (
        f"For any two {_tables(facts)} and every set of outputs, the probability of the set under either table is at most "
        f"e^{epsilon} times its probability under the other{more} {meaning}."
    )


def _losses(facts: Facts, name: str, digits: int = 6) -> str:
    return no_less(facts[name], digits)


_GROUP_LOSS: Mapping[Fact, str] = MappingProxyType(
    {
        "pure": "ε is up to k times as large",
        "zcdp": "ρ is up to k² times as large",
        "approximate": "ε is up to k times and δ up to (e^(kε) − 1)/(e^ε − 1) times as large",
    }
)
"""Group privacy by kind of budget: docs/evidence/derivations/privacy-units.md, step 2."""


def _rows_of_unit(facts: Facts) -> str:
    column, most = facts["column"], facts.get("max_rows")
    used = "of which one, chosen at random, is used"
    if most is None:
        used = (
            "whose weights together count as the cap of weights at most: if they are more each is reduced in proportion, and "
            "rounded down to 1/4,096 of it"
        )
    elif most != 1:
        used = f"of which at most {most:,}, chosen at random, are used"
    unlabeled = (
        f"Rows without a {column} were dropped"
        if facts["missing"] == "drop"
        else f"A table with a row without a {column} is refused"
    )
    return (
        f"The privacy unit is all rows with one value of {column}, {used}. {unlabeled}. A person with k values of {column} is "
        f"protected less: for them {_GROUP_LOSS[facts['kind']]}."
    )


def _values_clipped(facts: Facts) -> str:
    typical = ""
    if "typical_lower" in facts and "typical_upper" in facts:
        typical = f" Typical range: {facts['typical_lower']:g} to {facts['typical_upper']:g}."
    return f"{facts['column']}: values clipped to [{facts['lower']:g}, {facts['upper']:g}]; {_missing(facts)}.{typical}"


def _query_rows(facts: Facts) -> str:
    clauses = facts["clauses"]
    said = (
        "The table is the result of a database query. The guarantee is about its rows. It is about the database only if adding, "
        "removing or replacing one row there does the same to at most one row of the result, as the curator promises."
    )
    held = f" The query has what can break this promise: {listed(clauses, quoted=False)}."
    return said + (held if clauses else "")


def _rows_weighted(facts: Facts) -> str:
    missing = "drops its row" if facts["missing"] == "drop" else "is an error"
    said = (
        f"Rows are weighted by {facts['column']}, up to {facts['upper']:,.6g}: larger weights count as that; a missing, negative "
        f"or infinite one {missing}. Neighbors differ by rows with their weights; the weights of other rows stay."
    )
    if facts["computed_from"] != "table":
        return said
    return f"{said} The weights were computed from the table: what one row changes in other rows' weights is not protected."


def _weighted_rows(facts: Facts) -> str:
    drawn, of_unit = "rows were drawn independently", ""
    if "unit" in facts:
        drawn, of_unit = (
            f"each {facts['unit']} were drawn independently and its rows were alike",
            f" for a {facts['unit']}",
        )
    lost = ""
    if "clipped" in facts:
        lost = f"; {facts['clipped']:.1%} of the weight is above its cap{of_unit}".replace("%", " %")
    sum_of_weights = float(facts["total"])
    total = format(sum_of_weights, ",.0f" if sum_of_weights >= 1000.0 else ".6g")
    return (
        f"Weighted by {facts['column']} to {total}; effective sample size {facts['effective']:,.0f}, to which "
        f"numbers of rows in answers add up; as if {drawn}{lost}."
    )


def _missing(facts: Facts) -> str:
    if facts["missing"] == "available":
        return "missing values are left out of its moments, and counted with noise"
    if "fill" not in facts:
        return f"missing values: {facts['missing']}"
    fill = facts["fill"]
    return f"missing values count as {fill if isinstance(fill, str) else f'{fill:g}'}"


def _two_values(facts: Facts) -> str:
    if "fill" in facts:
        return f"{facts['column']}: true or false; missing values count as {'true' if facts['fill'] else 'false'}."
    return f"{facts['column']}: true or false; {_missing(facts)}."


def _levels(facts: Facts) -> str:
    levels = f"{facts['levels']:,} public levels"
    if "epsilon" in facts:
        levels = f"{facts['levels']:,} levels, whose names were found in the table, and published, at {_budget(facts)}"
    others = f": {facts['other']}" if facts["other"] in ("drop", "zero") else f" count as {facts['other']}"
    return f"{facts['column']}: {levels}; {_missing(facts)}; other values{others}."


def _pooled(facts: Facts) -> str:
    one, common = (f"all rows of a {facts['unit']} are", f"{facts['unit']}") if "unit" in facts else ("a row is", "row")
    stays = ""
    if facts["neighbors"] == "replace_one":
        stays = " A row that is replaced stays in its table; the number of rows of each table is public."
    return (
        f"Pooled from {facts['tables']} releases of disjoint tables: {one} in one of them, so the largest of their budgets "
        f"covers all of them together (parallel composition).{stays} Nobody checked that the tables have no {common} in common."
    )


def _about(sentence: str) -> Words:
    """Return words that begin with the names of the columns, if there are any."""

    def words(facts: Facts) -> str:
        names = facts.get("names")
        return f"{listed(names)}: {sentence}" if names else f"{sentence[:1].upper()}{sentence[1:]}"

    return words


def _delta(facts: Facts) -> str:
    if "rows" not in facts:
        return f"delta={facts['delta']:g} is too large for all but small tables: it allows publishing whole rows."
    rows, delta = facts["rows"], facts["delta"]
    published = round(rows * delta)
    whole = f"about {published:,} whole rows" if published > 1 else "a whole row"
    return f"delta={delta:g} is too large for {rows:,} rows: it allows publishing {whole}."


def _two_digits(noise: float) -> str:
    if not math.isfinite(noise):
        return f"{noise}"
    decimals = leading_decimals(noise)
    return f"{round(noise, decimals):,.{max(decimals, 0)}f}"


def _few_rows(facts: Facts) -> str:
    """Return "too-few-rows" without a count that may as well be 0."""
    noise, rows = facts["noise"], facts["rows"]
    error = _two_digits(noise)
    count = f"{rows:,.0f} ± {error}" if rows >= 2.0 * noise else f"not distinguishable from 0 (± {error})"
    return f"Too few rows for this budget: the row count is {count}. Everything computed from it may be mostly noise."


def _row_count(facts: Facts) -> str:
    noise, rows = facts["noise"], facts["rows"]
    known = f"The number of kept rows is known only to ± {_two_digits(noise)} ({percent(noise / max(rows, 1.0))})"
    return f"{known}; means and second moments are divided by it."


def _budget(facts: Facts) -> str:
    """Return a budget in words.

    >>> _budget({"epsilon": 1.0}), _budget({"rho": 0.5})
    ('ε = 1', 'ρ = 0.5')
    """
    signs = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    return ", ".join(f"{sign} = {_losses(facts, name)}" for name, sign in signs.items() if name in facts)


def _at_unit(facts: Facts) -> str:
    return (
        f" Chosen at the budget of one row (a unit has up to {facts['unit_rows']:,})." if "unit_rows" in facts else ""
    )


def _least_error(facts: Facts) -> str:
    second = (
        f"; {facts['second']} has {facts['times']:.2g} times as much" if "second" in facts and "times" in facts else ""
    )
    return (
        f"{facts['mechanism']}, because it has the least expected error of the additive mechanisms at {_budget(facts)}"
        f"{second}.{_at_unit(facts)}"
    )


def _to_do_better(facts: Facts) -> str:
    """Return what makes the error of a mechanism that ``auto`` chose smaller."""
    budget = "more budget"
    if facts["kind"] == "pure":
        budget = "more epsilon (the error falls as 1/epsilon), or, with many columns, a small delta"
    return f"To do better: fewer columns, {budget}."


def _of_step(query: str) -> Words:
    """Return words that begin with the step of a run that a query belongs to."""

    def words(facts: Facts) -> str:
        if facts.get("last"):
            return f"last step: {query}"
        for name in ("step", "round"):
            if name in facts:
                return f"{name} {facts[name]}: {query}"
        return query

    return words


_CLIPPED = "Read all results as results about clipped rows."
_NO_RELIANCE = "Do not rely on it."
_NO_LEVELS = Wording(
    "{column}: no name was found that enough rows have, so the column was left out.",
    curator="List its levels, or find them with more rows, a larger budget or a larger levels_share.",
)


RULES: Mapping[str, Wording] = MappingProxyType(
    {
        "values-clipped-to-bounds": Wording(
            _values_clipped, "column missing lower upper fill? typical_lower? typical_upper?"
        ),
        "dates-clipped-to-bounds": Wording(
            lambda facts: (
                f"{facts['column']}: {facts['unit']} since {facts['origin']} (UTC), clipped to "
                f"[{facts['lower']}, {facts['upper']}]; {_missing(facts)}."
            ),
            "column missing lower=name upper=name fill?=name unit=word origin",
        ),
        "scale-range": Wording(
            lambda facts: (
                f"{facts['column']}: values not clipped to public bounds. Expected: standard deviation from "
                f"{facts['least']:g} to {facts['largest']:g}, mean within {facts['radius']:g} of {facts['center']:g} "
                f"(accuracy depends on whether this is right, privacy does not); {_missing(facts)}."
            ),
            "column missing least largest center radius fill?",
        ),
        "two-values": Wording(_two_values, "column missing fill?"),
        "public-levels": Wording(_levels, "column missing levels other"),
        "found-levels": Wording(_levels, "column missing levels other epsilon delta"),
        "no-levels-found": _NO_LEVELS,
        "derived-feature": Wording("{column}: computed from {factors:plain}, after the rules for them."),
        "coordinates": Wording(
            "{coordinates:,} coordinates, not clipped one by one; missing values: {missing:plain}.", "missing=words"
        ),
        "row-norm-bound": Wording("Encoded rows with a Euclidean norm above {norm:g} were scaled down to it."),
        "no-row-norm-bound": Wording(
            "Rows have no public bound; the mechanism clipped them at radii that it chose from public numbers and noisy answers."
        ),
        "noise-by-typical-range": Wording(
            "Noise is divided among columns by their typical ranges (accuracy depends on whether they are right, privacy does "
            "not)."
        ),
        "noise-by-weight": Wording(
            "Noise is divided among columns by stated weights: {names:all} have less than others, or more if a weight is "
            "below 1.",
            "weights",
        ),
        "noise-by-mean-weight": Wording(
            "Means have a stated weight of {weight:g} against covariances, by which noise is divided (1 is the default)."
        ),
        "rows-weighted": Wording(_rows_weighted, "column upper missing=name computed_from"),
        "rows-scaled-to-ball": Wording(
            "Rows whose numbers and Booleans, in units of rough private scales, had a length above {radius:.3g} were scaled down "
            "to it; levels were not changed. The stated errors include what this hides."
        ),
        "rows-of-query": Wording(_query_rows, "clauses"),
        "group-of-rows": Wording(
            "One of {groups:,} groups of a parallel release by {column}: only rows whose {column} is {level}. A row is in at "
            "most one group, so all groups together spend the stated budget once."
        ),
        "parallel-groups": Wording(
            "One release for each of the {groups:,} levels of {column} (parallel composition). A row is in at most one group, so "
            "adding or removing it changes one group only, and all groups together spend the budget once. Rows of no level of "
            "{column} are in no group; empty groups are released like the others."
        ),
        "pooled-tables": Wording(_pooled, "tables neighbors unit?"),
        "pooled-part": Wording(
            lambda facts: f"{facts['mechanism']}, {_budget(facts)}.", "mechanism=name epsilon? delta? rho?"
        ),
    }
)
"""Rules of the privacy statement.

What was done to values and rows, and why budgets need not be added.
"""

GUARANTEES: Mapping[str, Wording] = MappingProxyType(
    {
        "zcdp": Wording(_zcdp, "neighbors unit? rho epsilon delta"),
        "pure-dp": Wording(_bounded_ratio, "neighbors unit? epsilon"),
        "approximate-dp": Wording(_bounded_ratio, "neighbors unit? epsilon delta"),
        "unit-is-row": Wording(
            lambda facts: (
                "The privacy unit is one row. A person with k rows is protected less: for them "
                f"{_GROUP_LOSS[facts['kind']]}."
            ),
            "kind",
        ),
        "unit-is-rows": Wording(_rows_of_unit, "column max_rows? missing kind"),
        "exact-lattice": Wording(
            "Sums are exact integers and noise is drawn exactly from a discrete distribution: the proof covers the program's "
            "arithmetic, and assumes that the random bits of the operating system are ideal."
        ),
        "lattice-rounded": Wording(
            "Sums are exact integers; noise was drawn in floating point and rounded to the integer lattice. The proof assumes "
            "that floating-point draws have the ideal distribution."
        ),
        "idealized": Wording("The proof is for real numbers; the sampler worked in floating point."),
        "not-private": Wording(
            "NOT PRIVATE: the noise came from an insecure seed and can be reproduced and removed. The guarantee below would hold "
            "only with secure noise."
        ),
        "no-ledger": Wording(
            "No ledger was used: composition with other releases of the same people is not tracked here.",
            curator="Release with ledger= and dataset=, so that all releases of the table add up.",
            shell="Release with --ledger and --dataset, so that all releases of the table add up.",
        ),
    }
)
"""Sentences of the privacy statement that follow from its entries; no file stores them.

The theorems are in ``docs/evidence/derivations/composition.md`` and ``privacy-units.md``.
"""

WARNINGS: Mapping[str, Wording] = MappingProxyType(
    {
        "rows-dropped": Wording(
            "About {share} of the table's {rows:,} rows were dropped (missing values, or values outside the schema).",
            analyst="Results describe the rest.",
            curator="The release describes the rest. dpm.preflight shows which columns dropped them.",
            shell="The release describes the rest. 'dpmoments preflight' shows which columns dropped them.",
        ),
        "row-count-uncertain": Wording(
            _row_count,
            "noise rows=number",
            curator="More rows, a larger budget, or rules that drop no rows would help.",
        ),
        "levels-not-found": _NO_LEVELS,
        "too-few-rows": Wording(
            _few_rows,
            "rows=number noise",
            analyst="Rely only on results that are marked as distinguishable from noise.",
            curator="More rows or a larger budget would help; see dpm.forecast before the next release.",
            shell="More rows or a larger budget would help; see 'dpmoments forecast' before the next release.",
        ),
        "delta-too-large": Wording(
            _delta, "delta rows?", curator="Use a delta well below 1/n.", shell="Use a --delta well below 1/n."
        ),
        "location-lost": Wording(
            _about("too few rows to locate the values at this budget; mean and variance are noise."),
            "names",
            analyst="Do not use them.",
            curator="Give public bounds, more rows or a larger budget.",
        ),
        "search-unsettled": Wording(
            _about(
                "the search for the values ended before it found them, so noise is calibrated to the remaining range."
            ),
            "names",
            curator="Give more rows or a larger budget, or use coinpress with a radius.",
        ),
        "values-clipped": Wording(
            "{names}: up to {share} of the values were clipped, because they are rare and distant or the budget is small. "
            "The variance is too small, and the mean is pulled toward the other values.",
            analyst=_CLIPPED,
            curator="Give public bounds, or a larger radius or scale.",
        ),
        "values-unseen": Wording(
            "{names}: up to about {share} of the values could be outlying without being detected, and would have been "
            "clipped. If there are any, the variance is too small.",
            curator="Public bounds, more rows or a larger budget would help.",
        ),
        "values-mostly-equal": Wording(
            "Most values are equal (within floating-point precision). The variance comes from the others, and is too small "
            "if some of them were not detected."
        ),
        "variance-lost": Wording(
            "Noise dominates the variance: too few rows for this budget, or values that span too many scales.",
            analyst=_NO_RELIANCE,
            curator="Give public bounds, more rows or a larger budget.",
        ),
        "mean-lost": Wording(
            _about("noise dominates the mean."),
            "names?",
            analyst=_NO_RELIANCE,
            curator="Give more rows or a larger budget, or a smaller radius or scale if the stated one is too large.",
        ),
        "mean-beyond-radius": Wording(
            _about("the estimated mean is outside the stated radius by more than noise explains."),
            "names?",
            curator="Give a larger radius.",
        ),
        "values-beyond-radius": Wording(
            _about("most values are outside the stated radius; the search ends at twice the radius."),
            "names",
            curator="Give a larger radius.",
        ),
        "mostly-clipped": Wording(
            _about("over half the values were clipped, so the result is not the mean of the column."),
            "names?",
            curator="Use a larger radius or scale.",
        ),
        "rows-mostly-clipped": Wording(
            "Most rows were clipped: they are far outside the stated radius or scale, or have very heavy tails.",
            analyst=_CLIPPED,
            curator="Give a larger radius or scale.",
        ),
        "rows-unseen": Wording(
            "The budget is too small to locate the rows.", curator="More rows or a larger rho are needed."
        ),
        "outlying-rows-clipped": Wording(
            "About {share} of rows are outlying and were clipped: the mean is nearly that of the other rows.",
            curator="A mechanism with a public radius and scale includes them.",
        ),
        "noise-incomplete": Wording(
            "The stated noise is probably not the whole error of the mean: clipping may have moved it by more. The rows have "
            "longer tails than normal rows, or too few of them were distinguishable from noise to judge."
        ),
        "rows-outside-bounds": Wording(
            "Most rows were clipped: they are far outside the stated bounds, or have very heavy tails.",
            analyst=_CLIPPED,
            curator="Widen the schema's scale or radius, or eigenvalue_bounds or mean_radius.",
        ),
        "small-eigenvalues-lost": Wording(
            "The budget is too small for this range of eigenvalues: the smallest are lost in noise.",
            curator="Give more rows, a larger rho or a narrower range.",
        ),
        "clip-widened": Wording(
            "Outlying rows widened the last clipping region to {times:.2g} times its planned radius; noise on "
            "every column grew with the square of that.",
            curator="Give public bounds, or release a transformed column (its logarithm).",
        ),
        "variance-of-few-rows": Wording(
            "The variance of some column, or combination of columns, comes from few rows (which were clipped) or is below its "
            "scale range. Its released variance is far too small, or mostly noise.",
            curator="Declare columns of two values as Boolean, or give bounds.",
        ),
        "variance-of-outlying-rows": Wording(
            "About {share} of rows are outlying and were clipped: the variance of some column, or combination of columns, is "
            "too small.",
            curator="Give public bounds, or release a transformed column (its logarithm).",
        ),
        "noise-above-covariance": Wording(
            "The expected error exceeds the covariance itself: this release is mostly noise."
        ),
        "rows-unseen-tail": Wording(
            "Up to about {share} of rows could be outlying, at any distance, without being detected, and would have been "
            "clipped. If there are any, variances are too small."
        ),
        "tail-not-excluded": Wording(
            "The stated noise is about the rows as the last step clipped them. Up to {share} of rows could be beyond, at any "
            "distance, without being detected: if one of these columns has a long tail, its standard deviation is far too small "
            "({names})."
        ),
        "fewer-rows-than-features": Wording(
            "There are fewer rows than features: the second moment of the rows is singular, whatever its noise."
        ),
        "rounds-too-noisy": Wording(
            "The noise of a round exceeded a tenth of the bound that the round tests, so directions may have been halved "
            "wrongly.",
            curator="This mechanism needs many more rows; coinpress needs fewer.",
        ),
        "tables-not-checked": Wording(
            "Nobody checked that the pooled tables are disjoint: no dataset is named by {names:plain}. If two releases are of "
            "one table, its rows count twice, and its privacy loss may be as large as the sum of both budgets.",
            analyst="Ask the curators whether the tables have rows in common.",
            curator="Make releases with dataset='…', one name for each table.",
            shell="Make releases with --dataset NAME, one name for each table.",
        ),
        "tables-noisy": Wording(
            "Most of the noise of this pool comes from tables of few rows ({names:plain}): without them, the noise on sums of "
            "squares would be up to {times:.2g} times smaller.",
            analyst="Pool the others.",
            curator="Release a small table with another, or by matrix-laplace or gaussian, whose noise no table changes.",
        ),
        "weighted-rows": Wording(_weighted_rows, "column total effective unit? clipped?"),
        "weights-from-table": Wording(
            "The weights {column} were computed from the table (computed_from), so a row also changes the weights of other rows: "
            "the stated guarantee holds only for neighbors whose other weights stay.",
            curator="Use design weights, or weights from public totals that were set before these rows were known.",
        ),
        "dependent-rows": Wording(
            "Each {column} contributes up to {max_rows:,} rows, which may be similar. Sampling variances are therefore "
            "{max_rows:,} times those of independent rows, an upper bound: intervals may be too wide and p-values too large.",
            analyst="Read p-values as upper bounds.",
            curator="A contribution bound of one row per unit avoids this.",
            shell="--max-rows-per-unit 1 avoids this.",
        ),
        "not-in-ledger": Wording(
            "The release was made, but the ledger could not record it ({reason}). Entry {entry} shows its budget as reserved, "
            "which counts as spent.",
            curator="Do not release again; the budget is counted.",
        ),
        "directions-lost": Wording(
            "{directions} of {features} directions are not distinguishable from noise: precision_ and mahalanobis leave "
            "them out.",
            curator="More rows or a larger budget would help.",
        ),
    }
)
"""Reasons not to trust a release, or an answer."""

CAVEATS: Mapping[str, Wording] = MappingProxyType(
    {
        "linearized": Wording(
            "The noise distribution is linearized about the release: it is accurate if noise is small compared with the moments."
        ),
        "clipped-in-last-step": Wording(
            "The stated noise is about the rows as the last step clipped them; the effect of clipping is not included."
        ),
        "asserted-smallest-eigenvalue": Wording(
            "The noise distribution holds if no eigenvalue is below the stated smallest_eigenvalue."
        ),
    }
)
"""Conditions under which the noise of a release is known.

Codes of :class:`dpmoments.noise.NoiseLaw`.
"""

REASONS: Mapping[str, Wording] = MappingProxyType(
    {
        "rough-private-scales": Wording(
            lambda facts: (
                f"{facts['mechanism']}, because columns rarely fill their bounds: rough private scales are found first, "
                f"and the noise is added in units of them.{_at_unit(facts)}"
            ),
            "mechanism kind unit_rows?",
            curator=_to_do_better,
        ),
        "least-error": Wording(
            _least_error, "mechanism kind unit_rows? epsilon? delta? rho? second? times?", curator=_to_do_better
        ),
    }
)
"""Reasons of a choice: why ``auto`` took a mechanism."""

QUERIES: Mapping[str, Wording] = MappingProxyType(
    {
        "query": Wording("{name}"),
        "count": Wording("count"),
        "sum": Wording(_of_step("sum"), "step? last? round?"),
        "sum-and-count": Wording("sum and count"),
        "gram": Wording(_of_step("Gram matrix"), "step? last? round?"),
        "sum-and-gram": Wording(_of_step("sum and Gram matrix"), "step? last? round?"),
        "squares": Wording(_of_step("squares"), "step? last? round?"),
        "count-sum-gram": Wording("count, sum and Gram matrix"),
        "sum-and-squares": Wording("sum and sum of squares"),
        "mapped-rows": Wording("sums of mapped rows"),
        "eigenvalues": Wording("eigenvalues"),
        "directions": Wording("directions"),
        "direction": Wording("direction {direction}"),
        "inverse-gram": Wording("inverse of the Gram matrix"),
        "padded-gram": Wording("padded Gram matrix"),
        "eigenvalue-bound": Wording("bound on the smallest eigenvalue"),
        "norm-histogram": Wording(
            lambda facts: f"histogram of norms {facts.get('histogram', '')}".rstrip(), "histogram?"
        ),
        "outlying-rows": Wording("count of outlying rows"),
        "rough-sums": Wording("count, sums and squares of columns, for their rough scales"),
        "rough-sums-again": Wording("sums and squares of columns with wide bounds, again"),
        "row-lengths": Wording("histogram of the rows' lengths in SDs"),
        "coordinate-mean": Wording("mean of feature {feature}"),
        "coordinate-scale": Wording("scale of feature {feature}"),
        "coordinate-bin": Wording("bin of feature {feature}, level {level}", "level=integer"),
        "coordinate-quantile": Wording("quantile {quantile:g} of feature {feature}, level {level}", "level=integer"),
        "clamped-values": Wording("clamped values of feature {feature}"),
        "values-beyond-noise": Wording("values of feature {feature} above the noise"),
        "median": Wording("median of feature {feature}, level {level}", "level=integer"),
        "rows-far-from-median": Wording(
            "rows far from the median of feature {feature}, level {level}", "level=integer"
        ),
        "log-scale-histogram": Wording("log-scale histogram of feature {feature}"),
        "clipped-rows-of-feature": Wording("clipped rows of feature {feature}"),
        "level-names": Wording("names of levels of {column}, at most {max_levels:,}"),
        "cell-counts": Wording("counts by {names:all}"),
    }
)
"""Queries of a receipt: what got noise. Features, levels and steps are numbered from 1."""

WORDINGS: Mapping[str, Wording] = MappingProxyType({**RULES, **GUARANTEES, **WARNINGS, **CAVEATS, **REASONS, **QUERIES})
"""Every code."""
