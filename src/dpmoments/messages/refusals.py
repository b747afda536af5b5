"""Sentences of errors whose facts are the fields of the sentence."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpmoments.messages.table_refusals import TABLE_REFUSALS

REFUSALS: Mapping[str, str] = MappingProxyType(
    {
        **TABLE_REFUSALS,
        # Arguments
        # Noise
        "noise-model-entry": "{entry} of the noise model must be {expected:phrase}",
        # Budgets, receipts and privacy units
        "distribution-flag": "{parameter} of a {distribution} draw must be true or false",
        "distribution-whole-number": "{parameter} of a {distribution} draw must be a whole number",
        "distribution-out-of-range": "{parameter} of a {distribution} draw is out of range",
        "distribution-tuple": "{parameter} of a {distribution} draw must be a tuple",
        "distribution-numbers": "{parameter} of a {distribution} draw must be {expected:phrase}",
        "distribution-sign": "{parameter} of a {distribution} draw must be {expected:phrase}",
        "unit-needs-add-remove": (
            "a privacy unit is not supported under neighbors='{neighbors}': the number of kept rows depends on how "
            "many each unit has, so it is not public, as that relation assumes. Use {argument:neighbors=add_remove}"
        ),
        "one-budget-needed": "give the privacy budget as epsilon (with or without delta) or as rho, {given:phrase}",
        # Ledgers
        "cost-of-other-relation": (
            "a cost under replace_one says nothing about a row present or absent: release with "
            "{argument:neighbors=add_remove}, or grant a dataset of another name for replace_one"
        ),
        "dataset-needed": "a ledger keeps a budget for each dataset: name it with {argument:dataset=people-2026}",
        "grant-needs-reason": (
            "the budget of '{dataset}' is {known}, and some of it is spent: to make it {asked}, state why and who "
            "decided it: {argument:reason}; the history keeps both"
        ),
        # Runs
        "groups-of-units": (
            "groups cannot be released for a privacy unit: a person may have rows in several groups, so several "
            "releases would change at once. Release the whole table with {argument:privacy_unit} and the grouping column as "
            "one of its features"
        ),
        "groups-of-relation": (
            "groups cannot be released under neighbors='{neighbors}': a replaced row may change its group, so that "
            "two releases would change, at twice the budget. Use {argument:neighbors=add_remove}"
        ),
        # Messages
        "message-not-changed": "a message cannot be changed: make another",
        "message-of-other-code": "{value!r} is not the code of a message that is expected here",
        "message-without-facts": "message {value!r} lacks the facts {names:all}",
        "message-unknown-fact": "message {value!r} has no fact {name!r}",
        "message-fact-kind": "the fact {name!r} of message {value!r} is not of kind {kind!r}",
        # Mechanisms
        "standardized-needs-mean": "'standardized' releases means with the second moment: release {argument:with mean}",
        "budget-of-other-kind": "{mechanism} cannot spend a budget of {budget}: {advice:message}",
        "auto-has-no-options": "mechanism='auto' has no options: leave out {options:all}, or name an estimator",
        # Audits
        "exact-noise-has-no-seed": (
            "seed={seed}: exact noise comes from the operating system and has no seed; leave one out"
        ),
        # Mechanisms and bounds of papers
        "file-not-published": (
            "{path} is not the published {file}: its md5 is {md5}, expected {known}; remove it, or put the published file in "
            "its place"
        ),
        "download-not-published": (
            "{path} is not the published {file}: its md5 is {md5}, expected {known}; nothing was stored; try again later, or "
            "save the file there by hand"
        ),
        "prior-needs-public-rows": (
            "prior_degrees makes the degrees of freedom depend on the number of rows, which must then be public: "
            "use {argument:neighbors=replace_one} and a schema none of whose rules drops a row, and state n; or give "
            "degrees_of_freedom"
        ),
        "preconditioning-without-mean": (
            "private-preconditioning estimates the second moment of rows of mean zero: release {argument:without mean}, or "
            "use coinpress, which finds the mean too"
        ),
        # Releases
        "no-interval": "no interval is available: {reason:message}",
        "no-closed-form": "the error of {mechanism!r} has no closed form, so the noise distribution is unknown",
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
        "pooled-other-type": "a list of releases is pooled, got {got} in it{advice:message?}",
        # Analyses
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
        "not-a-column-of-table": "'{name}' is not a column of this table of {columns:all}{question:message?}",
        "frame-without-columns": "the frame has no column {names:listed}{hint:message?}: the names must be the release's",
        "no-standard-errors": "no standard errors: the noise distribution is unknown",
        "no-standard-errors-as-noted": "no standard errors: {note}",
        "no-count": (
            "no count was released: under add_remove the number of rows is private, and mean=False spends nothing "
            "on it. release.gram needs none; a release made {argument:with mean}, or with a public number of rows, has one"
        ),
        "rows-need-mean": (
            "rows are drawn with the released mean and covariance, and this release has no {absent}: one "
            "made {argument:with mean} has both"
        ),
        "without-mean": "no mean was released (mean=False): a release made {argument:with mean} has one",
        # Estimators
        "columns-not-in-order": (
            "the columns of X must be the schema's, in its order, so that results are in the order of X, and X "
            "{problem:message}: pass X[{expected!r}]"
        ),
        "centered-needs-public-rows": (
            "assume_centered=True under neighbors='add_remove' has no public number of rows to divide by: use "
            "{argument:neighbors=replace_one}, or assume_centered=False"
        ),
        # Forecasts
        "nothing-in-original-units": "nothing is known in original units: {reason:message}",
        "forecast-without-plot": "cannot plot this forecast: it has no numbers in original units, since {reason:message}",
        "not-a-column-of-schema": "'{name}' is not a column of the schema{question:message?}",
        "no-units-without-mean": (
            "standard deviations and correlations need the mean, which is not released; release {argument:with mean}"
        ),
        "no-units-of-any-mechanism": "the noise of no possible mechanism is known beforehand",
        "no-units-of-mechanism": "the noise of {mechanism} is not known beforehand",
        "budget-advice": "give it {kinds:phrase}",
        "budget-advice-or-auto": "give it {kinds:phrase}; or leave the mechanism out",
        "groups-by-values": "; of a GroupReleases pass groups.values()",
        # Plots
        "plot-needs-mean": (
            "cannot plot {what}: it is made of deviations from the mean, and no mean was released (mean=False): "
            "release.plot.spectrum() needs none, and a release made {argument:with mean} has one"
        ),
        "plot-needs-count": (
            "cannot plot {what}: the release has no row count (mean=False under add_remove): a release made "
            "{argument:with mean}, or with a public number of rows, has one"
        ),
        # Reports
        "no-planner": "no planner page: the forecast has no numbers in original units, since {reason:message}",
        "report-of-mean": (
            "regressions and group means need count, mean and second moment (dpmoments.release), but only a mean "
            "was released"
        ),
        "report-of-counts": (
            "regressions and group means need count, mean and second moment (dpmoments.release), but only counts "
            "were released"
        ),
        # Preflight
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
    }
)
"""Sentence by code: what was given, why it is refused, what to do.

No fact of an error is private.
"""
