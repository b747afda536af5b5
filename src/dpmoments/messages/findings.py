"""Sentences that every reader gets, and short words for cells of tables.

They name no remedy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from dpmoments.foundation.values import no_less
from dpmoments.messages.codes import Fact
from dpmoments.messages.refusals import REFUSALS
from dpmoments.messages.wording import Words, budget_text, closest, listed


def _of_step(query: str) -> Words:
    """Return words that begin with the step of a run that a query belongs to."""

    def words(facts: Mapping[str, Fact]) -> str:
        if facts.get("last"):
            return f"last step: {query}"
        for name in ("step", "round"):
            if name in facts:
                return f"{name} {facts[name]}: {query}"
        return query

    return words


SHORT: Mapping[str, Words] = MappingProxyType(
    {
        "query": "{name}",
        "count": "count",
        "sum": _of_step("sum"),
        "sum-and-count": "sum and count",
        "gram": _of_step("Gram matrix"),
        "sum-and-gram": _of_step("sum and Gram matrix"),
        "squares": _of_step("squares"),
        "count-sum-gram": "count, sum and Gram matrix",
        "sum-and-squares": "sum and sum of squares",
        "mapped-rows": "sums of mapped rows",
        "eigenvalues": "eigenvalues",
        "directions": "directions",
        "direction": "direction {direction}",
        "inverse-gram": "inverse of the Gram matrix",
        "padded-gram": "padded Gram matrix",
        "eigenvalue-bound": "bound on the smallest eigenvalue",
        "norm-histogram": lambda facts: f"histogram of norms {facts.get('histogram', '')}".rstrip(),
        "outlying-rows": "count of outlying rows",
        "rough-sums": "count, sums and squares of columns, for their rough scales",
        "rough-sums-again": "sums and squares of columns with wide bounds, again",
        "row-lengths": "histogram of the rows' lengths in SDs",
        "coordinate-mean": "mean of feature {feature}",
        "coordinate-scale": "scale of feature {feature}",
        "coordinate-bin": "bin of feature {feature}, level {level}",
        "coordinate-quantile": "quantile {quantile:g} of feature {feature}, level {level}",
        "clamped-values": "clamped values of feature {feature}",
        "values-beyond-noise": "values of feature {feature} above the noise",
        "median": "median of feature {feature}, level {level}",
        "rows-far-from-median": "rows far from the median of feature {feature}, level {level}",
        "log-scale-histogram": "log-scale histogram of feature {feature}",
        "clipped-rows-of-feature": "clipped rows of feature {feature}",
        "cell-counts": "counts by {names:all}",
    }
)
"""Words by code."""


Facts = Mapping[str, Fact]


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


def _pure(facts: Facts) -> str:
    epsilon = _losses(facts, "epsilon")
    return (
        f"For any two {_tables(facts)} and every set of outputs, the probability of the set under either table is at most "
        f"e^{epsilon} times its probability under the other (ε-differential privacy, ε = {epsilon})."
    )


def _approximate(facts: Facts) -> str:
    epsilon, delta = _losses(facts, "epsilon"), _losses(facts, "delta")
    return (
        f"For any two {_tables(facts)} and every set of outputs, the probability of the set under either table is at most "
        f"e^{epsilon} times its probability under the other, plus {delta} ((ε, δ)-differential privacy, ε = {epsilon}, "
        f"δ = {delta})."
    )


def _losses(facts: Facts, name: str, digits: int = 6) -> str:
    value = facts[name]
    assert isinstance(value, int | float)
    return no_less(value, digits)


_GROUP_LOSS: Mapping[Fact, str] = MappingProxyType(
    {
        "pure": "ε is up to k times as large",
        "zcdp": "ρ is up to k² times as large",
        "approximate": "ε is up to k times and δ up to (e^(kε) − 1)/(e^ε − 1) times as large",
    }
)
"""Group privacy by kind of budget: docs/evidence/derivations/privacy-units.md, step 2."""


def _row_is_unit(facts: Facts) -> str:
    return (
        f"The privacy unit is one row. A person with k rows is protected less: for them {_GROUP_LOSS[facts['kind']]}."
    )


def _rows_of_unit(facts: Facts) -> str:
    column, most = facts["column"], facts["max_rows"]
    used = (
        f"of which at most {most:,}, chosen at random, are used"
        if most != 1
        else "of which one, chosen at random, is used"
    )
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
    assert isinstance(clauses, tuple)
    said = (
        "The table is the result of a database query. The guarantee is about its rows. It is about the database only if adding, "
        "removing or replacing one row there does the same to at most one row of the result, as the curator promises."
    )
    held = f" The query has what can break this promise: {listed([*map(str, clauses)], quoted=False)}."
    return said + (held if clauses else "")


_AVAILABLE = "missing values are left out of its moments, and counted with noise"


def _missing(facts: Facts) -> str:
    if facts["missing"] == "available":
        return _AVAILABLE
    if "fill" not in facts:
        return f"missing values: {facts['missing']}"
    fill = facts["fill"]
    return f"missing values count as {fill if isinstance(fill, str) else f'{fill:g}'}"


def _dates_clipped(facts: Facts) -> str:
    return (
        f"{facts['column']}: {facts['unit']} since {facts['origin']} (UTC), clipped to [{facts['lower']}, {facts['upper']}]; "
        f"{_missing(facts)}."
    )


def _scale_range(facts: Facts) -> str:
    return (
        f"{facts['column']}: values not clipped to public bounds. Expected: standard deviation from {facts['least']:g} to "
        f"{facts['largest']:g}, mean within {facts['radius']:g} of {facts['center']:g} (accuracy depends on whether this is "
        f"right, privacy does not); {_missing(facts)}."
    )


def _two_values(facts: Facts) -> str:
    if "fill" in facts:
        return f"{facts['column']}: true or false; missing values count as {'true' if facts['fill'] else 'false'}."
    return f"{facts['column']}: true or false; {_missing(facts)}."


def _public_levels(facts: Facts) -> str:
    return f"{facts['column']}: {facts['levels']:,} public levels; {_missing(facts)}; other values: {facts['other']}."


def _pooled(facts: Facts) -> str:
    one, common = (f"all rows of a {facts['unit']} are", f"{facts['unit']}") if "unit" in facts else ("a row is", "row")
    stays = ""
    if facts["neighbors"] == "replace_one":
        stays = " A row that is replaced stays in its table; the number of rows of each table is public."
    return (
        f"Pooled from {facts['tables']} releases of disjoint tables: {one} in one of them, so the largest of their budgets "
        f"covers all of them together (parallel composition).{stays} Nobody checked that the tables have no {common} in common."
    )


def _of(facts: Facts) -> str:
    names = facts.get("names", ())
    assert isinstance(names, tuple)
    return f"{listed(list(map(str, names)))}: " if names else ""


def _about(sentence: str) -> Words:
    """Return words that begin with the names of the columns, if there are any."""

    def words(facts: Facts) -> str:
        of = _of(facts)
        return f"{of}{sentence}" if of else f"{sentence[:1].upper()}{sentence[1:]}"

    return words


def _delta(facts: Facts) -> str:
    if "rows" not in facts:
        return f"delta={facts['delta']:g} is too large for all but small tables: it allows publishing whole rows."
    rows, delta = facts["rows"], facts["delta"]
    assert isinstance(rows, int)
    assert isinstance(delta, int | float)
    published = round(rows * delta)
    whole = f"about {published:,} whole rows" if published > 1 else "a whole row"
    return f"delta={delta:g} is too large for {rows:,} rows: it allows publishing {whole}."


def _row_count(facts: Facts) -> str:
    noise, rows = facts["noise"], facts["rows"]
    assert isinstance(noise, int | float)
    assert isinstance(rows, int | float)
    share = noise / max(rows, 1.0)
    return f"The number of kept rows is known only to ± {noise:,.0f} ({share:.0%}); means and second moments are divided by it."


def _at_unit(facts: Facts) -> str:
    return (
        f" Chosen at the budget of one row (a unit has up to {facts['unit_rows']:,})." if "unit_rows" in facts else ""
    )


def _rough_scales(facts: Facts) -> str:
    return (
        f"{facts['mechanism']}, because columns rarely fill their bounds: rough private scales are found first, and the noise is "
        f"added in units of them.{_at_unit(facts)}"
    )


def _least_error(facts: Facts) -> str:
    second = (
        f"; {facts['second']} has {facts['times']:.2g} times as much" if "second" in facts and "times" in facts else ""
    )
    return (
        f"{facts['mechanism']}, because it has the least expected error of the additive mechanisms at {budget_text(facts)}"
        f"{second}.{_at_unit(facts)}"
    )


def _unknown(sentence: str, facts: Facts, otherwise: str = "") -> str:
    """Return a sentence on an unknown name with the close match, or with what else helps."""
    meant = f"Did you mean '{facts['close']}'?" if "close" in facts else otherwise
    return f"{sentence} {meant}".strip()


def _parameter(facts: Facts) -> str:
    """Return the parameter that an error is about, with its column."""
    return f"column '{facts['column']}': {facts['parameter']}" if "column" in facts else str(facts["parameter"])


def _wrong_type(facts: Facts) -> str:
    advice = _ADVICE_ON_TYPE.get(facts["expected"], "")
    return f"{_parameter(facts)} must be {facts['expected']:phrase}, got {facts['got']}{advice}"


_ADVICE_ON_TYPE: Mapping[Fact, str] = MappingProxyType(
    {
        "axes": ": pass one from plt.subplots(), or none",
        "privacy-unit": ": dpm.PrivacyUnit('person_id', max_rows=5)",
        "schema": ": dpm.Schema(dpm.Numeric('age', 0, 100), …) or dpm.Schema.load('people.yaml')",
    }
)


def _size(n_bytes: Fact) -> str:
    assert isinstance(n_bytes, int | float)
    return f"{n_bytes / 2**20:g} megabytes" if n_bytes >= 2**20 else f"{n_bytes:g} bytes"


def _not_between(facts: Facts) -> str:
    least, most = facts["least"], facts["most"]
    bounds = f"at least {least:g}" if most == math.inf else f"between {least:g} and {most:g}"
    return f"{facts['parameter']}={facts['value']!r} must be {bounds}"


def _not_one_of(facts: Facts) -> str:
    """Return the choices, and the one that was perhaps meant."""
    choices = facts["choices"]
    assert isinstance(choices, tuple)
    first, last = [f"'{choice}'" for choice in choices[:-1]], f"'{choices[-1]}'"
    use = f"{', '.join(first)} or {last}" if first else last
    meant = closest(facts["value"], map(str, choices))
    question = f" (did you mean '{meant['close']}'?)" if meant else ""
    return f"{_parameter(facts)}={facts['value']!r}: use {use}{question}"


def _needs_mean(facts: Facts) -> str:
    of = f"{facts['analysis']:phrase}: " if "analysis" in facts else ""
    return (
        f"{of}it is made of deviations from the mean, and no mean was released (mean=False): a release made "
        f"{facts['argument']:with mean} has one"
    )


def _columns(facts: Facts) -> str:
    return _listed(facts, "columns")


def _listed(facts: Facts, name: str) -> str:
    names = facts[name]
    assert isinstance(names, tuple)
    return listed(list(map(str, names)))


def _groups(facts: Facts) -> str:
    known = _columns(facts)
    if not known:
        return "levels of a column, and the schema has no such column"
    return f"the levels of a categorical or Boolean column: {known}"


def _datasets(facts: Facts) -> str:
    known = facts["datasets"]
    assert isinstance(known, tuple)
    return f"it has {listed(list(map(str, known)))}" if known else "it has none yet"


_WHY_NOT_COUNTED: Mapping[Fact, str] = MappingProxyType(
    {
        "pure-grant": "a pure budget has no δ to spend",
        "draws-not-zcdp": "its noise draws are not zCDP, so it has no ρ",
        "too-many-gaussian": "the margin of discrete noise is proven for {max_gaussian} releases only",
        "no-mu": "μ is known only for pure ε, and for epsilon with delta if all draws are Gaussian",
        "grant-in-mu": (
            "the grant counts in μ, which is known only for pure ε, and for epsilon with delta if all draws are Gaussian"
        ),
        "no-delta": "a cost in ρ has no δ of its own, and releases here are counted by basic composition in ε and δ",
        "no-rho": "the grant counts in ρ, and a release that is only (ε, δ)-private has none",
    }
)
"""Why a grant cannot count a release, by reason: docs/evidence/derivations/ledger.md."""
_FOREIGN: Mapping[Fact, str] = MappingProxyType(
    {
        "empty": "{path} is not a ledger but an empty file, perhaps the rest of a damaged ledger.",
        "other-program": "{path} is not a ledger but an SQLite file of another program.",
        "not-sqlite": "{path} is not an SQLite file, or is damaged at its beginning.",
    }
)
_DAMAGED: Mapping[Fact, str] = MappingProxyType(
    {
        "tables": "{path} is damaged, or was changed by another program: its tables are not a ledger's.",
        "identity": "{path} is damaged: it has no id of its own.",
        "pages": "The ledger {path} is damaged: restore a copy, and check it with 'dpmoments ledger verify' and its releases.",
    }
)
_NOT_WRITABLE: Mapping[Fact, str] = MappingProxyType(
    {
        "read-only": "The ledger {path} cannot be written: the file, its folder or the disk is read-only.",
        "full": "The ledger {path} cannot be written: the disk is full.",
        "refused": "The ledger {path} cannot be read or written: the disk refuses (full, or failing).",
    }
)


def _by(name: str, sentences: Mapping[Fact, str]) -> Words:
    """Return the sentence that a fact chooses, with the facts in it."""
    return lambda facts: sentences[facts[name]].format(**facts)


_SPENT_BY_REFUSAL = (
    "Nothing was drawn for it; what was drawn before is spent, and the plan's whole cost counts as spent."
)


def _refused_draw(sentence: str) -> str:
    return f"{sentence} {_SPENT_BY_REFUSAL} This is a defect of the mechanism: please report it."


FINDINGS: Mapping[str, Words] = MappingProxyType(
    {
        # Guarantees (the theorems: docs/evidence/derivations/composition.md, privacy-units.md, README of the proofs)
        "zcdp": _zcdp,
        "pure-dp": _pure,
        "approximate-dp": _approximate,
        "unit-is-row": _row_is_unit,
        "unit-is-rows": _rows_of_unit,
        "exact-lattice": (
            "Sums are exact integers and noise is drawn exactly from a discrete distribution: the proof covers the program's "
            "arithmetic, and assumes that the random bits of the operating system are ideal."
        ),
        "lattice-rounded": (
            "Sums are exact integers; noise was drawn in floating point and rounded to the integer lattice. The proof assumes "
            "that floating-point draws have the ideal distribution."
        ),
        "idealized": "The proof is for real numbers; the sampler worked in floating point.",
        "not-private": (
            "NOT PRIVATE: the noise came from an insecure seed and can be reproduced and removed. The guarantee below would hold "
            "only with secure noise."
        ),
        # Rules
        "values-clipped-to-bounds": _values_clipped,
        "dates-clipped-to-bounds": _dates_clipped,
        "scale-range": _scale_range,
        "two-values": _two_values,
        "public-levels": _public_levels,
        "derived-feature": "{column}: computed from {factors:plain}, after the rules for them.",
        "coordinates": "{coordinates:,} coordinates, not clipped one by one; missing values: {missing:plain}.",
        "row-norm-bound": "Encoded rows with a Euclidean norm above {norm:g} were scaled down to it.",
        "no-row-norm-bound": (
            "Rows have no public bound; the mechanism clipped them at radii that it chose from public numbers and noisy answers."
        ),
        "noise-by-typical-range": (
            "Noise is divided among columns by their typical ranges (accuracy depends on whether they are right, privacy does "
            "not)."
        ),
        "noise-by-weight": (
            "Noise is divided among columns by stated weights: {names:all} have less than others, or more if a weight is below 1."
        ),
        "noise-by-mean-weight": (
            "Means have a stated weight of {weight:g} against covariances, by which noise is divided (1 is the default)."
        ),
        "rows-scaled-to-ball": (
            "Rows whose numbers and Booleans, in units of rough private scales, had a length above {radius:.3g} were scaled down "
            "to it; levels were not changed. The stated errors include what this hides."
        ),
        "rows-of-query": _query_rows,
        "group-of-rows": (
            "One of {groups:,} groups of a parallel release by {column}: only rows whose {column} is {level}. A row is in at "
            "most one group, so all groups together spend the stated budget once."
        ),
        "parallel-groups": (
            "One release for each of the {groups:,} levels of {column} (parallel composition). A row is in at most one group, so "
            "adding or removing it changes one group only, and all groups together spend the budget once. Rows of no level of "
            "{column} are in no group; empty groups are released like the others."
        ),
        "pooled-tables": _pooled,
        "pooled-part": lambda facts: f"{facts['mechanism']}, {budget_text(facts)}.",
        # Warnings
        "rows-dropped": (
            "About {share:.0%} of the table's {rows:,} rows were dropped (missing values, or values outside the schema)."
        ),
        "row-count-uncertain": _row_count,
        "too-few-rows": (
            "Too few rows for this budget: the row count is {rows:,.0f} ± {noise:,.0f}. Everything computed from it may be "
            "mostly noise."
        ),
        "delta-too-large": _delta,
        "location-lost": _about("too few rows to locate the values at this budget; mean and variance are noise."),
        "search-unsettled": _about(
            "the search for the values ended before it found them, so noise is calibrated to the remaining range."
        ),
        "values-clipped": (
            "{names}: up to {share:.1%} of the values were clipped, because they are rare and distant or the budget is small. "
            "The variance is too small, and the mean is pulled toward the other values."
        ),
        "values-unseen": (
            "{names}: up to about {share:.0%} of the values could be outlying without being detected, and would have been "
            "clipped. If there are any, the variance is too small."
        ),
        "values-mostly-equal": (
            "Most values are equal (within floating-point precision). The variance comes from the others, and is too small "
            "if some of them were not detected."
        ),
        "variance-lost": "Noise dominates the variance: too few rows for this budget, or values that span too many scales.",
        "mean-lost": _about("noise dominates the mean."),
        "mean-beyond-radius": _about("the estimated mean is outside the stated radius by more than noise explains."),
        "values-beyond-radius": _about(
            "most values are outside the stated radius; the search ends at twice the radius."
        ),
        "mostly-clipped": _about("over half the values were clipped, so the result is not the mean of the column."),
        "rows-mostly-clipped": (
            "Most rows were clipped: they are far outside the stated radius or scale, or have very heavy tails."
        ),
        "rows-unseen": "The budget is too small to locate the rows.",
        "outlying-rows-clipped": (
            "About {share:.1%} of rows are outlying and were clipped: the mean is nearly that of the other rows."
        ),
        "noise-incomplete": (
            "The stated noise is probably not the whole error of the mean: clipping may have moved it by more. The rows have "
            "longer tails than normal rows, or too few of them were distinguishable from noise to judge."
        ),
        "rows-outside-bounds": (
            "Most rows were clipped: they are far outside the stated bounds, or have very heavy tails."
        ),
        "small-eigenvalues-lost": "The budget is too small for this range of eigenvalues: the smallest are lost in noise.",
        "clip-widened": (
            "Outlying rows widened the last clipping region to {times:.2g} times its planned radius; noise on "
            "every column grew with the square of that."
        ),
        "variance-of-few-rows": (
            "The variance of some column, or combination of columns, comes from few rows (which were clipped) or is below its "
            "scale range. Its released variance is far too small, or mostly noise."
        ),
        "variance-of-outlying-rows": (
            "About {share:.1%} of rows are outlying and were clipped: the variance of some column, or combination of columns, is "
            "too small."
        ),
        "noise-above-covariance": "The expected error exceeds the covariance itself: this release is mostly noise.",
        "rows-unseen-tail": (
            "Up to about {share:.0%} of rows could be outlying, at any distance, without being detected, and would have been "
            "clipped. If there are any, variances are too small."
        ),
        "fewer-rows-than-features": (
            "There are fewer rows than features: the second moment of the rows is singular, whatever its noise."
        ),
        "rounds-too-noisy": (
            "The noise of a round exceeded a tenth of the bound that the round tests, so directions may have been halved wrongly."
        ),
        "no-ledger": "No ledger was used: composition with other releases of the same people is not tracked here.",
        "tables-not-checked": (
            "Nobody checked that the pooled tables are disjoint: no dataset is named by {names:plain}. If two releases are of "
            "one table, its rows count twice, and its privacy loss may be as large as the sum of both budgets."
        ),
        "dependent-rows": (
            "Each {column} contributes up to {max_rows:,} rows, which may be similar. Sampling variances are therefore "
            "{max_rows:,} times those of independent rows, an upper bound: intervals may be too wide and p-values too large."
        ),
        "not-in-ledger": (
            "The release was made, but the ledger could not record it ({reason}). Entry {entry} shows its budget as reserved, "
            "which counts as spent."
        ),
        "directions-lost": (
            "{directions} of {features} directions are not distinguishable from noise: precision_ and mahalanobis leave them out."
        ),
        # Caveats of the noise
        "linearized": (
            "The noise distribution is linearized about the release: it is accurate if noise is small compared with the moments."
        ),
        "tail-not-excluded": (
            "The stated noise is about the rows as the last step clipped them. Up to {share:.1%} of rows could be beyond, at any "
            "distance, without being detected: if one of these columns has a long tail, its standard deviation is far too small "
            "({names})."
        ),
        "clipped-in-last-step": (
            "The stated noise is about the rows as the last step clipped them; the effect of clipping is not included."
        ),
        "asserted-smallest-eigenvalue": (
            "The noise distribution holds if no eigenvalue is below the stated smallest_eigenvalue."
        ),
        # Errors
        **REFUSALS,
        "wrong-type": _wrong_type,
        "out-of-range": lambda facts: f"{_parameter(facts)}={facts['value']!r} must be {facts['expected']:phrase}",
        "not-between": _not_between,
        "line-too-long": lambda facts: f"one of its lines is longer than {_size(facts['most'])}",
        "not-one-of": _not_one_of,
        "needs-mean": _needs_mean,
        "file-inconsistent": "{path} does not hold a consistent {noun}: {failure:message}",
        "power-outside-i": (
            "In a formula, '{term}' crosses {column} with itself, so {column} would be fitted without its power. Write "
            "I({column}**{exponent})."
        ),
        "not-categorical-in-formula": (
            "The formula has '{term}', and '{column}' is not a categorical column of the release. C() takes the name of one "
            "column; numbers cannot be cut into levels after the release."
        ),
        "product-not-released": "The formula has the product of {factors}, which was not released.",
        "no-robust-errors": (
            "HC1 errors need the products of all regressors and the target; not in this release: {missing:all}."
        ),
        "unknown-term": lambda facts: _unknown(
            f"'{facts['term']}' is not a column or feature of this release.",
            facts,
            "A formula may use columns, features, C(column) and I(column**2); put names such as `hours-per-week` in backticks.",
        ),
        "unknown-feature": lambda facts: _unknown(f"Unknown feature '{facts['name']}'.", facts),
        "column-of-several-features": "'{name}' is categorical, and one feature is needed. Name one of its features: {features}.",
        "unknown-grouping-column": lambda facts: _unknown(
            f"'{facts['name']}' is not a column of the schema.", facts, f"Groups are {_groups(facts)}."
        ),
        "not-a-grouping-column": lambda facts: (
            f"'{facts['name']}' is {facts['kind']}. Groups are {_groups(facts)}. "
            "Bands of numbers must be made before the release."
        ),
        "unknown-file-ending": (
            "Cannot read '{path}': endings must be .parquet, .feather, .csv or .tsv, the same for all files."
        ),
        "unknown-mechanism": lambda facts: _unknown(
            f"Unknown {'estimator of means' if facts['of_means'] else 'mechanism'} '{facts['name']}'.", facts
        ),
        "target-needed": "With schema=, target= must name the column that y holds: {columns}.",
        "target-not-a-column": lambda facts: _unknown(
            f"target='{facts['name']}' is not a {facts['kind']} column of the schema.",
            facts,
            f"Its columns are {_columns(facts)}.",
        ),
        "unknown-coefficient": lambda facts: _unknown(
            f"'{facts['name']}' is not a coefficient of this fit.", facts, "`params` of the fit lists them all."
        ),
        "penalized-errors": (
            "A {method} fit has no standard errors, intervals or tests: those of penalized coefficients are not known. Use ols()."
        ),
        "too-many-predictions": (
            "At most {most:,} rows are predicted with intervals at once, since noise is so large that each needs a search; "
            "got {rows:,}. Pass fewer, or use predict()."
        ),
        "no-grant": lambda facts: f"The ledger has no budget for dataset '{facts['dataset']}' ({_datasets(facts)}).",
        "unknown-column": lambda facts: _unknown(f"The schema has no column '{facts['name']}'.", facts),
        "unknown-name": lambda facts: _unknown(f"There is no '{facts['name']}' in this answer.", facts),
        "unknown-level": lambda facts: _unknown(
            f"'{facts['column']}' has no level {_listed(facts, 'names')}.",
            facts,
            f"Its levels are {_listed(facts, 'levels')}.",
        ),
        "budget-exceeded": (
            "The budget of '{dataset}' does not allow this release, which would cost {cost}: granted {granted}, spent {spent} by "
            "{releases:,} releases, remaining: {remaining}."
        ),
        "cost-not-countable": lambda facts: (
            f"A release that costs {facts['cost']} cannot be counted under the budget of '{facts['dataset']}', "
            f"{facts['granted']}: {_WHY_NOT_COUNTED[facts['reason']].format(max_gaussian=facts['max_gaussian'])}."
        ),
        "grant-of-other-unit": (
            "The budget of '{dataset}' is for the privacy unit '{granted}', but this release protects '{unit}': a guarantee for "
            "one does not imply the other."
        ),
        "grant-of-other-relation": (
            "The budget of '{dataset}' is for {granted}, but this release is for {neighbors}: a cost under replace_one says "
            "nothing about a row present or absent."
        ),
        "grant-fixed": (
            "'{dataset}' was granted a budget with {what} '{granted}', and some of it is spent: it cannot become one with {what} "
            "'{asked}'. Only its amount can be changed."
        ),
        "grant-below-spent": (
            "{spent} of the budget of '{dataset}' is spent: a grant cannot be lowered to {asked}, below what is spent already."
        ),
        "ledger-missing": "The ledger {path} does not exist.",
        "ledger-is-a-folder": "{path} is a folder: name the ledger's file in it.",
        "ledger-folder-missing": "The folder {path} of the ledger does not exist.",
        "ledger-not-made": "The ledger {path} cannot be made: {reason}.",
        "ledger-hard-links": (
            "{path} has {names} names (hard links): a transaction under one name is not seen under another, so that budget could "
            "be spent twice. Delete all names but one, and open the ledger by that or by a symbolic link to it ('find FOLDER "
            "-samefile {path}' lists them; make backups by copying)."
        ),
        "ledger-foreign": _by("content", _FOREIGN),
        "ledger-version": (
            "{path} is a ledger of file version {version}, and this library knows version {known}: use the version of dpmoments "
            "that wrote it, or a newer one; it was not changed."
        ),
        "ledger-journal-mode": (
            "The ledger {path} is in journal mode '{mode}', which another program set: ledgers are kept in mode 'delete' (PRAGMA "
            "journal_mode = DELETE puts it back)."
        ),
        "ledger-damaged": _by("what", _DAMAGED),
        "ledger-locked": lambda facts: (
            f"The ledger {facts['path']} is locked: another process has been writing it for {facts['seconds']:g} s. Try again."
            if "seconds" in facts
            else f"The ledger {facts['path']} is locked by another use in this process. Try again."
        ),
        "ledger-not-writable": _by("cause", _NOT_WRITABLE),
        "ledger-not-opened": "The ledger {path} cannot be opened: look at its permissions, and at those of its folder.",
        "ledger-failure": "The ledger {path} cannot be used ({reason}).",
        "ledger-replaced": (
            "{path} is no longer the ledger that was opened: it was cut, restored from an older copy, or replaced. Find out why "
            "before releasing anything."
        ),
        "entry-of-other-ledger": (
            "{path} is not the ledger in which entry {entry} was written: it was cut, restored from an older copy, or replaced."
        ),
        "entry-reserved-elsewhere": (
            "This object did not reserve entry {entry} of {path} in this process: whether its run drew noise is known only where "
            "it was reserved. It counts as spent unless that object refunds it."
        ),
        "entry-ended": "Entry {entry} already has a {state}.",
        "entry-without-reservation": "Entry {entry} reserves nothing for '{dataset}'.",
        "history-broken": "The history is broken at entry {entry}: {reason}",
        "run-ended": "This run has ended: open a filter for each run of a plan.",
        "draw-over-budget": _refused_draw("A draw for '{query}' would spend more than the plan states."),
        "draw-over-coordinates": _refused_draw(
            "A draw for '{query}' has more coordinates than the composition is proven for."
        ),
        "draw-of-other-relation": _refused_draw(
            "The sensitivity of '{query}' is for another relation than the plan's."
        ),
        "draw-without-bound": _refused_draw(
            "'{query}' relies on a bound on the smallest eigenvalue that was not drawn."
        ),
        "draw-not-in-integers": _refused_draw(
            "'{query}' is not in integers, and noise on a lattice hides nothing between its points."
        ),
        "draw-invalid": _refused_draw("'{query}': {reason}."),
        # Reasons
        "rough-private-scales": _rough_scales,
        "least-error": _least_error,
    }
)
"""Words by code, without a remedy."""
