"""Reference pictures: what each plot draws of releases made here, in ``reference_pictures.json``.

    python tests/plots/test_reference_pictures.py

writes it again: read the difference. That a picture shows the printed numbers is shown elsewhere
(``tests/contracts/test_pictures.py``); here it is shown that it stays. Kept are data, colors, marks, texts, ticks and limits,
not sizes nor places of letters. A release has the noise law of some mechanism and moments of fixed rows plus one fixed draw of
that law: no sampler of the library is involved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Annotation

import dpmoments as dpm
from dpmoments.mechanisms.registry import MECHANISMS
from dpmoments.planning.forecast_noise import ReleasePlan
from dpmoments.planning.forecast_table import plot_clear
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import PrivacyBudget, PrivacyRequest
from support.drawn_releases import drawn, template
from support.kept_answers import KeptAnswers, weighted_sums

mpl.use("Agg")
KEPT = KeptAnswers(Path(__file__).with_name("reference_pictures.json"), tolerance=2e-6, near_zero=1e-8)
WHOLE = 12
"""Longer arrays are kept as three weighted sums."""

# The releases -----------------------------------------------------------------------------------------------------------------

PEOPLE = dpm.Schema(
    dpm.Numeric("age", 10, 90),
    dpm.Numeric("income", -20_000, 140_000),
    dpm.Categorical("region", ["north", "south", "east"]),
    dpm.Boolean("employed"),
    dpm.Numeric("height", 100, 220),
)
WIDE = dpm.Schema(
    *(dpm.Numeric(f"x{index}", -4, 4) for index in range(20)),
    dpm.Categorical("kind", [f"level {index}" for index in range(28)]),
)


def people(n: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    age = np.clip(rng.normal(42, 13, n), 10, 90)
    region, employed = rng.choice(3, n, p=[0.55, 0.35, 0.1]), rng.random(n) < 0.6
    income = 700 * age + 9_000 * (region == 0) + 6_000 * employed + 8_000 * rng.standard_normal(n)
    return np.column_stack([age, income, np.eye(3)[region], employed, rng.normal(170, 9, n)])


def wide(n: int) -> np.ndarray:
    rng = np.random.default_rng(4)
    numbers = rng.normal(size=(n, 20)) + 0.8 * rng.normal(size=(n, 1))
    return np.column_stack([numbers.clip(-4, 4), np.eye(28)[rng.choice(28, n)]])


RELEASES: Mapping[str, Callable[[], dpm.MomentRelease]] = {
    "people": lambda: drawn(template(PEOPLE, "gaussian", rho=0.3), people(3_000), np.random.default_rng(0)),
    "clear": lambda: drawn(template(PEOPLE, "laplace", epsilon=50.0), people(3_000), np.random.default_rng(0)),
    "lost": lambda: drawn(template(PEOPLE, "gaussian", rho=0.02), people(250), np.random.default_rng(2)),
    "wide": lambda: drawn(template(WIDE, "gaussian", rho=0.5), wide(3_000), np.random.default_rng(2)),
    "unknown": lambda: replace(RELEASES["people"](), noise_model=None),
    "steps": lambda: replace(RELEASES["clear"](), mechanism="coinpress", diagnostics={"steps": STEPS}),
}
STEPS = [
    {
        "center": [0.01 * step] * 7,
        "radius": 0.8**step,
        "scales": [1.0, 2.0, 1.0, 1.0, 1.0, 0.5, 1.0],
        "noise_scale": 0.02,
    }
    for step in range(11)
]


@cache
def made(name: str) -> dpm.MomentRelease:
    return RELEASES[name]()


def planned() -> ReleasePlan:
    typical = TypicalTable.of(PEOPLE, typical_sd={"age": 0.4, "income": 9_000.0})
    request = PrivacyRequest(PrivacyBudget.pure(1.0), dpm.Neighbors.ADD_REMOVE)
    return ReleasePlan(typical, 900, request, MECHANISMS["matrix-laplace"]())


# The pictures -----------------------------------------------------------------------------------------------------------------

Drawing = Callable[[Axes | None], Axes]


def plots() -> Iterator[tuple[str, Callable[[], Drawing]]]:
    def method(release: str, name: str, *given: Any, **options: Any) -> tuple[str, Callable[[], Drawing]]:
        asked = [*map(str, given), *(f"{key}={value}" for key, value in options.items())]
        return (
            f"{release}: {name}({', '.join(asked)})",
            lambda: lambda ax: getattr(made(release).plot, name)(*given, **options, ax=ax),
        )

    for release in ("people", "lost", "unknown"):
        for name in ("correlation", "findings", "spectrum"):
            yield method(release, name)
        yield method(release, "coefficients", "income")
        yield method(release, "groups", "region", "income")
    for release in ("wide", "clear"):
        yield method(release, "correlation")
    yield method("clear", "correlation", ["age", "height"])
    yield method("clear", "spectrum", scaling="correlation")
    yield method("clear", "coefficients", "income", ["age", "region", "height"], per="unit", sort="size", level=0.8)
    yield method("clear", "coefficients", "income", n_coefficients=2, sort="p")
    yield method("clear", "coefficients", "age", method="ridge", per="unit", n_coefficients=3)
    yield method("clear", "groups", "employed", "age", sort="schema", level=0.8)
    yield method("clear", "groups", "region", "age", sort="rows")
    yield method("clear", "spectrum", ["age", "income"])
    yield method("steps", "steps")
    yield "forecast of people", lambda: lambda ax: plot_clear(planned(), "title", ax)


PLOTS: Mapping[str, Callable[[], Drawing]] = dict(plots())
NEW_FIGURES = (
    "people: findings()",
    "people: groups(region, income)",
    "steps: steps()",
    "forecast of people",
)
"""Drawn into new figures, the others into axes that are given."""


# What is kept -----------------------------------------------------------------------------------------------------------------


def described(ax: Axes) -> dict[str, Any]:
    """Return everything drawn in some axes, and in those beside and inside them."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    others = [*ax.child_axes, *(each for each in figure.axes if each is not ax)]
    legend = ax.get_legend()
    return {
        "title": ax.get_title(loc="left").replace("\n", " "),
        "axes": [ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale(), ax.get_yscale(), str(ax.get_aspect())],
        "ticks": [ticks_of(axis) for axis in (ax.xaxis, ax.yaxis)],
        "shapes": [
            *([np.asarray(patch.get_path().vertices)] for patch in ax.patches),
            alike(
                [to_hex(patch.get_facecolor()), to_hex(patch.get_edgecolor()), patch.get_hatch(), patch.get_gid()]
                + [bool(patch.get_visible())]
                for patch in ax.patches
            ),
        ],
        "places": [patch.get_transform().transform([[0.0, 0.0], [1.0, 1.0]]) for patch in ax.patches],
        "collections": [
            [[path.vertices for path in each.get_paths()], each.get_hatch(), each.get_gid(), shown_label(each)]
            + sorted({to_hex(color) for color in (*each.get_edgecolor(), *each.get_facecolor())})
            for each in ax.collections
        ],
        "images": [
            [np.ma.filled(each.get_array().astype(float), np.nan), each.norm.vmin, each.norm.vmax]
            + [getattr(each.norm, "linthresh", None), type(each.norm).__name__, to_hex(each.get_cmap().get_bad())]
            for each in ax.images
        ],
        "legend": "|".join(text.get_text() for text in legend.get_texts()) if legend else "",
        "others": [described_alone(other) for other in others],
    } | described_alone(ax)  # fmt: skip


