"""Groups of rows released in one run: each is the release of its rows, none tells of another's, and the budget is spent once."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.audit.replay import Recorder, Replayer
from dpmoments.audit.verification import checks
from dpmoments.base.message import Message
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy import origin
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.filter import PrivacyFilter, PrivacyFilterError
from dpmoments.privacy.laws import DiscreteGaussian
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.sensitivity import row_sum_l2
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.encode import Restriction
from dpmoments.rows.rows import Rows
from dpmoments.schema.constraints import grouping_column, levels_of, schema_of_groups
from dpmoments.spending.release import GroupsPlan
from support.forged_files import forge
from support.said import refused
from support.table_forms import FILES, FORMS, a_third_of_forms, reference_moments
from support.table_forms import SCHEMA as FORM_SCHEMA
from support.table_forms import TABLE as FORM_TABLE

SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100, missing="center"),
    dpm.Categorical("region", ["north", "south", "east"], missing="zero", other="zero"),
    dpm.Numeric("pay", -50, 50, missing="drop"),
    dpm.Boolean("flag", missing="center"),
)
MECHANISMS: dict[str, dict[str, Any]] = {
    "auto": dict(epsilon=1.0),
    "gaussian": dict(epsilon=1.0, delta=1e-6, mechanism="gaussian"),
    "standardized": dict(rho=2.0, mechanism="standardized"),
    "standardized, pure": dict(epsilon=5.0, mechanism="standardized"),
    "gram alone": dict(epsilon=1.0, mean=False),
    "eigenvectors": dict(epsilon=1.0, mechanism="iterative-eigenvectors"),
    "coinpress": dict(rho=2.0, mechanism="coinpress"),
    "Wishart": dict(epsilon=1.0, delta=1e-6, mechanism=dpm.mechanisms.JohnsonLindenstrauss(adaptive=True)),
}


def table(n_rows: int = 600, seed: int = 0) -> pa.Table:
    """Rows of three levels, of none, of another."""
    rng = np.random.default_rng(seed)
    regions = rng.choice(
        np.array(["north", "south", "east", "west", None], dtype=object), n_rows, p=[0.5, 0.3, 0.0, 0.1, 0.1]
    )
    return pa.table(
        {
            "age": rng.normal(45, 5, n_rows),
            "region": pa.array(regions.tolist(), pa.string()),
            "pay": rng.normal(5, 3, n_rows),
            "flag": rng.random(n_rows) < 0.3,
        }
    )


def rows_of(full: pa.Table, level: str) -> pa.Table:
    return full.filter(pc.equal(full["region"], level))


# What is in a group ---------------------------------------------------------------------------------------------------


@pytest.mark.long(sets=3)
@pytest.mark.parametrize("form", a_third_of_forms(0))
def test_a_group_has_the_exact_moments_of_its_rows_in_every_form(form: str, tmp_path: Path) -> None:
    data = FORMS[form]() if form in FORMS else FILES[form](tmp_path)
    schema = schema_of_groups(FORM_SCHEMA, "region")
    rows = Rows.of(data, FORM_SCHEMA)
    for level in ("north", 'we"st'):
        expected = reference_moments(rows_of(FORM_TABLE, level), schema)
        found = rows.where("region", level).moments()
        assert (found.count, found.scale) == (expected.count, expected.scale)
        np.testing.assert_array_equal(found.gram, expected.gram)
        np.testing.assert_array_equal(found.sum, expected.sum)
    assert rows.where("region", *levels_of(grouping_column(FORM_SCHEMA, "region"))).count() < rows.count()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_row_of_no_level_is_in_no_group_and_none_of_its_other_rules_apply(threads: int) -> None:
    schema = dpm.Schema(dpm.Categorical("g", ["a", "b"], missing="zero", other="drop"), dpm.Numeric("x", 0, 10))
    cells = pa.table({"g": ["a", "b", None, "c", ""], "x": [1.0, 2.0, None, None, None]})
    rows = Rows.of(cells, schema, threads=threads)
    assert [rows.where("g", level).count() for level in ("a", "b")] == [1, 1]
    outside = pa.table({"g": ["a", "b"], "x": [1.0, None]})
    assert Rows.of(outside, schema).where("g", "a").count() == 1
    with refused("has a cell that is missing, not finite or not readable, and", column="x"):
        Rows.of(outside, schema).where("g", "b").count()


@pytest.mark.parametrize(
    ("cells", "counts"),
    [
        (pa.array([True, False, None, True]), [1, 2]),
        (pa.array([1.0, 0.0, math.nan, 0.5, 7.0, -1.0]), [2, 2]),
        (np.array([True, None, 0, 1], dtype=object), [1, 2]),
    ],
)
def test_groups_of_a_boolean_are_false_and_true(cells: Any, counts: list[int]) -> None:
    schema = dpm.Schema(dpm.Boolean("flag", missing="center"), dpm.Numeric("x", 0, 10))
    data = (
        pd.DataFrame({"flag": cells, "x": np.ones(len(cells))})
        if isinstance(cells, np.ndarray)
        else pa.table({"flag": cells, "x": np.ones(len(cells))})
    )
    rows = Rows.of(data, schema)
    assert [rows.where("flag", level).count() for level in (False, True)] == counts
    groups = dpm.release_groups(data, schema, by="flag", epsilon=1.0, insecure_seed=0)
    assert list(groups) == [False, True]
    with pytest.raises(KeyError):
        groups["True"]
    with pytest.raises(KeyError):
        groups[1]


# A run ------------------------------------------------------------------------------------------------------------------


@pytest.mark.long(sets=2)
@pytest.mark.parametrize("options", MECHANISMS.values(), ids=MECHANISMS)
def test_every_mechanism_releases_groups(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "groups.json"
    made = dpm.release_groups(table(), SCHEMA, by="region", output=path, dataset="people", **options)
    assert list(made) == ["north", "south", "east"]
    assert len(made) == 3
    loaded = dpm.load(path)
    assert json.dumps(loaded.to_dict()) == json.dumps(made.to_dict())
    assert loaded.privacy == made.privacy
    failed = [check for check in checks(loaded) if check.passed is False]
    assert not failed, failed
    assert len({made.id, *(release.id for release in made.values())}) == 4
    whole = dpm.release(table(), schema_of_groups(SCHEMA, "region"), **options)
    assert made.privacy.budget == whole.privacy.budget
    for level, release in made.items():
        assert release.privacy.budget == whole.privacy.budget
        assert release.dataset == "people"
        assert release.feature_names == ("age", "pay", "flag")
        assert release.privacy.private
        assert release.privacy.rules[-1].facts == {"column": "region", "level": level, "groups": len(made)}
        assert all(draw.group is None for draw in release.receipt.draws)
    assert {draw.group for draw in made.receipt.draws} == {f"region={level}" for level in made}
    assert made.receipt.total.within(made.receipt.allowance)
    assert made.privacy.rules[-1] == Message("parallel-groups", column="region", groups=3)


def test_one_seed_repeats_the_run_and_gives_every_group_noise_of_its_own() -> None:
    empty = table(0)
    first, again = (dpm.release_groups(empty, SCHEMA, by="region", epsilon=1.0, insecure_seed=5) for _ in range(2))
    assert json.dumps(first.to_dict()) == json.dumps(again.to_dict())
    noise = [release.noisy_gram for release in first.values()]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not np.isclose(noise[one], noise[other]).any()
    assert not first.privacy.private
    assert "NOT PRIVATE" in repr(first)


def test_an_empty_group_and_one_of_one_row_are_released_like_others() -> None:
    cells = pa.table({"age": [50.0], "region": ["south"], "pay": [1.0], "flag": [True]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        groups = dpm.release_groups(cells, SCHEMA, by="region", epsilon=1.0, insecure_seed=0)
    assert [str(warning.message).partition(":")[0] for warning in caught] == [f"region={level}" for level in groups]
    assert caught[0].message.release is groups
    shapes = {json.dumps(group.receipt.to_dict()) for group in groups.values()}
    assert len(shapes) == 1


def test_progress_is_of_the_table_and_not_of_the_groups() -> None:
    told: dict[int, list[float | None]] = {}
    for seed in (0, 1):
        told[seed] = []
        options: dict[str, Any] = dict(rho=1.0, mechanism="gaussian", insecure_seed=0, progress=told[seed].append)
        dpm.release_groups(table(seed=seed), SCHEMA, by="region", **options)
    assert told[0] == told[1]
    assert told[0] == [step / 100 for _ in range(3) for step in range(1, 101)]


# Refusals ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (dict(by="place"), "is not a column of the schema"),
        (dict(by="age"), "Bands of numbers must be made"),
        (dict(by=None), "is not a column of the schema"),
        (dict(by="region", neighbors="replace_one"), ": a replaced row may change its group, so that two"),
        (dict(by="region", dataset=""), "printable characters, such as 'people-2026"),
    ],
)
def test_what_cannot_be_is_refused_before_a_row_is_read(options: dict[str, Any], code: str) -> None:
    with refused(code):
        dpm.release_groups("no-such-table.parquet", SCHEMA, epsilon=1.0, **options)


def test_a_column_beside_which_there_is_none_is_refused() -> None:
    schema = dpm.Schema(dpm.Categorical("region", ["north"]))
    with refused("is the schema's only column: add another, whose moments"):
        dpm.release_groups(table(), schema, by="region", epsilon=1.0)
    with refused("is not a level of", column="region"):
        Rows.of(table(), SCHEMA).where("region", "west")
    with pytest.raises(TypeError):
        dpm.release_groups(table(), SCHEMA, epsilon=1.0)  # type: ignore[call-arg]


def test_a_bound_on_the_row_norm_stays_and_the_default_is_that_of_fewer_columns() -> None:
    assert schema_of_groups(SCHEMA, "region").row_norm == pytest.approx(math.sqrt(3))
    assert schema_of_groups(dpm.Schema(*SCHEMA.columns, row_norm=1.5), "region").row_norm == 1.5
    assert schema_of_groups(dpm.Schema(dpm.Numeric("a", scale=(1, 10)), dpm.Boolean("b")), "b").row_norm is None


# Privacy: neighbors ------------------------------------------------------------------------------------------------------

ROWS = {
    "of a group": dict(age=50.0, region="south", pay=0.0, flag=True),
    "of the empty group": dict(age=50.0, region="east", pay=0.0, flag=True),
    "of another value": dict(age=50.0, region="west", pay=0.0, flag=True),
    "of no value": dict(age=50.0, region=None, pay=0.0, flag=None),
    "dropped": dict(age=50.0, region="south", pay=None, flag=True),
    "far outside": dict(age=1e300, region="north", pay=-1e300, flag=False),
}


def with_row(full: pa.Table, row: dict[str, Any]) -> pa.Table:
    return pa.concat_tables([full.slice(0, 40), pa.Table.from_pylist([row], full.schema), full.slice(40)])


def departures(
    tables: tuple[pa.Table, pa.Table], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Any], list[str]]:
    """All that leaves a grouped run on two tables, the second given the first's answers; and what moved unpaid."""
    filters: list[Any] = []

    def opened(plan: Any, **_: Any) -> PrivacyFilter:
        filters.append(Replayer(plan, filters[0].exchanges) if filters else Recorder(plan, insecure_generator(2)))
        return filters[-1]

    told: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(PrivacyFilter, "open", staticmethod(opened))
        patch.setattr(origin, "secrets", SimpleNamespace(token_hex=lambda _: "0" * 32))
        for one in tables:
            steps: list[float | None] = []
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                made = dpm.release_groups(one, SCHEMA, by="region", **options)
            said = [str(warning.message) for warning in caught]
            told.append((json.dumps(made.to_dict()), made.privacy.describe(), said, repr(made), checks(made), steps))
    filters[1].check_all_made()
    return told, filters[1].faults


