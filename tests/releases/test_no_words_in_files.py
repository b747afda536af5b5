"""Files hold codes, numbers and the curator's own names: no words, and what the published schema says."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from contracts.cases import BUDGETS, CASES, MEAN_CASES, Case
from dpmoments.base.message import Message
from support.file_schema import schema_faults

DATASET, DESCRIPTION, LEVEL = "people of 2026", "years since birth", "far north"
SCHEMA = dpm.Schema(
    dpm.Numeric("age in years", 0, 100, missing="drop", description=DESCRIPTION, typical=(20, 70)),
    dpm.Categorical("part of the country", [LEVEL, "south"]),
    dpm.Boolean("member"),
    dpm.Date("seen", "2015-01-01", "2025-12-31", missing="center"),
    dpm.Product("age in years", "member"),
)


def strings(value: Any) -> Iterator[str]:
    """All strings of a document, names of entries among them."""
    match value:
        case str():
            yield value
        case dict():
            yield from value
            yield from itertools.chain.from_iterable(map(strings, value.values()))
        case list():
            yield from itertools.chain.from_iterable(map(strings, value))


def words_in(path: Path, *names: str) -> list[str]:
    """Strings with a space that are no names of the curator's, each taken out of the others."""
    found = []
    for string in strings(json.loads(path.read_text())):
        rest = string
        for name in sorted(names, key=len, reverse=True):
            rest = rest.replace(name, "")
        if " " in rest.strip():
            found.append(string)
    return found


def id_of(case: Case) -> str:
    return case.id


def table_of(n_rows: int = 300) -> pa.Table:
    rng = np.random.default_rng(0)
    dates = pa.array(np.datetime64("2015-01-01") + rng.integers(0, 3000, n_rows).astype("timedelta64[D]"))
    return pa.table(
        {
            "age in years": rng.uniform(0, 100, n_rows),
            "part of the country": rng.choice([LEVEL, "south"], n_rows),
            "member": rng.random(n_rows) < 0.5,
            "seen": dates,
        }
    )


NAMES = (DATASET, DESCRIPTION, LEVEL, "age in years", "part of the country")


@pytest.mark.long(sets=6)
@pytest.mark.parametrize("case", [*CASES, *MEAN_CASES], ids=id_of)
def test_a_release_of_every_mechanism_holds_no_words(case: Case, tmp_path: Path) -> None:
    job: Any = dpm.release if case in CASES else dpm.release_mean
    options: dict[str, Any] = {"mean": case.mean} if case in CASES else {}
    for size in ("usual", "tiny"):
        path = tmp_path / f"{size}.json"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpm.ReleaseWarning)
            try:
                job(
                    case.table(), dpm.Schema.unit_ball(case.n_features), neighbors=str(case.neighbors),
                    mechanism=case.mechanism, insecure_seed=0, output=path, **BUDGETS[case.kind][size], **options,
                )  # fmt: skip
            except ValueError:
                assert size == "tiny"
                continue
        assert words_in(path) == []
        assert schema_faults(path) == []


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::dpmoments.ReleaseWarning")
def test_groups_pools_and_columns_of_every_kind_hold_no_words(tmp_path: Path) -> None:
    budget: dict[str, Any] = {"epsilon": 1.0, "insecure_seed": 0}
    dpm.release(table_of(), SCHEMA, dataset=DATASET, neighbors="replace_one", output=tmp_path / "a.json", **budget)
    dpm.release_mean(
        table_of(), SCHEMA, mechanism="naive", neighbors="replace_one", dataset=DATASET, output=tmp_path / "mean.json",
        **budget,
    )  # fmt: skip
    groups = dpm.release_groups(table_of(), SCHEMA, by="part of the country", output=tmp_path / "groups.json", **budget)
    dpm.pool([groups[LEVEL], groups["south"]]).save(tmp_path / "pooled.json")
    dpm.release_counts(table_of(), SCHEMA, by=["part of the country"], output=tmp_path / "counts.json", **budget)
    one, other = (dpm.release(table_of(9), SCHEMA, epsilon=0.1, insecure_seed=seed) for seed in (1, 2))
    dpm.pool([one, other]).save(tmp_path / "unnamed.json")
    for path in tmp_path.iterdir():
        assert words_in(path, *NAMES) == [], path.name
        assert schema_faults(path) == [], path.name
        again = dpm.load(path)
        assert all(isinstance(said, Message) for said in (*again.warnings, *again.privacy.rules))
    assert dpm.load(tmp_path / "unnamed.json").warnings[0].code == "tables-not-checked"


def test_a_sentence_in_a_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    dpm.release(table_of(), SCHEMA, dataset=DATASET, epsilon=1.0, insecure_seed=0, output=path)
    planted = "clipped to [0, 100] for part of the country"
    held = json.loads(path.read_text())
    held["content"]["privacy"]["rules"][0]["facts"]["missing"] = planted
    path.write_text(json.dumps(held))
    assert words_in(path, *NAMES) == [planted]
    assert schema_faults(path)
    with pytest.raises(ValueError):
        dpm.load(path)
