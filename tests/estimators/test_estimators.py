"""Estimators: one release a fit, every fit charged or refused, and scikit-learn's contract as far as privacy lets it be kept."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import opendp.mod
import pandas as pd
import polars as pl
import pytest
from benchmarks.pages import part_of, tables_in
from joblib import parallel_config
from sklearn.base import clone
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

import dpmoments as dpm
from dpmoments.estimators import DPPCA, DPCovariance, DPLinearDiscriminant, DPRidge, base, expected_failed_checks
from dpmoments.estimators.base import _NOISE, _REASONS
from support.checked_estimators import ESTIMATORS, LEFT_OUT, PAGE, for_checks, table_of_checks
from support.ledger_processes import quick_folder
from support.said import refused, warned

pytestmark = pytest.mark.long(sets=None)

N_ROWS = 3000
NEARLY_NO_NOISE: dict[str, Any] = {"epsilon": 1e9, "mechanism": "laplace", "insecure_seed": 0}
NAMES = ["age", "height", "weight"]
BOUNDS = ([0.0, 100.0, 0.0], [100.0, 250.0, 200.0])
SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100),
    dpm.Numeric("height", 100, 250),
    dpm.Numeric("weight", 0, 200),
    dpm.Categorical("ward", ["north", "south", "west"]),
)


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    ward = rng.choice(["north", "south", "west"], N_ROWS, p=[0.5, 0.3, 0.2])
    age = rng.uniform(20, 80, N_ROWS)
    height = rng.normal(np.where(ward == "south", 160.0, 180.0), 8.0)
    weight = 0.7 * height - 50 + 0.1 * age + rng.normal(0, 5, N_ROWS)
    return pd.DataFrame({"age": age, "height": height, "weight": weight, "ward": ward})


TABLE = table()
NUMBERS = TABLE[NAMES]
ARRAY = NUMBERS.to_numpy()


def made(name: str, **parameters: Any) -> tuple[Any, tuple[Any, ...]]:
    """An estimator on the numeric columns of the table, and what its fit is given."""
    match name:
        case "DPCovariance":
            return DPCovariance(bounds=BOUNDS, **parameters), (NUMBERS,)
        case "DPPCA":
            return DPPCA(n_components=2, bounds=BOUNDS, **parameters), (NUMBERS,)
        case "DPRidge":
            bounds = (BOUNDS[0][:2], BOUNDS[1][:2])
            ridge = DPRidge(bounds=bounds, target_bounds=(0, 200), **parameters)
            return ridge, (NUMBERS[["age", "height"]], TABLE["weight"])
    wards = DPLinearDiscriminant(bounds=BOUNDS, classes=["north", "south", "west"], **parameters)
    return wards, (NUMBERS, TABLE["ward"])


every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[dpm.Ledger]:
    with quick_folder(tmp_path) as folder:
        found = dpm.Ledger(folder / "budget.db")
        found.grant("people", epsilon=1.0)
        yield found


def charged(ledger: dpm.Ledger) -> Counter[str]:
    return Counter(str(entry.action) for entry in ledger.history("people"))


# What a fit gives


def test_without_noise_they_are_scikit_learns() -> None:
    def fitted(name: str) -> Any:
        model, data = made(name, **NEARLY_NO_NOISE)
        return model.fit(*data)

    covariance, theirs = fitted("DPCovariance"), EmpiricalCovariance().fit(ARRAY)
    for attribute in ("covariance_", "location_", "precision_"):
        np.testing.assert_allclose(getattr(covariance, attribute), getattr(theirs, attribute), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(covariance.mahalanobis(NUMBERS[:9]), theirs.mahalanobis(ARRAY[:9]), rtol=1e-3)
    assert covariance.score(NUMBERS) == pytest.approx(theirs.score(ARRAY), rel=1e-5)
    assert covariance.error_norm(theirs.covariance_) < 1e-3

    components, known = fitted("DPPCA"), PCA(2).fit(ARRAY)
    signs = np.sign(np.sum(components.components_ * known.components_, axis=1))
    np.testing.assert_allclose(components.components_, known.components_ * signs[:, None], atol=1e-3)
    np.testing.assert_allclose(components.explained_variance_, known.explained_variance_, rtol=2e-3)
    np.testing.assert_allclose(components.transform(NUMBERS[:9]), known.transform(ARRAY[:9]) * signs, atol=0.05)
    scores = components.transform(NUMBERS[:9])
    np.testing.assert_allclose(components.inverse_transform(scores), known.inverse_transform(scores * signs), atol=0.05)

    np.testing.assert_allclose(components.singular_values_, known.singular_values_, rtol=1e-3)
    assert components.noise_variance_ == pytest.approx(known.noise_variance_, rel=2e-3)
    np.testing.assert_allclose(components.get_covariance(), known.get_covariance(), rtol=2e-3, atol=0.05)
    np.testing.assert_allclose(components.get_precision(), known.get_precision(), rtol=2e-3, atol=1e-4)
    assert components.score(NUMBERS) == pytest.approx(known.score(ARRAY), rel=1e-5)
    white = DPPCA(0.9, whiten=True, bounds=BOUNDS, **NEARLY_NO_NOISE).fit(NUMBERS)
    assert white.n_components_ == PCA(0.9).fit(ARRAY).n_components_
    np.testing.assert_allclose(white.transform(NUMBERS).std(axis=0), 1.0, rtol=1e-3)
    unscaled = DPPCA(0.9, bounds=BOUNDS, **NEARLY_NO_NOISE).fit(NUMBERS)
    rows = NUMBERS[:9]
    np.testing.assert_allclose(
        white.inverse_transform(white.transform(rows)), unscaled.inverse_transform(unscaled.transform(rows))
    )

    line, least_squares = fitted("DPRidge"), LinearRegression().fit(ARRAY[:, :2], ARRAY[:, 2])
    np.testing.assert_allclose(line.coef_, least_squares.coef_, rtol=1e-2)
    assert line.intercept_ == pytest.approx(least_squares.intercept_, rel=1e-2)
    assert not hasattr(line, "standard_errors_")
    assert np.isnan(line.answer_.standard_errors).all()

    ours, fisher = fitted("DPLinearDiscriminant"), LinearDiscriminantAnalysis().fit(ARRAY, TABLE["ward"])
    np.testing.assert_allclose(ours.predict_proba(NUMBERS), fisher.predict_proba(ARRAY), atol=0.01)
    assert (ours.predict(NUMBERS) == fisher.predict(ARRAY)).mean() > 0.99
    mine, axes = ours.transform(NUMBERS), fisher.transform(ARRAY)
    assert mine.shape == axes.shape
    np.testing.assert_allclose(np.abs(mine[:, 0]), np.abs(axes[:, 0]), rtol=0.01, atol=0.01)


def test_data_beyond_the_bounds_are_told_where_the_release_can_tell() -> None:
    rows = np.random.default_rng(0).normal(0.0, 1.0, (5_000, 2))
    with pytest.warns(UserWarning, match="mean of 'x1' from its bound"):
        DPRidge(bounds=([-5, -5], [5, 5]), target_bounds=(0, 1), epsilon=1.0, insecure_seed=0).fit(
            rows + [0.0, 90.0], rows[:, 0]
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        DPPCA(bounds=(-5, 5), epsilon=1.0, insecure_seed=0).fit(rows)


def test_a_continuous_y_is_no_class(ledger: dpm.Ledger) -> None:
    model, (features, _) = made("DPLinearDiscriminant", epsilon=0.1, ledger=ledger, dataset="people")
    for y in (
        TABLE["weight"],
        np.asarray(TABLE["weight"]),
        np.full(N_ROWS, np.inf),
        np.zeros(N_ROWS, dtype=np.float32),
    ):
        with pytest.raises(ValueError, match="Unknown label type"):  # by its type, whatever it holds
            model.fit(features, y)
    assert charged(ledger) == {"grant": 1}


@every_estimator
def test_a_fit_is_what_the_analysis_of_its_release_says(name: str) -> None:
    model, data = made(name, epsilon=1.0, insecure_seed=3)
    answer = model.fit(*data).answer_
    released = model.release_
    again = {
        "DPCovariance": lambda: released.describe(),
        "DPPCA": lambda: released.pca(2, scaling=model.scaling),
        "DPRidge": lambda: released.ridge("y"),
        "DPLinearDiscriminant": lambda: released.lda("y"),
    }[name]()
    assert answer.to_dict() == again.to_dict()
    elsewhere = clone(model).fit_release(released)
    assert elsewhere.release_.id == released.id
    assert elsewhere.feature_names_in_.tolist() == list(data[0].columns)
    assert elsewhere.answer_.to_dict() == answer.to_dict()


def test_a_schema_with_levels_and_derived_features() -> None:
    schema = dpm.Schema(*SCHEMA.columns, dpm.Power("age", 2), dpm.Product("age", "ward"))
    model = DPRidge(schema=schema, target="weight", **NEARLY_NO_NOISE)
    features = TABLE.drop(columns="weight")
    model.fit(features, TABLE["weight"])
    assert model.n_features_in_ == 3
    assert {"age", "height", "age^2", "ward=south"} <= set(model.coef_names_) or "age²" in model.coef_names_
    assert model.score(features, TABLE["weight"]) > 0.7
    wards = DPLinearDiscriminant(schema, target="ward", **NEARLY_NO_NOISE).fit(NUMBERS, TABLE["ward"])
    assert not [each for each in wards.coef_names_ if "ward" in each]
    assert wards.score(NUMBERS, TABLE["ward"]) > 0.55
    covariance = DPCovariance(SCHEMA, **NEARLY_NO_NOISE).fit(TABLE)
    assert covariance.covariance_.shape == (6, 6)
    assert covariance.feature_names_released_[-1] == "ward=west"
    assert covariance.mahalanobis(TABLE[:5]).shape == (5,)


def test_squared_distances_are_those_of_the_release_where_directions_are_noise() -> None:
    rows = np.random.default_rng(1).normal(0, [0.3, 0.3, 0.001, 0.001], (5000, 4))
    with warned("directions-lost", directions=2, features=4):
        model = DPCovariance(row_norm=1.0, epsilon=1.0, insecure_seed=0).fit(rows)
    assert model.n_noise_directions_ == 2
    expected = model.release_.mahalanobis(rows[:50]).distances ** 2
    np.testing.assert_allclose(model.mahalanobis(rows[:50]), expected)
    assert model.score(rows) == -np.inf


def test_where_no_column_varies_all_directions_are_noise() -> None:
    with warned("directions-lost", directions=2, features=2):
        model = DPCovariance(row_norm=1.0, epsilon=1e13, insecure_seed=0).fit(np.full((200, 2), 0.5))
    np.testing.assert_array_equal(model.get_precision(), np.zeros((2, 2)))


def test_about_zero_all_the_budget_is_on_the_second_moment() -> None:
    model = DPCovariance(row_norm=1.0, assume_centered=True, neighbors="replace_one", **NEARLY_NO_NOISE)
    rows = np.random.default_rng(1).normal(0.1, 0.2, (2000, 2))
    np.testing.assert_allclose(model.fit(rows).covariance_, rows.T @ rows / 2000, atol=1e-4)
    assert not model.location_.any()
    assert model.release_.noisy_sum is None
    with refused("assume_centered=True under neighbors='add_remove'"):
        clone(model).set_params(neighbors="add_remove").fit(rows)


# What a fit costs


@pytest.mark.long
@every_estimator
def test_every_fit_of_every_copy_is_charged(name: str, ledger: dpm.Ledger) -> None:
    model, data = made(name, epsilon=0.3, ledger=ledger, dataset="people")
    model.fit(*data)
    for copied in (model, clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(clone(model)))):
        if charged(ledger)["commit"] < 3:
            copied.fit(*data)
            continue
        with pytest.raises(dpm.BudgetExceededError):
            copied.fit(*data)
    assert charged(ledger) == {"grant": 1, "reserve": 3, "commit": 3}
    assert ledger.spent("people").epsilon == pytest.approx(0.9)


def test_a_ledger_is_the_same_ledger_wherever_its_copy_is(ledger: dpm.Ledger) -> None:
    assert copy.deepcopy(ledger) is ledger
    ledger.account("people")
    other = pickle.loads(pickle.dumps(ledger))
    assert other is not ledger
    assert other.identity == ledger.identity
    other.grant("others", epsilon=1.0)
    assert "others" in ledger.datasets
    written = pickle.dumps(ledger)
    Path(ledger.path).unlink()
    dpm.Ledger(ledger.path).grant("people", epsilon=1.0)
    with refused("is no longer the ledger that was opened", dpm.LedgerError):
        pickle.loads(written).account("people")


@pytest.mark.long(sets=2)
@every_estimator
def test_without_a_ledger_there_is_one_fit_for_all_copies(name: str) -> None:
    model, data = made(name, epsilon=1.0, mechanism="laplace")
    unfitted = [clone(model), copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    clone(unfitted[0]).fit(*data)
    for each in (model, *unfitted, clone(unfitted[-1])):
        with refused("without a ledger the budget of an estimator is for one fit", dpm.BudgetExceededError):
            each.fit(*data)
    with pytest.raises(dpm.BudgetExceededError):
        model.set_params(epsilon=2.0).fit(*data)
    made(name, epsilon=1.0, mechanism="laplace")[0].fit(*data)


def test_an_insecure_seed_protects_nobody_and_is_not_counted() -> None:
    model = DPPCA(bounds=BOUNDS, epsilon=1.0, insecure_seed=0)
    assert not model.fit(NUMBERS).release_.privacy.private
    first = model.components_
    np.testing.assert_array_equal(clone(model).fit(NUMBERS).components_, first)


def test_what_spent_nothing_gives_the_fit_back() -> None:
    model = DPCovariance(bounds=(0, 200), epsilon=1.0, mechanism="laplace")
    holed = ARRAY.copy()
    holed[7, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(holed)
    with pytest.raises(ValueError, match="'error'"):
        model.fit(pd.DataFrame(holed, columns=NAMES))
    with refused("must be positive and finite (at most"):
        model.set_params(epsilon=-1.0).fit(ARRAY)
    model.set_params(epsilon=1.0).fit(ARRAY)
    with pytest.raises(dpm.BudgetExceededError):
        model.fit(ARRAY)


def test_an_error_after_the_release_spends_and_the_release_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_varies(*_: Any, **__: Any) -> None:
        raise ValueError("no feature varies")

    monkeypatch.setattr(dpm.MomentRelease, "lda", nothing_varies)
    model = DPLinearDiscriminant(
        bounds=(0, 1), classes=["a", "b"], epsilon=1e9, mechanism="laplace", neighbors="replace_one"
    )
    constant = np.full((100, 1), 0.5)
    with pytest.raises(ValueError, match="varies") as raised:
        model.fit(constant, np.repeat(["a", "b"], 50))
    assert any("release_" in note for note in raised.value.__notes__)
    assert model.release_.n_rows == 100
    with pytest.raises(NotFittedError):
        model.predict(constant)
    with pytest.raises(dpm.BudgetExceededError):
        model.fit(constant, np.repeat(["a", "b"], 50))


def test_parameters_of_the_analysis_are_refused_before_anything_is_spent(ledger: dpm.Ledger) -> None:
    paid: dict[str, Any] = {"epsilon": 0.1, "ledger": ledger, "dataset": "people"}
    wards = made("DPLinearDiscriminant", **paid)[0]
    for model, data in (
        (DPPCA(n_components=4, bounds=BOUNDS, **paid), (NUMBERS,)),
        (DPPCA(bounds=BOUNDS, scaling="standard", **paid), (NUMBERS,)),
        (DPRidge(-1.0, bounds=BOUNDS, target_bounds=(0, 1), **paid), (NUMBERS, ARRAY[:, 0])),
        (wards.set_params(shrinkage=-1), (NUMBERS, TABLE["ward"])),
        (DPRidge(bounds=BOUNDS, target_bounds=(0, 1), **paid), (NUMBERS, ARRAY[:-1, 0])),
    ):
        with pytest.raises(ValueError):
            model.fit(*data)
    assert charged(ledger) == {"grant": 1}


@pytest.mark.parametrize("identity", ["another process", "a fork"])
def test_a_copy_in_another_process_needs_a_ledger(identity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = DPPCA(bounds=BOUNDS, epsilon=1.0)
    if identity == "a fork":
        monkeypatch.setattr(base.os, "getpid", lambda: -1)
    else:
        written = pickle.dumps(model)
        monkeypatch.setattr(base, "_KNOWN", {})
        model = pickle.loads(written)
    with refused("this estimator is a copy from another process (joblib", dpm.BudgetExceededError):
        model.fit(NUMBERS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # joblib forks
@pytest.mark.parametrize("backend", ["multiprocessing", "loky", "threading"])
def test_cross_validation_spends_for_each_fit_or_not_at_all(ledger: dpm.Ledger, backend: str) -> None:
    """In processes of joblib and in this one; three folds, two parameters, and the refit are seven fits."""
    with parallel_config(backend=backend, n_jobs=2):
        _cross_validate(ledger, elsewhere=backend != "threading")


def _cross_validate(ledger: dpm.Ledger, *, elsewhere: bool) -> None:
    model, (features, y) = made("DPRidge", epsilon=0.1, mechanism="laplace", ledger=ledger, dataset="people")
    search = GridSearchCV(model, {"alpha": [1e-6, 1e-3]}, cv=3, error_score="raise").fit(features, y)
    assert charged(ledger)["commit"] == 7
    assert search.best_estimator_.release_.origin.ledger is not None
    with pytest.warns(FitFailedWarning, match="2 fits failed"):
        scores = cross_val_score(model, features, y, cv=5)
    assert np.isnan(scores).sum() == 2
    assert charged(ledger) == {"grant": 1, "reserve": 10, "commit": 10}
    alone = made("DPRidge", epsilon=0.1, mechanism="laplace")[0]
    if elsewhere:
        with pytest.raises(ValueError, match="All the 3 fits failed") as raised:
            cross_val_score(alone, features, y, cv=3)
        assert "copy from another process" in str(raised.value)
    with pytest.warns(FitFailedWarning, match="2 fits failed"):
        scores = cross_val_score(alone, features, y, cv=3, n_jobs=1)
    assert np.isnan(scores).sum() == 2
    with pytest.raises(dpm.BudgetExceededError):
        alone.fit(features, y)


# What goes in, and stays as it is


@every_estimator
@pytest.mark.parametrize("form", ["array", "pandas", "polars", "arrow", "list", "fortran", "swapped"])
def test_every_form_of_a_table_gives_the_same_and_is_left_alone(name: str, form: str) -> None:
    model, (features, *y) = made(name, epsilon=5.0, mechanism="laplace", insecure_seed=1)
    expected = clone(model).fit(features, *y)
    array = features.to_numpy().copy()
    array.setflags(write=False)
    target = [np.asarray(each).copy() for each in y]
    for each in target:
        each.setflags(write=False)
    given = {
        "array": lambda: array,
        "list": lambda: array.tolist(),
        "fortran": lambda: np.asfortranarray(array),
        "swapped": lambda: array.astype(array.dtype.newbyteorder("S")),
        "pandas": lambda: features.set_index(np.arange(len(features))[::-1]),
        "polars": lambda: pl.from_pandas(features),
        "arrow": lambda: nw.from_native(pl.from_pandas(features)).to_arrow(),
    }[form]()
    before = copy.deepcopy(given)
    model.fit(given, *target)
    if form in ("pandas", "polars"):
        assert given.equals(before)
    elif isinstance(given, np.ndarray):
        np.testing.assert_array_equal(given, before)
    np.testing.assert_array_equal(model.release_.noisy_gram, expected.release_.noisy_gram)
    assert hasattr(model, "feature_names_in_") == (form in ("pandas", "polars", "arrow"))
    for method in ("predict", "transform", "predict_proba", "decision_function", "mahalanobis"):
        if hasattr(model, method):
            np.testing.assert_allclose(
                getattr(model, method)(given)
                if method != "predict"
                else model.predict(given) == expected.predict(features),
                getattr(expected, method)(features) if method != "predict" else np.ones(N_ROWS),
                atol=1e-9,
            )


def test_y_is_by_position_whatever_its_index() -> None:
    model, (features, y) = made("DPRidge", **NEARLY_NO_NOISE)
    turned = y.set_axis(np.arange(N_ROWS)[::-1])
    np.testing.assert_array_equal(model.fit(features, turned).coef_, clone(model).fit(features, y).coef_)


def test_no_refusal_quotes_a_cell_or_a_number_of_rows() -> None:
    secret = np.array([["1.5", "SECRET"], ["2.5", "3.5"]], dtype=object)
    model = DPCovariance(bounds=(0, 9), epsilon=1.0)
    mixed = np.array([["SECRET"], [17]], dtype=object)
    for data in (secret, mixed, np.array([12345.678]), secret.astype(str)):
        with pytest.raises((ValueError, TypeError)) as raised:
            model.fit(data)
        shown = str(raised.value) + str(raised.value.__cause__) + str(raised.value.__context__)
        assert "SECRET" not in shown
        assert "12345" not in shown
    with refused("X and y have different numbers of rows: y must have one") as raised:
        DPRidge(bounds=(0, 9), target_bounds=(0, 9), epsilon=1.0).fit(np.ones((17, 2)), np.ones(18))
    assert "17" not in str(raised.value)


CANNOT_BE: list[tuple[Any, tuple[Any, ...], str]] = [
    (DPCovariance(epsilon=1.0), (ARRAY,), "no public bounds were given (schema, bounds and row_norm"),
    (DPCovariance(SCHEMA, bounds=(0, 1), epsilon=1.0), (ARRAY,), "schema and bounds were given, but each describes"),
    (DPCovariance(bounds=5, epsilon=1.0), (ARRAY,), "bounds must be a pair (low, high), each a number or one number"),
    (DPCovariance(bounds=([0, 1], [2, 3]), epsilon=1.0), (ARRAY,), "X has 3 columns: give a number, or one per column"),
    (DPCovariance(bounds={"x": (0, 1), "y": (0, 1)}, epsilon=1.0), (ARRAY,), "bounds must be a pair"),
    (DPCovariance(bounds=(False, True), epsilon=1.0), (ARRAY,), "bounds must be a pair"),
    (DPCovariance(bounds=("0", "1"), epsilon=1.0), (ARRAY,), "bounds must be a pair"),
    (DPCovariance(bounds=[(0, 100), (50, 200)], epsilon=1.0), (ARRAY[:, :2],), "can be read as a pair for each"),
    (DPCovariance(bounds=[[0, 50], [100, 200]], epsilon=1.0), (ARRAY[:, :2],), "can be read as a pair for each"),
    (DPCovariance({"age": (0, 1)}, epsilon=1.0), (ARRAY,), "schema must be a dpmoments.Schema, got dict"),
    (DPCovariance(bounds=(0, 1)), (ARRAY,), "give the privacy budget as epsilon (with or without delta) or as rho, none"),
    (DPCovariance(SCHEMA, epsilon=1.0), (NUMBERS,), "so that results are in the order of X, and X lacks 'ward'"),
    (DPCovariance(SCHEMA, epsilon=1.0), (TABLE.assign(more=1),), "X has 'more', which the schema lacks"),
    (DPCovariance(SCHEMA, epsilon=1.0), (TABLE[TABLE.columns[::-1]],), "X has them in another order"),
    (DPCovariance(SCHEMA, epsilon=1.0), (ARRAY,), "X has 3 columns, and the schema has 4 without y"),
    (DPCovariance(SCHEMA, epsilon=1.0), ("people.csv",), "fit takes arrays and frames in memory, got str"),
    (DPCovariance(bounds=(0, 1), epsilon=1.0), (pl.from_pandas(NUMBERS).lazy(),), "fit takes arrays and frames in memory"),
    (DPRidge(bounds=(0, 1), epsilon=1.0), (ARRAY, ARRAY[:, 0]), "target_bounds=None: noise must also hide every y"),
    (DPRidge(schema=SCHEMA, epsilon=1.0), (ARRAY, ARRAY[:, 0]), "must name the column that y holds"),
    (
        DPRidge(schema=SCHEMA, target="ward", epsilon=1.0), (NUMBERS, TABLE["ward"]),
        "target='ward' is not a numeric column of the schema",
    ),
    (
        DPLinearDiscriminant(SCHEMA, target="age", epsilon=1.0), (NUMBERS, TABLE["age"].round().astype("Int64")),
        "target='age' is not a categorical column of the schema",
    ),
    (DPLinearDiscriminant(bounds=(0, 1), epsilon=1.0), (NUMBERS, TABLE["ward"]), "classes=None: the classes must be public"),
    (DPLinearDiscriminant(bounds=(0, 1), classes="ab", epsilon=1.0), (ARRAY, TABLE["ward"]), "is not a list"),
    (
        DPLinearDiscriminant(SCHEMA, target="ward", classes=["a"], epsilon=1.0), (NUMBERS, TABLE["ward"]),
        "classes are for bounds=; a schema already lists the levels",
    ),
    (
        DPRidge(schema=SCHEMA, target="age", target_bounds=(0, 1), epsilon=1.0), (ARRAY, ARRAY[:, 0]),
        "target_bounds are for bounds=; a schema already bounds",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("estimator", "data", "said"), CANNOT_BE, ids=[said for *_, said in CANNOT_BE])
def test_what_cannot_be_is_refused(estimator: Any, data: tuple[Any, ...], said: str) -> None:
    with refused(said, (ValueError, TypeError)):
        estimator.fit(*data)


def test_sample_weights_are_refused() -> None:
    model, data = made("DPRidge", epsilon=1.0)
    with pytest.raises(TypeError, match="sample_weight"):
        model.fit(*data, sample_weight=np.ones(N_ROWS))


def test_people_of_many_rows(tmp_path: Path) -> None:
    with quick_folder(tmp_path) as folder:
        ledger = dpm.Ledger(folder / "budget.db")
        ledger.grant("people", epsilon=1.0, unit="person")
        rows = NUMBERS.assign(person=np.arange(N_ROWS) // 3)
        unit = dpm.PrivacyUnit("person", max_rows=3)
        model = DPPCA(bounds=BOUNDS, epsilon=1.0, privacy_unit=unit, ledger=ledger, dataset="people").fit(rows)
        assert model.feature_names_in_.tolist() == NAMES
        assert model.release_.privacy.privacy_unit == unit
        np.testing.assert_array_equal(model.transform(rows), model.transform(NUMBERS))


def test_empty_cells_follow_the_schemas_rules() -> None:
    rows = NUMBERS.copy()
    rows.loc[:99, "height"] = np.nan
    lenient = dpm.Schema(*(dpm.Numeric(each.name, *each.bounds, missing="drop") for each in SCHEMA.columns[:3]))
    model = DPPCA(schema=lenient, neighbors="replace_one", **NEARLY_NO_NOISE).fit(rows)
    assert model.__sklearn_tags__().input_tags.allow_nan
    assert model.release_.n_rows == N_ROWS - 100
    assert np.isnan(model.transform(rows)).all(axis=1).sum() == 100
    strict = DPPCA(bounds=BOUNDS, **NEARLY_NO_NOISE).fit(NUMBERS)
    assert not strict.__sklearn_tags__().input_tags.allow_nan
    with refused("Input X contains NaN, infinity or a missing value in a"):
        strict.transform(rows)


# Scikit-learn's habits


def test_pipelines_and_named_outputs() -> None:
    chosen = FunctionTransformer(lambda frame: frame[NAMES])
    pipeline = make_pipeline(chosen, DPPCA(n_components=2, bounds=BOUNDS, **NEARLY_NO_NOISE))
    out = pipeline.set_output(transform="pandas").fit_transform(TABLE)
    assert list(out.columns) == ["dppca0", "dppca1"]
    assert out.index.equals(TABLE.index)
    wards = made("DPLinearDiscriminant", **NEARLY_NO_NOISE)[0].set_output(transform="polars")
    assert wards.fit_transform(NUMBERS, TABLE["ward"]).columns == ["dplineardiscriminant0", "dplineardiscriminant1"]
    assert wards.get_feature_names_out().tolist() == ["dplineardiscriminant0", "dplineardiscriminant1"]


@pytest.mark.long(sets=1)
@every_estimator
def test_a_pickled_fit_is_the_same_fit(name: str) -> None:
    model, data = made(name, epsilon=1.0)
    model.fit(*data)
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert copied.release_.to_dict() == model.release_.to_dict()
        assert copied.answer_.to_dict() == model.answer_.to_dict()
        assert copied.feature_names_in_.tolist() == model.feature_names_in_.tolist()


def test_two_classes_and_flags() -> None:
    rng = np.random.default_rng(0)
    flag = rng.random(N_ROWS) < 0.4
    x = rng.normal(np.where(flag, 2.0, -2.0))[:, np.newaxis]
    model = DPLinearDiscriminant(bounds=(-10, 10), classes=[False, True], **NEARLY_NO_NOISE).fit(x, flag)
    assert model.classes_.tolist() == [False, True]
    assert model.decision_function(x).shape == (N_ROWS,)
    np.testing.assert_array_equal(model.predict(x), model.decision_function(x) > 0)
    np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1.0)
    assert model.score(x, flag) > 0.95


@pytest.mark.slow
@every_estimator
def test_scikit_learns_checks_under_a_ledger(name: str, tmp_path: Path) -> None:
    """As it is used: real noise, every fit charged. What fails is what the table says."""
    with quick_folder(tmp_path) as folder:
        ledger = dpm.Ledger(folder / "budget.db")
        ledger.grant("people", epsilon=1e12)
        model = for_checks(name, ledger=ledger, dataset="people")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = check_estimator(
                model, expected_failed_checks=expected_failed_checks(model), on_fail=None, on_skip=None
            )
        fits = charged(ledger)
    assert {result["check_name"] for result in results if result["status"] == "failed"} == set()
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    listed = {check for check, (_, estimators) in _REASONS.items() if check in LEFT_OUT and name in estimators}
    assert listed <= skipped <= {*listed, "check_array_api_input", "check_pipeline_consistency"}
    assert sum(result["status"] == "passed" for result in results) >= 36
    assert fits["reserve"] == fits["commit"] + fits["refund"]
    assert fits["commit"] >= 25


@pytest.mark.long
@every_estimator
def test_the_table_of_checks_is_no_longer_than_it_must_be(name: str) -> None:
    """Where noise is the reason the check passes when it is repeated; where it is not, it still fails."""
    model = for_checks(name, insecure_seed=0)
    asked = {check: reason for check, (reason, estimators) in _REASONS.items() if name in estimators}
    failed: set[str] = set()
    ran: set[str] = set()
    for estimator, check in estimator_checks_generator(model):
        check_name = check.func.__name__
        if check_name not in asked:
            continue
        ran.add(check_name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                check(estimator)
            except AssertionError:
                failed.add(check_name)
    assert ran == set(asked)
    expected = {check for check, reason in asked.items() if reason != _NOISE}
    assert failed == expected


def test_the_automatic_penalty_scores_on_the_data_of_the_check_that_sets_another() -> None:
    from sklearn.utils.estimator_checks import _regression_dataset

    features, y = _regression_dataset()
    y = (y - y.mean()) / y.std()
    model = for_checks("DPRidge", insecure_seed=0)
    assert model.fit(features, y).score(features, y) > 0.5


def test_the_page_has_the_table_of_checks() -> None:
    written = [*tables_in(part_of(PAGE, "checks"))]
    assert written == [*tables_in(table_of_checks())], "run python tests/support/checked_estimators.py"


@pytest.mark.slow
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its blocks continue one another; those of peers that are not installed are marked ``py``."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for page in (PAGE.parents[1] / "scikit-learn.md", PAGE):
                for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
                    exec(compile(block, str(page), "exec"), names)
    finally:
        opendp.mod.disable_features("idealized-numerics", "honest-but-curious")
    printed = capsys.readouterr().out
    assert "ε = 3" in printed
    assert "is granted ε = 3" in printed or "granted" in printed
    assert "least squares" in printed
    assert "dppca0" in printed
    assert re.search(r"^(2\.0|1\.9{9,}\d*)$", printed, re.M)  # what OpenDP's PCA(epsilon=1) states of itself


@pytest.mark.parametrize("of", [np.array, list])
def test_ends_of_two_columns_are_lists_or_arrays(of: Any) -> None:
    ends = of([0.0, 50.0]), of([100.0, 200.0])
    fitted = DPCovariance(bounds=ends, epsilon=1.0, insecure_seed=0).fit(np.full((50, 2), 60.0))
    assert [column.bounds for column in fitted.release_.schema.columns] == [(0.0, 100.0), (50.0, 200.0)]
