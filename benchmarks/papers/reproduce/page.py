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
from benchmarks.papers.reproduce.declaration import EXACT, LEGEND, Claim, Figure, Instead, Outcome, Verdict
from benchmarks.papers.reproduce.figures import BESIDE, FIGURES
from benchmarks.papers.reproduce.lessons import lessons
from benchmarks.papers.reproduce.results import Results
from benchmarks.papers.reproduce.store import Store

IMAGES = EVIDENCE / "images" / "reproduction"
RULE = "\n".join(f"- **{verdict}**: {words}" for verdict, words in LEGEND.items())
OF_THE_PAPERS = f"""\
# The papers' figures, measured again

Every figure of Amin et al. 2019, of its student replication, of Sheffet 2015 and of CoinPress 2020. Written by `make reproduce`
(`REPRODUCE="--only amin-1a"` for one figure, `QUICK=1` for a small run that changes nothing here) from
[declarations](../../benchmarks/papers/reproduce/figures/), with fixed seeds. Claims are in our words. Verdicts follow from the
numbers by one rule. Tables: [what was found](tables/reproduction.csv) for each claim, and what one that does not hold would need;
[what to use instead](tables/reproduction-instead.csv) of a method. What the figures leave open is measured [beside
them](beside-the-figures.md).

{RULE}

*Exact* is the verdict under exact calibration. Questions that are ours are in the file of what was found, with their answers,
and are not counted with the claims.
A factor *a* (*b* to *c*) is a geometric mean over the cells of a figure (panel × point), with its least and largest value;
for *instead*, of the paper's error over that of what to use.

Methods of Amin et al.: **AD**, iterative eigenvectors with the budget divided adaptively; **IT-U**, the same with equal
parts; **KT**, Kapralov and Talwar's; **L**, independent Laplace noise on every entry.
"""
BESIDE_THEM = """\
# Beside the papers' figures

What the figures of Amin et al. 2019 and of Sheffet 2015 leave open, measured [as they are](reproduction.md): by the same
command, with the same rule of verdicts. A claim names a section of its paper. [What was
found](tables/beside-the-figures.csv) for each, and for each question of ours, and [what to use
instead](tables/beside-the-figures-instead.csv).
"""
MEASURED = re.compile(r"^\*\*.*\*\*.*\nMeasured on .*$", re.M)


