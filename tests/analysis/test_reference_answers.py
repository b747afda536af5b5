"""Reference answers: numbers of every analysis on releases made here, in ``reference_answers.json``.

    python tests/analysis/test_reference_answers.py

writes them again: read the difference. That a number is right is shown elsewhere (``test_coverage.py``, ``test_comparisons.py``,
``test_parts_of_answers.py``); here it is shown that it stays.

A release has the noise law of some mechanism and moments of fixed rows plus one fixed draw of that law, so that no sampler of the
library is involved; only that of weighted items is of a run. Of an answer every public number is compared: fields and properties,
what methods without arguments return, and the numbers in its text and frame.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments.analysis import components as structure
from dpmoments.analysis import confidence
from dpmoments.analysis.answers import Answer
from dpmoments.analysis.classifiers import naive_bayes
from dpmoments.analysis.cross_table import CountTable
from dpmoments.base.errors import InputError
from dpmoments.base.message import Message
from dpmoments.moments.cells import CountNoise
from dpmoments.moments.models import StandardizedModel
from dpmoments.papers.models import WishartModel
from dpmoments.releases.moment_release import of_present_values
from dpmoments.schema.derived import MissingIndicator
from support.drawn_releases import drawn, nudged, planted, template
from support.kept_answers import KeptAnswers
from support.said import refused, warned

TOLERANCE = 1e-6
"""Relative: what is searched for is found to that."""
KEPT = KeptAnswers(Path(__file__).with_name("reference_answers.json"), TOLERANCE)
WHOLE = 24
"""Longer arrays are kept as four weighted sums."""

# The releases -----------------------------------------------------------------------------------------------------------------

REGIONS = ("north", "south", "east")
REGIONS_AS_FEATURES = tuple(f"region={level}" for level in REGIONS)
PEOPLE = dpm.Schema(
    dpm.Numeric("age", 10, 90, typical=(20, 70)),
    dpm.Numeric("income", -20_000, 140_000),
    dpm.Categorical("region", REGIONS),
    dpm.Boolean("employed"),
    dpm.Power("age", 2),
    dpm.Product("age", "employed"),
)
PLAIN = dpm.Schema(
    dpm.Numeric("a", 0, 10),
    dpm.Numeric("b", -5, 5),
    dpm.Categorical("kind", ["x", "y", "z"]),
    dpm.Boolean("flag"),
    dpm.Numeric("c", -1, 1),
)
NUMBERS = dpm.Schema(dpm.Numeric("x", -4, 4), dpm.Boolean("flag"), dpm.Numeric("y", -9, 9)).with_products(
    ["x", "flag", "y"]
)
MISSING = dpm.Schema(
    dpm.Categorical("kind", ["x", "y", "z"], "available"),
    dpm.Boolean("flag", "available"),
    dpm.Numeric("a", 0, 10, "available", fill=5),
    dpm.Numeric("b", -5, 5, "available", fill=0),
)

ITEMS = dpm.Schema(
    *(dpm.Numeric(name, -6, 6) for name in ("x", "m", "z", "y")),
    *(dpm.Numeric(f"item{i}", 1, 7) for i in range(4)),
    dpm.Boolean("exposed"),
    dpm.Boolean("ill"),
    dpm.Categorical("kind", ["x", "y", "z"]),
    *(dpm.Product("exposed", name) for name in ("x", "m", "y")),
    dpm.Product("z", "kind"),
)

ITEMS_MISSING = dpm.Schema(
    *(dpm.Numeric(name, -6, 6, "available", fill=0) for name in ("x", "m", "z", "y")),
    *(dpm.Numeric(f"item{i}", 1, 7, "available", fill=4) for i in range(4)),
    dpm.Boolean("exposed", "available"),
    dpm.Boolean("ill"),
    dpm.Categorical("kind", ["x", "y", "z"]),
)


def rows_of_people(n: int = 3_000) -> np.ndarray:
    rng = np.random.default_rng(3)
    age = np.clip(rng.normal(42, 13, n), 10, 90)
    region, employed = rng.choice(3, n, p=[0.5, 0.3, 0.2]), rng.random(n) < 0.6
    income = 700 * age + 9_000 * (region == 0) + 6_000 * employed + 8_000 * rng.standard_normal(n)
    return np.column_stack([age, income, np.eye(3)[region], employed, age**2, age * employed])


def rows_of_plain(n: int) -> np.ndarray:
    rng = np.random.default_rng(4)
    kind, flag = rng.choice(3, n, p=[0.55, 0.35, 0.1]), rng.random(n) < 0.3
    a = np.clip(rng.normal(4 + kind, 1.5, n), 0, 10)
    b = np.clip(0.6 * (a - 5) + flag + rng.standard_normal(n), -5, 5)
    return np.column_stack([a, b, np.eye(3)[kind], flag, np.clip(0.1 * b + 0.2 * rng.standard_normal(n), -1, 1)])


def rows_of_numbers(n: int = 1_500) -> np.ndarray:
    """Residuals of unequal variance."""
    rng = np.random.default_rng(5)
    x, flag = rng.normal(0.5, 1.0, n).clip(-4, 4), rng.random(n) < 0.4
    y = (1 + 0.8 * x - flag + (0.3 + 0.6 * np.abs(x)) * rng.standard_normal(n)).clip(-9, 9)
    return np.column_stack([x, flag, y, x**2, y**2, x * flag, x * y, flag * y])


def rows_of_items(n: int = 1_500) -> np.ndarray:
    """What is measured depends on what stands before it, four items on one trait."""
    rng = np.random.default_rng(7)
    exposed, kind, (z, u, trait) = rng.random(n) < 0.4, rng.choice(3, n), rng.standard_normal((3, n))
    z = (z + 0.8 * exposed).clip(-6, 6)
    x = (z + 0.7 * u + 0.3 * rng.standard_normal(n)).clip(-6, 6)
    m = (0.5 * x + exposed + rng.standard_normal(n)).clip(-6, 6)
    y = (0.4 * m + 0.3 * x - u + (kind == 2) + rng.standard_normal(n)).clip(-6, 6)
    items = [(4 + loading * trait + rng.standard_normal(n)).round().clip(1, 7) for loading in (1.2, 1.0, 0.7, 0.4)]
    ill = rng.random(n) < 1 / (1 + np.exp(1.5 - exposed - 0.4 * trait))
    products = exposed * x, exposed * m, exposed * y, *(z * np.eye(3)[kind].T)
    return np.column_stack([x, m, z, y, *items, exposed, ill, np.eye(3)[kind], *products])


def of_moved() -> dpm.MomentRelease:
    """The release of rows that were clipped about a center, levels with them."""
    made = template(PLAIN, "gaussian", rho=6.0)
    center = np.array([-0.05, 0.02, 0.3, 0.2, 0.04, -0.2, 0.01])
    return drawn(replace(made, center=center), rows_of_plain(2_500), np.random.default_rng(1))


def of_scaled() -> dpm.MomentRelease:
    """Noise in units of rough scales; some numbers were scaled down to a ball."""
    blocks = np.array([0.0, 0.0, 3.0, 3.0, 3.0, 0.0, 0.0])
    model = StandardizedModel(
        n_features=7,
        family="gaussian",
        variance=4.0,
        rate=None,
        scales=np.array([0.2, 0.3, 0.4, 0.4, 0.4, 0.35, 0.25]),
        block_sizes=blocks,
        sum_variances=np.full(7, 3.0),
        rough_variances=np.array([0.2, 0.3, 0.0, 0.0, 0.0, 0.1, 0.2]),
        clipping=np.array([0.4, 0.0, 0.0, 0.0, 0.0, 0.1, 0.2]),
        clipping_total=10.0,
        clipping_along=2.0,
        count_variance=9.0,
    )
    center = np.where(blocks > 0.0, 1.0 / 3.0, 0.05)
    made = replace(template(PLAIN, "gaussian", rho=4.0), noise_model=model, center=center)
    privacy = replace(made.privacy, rules=(*made.privacy.rules, Message("rows-scaled-to-ball", radius=2.5)))
    return drawn(replace(made, privacy=privacy), rows_of_plain(2_000), np.random.default_rng(2))


def of_present(schema: dpm.Schema, source: Mapping[str, np.ndarray], shares: Mapping[str, float]) -> dpm.MomentRelease:
    """Values missing at random; stand-ins and indicators are what noise is drawn on."""
    rng, n = np.random.default_rng(6), len(next(iter(source.values())))
    made = template(schema, "gaussian", rho=20.0).as_drawn
    missing = {name: rng.random(n) < share for name, share in shares.items()}
    columns = []
    for column in made.schema.columns:
        if isinstance(column, MissingIndicator):
            columns.append(missing[column.stated.column].astype(float))
            continue
        values = [source[name] for name in column.feature_names]
        if column.name in missing:
            stand_in = 0.0 if column.name == "kind" else column.replacement
            values = [np.where(missing[column.name], stand_in, one) for one in values]
        columns += values
    assert isinstance(made, dpm.MomentRelease)
    return of_present_values(drawn(made, np.column_stack(columns), rng))


def of_weighted() -> dpm.MomentRelease:
    """Weights that differ by level."""
    source = dict(zip(ITEMS.feature_names, rows_of_items(3_000).T, strict=True))
    table = pd.DataFrame({name: source[name] for name in ITEMS.feature_names[:10]})
    table["kind"] = np.select([source["kind=x"] == 1, source["kind=y"] == 1], ["x", "y"], "z")
    table["weight"] = 20.0 + 40.0 * source["kind=x"] + 10.0 * source["exposed"]
    weight = dpm.SamplingWeight("weight", 70, design_effect={"y": 1.5})
    return dpm.release(table, dpm.Schema(*ITEMS.columns, weight), epsilon=20.0, insecure_seed=1)


def of_two_sites() -> dpm.MomentRelease:
    halves = np.array_split(rows_of_plain(2_000), [700])
    made = [template(PLAIN, "matrix-laplace", epsilon=4.0, seed=seed) for seed in (0, 1)]
    with warned("tables-not-checked"):
        return dpm.pool(
            [drawn(*pair, np.random.default_rng(i)) for i, pair in enumerate(zip(made, halves, strict=True))]
        )


def without_means() -> dpm.MomentRelease:
    made, rows = template(PLAIN, "isotropic", epsilon=20.0, mean=False), rows_of_plain(2_000)
    encoded = rows / made.encoding.scale
    assert made.noise is not None
    noise = np.random.default_rng(9).normal(size=(len(encoded.T),) * 2) * np.sqrt(made.noise.cell_variances()[1:, 1:])
    return replace(made, noisy_count=2_004.0, noisy_gram=encoded.T @ encoded + np.triu(noise) + np.triu(noise, 1).T)


def of_sketch() -> dpm.MomentRelease:
    made = template(PLAIN, "johnson-lindenstrauss", epsilon=2.0, delta=1e-6)
    assert isinstance(made.noise_model, WishartModel)  # its corner is drawn, and has other digits on another processor
    return drawn(replace(made, noise_model=replace(made.noise_model, corner=291_648.0)), rows_of_plain(900), None)


RELEASES: Mapping[str, Callable[[], dpm.MomentRelease]] = {
    "people": lambda: drawn(template(PEOPLE, "gaussian", rho=1.0), rows_of_people(), np.random.default_rng(0)),
    "noisy": lambda: drawn(
        template(PLAIN, "laplace", max_rows=3, epsilon=6.0), rows_of_plain(900), np.random.default_rng(1)
    ),
    "lost": lambda: drawn(template(PLAIN, "gaussian", rho=0.01), rows_of_plain(300), np.random.default_rng(2)),
    "impossible": lambda: drawn(
        template(PLAIN, "gaussian", rho=0.004, repair="none"), rows_of_plain(400), np.random.default_rng(73)
    ),
    "products": lambda: drawn(template(NUMBERS, "gaussian", rho=20.0), rows_of_numbers(), np.random.default_rng(2)),
    "moved": of_moved,
    "scaled": of_scaled,
    "present": lambda: of_present(
        MISSING,
        dict(zip(PLAIN.feature_names, rows_of_plain(3_000).T, strict=True)),
        {"kind": 0.1, "flag": 0.2, "a": 0.3, "b": 0.15},
    ),
    "sites": of_two_sites,
    "second moments": without_means,
    "sketched": of_sketch,
    "unknown noise": lambda: replace(RELEASES["people"](), noise_model=None),
}
RELEASES_OF_ITEMS: Mapping[str, Callable[[], dpm.MomentRelease]] = {
    "items": lambda: drawn(template(ITEMS, "gaussian", rho=30.0), rows_of_items(), np.random.default_rng(0)),
    "noisy items": lambda: drawn(
        template(ITEMS, "laplace", neighbors="replace_one", epsilon=40.0), rows_of_items(), np.random.default_rng(1)
    ),
    "missing items": lambda: of_present(
        ITEMS_MISSING,
        dict(zip(ITEMS.feature_names, rows_of_items().T, strict=True)),
        {
            "x": 0.05,
            "m": 0.1,
            "z": 0.02,
            "y": 0.2,
            "item0": 0.1,
            "item1": 0.1,
            "item2": 0.3,
            "item3": 0.1,
            "exposed": 0.1,
        },
    ),
    "weighted items": of_weighted,
    "lost items": lambda: drawn(template(ITEMS, "gaussian", rho=0.02), rows_of_items(400), np.random.default_rng(2)),
}
EVERY_RELEASE = {**RELEASES, **RELEASES_OF_ITEMS}


# The questions ----------------------------------------------------------------------------------------------------------------

FRAME = pd.DataFrame(
    {
        "age": [20.0, 44.0, 71.0],
        "income": [1e4, 3e4, 9e4],
        "region": ["north", "south", "east"],
        "employed": [True, False, True],
        "flag": [False, True, True],
        "kind": ["x", "z", "y"],
        "a": [1.0, 5.0, 9.5],
        "b": [-3.0, 0.5, 4.0],
        "c": [-0.5, 0.0, 0.75],
        "x": [-1.0, 0.0, 2.5],
        "y": [-4.0, 0.0, 3.0],
    }
)


def numeric(release: dpm.MomentRelease) -> list[str]:
    """Columns of one number, in the schema's order."""
    return [
        column.name
        for column in release.schema.columns
        if len(column.feature_names) == 1 and column.name in FRAME and column.name not in ("flag", "employed")
    ]


