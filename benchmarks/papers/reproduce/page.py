"""Pages of the papers' figures: each figure, a verdict per claim, and what to use instead.

Writes ``reproduction.md`` and ``beside-the-figures.md`` in ``docs/evidence``.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.pages import EVIDENCE
from benchmarks.papers.reproduce.claims import factor
from benchmarks.papers.reproduce.declaration import LEGEND, Claim, Figure, Instead, Outcome, Verdict
from benchmarks.papers.reproduce.figures import BESIDE, FIGURES
from benchmarks.papers.reproduce.lessons import lessons
from benchmarks.papers.reproduce.results import Results
from benchmarks.papers.reproduce.store import Store

__all__ = [
    "IMAGES",
    "PAGES",
    "Kept",
    "Page",
    "borrowed_files",
    "complete",
    "judged",
    "lines",
    "read_results",
    "write_findings",
]

IMAGES = EVIDENCE / "images" / "reproduction"
RULE = "\n".join(f"- **{verdict}**: {words}" for verdict, words in LEGEND.items())
OF_THE_PAPERS = f"""\
# The papers' figures, measured again

Every figure of Amin et al. 2019, of its student replication, of Sheffet 2015 and of CoinPress 2020: what the paper
says, what comes out when it is run again, and what to use now. Written by `make reproduce` (`make reproduce
QUICK=1` for a small run, which changes nothing here; `make reproduce REPRODUCE="--only amin-1a"` for one figure); what a
figure shows is declared in
[benchmarks/papers/reproduce/figures](../../benchmarks/papers/reproduce/figures/), how a point is measured is in
[experiments](../../benchmarks/papers/reproduce/experiments/). Seeds are derived from the names of figure, panel, method,
point and trial: a second run gives the same numbers. Claims are in our words. Verdicts follow from the numbers by one rule,
whose limits are in the declarations; the numbers found for each claim, and what a claim that does not hold would need, are in
[one table](tables/reproduction.csv). What the figures leave open is measured [beside them](beside-the-figures.md).

{RULE}

Questions that are ours are no claims of a paper: they have an answer and no verdict, and are not counted with the claims.
A factor *a* (*b* to *c*) is a geometric mean over the cells of a figure (panel × point), with its least and largest
value. Under *instead* it is the error of the paper's method over that of what to use, at the same budget and on the same tables.
"""
BESIDE_THEM = """\
# Beside the papers' figures

What the figures of Amin et al. 2019 and of Sheffet 2015 leave open, measured as [they are](reproduction.md), by the same command
and with the same rule of verdicts: tables in other forms and other scalings, both calibrations, the acceptance that Amin et al.
print, errors over n and d, the rule of regimes; repairs, collinear columns, noise on the inverse. A claim names a section of its
paper; a question is ours, from earlier measurements with other seeds. What was found for each is in
[one table](tables/beside-the-figures.csv). Written by `make reproduce`.
"""
MEASURED = re.compile(r"^\*\*.*\*\*.*\nMeasured on .*$", re.M)


@dataclass(frozen=True)
class Kept:
    """The parts of a page as it is: a figure that was not run in full keeps its part.

    Attributes
    ----------
    measured, lessons : str
        What was run and where; what to take from all figures.
    rows, sections : mapping
        By figure: its line of the summary, and its section.
    """

    measured: str
    lessons: str
    rows: Mapping[str, str]
    sections: Mapping[str, str]

    @classmethod
    def read(cls, path: Path) -> Kept:
        """Take a page apart; of one that does not exist nothing is kept."""
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        measured = MEASURED.search(text)
        lessons = re.search(r"^## What to take from it\n.*?(?=^## )", text, re.M | re.S)
        parts = re.findall(r"^### ([\w-]+): .*?(?=^##|\Z)", text, re.M | re.S)
        sections = re.finditer(r"^### .*?(?=^##|\Z)", text, re.M | re.S)
        return cls(
            measured.group() if measured else "",
            lessons.group().rstrip() if lessons else "",
            {name: line for line, name in re.findall(r"^(\| \[([\w-]+)\]\(#.*)$", text, re.M)},
            {name: section.group().rstrip() for name, section in zip(parts, sections, strict=True)},
        )


@dataclass(frozen=True)
class Page:
    """One page: its figures, in order, and what a reader takes from all of them together."""

    path: Path
    head: str
    figures: Sequence[Figure]
    lessons: Callable[[Mapping[str, Results]], Iterator[str]] | None = None

    @property
    def findings(self) -> Path:
        """The file of what was found for every claim."""
        return self.path.parent / "tables" / f"{self.path.stem}.csv"

    def missing(self, found: Mapping[str, Results], kept: Kept) -> list[str]:
        """Return the figures that neither have all their results nor a section."""
        return [
            figure.name
            for figure in self.figures
            if not complete(found[figure.name], found) and figure.name not in kept.sections
        ]


PAGES = (
    Page(EVIDENCE / "reproduction.md", OF_THE_PAPERS, FIGURES, lessons),
    Page(EVIDENCE / "beside-the-figures.md", BESIDE_THEM, BESIDE),
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


def lines(page: Page, found: Mapping[str, Results], kept: Kept) -> Iterator[str]:
    """The whole page: figures with all their results anew, the others as they were."""
    own = {figure.name: found[figure.name] for figure in page.figures}
    new = {name: complete(results, found) for name, results in own.items()}
    outcomes = {name: judged(results.figure, results) if new[name] else [] for name, results in own.items()}
    yield page.head
    yield from circumstances(own) if all(new.values()) or not kept.measured else [kept.measured]
    yield ""
    if page.lessons is not None:
        yield from page.lessons(found) if all(new.values()) or not kept.lessons else [kept.lessons]
        yield ""
    yield "## All figures"
    yield ""
    yield "| figure | shows | claims: reproduced, with changes, not comparable, not | instead | factor |"
    yield "| --- | --- | --- | --- | --- |"
    for name, results in own.items():
        yield summary(results, outcomes[name]) if new[name] else kept.rows[name]
    paper = None
    for name, results in own.items():
        if results.figure.paper != paper:
            paper = results.figure.paper
            yield ""
            yield f"## {paper}"
        yield ""
        if new[name]:
            since = (
                "" if all(new.values()) else f" Measured {known(results, 'date')}, commit {known(results, 'commit')}."
            )
            yield from section(results, outcomes[name], since=since)
        else:
            yield kept.sections[name]


def known(results: Results, fact: str) -> str:
    """A circumstance of all results."""
    return ", ".join(sorted(results.facts.get(fact, [])))


def circumstances(found: Mapping[str, Results]) -> Iterator[str]:
    """Machine and versions of a run of all figures."""
    facts: dict[str, set[str]] = {}
    for results in found.values():
        for name, these in results.facts.items():
            facts.setdefault(name, set()).update(these)
    of = {name: ", ".join(sorted(these)) for name, these in facts.items()}
    yield "**A full run**, with the trials that each figure names; a section that was measured again later says so."
    yield (
        f"Measured on {of['machine']} ({of['cpu']}), Python {of['python']}, NumPy {of['numpy']}, dpmoments "
        f"{of['dpmoments']}, commit {of['commit']}, {of['date']}."
    )


def complete(results: Results, found: Mapping[str, Results]) -> bool:
    """Whether a figure, and those it borrows from, have all their points and trials."""
    return results.is_full and all(name in found and found[name].is_full for name in results.figure.borrowed)


def summary(results: Results, outcomes: Sequence[tuple[Claim, Outcome | None]]) -> str:
    """A figure's line."""
    figure = results.figure
    counts = Counter(outcome.verdict for claim, outcome in outcomes if outcome is not None and not claim.ours)
    verdicts = ", ".join(str(counts[verdict]) for verdict in Verdict)
    first = next(iter(figure.instead), None)
    use = f"{first.use} for {first.of}" if first else "–"
    times = factor_of(first, results) if first else "–"
    return f"| [{figure.name}](#{anchor(figure)}) | {figure.title} | {verdicts} | {use} | {times} |"


