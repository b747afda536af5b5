"""The page on choosing a budget: its tables are current, its blocks run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.practice.choose_a_budget import COMPUTED, PAGE, PRACTICE

SEVERAL_SECONDS = {"kinds"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SEVERAL_SECONDS else []) for name in COMPUTED]
)
def test_the_tables_are_current(name: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (written,) = re.findall(f"<!-- {name}: begin -->\n\n(.*?)\n\n<!-- {name}: end -->", text, re.S)
    assert written.splitlines() == list(COMPUTED[name]()), "run python -m benchmarks.practice.choose_a_budget"


def test_the_blocks_of_the_page_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They continue one another."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S):
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert "At ε = 1, 10,000 rows" in printed
    assert not list(tmp_path.iterdir())


def test_values_of_others_name_their_entries() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"`{entry}`" in text for *_, entry in PRACTICE)