def grouping(release: dpm.MomentRelease) -> list[str]:
    return [name for name in ("region", "kind", "employed", "flag") if name in release.schema.names]


@cache
def fit(release: dpm.MomentRelease, **options: Any) -> Any:
    """All numbers on the last of them."""
    *features, target = numeric(release)
    return release.ols(target, features, **options)


def everything_of_fit(release: dpm.MomentRelease) -> Any:
    made = fit(release)
    return made, made.conf_int(0.8), made.conf_int(adjust="bonferroni"), made.r_squared_interval(0.8)


def covariance_of_fit(release: dpm.MomentRelease) -> Any:
    return fit(release).cov_params()


def contrasts_of_fit(release: dpm.MomentRelease) -> Any:
    made, names = fit(release), numeric(release)[:-1]
    first, last = names[0], names[-1]
    tested = made.t_test(f"2*{first} - 0.5*{last} = 0.01, {first}")
    joint = made.wald_test(f"{first} = 2*{last} - 0.1, {last}")
    return tested, tested.conf_int(0.8), joint, made.wald_test_terms()


def predictions_of_fit(release: dpm.MomentRelease) -> Any:
    made = fit(release)
    told = made.get_prediction(FRAME)
    return told, told.conf_int(level=0.8), told.conf_int(obs=True), made.predict(FRAME)


