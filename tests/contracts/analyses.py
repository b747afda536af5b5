"""One table of analyses; `test_analyses.py` runs every row.

A new analysis adds its rows here, and nothing else, to be held to the contract.

What an answer says is compared as *numbers*: a flat dictionary whose keys name features (`mean[age]`), so that a label in the
wrong place is a wrong number. A row says how to read them off an answer, what they are on the table itself, and what becomes of
them when a column is measured in other units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import t as student
from sklearn.decomposition import PCA
from sklearn.linear_model import Lasso, LinearRegression, Ridge

import dpmoments as dpm

N_ROWS = 4_000
REGIONS = ("north", "south", "east")
BOUNDS = {"age": (10.0, 90.0), "income": (-20_000.0, 140_000.0)}
FEATURES = ("age", "income", "region=north", "region=south", "region=east", "employed")
UNLIMITED = dict(epsilon=1e13, repair="none")

Numbers = Mapping[str, float]


@dataclass(frozen=True)
class Units:
    """Columns measured otherwise: value → factor · value + shift, the public bounds with it; the others as they are."""

    factor: Mapping[str, float] = field(default_factory=dict)
    shift: Mapping[str, float] = field(default_factory=dict)

    def of(self, name: str) -> tuple[float, float]:
        return self.factor.get(name, 1.0), self.shift.get(name, 0.0)


OTHER_UNITS = {
    "rescaled": Units({"income": 0.25}),
    "shifted": Units(shift={"age": 64.0}),
    "both": Units({"income": 8.0, "age": 0.5}, {"income": 65_536.0, "age": -32.0}),
}


@dataclass(frozen=True)
class AnalysisCase:
    """One way to ask for an analysis."""

    name: str  # of the method
    id: str
    arguments: dict[str, Any]  # for the method; features stand in the release's order
    command: tuple[str, ...]  # the same for the command line
    labels: str  # the attribute of the answer that names its features
    numbers: Callable[[Any], Numbers]
    reference: Callable[[np.ndarray, bool], Numbers]  # of the table's features, and whether a mean was released
    in_units: Callable[[Numbers, Units], Numbers]  # what the numbers must become
    other_units: tuple[str, ...] = tuple(OTHER_UNITS)  # that it follows: what is about zero does not follow a shift
    answers_without_a_mean: bool = True  # else it refuses, and says that it needs the mean
    tolerance: float = 1e-4  # relative, for the exact answer
    has_units: bool = True  # the numbers tell in which units the table's columns are measured
    products: tuple[tuple[str, str], ...] = ()  # that the release needs


# The table of records -----------------------------------------------------------------------------------------------------


def records(units: Units | None = None) -> pa.Table:
    rng = np.random.default_rng(11)
    units = Units() if units is None else units
    age = rng.uniform(18, 80, N_ROWS).round(3)
    region = rng.choice(REGIONS, N_ROWS, p=[0.5, 0.3, 0.2])
    employed = rng.random(N_ROWS) < 0.6
    income = 800 * age + 10_000 * (region == "north") + 5_000 * employed + rng.normal(0, 6_000, N_ROWS)
    measured = {
        name: units.of(name)[0] * values + units.of(name)[1] for name, values in (("age", age), ("income", income))
    }
    return pa.table({"age": measured["age"], "income": measured["income"], "region": region, "employed": employed})


def public_schema(units: Units | None = None) -> dpm.Schema:
    units = Units() if units is None else units
    columns = []
    for name, bounds in BOUNDS.items():
        factor, shift = units.of(name)
        columns.append(dpm.Numeric(name, *(factor * bound + shift for bound in bounds)))
    return dpm.Schema(*columns, dpm.Categorical("region", REGIONS), dpm.Boolean("employed"))


def released(
    units: Units | None = None, products: tuple[tuple[str, str], ...] = (), **options: Any
) -> dpm.MomentRelease:
    settings: dict[str, Any] = dict(insecure_seed=3) | UNLIMITED | options
    schema = public_schema(units)
    if products:
        schema = dpm.Schema(*schema.columns, *(dpm.Product(*pair) for pair in products))
    return dpm.release(records(units), schema, **settings)


def features_of(table: pa.Table) -> np.ndarray:
    """Every feature in the table's units, shape (n, d), in the release's order."""
    columns = [np.asarray(table["age"]), np.asarray(table["income"])]
    region = np.asarray(table["region"].to_pylist())
    return np.column_stack([*columns, *(region == level for level in REGIONS), np.asarray(table["employed"])]).astype(
        float
    )


# What each analysis says --------------------------------------------------------------------------------------------------


def by_name(word: str, names: tuple[str, ...], values: Any) -> dict[str, float]:
    return {f"{word}[{name}]": float(value) for name, value in zip(names, values, strict=True)}


def named(key: str) -> tuple[str, str]:
    """``mean[age]`` → what, and of which feature."""
    what, _, name = key.removesuffix("]").partition("[")
    return what, name


def numbers_of_description(answer: Any) -> Numbers:
    found = {"n": float(answer.n_rows)}
    if answer.mean is not None:
        found |= by_name("mean", answer.feature_names, answer.mean)
        found |= by_name("deviation", answer.feature_names, answer.standard_deviation)
    else:
        found |= by_name("root", answer.feature_names, answer.root_mean_square)
    return found


def description_of_table(values: np.ndarray, mean: bool) -> Numbers:
    n = {"n": float(len(values))}
    if not mean:
        return n | by_name("root", FEATURES, np.sqrt((values**2).mean(axis=0)))
    return n | by_name("mean", FEATURES, values.mean(axis=0)) | by_name("deviation", FEATURES, values.std(axis=0))


def description_in_units(numbers: Numbers, units: Units) -> Numbers:
    found = dict(numbers)
    for key, value in numbers.items():
        what, name = named(key)
        factor, shift = units.of(name)
        if what in ("mean", "deviation"):
            found[key] = factor * value + (shift if what == "mean" else 0.0)
    return found


def numbers_of_ridge(answer: Any) -> Numbers:
    return {"intercept": answer.intercept} | by_name("coefficient", answer.features, answer.coefficients)


def ridge_of_table(
    features: tuple[str, ...], alpha: float = 0.0, intercept: bool | None = None, reference: Sequence[str] = ()
) -> Any:
    """scikit-learn's, on rows encoded as the release encodes them, where the penalty is stated, and carried back by hand.

    All levels are penalized beside a constant, and printed as differences from the reference.
    """

    def fit(values: np.ndarray, mean: bool) -> Numbers:
        with_intercept = mean if intercept is None else intercept
        encoding = public_schema().encoding(mean=mean)
        penalized = (*features, *(reference if with_intercept else ()))
        chosen, target = [FEATURES.index(name) for name in penalized], FEATURES.index("income")
        offset = encoding.offset if with_intercept else np.zeros(len(FEATURES))
        rows = (values - offset) / encoding.scale
        model = Ridge(2 * alpha * len(rows), fit_intercept=with_intercept) if alpha else LinearRegression(
            fit_intercept=with_intercept
        )  # fmt: skip
        model.fit(rows[:, chosen], rows[:, target])
        coefficients = model.coef_ * encoding.scale[target] / encoding.scale[chosen]
        if len(penalized) > len(features):
            coefficients -= coefficients[-1] * np.array(["=" in name for name in penalized])
        constant = values[:, target].mean() - coefficients @ values[:, chosen].mean(axis=0) if with_intercept else 0.0
        return {"intercept": constant} | by_name("coefficient", features, coefficients[: len(features)])

    return fit


def ridge_in_units(numbers: Numbers, units: Units) -> Numbers:
    factor, shift = units.of("income")
    found = {"intercept": factor * numbers["intercept"] + shift}
    for key, value in numbers.items():
        what, name = named(key)
        if what == "coefficient":
            own_factor, own_shift = units.of(name)
            found[key] = value * factor / own_factor
            found["intercept"] -= found[key] * own_shift
    return found


def moments(names: tuple[str, ...], mean: Any, components: Any, variances: Any, scale: Any) -> Numbers:
    """The mean, and the covariance that all components make up, as deviations and correlations."""
    covariance = (components.T * variances) @ components * np.outer(scale, scale)
    deviations = np.sqrt(np.diag(covariance))
    found = by_name("mean", names, mean) | by_name("deviation", names, deviations)
    for i, first in enumerate(names):
        for j, second in enumerate(names[:i]):
            found[f"correlation[{first}, {second}]"] = float(covariance[i, j] / deviations[i] / deviations[j])
    return found


def numbers_of_components(answer: Any) -> Numbers:
    return moments(
        answer.feature_names, answer.mean, answer.components, answer.explained_variance, answer.scale
    ) | by_name("scale", answer.feature_names, answer.scale)


def components_of_table(scaling: str) -> Any:
    def fit(values: np.ndarray, mean: bool) -> Numbers:
        offset = values.mean(axis=0) if mean else np.zeros(len(FEATURES))
        if scaling == "units":
            scale = np.ones(len(FEATURES))
        elif scaling == "bounds":
            halves = [(upper - lower) / 2 if mean else max(-lower, upper) for lower, upper in BOUNDS.values()]
            scale = np.array([*halves, 1.0, 1.0, 1.0, 0.5 if mean else 1.0])
        else:
            scale = np.sqrt(((values - offset) ** 2).mean(axis=0))
        rows = (values - offset) / scale
        # about zero, rows and their opposites have the second moment for a covariance
        found = PCA().fit(rows if mean else np.vstack([rows, -rows]))
        variances = found.explained_variance_ * (1 - 1 / (len(rows) * (1 if mean else 2)))
        return moments(FEATURES, offset, found.components_, variances, scale) | by_name("scale", FEATURES, scale)

    return fit


def numbers_of_leading(answer: Any) -> Numbers:
    names = answer.feature_names
    found = by_name("mean", names, answer.mean) | by_name("scale", names, answer.scale)
    for place, component in enumerate(answer.components):
        found[f"variance {place}"] = float(answer.explained_variance[place])
        found[f"share {place}"] = float(answer.explained_variance_ratio[place])
        found |= by_name(f"component {place}", names, component)
    return found


def leading_of_table(values: np.ndarray, mean: bool) -> Numbers:
    """The two leading components, features divided by half the width of their bounds, their largest entries positive."""
    scale = components_of_table("bounds")(values, mean)
    halves = np.array([scale[f"scale[{name}]"] for name in FEATURES])
    offset = values.mean(axis=0) if mean else np.zeros(len(FEATURES))
    rows = (values - offset) / halves
    eigenvalues, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    found = by_name("mean", FEATURES, offset) | by_name("scale", FEATURES, halves)
    for place in range(2):
        vector = vectors[:, -1 - place]
        found[f"variance {place}"] = float(eigenvalues[-1 - place])
        found[f"share {place}"] = float(eigenvalues[-1 - place] / eigenvalues.sum())
        found |= by_name(f"component {place}", FEATURES, vector * np.sign(vector[np.argmax(np.abs(vector))]))
    return found


def components_in_units(scaling: str) -> Any:
    def convert(numbers: Numbers, units: Units) -> Numbers:
        found = dict(description_in_units(numbers, units))
        if scaling != "units":
            found |= {
                key: value * units.of(named(key)[1])[0] for key, value in numbers.items() if key.startswith("scale")
            }
        return found

    return convert


def numbers_of_least_squares(answer: Any) -> Numbers:
    """With standard errors and intervals, as statsmodels has them."""
    limits = answer.conf_int().loc[list(answer.features)].to_numpy()
    return (
        numbers_of_ridge(answer)
        | by_name("error", answer.features, answer.standard_errors)
        | by_name("lower", answer.features, limits[:, 0])
        | by_name("upper", answer.features, limits[:, 1])
        | {"r_squared": answer.r_squared}
    )


def least_squares_of_table(features: tuple[str, ...], level: float = 0.95, intercept: bool | None = None) -> Any:
    """Textbook least squares on the rows, in the table's units."""

    def fit(values: np.ndarray, mean: bool) -> Numbers:
        with_intercept = mean if intercept is None else intercept
        chosen, target = [FEATURES.index(name) for name in features], values[:, FEATURES.index("income")]
        rows = values[:, chosen]
        design = np.column_stack([np.ones(len(rows)), rows]) if with_intercept else rows
        solution, *_ = np.linalg.lstsq(design, target, rcond=None)
        residual = target - design @ solution
        degrees = len(rows) - design.shape[1]
        covariance = residual @ residual / degrees * np.linalg.inv(design.T @ design)
        errors = np.sqrt(np.diag(covariance))[int(with_intercept) :]
        slopes = solution[int(with_intercept) :]
        reach = student.ppf(0.5 + level / 2, degrees) * errors
        about = target - target.mean() if with_intercept else target
        return (
            {"intercept": solution[0] if with_intercept else 0.0}
            | by_name("coefficient", features, slopes)
            | by_name("error", features, errors)
            | by_name("lower", features, slopes - reach)
            | by_name("upper", features, slopes + reach)
            | {"r_squared": 1 - residual @ residual / (about @ about)}
        )

    return fit


