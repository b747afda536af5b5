"""Regressions that others published figures of, by this library on the same table or the nearest public one.

    OMP_NUM_THREADS=1 python -m benchmarks.peers.published

Their tables (CPS ASEC of 2024 and of 1994 to 1996, by IPUMS; tax records) are not bundled with anything; CPS 1988 is the nearest
that is. OpenDP's Theil–Sen regression, which takes one regressor, is run here, on three pairs of columns. Writes its part of
docs/evidence/peers-by-question.md; some three minutes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import statsmodels.api as sm

import dpmoments as dpm
from benchmarks.pages import head, write_part
from benchmarks.peers.answers import Asked, Line, Truth
from benchmarks.peers.six_tables import PAGE, TABLES

EPSILONS, RUNS = (1.0, 10.0), 20
THEIRS = {10.0: (300, -0.67, 1.94), 50.0: (70, 0.08, 0.07), 100.0: (37, 0.09, 0.04)}
"""dp-statsmodels (`dp_statsmodels/paper_results.py`, commit 37c12756): by ε, standard error over that of least squares, and mean
and SD of the coefficient of education; δ = 1e-5, 54,875 rows, least squares 0.091."""
PAIRS = {
    "CPS 1988: log wage ~ education": ("cps", "log_wage", "education"),
    "Vocabulary: score ~ education": ("vocabulary", "vocab", "educ"),
    "Airfoil: sound ~ frequency": ("airfoil", "sound_pressure_level", "frequency"),
}


def wages() -> tuple[Any, dict[str, dpm.Numeric | dpm.Boolean]]:
    """CPS 1988 and its columns by name."""
    data, schema = TABLES["cps"].make()
    return data, {column.name: column for column in schema.columns}


def fits(schema: dpm.Schema, data: Any, epsilon: float, delta: float) -> list[Any]:
    """The regression on all other features, of as many releases."""
    releases = (dpm.release(data, schema, epsilon=epsilon, delta=delta, insecure_seed=seed) for seed in range(RUNS))
    return [release.ols("log_wage") for release in releases]


def of_features(found: list[Any], what: str, names: Sequence[str]) -> np.ndarray:
    """One attribute of the fits, shape (fits, features)."""
    return np.array([getattr(fit, what)[[fit.features.index(name) for name in names]] for fit in found])


def least_squares(data: Any, powers: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of education, powers of experience and ethnicity on the log wage, and their standard errors."""
    experience = data["experience"].to_numpy()
    columns = [data["education"], *(experience**k for k in range(1, powers + 1)), data["ethnicity"], np.ones(len(data))]
    x = np.column_stack([np.asarray(column, dtype=float) for column in columns])
    fit = sm.OLS(data["log_wage"].to_numpy(), x).fit()
    return fit.params[:-1], fit.bse[:-1]


def wage_regression() -> Iterator[str]:
    """The regression of dp-statsmodels: theirs as published, ours on CPS 1988."""
    data, columns = wages()
    schema = dpm.Schema(
        *(columns[name] for name in ("log_wage", "education", "experience", "ethnicity")), dpm.Power("experience", 2)
    )
    exact, error = least_squares(data, 2)
    regression = "log wage ~ education + experience + experience² + one group"
    columns = "rows | ε | education, least squares | mean ± SD of private | standard error over least squares'"
    yield from head(f"{regression} | {columns}", "lrrrrr")
    for epsilon, (inflation, mean, deviation) in THEIRS.items():
        private = f"{mean:.2f} ± {deviation:.2f}"
        yield f"| dp-statsmodels, CPS 2024, published | 54,875 | {epsilon:g} | 0.091 | {private} | {inflation} |"
    for epsilon in EPSILONS:
        found = fits(schema, data, epsilon, 1e-5)
        values, errors = (of_features(found, name, ["education"])[:, 0] for name in ("coefficients", "standard_errors"))
        yield (
            f"| a release, CPS 1988, {RUNS} seeds | {len(data):,} | {epsilon:g} | {exact[0]:.4f} | {values.mean():.4f} ± "
            f"{values.std(ddof=1):.4f} | {np.nanmedian(errors) / error[0]:.2g} |"
        )


