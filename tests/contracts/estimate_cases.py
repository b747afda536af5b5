"""Rows of the analyses' contract table for estimates of functions of moments, beside those of `analyses.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq, least_squares
from scipy.stats import multivariate_normal, norm

from contracts.analyses import AnalysisCase, Numbers, Units, by_name, named
from contracts.comparison_cases import column, comparison_case, places, repeated

NUMBERS = ("age", "income", "employed")


def numbers_of(answer: Any) -> Numbers:
    """Values by name, and the places of the features."""
    return by_name("value", answer.names, answer.value) | places(answer.feature_names)


def estimate_case(
    name: str,
    arguments: dict[str, Any],
    command: tuple[str, ...],
    reference: Any,
    features: tuple[str, ...] = NUMBERS,
    **further: Any,
) -> AnalysisCase:
    return comparison_case(
        name,
        arguments | {"level": 0.9},
        (*command, "--level", "0.9"),
        "feature_names",
        further.pop("numbers", numbers_of),
        lambda values, _: reference(values) | places(features),
        tolerance=1e-3,
        **further,
    )


def two_stages_of_table(values: np.ndarray) -> Numbers:
    """Least squares on what instruments and exogenous regressors predict."""
    one = np.ones(len(values))
    regressors = np.stack([one, column(values, "employed"), column(values, "age")], axis=1)
    instruments = np.stack(
        [one, *(column(values, name) for name in ("employed", "region=south", "region=east"))], axis=1
    )
    predicted = instruments @ np.linalg.lstsq(instruments, regressors, rcond=None)[0]
    solution = np.linalg.solve(predicted.T @ regressors, predicted.T @ column(values, "income"))
    residual = column(values, "income") - regressors @ solution
    errors = np.sqrt(np.mean(residual**2) * np.diag(np.linalg.inv(predicted.T @ predicted)))
    names = ("(intercept)", "employed", "age")
    return by_name("value", names, solution) | by_name("error", names[1:], errors[1:])


def two_stages_in_units(numbers: Numbers, units: Units) -> Numbers:
    factor, shift = units.of("income")
    own, moved = units.of("age")
    slope = factor / own
    found = {
        key: value * (1.0 if key.startswith("place") else slope if "age" in key else factor)
        for key, value in numbers.items()
    }
    found["value[(intercept)]"] += shift - found["value[age]"] * moved
    return found


def numbers_of_two_stages(answer: Any) -> Numbers:
    """Errors of slopes alone: far from 0 a constant has another."""
    names, errors = answer.estimates.names, answer.std_errors.to_numpy()
    values = by_name("value", names, answer.estimates.value)
    return values | by_name("error", names[1:], errors[1:]) | places(answer.feature_names)


def ratios_of_table(values: np.ndarray) -> Numbers:
    outcome, exposure = column(values, "region=north") > 0.5, column(values, "employed") > 0.5
    a, b, c, d = (np.sum(outcome & exposure), np.sum(~outcome & exposure), np.sum(outcome & ~exposure), 0)
    d = np.sum(~outcome & ~exposure)
    return {"value[oddsratio]": a * d / (b * c), "value[riskratio]": a / (a + b) / (c / (c + d))}


def inflation_of_table(values: np.ndarray) -> Numbers:
    inverse = np.linalg.inv(np.corrcoef([column(values, name) for name in NUMBERS]))
    return by_name("value", NUMBERS, np.diag(inverse))


def fitted(values: np.ndarray, target: str, names: tuple[str, ...]) -> np.ndarray:
    design = np.stack([np.ones(len(values)), *(column(values, name) for name in names)], axis=1)
    return np.asarray(np.linalg.lstsq(design, column(values, target), rcond=None)[0][1:])


def effects_of_table(values: np.ndarray) -> Numbers:
    first = float(fitted(values, "employed", ("age", "region=north"))[0])
    through, direct = (float(slope) for slope in fitted(values, "income", ("employed", "age", "region=north"))[:2])
    total = float(fitted(values, "income", ("age", "region=north"))[0])
    names = ("employed ~ age", "income ~ employed", "total", "direct", "indirect")
    return by_name("value", names, (first, through, total, direct, first * through))


def gap_of_table(values: np.ndarray) -> Numbers:
    group = column(values, "employed") > 0.5
    slopes, means = [], []
    for rows in (values[~group], values[group]):
        slopes.append(float(fitted(rows, "income", ("age",))[0]))
        means.append((column(rows, "income").mean(), column(rows, "age").mean()))
    gap, moved = means[1][0] - means[0][0], means[1][1] - means[0][1]
    endowments, interaction = moved * slopes[0], moved * (slopes[1] - slopes[0])
    explained = moved * float(fitted(values, "income", ("employed", "age"))[1])
    parts = (gap, endowments, gap - endowments - interaction, interaction, explained, gap - explained)
    return by_name("value", ("gap", "endowments", "coefficients", "interaction", "explained", "unexplained"), parts)


def gap_in_units(numbers: Numbers, units: Units) -> Numbers:
    return {key: value * (1.0 if "place" in key else units.of("income")[0]) for key, value in numbers.items()}


def effects_in_units(numbers: Numbers, units: Units) -> Numbers:
    own, of_income = units.of("age")[0], units.of("income")[0]
    factors = {"employed ~ age": 1.0 / own, "income ~ employed": of_income}
    return {
        key: value if key.startswith("place") else value * factors.get(named(key)[1], of_income / own)
        for key, value in numbers.items()
    }


ITEMS, PRODUCTS = ("age", "income", "employed:age"), (("employed", "age"),)


def items(values: np.ndarray) -> list[np.ndarray]:
    """Three columns that go together."""
    return [column(values, "age"), column(values, "income"), column(values, "employed") * column(values, "age")]


def alpha_of_table(values: np.ndarray) -> Numbers:
    covariance = np.cov(items(values))
    return {"value[cronbach_alpha]": 1.5 * (1.0 - np.trace(covariance) / covariance.sum())}


def omega_of_table(values: np.ndarray) -> Numbers:
    """One factor by expectation maximization, unique variances of .005 at least."""
    r, loadings, unique = np.corrcoef(items(values)), np.full(3, 0.5), np.full(3, 0.5)
    for _ in range(20_000):
        weights = np.linalg.solve(np.outer(loadings, loadings) + np.diag(unique), loadings)
        square = 1.0 - weights @ loadings + weights @ r @ weights
        loadings = r @ weights / square
        unique = np.maximum(np.diag(r) - 2.0 * loadings * (r @ weights) + square * loadings**2, 0.005)
    deviations = np.array([each.std() for each in items(values)])
    common = float(deviations @ loadings) ** 2
    return {"value[mcdonald_omega]": common / (common + float(deviations**2 @ unique))}


def factor_of_table(values: np.ndarray) -> Numbers:
    """One factor by least squares of every entry."""
    r = np.corrcoef(items(values))

    def apart(both: np.ndarray) -> np.ndarray:
        return np.asarray((r - np.outer(both[:3], both[:3]) - np.diag(both[3:]))[np.triu_indices(3)] * WEIGHTS)

    found = least_squares(apart, np.full(6, 0.5), bounds=([-2.0] * 3 + [0.005] * 3, [2.0] * 3 + [1.0] * 3), xtol=1e-14)
    return by_name("loading", ITEMS, found.x[:3]) | by_name("unique", ITEMS, found.x[3:])


WEIGHTS = np.sqrt([1.0, 2.0, 2.0, 1.0, 2.0, 1.0])
"""Off the diagonal an entry stands twice."""


def numbers_of_factor(answer: Any) -> Numbers:
    names = answer.feature_names
    found = by_name("loading", names, answer.loadings_[:, 0]) | by_name("unique", names, answer.get_uniquenesses())
    return found | places(names)


def canonical_of_table(values: np.ndarray) -> Numbers:
    age, income, employed = (column(values, name) for name in NUMBERS)
    slopes = fitted(values, "employed", ("age", "income"))
    return {"value[correlation 1]": float(np.corrcoef(slopes @ np.stack([age, income]), employed)[0, 1])}


def latent_of_table(values: np.ndarray) -> Numbers:
    north, employed = column(values, "region=north"), column(values, "employed")
    ends = [norm.ppf(north.mean()), norm.ppf(employed.mean())]

    def excess(r: float) -> float:
        return float(multivariate_normal.cdf(ends, cov=[[1.0, r], [r, 1.0]]) - np.mean(north * employed))

    return {"value[employed ~ region=north]": brentq(excess, -0.99, 0.99)}


ESTIMATES = [
    estimate_case(
        "iv",
        {"formula": "income ~ employed + [age ~ C(region)]"},
        ("income ~ employed + [age ~ C(region)]",),
        two_stages_of_table,
        ("age", "income", "region=south", "region=east", "employed"),
        numbers=numbers_of_two_stages,
        in_units=two_stages_in_units,
    ),
    estimate_case(
        "odds_ratio",
        {"outcome": "region=north", "exposure": "employed"},
        ("region=north", "employed"),
        ratios_of_table,
        ("region=north", "employed"),
    ),
    estimate_case("vif", {"columns": list(NUMBERS)}, NUMBERS, inflation_of_table),
    estimate_case(
        "mediation",
        {"y": "income", "x": "age", "m": ["employed"], "covariates": ["region=north"]},
        ("income", "age", "employed", "--covariate", "region=north"),
        effects_of_table,
        ("age", "income", "region=north", "employed"),
        in_units=effects_in_units,
    ),
    estimate_case(
        "oaxaca",
        {"y": "income", "x": ["age"], "by": "employed"},
        ("income", "age", "employed"),
        gap_of_table,
        ("age", "income", "employed", "employed:age"),
        in_units=gap_in_units,
        other_units=("rescaled",),  # a product of a shifted column is another feature
        products=PRODUCTS,
    ),
    *(
        estimate_case(name, {"columns": list(ITEMS)}, ITEMS, reference, ITEMS, other_units=(), products=PRODUCTS)
        for name, reference in (("cronbach_alpha", alpha_of_table), ("mcdonald_omega", omega_of_table))
    ),
    estimate_case(
        "factor_analysis",
        {"n_factors": 1, "columns": list(ITEMS), "method": "minres", "rotation": "none"},
        ("1", *repeated("--column", ITEMS), "--method", "minres", "--rotation", "none"),
        factor_of_table,
        ITEMS,
        other_units=(),
        products=PRODUCTS,
        numbers=numbers_of_factor,
    ),
    estimate_case(
        "cancorr",
        {"x": ["age", "income"], "y": ["employed"]},
        ("--x", "age", "--x", "income", "--y", "employed"),
        canonical_of_table,
        numbers=lambda answer: (
            by_name("value", answer.cancorr.names, answer.cancorr.value) | places(answer.feature_names)
        ),
    ),
    estimate_case(
        "tetrachoric",
        {"columns": ["employed", "region=north"]},
        ("employed", "region=north"),
        latent_of_table,
        ("region=north", "employed"),
    ),
]
