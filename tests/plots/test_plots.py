"""Every picture of every kind of release: drawn or refused in words, marked by the rules of the analyses; nothing is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import matplotlib as mpl

from support.pictured_releases import KINDS, SEED, release_of
from support.said import Said, refused

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import dpmoments as dpm
from dpmoments.plots.canvas import CERTAIN, OPPOSITE
from dpmoments.plots.pictures import relations

PICTURES: dict[str, Callable[[Any, Axes | None], Axes]] = {
    "correlation": lambda plot, ax: plot.correlation(ax=ax),
    "findings": lambda plot, ax: plot.findings(ax=ax),
    "spectrum": lambda plot, ax: plot.spectrum(ax=ax),
    "coefficients": lambda plot, ax: plot.coefficients(plot.release.feature_names[1], ax=ax),
    "groups": lambda plot, ax: plot.groups("region", plot.release.feature_names[1], ax=ax),
    "steps": lambda plot, ax: plot.steps(ax=ax),
}
RENDERED = ("moments", "mean")
"""As far as pixels; the others as far as the layout."""
ONE_STEP = Said("has only one step. Mechanisms with steps are coinpress and")
NO_GROUPS = Said("is not a column of the schema", name="region")
REFUSED = {
    **{
        (kind, picture): Said("it is made of deviations from the mean, and no mean")
        for kind in ("second moment",)
        for picture in ("correlation", "findings", "groups")
    },
    **{
        ("no count", picture): Said("the release has no row count (mean=False under")
        for picture in PICTURES
        if "steps" not in picture
    },
    **{(kind, "groups"): NO_GROUPS for kind in ("unit ball", "coinpress")},
    **{(kind, "steps"): ONE_STEP for kind in KINDS if kind not in ("coinpress", "mean", "pooled")},
    ("pooled", "steps"): Said("cannot plot steps: a pooled release was made by several"),
}


@pytest.mark.long(sets=4)
@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_of_every_release_is_drawn_or_refused(kind: str, picture: str) -> None:
    release = release_of(kind)
    if "mean" in (kind, kind[-4:]) and "steps" not in picture:
        assert not hasattr(release.plot, picture)
        return
    figure = Figure(layout="constrained" if kind in RENDERED else None)
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    if said := REFUSED.get((kind, picture)):
        with refused(said):
            PICTURES[picture](release.plot, ax)
        assert not ax.has_data()
        return
    assert PICTURES[picture](release.plot, ax) is ax
    assert ax.has_data()
    assert ax.get_title(loc="left")
    if kind in RENDERED:
        figure.canvas.draw()
    else:
        figure.draw_without_rendering()


def words_beside(ax: Axes) -> dict[str, str]:
    """What stands to the right of each line, by the line's name."""
    names = [text.get_text() for text in ax.get_yticklabels()]
    return {
        names[round(text.xy[1])]: text.get_text()
        for text in ax.texts
        if hasattr(text, "xy") and text.xy[0] == 1.0 and text.get_text()
    }


def test_findings_are_sorted_by_strength_and_one_for_each_two_columns() -> None:
    """Also where the strongest pair holds by itself only, or has no number."""
    release = release_of("moments")
    answer = release.correlations()
    clear = [each for each in relations(answer) if each.pair is not None]
    assert clear
    sizes = [abs(float(text.split()[0].replace("−", "-"))) for text in words_beside(release.plot.findings()).values()]
    assert sizes == pytest.approx(sorted((abs(each.correlation) for each in clear), reverse=True)[:10], abs=0.005)
    strongest = clear[0].pair
    assert strongest is not None
    holding = answer.holds_among_all.copy()
    holding[strongest] = holding[strongest[::-1]] = False
    unclear = replace(answer)
    object.__setattr__(unclear, "holds_among_all", holding)
    names = {frozenset(each.pair) for each in relations(unclear) if each.pair}
    assert frozenset(strongest) not in names
    nothing = replace(answer, cutoff=-1.0)
    assert not any(each.pair for each in relations(nothing))
    plt.close("all")


def test_a_picture_of_nothing_but_noise_says_so_in_words() -> None:
    release = release_of("all noise")
    for ax in (release.plot.correlation(ax=Figure().subplots()), release.plot.findings(ax=Figure().subplots())):
        assert ax.get_title(loc="left") == "0 of 6 pairs of columns are clearly related"
        said = " ".join(text.get_text() for text in ax.texts)
        assert "nan" not in said