def least_squares_in_units(numbers: Numbers, units: Units) -> Numbers:
    found = ridge_in_units(numbers, units)
    for key, value in numbers.items():
        what, name = named(key)
        if what in ("error", "lower", "upper"):
            found[key] = value * units.of("income")[0] / units.of(name)[0]
    return found | {"r_squared": numbers["r_squared"]}


def lasso_of_table(features: tuple[str, ...], alpha: float, intercept: bool | None = None) -> Any:
    """scikit-learn's, on rows encoded as the release encodes them, where the penalty is stated."""

    def fit(values: np.ndarray, mean: bool) -> Numbers:
        with_intercept = mean if intercept is None else intercept
        encoding = public_schema().encoding(mean=mean)
        chosen, target = [FEATURES.index(name) for name in features], FEATURES.index("income")
        rows = (values - (encoding.offset if with_intercept else 0.0)) / encoding.scale
        model = Lasso(alpha, fit_intercept=with_intercept, tol=1e-10).fit(rows[:, chosen], rows[:, target])
        coefficients = model.coef_ * encoding.scale[target] / encoding.scale[chosen]
        constant = values[:, target].mean() - coefficients @ values[:, chosen].mean(axis=0) if with_intercept else 0.0
        return {"intercept": constant} | by_name("coefficient", features, coefficients)

    return fit


