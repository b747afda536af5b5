"""Pages that are written from the code are current, and the README's example runs as printed."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from tools.documentation.analyses import API, FOLDER, analyses, index, pages, texts
from tools.documentation.mechanisms import WHEN, WITHOUT_A_PROOF, mechanisms_page
from tools.documentation.notebooks import notebooks, recorded, run

from dpmoments.cli.options import describe_parameters
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS
from support.doc_blocks import run_in_order

pytestmark = pytest.mark.long(sets=None)

ROOT = Path(__file__).parents[2]


def test_the_table_of_mechanisms_is_current() -> None:
    written = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    assert written == mechanisms_page(), "run python -m tools.documentation.mechanisms"
    assert {part: list(names) for part, names in WHEN.items()} == {
        "covariance": list(MECHANISMS),
        "means": list(MEAN_MECHANISMS),
    }


@pytest.mark.parametrize("kind", [*MECHANISMS.values(), *MEAN_MECHANISMS.values()])
def test_a_mechanism_describes_its_guarantee_and_every_option(kind: type) -> None:
    assert kind is MECHANISMS["auto"] or "**Privacy.** " in (kind.__doc__ or "")  # auto has that of what it takes
    words = describe_parameters(kind)
    assert set(words) == {option.name for option in fields(kind)}
    assert all(word.kind and word.text for word in words.values())


def test_every_analysis_has_a_page_that_is_current() -> None:
    assert list(texts()) == sorted(analyses(), key=list(texts()).index)
    for path, text in pages().items():
        assert path.read_text(encoding="utf-8") == text, "run python -m tools.documentation.analyses"
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.md" for name in analyses()}
    overview = (API / "answers.md").read_text(encoding="utf-8")
    assert "\n".join(index()) in overview
    for text in texts().values():
        assert "figure" not in text or (ROOT / "docs" / "images" / text["figure"]).exists()


def test_the_readmes_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "privacy" in printed
    assert "least squares regression of hours-per-week" in printed
    assert (tmp_path / "people.json").exists()
    assert "differential privacy" in (tmp_path / "people.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "printed", "files"),
    [
        ("averages-and-counts.md", ["(parallel composition)"], {"stays.json", "by-ward.json", "all-sites.json"}),
        (
            "how-to-read-tables.md",
            ["'Station=ICU'", "2020-01-01 to 2024-12-31, in days since 2020-01-01", "('age', 'ward', 'seen')"],
            {"clinic.yaml"},
        ),
        pytest.param(
            "people-not-rows.md",
            ["all rows with one value of person_id, present or absent"],
            {"visits.json"},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_page_whose_blocks_continue_one_another_runs(
    page: str,
    printed: list[str],
    files: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    run_in_order(ROOT / "docs" / page)
    words = " ".join(capsys.readouterr().out.split())
    assert all(part in words for part in printed)
    assert files <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.long
@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(path: Path) -> None:
    """Word by word, numbers to a part in a hundred: other versions of libraries may round the last digit otherwise."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    again = "run python -m tools.documentation.notebooks"
    for shown, printed in zip(recorded(notebook), run(notebook), strict=True):
        assert _words(printed) == _words(shown), again
        np.testing.assert_allclose(_numbers(printed), _numbers(shown), rtol=0.01, atol=0.01, err_msg=again)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text)


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


@pytest.mark.parametrize(("page", "blocks"), [pytest.param("goals.md", 2, marks=pytest.mark.slow), ("preflight.md", 2)])
def test_a_page_prints_what_it_shows(
    page: str, blocks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its blocks continue one another; an ellipsis stands for the rest of an output."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    shown = re.findall(r"```python\n(.*?)```\n+(?:```text\n(.*?)```)?", text, re.S)
    assert sum(bool(printed) for _, printed in shown) == blocks
    for block, printed in shown:
        exec(compile(block, page, "exec"), names)
        assert capsys.readouterr().out.startswith(printed.removesuffix("…\n"))


@pytest.mark.slow
def test_the_page_of_pictures_draws_each_of_them() -> None:
    from benchmarks.practice.pictures import pictures

    drawn = {place.name: figure.axes[0].get_title(loc="left") for place, figure in pictures()}
    page = (ROOT / "docs" / "api" / "pictures.md").read_text(encoding="utf-8")
    assert sorted([*drawn, "notebook-card.png"]) == sorted(re.findall(r"\(\.\./images/([^)]+)\)", page))
    assert all((ROOT / "docs" / "images" / name).stat().st_size < 150_000 for name in drawn)
    assert drawn["pictures-steps.png"].startswith("coinpress: after 3 steps")
    assert drawn["pictures-groups.png"] == "Mean of hours-per-week by education"


def test_links_of_the_readme_and_the_docs_lead_somewhere() -> None:
    front = [ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md")]
    for page in [*front, *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_every_mechanism_has_its_derivation() -> None:
    for name in MECHANISMS:
        page = ROOT / "docs" / "evidence" / "derivations" / f"{name.replace('-', '_')}.md"
        assert page.exists() == (name not in WITHOUT_A_PROOF), name