def fit_on_levels(release: dpm.MomentRelease) -> Any:
    made = release.ols(numeric(release)[-1], [*grouping(release), numeric(release)[0]])
    return made, made.wald_test_terms(), made.predict(FRAME)


def description(release: dpm.MomentRelease) -> Any:
    made = release.describe()
    return made, made.conf_int(), made.conf_int(0.8)


def means_of_groups(release: dpm.MomentRelease) -> Any:
    made = release.group_means(grouping(release)[0], level=0.9)
    return made, made.differences


def components(scaling: Any) -> Callable[[dpm.MomentRelease], Any]:
    def ask(release: dpm.MomentRelease) -> Any:
        made = release.pca(3, scaling=scaling)
        return made, made.conf_int(), made.conf_int(0.8), made.transform(FRAME)

    return ask


def classes(release: dpm.MomentRelease) -> Any:
    made = release.lda(grouping(release)[0], numeric(release))
    return made, made.decision_function(FRAME), made.predict(FRAME), made.transform(FRAME)


def classes_shrunken(release: dpm.MomentRelease) -> Any:
    return release.lda(grouping(release)[-1], numeric(release), shrinkage=0.3)


def moments(release: dpm.MomentRelease) -> Any:
    return [
        getattr(release, name)
        for name in ("n_rows", "mean", "covariance", "second_moment", "gram", "correlation", "unit_ball_gram")
    ]