def card_regression() -> Iterator[str]:
    """The regression of the study on tax data: signs, significance and intervals against least squares."""
    data, columns = wages()
    names = ("log_wage", "education", "experience", "ethnicity")
    schema = dpm.Schema(*(columns[name] for name in names), dpm.Power("experience", 2), dpm.Power("experience", 3))
    exact, error = least_squares(data, 3)
    regression = "log wage ~ education + experience + experience² + experience³ + group"
    columns = "ε | δ | right signs | same significance | interval over least squares' | error over coefficient"
    yield from head(f"{regression} | {columns}", "lrrrrrr")
    features = ("education", "experience", "experience^2", "experience^3", "ethnicity")
    for epsilon, delta in ((1.0, 0.0), (1.0, 1e-6), (5.0, 1e-6)):
        found = fits(schema, data, epsilon, delta)
        values, lower, upper = (of_features(found, name, features) for name in ("coefficients", "lower", "upper"))
        clear = np.abs(exact) > 1.96 * error
        right, same = np.mean(np.sign(values) == np.sign(exact)), np.mean(((lower > 0.0) | (upper < 0.0)) == clear)
        wider, off = np.median((upper - lower) / (3.92 * error)), np.median(np.abs(values - exact) / np.abs(exact))
        about = f"| a release, CPS 1988, {RUNS} seeds | {epsilon:g} | {delta:g}"
        length = f"{wider:.2g}" if np.isfinite(wider) else "∞"
        yield f"{about} | {right:.0%} | {same:.0%} | {length} | {off:.2g} |"


def theil_sen() -> Iterator[str]:
    """One regressor at pure ε = 1: OpenDP's regression, and a release of the two columns or of the whole table."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious", "idealized-numerics", "floating-point")
    columns = "rows | OpenDP, Theil–Sen | release of the two columns | release of the table"
    yield from head(f"R² lost, ε = 1 (median, worst) | {columns}", "lrrrr")
    for label, (table, y, x) in PAIRS.items():
        data, schema = TABLES[table].make()
        frame = data if hasattr(data, "iloc") else data.to_pandas()
        by_name = {column.name: column for column in schema.columns}
        two = dpm.Schema(by_name[x], by_name[y])
        pair = frame[[x, y]].astype(float)
        truth = Truth.of(pair, two, Asked(y))
        bounds = [(by_name[name].lower, by_name[name].upper) for name in (x, y)]

        def measurement(scale: float, bounds: Any = bounds) -> Any:
            return dp.sklearn.linear_model.LinearRegression(
                dp.max_divergence(), x_bounds=[bounds[0]], y_bounds=bounds[1], scale=scale
            )

        scale = measurement(1.0).measurement.map(1)  # ε is this over the scale
        regression = measurement(scale)
        if not 0.99 < regression.measurement.map(1) < 1.01:
            raise AssertionError(f"the measurement states ε = {regression.measurement.map(1)}, not 1")

        def lost(slope: float, intercept: float, truth: Truth = truth) -> float:
            return truth.lost(Line(np.array([slope, 0.0]), intercept), 1)

        theirs, ours, whole = [], [], []
        for seed in range(RUNS):
            fit = regression.fit(pair[[x]].to_numpy(), pair[y].to_numpy())
            theirs.append(lost(float(fit.coef_[0]), float(fit.intercept_)))
            for losses, rows, names in ((ours, pair, two), (whole, data, schema)):
                release = dpm.release(rows, names, epsilon=1.0, neighbors="add_remove", insecure_seed=seed)
                fit = release.ols(f"{y} ~ {x}")
                losses.append(lost(float(fit.coefficients[0]), float(fit.intercept)))
        cells = " | ".join(f"{np.median(losses):.2g}, {max(losses):.2g}" for losses in (theirs, ours, whole))
        yield f"| {label} | {len(pair):,} | {cells} |"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    write_part(PAGE, "published", [*wage_regression(), "", *card_regression(), "", *theil_sen()])
