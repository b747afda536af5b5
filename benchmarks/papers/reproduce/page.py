"""Writes docs/reproduction.md and docs/beside-the-figures.md: each figure, a verdict a claim, and what to use instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.pages import DOCS
from benchmarks.papers.reproduce.claims import factor
from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Outcome, Verdict
from benchmarks.papers.reproduce.figures import BESIDE, FIGURES
from benchmarks.papers.reproduce.lessons import lessons
from benchmarks.papers.reproduce.results import Results
from benchmarks.papers.reproduce.store import Store

__all__ = ["IMAGES", "PAGES", "Page", "borrowed_files", "lines", "read_results"]

IMAGES = DOCS / "images" / "reproduction"
OF_THE_PAPERS = """\
# The papers' figures, measured again

Every figure of Amin et al. 2019, of its student replication, of Sheffet 2015 and of CoinPress 2020: what the paper
says, what comes out when it is run again, and what to use now. Written by `make reproduce` (`make reproduce
QUICK=1` for a small run); what a figure shows is declared in
[benchmarks/papers/reproduce/figures](../benchmarks/papers/reproduce/figures/), how a point is measured is in
[experiments](../benchmarks/papers/reproduce/experiments/). Seeds are derived from the names of figure, panel, method,
point and trial: a second run gives the same numbers. Claims are in our words. Verdicts follow from the numbers by
rules in the declarations. What the figures leave open is measured [beside them](beside-the-figures.md).

- **reproduced**: as the paper says; ratios that two standard errors do not tell from 1 count for the claim.
- **reproduced with changes**: in most cells, or with a change that is named.
- **does not hold**: otherwise.

A factor *a* (*b* to *c*) is a geometric mean over the cells of a figure (panel × point), with its least and largest
value. Under *instead* it is the error of the paper's method over that of what to use, at the same budget and on the same tables.
"""
BESIDE_THEM = """\
# Beside the papers' figures

What the figures of Amin et al. 2019 and of Sheffet 2015 leave open, measured as [they are](reproduction.md), by the same command
and with the same rules of verdicts: tables in other forms, both calibrations, the acceptance that Amin et al. print, errors over
n and d, the rule of regimes; repairs, collinear columns, noise on the inverse. A claim that names a section is the paper's;
one that names none is ours, from earlier measurements with other seeds. Written by `make reproduce`.
"""


@dataclass(frozen=True)
class Page:
    """One page: its figures, in order, and what a reader takes from all of them together."""

    path: Path
    head: str
    figures: Sequence[Figure]
    lessons: Callable[[Mapping[str, Results]], Iterator[str]] | None = None

    def missing(self, found: Mapping[str, Results]) -> list[str]:
        """Figures without results among those that the page needs."""
        needed = [name for figure in self.figures for name in (figure.name, *figure.borrowed)]
        return [name for name in dict.fromkeys(needed) if not found[name].panels]


PAGES = (
    Page(DOCS / "reproduction.md", OF_THE_PAPERS, FIGURES, lessons),
    Page(DOCS / "beside-the-figures.md", BESIDE_THEM, BESIDE),
)


def read_results(figure: Figure, store: Store) -> Results:
    """A figure's results, with those it borrows."""
    return Results.read(figure, store.figure_file(figure.name), borrowed_files(figure, store))


def borrowed_files(figure: Figure, store: Store) -> list[tuple[object, Sequence[str]]]:
    """Files of other figures, and the labels taken from each."""
    return [(store.figure_file(name), labels) for name, labels in figure.borrowed.items()]


def judged(figure: Figure, results: Results) -> list[tuple[Claim, Outcome | None]]:
    """Every claim."""
    return [(claim, claim.judge(results)) for claim in figure.claims]


def factor_of(instead: Instead, results: Results) -> str:
    """Error of the paper's method over that of what to use."""
    ratios = [
        ratio
        for _, _, ratio, _ in results.ratios(instead.of, instead.use, metric=instead.metric, panels=instead.panels)
    ]
    if not ratios:
        raise ValueError(f"{results.figure.name}: {instead.of} and {instead.use} have no cell in common")
    return factor(ratios)


