"""The figures of README.md, read from the pages that they were measured for.

python -m benchmarks.practice.readme
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from benchmarks.pages import DOCS, EVIDENCE, part_of, tables_in, write_part
from benchmarks.peers.six_tables import by_table, summary

README = DOCS.parent / "README.md"
SHOWN = ("no privacy", "release", "release, δ", "MST, δ", "AIM, δ", "OpenDP, diffprivlib", "noise, δ")
MEASURES = ("correlations", "means", "one regression", "pairs found")
NOTE = (
    "Medians of runs; ε = 1, with δ = 10⁻⁶ where it says δ; one row may be added or removed. *No privacy*: as many rows drawn "
    "again. *MST, AIM*: synthetic rows by dpmm, with 20 bins or a better number that was tried; AIM was run on the three "
    "narrowest tables. *OpenDP, diffprivlib*: what both implement, with the misprint below corrected. *Noise*: on every sum and "
    "product at once. *Related*: pairs with |r| > 0.05, at 5 % false; more is better. "
    "[Each question, each loss of ours, time and memory](docs/evidence/peers-by-question.md)."
)


def accuracy() -> Iterator[str]:
    """The tables of the first screen, from docs/evidence/peers-by-question.md."""
    yield from by_table("correlations", SHOWN)
    yield ""
    yield from summary(MEASURES, SHOWN)
    yield ""
    yield from in_lines([NOTE])


def regressions() -> Iterator[str]:
    """Against regressions that spend everything on one fit, from docs/evidence/regression-coverage.md."""
    rows = list(tables_in(part_of(EVIDENCE / "regression-coverage.md", "summary")))
    better = [int(row["it is better by more than 10 %"].partition(" ")[0]) for row in rows]
    yield (
        "**One regression only**: a dedicated mechanism that spends the whole budget on it was better by over 10 % in "
        f"{min(better)} to {max(better)} of {rows[0]['cells']} settings, by method "
        "([comparison](docs/evidence/regression-coverage.md#one-release-or-all-the-budget-on-one-regression))."
    )


def misprint() -> Iterator[str]:
    """Which packages draw directions by the step as printed, from docs/evidence/misprinted-bingham.md."""
    draws = [
        row["sampler"] for row in tables_in(part_of(EVIDENCE / "misprinted-bingham.md", "peers")) if "sampler" in row
    ]
    packages = [name.replace("opendp", "OpenDP") for name in draws if not name.startswith("dpmoments")]
    yield (
        f"**A misprint in public code**: {' and '.join(packages)} draw principal directions by a step of Amin et al. (2019) "
        "in which a sign is misprinted, and can spend more than the ε that they state "
        "([by how much, and the right sampler](docs/evidence/misprinted-bingham.md))."
    )


def speed() -> Iterator[str]:
    """Ratios to a plain product, from docs/evidence/scale.md."""
    released = list(tables_in(part_of(EVIDENCE / "scale.md", "releases")))
    columns, whole = (in_a_row([row[column].rpartition(", ")[2] for row in released]) for column in ("d", "release"))
    yield (
        f"**Speed**: with `dpmoments[fast]`, `dpm.release` of an array with {columns} columns takes {whole} times "
        "as long as NumPy's `X.T @ X` ([memory, files, Dask and Spark](docs/evidence/scale.md))."
    )


def in_lines(paragraphs: Iterable[str]) -> Iterator[str]:
    """As wide as pages are here."""
    for paragraph in paragraphs:
        yield from textwrap.wrap(paragraph, 150, break_long_words=False, break_on_hyphens=False)


def in_a_row(words: list[str]) -> str:
    """With commas, and an "and" before the last."""
    return f"{', '.join(words[:-1])} and {words[-1]}"


READ = {"regressions": regressions, "misprint": misprint, "speed": speed}
"""Paragraphs."""


if __name__ == "__main__":
    write_part(README, "accuracy", accuracy())
    for name, lines in READ.items():
        write_part(README, name, in_lines(lines()))
    print(f"wrote the figures of {README}")