QUESTIONS: Mapping[str, Callable[[Any], Any]] = {
    "moments": moments,
    "second moment": lambda release: (release.second_moment, release.gram),
    "description": description,
    "some columns": lambda release: release.describe()[numeric(release)],
    "correlations": lambda release: release.correlations(level=0.9),
    "partial correlations": lambda release: release.partial_correlation(numeric(release)),
    "partial correlations of all": lambda release: release.partial_correlation(level=0.8),
    "least squares": everything_of_fit,
    "covariance": covariance_of_fit,
    "contrasts": contrasts_of_fit,
    "predictions": predictions_of_fit,
    "least squares on levels": fit_on_levels,
    "one variance": lambda release: fit(release, cov_type="nonrobust"),
    "unequal variances": lambda release: fit(release, cov_type="HC1"),
    "unequal variances through zero": lambda release: fit(release, cov_type="HC1", intercept=False),
    "through zero": lambda release: fit(release, intercept=False),
    "ridge": lambda release: release.ridge(numeric(release)[-1], numeric(release)[:-1]),
    "ridge of given penalty": lambda release: release.ridge(numeric(release)[0], numeric(release)[1:], alpha=0.02),
    "lasso": lambda release: release.lasso(numeric(release)[-1]),
    "lasso of given penalty": lambda release: release.lasso(numeric(release)[-1], alpha=0.002, intercept=False),
    "components by units": components("units"),
    "components by bounds": components("bounds"),
    "components by correlation": components("correlation"),
    "group means": means_of_groups,
    "group means of some": lambda release: release.group_means(grouping(release)[-1], numeric(release)[:1]),
    "analysis of variance": lambda release: release.anova(numeric(release)[0], grouping(release)[0]),
    "t-test": lambda release: release.t_test(numeric(release)[0], grouping(release)[-1]),
    "t-test of two levels": lambda release: release.t_test(numeric(release)[-1], grouping(release)[0], level=0.8),
    "t-test of named levels": lambda release: release.t_test(
        numeric(release)[-1], grouping(release)[0], [f"{grouping(release)[0]}={name}" for name in ("x", "z")]
    ),
    "cross table": lambda release: release.cross_table(grouping(release)[0], grouping(release)[-1]),
    "cross table, turned": lambda release: release.cross_table(grouping(release)[-1], grouping(release)[0], level=0.8),
    "classes": classes,
    "classes, shrunken": classes_shrunken,
    "graphical model": lambda release: release.graphical_lasso(0.05),
    "graphical model, automatic": lambda release: release.graphical_lasso(),
    "moments without repair": lambda release: moments(release.with_repair("none")),
    "moments of eigenvalues above 0": lambda release: moments(release.with_repair("clip")),
    "distances": lambda release: release.mahalanobis(FRAME),
}