def test_pictures_of_one_feature_say_nothing_that_is_not_there() -> None:
    """No component between two, and no word on cells that are not hatched."""
    table = pa.table({"a": np.random.default_rng(0).random(4_000)})
    release = dpm.release(table, dpm.Schema(dpm.Numeric("a", 0, 1)), rho=0.5, mechanism="gaussian", **SEED)
    ax = release.plot.spectrum(ax=Figure().subplots())
    left, right = ax.get_xlim()
    assert [tick for tick in ax.get_xticks() if left <= tick <= right] == [1.0]


def test_groups_of_which_nothing_can_be_said_are_named_and_not_drawn() -> None:
    for kind in ("few rows", "moments"):
        release = release_of(kind)
        found = release.group_means("region", ["income"])
        spread = float(release.describe()["income"].standard_deviation[0])
        wide = found.lost | np.isnan(found.mean[0]) | (found.upper - found.lower > spread)[0]
        ax = release.plot.groups("region", "income", ax=Figure().subplots())
        names = [name.removeprefix("region=") for name in found.groups]
        assert set(tick_texts(ax)) == {name for name, lost in zip(names, wide, strict=True) if not lost}
        said = ax.texts[-1].get_text().replace("\n", " ")
        assert all(name in said for name, lost in zip(names, wide, strict=True) if lost)
        assert ("Not drawn" in said) == wide.any() == (kind == "few rows")


def test_a_forecast_without_correlations_is_not_drawn() -> None:
    with refused("cannot plot this forecast: it has no numbers in"):
        dpm.forecast(dpm.Schema.unbounded(2), n_rows=100, rho=1.0).plot()
    with refused("the schema has no two columns"):
        dpm.forecast(dpm.Schema(dpm.Boolean("a")), n_rows=100, rho=1.0).plot()


def contrast(first: Any, second: Any) -> float:
    """After WCAG 2.2."""
    parts = np.array([mpl.colors.to_rgb(first), mpl.colors.to_rgb(second)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    low, high = sorted((linear @ [0.2126, 0.7152, 0.0722] + 0.05).tolist())
    return high / low


def test_numbers_in_cells_are_told_from_what_is_behind_them() -> None:
    """A checker of contrast cannot look into a picture: 4.5 is what it would ask for."""
    for color in (CERTAIN, OPPOSITE):
        assert contrast("white", color) >= 4.5


HOSTILE = ("a $x_1$ b", r"\frac$", "n" * 120, "שלום עולם", "é\u0323" * 30, "tab\u202etxt")


@pytest.mark.slow
def test_names_are_drawn_as_they_stand() -> None:
    """No formula begins at a dollar, nothing is longer than its room, and no character turns the direction of others."""
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 1) for name in HOSTILE))
    table = pa.table({name: np.random.default_rng(0).random(900) for name in HOSTILE})
    release = dpm.release(table, schema, epsilon=1.0, mechanism="laplace", **SEED)
    drawn = [
        release.plot.correlation(),
        release.plot.coefficients(HOSTILE[0], list(HOSTILE[1:])),
        release.plot.spectrum(),
    ]
    try:
        for ax in drawn:
            ax.figure.canvas.draw()
            texts = [*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label]
            for text in [*texts, *ax.get_children()]:
                if hasattr(text, "get_parse_math") and any(name[:8] in text.get_text() for name in HOSTILE):
                    assert not text.get_parse_math(), text
            assert not any(len(text.get_text()) > 60 for text in (*ax.get_xticklabels(), *ax.get_yticklabels()))
    finally:
        plt.close("all")


UNUSUAL = ("年齢", "😀 mood", "נתונים", "\U00020000" * 9, "नमस्ते", "⠁")
"""In scripts of which the usual font has none, or some."""


@cache
def unusual() -> Any:
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 1) for name in UNUSUAL), dpm.Categorical("組", ["東", "west"]))
    rng = np.random.default_rng(0)
    table = {name: rng.random(900) for name in UNUSUAL} | {"組": rng.choice(["東", "west"], 900)}
    return dpm.release(pa.table(table), schema, epsilon=5.0, mechanism="laplace", **SEED)


def tick_texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.get_yticklabels()]


