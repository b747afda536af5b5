"""A page for every mechanism, with its picture: `python -m benchmarks.practice.mechanism_pages`.

Writes docs/evidence/mechanisms/NAME.md. What the registry knows comes from the registry and the docstrings, what no program knows
from docs/evidence/mechanisms.yaml, and when a mechanism wins from its forecast on a grid. That is computed by `--forecast` (some
four minutes of one core) and kept beside the pictures; without it pages and pictures are made again from the numbers kept. No
private data is read.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import posixpath
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tools.documentation.mechanisms import derivation_page, own_page

from benchmarks.pages import DOCS, EVIDENCE
from benchmarks.practice import mechanism_grid as forecast_grid
from benchmarks.practice.mechanism_grid import MEAN_RADIUS, SETTINGS, Panel
from benchmarks.practice.mechanism_maps import (
    draw_choices,
    draw_map,
    setting_of,
    words_of_choices,
    words_of_map,
)
from dpmoments import ReleaseWarning
from dpmoments.cli.mechanisms import BUDGETS_SHOWN
from dpmoments.mechanisms.base import ConfiguredMechanism
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget

TEXTS = EVIDENCE / "mechanisms.yaml"
IMAGES = EVIDENCE / "images" / "mechanisms"
SECTIONS = ("Formula", "Guarantee", "Run it", "When it wins", "Measured")
COMMENT = "<!-- benchmarks.practice.mechanism_pages -->"
MAPS = "[Key](../every-mechanism.md#maps-of-one-mechanism)"
ARITHMETIC = ("exact-lattice", "lattice-rounded", "idealized")
LIMITS = "../../threat-model.md#what-the-arithmetic-rests-on"
EXAMPLES: Mapping[BudgetKind, PrivacyBudget] = {
    BudgetKind.PURE: PrivacyBudget.pure(1.0),
    BudgetKind.APPROXIMATE: PrivacyBudget.approximate(1.0, forecast_grid.DELTA),
    BudgetKind.ZCDP: PrivacyBudget.zcdp(0.5),
}
"""Budgets at which a plan is made, to ask it what its guarantee rests on."""


@dataclass(frozen=True)
class Subject:
    """What a page is about: a mechanism for ``"covariance"``, or an estimator of a ``"mean"``."""

    about: str
    kind: type[ConfiguredMechanism[Any]]

    @property
    def name(self) -> str:
        return self.kind.registry_name()

    @property
    def page(self) -> Path:
        return DOCS / own_page(self.kind)

    @property
    def picture(self) -> Path:
        return IMAGES / f"{self.page.stem}.png"

    @property
    def texts(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = all_texts()["means" if self.about == "mean" else "covariance"][self.name]
        return found


@cache
def all_texts() -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load(TEXTS.read_text(encoding="utf-8"))
    return found


SUBJECTS: Mapping[str, Subject] = {
    subject.page.stem: subject
    for about, kinds in (("covariance", MECHANISMS), ("mean", MEAN_MECHANISMS))
    for subject in (Subject(about, kind) for kind in kinds.values())
}
"""By the name of the page."""


def page_text(subject: Subject, grid: Mapping[str, Panel], printed: str) -> str:
    """The whole page; ``printed`` is what its block prints."""
    texts = subject.texts
    title = subject.name if subject.about == "covariance" else f"{subject.name}, for means"
    bodies = (
        [*_fence("text", texts["formula"]), "", _letters(subject)],
        _guarantee(subject),
        [
            *_fence("python", code_of(subject)),
            "",
            *_fence("text", printed),
        ],
        _when_it_wins(subject, grid),
        [f"Trials: {', '.join(map(_from_here, texts['measured']))}."],
    )
    lines = [f"# {title}", "", COMMENT, "", f"{_sentence(subject.kind.summary)} {_from_here(texts['take'])}", ""]
    for section, body in zip(SECTIONS, bodies, strict=True):
        lines += [f"## {section}", "", *body, ""]
    return "\n".join(lines).rstrip() + "\n"


def code_of(subject: Subject) -> str:
    lines = subject.texts["code"].rstrip().splitlines()
    others = [line for line in lines if line.startswith("import ")]
    own = [line for line in lines if not line.startswith("import ")]
    return "\n".join([*others, *([""] if others else []), "import dpmoments as dpm", "", "\n".join(own).strip("\n")])


def printed_by(code: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleaseWarning)  # print(release.describe()) says the same
        exec(compile(code, "page", "exec"), {"__name__": "page"})
    return "\n".join(line.rstrip() for line in caught.getvalue().splitlines())


def _fence(language: str, text: str) -> list[str]:
    return [f"```{language}", *text.rstrip().splitlines(), "```"]


def _letters(subject: Subject) -> str:
    """Where the letters of the formula are explained."""
    choice = "; w is [chosen](../derivations/additive.md#the-choice-of-w) before any data are read"
    return f"Letters: [notation](../notation.md){choice if 'z = (w, x)' in subject.texts['formula'] else ''}."


def _guarantee(subject: Subject) -> list[str]:
    kind, texts = subject.kind, subject.texts
    derivation = derivation_page(kind)
    proof = (
        _from_here(texts["proof"])
        if derivation is None
        else f"[{Path(derivation).stem}](../{posixpath.relpath(derivation, EVIDENCE.name)})"
    )
    rows = {
        "budgets": ", ".join(shown for known, shown in BUDGETS_SHOWN.items() if known in kind.budget_kinds),
        "neighbors": ", ".join(f"`{relation}`" for relation in sorted(kind.supported_neighbors)),
        "public": _from_here(texts["public"]),
        "rests on": texts.get("rests_on", "; ".join(_rests_on(subject))),
        "derivation": proof,
        "reference": f"[`{kind.__name__}`](../../api/mechanisms.md)",
    }
    head, *others = (f"| {head} | {_cell(text)} |" for head, text in rows.items())
    return [
        head,
        "| --- | --- |",
        *others,
        "",
        _from_here(texts["guarantee"]) if "guarantee" in texts else privacy_of(kind),
    ]


def privacy_of(kind: type[ConfiguredMechanism[Any]]) -> str:
    """The first sentences of the docstring's paragraph on privacy, a dozen words at least; the reference has the rest.

    Raises
    ------
    ValueError
        If it has none.
    """
    found = re.search(r"^\*\*Privacy\.\*\* (.*?)(?=\n\n|\Z)", inspect.getdoc(kind) or "", re.S | re.M)
    if found is None:
        raise ValueError(f"the docstring of {kind.__name__} has no paragraph that begins with **Privacy.**")
    text = ""
    for sentence in re.split(r"(?<=[.])\s", " ".join(found[1].split())):
        if len(text.split()) < 12:
            text = f"{text} {sentence}".strip()
    return from_docstring(text)


def _rests_on(subject: Subject) -> Iterator[str]:
    """What the guarantee rests on, by the kinds of budget with the same answer, from plans for every panel of the picture."""
    by_kind: dict[BudgetKind, set[str]] = {}
    for kind, budget in EXAMPLES.items():
        if kind in subject.kind.budget_kinds:
            values = SETTINGS[setting_of(subject.about, subject.name)].panels
            by_kind[kind] = {str(_plan(subject, budget, value).arithmetic) for value in values}
    for word in ARITHMETIC:
        said = f"[{word}]({LIMITS})"
        shown = [
            BUDGETS_SHOWN[kind] + (" by the number of columns" if len(words) > 1 else "")
            for kind, words in by_kind.items()
            if word in words
        ]
        if shown:
            everywhere = all(words == {word} for words in by_kind.values())
            yield said if everywhere else f"{said} (under {', '.join(shown)})"


def _plan(subject: Subject, budget: PrivacyBudget, value: float) -> Any:
    setting = setting_of(subject.about, subject.name)
    shape = forecast_grid.shape_of(setting, value, 1000)
    if subject.about == "mean":
        options = {} if setting == "bounded-means" else {"radius": MEAN_RADIUS, "scale": 1.0}
        mechanism = subject.kind(
            **{key: number for key, number in options.items() if key in subject.kind.__dataclass_fields__}
        )
    else:
        mechanism = forecast_grid.configured(subject.kind, setting, value, 1000)
    return mechanism.plan(shape, budget, SETTINGS[setting].neighbors)


def _when_it_wins(subject: Subject, grid: Mapping[str, Panel]) -> list[str]:
    name = subject.name
    shown = "what it takes" if name == "auto" else f"error of {name} over the least error of the others"
    words = words_of_choices(grid) if name == "auto" else words_of_map(grid, subject.about, name)
    return [
        f"![Map over rows and ε: {shown}](../images/mechanisms/{subject.picture.name})",
        "",
        *words,
        "",
        " ".join(_setting_in_words(subject)),
    ]


def _setting_in_words(subject: Subject) -> Iterator[str]:
    """Of which tables the picture tells."""
    name = setting_of(subject.about, subject.name)
    setting = SETTINGS[name]
    yield f"{MAPS}."
    if name == "one-column":
        yield "Here one column of normal values in the middle of its range, whose bounds the others are told and this one is not."
    elif name == "bounded-means":
        yield "Here columns of numbers between 0 and 1."
    elif not setting.with_mean:
        yield f"Here the second moment alone (`mean=False`), under `{setting.neighbors}`."
    elif subject.about == "covariance" and _depends_on_table(subject, name):
        yield "Its own error is that on the assumed table."
    if "told" in subject.texts:
        yield subject.texts["told"].strip()


def _depends_on_table(subject: Subject, setting: str) -> bool:
    """Whether the error of the mechanism is that on an assumed table."""
    budget = next(budget for kind, budget in EXAMPLES.items() if kind in subject.kind.budget_kinds)
    model = _plan(subject, budget, list(SETTINGS[setting].panels)[-1]).model
    return model is None or model.fixed_law is None


def from_docstring(text: str) -> str:
    """A docstring's marks as Markdown: roles as code, pages of the docs as links from docs/evidence/mechanisms/.

    Examples
    --------
    >>> from_docstring("as for :class:`~dpmoments.mechanisms.Laplace` (``docs/evidence/derivations/laplace.md``), ``rank=1``")
    'as for `Laplace` ([laplace](../derivations/laplace.md)), `rank=1`'
    """
    text = re.sub(r":\w+:`(?:~?[\w.]*\.)?([^`.]+)`", r"`\1`", text)
    text = re.sub(r"(?:``)?docs/evidence/([\w/]*?)([\w-]+)\.md(?:``)?", r"[\2](../\1\2.md)", text)
    text = re.sub(r"(?:``)?docs/([\w/]*?)([\w-]+)\.md(?:``)?", r"[\2](../../\1\2.md)", text)
    return re.sub(r"``([^`]*)``", r"`\1`", text)


def _from_here(text: str) -> str:
    """Text of docs/evidence/mechanisms.yaml, whose links are as from docs/evidence/."""
    return re.sub(r"\]\((?!https?:)", "](../", text.strip())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."


def write(subjects: Sequence[Subject]) -> None:
    grid = forecast_grid.kept()
    for subject in subjects:
        if subject.name == "auto":
            draw_choices(grid, subject.picture)
        else:
            draw_map(grid, subject.about, subject.name, subject.picture)
        subject.page.parent.mkdir(exist_ok=True)
        subject.page.write_text(page_text(subject, grid, printed_by(code_of(subject))), encoding="utf-8")
        print(f"wrote {subject.page.name}, {subject.picture.stat().st_size // 1000} kB of picture")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--forecast", action="store_true", help="compute the forecasts anew, some minutes")
    arguments.add_argument(
        "pages", nargs="*", metavar="PAGE", help="such as gaussian, mean-naive; all of them by default"
    )
    given = arguments.parse_args()
    if given.forecast:
        forecast_grid.compute()
    write([SUBJECTS[name] for name in given.pages or SUBJECTS])


if __name__ == "__main__":
    main()