@pytest.mark.long
@pytest.mark.parametrize("job", ["auto", "standardized", "gram alone", "Wishart"])
@pytest.mark.parametrize("row", ROWS)
def test_a_grouped_run_tells_nothing_of_a_row_but_what_it_pays_for(
    job: str, row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = table(80)
    told, faults = departures((small, with_row(small, ROWS[row])), MECHANISMS[job], monkeypatch)
    assert faults == []
    assert told[0] == told[1]


@pytest.mark.long
def test_the_sizes_of_groups_that_leak_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault each: the exact size in a diagnostic; an empty group without a release of its own."""
    honest = GroupsPlan.run
    small = table(80)
    pair = (small, with_row(small, ROWS["of the empty group"]))

    def told_exactly(self: GroupsPlan, rows: Rows, privacy_filter: PrivacyFilter) -> Any:
        return {
            level: replace(noisy, diagnostics={**noisy.diagnostics, "rows": rows.where("region", level).count()})
            for level, noisy in honest(self, rows, privacy_filter).items()
        }

    def empty_left_out(self: GroupsPlan, rows: Rows, privacy_filter: PrivacyFilter) -> Any:
        found = {}
        for level in levels_of(self.by):
            group = rows.where("region", level)
            if group.count():
                found[level] = self.inner.run(group, privacy_filter.for_group(f"region={level}"))
        return {level: found.get(level, found["north"]) for level in levels_of(self.by)}

    for planted in (told_exactly, empty_left_out):
        with monkeypatch.context() as patch:
            patch.setattr(GroupsPlan, "run", planted)
            try:
                told, faults = departures(pair, MECHANISMS["gaussian"], patch)
            except PrivacyFilterError as found:
                told, faults = [], [str(found)]
        assert faults or told[0] != told[1], planted


def test_a_row_that_is_counted_in_two_groups_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Restriction._kept

    def kept(self: Restriction, cells: Any) -> Any:
        return honest(replace(self, levels=tuple({*self.levels, "south"})), cells)

    small = table(80)
    monkeypatch.setattr(Restriction, "_kept", kept)
    _, faults = departures((small, with_row(small, ROWS["of a group"])), MECHANISMS["gaussian"], monkeypatch)
    assert any("moved in 2 groups of rows" in fault for fault in faults)


def test_the_filter_holds_every_group_to_the_budget() -> None:
    """Not a group may draw twice, whatever the others have drawn."""
    by = SCHEMA.columns[1]
    of_group = dpm.mechanisms.Gaussian().plan(
        MomentShape.of(schema_of_groups(SCHEMA, "region"), mean=True), dpm.PrivacyBudget.zcdp(0.5), "add_remove"
    )
    plan = GroupsPlan.of(of_group, by)
    rows = Rows.of(table(50), SCHEMA)
    opening = PrivacyFilter.open(plan, insecure_seed=0)
    plan.run(rows, opening)
    assert opening.left.amount <= opening.close().allowance.amount * 1e-9
    opening = PrivacyFilter.open(plan, insecure_seed=0)
    plan.run(rows, opening)
    with refused("would spend more than the plan states", PrivacyFilterError):
        of_group.run(rows.where("region", "north"), opening.for_group("region=north"))
    shape = MomentShape.of(schema_of_groups(SCHEMA, "region"), mean=True, n_rows=9)
    replaced = dpm.mechanisms.Gaussian().plan(shape, dpm.PrivacyBudget.zcdp(0.5), "replace_one")
    with refused("groups of rows are planned for add_remove: a replaced row"):
        GroupsPlan.of(replaced, by)


def test_the_least_a_replayer_lets_move_follows_from_the_relation() -> None:
    """Under replace-one a row may leave one group for another, so two may move; three may not."""
    law, cost = DiscreteGaussian(10.0), dpm.PrivacyBudget.zcdp(100.0)
    for neighbors, allowed in ((Neighbors.ADD_REMOVE, 1), (Neighbors.REPLACE_ONE, 2)):
        for moved in (1, 2, 3):
            plan = SimpleNamespace(loss_unit=LossUnit.RHO, cost=cost, privacy_unit=None, neighbors=neighbors)
            recorder, one_row = Recorder(plan, insecure_generator(0)), row_sum_l2(neighbors)
            for group in "abc":
                recorder.for_group(group).draw("sum", law, np.array([5]), one_row)
            replayer = Replayer(plan, recorder.exchanges)
            for place, group in enumerate("abc"):
                replayer.for_group(group).draw("sum", law, np.array([6 if place < moved else 5]), one_row)
            assert bool(replayer.faults) == (moved > allowed)


# Files ------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def groups_released() -> dpm.GroupReleases:
    return dpm.release_groups(table(), SCHEMA, by="region", epsilon=1.0, dataset="people", insecure_seed=0)


@pytest.fixture
def saved(groups_released: dpm.GroupReleases, tmp_path: Path) -> Path:
    groups_released.save(tmp_path / "groups.json")
    return tmp_path / "groups.json"


def of_second(value: Any, *path: Any) -> Any:
    """An edit of the second release of a file."""

    def edit(content: dict[str, Any]) -> None:
        place: Any = content["releases"][1]
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "cause"),
    [
        (lambda content: content["by"].update(levels=["north", "south"]), "levels, and there are"),
        (lambda content: content["by"].update(name="place"), "a release is not of the group"),
        (
            lambda content: content.update(by={"kind": "numeric", "name": "region", "lower": 0, "upper": 1}),
            "groups are the levels of a categorical or boolean column",
        ),
        (lambda content: content["releases"].pop(), "levels, and there are"),
        (lambda content: content["releases"].reverse(), "a release is not of the group"),
        (lambda content: content["releases"].__setitem__(1, content["releases"][0]), "a release is not of the group"),
        (of_second(None, "origin", "group"), "a release is not of the group"),
        (of_second("f" * 32, "origin", "group", "run"), "the releases are of groups of several runs"),
        (of_second("firms", "origin", "dataset"), "the releases are of groups of several runs"),
        (of_second(99.0, "schema", "columns", 0, "upper"), "the features are not those of the schema"),
        (of_second("0.0.0", "privacy", "version"), "the releases of the groups do not state one budget under"),
    ],
)
def test_a_forged_file_of_groups_is_refused(saved: Path, edit: Any, cause: str) -> None:
    forge(saved, edit)
    with refused("does not hold a consistent", cause=cause):
        dpm.load(saved)


def test_a_file_is_not_overwritten_and_a_folder_takes_every_group(saved: Path, tmp_path: Path) -> None:
    groups = dpm.load(saved)
    with pytest.raises(FileExistsError):
        groups.save(saved)
    folder = tmp_path / "regions"
    folder.mkdir()
    groups.save(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["01-north.json", "02-south.json", "03-east.json"]
    south = dpm.load(folder / "02-south.json")
    assert json.dumps(south.to_dict()) == json.dumps(groups["south"].to_dict())
    (folder / "01-north.json").unlink()
    with pytest.raises(FileExistsError):
        groups.save(folder)
    assert not (folder / "01-north.json").exists()


def test_groups_cannot_be_changed_and_show_no_row(saved: Path) -> None:
    groups = dpm.load(saved)
    with pytest.raises(TypeError):
        groups["north"] = groups["south"]
    with pytest.raises(AttributeError):
        groups.releases = ()
    assert repr(groups).startswith("GroupReleases(by='region', levels: 'north', 'south', 'east'; 3 features")
    with refused("is not a level of", KeyError, column="region"):
        groups["west"]
    assert dict(groups.items())["north"] is groups["north"]


def test_a_group_whose_statement_hides_that_it_is_one_fails_verification(saved: Path) -> None:
    groups = dpm.load(saved)
    north = groups["north"]
    hidden = replace(north, privacy=replace(north.privacy, rules=north.privacy.rules[:-1]))
    assert [check.what for check in checks(hidden) if check.passed is False] == ["noise as the stated budget calls for"]


@pytest.mark.long
@pytest.mark.parametrize(("by", "mean"), [("region", False), ("flag", True)])
def test_the_command_line_releases_shows_verifies_and_parts_groups(
    by: str, mean: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dpmoments.cli import main

    data, schema, output = tmp_path / "people.parquet", tmp_path / "people.yaml", tmp_path / "groups.json"
    pq.write_table(table(), data)
    SCHEMA.save(schema)
    budget = ("--epsilon", "1", "--neighbors", "add_remove", "--schema", str(schema))
    more = () if mean else ("--no-mean",)
    assert main(["release", str(data), *budget, "--by", by, "--output", str(output), *more]) == 0
    assert main(["show", str(output)]) == 0
    assert "parallel composition" in capsys.readouterr().out
    assert main(["show", str(output), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert len(shown["groups"]) == len(dpm.load(output))
    assert main(["verify", str(output)]) == 0
    assert main(["pca", str(output)]) == 1
    assert "'dpmoments groups" in capsys.readouterr().err
    assert main(["groups", str(output), "--into", str(tmp_path / "no folder")]) == 1
    (tmp_path / "parts").mkdir()
    assert main(["groups", str(output), "--into", str(tmp_path / "parts")]) == 0
    parts = sorted((tmp_path / "parts").iterdir())
    assert [dpm.load(part).id for part in parts] == [release.id for release in dpm.load(output).values()]
    assert main(["groups", str(parts[0]), "--into", str(tmp_path)]) == 1
    assert main(["release", str(data), *budget, "--by", by, "--output", str(tmp_path / "b.json"), "--n-rows", "9"]) == 2