@dataclass(frozen=True)
class Kept:
    """The parts of a page as it is: a figure that was not run in full keeps its part.

    Attributes
    ----------
    measured, lessons : str
        What was run and where; what to take from all figures.
    sections : mapping
        By figure.
    """

    measured: str
    lessons: str
    sections: Mapping[str, str]

    @classmethod
    def read(cls, path: Path) -> Kept:
        """Take a page apart; of one that does not exist nothing is kept."""
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        measured = MEASURED.search(text)
        lessons = re.search(r"^## What to take from it\n.*?(?=^\*\*Claims|^## )", text, re.M | re.S)
        parts = re.findall(r"^### ([\w-]+): .*?(?=^##|\Z)", text, re.M | re.S)
        sections = re.finditer(r"^### .*?(?=^##|\Z)", text, re.M | re.S)
        return cls(
            measured.group() if measured else "",
            lessons.group().rstrip() if lessons else "",
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
        return self.path.parent / "tables" / f"{self.path.stem}.csv"

    @property
    def instead(self) -> Path:
        return self.findings.with_name(f"{self.path.stem}-instead.csv")

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
    return Results.read(figure, store.figure_file(figure.name), borrowed_files(figure, store))


def borrowed_files(figure: Figure, store: Store) -> list[tuple[object, Sequence[str]]]:
    """Files of other figures, and the labels taken from each."""
    return [(store.figure_file(name), labels) for name, labels in figure.borrowed.items()]


def judged(figure: Figure, results: Results) -> list[tuple[Claim, Outcome | None]]:
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
    yield tally(page)
    paper = None
    for name, results in own.items():
        if results.figure.paper != paper:
            paper = results.figure.paper
            yield ""
            yield f"## {paper}"
            yield from shared(page.figures, paper)
        yield ""
        if new[name]:
            since = (
                "" if all(new.values()) else f" Measured {known(results, 'date')}, commit {known(results, 'commit')}."
            )
            yield from section(page, results, outcomes[name], since=since)
        else:
            yield kept.sections[name]


def known(results: Results, fact: str) -> str:
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


def tally(page: Page) -> str:
    """How many claims of the papers have each verdict, from the file of what was found."""
    with page.findings.open(encoding="utf-8", newline="") as stream:
        counts = Counter(line["verdict"] for line in csv.DictReader(stream))
    plural = {Verdict.FAILS: "do not hold"}
    words = (
        f"{n} {verdict if n == 1 else plural.get(verdict, verdict)}" for verdict in Verdict if (n := counts[verdict])
    )
    return f"**Claims**: {', '.join(words)}."


def heading(figure: Figure) -> str:
    number = f"Figure {figure.number}, " if figure.number else ""
    return f"{figure.name}: {number}{figure.title}"


def notes_of(figures: Sequence[Figure], paper: str) -> Mapping[str, list[str]]:
    """Notes of a paper's figures, with the names of those that have each."""
    found: dict[str, list[str]] = {}
    for figure in figures:
        for note in figure.notes if figure.paper == paper else ():
            found.setdefault(note, []).append(figure.name)
    return found


def shared(figures: Sequence[Figure], paper: str) -> Iterator[str]:
    for note, names in notes_of(figures, paper).items():
        if len(names) > 1:
            yield ""
            yield f"*{', '.join(names)}*: {note}"


def section(
    page: Page, results: Results, outcomes: Sequence[tuple[Claim, Outcome | None]], *, since: str = ""
) -> Iterator[str]:
    """One figure, without the notes that it shares."""
    figure = results.figure
    fewest, most = results.trials
    yield f"### {heading(figure)}"
    yield ""
    yield f"![Errors of {figure.name}](images/reproduction/{figure.name}.png)"
    yield ""
    yield f"{figure.summary.capitalize()} of {fewest if fewest == most else f'{fewest} to {most}'} trials a point.{since}"
    words: dict[str, str] = {}
    for claim, outcome in outcomes:
        if not claim.ours:
            says, exact, _ = claim.says.partition(EXACT)
            word = f"*{judgement(claim, outcome)[0]}*"
            words[says] = f"{words[says]}; exact: {word}" if exact and says in words else word
    if words:
        yield from ("", "The paper says:", "")
        yield from (f"- {says}: {word}" for says, word in words.items())
    if answers := [judgement(claim, outcome)[0] for claim, outcome in outcomes if claim.ours]:
        yield from ("", count_of_answers(answers))
    own = notes_of(page.figures, figure.paper)
    for note in figure.notes:
        if len(own[note]) == 1:
            yield ""
            yield note


def count_of_answers(answers: Sequence[str]) -> str:
    """How many of our questions have each answer; the questions are in the file of what was found.

    Examples
    --------
    >>> count_of_answers(["yes", "no", "yes"])
    'Our questions: 2 yes, 1 no.'
    """
    return f"Our questions: {', '.join(f'{number} {answer}' for answer, number in Counter(answers).items())}."


def judgement(claim: Claim, outcome: Outcome | None) -> tuple[str, str]:
    """Verdict of a claim, or answer to a question, and what was found."""
    if outcome is None:
        return "not compared", "what it is compared with is not at hand"
    return str(outcome.verdict.answer if claim.ours else outcome.verdict), outcome.found


def write_findings(page: Page, found: Mapping[str, Results]) -> None:
    """Write what was found for every claim, and what to use instead, to files; a figure not run in full keeps its lines."""
    _write(page, found, page.findings, ("figure", "claim", "verdict", "found"), _findings_of)
    _write(page, found, page.instead, ("figure", "instead of", "use", "factor"), _instead_of)


def _findings_of(results: Results) -> Iterator[tuple[str, ...]]:
    for claim, outcome in judged(results.figure, results):
        yield (claim.says, *judgement(claim, outcome))


def _instead_of(results: Results) -> Iterator[tuple[str, ...]]:
    for instead in results.figure.instead:
        yield instead.of, instead.words, factor_of(instead, results)


def _write(
    page: Page,
    found: Mapping[str, Results],
    path: Path,
    columns: Sequence[str],
    lines_of: Callable[[Results], Iterator[tuple[str, ...]]],
) -> None:
    kept: list[list[str]] = []
    if path.exists():
        with path.open(encoding="utf-8", newline="") as stream:
            kept = list(csv.reader(stream))[1:]
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(columns)
        for name in (figure.name for figure in page.figures):
            if complete(found[name], found):
                table.writerows((name, *line) for line in lines_of(found[name]))
            else:
                table.writerows(line for line in kept if line[0] == name)
