"""Sentences of errors whose facts are the fields of the sentence."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpmoments.messages.table_refusals import TABLE_REFUSALS

REFUSALS: Mapping[str, str] = MappingProxyType(
    {
        **TABLE_REFUSALS,
        # Arguments
        "array-not-finite": "{parameter} holds NaN or infinity: use finite numbers",
        "array-of-other-shape": "{parameter} has shape {shape}: give {expected:phrase}",
        "not-above": "{parameter}={value!r} must be above {least:g}",
        "shapes-differ": "{first} has shape {shape} and {second} {other_shape}, which do not fit each other",
        "no-root": "no root of the function was found between {low!r} and {high!r}",
        "root-not-a-number": "the function is not a number at {x!r}, so no root can be found",
        "line-too-long": "one of its lines is longer than {most:,} bytes",
        "library-missing": "these files are read with {library}: pip install 'dpmoments[{extra}]'",
        "pandas-not-installed": "pandas is not installed: install it, or use format='arrow' for a pyarrow.Table",
        # Noise
        "noise-model-entry": "{entry} of the noise model must be {expected:phrase}",
        "terms-of-other-sizes": "the terms of noise have sizes {sizes}: use one size",
        "not-a-map-of-noise": "a matrix of shape {shape} does not carry this noise: give finite numbers in {columns} columns",
        "generator-not-copied": ("a SecureGenerator cannot be copied or stored: two releases would share their noise"),
        "draw-was-zero": "a noise draw was zero: nothing was released; run again",
        "temperatures-shape": "temperatures have shape {shape}: give a vector of at most {most}, one per eigenvector",
        "integrand-does-not-fall": "the integrand does not fall off within floating-point range",
        "loss-not-in-unit": "a loss of {distribution} is not counted in {unit}",
        # Budgets, receipts and privacy units
        "losses-not-a-cost": "losses counted in {unit} do not add up to a cost of {cost}",
        "curve-not-monotone": "the privacy curve is not monotone near its root",
        "query-in-larger-units": "a query is counted in smaller units, 1 or more in one, and rounding adds to its distance",
        "loss-negative": "a loss must not be negative",
        "losses-of-other-units": "losses in {first} and {second} do not add up",
        "loss-not-subtracted": "a loss in {unit} cannot be subtracted from one in {unit_2}",
        "not-a-budget": (
            "{parameter}={value!r} is not a privacy budget: {parameter} must be positive and finite (at most {most:g})"
        ),
        "zcdp-has-rho": "a zCDP budget has only rho: leave epsilon and delta out",
        "budget-has-no-rho": "a {kind} budget has no rho",
        "pure-has-no-delta": "a pure budget has delta = 0",
        "delta-out-of-range": (
            "delta={delta!r} cannot be: delta is a probability of failure, above 0 and below 1 (well below one "
            "over the number of rows)"
        ),
        "delta-goes-with-epsilon": (
            "delta goes with epsilon: a rho-zCDP budget has none (PrivacyBudget.zcdp(rho).to_epsilon(delta) shows "
            "what it means as (epsilon, delta))"
        ),
        "weights-not-positive": "weights {weights!r} must be positive numbers",
        "delta-above-asked": "the budget's own delta, {own:g}, is above the delta asked for, {delta:g}",
        "no-rho-implies-pure": "no ρ implies a pure budget of {budget}: give delta > 0 too, or rho",
        "unknown-budget-kind": "unknown kind of budget {kind!r}: use one of {kinds:all}",
        "budget-not-finite": "{parameter} of a budget must be a finite number",
        "budgets-of-other-kinds": (
            "a {first} and a {second} budget do not add up: convert one (see dpmoments.privacy.curves)"
        ),
        "imagined-release-not-saved": "an imagined release cannot be saved: nothing was released",
        "filter-not-copied": (
            "a privacy filter is for one run and cannot be copied: its copies would each spend the whole budget"
        ),
        "bound-in-other-norm": "the bound that {sensitivity} makes is in another norm",
        "groups-within-groups": "groups within groups are not supported",
        "filter-of-units-in-groups": "rows of units are not divided into groups",
        "filter-of-group-closed": "close the filter of the whole run",
        "no-delta-for-a-row": (
            "ε = {epsilon:g} for units of {rows} rows leaves no δ for a single row, since δ grows with e^ε over a "
            "unit's rows: use a smaller epsilon, or a budget in rho"
        ),
        "nothing-for-a-row": (
            "a budget of {cost} for units of {rows} rows leaves nothing for a single row that can be calculated "
            "with: let fewer rows of a unit count, or spend more"
        ),
        "noise-too-small-for-lattice": (
            "the noise is too small in lattice units for its composition to be proven: use a finer lattice"
        ),
        "noise-off-diagonal": "noise off the diagonal must be at least 1/√2 of that on it",
        "distribution-of-other-norm": "{distribution} noise needs a sensitivity in {norm}, got one in {given}",
        "distribution-takes-no-claim": "a draw of {distribution} has a price of its own and takes no claim",
        "distribution-of-other-shape": "a draw of {distribution} is not for a query of shape {shape}",
        "distribution-of-other-rows": "a draw of {distribution} for {value} rows is not for a query of shape {shape}",
        "distribution-of-other-length": (
            "a draw of {distribution} with {n_value} {entry} is not for a query of shape {shape}"
        ),
        "distribution-flag": "{parameter} of a {distribution} draw must be true or false",
        "distribution-whole-number": "{parameter} of a {distribution} draw must be a whole number",
        "distribution-out-of-range": "{parameter} of a {distribution} draw is out of range",
        "distribution-tuple": "{parameter} of a {distribution} draw must be a tuple",
        "distribution-numbers": "{parameter} of a {distribution} draw must be {expected:phrase}",
        "distribution-sign": "{parameter} of a {distribution} draw must be {expected:phrase}",
        "draw-above-claim": (
            "a draw of {distribution} costs more than the plan claims: its exact δ is above the stated one"
        ),
        "dataset-not-text": "dataset must be a text that names the table, such as 'people-2026', got '{dataset}'",
        "dataset-not-printable": (
            "dataset='{dataset}' must name the table in 1 to {most} printable characters: 'people-2026'"
        ),
        "unknown-noise-distribution": "unknown noise distribution '{name}': use one of {known:all}",
        "draw-with-other-parameters": "the parameters of a {name} draw are {known}, and the file has others",
        "draw-not-finite": "the {entry} of {query!r} must be a finite number",
        "draw-with-other-loss": "the loss of {query!r} is not the loss of its distribution at its sensitivity",
        "draw-size": "the size of {query!r} must be a whole number, 1 or more",
        "draw-group": "the group of {query!r} must be a text",
        "receipt-above-cost": "the draws of this receipt add up to more than the stated cost",
        "receipt-of-many-coordinates": (
            "the draws of this receipt have more coordinates than their composition is proven for"
        ),
        "receipt-without-eigenvalue-bound": (
            "a draw of this receipt relies on a bound on the smallest eigenvalue that was not drawn"
        ),
        "receipt-of-groups": "the receipt is of several groups of rows, and this release of all rows",
        "receipt-of-other-budget": "the receipt is not for the stated budget and relation",
        "receipt-of-other-unit": "the receipt is not for the stated protected unit",
        "receipt-out-of-range": "the receipt holds a number that is out of range",
        "unknown-loss-unit": "'{name}' is not a valid LossUnit: losses are counted in {known:all}",
        "receipt-of-units": "the receipt is for units of several rows under another relation than add_remove",
        "receipt-draws-not-a-list": "the draws of a receipt must be a list",
        "draw-of-other-relation-in-receipt": "a draw of the receipt has the sensitivity of another relation",
        "receipt-allowance": "the receipt's allowance does not equal its cost",
        "receipt-of-many-losses": (
            "the draws of the receipt have more than {most:,} different losses, which no run has"
        ),
        "no-sampler": "no sampler for noise {got}",
        "draw-left-lattice": "a noise draw left the lattice: nothing was released; run again",
        "unknown-sensitivity": "unknown sensitivity '{name}': use one of {known}",
        "sensitivity-not-finite": "{parameter} of a sensitivity must be a finite number, 0 or above",
        "sensitivity-units": "units of a sensitivity must be a power of two, 1 or more",
        "sensitivity-too-small": "a sensitivity '{name}' is stated as less than it is",
        "sensitivity-lacks": "{name} lack {names:all}",
        "sensitivity-parameter": "{parameter} of {function} must be a finite number, and n_features a whole one",
        "weights-not-a-list": "{parameter} of {name} must be a list",
        "weights-number": "{parameter} of {name} are {number:,} numbers: 1 to {most:,} are expected",
        "weights-out-of-range": "{parameter} of {name} must be finite numbers above 0",
        "unknown-arithmetic": "unknown arithmetic '{name}'",
        "private-not-a-flag": "private must be true or false",
        "statement-of-units": "a privacy unit of several rows is stated under another relation than add_remove",
        "unknown-relation": (
            "neighbors={value!r} is not a neighboring relation: use 'add_remove' (the number of rows is private) "
            "or 'replace_one' (the number of rows is public)"
        ),
        "unit-without-name": "the column of a privacy unit has no name: give the column that identifies people",
        "max-rows-out-of-range": "max_rows={value!r} must be between 1 and {most:,}",
        "not-a-unit": "{value!r} is not a privacy unit: use 'row', or a column with a number of rows",
        "unit-needs-add-remove": (
            "a privacy unit is not supported under neighbors='{neighbors}': the number of kept rows depends on how "
            "many each unit has, so it is not public, as that relation assumes. Use {argument:neighbors=add_remove}"
        ),
        "unit-is-a-feature": (
            "the privacy unit's column '{column}' is in the schema, so it would be a feature of the release: "
            "remove it from the schema, or copy it under another name to use it as a feature too"
        ),
        "one-budget-needed": "give the privacy budget as epsilon (with or without delta) or as rho, {given:phrase}",
        "curve-not-a-number": "the privacy curve is not a number at {x!r}",
        "curve-without-boundary": "no boundary between safe and unsafe parameters within floating-point range",
        "delta-not-a-probability": (
            "delta must lie strictly between 0 and 1; got {value!r}. For delta = 0 use a mechanism for pure "
            "differential privacy or a zCDP budget."
        ),
        "padding-too-small": (
            "padding={padding!r} is too small for epsilon={epsilon!r}, delta={delta!r}: not even one degree of "
            "freedom is private; pad more"
        ),
        "no-noise-scale": "no float holds the noise scale for rho={rho!r}, sensitivity={sensitivity!r}; rescale",
        "group-level-type": "the level of a group of rows must be a text, a whole number, or true or false",
        "groups-number-type": "the number of groups must be a whole number, 1 or more",
        "unknown-clauses": "the query of a release's origin must be a list of {known:all}",
        "ledger-id": "the id of a ledger is {digits} hexadecimal digits",
        "entry-number": "the number of a ledger's entry must be a whole number, 1 or more",
        "entry-hash": "the hash of a ledger's entry is 64 hexadecimal digits",
        "release-id": "the id of a release is {digits} hexadecimal digits",
        "eigenvalue-not-above": "least_eigenvalue={value!r} must be above {least:g}",
        "augmentation-out-of-range": "augmentation={augmentation}: the appended constant is between 0 and 1",
        # Ledgers
        "losses-without-unit": "the losses of a release have no unit that a ledger supports",
        "amount-not-a-ratio": "an amount in the ledger is not a numerator and a denominator in lowest terms",
        "not-a-ledger": "ledger must be a dpmoments.Ledger or the path of its file, got {ledger!r}",
        "ledger-with-insecure-seed": (
            "a release with an insecure seed is not private and cannot be charged to a ledger: leave out ledger or "
            "insecure_seed"
        ),
        "unit-named-row": (
            "the privacy unit's column is called '{column}', which in a ledger means single rows: rename it"
        ),
        "cost-of-other-relation": (
            "a cost under replace_one says nothing about a row present or absent: release with "
            "{argument:neighbors=add_remove}, or grant a dataset of another name for replace_one"
        ),
        "cost-under-add-remove": "a cost of {cost} under add_remove says nothing about a row replaced",
        "several-budgets-granted": "give only one of epsilon (with or without delta), rho and mu",
        "no-budget-granted": "give one of epsilon (with or without delta), rho and mu; none was given",
        "composition-needs-epsilon-delta": "composition={composition!r} needs a budget of epsilon and delta",
        "unit-not-text": "unit must be a text that names the privacy unit, such as 'row', got {unit!r}",
        "unit-not-printable": "unit={unit!r} must be 1 to {most} printable characters, such as 'row'",
        "dataset-needed": "a ledger keeps a budget for each dataset: name it with {argument:dataset=people-2026}",
        "mu-not-a-budget": "mu={value!r} is not a privacy budget: mu must be positive and finite (at most {most:g})",
        "delta-too-small": "delta={delta!r} is too small",
        "not-a-file-name": "{path!r} cannot be the name of a file",
        "not-one-line": "{parameter}={value!r} must be one line of at most {most} printable characters",
        "grant-needs-reason": (
            "the budget of '{dataset}' is {known}, and some of it is spent: to make it {asked}, state why and who "
            "decided it: {argument:reason}; the history keeps both"
        ),
        "entry-changed": "its hash does not match: it, or an entry before it, was changed, removed or inserted",
        "entry-not-a-mapping": "the content of an entry must be a mapping",
        "entry-out-of-order": "its number is out of order",
        "entry-missing": "entry {number} is missing",
        # Runs
        "groups-need-add-remove": "groups of rows are planned for add_remove: a replaced row may change its group",
        "groups-of-units": (
            "groups cannot be released for a privacy unit: a person may have rows in several groups, so several "
            "releases would change at once. Release the whole table with {argument:privacy_unit} and the grouping column as "
            "one of its features"
        ),
        "groups-of-relation": (
            "groups cannot be released under neighbors='{neighbors}': a replaced row may change its group, so that "
            "two releases would change, at twice the budget. Use {argument:neighbors=add_remove}"
        ),
        "public-rows-of-units": (
            "n_rows cannot be public with a privacy unit, since the number of counted rows depends on each unit's "
            "rows. Leave it out"
        ),
        "table-without-rows": (
            "the table has no rows: under replace_one there is nothing to release (under add_remove the number of "
            "rows is private, and an empty table is released like any other)"
        ),
        "rows-not-as-stated": "n_rows={rows} and the table has another number of rows: leave n_rows out",
        # Messages
        "message-not-changed": "a message cannot be changed: make another",
        "message-of-other-code": "{value!r} is not the code of a message that is expected here",
        "message-without-facts": "message {value!r} lacks the facts {names:all}",
        "message-unknown-fact": "message {value!r} has no fact {name!r}",
        "message-fact-kind": "the fact {name!r} of message {value!r} is not of kind {kind!r}",
        # Mechanisms
        "rows-of-other-levels": (
            "the plan is for a schema with other levels, on which its sensitivity depends: make the plan from the same schema"
        ),
        "standardized-needs-mean": "'standardized' releases means with the second moment: release {argument:with mean}",
        "diagnostics-lack": "the diagnostics do not have {entry} of a run",
        "budget-too-small": (
            "the budget is too small: noise of {noise:.3g} per entry would hide a table of any size: give a larger "
            "budget"
        ),
        "eigenvalue-needs-regime": (
            "largest_eigenvalue needs rule='regime': the other rules assume nothing about the table"
        ),
        "regime-needs-delta": "rule='regime' needs epsilon and delta, got a budget of {budget}",
        "bounds-needed-for-budget": (
            "a budget of {budget} needs bounds on every column, and some have a scale range instead (one such "
            "column by itself is allowed). Give rho, or epsilon and delta > 0, or give every column lower and upper"
        ),
        "regime-needs-eigenvalue": (
            "rule='regime' needs the largest eigenvalue of the Gram matrix, or the number of rows, which bounds it "
            "and is private here: give largest_eigenvalue from public knowledge"
        ),
        "diagnostic-out-of-range": (
            "{name} of the diagnostics must be a number above 0: the file was changed after the release"
        ),
        "rows-of-other-features": (
            "the plan is for {planned} features and the rows have {features}: make the plan from the same schema"
        ),
        "rows-of-other-relation": (
            "the plan is for neighbors='{planned}' and the rows were opened for '{neighbors}', which has other "
            "sensitivities: make both for the same relation"
        ),
        "rows-may-be-dropped": (
            "the schema has a rule that drops rows, but the plan is for a schema without one, whose row count is "
            "public: make the plan from the same schema"
        ),
        "budget-of-other-kind": "{mechanism} cannot spend a budget of {budget}: {advice:message}",
        "relation-not-supported": "{mechanism} is not defined for neighbors='{neighbors}': use {known}",
        "too-many-features": "{mechanism} takes at most {most} feature, and the table has {features}.",
        "mechanism-needs-row-bound": (
            "{mechanism} needs a bound on the norm of a row and the schema gives none: give every column bounds, "
            "or use a mechanism that needs none (dpmoments mechanisms lists them)"
        ),
        "coinpress-needs-rows": "coinpress needs rows: this table is publicly empty",
        "anchor-shape": "the anchor has {rows} rows; the table has {features} features",
        "eigenvalue-bounds-needed": (
            "coinpress needs a rough range for the eigenvalues of the covariance: "
            "CoinPress(eigenvalue_bounds=(lowest, highest)); a range of 1e6 costs a few percent"
        ),
        "mean-radius-needed": (
            "coinpress needs a bound on the norm of the mean, which may be generous: CoinPress(mean_radius=…); or "
            "mean=False for rows of mean zero"
        ),
        "failure-needs-paper": (
            "failure={failure!r} needs the paper's constants, since the practical ones have no β: leave it out, or "
            'give constants="paper"'
        ),
        "unknown-split": "split={split!r}: use {known}, or one share per step",
        "split-not-positive": "split={split!r}: give one positive share per step",
        "split-of-other-length": "split has {shares} shares and steps={steps}: leave steps out",
        "eigenvalue-bounds-not-a-range": (
            "eigenvalue_bounds={bounds!r}: give (lowest, highest) with 0 < lowest ≤ highest, finite"
        ),
        "covariance-not-symmetric": "covariance must be a symmetric matrix, got shape {shape}",
        "covariance-not-positive": "covariance must be positive semi-definite: it has a negative eigenvalue",
        "column-twice-in-table": "a table names '{column}' twice: by={by}",
        "tables-twice": "two tables have the same columns: one of them is enough, at twice the budget",
        "too-many-cells": "the tables have {cells:,} cells together, and {most:,} are the most: name fewer columns",
        "table-split-not-positive": "split must be positive numbers, one for each table: split=[2, 1]",
        "table-split-of-other-length": "split has {shares} numbers for {tables} tables: give one for each",
        "tables-not-a-list": "by must be a list of columns, or a list of such lists: by=['region', 'sex']",
        "tables-mixed": "by must be a list of columns, or a list of such lists: by=[['region', 'sex'], ['age_band']]",
        "histogram-needs-rows": "log-scale-histogram needs rows: this table is publicly empty",
        "mean-of-no-rows": "a table that is publicly empty has no mean",
        "value-needs-other-units": (
            "{parameter}={value!r} must be in [{least:g}, {most:g}]: give the table in other units"
        ),
        "mean-needs-radius": (
            "means by '{mechanism}' need a public bound on the mean: give radius, or use variance-aware"
        ),
        "mean-needs-scale": (
            "means by '{mechanism}' need a public bound on the standard deviation: give scale, or use variance-aware"
        ),
        "scale-and-covariance": "give scale or covariance, not both",
        "covariance-shape": "covariance has {rows} rows; the table has {features} features",
        "auto-has-no-options": "mechanism='auto' has no options: leave out {options:all}, or name an estimator",
        "mechanism-configured": "'{mechanism}' is configured already: leave out {options:all}",
        "rows-negative": "n_rows={rows} must not be negative",
        "matrix-not-square": "{parameter} must be a finite square matrix, got shape {shape}",
        "matrix-not-symmetric": "{parameter} is not symmetric: pass (M + Mᵀ)/2 if the difference is intended",
        "matrix-not-positive": "{parameter} must be positive definite, but has an eigenvalue that is not positive",
        "mechanism-of-other-type": "mechanism must be a name or a configured {noun}, got {got}",
        "units-need-add-remove": (
            "privacy units need add_remove: under replace_one the number of kept rows is private"
        ),
        "plan-above-cost-of-row": "the plan for rows costs more than a row's part of the cost for units",
        "rows-of-other-unit": "the rows were opened for another privacy unit than the plan's, or for none",
        # Audits
        "diagnostic-not-plain": "the diagnostic {name!r} is a {got}: the audit reads plain values and arrays",
        "every-run-failed": "every run failed on both tables of {pair!r}",
        "no-pair-to-audit": "no pair of tables to audit",
        "audit-too-small": (
            "pilot={pilot}, final={final}, finalists={finalists}: an audit needs at least 20 pilot and 20 final draws, and one "
            "finalist"
        ),
        "nothing-to-audit": "nothing to audit: no budget and relation given here is supported by {names:all}",
        "exact-noise-has-no-seed": (
            "seed={seed}: exact noise comes from the operating system and has no seed; leave one out"
        ),
        # Mechanisms and bounds of papers
        "matrix-singular": (
            "{parameter} is singular or has a negative eigenvalue, so an error relative to it is undefined: drop features that "
            "are constant or sums of others, use the Frobenius or spectral error of moments (no inverse needed), or raise "
            "alpha for the risk of a ridge fit"
        ),
        "columns-dependent": (
            "the columns of {parameter} are linearly dependent: give as many as the subspace has dimensions"
        ),
        "paper-needs-laplace": "constants='paper' needs Laplace noise: the paper has no other bound; use 'sharp'",
        "closed-form-below-one": (
            "the closed form gives {shortfall:g}; below 1 its proof does not hold: use direction_shortfall"
        ),
        "number-for-eigenvalues": "got {number} {parameter}: give from {least} to {most}, one per eigenvalue",
        "no-number-reaches": "no number in floating-point range reaches {parameter}={value!r}: use a larger one",
        "no-bound-for-degrees": (
            "no bound exists for {coefficients:g} coefficients and {degrees:g} degrees of freedom: use more degrees of "
            "freedom, or fewer features"
        ),
        "wishart-degrees": (
            "degrees_of_freedom={value!r} must be above {rows}, the rows of the matrix (features, and one more for count and "
            "mean), and at most {most}"
        ),
        "too-few-degrees": (
            "{mechanism} needs at least {least:g} degrees of freedom for a matrix of {rows} rows (features, and one more for "
            "count and mean), got {value!r}"
        ),
        "columns-constant": "every column of {dataset} is constant, so none can be standardized",
        "column-constant": "column '{column}' of {dataset} is constant, so it cannot be standardized",
        "numbers-incomplete": "numeric column '{column}' of {dataset} has missing values: load the complete rows",
        "levels-incomplete": (
            "column '{column}' of {dataset} has missing values: load the complete rows, or pass unknown_is_a_level=True if the "
            "encoding has it"
        ),
        "variable-not-a-folder": (
            "{variable} is set to {value!r}, which is not a folder: name the folder that holds {file}, or unset the variable"
        ),
        "file-not-published": (
            "{path} is not the published {file}: its md5 is {md5}, expected {known}; remove it, or put the published file in "
            "its place"
        ),
        "download-not-published": (
            "{path} is not the published {file}: its md5 is {md5}, expected {known}; nothing was stored; try again later, or "
            "save the file there by hand"
        ),
        "not-downloaded": (
            "could not download {url} ({error}). Get {file} by other means and save it as {path}, or set {variable} to a "
            "folder that holds it"
        ),
        "download-not-stored": (
            "could not store {path} ({error}): set XDG_CACHE_HOME to a folder that can be written, or place the file in a "
            "folder of your own and name that in {variable}"
        ),
        "paper-sets-degrees": "the paper's calibration sets the degrees of freedom: leave degrees_of_freedom out",
        "scale-matrix-too-small": (
            "scale_matrix has an eigenvalue below 1: it must be at least the identity in every direction, for rows "
            "in the unit ball"
        ),
        "scale-matrix-needs-mean": "scale_matrix needs debias='mean'",
        "scale-matrix-shape": "scale_matrix has {rows} rows; the table has {features} features",
        "eigenvalue-needed": (
            "inverse-gaussian needs a public lower bound on the smallest eigenvalue of Σ x xᵀ (rows in the unit "
            "ball): pass smallest_eigenvalue=, known without the table, or use another mechanism"
        ),
        "eigenvalue-too-small-for-paper": (
            "smallest_eigenvalue={bound:g}: the paper's sensitivity, 1/(w²(w² − 1)), needs a bound above 1 (the "
            "squared norm of a row); use calibration='exact'"
        ),
        "degrees-twice": "give degrees_of_freedom or prior_degrees, not both: they set the same number",
        "prior-negative": "prior_degrees={prior_degrees!r} must not be negative",
        "prior-needs-public-rows": (
            "prior_degrees makes the degrees of freedom depend on the number of rows, which must then be public: "
            "use {argument:neighbors=replace_one} and a schema none of whose rules drops a row, and state n; or give "
            "degrees_of_freedom"
        ),
        "eigenvalue-or-adaptive": (
            "give smallest_eigenvalue or adaptive=True, not both: the one is known without the table, the other "
            "spends half of the budget to find it"
        ),
        "preconditioning-without-mean": (
            "private-preconditioning estimates the second moment of rows of mean zero: release {argument:without mean}, or "
            "use coinpress, which finds the mean too"
        ),
        "preconditioning-needs-rows": "private-preconditioning needs rows: this table is publicly empty",
        "preconditioning-needs-eigenvalues": (
            "private-preconditioning needs a range of eigenvalues of the second moment: "
            "PrivatePreconditioning(eigenvalue_bounds=(lowest, highest))"
        ),
        "rank-too-large": (
            "{mechanism}: rank={rank} is more than the table's {features} features: use rank={features} or leave it out"
        ),
        "sum-share-too-small": (
            "{mechanism}: the sum's share of {budget} is too small to release anything: raise sum_share"
        ),
        # Releases
        "cross-table-of-one-column": "a cross table is of two columns, and both are {by!r}: name another",
        "counts-table-needed": "name the columns of one table: {tables}",
        "unknown-counts-table": "no table of this release has the columns {by:all}: it has {tables}",
        "ledger-does-not-confirm": "the ledger {path} does not confirm this release: {what}: {detail}",
        "groups-number": "{column} has {levels} levels, and there are {releases} releases",
        "release-of-other-group": "a release is not of the group {column} = {level}",
        "groups-of-several-runs": "the releases are of groups of several runs",
        "groups-of-several-budgets": "the releases of the groups do not state one budget under add_remove",
        "groups-of-other-column": (
            "groups are the levels of a categorical or boolean column, and '{column}' is {kind}"
        ),
        "no-interval": "no interval is available: {reason:message}",
        "no-closed-form": "the error of {mechanism!r} has no closed form, so the noise distribution is unknown",
        "count-not-finite": "noisy_count is not a finite number",
        "noise-of-other-features": "the noise model is for {n_features} features and the schema has {expected}",
        "no-quantiles": (
            "a release has no {name}: quantiles need the order of the values, and a release holds count, mean and covariance; "
            "describe() has the mean and the standard deviation, and before a release the column can be cut into ranges: a "
            "Categorical has the share of each"
        ),
        "no-distribution": (
            "a release has no {name}: it holds count, mean and covariance, and no distribution of values; describe() has the "
            "share of each level, and before a release the column can be cut into ranges: a Categorical has the share of each"
        ),
        "other-name": (
            "a release has no {name}: correlations() has correlations, covariance_frame() variances and covariances, describe() "
            "standard deviations, cross_table(by, other) counts, t_test(target, by) a test"
        ),
        "no-logistic-regression": (
            "a release has no {name}: a logistic or other generalized linear model needs every row; ols(...) of a Boolean column "
            "is the linear probability model, and lda(...) separates groups by the same moments"
        ),
        "no-undo": (
            "a release has no {name}: what was drawn counts as spent even if its file is deleted, because nobody can prove that "
            "nobody has read it; keep the release: it is paid for, and every analysis of it is free"
        ),
        "no-choice-of-rows": (
            "a release has no {name}: rows cannot be chosen after a release; group_means(...) compares groups, and "
            "dpm.release_groups(...) makes one release for each group"
        ),
        "no-groups-afterwards": (
            "a release has no {name}: group_means(by), anova(target, by) and t_test(target, by) compare groups; "
            "dpm.release_groups(...) makes one release for each group"
        ),
        "pooled-means": "a mean-only release has no second moment to add: pool releases made by dpmoments.release",
        "pooled-counts": "a release of counts has no moments to add: pool releases made by dpmoments.release",
        "pooled-other-type": "a list of releases is pooled, got {got} in it{advice:message?}",
        "nothing-to-pool": "no releases to pool: pass a list, [release_a, release_b]",
        "release-twice": (
            "the release {release} is given twice, perhaps inside one that was pooled before: its rows would count "
            "twice. Pass it once (releases with one insecure seed have one id, since they share their noise)"
        ),
        "dataset-twice": (
            "two releases are of the dataset '{dataset}' ({parts}): their rows would count twice, and both budgets "
            "add up. Pass one of them"
        ),
        "schemas-differ": (
            "{parts} have different schemas ({difference}), so that their numbers are in different units: release "
            "all tables with one schema file"
        ),
        "means-differ": (
            "one of {parts} was released with mean=True and the other with mean=False, which encode rows "
            "differently: release all tables alike"
        ),
        "relations-differ": (
            "{parts} hide different things ({first} and {second}): release all tables for the same neighbors="
        ),
        "units-differ": (
            "{parts} protect different units ({first}; {second}), so that no one guarantee covers both: release "
            "all tables with the same privacy_unit="
        ),
        "losses-differ": (
            "the losses of {parts} are counted in different ways ({first} in {first_unit}, {second} in "
            "{second_unit}), so that no one budget covers both: release all tables by one mechanism under one kind "
            "of budget"
        ),
        "not-private-in-registry": (
            "this release was made with an insecure seed and is not private: release the table again without "
            "insecure_seed"
        ),
        "not-a-registry-value": "{parameter}={value!r} is not a value of the registry: use one of {choices:all}",
        "authors-not-a-list": "authors must be a list of names",
        "column-twice-in-counts": "a table names a column twice",
        "counts-of-other-columns": "the counts are not those of tables of the schema's columns",
        "counts-without-draw": "a release of counts has one draw of noise for each table",
        "draw-of-other-table": "a draw of the receipt is for another table",
        "count-beyond-tables": "a noisy count is beyond ±{most:.0e}, which no table has",
        "counts-tables-not-a-list": "the tables of a release of counts must be a list",
        "counts-public-rows": "public_rows must be a whole number from 0 to {most:.0e}, or null",
        "counts-columns-not-a-list": "the columns of a table must be a list of names",
        "counts-of-other-levels": "the levels of a table are not those of the schema",
        "counts-of-other-noise": "the noise of a table is not that of the receipt",
        # Analyses
        "numbers-out-of-range": (
            "the numbers of this release exceed the range of floating point: they are very large, very small, or "
            "very far apart"
        ),
        "weights-not-applied": (
            "{function}() takes no weights=: a release holds sums over rows that count alike, and weights cannot be applied "
            "afterwards; if they follow from a column, such as survey strata, release that column, use dpm.release_groups, and "
            "combine the groups by their weights"
        ),
        "robust-errors-of-ols": (
            "{function}() takes no cov_type=: use ols(..., cov_type='HC') for robust standard errors"
        ),
        "correlations-are-pearsons": (
            "{function}() takes no method=: rank correlations need the order of the rows, and a release holds moments: "
            "correlations are Pearson's; a column can be replaced by its ranks, or its logarithm, before the release"
        ),
        "level-is-a-confidence": (
            "level={level!r}: level is a confidence such as 0.95; statsmodels' alpha is 1 − level"
        ),
        "components-number": "n_components={n_components!r} must be a whole number from 1 to {most}",
        "unknown-adjustment": "adjust={adjust!r}: use 'bonferroni', or None for intervals that hold one by one",
        "no-restriction": "no restriction is given: name a coefficient, as in 'age = 0'",
        "restriction-not-finite": "the coefficients and values of restrictions are finite numbers",
        "restriction-without-coefficient": (
            "a restriction has no coefficient of the fit (that of a reference level is 0)"
        ),
        "restrictions-of-other-type": (
            "restrictions are text such as 'age + height = 0', a mapping of names to coefficients, or an array "
            "with a column for each coefficient, not {got}"
        ),
        "restrictions-shape": (
            "an array of shape {shape} is not one of restrictions: it has a column for each of the {coefficients} "
            "coefficients, the intercept first"
        ),
        "level-merged": "{level!r} has too few rows: it is merged into the reference level",
        "restriction-mapping": "a mapping gives a number for each name: {{'age': 1, 'height': -2}}",
        "correlation-of-one": "a correlation is of two features: name two at least",
        "margin-column-twice": "a margin names a column twice: {by!r}",
        "cross-table-too-large": (
            "a cross table of {cells:,} cells cannot be tested, and {most:,} are the most: name columns of fewer "
            "levels; release.table(...) has its counts"
        ),
        "not-a-column-of-table": "'{name}' is not a column of this table of {columns:all}{question:message?}",
        "prediction-of-missing": (
            "rows with a missing value have no prediction: fill the values, or leave those rows out"
        ),
        "features-of-classes": "'{name}' is of the column '{column}' that makes the classes: name other columns",
        "array-without-names": (
            "an array has no column names, and rows are read by name: pass a pandas, Polars or Arrow frame, or a "
            "dict of columns"
        ),
        "array-of-other-rows": (
            "an array of shape {shape} is not one of rows of this release: its columns are the schema's {columns}, "
            "in order"
        ),
        "column-of-one-value": (
            "a dict of columns holds a list of values for each, and '{column}' holds none: give [value]"
        ),
        "rows-of-other-type": (
            "rows are read from a pandas, Polars or Arrow frame, or from a dict of columns, not from {got}"
        ),
        "frame-without-columns": "the frame has no column {names:listed}{hint:message?}: the names must be the release's",
        "frame-with-repeated-columns": "the frame has more than one column named {names:listed}: rename them",
        "frame-with-unknown-levels": (
            "{n_unknown} of the frame's {rows} rows hold a value of '{column}' outside its levels, {levels}: leave "
            "those rows out, or give them a level"
        ),
        "covariances-of-repaired": "covariances are defined for unrepaired moments only",
        "no-variance": (
            "no feature has a released variance above 0: the noise hides them all, or they are constant; name "
            "other columns"
        ),
        "alpha-needs-noise": 'alpha="auto" is computed from the noise, which is unknown here: give a number',
        "graph-of-one": "a graph is of two features: name two columns at least",
        "correlations-singular": (
            "the correlations are too nearly singular for alpha={alpha:g}: give a larger one, or fewer columns"
        ),
        "nothing-but-groups": "the release has only the features of '{column}': nothing else has a mean by it",
        "groups-one-text": "groups are a list of names, not one string",
        "level-named-twice": "a level is named twice",
        "feature-of-groups": "'{name}' is of the column '{column}' that makes the groups: name another",
        "t-test-of-two-groups": (
            "a t-test is of two groups, and here are {groups} ({names}): name two by groups=, or use anova"
        ),
        "restrictions-contradict": "the restrictions contradict each other: no coefficients fulfill all of them",
        "no-leverages": (
            "cov_type={cov_type!r} divides each squared residual by a power of 1 less the row's leverage, which a release of "
            "moments does not hold: use 'HC1', which differs little where rows are many times the coefficients"
        ),
        "unknown-covariance": (
            "cov_type={cov_type!r}: use 'HC' (HC1), 'nonrobust' or 'auto' (HC1 if the release has the products)"
        ),
        "system-singular": (
            "the system is singular at alpha={alpha!r}: features are collinear or the noise hides them: leave "
            "features out, or use ridge with alpha > 0 (or 'auto')"
        ),
        "no-covariance-of-coefficients": (
            "noise is too large for a covariance matrix of the coefficients: use t_test() and wald_test(), by test "
            "inversion"
        ),
        "no-standard-errors": "no standard errors: the noise distribution is unknown",
        "no-standard-errors-as-noted": "no standard errors: {note}",
        "formula-unreadable": (
            "the formula {formula!r} cannot be read ({error}): write it as 'target ~ feature + feature', names "
            "with other signs in backticks: `hours-per-week`"
        ),
        "formula-of-several-targets": "the formula {formula!r} has {targets} targets: a regression has one",
        "formula-and-features": "{target!r} is a formula, which names its features: leave features={features!r} out",
        "formula-without-intercept": (
            "the formula has no intercept (it ends in - 1 or + 0) and intercept=True: take one of them"
        ),
        "intercept-needs-mean": (
            "an intercept needs the mean, and the release has none (mean=False): pass intercept=False"
        ),
        "target-among-features": "the target {target!r} is among the features: leave it out",
        "feature-computed-from-target": (
            "{feature!r} and the target {target!r} are computed one from the other: leave it out"
        ),
        "reference-without-levels": (
            "reference names '{column}', of which the regression does not have all levels: leave it out"
        ),
        "no-features": "no features: name at least one",
        "levels-too-rare": (
            "noise hides how many rows {names:all} have, so that nothing can be compared with {references}"
        ),
        "reference-one-text": "reference is a list of features, or a mapping of column to level, not one string",
        "reference-not-a-level": (
            "reference {level!r} is not a level of a categorical column of the release: give one as 'column=level'"
        ),
        "two-references": "reference names two levels of '{column}': give one",
        "sum-needed-about-center": "moments about a center need the sum about it, else their mean is not known",
        "sum-without-count": "a sum of rows without their number makes no mean: release both, or neither",
        "no-count": (
            "no count was released: under add_remove the number of rows is private, and mean=False spends nothing "
            "on it. release.gram needs none; a release made {argument:with mean}, or with a public number of rows, has one"
        ),
        "names-one-text": "{what} are a list of names, not one string",
        "no-names": "no {what}: name at least one",
        "feature-twice": "a feature is named twice",
        "too-small": "{parameter}={value!r} must be a whole number, {least} or more",
        "rows-need-mean": (
            "rows are drawn with the released mean and covariance, and this release has no {absent}: one "
            "made {argument:with mean} has both"
        ),
        "without-mean": "no mean was released (mean=False): a release made {argument:with mean} has one",
        "not-a-restriction": (
            "{text!r} is not a linear restriction: write it as 'age + 2*height = 1', names with other signs in "
            "backticks"
        ),
        "features-of-other-schema": "the features are not those of the schema",
        "warnings-in-diagnostics": "warnings are an entry of a release, and not of its diagnostics",
        # Estimators
        "fitted-before": (
            "without a ledger the budget of an estimator is for one fit, and this one, or a copy of it, was fitted before: "
            "fitting again, as cross-validation does with copies, would spend the budget again. Now nothing was spent. Give it "
            "ledger= and dataset=, so that every fit is charged, and refused beyond the grant; or make a new estimator to "
            "spend the budget once more"
        ),
        "fit-of-other-process": (
            "this estimator is a copy from another process (joblib, pickle), and without a ledger the fits of its other copies "
            "are not counted: nothing was spent. Give it ledger= and dataset=, so that every fit is charged, and refused "
            "beyond the grant; or make a new estimator in this process to spend the budget once more"
        ),
        "not-a-release": "fit_release takes a dpmoments release, got {got}.",
        "array-columns-of-schema": (
            "X has {columns} columns, and the schema has {n_expected} without y ({expected:listed}): the columns "
            "of an array are the schema's, in order"
        ),
        "columns-not-in-order": (
            "the columns of X must be the schema's, in its order, so that results are in the order of X, and X "
            "{problem:message}: pass X[{expected!r}]"
        ),
        "no-samples": "Found array with 0 sample(s) while a minimum of 1 is required: X has no rows",
        "centered-needs-public-rows": (
            "assume_centered=True under neighbors='add_remove' has no public number of rows to divide by: use "
            "{argument:neighbors=replace_one}, or assume_centered=False"
        ),
        "classes-with-schema": (
            "classes are for bounds=; a schema already lists the levels of every column: leave them out"
        ),
        "target-bounds-needed": (
            "target_bounds=None: noise must also hide every y, and its bounds are never read from y. Give "
            "target_bounds=(low, high), known without looking at the table"
        ),
        "target-bounds-with-schema": (
            "target_bounds are for bounds=; a schema already bounds every column: leave them out"
        ),
        "several-descriptions": (
            "{given} were given, but each describes the columns completely: keep one (a Schema has its own row_norm)"
        ),
        "bounds-shape": "bounds have shapes {shapes}, and X has {columns} columns: give a number, or one per column",
        "sparse-input": (
            "sparse input is not supported: every entry of the moments gets noise anyway. Pass X.toarray()"
        ),
        "fit-in-memory": "fit takes arrays and frames in memory, got {got}.",
        "lengths-differ": "X and y have different numbers of rows: y must have one value for each row of X",
        "frame-columns-twice": "two columns of the frame have the same name: rename one of them",
        "not-two-dimensional": (
            "Expected 2D array, got {ndim}D array instead: a table has rows and columns. Reshape your data using "
            "X.reshape(-1, 1) for a single column, or X.reshape(1, -1) for a single row"
        ),
        "complex-table": "Complex data not supported: X must hold numbers, or levels among objects",
        "table-not-of-numbers": (
            "X is an array of type {type}, not of numbers: pass a frame, or an array of objects (dtype=object), "
            "whose cells are read one by one"
        ),
        "no-table-features": "X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.",
        "not-all-rows": (
            "Expected 2D array: X is a sequence, and not all of it are rows, sequences of cells. Reshape your data "
            "to [[1.5], …] for a single column, or [[1.5, …]] for a single row"
        ),
        "rows-of-other-lengths": "the rows of X have different numbers of cells: each has one cell for every column",
        "target-required": "This {estimator} estimator requires y to be passed, but the target y is None",
        "target-dimensions": "y should be a 1d array, one value per row, and has {ndim} dimensions",
        "complex-target": "Complex data not supported: y must hold numbers or levels",
        "classes-needed": (
            "classes=None: the classes must be public, and are never read from y. Give classes=[…], or a schema "
            "with a Categorical column and target=…"
        ),
        "unknown-label-type": (
            "Unknown label type: classes={classes!r} must be a list of texts, whole numbers, or true and false"
        ),
        "input-not-finite": (
            "Input X contains NaN, infinity or a missing value in a column with the rule missing='error': fill "
            "these values, leave their rows out, or use another rule"
        ),
        "public-bounds-needed": (
            "no public bounds were given (schema, bounds and row_norm are None): noise must hide any possible row, "
            "and bounds read from the table would publish its extremes."
        ),
        # Forecasts
        "accuracy-needed": (
            "say what is wanted: correlation=0.02, mean={{'age': 0.5}}, sd=…, share=0.01 or coefficient=0.05"
        ),
        "accuracy-of-two-columns": "{parameter} needs two columns, but the schema has one",
        "not-within-rows": "not within {most:.0e} rows: give a larger budget, or ask for less",
        "not-within-budget": (
            "not within {symbol} ≤ {most:g}: more rows, fewer columns or tighter bounds would do more"
        ),
        "accuracy-without-feature": "{parameter}: the schema has no such feature",
        "accuracy-of-other-kind": "{parameter} of {names:listed}: ask for {instead} there",
        "unknown-names-in": "{parameter} names {names:listed}: use {known:listed}",
        "not-positive": "{parameter}: {value!r} must be a positive finite number",
        "deviation-needed": "its error depends on how much the values vary: give standard_deviation, to assume it",
        "unknown-deviations": "standard_deviation names {names:listed}: the features are {known}",
        "deviations-absent": "standard_deviation leaves out {names}: give scale, for those, or all of them",
        "forecast-in-other-units-rho": "the budget of the forecast is {budget}: use rho_needed",
        "forecast-in-other-units-epsilon": "the budget of the forecast is {budget}: use epsilon_needed",
        "original-units-unknown": "the noise of {mechanism} in original units is not known beforehand",
        "nothing-in-original-units": "nothing is known in original units: {reason:message}",
        "forecast-without-plot": "cannot plot this forecast: it has no numbers in original units, since {reason:message}",
        "too-few-features": "n_features must be at least 1, got {n_features!r}",
        "not-a-mapping-of-features": (
            "{parameter} is a mapping of features to numbers, as in {parameter}={{'age': 18}}"
        ),
        "not-between-bounds": (
            "{parameter} of {feature!r}: {value!r} must be a number between {least:g} and {most:g}, the feature's "
            "bounds"
        ),
        "not-positive-of-feature": "{parameter} of {feature!r}: {value!r} must be a positive finite number",
        "deviation-above-half-range": (
            "{parameter} of {feature!r}: {value:g} is more than half the range, {half:g}, the largest possible "
            "standard deviation between {least:g} and {most:g}: is it in the units of the bounds?"
        ),
        "not-lists-of-names": (
            "{parameter} is a list of lists of names, [['income', 'age']], and has {value!r} in place of a list"
        ),
        "not-a-regression": "a regression is a target and its regressors, ['income', 'age'], got {columns}",
        "question-needed": (
            "state a question: means=True, tables=[['region', 'sex']] or regressions=[['income', 'age']]"
        ),
        "not-a-column-of-schema": "'{name}' is not a column of the schema{question:message?}",
        "target-of-several-features": "'{column}' has several features: the target of a regression must have one",
        "no-units-without-mean": (
            "standard deviations and correlations need the mean, which is not released; release {argument:with mean}"
        ),
        "no-units-of-any-mechanism": "the noise of no possible mechanism is known beforehand",
        "no-units-of-mechanism": "the noise of {mechanism} is not known beforehand",
        "budget-advice": "give it {kinds:phrase}",
        "budget-advice-or-auto": "give it {kinds:phrase}; or leave the mechanism out",
        "groups-by-values": "; of a GroupReleases pass groups.values()",
        # Plots
        "figure-and-axes": "figsize= is the size of a new figure, and ax= is of another one: give one of them",
        "plot-needs-mean": (
            "cannot plot {what}: it is made of deviations from the mean, and no mean was released (mean=False): "
            "release.plot.spectrum() needs none, and a release made {argument:with mean} has one"
        ),
        "plot-needs-count": (
            "cannot plot {what}: the release has no row count (mean=False under add_remove): a release made "
            "{argument:with mean}, or with a public number of rows, has one"
        ),
        "unknown-scale-of-plot": (
            "per={per!r}: use 'deviation', a feature's standard deviation, or 'unit', one unit of it"
        ),
        "unknown-order-of-coefficients": (
            "sort={sort!r}: use 'fit', the order of the fit, 'size', largest first, or 'p', clearest first"
        ),
        "too-few-coefficients": "n_coefficients must be at least 1, got {value!r}",
        "plot-of-one-feature": "of={of!r}: a plot shows the means of one feature; name one",
        "unknown-order-of-groups": (
            "sort={sort!r}: use 'schema', the order of the levels, 'mean' or 'rows', largest first"
        ),
        "unknown-order-of-columns": (
            "sort={sort!r}: use 'schema', the order of the columns, or 'alike', related ones together"
        ),
        "plane-of-two-features": (
            "features= must name two features, in whose plane regions are drawn, got {number}: name two, or none "
            "to plot the size in all of them"
        ),
        "impossible-steps": (
            "cannot plot steps: the diagnostics contain impossible steps, so the file was changed after the release"
        ),
        "steps-of-several-runs": (
            "cannot plot steps: a pooled release was made by several runs. Plot those of one: "
            "release.parts[0].plot.steps()"
        ),
        "mechanism-without-steps": (
            "cannot plot steps: {mechanism} has only one step. Mechanisms with steps are coinpress "
            "and private-preconditioning, and of means coinpress and variance-aware"
        ),
        # Reports
        "no-planner": "no planner page: the forecast has no numbers in original units, since {reason:message}",
        "report-of-other-type": "a report needs a release or a forecast, got {got}: load a file with dpmoments.load",
        "report-of-mean": (
            "regressions and group means need count, mean and second moment (dpmoments.release), but only a mean "
            "was released"
        ),
        "report-of-counts": (
            "regressions and group means need count, mean and second moment (dpmoments.release), but only counts "
            "were released"
        ),
        "report-of-many-groups": (
            "the release has {groups} groups by {column}, but a page holds at most {most}: write the report of "
            "one, groups['level'], or save each in its own file"
        ),
        "report-regressions": "regressions is a list of R formulas: regressions=['income ~ age + C(sex)']",
        "report-groups": (
            "groups is a list of pairs, a column of levels and a feature: groups=[('sex', 'hours-per-week')]"
        ),
        "report-group-unreadable": (
            "{value!r} does not name one column of levels and one feature: write COLUMN:OF, such as sex:income, of "
            "the release's columns {columns:listed}"
        ),
        "report-needs-count": (
            "regressions and group means need a row count, which this release does not have (mean=False under "
            "add_remove); leave them out of the report"
        ),
        "report-of-several-features": (
            "'{column}' has {number} features, but a plot shows one: name one, such as {example!r}"
        ),
        "forecast-has-no-data": (
            "a forecast has no data: regressions, groups and summary are for the report of a release"
        ),
        # Preflight
        "preflight-not-copied": (
            "a Preflight holds private facts and is neither pickled nor copied: run preflight again"
        ),
        # Commands
        "options-exclusive": "give one of these options, not several",
        "option-needs-option": "it goes with {option}: give both",
        "value-twice": "{value!r} is given twice",
        "option-form": "{value!r} is not {form}",
        "options-of-one-mechanism": "options belong to one mechanism: name one",
        "unknown-mechanism-option": "mechanism '{mechanism}' has no option {option!r}: its options are {options:all}",
        "mechanism-without-options": "mechanism '{mechanism}' has no option {option!r}: it takes no options",
        "page-of-all-mechanisms": "the page lists all mechanisms: leave the name out",
        "deviation-form": "{value!r} is neither a number nor feature=number",
        "deviation-for-all": "{value!r} is for all features: leave the others out, or name a feature with each",
        "head-form": "{value!r} is not a head: give a number and a hash, as printed by 'dpmoments ledger verify'",
        "table-needed": "name a file, a quoted glob or a folder, or a database and a query",
        "database-and-query": "a database is read by its URL and a query, without DATA and without an engine",
        "one-path": "give one path: put a glob in quotes, 'people/*.parquet'",
        "contribution-bound-needed": "state the contribution bound, the most rows of one unit that count",
        "rows-of-groups": "the groups' numbers of rows are private: leave the number of rows out",
        "nothing-counted": "nothing counts what releases of this table spend together.",
        "file-of-mean": (
            "{path} holds only a mean, and '{command}' needs count, mean and second moment, which 'dpmoments "
            "release' makes."
        ),
        "file-of-counts": (
            "{path} holds only contingency tables, and '{command}' needs count, mean and second moment, which "
            "'dpmoments release' makes."
        ),
        "file-of-groups": "{path} holds a release for each level of {column}, and '{command}' takes one.",
        "no-file-of-rows": "there is no file {path!r}: rows to analyze are read from a .parquet, .csv or .tsv file",
        "file-of-rows-unreadable": "{path} does not read as {ending}",
        "file-of-rows-ending": "{path} is no .parquet, .csv or .tsv file: rows to analyze are read from one",
        "file-of-one-release": (
            "{path} holds one release, and this command takes a release for each level of a column."
        ),
        "not-a-folder": "{path} is not a folder: make it first",
        "file-of-several-releases": "{path} holds several releases, and this command takes one.",
        "draft-exists": "{path} exists already and is not overwritten.",
    }
)
"""Sentence by code: what was given, why it is refused, what to do.

No fact of an error is private.
"""
