"""Pages that are written from the code are current, and the README's example runs as printed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))


def test_the_table_of_mechanisms_is_current() -> None:
    from benchmarks.mechanism_table import OUTPUT, table

    assert OUTPUT.read_text(encoding="utf-8") == table(), "run python -m benchmarks.mechanism_table"


def test_the_readmes_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "differential" in printed
    assert "ridge regression of income" in printed
    assert (tmp_path / "people.json").exists()


def test_links_of_the_readme_and_the_docs_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_every_mechanism_has_its_derivation() -> None:
    from dpmoments.mechanisms.registry import MECHANISMS

    for mechanism in MECHANISMS.values():
        module = mechanism.__module__.rsplit(".", 1)[-1]
        if module != "auto":
            assert (ROOT / "docs" / "derivations" / f"{module}.md").exists(), module
