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
from dpmoments.analysis.resolvability import NOT_CLEAR_NOISE, NOT_CLEAR_ROWS
from dpmoments.plots import accessor, canvas, intervals, spectrum, steps
from dpmoments.plots.accessor import MeanPlots, ReleasePlots
from dpmoments.plots.canvas import StandIns, captioned, entitle, fonts_of_reader, label, sized
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
    ("lines", "reference", "ends"),
    [
        ([line(2, 1, 3)], None, (1, 3)),
        ([line(2, 1, 3)], 0.0, (0, 3)),
        ([line(2, 1, 3), line(9, -50, 50, "x")], None, (1, 9)),
        ([line(2, 1, 3), line(9.1, -50, 50, "x")], None, (1, 3)),
        ([line(2, 1, 3), line(-9, -50, 8, "x")], None, (-9, 8)),
        ([line(2, 1, 3), line(NAN, -50, 50, "x")], None, (1, 3)),
        ([line(9, -50, 40, "x")], None, (-50, 40)),
        ([line(9, -INF, 40, "x")], None, (9, 40)),
        ([line(5, NAN, NAN)], None, (5, 5)),
    ],
)
def test_limits_leave_a_margin_of_eight_in_a_hundred(
    lines: Any, reference: float | None, ends: tuple[float, float]
) -> None:
    spread = (ends[1] - ends[0]) or abs(ends[1])
    assert chart(lines, reference).limits == pytest.approx((ends[0] - 0.08 * spread, ends[1] + 0.08 * spread))
    assert chart(lines, reference, within=(-1.0, 2.0)).limits == (-1.0, 2.0)


def test_limits_of_nothing() -> None:
    assert chart([]).limits == (-1.0, 1.0)
    assert chart([line(NAN, NAN, INF)]).limits == (-1.0, 1.0)
    assert chart([line(0, NAN, NAN)]).limits == pytest.approx((-0.08, 0.08))


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


def test_defaults_are_those_of_the_reference() -> None:
    """Signatures of the public methods, and of what they call."""
    expected = {
        "correlation": {"level": 0.95},
        "findings": {"level": 0.95},
        "spectrum": {"scaling": "bounds"},
        "coefficients": {"method": "ols", "per": "deviation", "n_coefficients": 25, "sort": "fit"},
        "groups": {"level": 0.95, "sort": "mean"},
    }
    for name, defaults in expected.items():
        found = {key: entry.default for key, entry in inspect.signature(getattr(ReleasePlots, name)).parameters.items()}
        assert found.items() >= (defaults | {"ax": None, "figsize": None, "caption": True}).items(), name


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


def test_captions_go_and_other_words_stay() -> None:
    for kept in (True, False):
        ax = axes()
        ax.text(0.1, 0.1, "a number")
        entitle(ax, "title", "meaning", "", "second", grow=False)
        assert caption_of(ax) == "meaning second"
        assert captioned(ax, kept) is ax
        assert caption_of(ax) == ("meaning second" if kept else "")
        assert "a number" in [text.get_text() for text in ax.texts]
        assert ax.get_title(loc="left") == "title"
    title = " ".join(["word"] * 80)
    figure = Figure(figsize=(6.0, 3.0))
    ax = figure.subplots()
    entitle(ax, title, title, grow=True)
    assert ax.get_title(loc="left").replace("\n", " ") == title
    assert caption_of(ax) == title
    assert figure.get_size_inches()[0] == 6.0
    lines = len(ax.get_title(loc="left").split("\n"))
    small = len(next(text for text in ax.texts if text.get_gid() == "caption").get_text().split("\n"))
    assert figure.get_size_inches()[1] == pytest.approx(3.0 + 1.35 * (8.0 * small + 9.0 * lines) / 72.0)
    assert "\\u…" in caption_of_escaped()


def caption_of_escaped() -> str:
    ax = axes()
    ax.set_xlabel("\\u5e74")
    entitle(ax, "title", grow=False)
    return caption_of(ax)


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