@pytest.mark.long
def test_letters_that_no_font_here_has_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not drawn as empty boxes, all alike, and no warning of matplotlib's comes of them."""
    monkeypatch.setattr("dpmoments.plots.canvas._families_with", lambda _: ())
    plot = unusual().plot
    pictures = {
        "coefficients": plot.coefficients(UNUSUAL[1], ax=Figure().subplots()),
        "groups": plot.groups("組", UNUSUAL[0], ax=Figure().subplots()),
    }
    for name, ax in pictures.items():
        FigureCanvasAgg(ax.figure).draw()
        assert "\\u…: a letter that no font here has" in ax.texts[-1].get_text(), name
    names = tick_texts(pictures["coefficients"])
    names.insert(1, "😀 mood")
    assert names[:3] == ["\\u5e74\\u9f62", "😀 mood", "נתונים"]
    assert names[3] == "\\U00020000" * 5 + "…"
    assert len(set(names)) == len(names)
    assert set(tick_texts(pictures["groups"])) == {"\\u6771", "west"}
    assert pictures["groups"].get_title(loc="left") == "Mean of \\u5e74\\u9f62 by \\u7d44"


def test_letters_are_drawn_by_a_font_that_has_them() -> None:
    """Computer Modern has no Hebrew; the font that comes with matplotlib has, and nothing is set for good."""
    with mpl.rc_context({"font.family": ["cmr10"], "axes.formatter.use_mathtext": True}):
        ax = unusual().plot.coefficients(UNUSUAL[1], [UNUSUAL[2], "組"], ax=Figure().subplots())
        assert mpl.rcParams["font.family"] == ["cmr10"]
        FigureCanvasAgg(ax.figure).draw()
    assert tick_texts(ax)[0] == "נתונים"
    assert "DejaVu Sans" in ax.get_yticklabels()[0].get_fontfamily()


@pytest.mark.long
def test_a_picture_without_axes_makes_one_figure_and_changes_no_setting() -> None:
    settings, backend = dict(mpl.rcParams), mpl.get_backend()
    plt.close("all")
    release = release_of("moments")
    for picture in ("findings", "spectrum"):
        ax = PICTURES[picture](release.plot, None)
        assert plt.get_fignums() == [ax.figure.number], picture
        assert plt.gcf() is ax.figure
        plt.close(ax.figure)
    with refused(ONE_STEP):
        release.plot.steps()
    with refused("must be", TypeError, parameter="ax"):
        release.plot.spectrum(ax=Figure())
    assert plt.get_fignums() == []
    assert dict(mpl.rcParams) == settings
    assert mpl.get_backend() == backend


@pytest.mark.parametrize("kind", KINDS)
def test_cards_say_what_there_is(kind: str) -> None:
    release = release_of(kind)
    shown = release._repr_html_()
    assert "<script" not in shown
    assert f"{release.mechanism}" in shown
    assert str(release.privacy.budget) in shown
    assert "NOT PRIVATE" in shown
    assert release.feature_names[0] in shown
    if kind == "few rows":
        assert "Too few rows for this budget" in shown


@pytest.mark.long
def test_cards_escape_names() -> None:
    schema = dpm.Schema(dpm.Numeric("<script>alert(1)</script>", 0, 1), dpm.Categorical("b", ["<b>", "&"]))
    table = pa.table({"<script>alert(1)</script>": [0.5] * 300, "b": ["&"] * 300})
    release = dpm.release(table, schema, epsilon=1.0, **SEED)
    groups = dpm.release_groups(table, schema, by="b", epsilon=1.0, **SEED)
    for shown in (release._repr_html_(), groups._repr_html_()):
        assert "<script>" not in shown
        assert "<b>" not in shown
    assert "&lt;script&gt;" in release._repr_html_()
    assert "&lt;b&gt;" in groups._repr_html_()


def test_coefficients_are_shown_from_one_on() -> None:
    plot = release_of("moments").plot
    assert len(tick_texts(plot.coefficients("income", n_coefficients=1, ax=Figure().subplots()))) == 1
    with refused("must be at least 1", got=0):
        plot.coefficients("income", n_coefficients=0)


def test_orders_that_there_are_not_are_refused() -> None:
    release = release_of("moments")
    with refused("use 'deviation' or 'unit'", per="row"):
        release.plot.coefficients("income", per="row")
    for draw in (
        lambda: release.plot.coefficients("income", sort="name"),
        lambda: release.plot.groups("region", "income", sort="name"),
    ):
        with refused(("use 'fit', 'size' or 'p'", "use 'mean', 'schema' or 'rows'"), sort="name"):
            draw()
    plt.close("all")