def lines(page: Page, found: Mapping[str, Results]) -> Iterator[str]:
    """The whole page, from the results of all figures."""
    own = {figure.name: found[figure.name] for figure in page.figures}
    outcomes = {name: judged(results.figure, results) for name, results in own.items()}
    whole = {name: complete(results, found) for name, results in own.items()}
    yield page.head
    yield from circumstances(own, whole)
    yield ""
    if page.lessons is not None:
        yield from page.lessons(found)
        yield ""
    yield "## All figures"
    yield ""
    yield from summary(own, outcomes)
    paper = None
    for name, results in own.items():
        if results.figure.paper != paper:
            paper = results.figure.paper
            yield ""
            yield f"## {paper}"
        yield ""
        yield from section(results, outcomes[name], whole=whole[name])


def circumstances(found: Mapping[str, Results], whole: Mapping[str, bool]) -> Iterator[str]:
    """Machine, versions, and how much of the whole was run."""
    facts: dict[str, set[str]] = {}
    for results in found.values():
        for name, known in results.facts.items():
            facts.setdefault(name, set()).update(known)

    def known(name: str) -> str:
        return ", ".join(sorted(facts.get(name, set())))

    if all(whole.values()):
        yield "**A full run**, with the trials that each figure names."
    else:
        yield (
            f"**Results of a quick or unfinished run**: {sum(whole.values())} of {len(found)} figures have all their points "
            f"and trials. Verdicts "
            "may change with the full run (`make reproduce`)."
        )
    yield (
        f"Measured on {known('machine')} ({known('cpu')}), Python {known('python')}, NumPy {known('numpy')}, dpmoments "
        f"{known('dpmoments')}, commit {known('commit')}, {known('date')}."
    )


def complete(results: Results, found: Mapping[str, Results]) -> bool:
    """Whether a figure, and those it borrows from, have all their points and trials."""
    return results.is_full and all(name in found and found[name].is_full for name in results.figure.borrowed)


def summary(found: Mapping[str, Results], outcomes: Mapping[str, list[tuple[Claim, Outcome | None]]]) -> Iterator[str]:
    """A line a figure."""
    yield "| figure | shows | claims: reproduced, with changes, not | instead | factor |"
    yield "| --- | --- | --- | --- | --- |"
    for name, results in found.items():
        figure = results.figure
        counts = Counter(outcome.verdict for _, outcome in outcomes[name] if outcome is not None)
        verdicts = ", ".join(str(counts[verdict]) for verdict in Verdict)
        first = next(iter(figure.instead), None)
        use = f"{first.use} for {first.of}" if first else "–"
        times = factor_of(first, results) if first else "–"
        yield f"| [{name}](#{anchor(figure)}) | {figure.title} | {verdicts} | {use} | {times} |"


def heading(figure: Figure) -> str:
    """Of a figure's section."""
    number = f"Figure {figure.number}, " if figure.number else ""
    return f"{figure.name}: {number}{figure.title}"


def anchor(figure: Figure) -> str:
    """Of that heading, as Markdown pages make it."""
    kept = "".join(letter for letter in heading(figure).lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def section(results: Results, outcomes: Sequence[tuple[Claim, Outcome | None]], *, whole: bool) -> Iterator[str]:
    """One figure."""
    figure = results.figure
    fewest, most = results.trials
    yield f"### {heading(figure)}"
    yield ""
    yield f"![{figure.title}](images/reproduction/{figure.name}.png)"
    yield ""
    part = "" if whole else ", a part of the grid and of the trials"
    yield f"{figure.summary.capitalize()} of {fewest if fewest == most else f'{fewest} to {most}'} trials a point{part}."
    yield ""
    yield "| what is said | verdict | found |"
    yield "| --- | --- | --- |"
    for claim, outcome in outcomes:
        verdict = "not compared" if outcome is None else f"**{outcome.verdict}**"
        words = "what it is compared with is not at hand" if outcome is None else outcome.found
        yield f"| {cell(claim.says)} | {verdict} | {cell(words)} |"
    if figure.instead:
        yield ""
        for instead in figure.instead:
            yield f"- Instead of *{instead.of}*: {instead.words}. Factor {factor_of(instead, results)}."
    for note in figure.notes:
        yield ""
        yield note


def cell(words: str) -> str:
    """Of a table in Markdown."""
    return words.replace("|", "\\|")
