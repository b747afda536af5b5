"""Ids and names of datasets: no two releases share an id, a repeated run is the same, and nothing private is in either."""

from __future__ import annotations

import json
import re
import warnings
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.audit.verification import checks
from dpmoments.privacy.origin import ReleaseOrigin
from support.said import refused

SCHEMA = dpm.Schema.unit_ball(2)
TABLE = np.random.default_rng(0).uniform(-0.5, 0.5, (50, 2))
JOBS: dict[str, Any] = {
    "release": lambda table, **options: dpm.release(table, SCHEMA, rho=0.5, **options),
    "release_mean": lambda table, **options: dpm.release_mean(table, SCHEMA, rho=0.5, **options),
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_run_with_a_seed_is_the_same_bit_for_bit_and_its_id_knows_no_row(job: Any) -> None:
    first, again = (job(TABLE, insecure_seed=3, dataset="people") for _ in range(2))
    assert json.dumps(first.to_dict()) == json.dumps(again.to_dict())
    assert job(TABLE, insecure_seed=np.int64(3)).id == first.id
    assert job(TABLE, insecure_seed=4).id != first.id
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert job(TABLE[:0], insecure_seed=3).id == first.id
    fresh = [job(TABLE).id for _ in range(5)]
    assert len(set(fresh)) == 5
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in fresh)


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
@pytest.mark.parametrize(
    ("dataset", "error", "code"),
    [
        (7, TypeError, "dataset must be a text that names the table, such as"),
        ("", ValueError, "printable characters, such as 'people-2026"),
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