def test_arguments_out_of_range_are_refused() -> None:
    plot = release_of("moments").plot
    with refused("n_coefficients must be at least 1, got", value=0):
        plot.coefficients("income", n_coefficients=0)
    with refused("use 'deviation' or 'unit'", per="row"):
        plot.coefficients("income", per="row")
    with refused("a plot shows the means of one feature; name one", TypeError):
        plot.groups("region", ["income"])
    one = plot.coefficients("income", n_coefficients=1, ax=axes())
    assert len(one.get_yticks()) == 1


# --- letters ------------------------------------------------------------------------------------------------------------------


def test_stand_ins_are_restored() -> None:
    stand_ins = StandIns()
    wide, narrow = "\U00020000\U00020001", "\U0001e900\U0001e901"
    drawn = stand_ins.in_place_of(f"a{wide}{narrow}é")
    assert len(drawn) == 6
    assert drawn[0] == "a"
    assert drawn[5] == "é"
    assert all(letter in canvas._WIDE_STAND_INS for letter in drawn[1:3])
    assert all(letter in canvas._STAND_INS for letter in drawn[3:5])
    assert len(set(drawn)) == 6
    assert stand_ins.restored(drawn) == f"a{wide}{narrow}é"
    assert stand_ins.in_place_of(wide) == drawn[1:3]
    assert stand_ins.in_place_of("plain") == "plain"
    # a letter that itself is a stand-in is replaced as well, so that it is not restored as another
    itself = canvas._STAND_INS[0]
    assert stand_ins.restored(stand_ins.in_place_of(itself)) == itself
    assert stand_ins.in_place_of(itself) != itself
    every = "".join(chr(0x20100 + place) for place in range(len(canvas._ALL_STAND_INS) + 3))
    full = StandIns()
    drawn = full.in_place_of(every)
    assert "\\U" in drawn
    assert full.restored(drawn[:300]) == every[:300]
    with fonts_of_reader() as outer:
        shown = label("\U00020000")
        assert outer.restored(shown) == "\U00020000"
        with fonts_of_reader() as inner:
            assert inner is not outer
        assert outer.restored(label("\U00020000")) == "\U00020000"
    assert label("\U00020000") == "\\U00020000"  # outside the block letters are escaped again


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


def test_the_axis_of_a_spectrum_ends_below_what_is_clear() -> None:
    def least(edge: list[float], variance: list[float], noise: list[bool]) -> float:
        answer: Any = SimpleNamespace(
            noise_edge=np.array(edge), explained_variance=np.array(variance), is_noise=np.array(noise)
        )
        return spectrum._least_shown(answer)

    assert least([0.1, 0.2], [5.0, 1e-9], [False, True]) == pytest.approx(0.1 / 10**1.5)
    assert least([0.1, INF], [0.05, 0.2], [False, True]) == pytest.approx(0.05 / 10**1.5)
    assert least([0.0, NAN], [5.0, 0.0], [False, False]) == pytest.approx(5.0 / 10**1.5)
    assert least([1e-20, 1e-20], [5.0, 1.0], [False, False]) == pytest.approx(5e-12)
    assert least([0.0, NAN], [5.0, 1.0], [True, True]) == 1.0


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
    widths, noise = steps._recorded(mean, mean.diagnostics["steps"])
    np.testing.assert_allclose(widths, [[4.0, 8.0], [1.0, 0.5]])
    np.testing.assert_array_equal(noise, [0.25, NAN])
    ax = steps.draw_steps(mean, axes())
    assert {"noise on the mean", "range over features"} <= {
        str(each.get_label()) for each in (*ax.lines, *ax.collections)
    }
    assert ax.texts[-1].get_text() == "region known to contain the mean"
    rows = recorded([{"radius": 2.0, "noise_scale": 9.0}])
    rows.diagnostics["linear"] = [[1.0, 0.0], [1.0, 4.0]]
    widths, noise = steps._recorded(rows, rows.diagnostics["steps"])
    np.testing.assert_allclose(widths, [[2.0, 0.5 * math.sqrt(2.0)]])
    np.testing.assert_allclose(noise, [3.0 / 2.0])
    ax = steps.draw_steps(rows, axes())
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
            steps.draw_steps(recorded(wrong), axes())
    step = {"radius": 1.0, "scales": [1.0, 1.0]}
    assert len(steps._recorded(recorded([]), [step] * 1000)[0]) == 1000
    with refused("cannot plot steps: the diagnostics contain impossible"):
        steps.draw_steps(recorded([step] * 1001), axes())
    with refused("cannot plot steps: a pooled release was made by several"):
        steps.draw_steps(recorded([], diagnostics={}, mechanism="pooled"), axes())
    with refused("has only one step. Mechanisms with steps are coinpress and", mechanism="gaussian"):
        steps.draw_steps(recorded([], diagnostics={}, mechanism="gaussian"), axes())
    for value in (0.0, -1.0, NAN, "1", None):
        with pytest.raises(ValueError):
            steps._positive(value)
    assert steps._positive(2) == 2.0


