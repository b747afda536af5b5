"""Releases of disjoint tables pooled: they are those of the union up to noise, and what is stated of that noise holds."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments.audit.verification import checks
from dpmoments.base.message import Message
from dpmoments.cli import main
from dpmoments.moments.models import AdditiveModel, NoiseModel, PooledModel
from dpmoments.privacy.receipt import Receipt
from dpmoments.releases import pooling
from support.forged_files import forge
from support.noise_models import additive, gaussian
from support.said import Said, refused, warned

D = 5
BALL = dpm.Schema.unit_ball(D)
COLUMNS = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Numeric("pay", -50, 50), dpm.Categorical("g", ["a", "b"]))
MEANS = (-0.3, 0.0, 0.25)


def site(place: int, n_rows: int = 3000) -> np.ndarray:
    """Rows about a mean of the site's own."""
    rng = np.random.default_rng(place)
    return rng.normal([MEANS[place], 0.1, 0.0, -0.1, 0.05], 0.04, (n_rows, D))


def made(place: int, table: np.ndarray | None = None, **options: Any) -> dpm.MomentRelease:
    given = {"rho": 1e9, "mechanism": "standardized", "repair": "none"} | options
    if "epsilon" in given:
        given.pop("rho")
    given.setdefault("insecure_seed", place)
    return dpm.release(site(place) if table is None else table, BALL, **given)


def columns(seed: int, **options: Any) -> dpm.MomentRelease:
    rng = np.random.default_rng(seed)
    frame = np.column_stack([rng.normal(40, 9, 300), rng.normal(0, 9, 300), np.zeros(300)]).astype(object)
    frame[:, 2] = rng.choice(["a", "b"], 300)
    budget = {"mechanism": "gaussian"} if "rho" in options else {"epsilon": 1.0, "mechanism": "matrix-laplace"}
    return dpm.release(frame, COLUMNS, **(budget | options))


# What is pooled -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanisms", [("standardized",) * 3, ("gaussian",) * 3, ("coinpress", "gaussian", "standardized")]
)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_pooled_moments_are_those_of_the_union_where_there_is_no_noise(
    mechanisms: tuple[str, ...], neighbors: str
) -> None:
    parts = [made(place, mechanism=name, neighbors=neighbors) for place, name in enumerate(mechanisms)]
    pooled = dpm.pool(parts)
    union = np.concatenate([site(place) for place in range(3)])
    assert (pooled.center is None) == (set(mechanisms) == {"gaussian"})
    assert isinstance(pooled.noise_model, PooledModel)
    for part, (_, _, shift) in zip(parts, pooled.noise_model.parts, strict=True):
        centers = [np.zeros(D) if one.center is None else one.center for one in (part, pooled)]
        np.testing.assert_allclose(shift, centers[0] - centers[1])
    # clipping moves far rows a little; that is what releases of the sites themselves are off by
    off = max(float(np.abs(part.covariance - np.cov(site(i).T, bias=True)).max()) for i, part in enumerate(parts))
    raw = pooled.with_repair("none")
    np.testing.assert_allclose(raw.mean, union.mean(axis=0), atol=2e-4)
    np.testing.assert_allclose(raw.covariance, np.cov(union.T, bias=True), atol=3 * off + 1e-6)
    np.testing.assert_allclose(raw.second_moment, union.T @ union / len(union), atol=3 * off + 2e-4)
    assert raw.n_rows == 9000
    assert pooled.count_is_public == (neighbors == "replace_one")
    # planted fault: covariances added up, the sites' means left out
    within = sum(part.covariance for part in parts) / 3
    assert np.abs(within - np.cov(union.T, bias=True)).max() > 0.02
    fit = pooled.ridge("x0", alpha=1e-6)
    own = dpm.release(union, BALL, rho=1e9, mechanism="gaussian", repair="none", insecure_seed=9).ridge(
        "x0", alpha=1e-6
    )
    np.testing.assert_allclose(fit.coefficients, own.coefficients, atol=1e-3 if pooled.center is None else 0.1)


