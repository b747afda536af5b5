"""Ids and names of datasets: no two releases share an id, a repeated run is the same, and nothing private is in either."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.audit.verification import checks
from dpmoments.cli import main
from dpmoments.privacy.origin import ReleaseOrigin
from support.said import refused

SCHEMA = dpm.Schema.unit_ball(2)
TABLE = np.random.default_rng(0).uniform(-0.5, 0.5, (50, 2))
JOBS: dict[str, Any] = {
    "release": lambda table, **options: dpm.release(table, SCHEMA, rho=0.5, **options),
    "release_mean": lambda table, **options: dpm.release_mean(table, SCHEMA, rho=0.5, **options),
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_every_release_has_an_id_of_its_own(job: Any) -> None:
    found = [job(TABLE).id for _ in range(5)]
    assert len(set(found)) == 5
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in found)


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_run_with_a_seed_is_the_same_bit_for_bit_and_its_id_knows_no_row(job: Any) -> None:
    first, again = (job(TABLE, insecure_seed=3, dataset="people") for _ in range(2))
    assert json.dumps(first.to_dict()) == json.dumps(again.to_dict())
    assert job(TABLE, insecure_seed=np.int64(3)).id == first.id
    assert job(TABLE, insecure_seed=4).id != first.id
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert job(TABLE[:0], insecure_seed=3).id == first.id


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_the_dataset_is_kept_in_the_file(job: Any, tmp_path: Path) -> None:
    made = job(TABLE, dataset="people-2026", output=tmp_path / "people.json")
    loaded = dpm.load(tmp_path / "people.json")
    assert (loaded.id, loaded.dataset) == (made.id, "people-2026")
    assert job(TABLE).dataset is None


def test_another_reading_of_a_release_is_the_same_release() -> None:
    made = JOBS["release"](TABLE)
    assert made.with_repair("none").id == made.id


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
@pytest.mark.parametrize(
    ("dataset", "error", "code"),
    [
        (7, TypeError, "dataset must be a text that names the table, such as"),
        ("", ValueError, "printable characters, such as 'people-2026"),
        (" ", ValueError, "printable characters, such as 'people-2026"),
        ("a\nb", ValueError, "printable characters, such as 'people-2026"),
        ("x" * 201, ValueError, "printable characters, such as 'people-2026"),
        ("half \ud800", ValueError, "is not valid Unicode text (it holds half of a"),
    ],
)
def test_what_names_no_dataset_is_refused_before_a_row_is_read(
    job: Any, dataset: Any, error: type[Exception], code: str
) -> None:
    with refused(code, error):
        job("no-such-table.parquet", dataset=dataset)


def test_a_group_that_the_statement_knows_nothing_of_is_found() -> None:
    """A file edited to say that it is one of several groups, so that two of one dataset would be pooled."""
    content = JOBS["release"](TABLE, dataset="people").to_dict()
    content["origin"]["group"] = {"run": "0" * 32, "by": "region", "level": "north", "n_levels": 2}
    failed = [check.what for check in checks(dpm.MomentRelease.from_dict(content)) if check.passed is False]
    assert failed == ["noise as the stated budget calls for"]


def test_ids_made_of_what_is_known_differ_with_each_of_it() -> None:
    run = ReleaseOrigin.fresh(insecure_seed=0)
    made = [
        run,
        ReleaseOrigin.fresh(insecure_seed=1),
        run.of_group("region", "1", 2),
        run.of_group("region", 1, 2),
        run.of_group("region", True, 2),
        run.of_group("place", "1", 2),
        ReleaseOrigin.of_parts((run, run.of_group("region", 1, 2))),
    ]
    assert len({origin.id for origin in made}) == len(made)
    assert ReleaseOrigin.of_parts((made[0], made[1])) == ReleaseOrigin.of_parts((made[1], made[0]))


def test_the_command_line_names_the_dataset_and_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "people.csv").write_text("age\n30\n40\n")
    dpm.Schema(dpm.Numeric("age", 0, 100)).save(tmp_path / "people.yaml")
    for command in ("release", "release-mean"):
        output = tmp_path / f"{command}.json"
        options = ("--rho", "0.5", "--neighbors", "add_remove", "--dataset", "people-2026", "--output", str(output))
        assert main([command, str(tmp_path / "people.csv"), "--schema", str(tmp_path / "people.yaml"), *options]) == 0
        assert main(["show", str(output)]) == 0
        assert f"Release {dpm.load(output).id} of people-2026." in capsys.readouterr().out


def test_a_label_names_dataset_and_group_or_begins_with_the_id() -> None:
    alone = ReleaseOrigin.fresh(insecure_seed=0)
    assert alone.label == f"{alone.id[:8]}…"
    assert ReleaseOrigin.fresh("people", insecure_seed=0).label == "people"
    assert "north" in alone.of_group("region", "north", 3).label
    both = ReleaseOrigin.fresh("people", insecure_seed=0).of_group("region", "north", 3).label
    assert both.startswith("people/")
    assert "north" in both