QUICK: Mapping[str, tuple[str, ...]] = {
    "people": tuple(question for question in QUESTIONS if question not in ("through zero", "lasso of given penalty")),
    "noisy": (
        "description",
        "correlations",
        "contrasts",
        "t-test of named levels",
        "classes, shrunken",
        "group means of some",
    ),
    "lost": (
        "description",
        "correlations",
        "least squares on levels",
        "t-test",
        "cross table",
        "classes",
    ),
    "impossible": (
        "description",
        "cross table",
        "group means of some",
        "components by units",
        "least squares",
        "through zero",
    ),
    "products": (
        "correlations",
        "unequal variances",
        "unequal variances through zero",
        "one variance",
        "group means of some",
        "t-test",
    ),
    "moved": ("description", "correlations", "least squares", "classes"),
    "scaled": ("description", "correlations", "least squares", "classes", "t-test"),
    "present": ("description", "correlations", "covariance", "group means of some", "cross table", "t-test", "classes"),
    "sites": ("description", "correlations", "analysis of variance", "partial correlations"),
    "second moments": tuple(
        question
        for question in QUESTIONS
        if question not in ("least squares on levels", "lasso", "lasso of given penalty", "graphical model, automatic")
    ),
    "sketched": ("description", "correlations", "partial correlations", "components by correlation", "group means"),
    "unknown noise": tuple(QUESTIONS),
}
"""What is asked by default; the rest is slow."""


@cache
def made_release(name: str) -> dpm.MomentRelease:
    return EVERY_RELEASE[name]()


def table_of_counts(law: str, public_rows: int | None, per_unit: int) -> Any:
    noisy = np.array([[40.0, 0.0, 7.0], [-3.0, 55.0, 21.0]])
    levels = ((False, True), ("x", "y", "z"))
    made = CountTable.of(("flag", "kind"), levels, noisy, CountNoise(law, 2.5), public_rows, per_unit)
    parts = made.at_level(0.8), made.margin("kind"), made.margin("kind", "flag"), made.cross_table("kind", "flag")
    return made, made.conf_int(0.8), *parts


def likely_classes(*names: str) -> Any:
    made = naive_bayes("group", dict(zip((1, 2, 3), map(made_release, names), strict=False)))
    return made, made.predict(FRAME), made.predict_proba(FRAME), made.decision_function(FRAME)


SCALE = ["item0", "item1", "item2", "item3"]


def instruments(release: dpm.MomentRelease) -> Any:
    return release.iv("y ~ 1 + exposed + [x ~ z + kind]"), release.iv("y ~ exposed + kind + [x ~ z]", level=0.9)


def derived_estimate(release: dpm.MomentRelease, link: Any = "identity") -> Any:
    return release.estimate(
        lambda mean, covariance: {
            "correlation": covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]),
            "distance": (mean[0] - mean[1]) / 3.0,
        },
        ["x", "m"],
        link=link,
    )


def exports(release: dpm.MomentRelease) -> Any:
    texts = [release.export(program, ["x", "m", "kind"]) for program in ("lavaan", "stata", "spss")]
    return [np.array([float(number) for number in re.findall(r"-?\d+\.\d+(?:e[+-]\d+)?", text)]) for text in texts]


def factors(method: Any, rotation: Any) -> Callable[[dpm.MomentRelease], Any]:
    def ask(release: dpm.MomentRelease) -> Any:
        return release.factor_analysis(2, ["x", "m", *SCALE], method=method, rotation=rotation)

    return ask


QUESTIONS_ON_ITEMS: Mapping[str, Callable[[dpm.MomentRelease], Any]] = {
    "instruments": instruments,
    "canonical correlations": lambda release: release.cancorr(["x", "m", "exposed"], ["y", "item0"]),
    "canonical correlations of one": lambda release: release.cancorr(["x"], ["y", "m"], level=0.8),
    "alpha": lambda release: release.cronbach_alpha(SCALE),
    "omega": lambda release: release.mcdonald_omega(SCALE, level=0.9),
    "mediation": lambda release: release.mediation("y", "x", "m"),
    "mediation by two": lambda release: release.mediation("y", "x", ["m", "exposed"], ["z", "kind"], level=0.8),
    "decomposition": lambda release: release.oaxaca("y", ["x", "m"], by="exposed"),
    "odds ratio": lambda release: release.odds_ratio("ill", "exposed"),
    "odds ratio of groups": lambda release: release.odds_ratio("ill", "kind=z", level=0.8),
    "tetrachoric correlation": lambda release: release.tetrachoric(["exposed", "ill"]),
    "inflation": lambda release: release.vif(["x", "m", "kind"]),
    "factors by likelihood": factors("ml", "varimax"),
    "factors by least squares": factors("minres", "none"),
    "estimate": derived_estimate,
    "estimate of a correlation": lambda release: derived_estimate(release, "fisher"),
    "exports": exports,
    "covariance of moments": lambda release: release.nacov(["x", "m", "ill"]),
    "draws of the covariance": lambda release: release.covariance_draws(3, ["x", "m"], seed=1),
    "description of items": lambda release: (release.describe(), release.correlations(["x", "y", "ill", "kind"])),
    "least squares on products of levels": lambda release: release.ols("y", ["z", "z:kind"]),
    "group means of items": lambda release: (release.group_means("kind"), release.group_means("exposed", SCALE)),
    "t-test of items": lambda release: release.t_test("item0", "exposed"),
    "analysis of variance of items": lambda release: release.anova("y", "kind"),
    "classes of items": lambda release: (
        release.lda("kind", ["x", "y"]),
        release.lda("exposed", ["x", "y"], shrinkage=0),
    ),
    "cross table of items": lambda release: release.cross_table("kind", "ill"),
    "cross table of two flags": lambda release: release.cross_table("exposed", "ill", level=0.9),
    "graphical model of items": lambda release: release.graphical_lasso(0.1, [*SCALE, "x"]),
    "components of items": lambda release: release.pca(2),
    "least squares on items": lambda release: (
        release.ols("y ~ x*exposed + C(kind) + I(2*z)"),
        release.ols("y ~ m + C(kind)").wald_test("m = 0.5, kind=y = kind=z"),
    ),
}