def test_pooling_twice_and_in_another_order_is_pooling_once() -> None:
    a, b, c = (made(place) for place in range(3))
    once = dpm.pool([a, b, c])
    again = dpm.pool([dpm.pool([a, b]), c])
    assert json.dumps(again.to_dict()) == json.dumps(once.to_dict())
    assert again.id == once.id == dpm.pool([c, a, b]).id
    np.testing.assert_allclose(dpm.pool([c, a, b]).noisy_gram, once.noisy_gram, rtol=1e-9)
    assert once.id not in {part.id for part in once.parts}


def test_what_one_table_lacks_the_pool_lacks() -> None:
    """The number of rows, and the law of the noise with what it is an approximation of."""
    parts = [made(place, mechanism="gaussian", mean=False) for place in range(2)]
    pooled = dpm.pool(parts)
    assert pooled.noisy_count is None
    np.testing.assert_allclose(pooled.noisy_gram, parts[0].noisy_gram + parts[1].noisy_gram)
    counted = [replace(part, noisy_count=3000.0) for part in parts]
    assert dpm.pool(counted).n_rows == 6000
    assert dpm.pool([counted[0], parts[1]]).noisy_count is None

    budget = {"epsilon": 2.0, "delta": 1e-6}
    exact = made(0, mechanism="additive-wishart", **budget)
    linearized = made(1, mechanism=dpm.mechanisms.JohnsonLindenstrauss(), **budget)
    noise = dpm.pool([exact, linearized]).noise
    assert noise is not None
    assert noise.caveats == linearized.noise.caveats == ("linearized",)
    np.testing.assert_allclose(
        noise.cell_variances(), exact.noise.cell_variances() + linearized.noise.cell_variances(), rtol=1e-12
    )
    for given in ([exact, replace(linearized, noise_model=None)], [replace(exact, noise_model=None), linearized]):
        pooled = dpm.pool(given)
        assert (pooled.noise, pooled.noise_model) == (None, None)
        assert np.isnan(pooled.describe().mean_noise).all()


