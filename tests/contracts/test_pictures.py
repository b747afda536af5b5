"""Every number and point of pictures, and of the charts of a report, is where the API says.

`test_what_the_api_does_not_say_is_found` plants some that are not.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import dpmoments as dpm
from contracts.contradictions import Found, tables
from contracts.pictures import pictures_of
from contracts.printed import Asked
from contracts.test_printed import budgets, visits_release
from dpmoments.plots import intervals, pictures
from dpmoments.reporting import sections
from dpmoments.schema.dates import Date
from support.drawn_releases import planted

LEVELS = (0.8, 0.9, 0.95, 0.99)


def found_in(name: str, epsilon: float, seed: int, folder: Path) -> Found:
    """What pictures of a release show and the API does not say."""
    found = Found()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table, schema, target, regressors, by = tables()[name]
        release = dpm.release(table, schema, epsilon=epsilon, insecure_seed=seed)
        pictures_of(Asked(table, target, list(regressors), by), release, folder, LEVELS[seed % 4], found)
    return found


BUDGETS = [pytest.param(*asked, marks=pytest.mark.slow) for asked in budgets(6)]


@pytest.mark.long
@pytest.mark.parametrize(("name", "epsilon", "seed"), [("made", 1.5, 2), *BUDGETS])
def test_every_number_and_point_is_the_api_s(name: str, epsilon: float, seed: int, tmp_path: Path) -> None:
    found = found_in(name, epsilon, seed, tmp_path)
    assert found.rows >= 10
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_every_number_and_point_of_200_releases_is_the_api_s(part: int, tmp_path: Path) -> None:
    assert [each for asked in budgets(200)[part::8] for each in found_in(*asked, tmp_path)] == []


@pytest.mark.slow
def test_dates_are_drawn_as_dates(tmp_path: Path) -> None:
    asked, release = visits_release(4.0)

    def found() -> Found:
        result = Found()
        pictures_of(asked, release, tmp_path, 0.95, result)
        return result

    assert found() == []
    ticks = [text.get_text() for text in release.plot.groups("group", "opened").get_xticklabels()]
    assert ticks == ["2017-07", "2017-10", "2018-01", "2018-04", "2018-07", "2018-10"]
    page = (tmp_path / "report.html").read_text()
    assert "group=a is higher than group=c by 404 days (95 % interval 353 to 455 days)" in page
    with planted(Date.date_text, "np.array([number])", "np.array([number + 400.0])"):
        assert found()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        (intervals._draw, "[low, high], [row, row]", "[low, low + 0.9 * (high - low)], [row, row]"),
        (intervals._draw, "ax.plot(line.value, row", "ax.plot(1.01 * line.value, row"),
        (intervals.draw_intervals, "line.number, line.interval", "line.interval, line.number + '9'"),
        (intervals.IntervalChart.tick_text, "{tick:,.6g}", "{1.1 * tick:,.6g}"),
        (
            intervals.IntervalChart.place,
            "(value - low) / (high - low)",
            "(value - low) / (high - low) * (0.9 + 0.1 * value)",
        ),
        (pictures.draw_association, "{each.correlation:+.2f}", "{-each.correlation:+.2f}"),
        (pictures.title_of_relations, "clear:,", "clear + 1:,"),
        (pictures.draw_spectrum, "shown = np.maximum(drawn", "shown = 1.2 * np.maximum(drawn"),
        (sections._share, "IntervalLine(name, share,", "IntervalLine(name, 1.01 * share,"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_the_api_does_not_say_is_found(function: Any, before: str, after: str, tmp_path: Path) -> None:
    with planted(function, before, after):
        assert found_in("made", 1.5, 2, tmp_path)
