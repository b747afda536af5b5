"""Reading answers as their readers would: what in them contradicts what.

Every row of every answer is read: estimate and interval, interval and p-value, verdict and interval, digits and error, one answer
and another. `found_in` returns what contradicts in the answers of a release, `others_contradict` in other objects; `pictures.py`
reads pictures.
"""

from __future__ import annotations

import html
import json
import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import f as f_distribution

import dpmoments as dpm
from dpmoments.analysis.confidence import NOISE_UNKNOWN, NOT_ESTIMABLE, NOT_ESTIMABLE_ROWS, UNCLEAR, largest_holding
from dpmoments.datasets import adult, airfoil
from dpmoments.plots.intervals import chart_of_findings
from dpmoments.reporting import sections
from dpmoments.reporting.sections import Comparisons

SIGNS = {"positive": 1.0, "negative": -1.0}
_NUMBER = re.compile(r"-?[\d,]*\.?\d+(?:e[+-]?\d+)?")
TOLERANCE = 1e-9


# The tables --------------------------------------------------------------------------------------------------------------


@cache
def tables() -> dict[str, tuple[Any, dpm.Schema, str, list[str], str]]:
    """Rows, schema, a target, regressors and a categorical by name."""
    rng = np.random.default_rng(0)
    n = 6_000
    group = rng.choice(["a", "b", "c", "rare"], n, p=[0.5, 0.3, 0.18, 0.02])
    flag = rng.random(n) < 0.15
    x = rng.normal(0.0, 1.0, n) + (group == "b")
    skewed = np.exp(rng.normal(8.0, 2.0, n) + 0.4 * x)
    gain = np.where(rng.random(n) < 0.04, rng.uniform(1e3, 1e5, n), 0.0)
    made = pd.DataFrame(
        {
            "x": x,
            "y": 2.0 * x + 3.0 * flag + rng.normal(0.0, 2.0, n),
            "sales": skewed,
            "gain": gain,
            "kind": rng.choice(["F", "M"], n, p=[0.4, 0.6]),
            "group": group,
            "flag": flag,
        }
    )
    schema = dpm.Schema(
        *(dpm.Numeric(name, *ends) for name, ends in (("x", (-6, 6)), ("y", (-20, 20)), ("sales", (0, 1e6)))),
        dpm.Numeric("gain", 0, 1e5),
        dpm.Categorical("kind", ["F", "M"]),
        dpm.Categorical("group", ["a", "b", "c", "rare"]),
        dpm.Boolean("flag"),
    )
    products = dpm.Schema(dpm.Numeric("x", -6, 6), dpm.Boolean("flag"), dpm.Numeric("y", -20, 20))
    people, sounds = adult(), airfoil()
    chosen = ("age", "education-num", "relationship", "sex", "capital-gain", "hours-per-week", "income")
    of_adult = dpm.Schema(*(column for column in people.schema.columns if column.name in chosen))
    return {
        "made": (made, schema, "y", ["x", "sales", "kind", "group", "flag"], "group"),
        "products": (made[["x", "flag", "y"]], products.with_products(["x", "flag", "y"]), "y", ["x", "flag"], "flag"),
        "adult": (
            people.frame.select(of_adult.names).slice(0, 12_000).to_pandas(),
            of_adult,
            "hours-per-week",
            ["age", "education-num", "sex", "relationship", "capital-gain"],
            "sex",
        ),
        "airfoil": (
            sounds.frame.to_pandas(),
            sounds.schema,
            sounds.schema.names[-1],
            list(sounds.schema.names[:-1]),
            "",
        ),
        "survey": _survey(),
        "tails": _tails(),
    }


def _survey() -> tuple[Any, dpm.Schema, str, list[str], str]:
    """Mostly levels, some of them rare, one column nearly another; a number that is missing in some rows."""
    rng = np.random.default_rng(2026)
    n, levels = 4_000, ["u", "v", "w", "x", "y"]
    one = rng.choice(levels, n, p=[0.4, 0.3, 0.2, 0.08, 0.02])
    table = pd.DataFrame(
        {
            "one": one,
            "other": np.where(rng.random(n) < 0.7, one, rng.choice(levels, n)),
            "seldom": rng.choice(["no", "yes"], n, p=[0.97, 0.03]),
            "flag": (one == "u") ^ (rng.random(n) < 0.1),
            "y": 40.0 + 10.0 * (one == "v") + rng.normal(0.0, 8.0, n),
        }
    )
    table.loc[rng.random(n) < 0.12, "y"] = np.nan
    schema = dpm.Schema(
        *(dpm.Categorical(name, levels) for name in ("one", "other")),
        dpm.Categorical("seldom", ["no", "yes"]),
        dpm.Boolean("flag"),
        dpm.Numeric("y", 0, 100, missing="available"),
    )
    return table, schema, "y", ["one", "seldom", "flag"], "one"


def _tails() -> tuple[Any, dpm.Schema, str, list[str], str]:
    """Two columns with heavy tails, residuals with one, few rows."""
    rng = np.random.default_rng(2027)
    n = 1_500
    group, tail = rng.choice(["p", "q", "r"], n), rng.pareto(1.2, n) * 2e3
    table = pd.DataFrame(
        {
            "tail": np.minimum(tail, 1e6),
            "sizes": np.minimum(np.exp(rng.normal(0.0, 1.5, n)), 500.0),
            "group": group,
            "y": 3.0 * np.log1p(tail) + 2.0 * rng.standard_t(2.5, n) + (group == "q"),
        }
    )
    schema = dpm.Schema(
        *(dpm.Numeric(name, 0, most) for name, most in (("tail", 1e6), ("sizes", 500))),
        dpm.Categorical("group", ["p", "q", "r"]),
        dpm.Numeric("y", -20, 80),
    )
    return table, schema, "y", ["tail", "sizes", "group"], "group"


KINDS = ("plain", "pooled")
"""Releases of a table; of its two halves."""


