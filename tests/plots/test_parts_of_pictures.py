"""Parts of pictures by themselves, on numbers made for them: limits, places of labels, shapes, scales, sizes asked for."""

from __future__ import annotations

import inspect
import math
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import dpmoments as dpm
from dpmoments.analysis.confidence import NOT_CLEAR_NOISE, NOT_CLEAR_ROWS
from dpmoments.plots import canvas, intervals, pictures
from dpmoments.plots.accessor import MeanPlots, ReleasePlots
from dpmoments.plots.canvas import entitle, label, sized
from dpmoments.plots.intervals import IntervalChart, IntervalLine, draw_intervals, with_minus
from support.pictured_releases import release_of
from support.said import refused

mpl.use("Agg")
NAN, INF = math.nan, math.inf


def axes() -> Axes:
    return Figure().subplots()


def caption_of(ax: Axes) -> str:
    return " ".join(text.get_text() for text in ax.texts if text.get_gid() == "caption").replace("\n", " ")


# --- intervals ----------------------------------------------------------------------------------------------------------------


def line(value: float, lower: float, upper: float, note: str = "") -> IntervalLine:
    return IntervalLine(f"{value:g}", value, lower, upper, "", "", note)


def chart(lines: Any, reference: float | None = None, **facts: Any) -> IntervalChart:
    return IntervalChart("title", "words", 0.95, tuple(lines), reference, **facts)


@pytest.mark.parametrize(
    ("ends", "ticks"),
    [
        ((-1.0, 1.0), ["−1", "−0.5", "0", "0.5", "1"]),
        ((33.0, 49.0), ["35", "40", "45"]),
        ((0.0, 3_500.0), ["0", "1,000", "2,000", "3,000"]),
        ((-0.012, 0.031), ["−0.01", "0", "0.01", "0.02", "0.03"]),
    ],
)
def test_ticks_are_few_round_numbers(ends: tuple[float, float], ticks: list[str]) -> None:
    made = chart([], within=ends)
    assert [made.tick_text(tick) for tick in made.ticks] == ticks
    assert [made.place(end) for end in (ends[0] - 1.0, *ends, ends[1] + 1.0)] == [0.0, 0.0, 1.0, 1.0]


def test_numbers_are_printed_by_their_errors() -> None:
    said = IntervalLine.of("a", -0.4564, -0.6123, -0.31, 0.061, signed=True)
    assert (said.number, said.interval, said.note) == ("−0.456", "−0.612 to −0.310", "")
    assert IntervalLine.of("a", 12.3, 11.0, 13.0, 0.5, signed=True).number == "+12.30"
    assert IntervalLine.of("a", 12.3, 11.0, 13.0, 0.5, signed=False).number == "12.30"
    unknown = IntervalLine.of("a", 3.0, NAN, NAN, NAN, signed=True)
    assert (unknown.number, unknown.interval) == ("+3", "")
    assert IntervalLine.of("a", NAN, -INF, 1.0, INF, signed=True).number == "–"
    assert (with_minus("-0.5"), with_minus("0.00", True), with_minus("0.5", True)) == ("−0.5", "0.00", "+0.5")


def test_intervals_are_drawn_from_the_top() -> None:
    lines = [
        line(1.0, 0.0, 2.0),
        line(1.5, 1.0, 30.0, NOT_CLEAR_NOISE),
        line(-0.5, -30.0, 1.0, NOT_CLEAR_ROWS),
        line(-0.2, -0.3, -0.1),
        line(40.0, 39.0, 41.0, "far"),
        line(NAN, NAN, NAN, "nothing"),
    ]
    ax = draw_intervals(chart(lines, 0.25), axes())
    left, right = ax.get_xlim()
    assert (left, right) == pytest.approx(chart(lines, 0.25).limits)
    assert ax.get_ylim() == (5.6, -0.6)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["1", "1.5", "-0.5", "-0.2", "40", "nan"]
    assert ax.get_xlabel() == "words"
    (reference,) = [each for each in ax.lines if list(each.get_xdata()) == [0.25, 0.25]]
    assert reference.get_color() == canvas.INK
    rows: dict[int, list[tuple[str, list[float], str]]] = {}
    for each in ax.lines:
        if each is not reference:
            assert len(set(each.get_ydata())) == 1
            marker, xs = str(each.get_marker()), [float(x) for x in each.get_xdata()]
            rows.setdefault(int(each.get_ydata()[0]), []).append((marker, xs, to_hex(each.get_color())))
    blue, orange, gray = canvas.CERTAIN, canvas.OPPOSITE, canvas.NOISE_COLOR
    approx = pytest.approx
    assert rows[0] == [("None", [0.0, 2.0], blue), ("o", [1.0], blue)]
    assert rows[1] == [("None", [1.0, approx(right)], gray), (">", [approx(right)], gray), ("o", [1.5], gray)]
    assert rows[2] == [("None", [approx(left), 1.0], gray), ("<", [approx(left)], gray), ("s", [-0.5], gray)]
    assert rows[3] == [("None", [-0.3, -0.1], orange), ("s", [-0.2], orange)]
    assert rows[4][1:] == [(">", [approx(right)], gray)]
    assert set(rows) == {0, 1, 2, 3, 4}
    hollow = {
        each.get_ydata()[0]: each.get_markerfacecolor() == "white" for each in ax.lines if each.get_marker() in "os"
    }
    assert hollow == {0: False, 1: True, 2: True, 3: False}
    words = {round(text.xy[1]): text.get_text() for text in ax.texts if text.get_gid() is None}  # type: ignore[attr-defined]
    assert words == {0: "", 1: NOT_CLEAR_NOISE, 2: NOT_CLEAR_ROWS, 3: "", 4: "far", 5: "nothing"}
    for text in ax.texts:
        assert not text.get_annotation_clip()  # type: ignore[attr-defined]
        assert not text.get_parse_math()


