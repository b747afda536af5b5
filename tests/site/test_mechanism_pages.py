"""The pages of the mechanisms: one for each of the registry, in the menu, whose words follow from the numbers that are kept."""

from __future__ import annotations

import math
import re
from dataclasses import fields

import numpy as np
import pytest
import yaml
from benchmarks.practice import mechanism_grid
from benchmarks.practice.mechanism_grid import DELTA, EPSILONS, ROWS, SETTINGS, Panel
from benchmarks.practice.mechanism_maps import Standing, in_words, setting_of, standing
from benchmarks.practice.mechanism_pages import (
    DOCS,
    EVIDENCE,
    SECTIONS,
    SUBJECTS,
    TEXTS,
    code_of,
    from_docstring,
    page_text,
    printed_by,
    privacy_of,
)

import dpmoments as dpm
from dpmoments.cli.options import describe_parameters
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS

AGAIN = "run python -m benchmarks.practice.mechanism_pages"


@pytest.fixture(scope="module")
def grid() -> dict[str, Panel]:
    return dict(mechanism_grid.kept())


def test_every_mechanism_has_a_page_in_the_menu_and_no_other_has() -> None:
    pages = {f"mechanisms/{name}.md" for name in MECHANISMS} | {
        f"mechanisms/mean-{name}.md" for name in MEAN_MECHANISMS
    }
    menu = (DOCS.parent / "mkdocs-evidence.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"^ +- (mechanisms/\S+)$", menu, re.M)) == pages
    assert {f"mechanisms/{page.name}" for page in (EVIDENCE / "mechanisms").iterdir()} == pages


def test_the_texts_are_of_the_registry() -> None:
    """Neither more nor less: a text of a mechanism that is gone would never be read."""
    texts = yaml.safe_load(TEXTS.read_text(encoding="utf-8"))
    assert {part: list(names) for part, names in texts.items()} == {
        "covariance": list(MECHANISMS),
        "means": list(MEAN_MECHANISMS),
    }


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_page_is_what_would_be_written_now(name: str, grid: dict[str, Panel]) -> None:
    """Its sections in their order, its words from registry, texts and grid, and below its block what that prints."""
    subject = SUBJECTS[name]
    written = subject.page.read_text(encoding="utf-8")
    assert written == page_text(subject, grid, printed_by(code_of(subject))), AGAIN
    assert tuple(re.findall(r"^## (.*)$", written, re.M)) == SECTIONS
    assert all(part.strip() for part in re.split(r"^## .*$", written, flags=re.M))


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_page_describes_every_option(name: str) -> None:
    kind = SUBJECTS[name].kind
    words = describe_parameters(kind)
    assert set(words) == {option.name for option in fields(kind)}
    assert all(word.kind and word.text for word in words.values())


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_picture_is_there_and_small(name: str) -> None:
    picture = SUBJECTS[name].picture
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert picture.stat().st_size < 120_000


def test_no_picture_is_left_over() -> None:
    pictures = {subject.picture for subject in SUBJECTS.values()}
    assert set(mechanism_grid.GRID.parent.iterdir()) == pictures | {mechanism_grid.GRID}


def test_the_grid_has_every_panel_and_every_mechanism(grid: dict[str, Panel]) -> None:
    assert list(grid) == [key for key, *_ in mechanism_grid.panels()]
    for subject in SUBJECTS.values():
        setting = setting_of(subject.about, subject.name)
        if setting == "one-column":  # one column has no correlation, and the mechanism without bounds states no error
            continue
        assert any(subject.name in panel.errors for key, panel in grid.items() if key.split()[0] == setting)
    assert {values.shape for panel in grid.values() for values in panel.errors.values()} == {(len(EPSILONS), len(ROWS))}


RUN_ON_MADE_UP_ROWS = {"coinpress", "private-preconditioning"}


@pytest.mark.parametrize(
    ("setting", "value", "kind", "epsilon", "n_rows"),
    [
        ("columns", 3, "pure", 1.0, 1_000),
        ("columns", 10, "delta", 0.5, 100_000),
        ("second-moment-alone", 3, "delta", 2.0, 3_000),
        ("few-columns", 3, "pure", 0.2, 10_000),
        ("one-column", 0.01, "pure", 0.1, 300),
        ("means", 10, "delta", 1.0, 10_000),
        ("means", 1, "pure", 5.0, 100),
    ],
)
def test_cells_of_the_grid_are_those_of_the_forecast_now(
    grid: dict[str, Panel], setting: str, value: float, kind: str, epsilon: float, n_rows: int
) -> None:
    panel = grid[f"{setting} {value:g} {kind}"]
    place = EPSILONS.index(epsilon), ROWS.index(n_rows)
    now = mechanism_grid.cell(setting, value, kind, epsilon, n_rows)
    before = {name: errors[place] for name, errors in panel.errors.items() if not math.isnan(errors[place])}
    # Four digits are kept. A run on made-up rows puts its noise along eigenvectors, whose signs differ between machines.
    assert before.keys() == now.errors.keys()
    for name, error in before.items():
        tolerance = 0.5 if name in RUN_ON_MADE_UP_ROWS else 0.01
        assert error == pytest.approx(now.errors[name], rel=tolerance), f"{name}: {AGAIN} --forecast"
    assert panel.taken[place[0]][place[1]] == now.taken


@pytest.mark.parametrize(("value", "kind"), [(3, "pure"), (10, "delta")])
def test_a_cell_is_what_a_user_is_told(value: int, kind: str) -> None:
    """`dpm.forecast`, but for the mechanism that is told a bound there."""
    budget = {"epsilon": 1.0} if kind == "pure" else {"epsilon": 1.0, "delta": DELTA}
    schema = dpm.Schema(*(dpm.Numeric(f"x{place}", 0, 1) for place in range(value)))
    told = {row.mechanism: row.correlation_error for row in dpm.forecast(schema, n_rows=10_000, **budget)}
    found = mechanism_grid.cell("columns", value, kind, 1.0, 10_000).errors
    found = {name: error for name, error in found.items() if name != "inverse-gaussian"}
    assert found == {name: error for name, error in told.items() if error is not None}


def test_a_mechanism_stands_against_the_others_where_they_say_something() -> None:
    nan = float("nan")
    panel = Panel(
        useless=1.0,
        errors={
            "gaussian": np.array([[0.1, 0.4, 2.0, nan, 0.9]]),
            "laplace": np.array([[0.2, 0.2, 3.0, 0.5, nan]]),
            "isotropic": np.array([[0.8, 0.3, 4.0, 0.7, 1.8]]),
            "auto": np.array([[0.01, 0.01, 0.01, 0.01, 0.01]]),
            "inverse-gaussian": np.array([[0.01, 0.01, 0.01, 0.01, 0.01]]),
        },
        taken=(),
    )
    one = standing(panel, "gaussian")
    assert one.noise.tolist() == [[False, False, True, False, False]]
    np.testing.assert_allclose(one.ratio, [[0.5, 2.0, 2.0 / 3.0, nan, 0.5]])
    assert one.seen.tolist() == [0.5, 2.0, 0.5]
    told = standing(panel, "inverse-gaussian")  # what it knows does not make a cell of noise worth anything
    assert told.noise.tolist() == [[False, False, True, False, False]]


def test_words_say_where_it_wins_and_by_how_much() -> None:
    first = Standing(np.array([[0.5, 0.8, 1.02, 3.0]]), np.array([[False, False, False, True]]))
    second = Standing(np.array([[1.5, 2.5, 1.2]]), np.zeros((1, 3), dtype=bool))
    assert in_words({"3 columns": first, "50 columns": second}) == (
        "least error in 33 % of 6 cells (the next up to 2.00 times it), "
        "within 5 % of it in 50 %; elsewhere typically 1.35 times it, at worst 2.50 times."
    )
    best = Standing(np.array([[0.5]]), np.array([[False]]))
    assert in_words({"3 columns": best}).endswith("in all.")
    lost = Standing(np.array([[0.5]]), np.array([[True]]))
    assert in_words({"3 columns": lost}) == "in every cell in which it runs even the least error says nothing."


def test_a_docstring_becomes_a_page() -> None:
    assert from_docstring("see :func:`dpmoments.release` and ``docs/evidence/audit.md``: ``rank=1``") == (
        "see `release` and [audit](../audit.md): `rank=1`"
    )
    assert privacy_of(MECHANISMS["laplace"]).startswith("ε-DP, in exact integer arithmetic")
    with pytest.raises(ValueError, match=r"Auto has no paragraph that begins with \*\*Privacy"):
        privacy_of(MECHANISMS["auto"])


def test_a_grid_of_other_cells_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanism_grid, "EPSILONS", (1.0,))
    with pytest.raises(ValueError, match="--forecast"):
        mechanism_grid.kept()


def test_settings_are_of_one_subject_each() -> None:
    assert {setting.about for setting in SETTINGS.values()} == {"covariance", "mean"}
