"""Pages of the papers' figures: each figure, a verdict for each claim, what to use instead, and what to take from all of them."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.pages import EVIDENCE
from benchmarks.papers.reproduce.claims import digits, factor
from benchmarks.papers.reproduce.declaration import LEGEND, Claim, Figure, Instead, Outcome, Verdict
from benchmarks.papers.reproduce.figures import BESIDE, FIGURES, amin, sheffet
from benchmarks.papers.reproduce.figures import coinpress as of_coinpress
from benchmarks.papers.reproduce.results import Results
from benchmarks.papers.reproduce.runner import Store

# What a reader takes from all figures together, with the numbers behind it.


def lessons(found: Mapping[str, Results]) -> Iterator[str]:
    """What a reader takes from all figures together, with the numbers behind it."""
    yield from ("## What to take from it", "")

    # Amin et al. and the replication, under pure ε.
    real, synthetic = found["amin-1a"], found["amin-2a"]
    ahead = [
        (results.center(panel, "AD", "error", x), results.center(panel, "(tr G/d)·I", "error", x))
        for results in (real, synthetic)
        for (panel, x), ratio in results.over("AD", "L").items()
        if ratio < 1.0
    ]
    lost = sum(error > 0.8 * nothing for error, nothing in ahead)
    theirs, made = (factor(list(results.over("AD", "dpmoments").values())) for results in (real, synthetic))
    yield (
        "- **Pure ε** (Amin et al., the replication): the default, matrix Laplace noise and its repair, in place of "
        f"eigenvectors by the exponential mechanism: the error of AD is {theirs} times as large on their tables, {made} "
        f"times on synthetic ones. In {lost} of the {len(ahead)} cells in which AD is ahead of Laplace noise on every "
        "entry it has more than 0.8 times the error of a multiple of the identity, which knows nothing of the table but "
        "its trace."
    )

    # The claim to beat Gaussian noise, and the replication's.
    labels = tuple(method.label for method in amin.PUBLISHED_GAUSSIAN)
    theirs, made = (digits(amin.noise_that_the_claim_needs(found[name], labels)) for name in ("amin-1b", "amin-2b"))
    reports = [found[f"replication-{number}"] for number in "123"]
    too_much = factor([ratio for report in reports for ratio in report.over("G, its scale", "G, exact").values()])
    yield (
        "- **(ε, δ)** (Amin et al., Sheffet): the default, Gaussian noise by its exact curve. For a pure mechanism to be "
        "ahead of Gaussian noise everywhere, as Amin et al. have it, the errors of Analyze Gauss as published would have "
        f"to be {theirs} times (their tables, as we scale them) and {made} times (synthetic ones) what they are. The scale "
        "that the replication states grows with d where it should not: its Gaussian errors are "
        f"{too_much} times those of noise by the exact curve."
    )

    # Sheffet's mechanisms under exact calibration.
    six, many = found["sheffet-4"], found["sheffet-5"]
    gaps = []
    for technique in (sheffet.ALGORITHM_3_LESS, sheffet.ALGORITHM_2, sheffet.ALGORITHM_5):
        paper, exact = (
            factor(list(six.at_the_end(method.label, gauss.label).values()))
            for method, gauss in zip(technique, sheffet.ANALYZE_GAUSS, strict=True)
        )
        gaps.append(f"{technique[0].label.removesuffix(', paper')} {paper} → {exact}")
    published = factor(list(six.at_the_end(*(method.label for method in sheffet.ANALYZE_GAUSS)).values()))
    against = many.over("Analyze Gauss + cI, exact", "Algorithm 2, exact")
    scaled = factor([ratio for (panel, _), ratio in against.items() if panel != "k = 0"])
    yield (
        "- **Sheffet's mechanisms** on one regression, error over that of Analyze Gauss at the largest n, both with the "
        f"paper's constants → both calibrated exactly: {'; '.join(gaps)}. The published constants of Analyze Gauss "
        f"itself cost a factor of {published} there. On near-singular regressions (k above 0) Analyze Gauss + cI has "
        f"{scaled} times the error of Algorithm 2, both exact."
    )

    # The sensitivity to t.
    over_steps = found["coinpress-6"]
    released, mended = (
        factor(of_coinpress.choice_of_steps(over_steps, of_coinpress.SKEWED, family))
        for family in ("released", "mended")
    )
    over_n = [of_coinpress.ISOTROPIC, of_coinpress.SKEWED]
    chosen = factor(list(over_steps.over("dpmoments", "non-private", *over_n).values()))
    yield (
        "- **CoinPress**: on skewed rows the largest error among t = 2 to 5 is "
        f"{released} times the least with the released program, {mended} times without its two mistakes: the sensitivity "
        "to t is theirs, not the algorithm's. With steps chosen from n, d, ρ and the range "
        f'(`mechanism="coinpress"`) errors are {chosen} times those without privacy over the n of Figure 6.'
    )


# Pages of the papers' figures: each figure, a verdict per claim, and what to use instead.

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

A claim counts once more under exact calibration, where the paper's constants are not that. Questions that are ours are in the
file of what was found, with their answers, and are not counted with the claims.
A factor *a* (*b* to *c*) is a geometric mean over the cells of a figure (panel × point), with its least and largest value;
for *instead*, of the paper's error over that of what to use.

Methods of Amin et al.: **AD**, iterative eigenvectors with the budget divided adaptively; **IT-U**, the same with equal
parts; **KT**, Kapralov and Talwar's; **L**, independent Laplace noise on every entry.
"""
BESIDE_THEM = """\
# Beside the papers' figures

What the figures of Amin et al. 2019 and of Sheffet 2015 leave open, measured [as they are](reproduction.md): by the same
command, with the same rule of verdicts. [What was
found](tables/beside-the-figures.csv) for each claim, and for each question of ours, and [what to use
instead](tables/beside-the-figures-instead.csv).
"""
MEASURED = re.compile(r"^\*\*.*\*\*.*\nMeasured on .*$", re.M)