OTHERS: Mapping[str, Callable[[], Any]] = {
    **{
        f"{release}, {question}": partial(lambda ask, name: ask(made_release(name)), ask, release)
        for question, ask in QUESTIONS_ON_ITEMS.items()
        for release in RELEASES_OF_ITEMS
    },
    "counts of units": lambda: table_of_counts("laplace", None, 3),
    "counts of public rows": lambda: table_of_counts("gaussian", 125, 1),
    "naive Bayes": lambda: likely_classes("noisy", "moved", "lost"),
    "naive Bayes of scaled rows": lambda: likely_classes("scaled", "moved"),
    "naive Bayes of unknown noise": lambda: likely_classes("people", "unknown noise"),
}


# What is compared ---------------------------------------------------------------------------------------------------------------

PHRASES = {value: name for name, value in vars(confidence).items() if isinstance(value, str) and name.isupper()}
NOT_ASKED = {"columns", "summary", "table", "text", "to_arrow", "to_dict", "to_pandas"}
"""Methods that say again what is compared otherwise."""
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?|[−-]?∞|–")


def numbers_of(answer: Any, depth: int = 0) -> Any:
    """Return all numbers of an answer: of every public field and property, and those printed."""
    if answer is None or isinstance(answer, bool | np.bool_):
        return answer if answer is None else bool(answer)
    if isinstance(answer, int | float | np.number):
        return shortened(float(answer))
    if isinstance(answer, str):
        return PHRASES.get(answer, answer if " " not in answer else [*NUMBER.findall(answer)])
    if isinstance(answer, pd.DataFrame | pd.Series):
        return numbers_of(answer.to_numpy())
    if isinstance(answer, np.ndarray) and answer.dtype.kind in "fiub":
        return of_array(np.asarray(answer, dtype=float))
    if isinstance(answer, Mapping):
        return {str(key): numbers_of(value, depth) for key, value in answer.items()}
    if isinstance(answer, np.ndarray | list | tuple | range):
        return [numbers_of(value, depth) for value in answer]
    if is_dataclass(answer) and type(answer).__module__.startswith("dpmoments.analysis"):
        return numbers_of_parts(answer, depth)
    return None


def numbers_of_parts(answer: Any, depth: int) -> dict[str, Any]:
    result = {}
    for name in public_names(type(answer)):
        try:
            found = numbers_of(getattr(answer, name), depth + 1) if depth < 2 else None
        except (InputError, AssertionError) as error:
            found = refusal(error)
        if found not in (None, {}, []):
            result[name] = found
    for name in methods_without_arguments(type(answer)):
        try:
            result[name] = numbers_of(getattr(answer, name)(), depth + 1)
        except InputError as error:
            result[name] = refusal(error)
    if isinstance(answer, Answer):
        printed, frame = answer.text(), answer.to_pandas()
        result["frame"] = of_array(frame.select_dtypes("number").to_numpy(dtype=float))
        result["printed"] = " ".join(NUMBER.findall(printed))
        result["lines"] = printed.count("\n")
    return result


@cache
def public_names(kind: type) -> tuple[str, ...]:
    stated = [field.name for field in fields(kind)]
    found = [name for name, value in inspect.getmembers_static(kind) if isinstance(value, property | cached_property)]
    left_out = {
        "heading",
        "remarks",
        "schema",
        "release",
        "design_map",
        "noise",
        "own_noise",
        "search",
        "law",
        "clipping",
        "complete",
    }
    return tuple(name for name in dict.fromkeys(stated + found) if not name.startswith("_") and name not in left_out)


@cache
def methods_without_arguments(kind: type) -> tuple[str, ...]:
    methods = inspect.getmembers(kind, inspect.isfunction)
    return tuple(
        name
        for name, method in methods
        if not name.startswith("_")
        and name not in NOT_ASKED
        and not isinstance(inspect.getattr_static(kind, name), staticmethod)
        and all(one.default is not one.empty for one in [*inspect.signature(method).parameters.values()][1:])
    )


def shortened(value: float) -> float | str:
    return float(f"{value:.8g}") if math.isfinite(value) else str(value)


def of_array(values: np.ndarray) -> Any:
    if values.size <= WHOLE:
        return [shortened(value) for value in values.ravel().tolist()]
    known = np.isfinite(values.ravel())
    places = np.arange(values.size)
    weights = np.cos(np.outer([1.0, 2.0, 3.0], places**1.5))
    kept = np.where(known, values.ravel(), 0.0)
    size = float(np.abs(kept).max())
    unknown = float((known * np.cos(places)).sum())
    return {"shape": list(values.shape), "size": shortened(size), "known": shortened(unknown)} | {
        "sums": [shortened(value) for value in (weights @ kept / size if size else np.zeros(3)).tolist()]
    }


