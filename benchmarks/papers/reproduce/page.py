"""Pages of the papers' figures: how many claims have each verdict, files of what was found, and what to take from all of them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.pages import EVIDENCE, write_part
from benchmarks.papers.reproduce.claims import digits, factor
from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Verdict
from benchmarks.papers.reproduce.figures import BESIDE, FIGURES, amin, named, sheffet
from benchmarks.papers.reproduce.figures import coinpress as of_coinpress
from benchmarks.papers.reproduce.results import FACTS, Results
from benchmarks.papers.reproduce.runner import Store

# What a reader takes from all figures together, with the numbers behind it.


def lessons(found: Mapping[str, Results]) -> Iterator[str]:
    """What a reader takes from all figures together, with the numbers behind it."""
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


# Pages of the papers' figures: marked parts are written, the prose between them stays as it is.

IMAGES = EVIDENCE / "images" / "reproduction"


@dataclass(frozen=True)
class Page:
    """One page: its figures, and what a reader takes from all of them together."""

    path: Path
    figures: Sequence[Figure]
    lessons: Callable[[Mapping[str, Results]], Iterator[str]] | None = None

    @property
    def findings(self) -> Path:
        return self.path.parent / "tables" / f"{self.path.stem}.csv"

    @property
    def instead(self) -> Path:
        return self.findings.with_name(f"{self.path.stem}-instead.csv")


PAGES = (
    Page(EVIDENCE / "reproduction.md", FIGURES, lessons),
    Page(EVIDENCE / "beside-the-figures.md", BESIDE),
)


def read_results(figure: Figure, store: Store) -> Results:
    lent = ((store.read(named(name)), labels) for name, labels in figure.borrowed.items())
    frames = (frame[frame["method"].isin(labels)] for frame, labels in lent if len(frame))
    return Results.of(figure, [store.read(figure), *frames])


def write(page: Page, found: Mapping[str, Results]) -> None:
    """Write the part of every figure with all its results, and what is of all figures where none is without."""
    own = {figure.name: found[figure.name] for figure in page.figures}
    full = {name: results for name, results in own.items() if complete(results, found)}
    write_findings(page, full)
    for name, results in full.items():
        since = f" Measured {known(results, 'date')}, commit {known(results, 'commit')}." if full != own else ""
        write_part(page.path, name, section(results, since))
    write_part(page.path, "claims", [tally(page)])
    if full == own:
        write_part(page.path, "measured", circumstances(own.values()))
        if page.lessons is not None:
            write_part(page.path, "lessons", page.lessons(found))


def known(results: Results, fact: str) -> str:
    return ", ".join(results.facts.get(fact, []))


def circumstances(found: Iterable[Results]) -> Iterator[str]:
    """Machine and versions of a run of all figures."""
    of = {name: ", ".join(sorted({each for results in found for each in results.facts[name]})) for name in FACTS}
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


def judged(results: Results) -> list[tuple[Claim, str, str]]:
    """Each claim with its verdict, or the answer to a question, and what was found."""
    found = []
    for claim in results.figure.claims:
        outcome = claim.judge(results)
        if outcome is None:
            found.append((claim, "not compared", "what it is compared with is not at hand"))
        else:
            found.append((claim, str(outcome.verdict.answer if claim.ours else outcome.verdict), outcome.found))
    return found


def section(results: Results, since: str) -> Iterator[str]:
    """The trials of a figure, and how many of its claims have each verdict."""
    yield f"{results.figure.summary.capitalize()} of {results.trials_in_words}.{since}"
    answers = judged(results)
    for what, ours in (("The paper's claims", False), ("Our questions", True)):
        if words := [verdict for claim, verdict, _ in answers if claim.ours == ours]:
            yield from ("", counted(what, words))


def counted(what: str, answers: Sequence[str]) -> str:
    """How many claims or questions have each answer; each is in the file of what was found.

    Examples
    --------
    >>> counted("Our questions", ["yes", "no", "yes"])
    'Our questions: 2 yes, 1 no.'
    """
    return f"{what}: {', '.join(f'{number} {answer}' for answer, number in Counter(answers).items())}."


def factor_of(instead: Instead, results: Results) -> str:
    """Error of the paper's method over that of what to use."""
    cells = results.ratios(instead.of, instead.use, metric=instead.metric, panels=instead.panels)
    return factor([ratio for _, _, ratio, _ in cells])


def write_findings(page: Page, full: Mapping[str, Results]) -> None:
    """Write what was found for every claim, and what to use instead, to files; a figure not run in full keeps its lines."""
    found = {name: [(claim.says, *words) for claim, *words in judged(results)] for name, results in full.items()}
    instead = {
        name: [(one.of, one.words, factor_of(one, results)) for one in results.figure.instead]
        for name, results in full.items()
    }
    for path, columns, new in (
        (page.findings, ("figure", "claim", "verdict", "found"), found),
        (page.instead, ("figure", "instead of", "use", "factor"), instead),
    ):
        kept: list[list[str]] = []
        if path.exists():
            with path.open(encoding="utf-8", newline="") as stream:
                kept = list(csv.reader(stream))[1:]
        with path.open("w", encoding="utf-8", newline="") as stream:
            table = csv.writer(stream, lineterminator="\n")
            table.writerow(columns)
            for name in (figure.name for figure in page.figures):
                rows = [(name, *row) for row in new[name]] if name in new else [row for row in kept if row[0] == name]
                table.writerows(rows)