@pytest.mark.parametrize("count", [1, 3, 8, 9, 12, 17])
def test_sizes_of_steps_are_drawn_relative_to_the_first(count: int) -> None:
    radii = [2.0 * 0.8**place for place in range(count)]
    fixed = {"scales": [1.0, 3.0, 2.0], "center": [0.0, 0.0, 0.0], "noise_scale": 0.2}
    made, schema = [{"mean_radius": radius, **fixed} for radius in radii], dpm.Schema.unit_ball(3)
    ax = steps.draw_steps(recorded(made, schema=schema, feature_names=schema.feature_names), axes())
    (middle,) = [each for each in ax.lines if each.get_marker() == "o"]
    (noise,) = [each for each in ax.lines if each.get_marker() == "s"]
    widths = np.array(radii) / radii[0]
    np.testing.assert_allclose(middle.get_ydata(), widths)
    np.testing.assert_allclose(noise.get_ydata(), 0.2 / radii[0])
    every = -(-count // 8)
    ticks = sorted(range(count, 0, -every))
    assert ax.get_xticks().tolist() == ticks
    names = [str(place) if place < count else f"{place} (last)" for place in ticks]
    assert [text.get_text() for text in ax.get_xticklabels()] == names
    assert ax.get_xlim() == (0.7, count + 0.3)
    if min(widths[-1], 0.1) < 0.05:
        assert ax.get_yscale() == "log"
    else:
        assert ax.get_ylim()[0] == 0.0
    title = ax.get_title(loc="left").replace("\n", " ")
    narrower = f"coinpress: after {count} steps the region is {widths[-1]:.2g} × as wide as at first"
    assert title == (narrower if count > 1 else "coinpress: one region")


def test_methods_hand_on_what_they_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    release, ax = release_of("coinpress"), axes()
    seen: dict[str, Any] = {}

    def plotted(release: Any, given: Any) -> Axes:
        seen.update(release=release)
        return given

    monkeypatch.setattr("dpmoments.plots.accessor.draw_steps", plotted)
    assert ReleasePlots(release).steps(ax=ax) is ax
    assert seen["release"] is release
    mean = release_of("mean")
    assert MeanPlots(mean).steps(ax=ax) is ax
    assert seen["release"] is mean


def test_a_font_that_cannot_be_read_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> None:
        raise RuntimeError

    monkeypatch.setattr("matplotlib.ft2font.FT2Font", broken)
    canvas._families_with.cache_clear()
    assert canvas._families_with(frozenset("אב")) == ()
    canvas._families_with.cache_clear()


def test_a_fit_that_is_not_clear_says_so_in_its_title() -> None:
    for kind, target in (("all noise", "d"), ("moments", "income")):
        release = release_of(kind)
        fit = release.ols(target)
        title = release.plot.coefficients(target, method="ols", ax=axes()).get_title(loc="left").replace("\n", " ")
        assert ("whole fit not clear" in title) == fit.is_noise == (kind == "all noise")


def test_a_caption_counts_what_is_left_out_only_if_something_is() -> None:
    plot = release_of("moments").plot
    k = len(release_of("moments").ols("income").features)
    for shown in (k, k + 1, k - 1):
        caption = caption_of(plot.coefficients("income", n_coefficients=shown, ax=axes()))
        assert (f"The {shown} clearest of {k} coefficients" in caption) == (shown < k)
        assert ("clearest" in caption) == (shown < k)
        assert "95 % intervals" in caption


# --- what is handed on, and odd axes --------------------------------------------------------------------------------------------


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


def spectrum_of(variance: list[float], edge: list[float], hidden: list[bool], **facts: Any) -> Axes:
    values = np.array(variance)
    given = {
        "explained_variance": values,
        "noisy_variance": values,
        "noise_edge": np.array(edge),
        "is_noise": np.array(hidden),
        "conf_int": lambda: np.stack([values / 2.0, 1.5 * values], axis=1),
        "noise": release_of("moments").noise,
        "scaling": "bounds",
        "centered": True,
        "warning": "",
    }
    return spectrum.draw_spectrum(SimpleNamespace(**given | facts), axes())  # type: ignore[arg-type]


def test_floors_and_variances_below_the_axis_lie_on_its_edge() -> None:
    ax = spectrum_of([5.0, 1.0, 1e-9, 0.0], [0.1, 1e-20, 0.0, 0.5], [False, False, True, True])
    least = 5e-12
    (floor,) = ax.patches
    np.testing.assert_allclose(floor.get_data().values, [0.1, least, least, 0.5])
    assert floor.get_data().edges.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert ax.get_ylim()[0] == pytest.approx(0.8 * least)
    (hollow,) = [each for each in ax.lines if each.get_markerfacecolor() == "white"]
    np.testing.assert_allclose(hollow.get_xydata(), [[3.0, 1e-9], [4.0, least]])
    (beyond,) = [each for each in ax.lines if each.get_marker() == "v"]
    np.testing.assert_allclose(beyond.get_xydata(), [[4.0, least]])
    (bars,) = ax.containers
    np.testing.assert_allclose([each[:, 1] for each in bars.lines[2][0].get_segments()], [[2.5, 7.5], [0.5, 1.5]])
    (filled, _) = ax.collections
    assert filled.get_paths()[0].vertices[:, 1].min() == pytest.approx(least)
    assert filled.get_paths()[0].vertices[:, 1].max() == pytest.approx(0.5)
    assert ax.get_ylabel() == "variance"
    every = spectrum_of([5.0, 1.0], [9.0, 9.0], [True, True], centered=False)
    assert not every.containers
    assert every.get_ylabel() == "second moment about 0"
    assert not [each for each in spectrum_of([5.0, 1.0], [0.1, 0.1], [False] * 2).lines if each.get_marker() == "v"]
    unknown = spectrum_of([5.0, 1.0], [NAN, NAN], [False, False], noise=None)
    (line,) = unknown.lines
    assert (line.get_marker(), line.get_ydata().tolist()) == ("D", [5.0, 1.0])
    assert not unknown.patches


def coefficients_of(**facts: Any) -> IntervalChart:
    """Of a fit made here, with intervals that have no end on one side, or none."""
    given = {
        "features": ("a", "b", "c", "d"), "target": "y", "method": "least squares", "level": 0.9,
        "verdict": ("", "positive", NOT_CLEAR_NOISE, NOT_CLEAR_ROWS, "positive"), "warning": "", "help": "", "is_noise": False,
        "holds_among_all": np.array([False, True, False, False, True]), "with_intercept": True,
        "coefficients": np.array([2.0, 3.0, -1.0, 4.0]), "equations": object(), "r_squared_text": "R² = 0.5",
        "lower": np.array([1.0, -INF, -2.0, 3.0]), "upper": np.array([3.0, 4.0, INF, 5.0]),
        "standard_errors": np.array([0.5, 1.0, 1.0, 0.5]), "p_values": np.array([0.02, NAN, 0.5, 0.01]),
    }  # fmt: skip
    options = {name: facts.pop(name) for name in ("sort", "n_coefficients", "deviations") if name in facts}
    return intervals.chart_of_coefficients(SimpleNamespace(**given | facts), **options)  # type: ignore[arg-type]


def dots(shown: IntervalChart) -> list[tuple[str, float]]:
    return [(each.name, each.value) for each in shown.lines if np.isfinite(each.value)]


def test_a_coefficient_without_both_ends_has_no_dot() -> None:
    assert dots(coefficients_of()) == [("a", 2.0), ("d", 4.0)]
    assert dots(coefficients_of(sort="p")) == [("d", 4.0), ("a", 2.0)]
    assert dots(coefficients_of(sort="size")) == [("d", 4.0), ("a", 2.0)]
    deviations = np.array([3.0, 1.0, 1.0, 1.0])
    assert dots(coefficients_of(sort="size", deviations=deviations)) == [("a", 6.0), ("d", 4.0)]
    assert dots(coefficients_of(deviations=np.array([NAN, 1.0, 1.0, 0.5]))) == [("d", 2.0)]
    one = coefficients_of(n_coefficients=1)
    assert dots(one) == [("d", 4.0)]
    assert one.about == ("The 1 clearest of 4 coefficients.", "Bars: 90 % intervals.")
    assert [each.name for each in coefficients_of(sort="p").lines] == ["d", "a", "c", "b"]
    weak = coefficients_of(holds_among_all=np.array([False, True, False, False, False]))
    assert [each.note for each in weak.lines] == ["", NOT_CLEAR_NOISE, NOT_CLEAR_ROWS, intervals.ONLY_BY_ITSELF]
    without = coefficients_of(verdict=("positive",) * 4, holds_among_all=np.ones(4, dtype=bool))
    assert [each.note for each in without.lines] == [""] * 4
    unknown = coefficients_of(equations=None)
    assert dots(unknown) == [("a", 2.0), ("b", 3.0), ("c", -1.0), ("d", 4.0)]
    shrunk = coefficients_of(method="ridge", sort="size")
    assert dots(shrunk) == [("d", 4.0), ("b", 3.0), ("a", 2.0), ("c", -1.0)]
    assert "No intervals" in " ".join(shrunk.about)
    assert dots(coefficients_of(method="lasso", n_coefficients=2)) == [("b", 3.0), ("d", 4.0)]
    assert dots(coefficients_of(method="lasso", n_coefficients=1, deviations=deviations)) == [("a", 6.0)]
    small = coefficients_of(sort="size", coefficients=np.array([0.5, 3.0, -1.0, 4.0]))
    assert [each.name for each in small.lines] == ["d", "a", "c", "b"]
    tied = coefficients_of(method="lasso", n_coefficients=2, coefficients=np.array([1.0, -1.0, 1.0, -1.0]))
    assert dots(tied) == [("a", 1.0), ("b", -1.0)]
    whole = coefficients_of(is_noise=True, help="what helps")
    assert whole.title.endswith("whole fit not clear")
    assert "what helps" in whole.about
    assert "what helps" not in coefficients_of(help="what helps").about


def test_steps_are_drawn_in_floating_point(monkeypatch: pytest.MonkeyPatch) -> None:
    release: Any = SimpleNamespace(
        schema=dpm.Schema(dpm.Numeric("a", 0, 1)), noise=None, noisy_count=None, center=None, n_rows=3
    )
    modes: list[set[str]] = []

    def plotted(*given: Any) -> Any:
        ax = given[-1]
        modes.append({np.geterr()[name] for name in ("over", "divide", "invalid")})
        return ax

    monkeypatch.setattr(accessor, "draw_steps", plotted)
    ReleasePlots(release).steps()
    MeanPlots(release).steps()
    assert modes == [{"raise"}, {"raise"}]


def test_plots_need_a_number_of_rows() -> None:
    plot = ReleasePlots(SimpleNamespace(noisy_count=None, noisy_sum=None, schema=dpm.Schema(dpm.Numeric("a", 0, 1))))  # type: ignore[arg-type]
    for draw, what in (
        (plot.spectrum, "a spectrum"),
        (lambda: plot.coefficients("a"), "coefficients"),
        (lambda: plot.groups("g", "a"), "means of groups"),
        (plot.correlation, "correlations"),
        (plot.findings, "correlations"),
    ):
        with refused("the release has no row count (mean=False under", what=what):
            draw()


def test_every_plot_has_a_caption_unless_it_is_left_out() -> None:
    for plots in (ReleasePlots, MeanPlots):
        for name, draw in inspect.getmembers(plots, inspect.isfunction):
            options = inspect.signature(draw).parameters
            if "caption" in options:
                assert options["caption"].default is True, name