def releases(seed: int, kinds: Sequence[str] = ("plain",)) -> Iterator[tuple[str, dpm.MomentRelease, Any]]:
    """Releases of the tables in turn, without end, with their names and tables."""
    rng = np.random.default_rng(seed)
    every = list(tables().items())
    for turn in range(10**6):
        name, (table, schema, *_) = every[turn % len(every)]
        kind = kinds[(turn + turn // len(every)) % len(kinds)]
        epsilon = float(np.exp(rng.uniform(math.log(0.3), math.log(10.0))))
        options: dict[str, Any] = {"epsilon": epsilon, "insecure_seed": int(rng.integers(2**31))}
        if rng.random() < 0.5:
            options["delta"] = 1e-6
        if rng.random() < 0.3:
            options["mechanism"] = "gaussian" if "delta" in options else "laplace"
        if rng.random() < 0.3:
            options["neighbors"] = "replace_one"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind == "pooled":
                yield f"{name} pooled {options}", _pooled(table, schema, options), (name, table, schema)
            else:
                yield f"{name} {options}", dpm.release(table, schema, **options), (name, table, schema)


def _pooled(table: Any, schema: dpm.Schema, options: dict[str, Any]) -> Any:
    halves = (table.iloc[: len(table) // 3], table.iloc[len(table) // 3 :])
    seed = options["insecure_seed"]
    parts = [
        dpm.release(half, schema, **(options | {"insecure_seed": seed + index, "dataset": f"part {index}"}))
        for index, half in enumerate(halves)
    ]
    return dpm.pool(parts)


def of_few_rows() -> list[dpm.MomentRelease]:
    """Releases of 90 rows, whose noise leaves neither shares that add up to one nor variances."""
    rng, levels = np.random.default_rng(5), [f"l{index}" for index in range(9)]
    table = pd.DataFrame(
        {
            "level": rng.choice(levels, 90),
            "seldom": np.where(rng.random(90) < 0.05, "yes", "no"),
            "y": rng.normal(50.0, 8.0, 90),
        }
    )
    table.loc[rng.random(90) < 0.1, "y"] = np.nan
    schema = dpm.Schema(
        dpm.Categorical("level", levels),
        dpm.Categorical("seldom", ["no", "yes"]),
        dpm.Numeric("y", 0, 100, missing="available"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [dpm.release(table, schema, epsilon=e, insecure_seed=seed) for seed, e in ((3, 1.0), (4, 3.0))]


# What contradicts ----------------------------------------------------------------------------------------------------------


class Found(list[str]):
    """Contradictions, and the number of rows that were read."""

    rows = 0

    def unless(self, agrees: Any, words: str) -> None:
        if not bool(agrees):
            self.append(words)


def number_of(cell: str) -> float:
    """The number that a cell shows; NaN for a word."""
    text = cell.replace("−∞", "-inf").replace("∞", "inf")
    if text in ("inf", "-inf"):
        return float(text)
    return float(text.replace(",", "")) if _NUMBER.fullmatch(text) else math.nan


def interval_of(cell: str) -> tuple[float, float]:
    low, _, high = cell.strip("[]").partition(", ")
    return number_of(low), number_of(high)


def step_of(cell: str) -> float:
    """The unit of the last digit of a number; a whole number may have been rounded to tens."""
    digits = cell.split("e")[0]
    power = int(cell.split("e")[1]) if "e" in cell else 0
    after = len(digits.partition(".")[2])
    return float(10.0 ** (power - after))


def no_finer_than_its_error(found: Found, where: str, cell: str, error: float) -> None:
    """At most two digits of the error are shown: the last digit is a hundredth of it or more."""
    if math.isfinite(number_of(cell)) and math.isfinite(error) and error > 0.0 and number_of(cell) != 0.0:
        found.unless(step_of(cell) >= 0.0099 * error or "." not in cell, f"{where}: {cell} is finer than ± {error:.3g}")


def described(release: dpm.MomentRelease, found: Found) -> None:
    answer, lower_upper = release.describe(), release.describe().conf_int()
    assert answer.mean is not None
    assert answer.standard_deviation is not None
    _, *rows = answer.table()
    found.rows += len(rows)
    covariance = release.covariance_frame()
    low, high = answer.bounds
    variances = np.diag(covariance.to_numpy())
    for row in rows:
        name, index = row[0], answer.feature_names.index(row[0])
        mean, deviation = float(answer.mean[index]), float(answer.standard_deviation[index])
        ends = lower_upper[index]
        found.unless(
            not ends[0] > mean + TOLERANCE * (high[index] - low[index])
            and not ends[1] < mean - TOLERANCE * (high[index] - low[index]),
            f"mean of {name} outside {ends}: {mean}",
        )
        found.unless(low[index] - 1e-9 <= mean <= high[index] + 1e-9, f"mean of {name} beyond its bounds")
        found.unless(not deviation < 0.0, f"negative deviation of {name}")
        found.unless(
            not deviation > (high[index] - low[index]) / 2.0 * (1.0 + 1e-9), f"deviation of {name} beyond its bounds"
        )
        found.unless(np.isclose(deviation**2, variances[index], rtol=1e-9), f"deviation and covariance of {name}")
        below = row[1].startswith("below ")
        found.unless(below or row[1] in ("noise", "–") or math.isfinite(number_of(row[1])), f"mean of {name}: {row[1]}")
        if below:
            shown_as(
                found,
                f"mean of {name}",
                row[1].removeprefix("below "),
                max(float(ends[1]), float(answer.mean_noise[index])),
            )
            found.unless(ends[0] <= 0.0 or answer.share_is_unclear[index], f"mean of {name}: {row[1]}, {ends}")
        no_finer_than_its_error(found, f"mean of {name}", row[1], float(answer.mean_noise[index]))
        no_finer_than_its_error(found, f"deviation of {name}", row[3], float(answer.standard_deviation_noise[index]))
        most = number_of(row[3].removeprefix("below "))
        if row[3].startswith("below "):
            found.unless(deviation <= 1.06 * most, f"deviation of {name}: {row[3]}, {deviation}")
            found.unless(
                most <= (high[index] - low[index]) / 2.0 * 1.06, f"deviation of {name}: {row[3]} beyond its bounds"
            )
        elif math.isfinite(most):
            shown_as(found, f"deviation of {name}", row[3], deviation)
    for row in rows:
        part = answer[row[0]].table()[1]
        found.unless(part == row, f"the part of {row[0]} reads otherwise: {part}, {row}")


def told_apart(answer: Any, found: Found, where: str, value: str, ends: tuple[str, str] = ("lower", "upper")) -> None:
    """Every interval that is printed is one, holds the printed number, and 0 where the interval does."""
    frame, (head, *rows) = answer.to_pandas(), answer.table()
    at = next(index for index, name in enumerate(head) if name.endswith(" %"))
    order = answer._shown_rows or range(len(frame))
    lows, highs, numbers = (frame[name].astype(float).tolist() for name in (*ends, value))
    for row, index in zip(rows, order, strict=False):
        found.rows += 1
        low, high, number = lows[index], highs[index], numbers[index]
        shown = interval_of(row[at])
        if not math.isfinite(low + high):
            continue
        found.unless(low == high or shown[0] < shown[1], f"{where}: [{low}, {high}] is printed as the point {row[at]}")
        found.unless(low < high or abs(low) == 1.0, f"{where}: the interval [{low}, {high}] is a point")
        found.unless(not low <= 0.0 <= high or shown[0] <= 0.0 <= shown[1], f"{where}: 0 in [{low}, {high}], {row}")
        printed = number_of(
            row[list(head).index({"correlation": "correlation", "mean": "mean"}.get(value, "estimate"))]
        )
        found.unless(math.isnan(printed) or shown[0] <= printed <= shown[1], f"{where}: {row}")
        found.unless(math.isfinite(number) or math.isnan(printed), f"{where}: {row} shows a number, and is {number}")


def of_any_budget(epsilon: float, seed: int) -> Found:
    """Answers of a table with a column of many levels, at a budget from .1 to 100."""
    found, rng = Found(), np.random.default_rng(seed)
    levels = [f"s{index}" for index in range(59)]
    table = pd.DataFrame(
        {
            "state": rng.choice(levels, 3_000),
            "income": rng.lognormal(10.0, 0.7, 3_000).clip(0.0, 250_000.0),
            "x": rng.normal(0.0, 1.0, 3_000).clip(-4.0, 4.0),
            "arm": rng.choice(["drug", "placebo"], 3_000),
        }
    )
    schema = dpm.Schema(
        dpm.Categorical("state", levels),
        *(dpm.Numeric("income", 0, 250_000), dpm.Numeric("x", -4, 4), dpm.Categorical("arm", ["drug", "placebo"])),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = dpm.release(table, schema, epsilon=epsilon, insecure_seed=seed)
    described(release, found)
    for by in ("state", "arm"):
        means = release.group_means(by, of=["income", "x"])
        told_apart(means, found, f"means by {by}", "mean")
        told_apart(means.differences, found, f"differences by {by}", "difference")
    told_apart(release.correlations(), found, "correlations", "correlation")
    correlated(release.correlations(["income", "x", "arm"]), found, "correlation")
    summarized(release.pca(), found)
    fitted(release, table, "income", ["x", "arm"], found)
    return found


def in_unit(found: Found, values: Any, where: str) -> None:
    found.unless((np.asarray(values) >= -TOLERANCE).all() and (np.asarray(values) <= 1.0 + TOLERANCE).all(), where)


def verdict_agrees(found: Found, where: str, verdict: str, estimate: float, ends: tuple[float, float]) -> None:
    sign = SIGNS.get(verdict)
    if sign is not None:
        found.unless(
            estimate * sign > 0.0 and min(end * sign for end in ends) > 0.0, f"{where}: {verdict}, {estimate} in {ends}"
        )
    if verdict in (NOT_ESTIMABLE, NOT_ESTIMABLE_ROWS):
        found.unless(math.isnan(estimate), f"{where}: {verdict}, and {estimate}")


def correlated(answer: Any, found: Found, what: str) -> None:
    frame, (_, *rows) = answer.to_pandas(), answer.table()
    found.rows += len(rows)
    for (one, other), row in frame.iterrows():
        where = f"{what} of {one} and {other}"
        ends = float(row["lower"]), float(row["upper"])
        value, p_value = float(row["correlation"]), float(row["p_value"])
        found.unless(
            math.isnan(value) or ends[0] - TOLERANCE <= value <= ends[1] + TOLERANCE, f"{where}: {value} outside {ends}"
        )
        found.unless(not abs(value) > 1.0 + TOLERANCE, f"{where}: {value}")
        if math.isfinite(p_value):
            excludes = ends[0] > 0.0 or ends[1] < 0.0
            found.unless((p_value < 0.05) == excludes or abs(p_value - 0.05) < 1e-6, f"{where}: p {p_value}, {ends}")
        verdict_agrees(found, where, row["verdict"], value, ends)
        found.unless(not row["holds_among_all"] or row["verdict"] in SIGNS, f"{where}: holds, {row['verdict']}")
        if row["verdict"] and math.isfinite(p_value):
            found.unless((row["verdict"] in SIGNS) == (p_value < 0.05), f"{where}: {row['verdict']}, p {p_value}")
        i, j = answer.feature_names.index(one), answer.feature_names.index(other)
        found.unless(value == answer.correlation[i, j] or math.isnan(value), f"{where}: frame and array")
    for pair, value, privacy, sampling, interval, verdict, _ in rows:
        ends = interval_of(interval)
        shown = number_of(value)
        found.unless(math.isnan(shown) or ends[0] <= shown <= ends[1], f"{what} of {pair}: {value} outside {interval}")
        verdict_agrees(
            found,
            f"text of {what} of {pair}",
            verdict,
            shown,
            (ends[0] or 1e-9 * SIGNS.get(verdict, 0.0), ends[1] or 1e-9 * SIGNS.get(verdict, 0.0)),
        )
        no_finer_than_its_error(found, f"{what} of {pair}", value, math.hypot(number_of(privacy), number_of(sampling)))


def fitted(
    release: dpm.MomentRelease, table: Any, target: str, regressors: Sequence[str], found: Found, **options: Any
) -> None:
    fit = release.ols(target, list(regressors), **options)
    frame, params, ends = fit.to_pandas(), fit.params, fit.conf_int()
    (_, *rows) = fit.table()
    found.rows += len(rows)
    p_values, errors = fit.pvalues, fit.bse
    verdicts = dict(zip(params.index, fit.verdict, strict=True))
    for index, (name, row) in enumerate(zip(params.index, rows, strict=True)):
        where, estimate = f"coefficient of {name}", fit.estimates[index]
        value, interval = float(params.iloc[index]), tuple(map(float, ends.iloc[index]))
        verdict = verdicts.get(name, "")
        found.unless(row[0] == name, f"{where}: row {row[0]}")
        if not math.isfinite(interval[0] + interval[1]):
            found.unless(
                math.isnan(p_values.iloc[index]) and math.isnan(errors.iloc[index]),
                f"{where}: numbers without an interval",
            )
            found.unless(not any(math.isfinite(number_of(cell)) for cell in row[1:]), f"{where}: {row}")
            found.unless(verdict in ("", NOT_ESTIMABLE, NOISE_UNKNOWN), f"{where}: {verdict}")
            continue
        found.unless(interval[0] <= value <= interval[1], f"{where}: {value} outside {interval}")
        excludes = interval[0] > 0.0 or interval[1] < 0.0
        if index or not fit.with_intercept:
            found.unless((p_values.iloc[index] < 0.05) == excludes, f"{where}: p {p_values.iloc[index]}, {interval}")
        found.unless(
            np.isclose(errors.iloc[index] ** 2, estimate.privacy**2 + estimate.sampling**2), f"{where}: errors"
        )
        verdict_agrees(found, where, verdict, value, (interval[0], interval[1]))
        found.unless(not index or (verdict in SIGNS) == excludes, f"{where}: {verdict}, {interval}")
        shown = [number_of(cell) for cell in row[1:]]
        found.unless(shown[6] <= shown[0] <= shown[7], f"{where}: {row}")
        no_finer_than_its_error(found, where, row[1], float(errors.iloc[index]))
        if name in frame.index:
            found.unless(
                math.isclose(float(frame.loc[name, "coef"]), value, rel_tol=1e-12, abs_tol=1e-300), f"{where}: frame"
            )
    explained_variance(fit, found)
    if math.isfinite(fit.fvalue):
        test = fit.equations.overall_test
        p_value = float(f_distribution.sf(fit.fvalue, test.numerator, min(test.denominator, 1e12)))
        found.unless(math.isclose(p_value, fit.f_pvalue, abs_tol=1e-6), f"F {fit.fvalue}: {p_value}, {fit.f_pvalue}")
    printed = re.search(r"overall test: .*p ([=<]) ([\d.]+)", str(fit))
    if printed and printed[1] == "=":
        found.unless(abs(float(printed[2]) - fit.f_pvalue) < 6e-4, f"overall p {printed[2]}, {fit.f_pvalue}")
    predicted(fit, table, found)
    contrasted(fit, found)


def predicted(fit: Any, table: Any, found: Found) -> None:
    rows = {name: list(np.asarray(table[name])[:4]) for name in fit_columns(fit)}
    answer = fit.get_prediction(rows)
    _, *lines = answer.table()
    found.rows += len(lines)
    means = np.asarray(answer.predicted_mean)
    plain = np.asarray(fit.predict(pd.DataFrame(rows)))
    line, row = answer.limits(), answer.limits(obs=True)
    own = sum(float(value) * regressor_of(name, rows) for name, value in fit.params.items())
    found.unless(
        not np.isfinite(own).all() or np.allclose(plain, own, rtol=1e-9), f"predict() and params: {plain}, {own}"
    )
    for index in range(len(plain)):
        bounded = np.isfinite(line[index]).all()
        where = f"prediction {index} of {fit.target}"
        if bounded:
            found.unless(
                np.isclose(means[index], plain[index], rtol=1e-9), f"{where}: {means[index]} and {plain[index]}"
            )
            found.unless(line[index, 0] <= means[index] <= line[index, 1], f"{where}: {means[index]} in {line[index]}")
            found.unless(
                row[index, 0] <= line[index, 0] and row[index, 1] >= line[index, 1],
                f"{where}: a row is surer than the line",
            )
        else:
            found.unless(
                math.isnan(answer.to_pandas()["mean"].iloc[index]), f"{where}: {means[index]} without an interval"
            )
            found.unless(math.isnan(number_of(lines[index][1])), f"{where}: {lines[index]}")
        shown, ends = number_of(lines[index][1]), interval_of(lines[index][3])
        found.unless(not bounded or ends[0] <= shown <= ends[1], f"{where}: {lines[index]}")


def regressor_of(name: str, rows: dict[str, list[Any]]) -> np.ndarray:
    """The values of a regressor: a column, a level, or a product of two."""
    if name == "(intercept)":
        return np.ones(4)
    factors = name.split(":")
    if len(factors) > 1:
        return np.asarray(np.prod([regressor_of(factor, rows) for factor in factors], axis=0))
    column, equals, level = name.partition("=")
    return np.array([str(value) == level if equals else float(value) for value in rows[column]], dtype=float)


def fit_columns(fit: Any) -> list[str]:
    names = {feature.split("=")[0] for feature in fit.features}
    names = {part for name in names for part in name.split(":")}
    return [name for name in fit.schema.names if name in names]


def contrasted(fit: Any, found: Found) -> None:
    """A coefficient tested as a contrast says what the table says."""
    for name, estimate in list(zip(fit.params.index, fit.estimates, strict=True))[1:4]:
        again = fit.t_test(f"`{name}`").estimates[0]
        same = (again.estimable == estimate.estimable) and (
            not estimate.estimable
            or np.allclose(
                [again.value, again.lower, again.upper], [estimate.value, estimate.lower, estimate.upper], rtol=1e-5
            )
        )
        found.rows += 1
        found.unless(same, f"contrast of {name}: {again}, {estimate}")


def explained_variance(fit: Any, found: Found) -> None:
    """R² is a number exactly where one is printed, and then the one in the interval and the JSON."""
    low, high = fit.r_squared_interval()
    said, value = fit.r_squared_text, fit.r_squared
    in_unit(found, [low, high], f"R² in {low}, {high}")
    found.unless(said.startswith("R² = ") == math.isfinite(value), f"{said}: {value}")
    written = json.loads(json.dumps(fit.to_dict()))["r_squared"]
    found.unless(written == (value if math.isfinite(value) else None), f"{said}: {written} in the JSON")
    if math.isfinite(value):
        found.unless(low - TOLERANCE <= value <= high + TOLERANCE, f"{fit.method}: R² {value} in {low}, {high}")
        shown_as(found, "R²", said.removeprefix("R² = ").partition(" ")[0], value)


def penalized(fit: Any, found: Found) -> None:
    head, *rows = fit.table()
    found.rows += len(rows)
    found.unless(not any(head[2:]) and not any("".join(row[2:]) for row in rows), f"a penalized fit shows {head}")
    explained_variance(fit, found)


def compared(release: dpm.MomentRelease, by: str, target: str, found: Found) -> None:
    means = release.group_means(by, of=[target])
    differences = means.differences
    _, *rows = means.table()
    found.rows += len(rows) + len(differences.pairs)
    for index, row in enumerate(rows):
        value, ends = float(means.mean[0, index]), (float(means.lower[0, index]), float(means.upper[0, index]))
        found.unless(math.isnan(value) or ends[0] <= value <= ends[1], f"mean of {row[1]}: {value} in {ends}")
        shown = number_of(row[4])
        printed = interval_of(row[7])
        found.unless(math.isnan(shown) or printed[0] <= shown <= printed[1], f"mean of {row[1]}: {row}")
        no_finer_than_its_error(
            found,
            f"mean of {row[1]}",
            row[4],
            math.hypot(means.privacy_noise[0, index], means.sampling_noise[0, index]),
        )
        found.unless(float(means.counts[index]) >= 0.0, f"rows of {row[1]}")
    for index, pair in enumerate(differences.pairs):
        value, ends = (
            float(differences.difference[0, index]),
            (float(differences.lower[0, index]), float(differences.upper[0, index])),
        )
        verdict, p_value = differences.verdict[0][index], float(differences.p_value[0, index])
        where = f"difference of {pair}"
        found.unless(
            math.isnan(value) or ends[0] - TOLERANCE * abs(ends[0]) <= value <= ends[1] + TOLERANCE * abs(ends[1]),
            f"{where}: {value} in {ends}",
        )
        if math.isfinite(p_value):
            found.unless(
                (p_value < 0.05) == (ends[0] > 0.0 or ends[1] < 0.0) or abs(p_value - 0.05) < 1e-6,
                f"{where}: p {p_value}, {ends}",
            )
        if math.isfinite(value + p_value):
            found.unless(verdict.endswith(" higher") == (p_value < 0.05), f"{where}: {verdict}, p {p_value}")
        if verdict.endswith(" higher"):
            sign = 1.0 if verdict == f"{pair[0]} higher" else -1.0
            found.unless(
                min(sign * end for end in ends) > 0.0 and value * sign > 0.0, f"{where}: {verdict}, {value} in {ends}"
            )
    test = release.anova(target, by)
    between, within = test.sum_of_squares
    found.rows += 1
    found.unless(between >= 0.0 and within >= 0.0, f"sums of squares {between}, {within}")
    in_unit(found, [] if math.isnan(test.eta_squared) else [test.eta_squared], f"eta² {test.eta_squared}")
    for row, value, error in zip(test.table()[1:], (between, within, between + within), test.noise, strict=True):
        no_finer_than_its_error(found, f"anova, {row[0]}", row[1], error)
        shown_as(found, f"anova, {row[0]}", row[1], value)
    if math.isfinite(test.p_value):
        found.unless(
            (test.verdict == "groups differ") == (test.p_value < 0.05), f"anova: {test.verdict}, p {test.p_value}"
        )
    names = list(means.groups)
    if len(names) == 2:
        two = release.t_test(target, by)
        found.rows += 1
        if math.isfinite(two.p_value):
            excludes = two.lower > 0.0 or two.upper < 0.0
            found.unless((two.p_value < 0.05) == excludes, f"t-test: p {two.p_value} in [{two.lower}, {two.upper}]")
            found.unless(
                math.isnan(two.difference) or two.lower <= two.difference <= two.upper,
                "t-test: difference outside its interval",
            )
            if len(two.means) == 2 and math.isfinite(two.difference):
                found.unless(
                    np.isclose(two.means[0] - two.means[1], two.difference, rtol=1e-6, atol=1e-9),
                    f"t-test: {two.means} and {two.difference}",
                )


def feature_of(release: dpm.MomentRelease, column: str) -> str:
    return next(each.feature_names[0] for each in release.schema.columns if each.name == column)


def tabulated(release: dpm.MomentRelease, by: str, other: str, found: Found) -> None:
    answer = release.cross_table(by, other)
    found.rows += len(answer.rows)
    found.unless((answer.counts >= 0).all(), f"counts of {by} and {other}")
    for name, opposite, margin in zip((by, other), (other, by), answer.margins, strict=True):
        means = release.group_means(name, of=[feature_of(release, opposite)])
        found.unless((means.counts == margin).all(), f"rows by {name}: {means.counts}, in the cross table {margin}")
    _, *rows = answer.table()
    shown = np.array([[number_of(re.split(" ± | \\(", cell)[0]) for cell in row[1:]] for row in rows])
    for (i, j), count in np.ndenumerate(answer.counts):
        cell = rows[i][1 + j]
        if cell.startswith("below "):  # what its margins add up
            found.unless(count < number_of(cell.removeprefix("below ")), f"{by} and {other}: {cell}, {count}")
            alone = [np.isfinite(shown[i, :-1]).sum(), np.isfinite(shown[:-1, j]).sum()]
            found.unless(
                alone[0] < len(answer.labels) - 1 and alone[1] < len(answer.rows) - 1,
                f"{by} and {other}: the margins give what {cell} hides",
            )
        else:
            found.unless(shown[i, j] == count, f"{by} and {other}: {cell}, {count}")
    shown[:-1, :-1] = answer.counts  # what its margins add up
    if np.isfinite(shown).all():
        found.unless((shown[:-1, :-1].sum(axis=0) == shown[-1, :-1]).all(), f"{by} and {other}: columns do not add up")
        found.unless((shown[:, :-1].sum(axis=1) == shown[:, -1]).all(), f"{by} and {other}: rows do not add up")
        found.unless(shown[-1, -1] == answer.n_rows, f"{by} and {other}: the total is not the number of rows")
    if math.isfinite(answer.p_value):
        found.unless(
            ("dependent" in answer.test_text and "not" not in answer.verdict) == (answer.p_value < 0.05),
            f"{answer.test_text}",
        )


def counts_agree(release: dpm.MomentRelease, by: str, found: Found) -> None:
    """Rows of groups, shares of levels, and shares of classes are of the same rows."""
    feature = next(each.feature_names[0] for each in release.schema.columns if each.name != by)
    counts = release.group_means(by, of=[feature]).counts
    mean = dict(zip(release.feature_names, np.asarray(release.describe().mean).tolist(), strict=True))
    (column,) = (each for each in release.schema.columns if each.name == by)
    shares = [1.0 - mean[by], mean[by]] if by in mean else [mean[name] for name in column.feature_names]
    found.rows += len(counts)
    apart = np.abs(np.array(shares) * release.n_rows - counts)
    found.unless(apart.max() <= 1.0 + 1e-6, f"shares of {by}: {shares} of {release.n_rows}, {counts}")
    found.unless(abs(sum(shares) - 1.0) < 1e-6, f"shares of {by} add up to {sum(shares)}")
    try:
        priors = release.lda(by).priors
    except dpm.InputError:
        return
    kept = np.where(priors > 0.0, counts, 0) / max(int(counts[priors > 0.0].sum()), 1)
    found.unless(np.abs(priors - kept).max() <= 2.0 / max(release.n_rows, 1), f"classes of {by}: {priors}, {kept}")


def summarized(answer: Any, found: Found) -> None:
    found.rows += len(answer.explained_variance)
    shares = answer.explained_variance_ratio
    in_unit(found, shares[np.isfinite(shares)], "shares of components")
    found.unless(np.nansum(shares) <= 1.0 + 1e-9, f"shares of components add up to {np.nansum(shares)}")
    variances = answer.explained_variance
    found.unless((variances[np.isfinite(variances)] >= 0.0).all(), "negative variances of components")
    ends = answer.conf_int()
    known = np.isfinite(ends).all(axis=1) & np.isfinite(variances)
    inside = (ends[:, 0] <= variances * (1 + 1e-9)) & (variances <= ends[:, 1] * (1 + 1e-9))
    found.unless(inside[known].all(), f"variances of components {variances} in {ends}")
    crossed = answer.components @ answer.components.T
    found.unless(np.allclose(crossed, np.eye(len(crossed)), atol=1e-8), "components are not orthonormal")


def classified(release: dpm.MomentRelease, by: str, found: Found) -> None:
    answer = release.lda(by)
    _, *rows = answer.table()
    found.rows += len(rows)
    in_unit(found, answer.priors, "shares of classes")
    found.unless(abs(answer.priors.sum() - 1.0) < 1e-9, "shares of classes do not add up to one")
    if math.isfinite(answer.p_value):
        found.unless((answer.verdict == "groups differ") == (answer.p_value < 0.05), f"discriminant: {answer.verdict}")
    for row, errors in zip(rows[2:], answer.standard_errors.T, strict=True):
        for cell, error in zip(row[1:], errors.tolist(), strict=True):
            found.unless(("±" in cell) == math.isfinite(error), f"coefficient of {row[0]}: {cell}")
            no_finer_than_its_error(found, f"coefficient of {row[0]}", cell.split(" ± ")[0], error)


def reported(release: dpm.MomentRelease, formula: str, groups: list[tuple[str, str]], found: Found) -> None:
    """A finding of a report is one of the answer by itself."""
    answers = Comparisons.of(release, [formula], groups, 0.95)
    if answers.correlations is None:
        return
    page = answers.with_cutoff(largest_holding(*answers.comparisons, 0.95))
    assert page.correlations is not None
    stated = [text for fit in page.fits for text in sections.coefficient_findings(release, fit)]
    stated += [text for means in page.means for text in sections.difference_findings(release, means)]
    chart = chart_of_findings(page.correlations, release.noise, {})
    for line in chart.lines:
        low, high = (number_of(end.replace("−", "-")) for end in line.interval.split(" to "))
        value = number_of(line.number.lstrip("+").replace("−", "-"))
        found.unless(low * high >= 0.0 and low <= value <= high, f"report: clear, and {line}")
    found.rows += len(stated)
    alone = Comparisons.of(release, [formula], groups, 0.95)
    pairs = [(page.correlations, alone.correlations), *zip(page.fits, alone.fits, strict=True)]
    pairs += [(one.differences, other.differences) for one, other in zip(page.means, alone.means, strict=True)]
    for one, other in pairs:
        found.unless(one.verdict == other.verdict, f"report: {one.verdict}, by itself {other.verdict}")
        signs = ~np.isin(np.array(one.verdict, dtype=object), [*UNCLEAR, ""])
        found.unless((signs | ~np.asarray(one.holds_among_all)).all(), f"report: {one} holds without a verdict")
    for text in stated:
        interval = re.search(r"interval ([-−\d.,e∞]+) to ([-−\d.,e∞]+)\)", text)
        if interval:
            low, high = (number_of(end.rstrip(".").replace("−", "-").replace("-∞", "−∞")) for end in interval.groups())
            found.unless(low > 0.0 or high < 0.0 or low == 0.0 or high == 0.0, f"report: clear, and {text}")


def of_two_levels(release: dpm.MomentRelease, found: Found) -> None:
    """The correlations of both levels of a column are each other's opposites."""
    answer = release.correlations(release.feature_names)
    names, described = answer.feature_names, release.describe()
    for second, first in described.opposites.items():
        one, other = (described.conf_int()[names.index(name)] for name in (first, second))
        found.unless(
            np.allclose(one, 1.0 - other[::-1], atol=1e-9, equal_nan=True), f"limits of {first}: {one}, {other}"
        )
        listed = [row[0] for row in described.table()]
        found.unless(first in listed and second not in listed, f"{listed}: one column of two levels")
        found.unless(second not in release.correlations().feature_names, f"{second} is correlated by itself")
    for column in release.schema.columns:
        if not isinstance(column, dpm.Categorical) or len(column.levels) != 2:
            continue
        one, other = (names.index(name) for name in column.feature_names)
        rest = [index for index in range(len(names)) if index not in (one, other)]
        first, second = answer.correlation[one, rest], answer.correlation[other, rest]
        found.rows += len(rest)
        known = np.isfinite(first) & np.isfinite(second)
        off = np.abs(first + second)[known]
        found.unless((off < 5e-4).all(), f"levels of {column.name}: correlations differ by {off.max(initial=0.0):.3f}")


def stored(
    release: dpm.MomentRelease,
    printed: list[str],
    again: Callable[[dpm.MomentRelease], list[str]],
    folder: Path,
    found: Found,
) -> None:
    path = folder / "release.json"
    path.unlink(missing_ok=True)
    release.save(path)
    loaded = dpm.load(path)
    assert isinstance(loaded, dpm.MomentRelease)
    found.unless(printed == again(loaded), "a file prints other answers")


def one_estimate(
    name: str, epsilon: float, seed: int, found: Found, levels: Sequence[float] = (0.5, 0.8, 0.95, 0.99)
) -> None:
    """Find quantities with several estimates: in several answers, or at several levels."""
    table, schema, target, regressors, by = tables()[name]
    release = dpm.release(table, schema, epsilon=epsilon, insecure_seed=seed)
    names, deviations = release.feature_names, np.sqrt(np.diag(release.covariance))
    y = names.index(target)
    numbers = [index for index, feature in enumerate(names) if feature in regressors]

    def same(where: str, *values: Any) -> None:
        found.rows += 1
        known = [value for value in map(float, values) if math.isfinite(value)]
        found.unless(not known or np.allclose(known, known[0], rtol=1e-8, atol=1e-10), f"{where}: {values}")

    of_release = release.group_means(by, [target], level=0.5)
    for level in levels:
        answer = release.correlations(level=level)
        at = [names.index(feature) for feature in answer.feature_names]
        for i, j in zip(*np.tril_indices(len(at), -1), strict=True):
            same(f"{at[i]} ~ {at[j]} at {level}", answer.correlation[i, j], release.correlation[at[i], at[j]])
        for x in numbers:
            slope = release.ols(target, [names[x]], level=level)
            alone = release.partial_correlation([names[x], target], level=level).correlation[0, 1]
            times = deviations[x] / deviations[y]
            of_slopes = (float(slope.params.iloc[1]) * times, float(slope.coefficients[0]) * times)
            same(f"{names[x]} ~ {target} at {level}", release.correlation[x, y], alone, *of_slopes)
        means = release.group_means(by, [target], level=level)
        fit = release.ols(target, [by], level=level)
        ends = fit.conf_int()
        for index, group in enumerate(means.groups):
            same(f"mean of {group} at {level}", means.mean[0, index], of_release.mean[0, index])
            if group in fit.features and not fit.too_few:
                reference = means.groups.index(fit.references[by])
                same(f"{group} at {level}", fit.params[group], means.mean[0, index] - means.mean[0, reference])
        low, high = (float(end[y]) for end in schema.feature_bounds)
        finite = np.isfinite(ends).all(axis=1)
        inside = (ends["lower"] >= [low, *[low - high] * len(fit.features)]) & (
            ends["upper"] <= [high, *[high - low] * len(fit.features)]
        )
        found.unless(bool((inside | ~finite).all()), f"beyond the bounds at {level}: {ends}")


def found_in(name: str, release: dpm.MomentRelease, table: Any, folder: Path) -> Found:
    """Every contradiction in the answers of one release."""
    found = Found()
    _, schema, target, regressors, by = tables()[name]
    table = table.dropna()

    def texts(each: dpm.MomentRelease) -> list[str]:
        answers = [each.describe(), each.correlations(), each.ols(target, list(regressors))]
        answers += [each.group_means(by, of=[target])] if by else []
        return [str(answer) for answer in answers]

    described(release, found)
    correlated(release.correlations(), found, "correlation")
    correlated(release.partial_correlation(), found, "partial correlation")
    fitted(release, table, target, regressors, found)
    for fit in (release.ridge(target, list(regressors)), release.lasso(target, list(regressors), alpha=0.05)):
        penalized(fit, found)
    summarized(release.pca(), found)
    of_two_levels(release, found)
    if by:
        compared(release, by, target, found)
        classified(release, by, found)
        categories = [column.name for column in schema.columns if isinstance(column, dpm.Categorical | dpm.Boolean)]
        for one, other in zip(categories, [*categories[1:], categories[0]], strict=True):
            counts_agree(release, one, found)
            if one != other:
                tabulated(release, one, other, found)
    formula = f"`{target}` ~ " + " + ".join(f"`{each}`" for each in regressors)
    reported(release, formula, [(by, target)] if by else [], found)
    stored(release, texts(release), texts, folder, found)
    return found


def of_few_rows_contradict() -> Found:
    found = Found()
    for release in of_few_rows():
        described(release, found)
        correlated(release.correlations(release.feature_names), found, "correlation")
        summarized(release.pca(columns=release.feature_names), found)
        of_two_levels(release, found)
    return found


def search(
    n_rows: int, seed: int, folder: Path, kinds: Sequence[str] = ("plain",), *, to_the_end: bool = True
) -> tuple[int, list[str]]:
    """Rows read, n or a little more, or up to the first fault; and what contradicts among them."""
    rows, contradictions = 0, []
    for words, release, (name, table, _) in releases(seed, kinds):
        found = found_in(name, release, table, folder)
        rows += found.rows
        contradictions += [f"{words}: {each}" for each in found]
        if rows >= n_rows or (contradictions and not to_the_end):
            return rows, contradictions
    raise AssertionError


# Classifiers, groups, counts, forecasts and pictures --------------------------------------------------------------------------


def written_alike(answer: Any, found: Found, where: str, tables: Sequence[Any] = ()) -> None:
    """Text and HTML show the cells of the table."""
    rows = [[str(cell) for cell in row] for table in (tables or (answer.table(),)) for row in table]
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", answer._repr_html_())
    shown = [html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in cells]
    found.unless(shown == [cell for row in rows for cell in row], f"{where}: HTML and table")
    lines = {" ".join(line.split()) for line in str(answer).splitlines()}
    found.unless(all(" ".join(" ".join(row).split()) in lines for row in rows), f"{where}: text and table")


def shown_as(found: Found, where: str, cell: str, value: float) -> None:
    """A cell's number is the value, to the cell's digits, or an upper limit of it."""
    if "below " in cell:
        found.unless(number_of(cell.split()[-1]) >= value, f"{where}: {cell}, and {value}")
        return
    if cell in ("noise", "–", "none"):
        return
    shown = number_of(cell.strip("~±% "))
    step = step_of(cell.strip("~±% ").replace(",", "")) * (0.01 if cell.endswith("%") else 1.0)
    shown *= 0.01 if cell.endswith("%") else 1.0
    if "." not in cell and shown != 0.0:  # rounded to tens, or hundreds
        step *= 10.0 ** (len(cell.strip("~±% ")) - len(cell.strip("~±% ").rstrip("0,")))
    near = abs(shown - value) <= 0.501 * step
    found.unless(math.isnan(shown) or near, f"{where}: {cell} and {value}")


def grouped(groups: dpm.GroupReleases, found: Found) -> None:
    """Groups, and the classifier of them, are what each group's release says of itself."""
    described = [release.describe() for release in groups.values()]
    card = html.unescape(groups._repr_html_())
    for (level, release), each in zip(groups.items(), described, strict=True):
        found.rows += 1
        found.unless(f">{level}</td>" in card and f">{each.rows_text}</td>" in card, f"rows of group {level}")
        known = not each.rows_text.startswith("not distinguishable from 0")
        same = number_of(each.rows_text.split(" ")[0]) == release.n_rows
        found.unless(same or not known, f"rows of {level}: {each.rows_text}")
    answer = groups.naive_bayes()
    written_alike(answer, found, "naive Bayes")
    frame, (_, shares, *rows) = answer.to_pandas(), answer.table()
    found.unless(abs(answer.priors.sum() - 1.0) < 1e-9, "shares of classes do not add up to one")
    for index, (cell, share) in enumerate(zip(shares[1:], answer.shares.tolist(), strict=True)):
        shown_as(found, f"share of {answer.classes[index]}", cell, share)
        found.unless((cell == "noise") == (share == 0.0), f"share {cell}, {share}")
    rows_of = np.array([release.n_rows for release in groups.values()], dtype=float) * (answer.priors > 0.0)
    if rows_of.any():
        apart = np.abs(answer.priors - rows_of / rows_of.sum()).max()
        found.unless(apart <= len(rows_of) / rows_of.sum(), f"priors {answer.priors}, rows {rows_of}")
    found.unless(("never predicted" in str(answer)) == bool((answer.priors == 0.0).any()), "classes never predicted")
    found.rows += len(rows)
    for place, (name, *cells) in enumerate(rows):
        for index, cell in enumerate(cells):
            where, mean = f"naive Bayes, {name} of {answer.classes[index]}", float(answer.means[index, place])
            own = described[index].feature_names.index(name)
            told, error = described[index].mean, float(described[index].mean_noise[own])
            assert told is not None
            near = 1e-9 + 1e-9 * abs(mean) + (error if answer.is_share[place] else 0.0)
            hidden = bool(described[index].mean_is_noise[own])
            found.unless((cell == "noise") == hidden, f"{where}: {cell}, noise is {hidden}")
            if hidden:
                continue
            found.unless(abs(float(told[own]) - mean) <= near, f"{where}: {mean}, described {told[own]}")
            shown = cell.split(" ± ")[0]
            if shown == "0":
                found.unless(abs(mean) <= error, f"{where}: 0 and {mean} ± {error}")
            else:
                shown_as(found, where, shown, mean)
            no_finer_than_its_error(found, where, shown.rstrip("%"), error * (100.0 if "%" in cell else 1.0))
            found.unless(float(frame[f"mean {name}"].iloc[index]) == mean, f"{where}: frame")
            if not answer.is_share[place]:
                shown_as(found, where, cell.split(" ± ")[1], math.sqrt(answer.variances[index, place]))
                found.unless(answer.variances[index, place] >= error**2, f"{where}: surer than its mean")


def of_each_group(name: str, groups: dpm.GroupReleases, found: Found) -> None:
    """Answers of the release of each group."""
    table, _, target, regressors, by = tables()[name]
    for release in groups.values():
        described(release, found)
        correlated(release.correlations(), found, "correlation")
        correlated(release.partial_correlation(), found, "partial correlation")
        summarized(release.pca(), found)
        of_two_levels(release, found)
        fitted(release, table.dropna(), target, [each for each in regressors if each != by], found)


def counted(release: dpm.CountsRelease, found: Found) -> None:
    """Counts, margins, shares, intervals and tests of tables."""
    for by in release.by:
        answer = release.table(*by)
        written_alike(answer, found, f"counts by {by}")
        frame = release.to_frame(*by)
        _, *rows = answer.table()
        found.rows += len(rows)
        ends, wide = release.conf_int(*by, level=0.5), release.conf_int(*by)
        found.unless((ends[..., 0] >= wide[..., 0]).all() and (ends[..., 1] <= wide[..., 1]).all(), f"{by}: intervals")
        for row, (_, values) in zip(rows, frame.iterrows(), strict=True):
            where, count = f"count of {row[: len(by)]}", float(values["count"])
            low, high = (float(end.replace(",", "")) for end in row[-1].strip("[]").split(", "))
            found.unless(number_of(row[len(by)]) == count, f"{where}: {row}, frame {count}")
            found.unless((low, high) == (values["lower"], values["upper"]) and low <= count <= high, f"{where}: {row}")
            shown_as(found, f"share of {where}", row[len(by) + 1], count / max(answer.n_rows, 1))
        heading = re.search(r"rows: ([\d,]+)", answer.heading[0])
        found.unless(heading and number_of(heading[1]) == frame["count"].sum(), f"{by}: {answer.heading}")
        empty = re.search(r"empty cells: ([\d,]+)", str(answer))
        found.unless((number_of(empty[1]) if empty else 0.0) == (frame["lower"] <= 0.0).sum(), f"{by}: {empty}")
        for axis, name in enumerate(by):
            margin, others = answer.margin(name), tuple(other for other in range(len(by)) if other != axis)
            found.unless((margin.counts == answer.counts.sum(axis=others)).all(), f"margin of {name}")
            found.unless(margin.n_rows == answer.n_rows, f"rows of {name}")
        if len(by) == 2:
            crossed = release.cross_table(*by)
            found.unless((crossed.counts == answer.counts).all(), f"cross table of {by}")
            if math.isfinite(crossed.p_value):
                found.unless((crossed.p_value < 0.05) == ("not" not in crossed.verdict), f"{by}: {crossed.test_text}")


def forecasted(answer: Any, found: Found) -> None:
    """A forecast's text, HTML and frame, its best mechanism, and what it says of changes."""
    written_alike(answer, found, "forecast", [answer.table(), answer.mechanisms.table()])
    noise, frame, (_, *rows) = answer.noise, answer.to_pandas(), answer.table()
    found.rows += len(rows) + len(answer.rows)
    of_features = {values["feature"]: values for _, values in frame.iterrows()}
    for row in rows:
        where, values = f"forecast of {row[0]}", of_features[row[0]]
        pairs = ((row[1], "typical_mean"), (row[2], "mean_noise"), (row[3], "typical_sd"))
        pairs += ((row[4], "standard_deviation_noise"), (row[5], "smallest_correlation"))
        for cell, column in pairs:
            shown_as(found, f"{where}, {column}", cell, float(values[column] or 0.0))
        for cell, column in ((row[1], "typical_mean"), (row[3], "typical_sd")):
            found.unless(cell == "noise" or cell.startswith("~") == values[f"{column}_assumed"], f"{where}: {cell}")
        found.unless((row[5] == "none") == (not np.isfinite(float(values["smallest_correlation"] or math.inf))), where)
    known = {row.mechanism: row.errors for row in answer.rows if row.is_known}
    found.unless(known[answer.best] == min(known.values()), f"best: {answer.best} of {known}")
    found.unless([*known.values()] == sorted(known.values()), "mechanisms are not in order of their errors")
    said = re.search(r"over pairs of (?:numeric )?columns\): ([\d.,e+-]+|noise)", str(answer))
    found.unless(said and (said[1] == "noise") == math.isinf(noise.typical_correlation()), f"{said}")
    for what, (count, whole) in noise.readable.items():
        found.unless(0 <= count <= whole and (count > 0) == (f"no {what}" not in answer.headline), answer.headline)
    for change in answer.changes:
        found.unless(change.after < change.before and math.isfinite(change.after), f"{change}")
        if change.kind in ("rows", "budget", "delta") and change.measure == "on a correlation":
            found.unless(change.before == noise.typical_correlation(), f"noise before a change: {change}")


def of_table(seed: int, name: str) -> Iterator[tuple[Callable[..., None], tuple[Any, ...]]]:
    """Readers of objects that are no single release of moments, each with one, of a table at random budgets."""
    rng = np.random.default_rng([seed, *name.encode()])
    table, schema, *_, by = tables()[name]

    def options() -> dict[str, Any]:
        budget = {"epsilon": float(np.exp(rng.uniform(math.log(0.1), math.log(5.0))))}
        return budget | ({"delta": 1e-6} if rng.random() < 0.5 else {})

    yield forecasted, (dpm.forecast(schema, n_rows=int(rng.integers(500, 50_000)), **options()),)
    if by:
        seeds = rng.integers(2**31, size=2).tolist()
        groups = dpm.release_groups(table, schema, by=by, insecure_seed=seeds[0], **options())
        yield grouped, (groups,)
        yield of_each_group, (name, groups)
        kinds = [column.name for column in schema.columns if isinstance(column, dpm.Categorical | dpm.Boolean)]
        tables_of = [kinds[:2], kinds[-1:]] if len(kinds) > 1 else [kinds]
        related = {"neighbors": "replace_one"} if rng.random() < 0.3 else {}
        yield (
            counted,
            (dpm.release_counts(table, schema, by=tables_of, insecure_seed=seeds[1], **options(), **related),),
        )


def others_contradict(seed: int, name: str, readers: Sequence[Callable[..., None]] = ()) -> Found:
    found = Found()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for reader, subject in of_table(seed, name):
            if not readers or reader in readers:
                reader(*subject, found)
    return found