def regression_command(options: dict[str, Any]) -> tuple[str, ...]:
    command = [options.get("target", "income")]
    for name in ("features", "reference"):
        command += [word for value in options.get(name, []) for word in (f"--{name.removesuffix('s')}", value)]
    for name in ("alpha", "level", "cov_type"):
        if name in options:
            command += [f"--{name.replace('_', '-')}", str(options[name])]
    if "intercept" in options:
        command += ["--intercept" if options["intercept"] else "--no-intercept"]
    return tuple(command)


def least_squares_case(id_: str, fitted: tuple[str, ...], **options: Any) -> AnalysisCase:
    return replace(
        ridge_case(id_, fitted, **options),
        name="ols",
        numbers=numbers_of_least_squares,
        reference=least_squares_of_table(fitted, options.get("level", 0.95), options.get("intercept")),
        in_units=least_squares_in_units,
    )


def lasso_case(id_: str, fitted: tuple[str, ...], **options: Any) -> AnalysisCase:
    return replace(
        ridge_case(id_, fitted, **options),
        name="lasso",
        reference=lasso_of_table(fitted, options["alpha"], options.get("intercept")),
    )


def ridge_case(id_: str, fitted: tuple[str, ...], **options: Any) -> AnalysisCase:
    return AnalysisCase(
        name="ridge",
        id=id_,
        arguments={"target": "income"} | options,
        command=regression_command(options),
        labels="features",
        numbers=numbers_of_ridge,
        reference=ridge_of_table(
            fitted, options.get("alpha", 0.0), options.get("intercept"), options.get("reference", ())
        ),
        in_units=ridge_in_units,
        other_units=("rescaled",) if options.get("intercept") is False else tuple(OTHER_UNITS),
        answers_without_a_mean=not options.get("intercept"),
        tolerance=1e-3,
    )