def test_labels_are_descriptions_where_there_are_some() -> None:
    schema = dpm.Schema(
        dpm.Numeric("h", 0, 99, description="hours a week"),
        dpm.Categorical("s", ["a", "b"], description="schooling"),
        dpm.Categorical("r", ["n"]),
        dpm.Power("h", 2),
    )
    found = intervals.labels_of(SimpleNamespace(schema=schema))  # type: ignore[arg-type]
    assert found == {"h": "hours a week", "s=a": "schooling: a", "s=b": "schooling: b", "r=n": "r=n", "h^2": "h^2"}


# --- what is asked for --------------------------------------------------------------------------------------------------------


def test_sizes_of_figures_are_refused_or_kept() -> None:
    for size in ((0.1, 300.0), (300, 1)):
        made = sized(None, size)
        assert made is not None
        figure = made.get_figure(root=True)
        assert figure is not None
        assert figure.get_size_inches().tolist() == list(size)
    plt.close("all")
    assert sized(None, None) is None
    ax = axes()
    assert sized(ax, None) is ax
    for wrong in ((0.0, 1.0), (1.0, 300.1), (1.0,), (1.0, 2.0, 3.0), (1.0, NAN), ("1", 1.0)):
        with refused("must be", parameter="figsize"):
            sized(None, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["a picture"])
def test_what_cannot_be_drawn_is_said(what: str) -> None:
    whole: Any = SimpleNamespace(noisy_sum=np.zeros(1), noisy_count=3.0)
    canvas.require_mean(whole, what)
    canvas.require_count(whole, what)
    with refused("it is made of deviations from the mean, and no mean", what=what):
        canvas.require_mean(SimpleNamespace(noisy_sum=None, noisy_count=3.0), what)  # type: ignore[arg-type]
    for check in (canvas.require_mean, canvas.require_count):
        with refused("the release has no row count (mean=False under", what=what):
            check(SimpleNamespace(noisy_sum=None, noisy_count=None), what)  # type: ignore[arg-type]


# --- letters ------------------------------------------------------------------------------------------------------------------


def test_labels_are_cut_and_never_longer() -> None:
    assert label("x" * 30, 30) == "x" * 30
    assert label("abcdefgh\U00020000", 14) == "abcdefgh…"  # one escaped letter more would be 18 long
    assert label("abcd\U00020000efgh", 15) == "abcd\\U00020000…"
    for name in ("y" * 40, "年" * 40, "a" * 19 + "年", "年a" * 10, "\U00020000" * 5):
        assert len(label(name, 20)) <= 20
    assert label("y" * 40, 20).endswith("…")


def test_fonts_for_letters() -> None:
    assert canvas._families_with(frozenset()) == ()
    families = canvas._families_with(frozenset("אé"))
    assert families
    assert "DejaVu" in families[0] or "Sans" in families[0]
    assert canvas._families_with(frozenset("א\U000e0fff"))  # as far as possible
    assert not canvas._missing_letters("plain")
    assert not canvas._missing_letters("é\x80")
    assert canvas._missing_letters("é\U0001e900") == {"\U0001e900"}
    before = canvas.literal_text()
    assert before == {"parse_math": False, "usetex": False}
    with mpl.rc_context({"font.family": ["cmr10"]}), canvas.fonts_for(dpm.Schema(dpm.Numeric("אב", 0, 1))):
        assert canvas.literal_text()["fontfamily"][0] == "cmr10"
        assert len(canvas.literal_text()["fontfamily"]) > 1
    assert canvas.literal_text() == before


# --- the spectrum, and steps --------------------------------------------------------------------------------------------------


def recorded(made: list[dict[str, Any]], **facts: Any) -> Any:
    schema = dpm.Schema.unit_ball(2)
    given = {
        "diagnostics": {"steps": made},
        "mechanism": "coinpress",
        "feature_names": schema.feature_names,
        "schema": schema,
    }
    return SimpleNamespace(**given | facts)