def refusal(error: Exception) -> str:
    """The sentence of a refusal without its numbers, which are rounded."""
    return f"refused: {re.sub(r'[0-9][0-9.,e+-]*', '#', str(error)) if isinstance(error, InputError) else type(error).__name__}"


def answered(release: str, question: str = "") -> dict[str, Any]:
    """Return the numbers of one answer, each with where it is found."""
    try:
        found = numbers_of(QUESTIONS[question](made_release(release)) if question else OTHERS[release]())
    except InputError as error:
        found = refusal(error)
    return dict(leaves(found, ""))


def leaves(found: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(found, dict):
        for name, value in found.items():
            yield from leaves(value, f"{path}.{name}")
    elif isinstance(found, list):
        for index, value in enumerate(found):
            yield from leaves(value, f"{path}[{index}]")
    else:
        yield path, found


def differences(found: Mapping[str, Any], kept: list[Any]) -> list[str]:
    """Return where numbers differ, and from what."""
    if len(found) != len(kept):
        return [f"{len(found)} numbers, {len(kept)} before"]
    return [
        f"{path}: {value!r}, before {before!r}"
        for (path, value), before in zip(found.items(), kept, strict=True)
        if not alike(value, before)
    ]


def alike(value: Any, before: Any) -> bool:
    if isinstance(value, bool) or not (isinstance(value, float) and isinstance(before, int | float)):
        return bool(value == before)
    return math.isclose(value, before, rel_tol=TOLERANCE, abs_tol=1e-9)


def asked() -> list[str]:
    sketched = {f"sketched: {question}" for question in set(QUESTIONS) - set(QUICK["sketched"])}
    every = [f"{release}: {question}" for release in RELEASES for question in QUESTIONS]
    return [*(name for name in every if name not in sketched), *OTHERS]


QUICK_NAMES = {f"{release}: {question}" for release, questions in QUICK.items() for question in questions} | {*OTHERS}
every_answer = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK_NAMES else pytest.mark.slow) for name in asked()]
)


def not_as_recorded(name: str) -> list[str]:
    return differences(answered(*name.split(": ")), KEPT.answers[name])


@pytest.mark.long(sets=None)
@every_answer
def test_answers_are_those_that_were_recorded(name: str) -> None:
    assert not not_as_recorded(name)


# On other processors ------------------------------------------------------------------------------------------------------------


@cache
def nudged_release(name: str) -> dpm.MomentRelease:
    return nudged(EVERY_RELEASE[name](), np.random.default_rng(1))


