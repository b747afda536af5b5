"""The format of release files (docs/api/file-format.md): schema and page are current, and plain JSON suffices to read one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from support.file_schema import faults_of, schema_faults
from support.said import refused

PAGE = Path(__file__).parent.parent.parent / "docs" / "api" / "file-format.md"


def test_the_schema_and_the_table_of_its_page_are_of_today() -> None:
    from tools.documentation import file_format

    advice = "python -m tools.documentation.file_format"
    assert file_format.SCHEMA.read_text(encoding="utf-8") == file_format.schema_text(), advice
    assert PAGE.read_text(encoding="utf-8") == file_format.page_text(), advice


@pytest.mark.parametrize("mechanism", ["standardized", "matrix-laplace"])
def test_the_page_reads_a_release_without_the_library(
    mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = np.random.default_rng(0).normal([40.0, 3e4], [5.0, 4e3], (20_000, 2))
    schema = dpm.Schema(dpm.Numeric("age", 0, 120), dpm.Numeric("income", 0, 200_000, typical=(1e4, 5e4)))
    dpm.release(table, schema, epsilon=1.0, mechanism=mechanism, insecure_seed=0, output="people.json")
    names = names_of_block(0)
    release = dpm.load("people.json").with_repair("none")
    np.testing.assert_allclose(names["mean"], release.mean, rtol=1e-12)
    np.testing.assert_allclose(names["covariance"], release.covariance, rtol=1e-9)


@pytest.mark.long
def test_the_page_reads_a_release_of_counts_without_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    schema = dpm.Schema(dpm.Categorical("region", ["north", "south", "east"]), dpm.Boolean("smoker"))
    table = pa.table({"region": ["north", "south", "south"] * 40, "smoker": [True, False] * 60})
    dpm.release_counts(table, schema, by=["smoker", "region"], epsilon=1.0, insecure_seed=0, output="counts.json")
    names, release = names_of_block(1), dpm.load("counts.json")
    np.testing.assert_array_equal(names["counts"], release.noisy_counts)
    assert names["standard_error"] == release.standard_error
    assert schema_faults(tmp_path / "counts.json") == []


def names_of_block(index: int) -> dict[str, Any]:
    """What a Python block of the page defines."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(blocks[index], str(PAGE), "exec"), names)
    return names


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("file") / "release.json"
    dpm.release(np.zeros((500, 2)), dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0, output=path)
    return dict(json.loads(path.read_text()))


@pytest.mark.parametrize(
    "edit",
    [
        lambda content: content["privacy"]["rules"].append("all is well"),
        lambda content: content["privacy"]["rules"].append({"code": "no-such-code"}),
        lambda content: content["privacy"]["rules"][0]["facts"].update(coordinates="two"),
        lambda content: content["warnings"].append({"code": "row-norm-bound", "facts": {"norm": 1.0}}),
        lambda content: content.update(more=1),
        lambda content: content.pop("receipt"),
        lambda content: content["receipt"]["draws"][0].update(what="count"),
        lambda content: content["features"].update(names=[1]),
    ],
)
def test_what_the_library_refuses_the_schema_refuses(
    document: dict[str, Any], edit: Callable[[dict[str, Any]], object], tmp_path: Path
) -> None:
    from support.forged_files import signed

    changed = json.loads(json.dumps(document))
    assert faults_of(changed) == []
    edit(changed["content"])
    assert faults_of(changed)
    path = tmp_path / "changed.json"
    path.write_text(signed(changed))
    with refused("does not hold a consistent"):
        dpm.load(path)
