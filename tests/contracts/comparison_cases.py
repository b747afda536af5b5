"""Rows of the analyses' contract table for what describes and compares, beside those of `analyses.py`."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv
from sklearn.covariance import graphical_lasso
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from contracts.analyses import (
    ANALYSES,
    FEATURES,
    AnalysisCase,
    Numbers,
    Units,
    by_name,
    description_of_table,
    named,
    pca_case,
)

LEVELS = ("region=north", "region=south", "region=east")
ROWS: dict[str, list[Any]] = {
    "employed": [True, False, True],
    "income": [20_000.0, 64_000.0, 90_000.0],
    "region": ["north", "east", "south"],
    "age": [25.0, 61.5, 40.0],
}
ROWS_FILE = Path(tempfile.mkdtemp()) / "rows.csv"
csv.write_csv(pa.table(ROWS), ROWS_FILE)


def unit_free(numbers: Numbers, units: Units) -> Numbers:
    del units
    return numbers


def column(values: np.ndarray, name: str) -> np.ndarray:
    return np.asarray(values[:, FEATURES.index(name)])


def pairs(word: str, names: tuple[str, ...], matrix: Any) -> dict[str, float]:
    return {
        f"{word}[{one}, {other}]": float(matrix[names.index(one), names.index(other)])
        for one, other in combinations(names, 2)
    }


def places(names: tuple[str, ...]) -> Numbers:
    return {f"place[{name}]": float(place) for place, name in enumerate(names)}


def correlations_of_table(values: np.ndarray, mean: bool) -> Numbers:
    del mean
    return pairs("correlation", FEATURES, np.corrcoef(values.T))


WITHOUT_NORTH = ("age", "income", "region=south", "region=east")


def partial_of_table(values: np.ndarray, mean: bool) -> Numbers:
    del mean
    kept = np.stack([column(values, name) for name in WITHOUT_NORTH])
    inverse = np.linalg.inv(np.cov(kept))
    root = np.sqrt(np.diag(inverse))
    return pairs("partial", WITHOUT_NORTH, -inverse / np.outer(root, root))


MEANS_OF = ("age", "income")


def numbers_of_group_means(answer: Any) -> Numbers:
    found: dict[str, float] = {}
    for place, group in enumerate(answer.groups):
        found[f"count {group}"] = float(answer.counts[place])
        found |= by_name(f"mean {group} ", answer.features, answer.mean[:, place])
    for place, (one, other) in enumerate(answer.differences.pairs):
        found |= by_name(f"difference {one} {other} ", answer.features, answer.differences.difference[:, place])
    return found


def group_means_of_table(values: np.ndarray, mean: bool) -> Numbers:
    del mean
    means, found = {}, {}
    for level in LEVELS:
        rows = column(values, level) > 0.5
        means[level] = np.array([column(values, name)[rows].mean() for name in MEANS_OF])
        found[f"count {level}"] = float(rows.sum())
        found |= by_name(f"mean {level} ", MEANS_OF, means[level])
    for one, other in combinations(LEVELS, 2):
        found |= by_name(f"difference {one} {other} ", MEANS_OF, means[one] - means[other])
    return found


def means_in_units(numbers: Numbers, units: Units) -> Numbers:
    found = dict(numbers)
    for key, value in numbers.items():
        what, name = named(key)
        factor, shift = units.of(name)
        if what.startswith("mean "):
            found[key] = factor * value + shift
        elif what.startswith("difference "):
            found[key] = factor * value
    return found


def numbers_of_anova(answer: Any) -> Numbers:
    between, within = answer.sum_of_squares
    found = {"between": between, "within": within, "f": answer.f, "eta": answer.eta_squared}
    return found | by_name("count", answer.levels, answer.counts)


def anova_of_table(values: np.ndarray, mean: bool) -> Numbers:
    del mean
    income, groups = column(values, "income"), [column(values, level) > 0.5 for level in LEVELS]
    total = float(np.sum((income - income.mean()) ** 2))
    within = float(sum(np.sum((income[rows] - income[rows].mean()) ** 2) for rows in groups))
    f = (total - within) / 2 / (within / (len(income) - 3))
    counts = by_name("count", LEVELS, [rows.sum() for rows in groups])
    return {"between": total - within, "within": within, "f": f, "eta": 1 - within / total} | counts


def anova_in_units(numbers: Numbers, units: Units) -> Numbers:
    square = units.of("income")[0] ** 2
    return {key: value * (square if key in ("between", "within") else 1.0) for key, value in numbers.items()}


def numbers_of_t_test(answer: Any) -> Numbers:
    found = by_name("mean", answer.levels, answer.means) | by_name("count", answer.levels, answer.counts)
    return found | {"difference": answer.difference, "t": answer.statistic}


def t_test_of_table(values: np.ndarray, mean: bool) -> Numbers:
    del mean
    income, two = column(values, "income"), ("region=north", "region=east")
    groups = [column(values, level) > 0.5 for level in two]
    means, counts = [income[rows].mean() for rows in groups], [rows.sum() for rows in groups]
    every = [income[column(values, name) > 0.5] for name in LEVELS]
    pooled = sum(np.sum((rows - rows.mean()) ** 2) for rows in every) / len(income)  # that of all groups
    error = np.sqrt(pooled * (1 / counts[0] + 1 / counts[1]))
    found = by_name("mean", two, means) | by_name("count", two, counts)
    return found | {"difference": means[0] - means[1], "t": (means[0] - means[1]) / error}


def t_test_in_units(numbers: Numbers, units: Units) -> Numbers:
    factor, shift = units.of("income")
    found = {key: factor * value + shift if key.startswith("mean") else value for key, value in numbers.items()}
    return found | {"difference": factor * numbers["difference"]}


def numbers_of_cross_table(answer: Any) -> Numbers:
    return {
        f"count[{row}] {label}": float(count)
        for row, counts in zip(answer.rows, answer.counts, strict=True)
        for label, count in zip(answer.labels, counts, strict=True)
    }


def cross_table_of_table(values: np.ndarray, mean: bool) -> Numbers:
    del mean
    employed = column(values, "employed") > 0.5
    return {
        f"count[{level}] employed={word}": float(np.sum((column(values, level) > 0.5) & which))
        for level in LEVELS
        for word, which in (("false", ~employed), ("true", employed))
    }


def numbers_of_distances(answer: Any) -> Numbers:
    return places(answer.feature_names) | {
        f"distance {row}": float(distance) for row, distance in enumerate(answer.distances)
    }


def distances_of_table(values: np.ndarray, mean: bool) -> Numbers:
    del mean
    kept = np.stack([column(values, name) for name in MEANS_OF], axis=1)
    rows = np.stack([np.array(ROWS[name], dtype=float) for name in MEANS_OF], axis=1) - kept.mean(axis=0)
    squares = np.einsum("ij,jk,ik->i", rows, np.linalg.inv(np.cov(kept.T, bias=True)), rows)
    return places(MEANS_OF) | {f"distance {row}": float(np.sqrt(square)) for row, square in enumerate(squares)}


def numbers_of_lda(answer: Any) -> Numbers:
    found = {f"prior {name}": float(share) for name, share in zip(answer.class_names, answer.priors, strict=True)}
    for name, coefficients, means in zip(answer.class_names, answer.coef, answer.means, strict=True):
        found |= by_name(f"coef {name} ", answer.feature_names, coefficients - answer.coef.mean(axis=0))
        found |= by_name(f"mean {name} ", answer.feature_names, means)
    return found


def lda_of_table(values: np.ndarray, mean: bool) -> Numbers:
    del mean
    kept = np.stack([column(values, name) for name in MEANS_OF], axis=1)
    labels = np.argmax(np.stack([column(values, level) for level in LEVELS], axis=1), axis=1)
    model = LinearDiscriminantAnalysis(solver="lsqr").fit(kept, labels)
    found = {f"prior {name}": float(share) for name, share in zip(LEVELS, model.priors_, strict=True)}
    for name, coefficients, means in zip(LEVELS, model.coef_, model.means_, strict=True):
        found |= by_name(f"coef {name} ", MEANS_OF, coefficients - model.coef_.mean(axis=0))
        found |= by_name(f"mean {name} ", MEANS_OF, means)
    return found


def lda_in_units(numbers: Numbers, units: Units) -> Numbers:
    found = dict(means_in_units(numbers, units))
    for key, value in numbers.items():
        what, name = named(key)
        if what.startswith("coef "):
            found[key] = value / units.of(name)[0]
    return found


def graph_of_table(values: np.ndarray, mean: bool) -> Numbers:
    del mean
    correlation = np.corrcoef(np.stack([column(values, name) for name in MEANS_OF]))
    return pairs("precision", MEANS_OF, graphical_lasso(correlation, 0.05)[1])


def repeated(option: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for name in names for word in (option, name))


def components_of_three(values: np.ndarray, mean: bool) -> Numbers:
    kept = np.stack([column(values, name) for name in MEANS_OF], axis=1)
    offset = kept.mean(axis=0) if mean else np.zeros(len(MEANS_OF))
    second = (kept - offset).T @ (kept - offset) / len(kept)
    scale = np.sqrt(np.diag(second))
    found = (
        by_name("mean", MEANS_OF, offset) | by_name("scale", MEANS_OF, scale) | by_name("deviation", MEANS_OF, scale)
    )
    for i, first in enumerate(MEANS_OF):
        for j, other in enumerate(MEANS_OF[:i]):
            found[f"correlation[{first}, {other}]"] = float(second[i, j] / scale[i] / scale[j])
    return found


def components_case() -> AnalysisCase:
    case = pca_case("correlation")
    return replace(
        case,
        id="pca of columns",
        arguments={"columns": list(MEANS_OF), "scaling": "correlation"},
        command=(*repeated("--column", MEANS_OF), "--scaling", "correlation"),
        reference=components_of_three,
    )


def comparison_case(
    name: str,
    arguments: dict[str, Any],
    command: tuple[str, ...],
    labels: str,
    numbers: Any,
    reference: Any,
    in_units: Any = unit_free,
    **further: Any,
) -> AnalysisCase:
    """A row of what needs a mean; what has no units is unit-free."""
    of_units: dict[str, Any] = {"in_units": in_units, "has_units": in_units is not unit_free}
    needed = dict(name=name, id=name, arguments=arguments, command=command, labels=labels, numbers=numbers)
    return AnalysisCase(**needed | of_units | {"reference": reference, "answers_without_a_mean": False} | further)


def numbers_of_correlations(answer: Any) -> Numbers:
    return pairs("correlation", answer.feature_names, answer.correlation)


def of_two_columns(values: np.ndarray, mean: bool) -> Numbers:
    key = "correlation[age, income]"
    return {key: correlations_of_table(values, mean)[key], "place[age]": 0.0, "place[income]": 1.0}


AT_90, OF_MEANS, THREE = ("--level", "0.9"), repeated("--column", MEANS_OF), ("age", "income", "region")
COMPARISONS = [
    replace(
        next(case for case in ANALYSES if case.name == "describe"),
        id="describe columns",
        arguments={"columns": ["age", "region", "income"]},
        command=repeated("--column", ("age", "region", "income")),
        reference=lambda values, mean: {
            key: value for key, value in description_of_table(values, mean).items() if "employed" not in key
        },
    ),
    comparison_case(
        "correlations", {"level": 0.9}, AT_90, "feature_names", numbers_of_correlations, correlations_of_table
    ),
    comparison_case(
        "correlations",
        {"columns": list(MEANS_OF)},
        OF_MEANS,
        "feature_names",
        lambda answer: numbers_of_correlations(answer) | places(answer.feature_names),
        of_two_columns,
        id="correlations of columns",
    ),
    comparison_case(
        "partial_correlation",
        {"columns": list(THREE), "level": 0.9},
        (*repeated("--column", THREE), *AT_90),
        "feature_names",
        lambda answer: pairs("partial", answer.feature_names, np.nan_to_num(answer.correlation, nan=-9.0)),
        partial_of_table,
    ),
    comparison_case(
        "group_means",
        {"by": "region", "of": list(MEANS_OF), "level": 0.9},
        ("region", *repeated("--of", MEANS_OF), *AT_90),
        "features",
        numbers_of_group_means,
        group_means_of_table,
        means_in_units,
    ),
    comparison_case(
        "anova",
        {"target": "income", "by": "region", "level": 0.9},
        ("income", "region", *AT_90),
        "levels",
        numbers_of_anova,
        anova_of_table,
        anova_in_units,
        tolerance=1e-3,
    ),
    comparison_case(
        "t_test",
        {"target": "income", "by": "region", "groups": ["east", "north"], "level": 0.9},
        ("income", "region", *repeated("--group", ("east", "north")), *AT_90),
        "levels",
        numbers_of_t_test,
        t_test_of_table,
        t_test_in_units,
        tolerance=1e-3,
    ),
    comparison_case(
        "cross_table",
        {"by": "region", "other": "employed", "level": 0.9},
        ("region", "employed", *AT_90),
        "rows",
        numbers_of_cross_table,
        cross_table_of_table,
    ),
    comparison_case(
        "mahalanobis",
        {"frame": ROWS, "columns": list(MEANS_OF)},
        (str(ROWS_FILE), *OF_MEANS),
        "feature_names",
        numbers_of_distances,
        distances_of_table,
        other_units=(),  # the frame is in the table's own
    ),
    comparison_case(
        "lda",
        {"by": "region", "columns": list(MEANS_OF), "shrinkage": 0.0, "level": 0.9},
        ("region", *OF_MEANS, "--shrinkage", "0.0", *AT_90),
        "feature_names",
        numbers_of_lda,
        lda_of_table,
        lda_in_units,
        tolerance=1e-3,
    ),
    comparison_case(
        "graphical_lasso",
        {"alpha": 0.05, "columns": list(MEANS_OF)},
        ("--alpha", "0.05", *OF_MEANS),
        "feature_names",
        lambda answer: pairs("precision", answer.feature_names, answer.precision),
        graph_of_table,
        tolerance=2e-3,
    ),
    components_case(),
]

EVERY_ANALYSIS = [*ANALYSES, *COMPARISONS]