def pca_case(scaling: str, level: float = 0.9) -> AnalysisCase:
    return AnalysisCase(
        name="pca",
        id=f"pca {scaling}",
        arguments={"n_components": len(FEATURES), "scaling": scaling, "level": level},
        command=("-k", str(len(FEATURES)), "--scaling", scaling, "--level", str(level)),
        labels="feature_names",
        numbers=numbers_of_components,
        reference=components_of_table(scaling),
        in_units=components_in_units(scaling),
        tolerance=1e-3,
    )


NOT_SOUTH = tuple(name for name in FEATURES if name not in ("income", "region=south"))

ANALYSES: list[AnalysisCase] = [
    AnalysisCase(
        name="describe",
        id="describe",
        arguments={},
        command=(),
        labels="feature_names",
        numbers=numbers_of_description,
        reference=description_of_table,
        in_units=description_in_units,
    ),
    least_squares_case(
        "least squares", ("age", "region=north", "employed"), features=["age", "region=north", "employed"]
    ),
    least_squares_case(
        "least squares, a reference",
        ("age", "region=north", "region=south"),
        features=["age", "region"],
        reference=["region=east"],
        intercept=True,
        level=0.9,
    ),
    least_squares_case(
        "formula",
        ("age", "region=south", "region=east"),
        target="income ~ age + C(region)",
        reference=["region=north"],
        level=0.8,
    ),
    least_squares_case(
        "least squares through zero",
        ("age", "employed"),
        features=["age", "employed"],
        intercept=False,
        cov_type="nonrobust",
    ),
    ridge_case("ridge on all", NOT_SOUTH, alpha=0.01, level=0.9, reference=["region=south"]),
    lasso_case("lasso on all", NOT_SOUTH, alpha=0.002, level=0.9, reference=["region=south"]),
    lasso_case("lasso through zero", ("age", "employed"), features=["age", "employed"], alpha=0.001, intercept=False),
    ridge_case(
        "ridge with an intercept", ("age", "employed"), features=["age", "employed"], alpha=0.02, intercept=True
    ),
    ridge_case("ridge through zero", ("age", "employed"), features=["age", "employed"], alpha=0.02, intercept=False),
    pca_case("units"),
    pca_case("bounds"),
    pca_case("correlation"),
    replace(
        pca_case("bounds"),
        id="two components",
        arguments={"n_components": 2, "scaling": "bounds"},
        command=("-k", "2", "--scaling", "bounds"),
        numbers=numbers_of_leading,
        reference=leading_of_table,
    ),
]