def described_alone(ax: Axes) -> dict[str, Any]:
    """The same of a color bar or an inset: what is written and the lines in it."""
    texts = [text for text in ax.texts if text.get_text()]
    return {
        "words": "|".join([ax.get_title(), ax.get_ylabel(), *(text.get_text().replace("\n", " ") for text in texts)]),
        "limits": [*ax.get_xlim(), *ax.get_ylim()],
        "lines": [
            [np.concatenate([np.asarray(each.get_xydata(), dtype=float).ravel() for each in ax.lines])] if ax.lines else [],
            alike(
                [str(each.get_marker()), each.get_linestyle(), to_hex(each.get_color()), to_hex(each.get_markerfacecolor())]
                + [shown_label(each), bool(each.get_clip_on())]
                for each in ax.lines
            ),
        ],
        "texts": [
            [np.array([text.xy if isinstance(text, Annotation) else text.get_position() for text in texts], dtype=float)],
            alike(
                [to_hex(text.get_color()), text.get_gid(), text.get_bbox_patch() is not None, text.get_parse_math()]
                + [isinstance(text, Annotation) and text.get_annotation_clip()]
                for text in texts
            ),
        ],
    }  # fmt: skip


def ticks_of(axis: Any) -> Any:
    labels = [text.get_text() for text in axis.get_ticklabels()]
    grid = bool(axis._major_tick_kw.get("gridOn"))
    turned = [text.get_rotation() for text in axis.get_ticklabels()][:1]
    return [[np.asarray(axis.get_ticklocs(), dtype=float)] if any(labels) else [], "|".join(labels), grid, turned]


def shown_label(artist: Any) -> str:
    return "" if str(artist.get_label()).startswith("_") else str(artist.get_label())


def alike(styles: Any) -> list[str]:
    """Return styles in turn, each with how many artists in a row have it."""
    return [f"{sum(1 for _ in same)} × {' '.join(map(str, style))}" for style, same in groupby(styles)]


def plain(answer: Any) -> Any:
    if isinstance(answer, bool | np.bool_):
        return bool(answer)
    if answer is None or isinstance(answer, str | int):
        return answer
    if isinstance(answer, float | np.number):
        return float(f"{answer:.9g}") if math.isfinite(answer) else str(float(answer))
    if isinstance(answer, Mapping):
        return {name: value for name, value in ((name, plain(value)) for name, value in answer.items()) if value}
    if (
        isinstance(answer, np.ndarray | list | tuple)
        and len(answer)
        and all(isinstance(one, np.ndarray) for one in answer)
    ):
        return in_sums(np.concatenate([np.ravel(one) for one in answer]).astype(float))
    return [plain(value) for value in answer]


def in_sums(values: np.ndarray) -> Any:
    """Return few numbers as they are, else the size of the array and three weighted sums of its entries in it."""
    if values.size <= WHOLE:
        return [plain(value) for value in values]
    size, sums, known = weighted_sums(values)
    return [values.size, plain(size), *(float(f"{value:.8g}") for value in sums), known]


def drawing(name: str) -> Any:
    ax = PLOTS[name]()(None if name in NEW_FIGURES else Figure(figsize=(8.0, 6.0)).subplots())
    answer = plain(described(ax))
    figure = ax.get_figure(root=True)
    assert figure is not None
    assert (tuple(figure.get_size_inches()) == (8.0, 6.0)) == (
        name not in NEW_FIGURES
    )  # one that is given keeps its size
    plt.close("all")
    return answer


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("name", PLOTS)
def test_pictures_are_those_kept(name: str) -> None:
    KEPT.require(drawing(name), name)


def test_nothing_else_is_kept() -> None:
    assert set(KEPT.answers) == set(PLOTS)


def main() -> None:
    KEPT.write({name: drawing(name) for name in PLOTS})


if __name__ == "__main__":
    main()