@dataclass(frozen=True)
class Kept:
    """The parts of a page as it is: a figure that was not run in full keeps its part."""

    # What was run and where; what to take from all figures.
    measured: str
    lessons: str
    sections: Mapping[str, str]  # by figure

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
    lent = [(store.figure_file(name), labels) for name, labels in figure.borrowed.items()]
    return Results.read(figure, store.figure_file(figure.name), lent)


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
    if claims := [judgement(claim, outcome)[0] for claim, outcome in outcomes if not claim.ours]:
        yield from ("", counted("The paper's claims", claims))
    if answers := [judgement(claim, outcome)[0] for claim, outcome in outcomes if claim.ours]:
        yield from ("", counted("Our questions", answers))
    own = notes_of(page.figures, figure.paper)
    for note in figure.notes:
        if len(own[note]) == 1:
            yield ""
            yield note


def counted(what: str, answers: Sequence[str]) -> str:
    """How many claims or questions have each answer; each is in the file of what was found.

    Examples
    --------
    >>> counted("Our questions", ["yes", "no", "yes"])
    'Our questions: 2 yes, 1 no.'
    """
    return f"{what}: {', '.join(f'{number} {answer}' for answer, number in Counter(answers).items())}."


def judgement(claim: Claim, outcome: Outcome | None) -> tuple[str, str]:
    """Verdict of a claim, or answer to a question, and what was found."""
    if outcome is None:
        return "not compared", "what it is compared with is not at hand"
    return str(outcome.verdict.answer if claim.ours else outcome.verdict), outcome.found


def write_findings(page: Page, found: Mapping[str, Results]) -> None:
    """Write what was found for every claim, and what to use instead, to files; a figure not run in full keeps its lines."""
    for path, columns in (
        (page.findings, ("figure", "claim", "verdict", "found")),
        (page.instead, ("figure", "instead of", "use", "factor")),
    ):
        kept: list[list[str]] = []
        if path.exists():
            with path.open(encoding="utf-8", newline="") as stream:
                kept = list(csv.reader(stream))[1:]
        path.parent.mkdir(exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as stream:
            table = csv.writer(stream, lineterminator="\n")
            table.writerow(columns)
            for figure in page.figures:
                name, results = figure.name, found[figure.name]
                if not complete(results, found):
                    table.writerows(line for line in kept if line[0] == name)
                elif path == page.findings:
                    judgements = judged(figure, results)
                    table.writerows((name, claim.says, *judgement(claim, outcome)) for claim, outcome in judgements)
                else:
                    table.writerows((name, one.of, one.words, factor_of(one, results)) for one in figure.instead)