def test_recorded_steps_are_read_as_they_were_written() -> None:
    first = {"mean_radius": 2.0, "scales": [2.0, 4.0], "noise_scale": 0.5}
    second = {"mean_radius": 1.0, "linear": [[1.0, 0.0], [0.0, 2.0]]}
    mean = recorded([first, second])
    widths, noise = pictures._recorded(mean, mean.diagnostics["steps"])
    np.testing.assert_allclose(widths, [[4.0, 8.0], [1.0, 0.5]])
    np.testing.assert_array_equal(noise, [0.25, NAN])
    ax = pictures.draw_steps(mean, axes())
    assert {"noise on the mean", "range over features"} <= {
        str(each.get_label()) for each in (*ax.lines, *ax.collections)
    }
    assert ax.texts[-1].get_text() == "region known to contain the mean"
    rows = recorded([{"radius": 2.0, "noise_scale": 9.0}])
    rows.diagnostics["linear"] = [[1.0, 0.0], [1.0, 4.0]]
    widths, noise = pictures._recorded(rows, rows.diagnostics["steps"])
    np.testing.assert_allclose(widths, [[2.0, 0.5 * math.sqrt(2.0)]])
    np.testing.assert_allclose(noise, [3.0 / 2.0])
    ax = pictures.draw_steps(rows, axes())
    assert ax.texts[-1].get_text() == "rows outside were clipped to it"
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1 (last)"]
    singular = {"radius": 1.0, "linear": [[1.0, 1.0], [1.0, 1.0]]}
    for wrong in (
        [],
        [{"radius": 0.0, "scales": [1.0, 1.0]}],
        [{"radius": 1.0}],
        [{"radius": 1.0, "scales": [1.0]}],
        [singular],
    ):
        with refused("cannot plot steps: the diagnostics contain impossible"):
            pictures.draw_steps(recorded(wrong), axes())
    step = {"radius": 1.0, "scales": [1.0, 1.0]}
    with refused("exceed the range of floating point"):
        MeanPlots(recorded([step | {"radius": 1e-300}, step | {"radius": 1e300}])).steps(ax=axes())
    assert len(pictures._recorded(recorded([]), [step] * 1000)[0]) == 1000
    with refused("cannot plot steps: the diagnostics contain impossible"):
        pictures.draw_steps(recorded([step] * 1001), axes())
    with refused("cannot plot steps: a pooled release was made by several"):
        pictures.draw_steps(recorded([], diagnostics={}, mechanism="pooled"), axes())
    with refused("has only one step. Mechanisms with steps are coinpress and", mechanism="gaussian"):
        pictures.draw_steps(recorded([], diagnostics={}, mechanism="gaussian"), axes())
    for value in (0.0, -1.0, NAN, "1", None):
        with pytest.raises(ValueError):
            pictures._positive(value)
    assert pictures._positive(2) == 2.0


# --- what is handed on, and odd axes --------------------------------------------------------------------------------------------


@pytest.mark.long(sets=2)
@pytest.mark.parametrize(
    ("method", "given", "words"),
    [
        ("correlation", {"level": 0.8}, "not clear among all pairs"),
        ("findings", {"level": 0.8}, "80 % intervals"),
        ("spectrum", {"scaling": "units"}, "table's own units"),
        ("coefficients", {"target": "income", "level": 0.8}, "80 % intervals"),
        ("groups", {"by": "region", "of": "income", "level": 0.8}, "80 % intervals"),
    ],
)
def test_options_size_caption_and_letters_of_every_plot(
    method: str, given: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = release_of("moments")
    plot = getattr(release.plot, method)
    named: list[Any] = []

    def fonts_for(schema: dpm.Schema) -> AbstractContextManager[None]:
        assert np.geterr()["over"] == np.geterr()["divide"] == np.geterr()["invalid"] == "raise"  # as in an analysis
        return nullcontext(named.append(schema))

    monkeypatch.setattr(canvas, "fonts_for", fonts_for)
    assert words in caption_of(plot(**given, ax=axes()))
    assert named == [release.schema]  # whose letters are drawn
    own = axes()
    assert plot(**given, ax=own, caption=False) is own
    assert caption_of(own) == ""
    sized_by_caller = plot(**given, figsize=(5.0, 4.0))
    assert sized_by_caller.get_figure(root=True).get_size_inches().tolist() == [5.0, 4.0]
    plt.close("all")
    with refused("figsize= is the size of a new figure, and ax= is of another"):
        plot(**given, ax=own, figsize=(3.0, 2.0))


def test_pictures_are_drawn_in_a_part_of_a_figure() -> None:
    left, right = Figure(figsize=(9.0, 4.0)).subfigures(1, 2)
    ax = left.subplots()
    entitle(ax, "a title", "a meaning", grow=False)
    assert (ax.get_title(loc="left"), caption_of(ax)) == ("a title", "a meaning")
    other = right.subplots()
    other.plot([0.0, 1.0], [0.0, 1.0], label="a line")
    canvas.legend_below(other)
    assert [text.get_text() for text in other.get_legend().get_texts()] == ["a line"]


def test_every_plot_has_a_caption_unless_it_is_left_out() -> None:
    for plots in (ReleasePlots, MeanPlots):
        for name, draw in inspect.getmembers(plots, inspect.isfunction):
            options = inspect.signature(draw).parameters
            if "caption" in options:
                assert options["caption"].default is True, name