def test_groups_of_one_run_are_pooled_though_they_name_one_dataset() -> None:
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.uniform(0, 100, 400), rng.integers(1, 3, 400)])
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Categorical("g", [1, 2]))
    options = dict(by="g", rho=1e9, dataset="people", mechanism="gaussian")
    groups = dpm.release_groups(table, schema, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is doubtful
        pooled = dpm.pool(groups.values())
        dpm.pool([columns(0, dataset="north"), columns(1, dataset="south")])
        dpm.pool([columns(0)])
    assert pooled.n_rows == 400
    assert pooled.mean[0] == pytest.approx(table[:, 0].mean(), abs=0.01)
    with refused("their rows would count twice, and both budgets add up. Pass", dataset="people"):
        dpm.pool([groups[1], dpm.release_groups(table, schema, **options)[2]])
    with refused("a list of releases is pooled, got", TypeError):
        dpm.pool(groups)
    assert [check for check in checks(pooled) if check.passed is False] == []


# Privacy --------------------------------------------------------------------------------------------------------------


def test_the_largest_budget_is_stated_and_every_receipt_kept() -> None:
    options = dict(mechanism="gaussian", insecure_seed=None)
    parts = [made(0, epsilon=1.0, delta=1e-9, dataset="north", **options), made(1, epsilon=0.5, delta=1e-7, **options)]
    for given in (parts, parts[::-1]):
        assert dpm.pool(given).privacy.budget == dpm.PrivacyBudget.approximate(1.0, 1e-7)
    pooled = dpm.pool(parts)
    assert pooled.privacy.private
    assert [draw.group for draw in pooled.receipt.draws] == ["1:north", f"2:{parts[1].id[:8]}…"]
    assert "1:north: gaussian, " in pooled.privacy.describe()
    assert not dpm.pool([parts[0], made(2, epsilon=1.0, delta=1e-9, mechanism="gaussian")]).privacy.private


def test_a_pool_says_what_is_true_of_all_tables() -> None:
    """The statement: rules of the schema once, then that of pooling, each table's cost, and each table's own rules."""
    parts = [columns(0, dataset="north"), columns(1, dataset="south", insecure_seed=3), columns(2, dataset="west")]
    pooled = dpm.pool(parts)
    assert (pooled.mechanism, pooled.mechanism_options, pooled.repair) == ("pooled", {}, "auto")
    assert pooled.details == {"mechanisms": ["matrix-laplace"] * 3}
    assert pooled.runs == tuple(parts)
    assert repr(pooled).startswith("PooledRelease(3 releases, ")

    rules, of_schema = pooled.privacy.rules, COLUMNS.rules
    assert rules[: len(of_schema)] == of_schema
    rule, *spent = rules[len(of_schema) : len(of_schema) + 4]
    assert rule == Message("pooled-tables", tables=3, neighbors="add_remove")
    assert [said.code for said in spent] == ["pooled-part"] * 3
    assert [said.facts["part"] for said in spent] == [("1:north",), ("2:south",), ("3:west",)]
    own = [said.code for part in parts for said in part.privacy.rules if said not in of_schema]
    assert [said.code for said in rules[len(of_schema) + 4 :]] == own

    rough = [
        replace(one, privacy=replace(one.privacy, arithmetic=each))
        for one, each in zip(parts, pooling.ARITHMETICS, strict=False)
    ]
    for given in (rough, rough[::-1]):
        assert dpm.pool(given).privacy.arithmetic == pooling.ARITHMETICS[len(rough) - 1]


def test_warnings_of_a_table_name_it_and_of_few_rows_the_pool_judges_its_own(tmp_path: Path) -> None:
    tiny, other = (
        dpm.release(site(place, rows), BALL, epsilon=1.0, dataset=name, insecure_seed=7 + place)
        for place, rows, name in ((0, 5, "tiny"), (1, 3000, "other"))
    )
    assert "too-few-rows" in {said.code for said in tiny.warnings}
    told = replace(other, diagnostics={"warnings": (*other.warnings, Message("rows-dropped", share=0.5, rows=6000))})
    pooled = dpm.pool([tiny, told])
    assert "too-few-rows" not in {said.code for said in pooled.warnings}
    assert "rows-dropped of 2:other" in str(pooled.ols("x0 ~ x1"))
    dpm.report(pooled, tmp_path / "pooled.html")
    assert "Nothing in this release is clear" not in (tmp_path / "pooled.html").read_text(encoding="utf-8")

    another = dpm.release(site(2, 5), BALL, epsilon=1.0, dataset="another", insecure_seed=5)
    with warned("too-few-rows", dpm.ReleaseWarning):
        both = dpm.pool([tiny, another])
    assert [said.facts.get("part") for said in both.warnings if said.code == "too-few-rows"] == [None]


def test_a_pool_warns_of_small_tables_with_most_of_the_noise() -> None:
    def table(rows: int, **options: Any) -> dpm.MomentRelease:
        rng = np.random.default_rng(rows)
        frame = pd.DataFrame({"age": rng.normal(40, 9, rows), "pay": rng.normal(0, 9, rows), "g": ["a"] * rows})
        return dpm.release(frame, COLUMNS, epsilon=1.0, dataset=f"of {rows}", insecure_seed=rows, **options)

    large, tiny = table(20_000), table(15)
    with warned("tables-noisy", dpm.ReleaseWarning, names=("of 15",)):
        pooled = dpm.pool([large, tiny])
    (said,) = [each for each in pooled.warnings if each.code == "tables-noisy"]
    deviations = [release.describe().standard_deviation_noise[0] for release in (pooled, large)]
    assert said.facts["times"] > 10.0
    assert deviations[0] > 10.0 * deviations[1]
    for other in (table(19_000), table(16, mechanism="matrix-laplace")):
        pooled = dpm.pool([large, other])
        assert "tables-noisy" not in {each.code for each in pooled.warnings}
        assert pooled.describe().standard_deviation_noise[0] < 3.0 * deviations[1]


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_the_receipt_counts_the_table_that_lost_most(neighbors: str) -> None:
    parts = [made(place, rho=rho, neighbors=neighbors, mechanism="gaussian") for place, rho in enumerate((0.5, 0.2))]
    pooled = dpm.pool(parts)
    assert pooled.receipt.total == parts[0].receipt.total
    # planted fault: as groups of one table, of which two may change where a row is replaced
    if neighbors == "replace_one":
        with refused("the draws of this receipt add up to more than the stated"):
            Receipt(pooled.receipt.neighbors, pooled.receipt.cost, pooled.receipt.unit, pooled.receipt.draws)


def test_releases_that_name_no_dataset_are_pooled_with_a_warning_that_is_kept(tmp_path: Path) -> None:
    """The same table twice, for all that anyone can see: nothing shows that they are disjoint."""
    once, again, named = columns(0), columns(0), columns(1, dataset="north")
    for parts, unnamed in (([once, again], 2), ([named, once], 1)):
        with warned("tables-not-checked", dpm.ReleaseWarning) as caught:
            pooled = dpm.pool(parts)
        (warning,) = [one.message for one in caught]
        assert isinstance(warning, dpm.ReleaseWarning)
        assert warning.release is pooled
        (kept,) = pooled.warnings
        assert warning.message_data == kept
        assert len(kept.facts["names"]) == unnamed
    pooled.save(tmp_path / "pooled.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once, and from then on stored
        loaded = dpm.load(tmp_path / "pooled.json")
    assert loaded.warnings == pooled.warnings
    with warned("tables-not-checked", dpm.ReleaseWarning):  # pooled again, it is said again, once
        assert len(dpm.pool([loaded, columns(2, dataset="south")]).warnings) == 1


def of_people() -> dpm.MomentRelease:
    """A release that protects people, of up to three rows each."""
    n = 300
    frame = pd.DataFrame({"age": np.full(n, 40.0), "pay": np.zeros(n), "g": ["a", "b"] * (n // 2), "person": range(n)})
    unit = dpm.PrivacyUnit("person", 3)
    return dpm.release(frame, COLUMNS, rho=1.0, privacy_unit=unit, insecure_seed=9)


def fake(rows: float, share: float | None, **facts: Any) -> Any:
    shares = None if share is None else np.array([share, 1.0])
    both = None if share is None else np.array([[share, share], [share, 1.0]])
    return SimpleNamespace(n_rows=rows, present=shares, both_present=both, **facts)


def test_shares_and_centers_of_tables_are_weighted_by_their_rows() -> None:
    parts = (fake(100.0, 0.5, center=np.array([1.0, 0.0])), fake(300.0, 0.9, center=np.array([3.0, 4.0])))
    of_all: Any = SimpleNamespace(parts=parts)
    expected = (100 * 0.5 + 300 * 0.9) / 400
    np.testing.assert_allclose(pooling.PooledRelease.present.fget(of_all), [expected, 1.0])
    both = pooling.PooledRelease.both_present.fget(of_all)
    np.testing.assert_allclose(both, [[expected, expected], [expected, 1.0]])
    for complete in (fake(100.0, None), fake(300.0, None)):
        some: Any = SimpleNamespace(parts=(parts[0], complete))
        assert pooling.PooledRelease.present.fget(some) is None
        assert pooling.PooledRelease.both_present.fget(some) is None
    one, other, without = (
        replace(columns(index, dataset=str(index)), noisy_count=rows, center=center)
        for index, (rows, center) in enumerate(
            [(100.0, np.array([1.0, 0.0, 0.0, 0.0])), (300.0, np.array([3.0, 4.0, 0.0, 0.0])), (1e6, None)]
        )
    )
    for pooled in (dpm.pool([one, other]), dpm.pool([without, one, other])):
        np.testing.assert_allclose(pooled.center, [2.5, 3.0, 0.0, 0.0])
    assert dpm.pool([without, columns(3, dataset="3")]).center is None


# Refusals -------------------------------------------------------------------------------------------------------------


def test_what_cannot_be_pooled_is_refused_with_the_reason() -> None:
    one = columns(0, insecure_seed=0, dataset="north")
    two = columns(1, insecure_seed=1)
    same_run = dpm.pool([one, two])
    other_levels = replace(two, schema=dpm.Schema(*COLUMNS.columns[:2], dpm.Categorical("g", ["a", "c"])))
    fewer = dpm.release(np.zeros((9, 1)), dpm.Schema(dpm.Numeric("age", 0, 100)), epsilon=1.0)
    tighter = replace(two, schema=dpm.Schema(*COLUMNS.columns, row_norm=1.2))
    mean = dpm.release_mean(np.zeros((9, 2)), dpm.Schema.unit_ball(2), rho=0.5)
    twice = "is given twice, perhaps inside one that was pooled before"
    units = "so that their numbers are in different units: release all"
    refusals: dict[str, tuple[Any, Said]] = {
        "nothing": ([], Said("no releases to pool: pass a list, [release_a, release_b]")),
        "one twice": ([one, one], Said(twice)),
        "one read another way": ([one, one.with_repair("none")], Said(twice)),
        "one inside a pool": ([same_run, two], Said(twice)),
        "one seed": ([one, columns(5, insecure_seed=0)], Said(twice)),
        "one dataset": ([one, columns(5, dataset="north")], Said("their rows would count twice", dataset="north")),
        "other levels": ([one, other_levels], Said(units, difference="column 'g'")),
        "other columns": ([one, fewer], Said(units, difference="other columns, or in another order")),
        "another row norm": ([one, tighter], Said(units, difference="row_norm")),
        "another mean=": ([one, columns(2, mean=False)], Said("was released with the mean and the other without")),
        "other neighbors": (
            [one, columns(2, neighbors="replace_one")],
            Said("release all tables for the same neighbors", first="add_remove", second="replace_one"),
        ),
        "another kind of budget": (
            [one, columns(2, rho=0.5)],
            Said("so that no one budget covers both", first="pure in epsilon", second="zcdp in rho"),
        ),
        "another unit": (
            [one, of_people()],
            Said(
                "so that no one guarantee covers both: release all tables",
                first="one row",
                second="all rows with one value of person, of which 3 count at most",
            ),
        ),
        "a mean alone": ([one, mean], Said("a mean-only release has no second moment to add: pool")),
        "no release": ([one, "north.json"], Said("a list of releases is pooled, got", got="str")),
    }
    for releases, said in refusals.values():
        with refused(said, (ValueError, TypeError)):
            dpm.pool(releases)


def test_what_is_no_release_is_refused_with_advice_where_it_may_be_a_key_of_groups() -> None:
    frame = pd.DataFrame({"g": ["a", "b"] * 50})
    counts = dpm.release_counts(frame, dpm.Schema(dpm.Categorical("g", ["a", "b"])), by=[["g"]], epsilon=1.0)
    with refused("a release of counts has no moments to add: pool releases", TypeError):
        dpm.pool([counts])  # type: ignore[list-item]
    for given, advised in (("north", True), (3, True), (3.5, False), (None, False)):
        with pytest.raises(TypeError) as caught:
            dpm.pool([given])  # type: ignore[list-item]
        assert ("of a GroupReleases pass groups.values()" in str(caught.value)) == advised


# The law of the noise -------------------------------------------------------------------------------------------------

GAUSSIAN = gaussian(3, 2.0, 1.0, 4.0, 9.0)
MATRIX = additive("matrix-laplace", 3, 10.0, 5.0, 5.0, 10.0, 1.0)
SHIFTS = ((0.6, -0.4, 0.0), (-0.5, 0.2, 0.9))


def model_of(models: tuple[AdditiveModel, ...], shifts: tuple[tuple[float, ...], ...]) -> PooledModel:
    parts = [(model, model.law(), np.array(shift)) for model, shift in zip(models, shifts, strict=True)]
    return PooledModel(n_features=models[0].n_features, parts=tuple(parts))


def test_a_part_without_a_law_for_its_features_is_refused() -> None:
    for law, shift in ((GAUSSIAN.law(), np.zeros(1)), (gaussian(2, 2.0, 1.0, 4.0, 9.0).law(), np.zeros(3))):
        with refused("of the noise model must be", entry="parts"):
            PooledModel(n_features=3, parts=((GAUSSIAN, law, shift),))
    with refused("of the noise model must be", expected="a list of at least one"):
        PooledModel(n_features=3, parts=())


def test_a_pooled_model_says_its_parts_and_no_file_may_name_it() -> None:
    values = json.loads(json.dumps(model_of((GAUSSIAN, MATRIX), SHIFTS).to_dict()))
    assert [part["shift"] for part in values["parts"]] == [list(shift) for shift in SHIFTS]
    assert [part["model"] for part in values["parts"]] == [GAUSSIAN.to_dict(), MATRIX.to_dict()]
    with refused(": use '"):
        NoiseModel.from_dict(values)


# Files ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    dpm.pool([columns(0, dataset="north"), columns(1, dataset="south")], repair="clip").save(tmp_path / "all.json")
    return tmp_path / "all.json"


def test_a_pooled_release_comes_back_to_the_bit_and_is_verified(saved: Path) -> None:
    loaded = dpm.load(saved)
    assert isinstance(loaded, dpm.PooledRelease)
    again = dpm.pool(loaded.parts, repair="clip")
    assert loaded.noisy_gram.tobytes() == again.noisy_gram.tobytes()
    assert loaded.covariance.tobytes() == again.covariance.tobytes()
    assert (loaded.id, loaded.privacy) == (again.id, again.privacy)
    assert loaded.noise_model.to_dict() == again.noise_model.to_dict()
    found = checks(loaded)
    assert [check for check in found if check.passed is False] == []
    assert {check.what.partition(":")[0] for check in found} >= {"1. north", "2. south", "sum of its releases"}
    assert repr(loaded).startswith("PooledRelease(2 releases, 4 features")
    changed = replace(loaded, noisy_gram=loaded.noisy_gram * 1.001)
    assert "sum of its releases" in [check.what for check in checks(changed) if check.passed is False]


@pytest.mark.parametrize(
    ("edit", "cause"),
    [
        (lambda content: content.update(releases=[]), "no releases to pool: pass a list, [release_a, release_b]"),
        (lambda content: content["releases"].append(content["releases"][0]), "is given twice, perhaps inside one"),
        (lambda content: content["releases"][0]["origin"].update(dataset="south"), "their rows would count twice"),
        (
            lambda content: content["releases"][0]["privacy"]["budget"].update(epsilon=0.1),
            "the receipt is not for the stated budget and relation",
        ),
    ],
)
def test_a_forged_pooled_release_is_refused(saved: Path, edit: Any, cause: str) -> None:
    forge(saved, edit)
    with refused("does not hold a consistent", cause=cause, noun="pooled release"):
        dpm.load(saved)


@pytest.mark.long
def test_a_part_that_contradicts_itself_fails_the_pools_verification(saved: Path) -> None:
    forge(
        saved, lambda content: content["releases"][1]["noise"].update(diagonal_variance=1.0, off_diagonal_variance=0.5)
    )
    failed = [check.what for check in checks(dpm.load(saved)) if check.passed is False]
    assert "2. south: noise as the stated budget calls for" in failed


@pytest.mark.long
def test_the_command_line_pools_shows_and_verifies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / f"{place}.json" for place in range(2)]
    for place, file in enumerate(files):
        columns(place, output=file, dataset=f"site {place}")
    output = tmp_path / "all.json"
    assert main(["pool", *map(str, files), "-o", str(output)]) == 0
    assert "2 releases pooled" in " ".join(capsys.readouterr().out.split())
    for command in (["show"], ["verify"], ["describe"], ["ridge", "age"], ["pca"], ["show", "--json"]):
        assert main([command[0], str(output), *command[1:]]) == 0, command
    capsys.readouterr()
    assert main(["pool", *map(str, files), "-o", str(output)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert main(["pool", str(files[0]), str(files[0]), "-o", str(tmp_path / "b.json")]) == 1
    assert "given twice" in capsys.readouterr().err