@pytest.mark.long(sets=32)
@every_answer
def test_rounding_decides_no_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moments that differ by a few roundings have the same answers, whatever the processor of this machine."""
    monkeypatch.setattr(sys.modules[__name__], "made_release", nudged_release)
    assert not not_as_recorded(name)


def test_a_search_that_ends_early_is_found() -> None:
    name = "people: graphical model, automatic"
    before = answered(*name.split(": "))
    with planted(structure._solved, "tol=1e-10, enet_tol=1e-13", "tol=1e-4"):
        assert differences(answered(*name.split(": ")), [*before.values()])


def test_every_number_is_compared() -> None:
    """A planted fault in each of the numbers of one answer is found, and only there."""
    assert KEPT.answers.keys() == set(asked())
    name = "people: least squares"
    found = answered(*name.split(": "))
    assert len(found) > 100
    for path, value in found.items():
        if isinstance(value, float):
            changed = found | {path: value * (1 + 1e-5) + 1e-8}
            assert [line.split(": ")[0] for line in differences(changed, KEPT.answers[name])] == [path]


REFUSED: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("a correlation is of two features: name two at least", lambda release: release.partial_correlation(["age"])),
    ("a correlation is of two features: name two at least", lambda release: release.correlations()[["age"]]),
    ("a graph is of two features: name two columns at least", lambda release: release.graphical_lasso(columns=["age"])),
    ("that makes the groups: name another", lambda release: release.group_means("employed", ["employed"])),
    ("groups are a list of names, not one string", lambda release: release.t_test("age", "region", groups="north")),
    ("' is not a column of this table of", lambda _: counts_of_two().margin("kinds")),
    ("a margin names a column twice", lambda _: counts_of_two().margin("kind", "kind")),
    ("a cross table is of two columns, and both are", lambda _: counts_of_two().cross_table("kind", "kind")),
    ("targets: a regression has one", lambda release: release.ols("income + age ~ employed")),
    (
        "is a formula, which names its features: leave features=",
        lambda release: release.ols("income ~ age", ["employed"]),
    ),
    (
        "the formula has no intercept (it ends in - 1 or + 0), and",
        lambda release: release.ols("income ~ age - 1", intercept=True),
    ),
    ("is among the features: leave it out", lambda release: release.ols("age", ["age"])),
    (
        "reference is a list of features, or a mapping of column to",
        lambda release: release.ols("income", reference="region=north"),
    ),
    (
        "is not a level of a categorical column of the release: give",
        lambda release: release.ols("income", reference=["north"]),
    ),
    ("reference names two levels of", lambda release: release.ols("income", reference=["region=north", "region=east"])),
    (
        "of which the regression does not have all levels: leave it",
        lambda release: release.ols("income", ["age"], reference=["region=east"]),
    ),
    ("name at least one", lambda release: release.ols("income", [])),
    ("are a list of names, not one string", lambda release: release.ols("income", "age")),
    ("a feature is named twice", lambda release: release.ols("income", ["age", "age"])),
    ("Unknown feature", lambda release: release.ols("incom")),
    ("is categorical, and one feature is needed", lambda release: release.ols("region")),
    ("There is no '", lambda release: release.describe()["aged"]),
    ("divides each squared residual by a power of 1 less the", lambda release: release.ols("income", cov_type="HC3")),
    (
        "use 'HC' (HC1), 'nonrobust' or 'auto' (HC1 if the release",
        lambda release: release.ols("income", cov_type="HC9"),
    ),
    (
        "moments about a center need the sum about it, else their",
        lambda release: replace(release, noisy_sum=None, center=np.zeros(8)),
    ),
    ("a sum of rows without their number makes no mean: release", lambda release: replace(release, noisy_count=None)),
    (
        "no count was released: under add_remove the number",
        lambda release: replace(release, noisy_count=None, noisy_sum=None).n_rows,
    ),
    ("no mean was released", lambda release: replace(release, noisy_sum=None).unit_ball_mean),
    ("no mean was released", lambda release: replace(release, noisy_sum=None).unit_ball_covariance),
    ("Unknown feature", lambda release: naive_bayes("g", {1: release, 2: release}, ["ages"])),
)


def counts_of_two() -> CountTable:
    return table_of_counts("laplace", None, 1)[0]  # type: ignore[no-any-return]


def test_requests_without_an_answer_are_refused() -> None:
    for said, ask in REFUSED:
        with refused(said, (ValueError, TypeError, KeyError)):
            ask(made_release("people"))


def test_a_file_of_other_features_is_refused() -> None:
    content = json.loads(json.dumps(made_release("people").to_dict()))
    features = content["features"]
    scale, offset = features["scale"], features["offset"]
    dpm.MomentRelease.from_dict(content | {"features": features | {"scale": [scale[0] * (1 + 1e-10), *scale[1:]]}})
    for change in (
        {"scale": [scale[0] * (1 + 1e-8), *scale[1:]]},
        {"offset": [offset[0] + 1e-5, *offset[1:]]},
        {"names": [*features["names"][1:], "other"]},
    ):
        with refused("the features are not those of the schema"):
            dpm.MomentRelease.from_dict(content | {"features": features | change})
    with refused("warnings are an entry of a release, and not of its"):
        dpm.MomentRelease.from_dict(content | {"diagnostics": {"warnings": []}})


def test_one_column_of_a_name_is_found_by_it() -> None:
    release = made_release("people")
    made = release.ols("income ~ age*employed + I(age**2) + C(region)")
    assert made.features == ("age", "employed", "age^2", "region=south", "region=east", "age:employed")
    assert release.ols("income ~ 0 + age").with_intercept is False
    assert release.ols("income ~ employed:age").features == ("age:employed",)
    assert release.ols("income ~ `age`").features == ("age",)
    assert release.ols("income ~ (age + employed)**2").features == ("age", "employed", "age:employed")
    assert release.ols("`region=north` ~ age").target == "region=north"
    left_out = release.ols("age").features
    assert left_out == ("income", "region=south", "region=east", "employed")
    assert release.ols("income", ["region"], reference={"region": "east"}).features == ("region=north", "region=south")
    assert release.ols("income", ["region"], intercept=False).features == REGIONS_AS_FEATURES
    pair = release.correlations()[["income", "age"]]
    assert pair.correlation[0, 1] == release.correlations(["age", "income"]).correlation[0, 1]
    assert pair.feature_names == ("income", "age")
    assert pair.columns_of_features == ("income", "age")
    card = release._repr_html_()
    assert "income" in card
    assert numbers_of(re.sub(r"<[^>]*>", " ", card))[:4] == ["8", "6", "3,000", "2.1"]


def test_frames_are_indexed_by_every_label() -> None:
    release = made_release("people")
    means = release.group_means("region", ["age", "income"])
    apart = means.differences.to_pandas()
    assert apart.index.nlevels == 3
    assert apart.index[0] == ("age", "region=north", "region=south")
    assert means.to_pandas().index[-1] == ("income", "region=east")
    assert release.describe().to_pandas().index.tolist() == list(release.feature_names)
    assert release.correlations().to_pandas().index[0] == ("age", "income")
    assert likely_classes("scaled", "moved")[0].to_pandas().index.tolist() == ["1", "2"]


def write() -> None:
    """Record the answers."""
    KEPT.write({name: [*answered(*name.split(": ")).values()] for name in asked()}, separators=(",", ":"))


if __name__ == "__main__":
    write()