def heading(figure: Figure) -> str:
    """Of a figure's section."""
    number = f"Figure {figure.number}, " if figure.number else ""
    return f"{figure.name}: {number}{figure.title}"


def anchor(figure: Figure) -> str:
    """Of that heading, as Markdown pages make it."""
    kept = "".join(letter for letter in heading(figure).lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def section(results: Results, outcomes: Sequence[tuple[Claim, Outcome | None]], *, since: str = "") -> Iterator[str]:
    """One figure."""
    figure = results.figure
    fewest, most = results.trials
    yield f"### {heading(figure)}"
    yield ""
    yield f"![{figure.title}](images/reproduction/{figure.name}.png)"
    yield ""
    yield f"{figure.summary.capitalize()} of {fewest if fewest == most else f'{fewest} to {most}'} trials a point.{since}"
    for ours, head in ((False, "| the paper says | verdict |"), (True, "| we ask | answer |")):
        asked = [(claim, outcome) for claim, outcome in outcomes if claim.ours is ours]
        if asked:
            yield ""
            yield head
            yield "| --- | --- |"
            for claim, outcome in asked:
                word = judgement(claim, outcome)[0]
                yield f"| {cell(claim.says)} | {word if outcome is None else f'**{word}**'} |"
    if figure.instead:
        yield ""
        for instead in figure.instead:
            yield f"- Instead of *{instead.of}*: {instead.words}. Factor {factor_of(instead, results)}."
    for note in figure.notes:
        yield ""
        yield note


def judgement(claim: Claim, outcome: Outcome | None) -> tuple[str, str]:
    """Verdict of a claim, or answer to a question, and what was found."""
    if outcome is None:
        return "not compared", "what it is compared with is not at hand"
    return str(outcome.verdict.answer if claim.ours else outcome.verdict), outcome.found


def write_findings(page: Page, found: Mapping[str, Results]) -> None:
    """Write what was found for every claim to a file; a figure that was not run in full keeps its lines."""
    kept: list[list[str]] = []
    if page.findings.exists():
        with page.findings.open(encoding="utf-8", newline="") as stream:
            kept = list(csv.reader(stream))[1:]
    page.findings.parent.mkdir(exist_ok=True)
    with page.findings.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(["figure", "claim", "verdict", "found"])
        for name in (figure.name for figure in page.figures):
            if complete(found[name], found):
                judgements = (
                    (claim, judgement(claim, outcome)) for claim, outcome in judged(found[name].figure, found[name])
                )
                table.writerows([name, claim.says, *both] for claim, both in judgements)
            else:
                table.writerows(line for line in kept if line[0] == name)


def cell(words: str) -> str:
    """Of a table in Markdown."""
    return words.replace("|", "\\|")
