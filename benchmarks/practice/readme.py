"""The figures of README.md.

Accuracy is measured by releases made here, which takes a minute; all else is read from the pages that it was measured for.

python -m benchmarks.practice.readme
"""

from __future__ import annotations

import argparse
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

import dpmoments as dpm
from benchmarks.pages import DOCS, EVIDENCE, part_of, tables_in, write_part
from benchmarks.peers.programs import peers_algorithm
from benchmarks.practice.comparison.contenders import BEFORE, NOW, Cell, Contender
from benchmarks.practice.comparison.errors import Truth
from benchmarks.practice.tables import chosen, made

README = DOCS.parent / "README.md"
CELL = Cell(epsilon=1.0, delta=0.0, neighbors="add_remove")
SEEDS = 20
PEERS = "peers"
TABLES = {
    "adult": "Adult, all columns",
    "airfoil": "Airfoil",
    "digits": "Digits",
    "wine": "Wine",
    "adult-numbers": "Adult's numbers",
}
"""Of the collection of docs/evidence/practice.md, those that the README shows, by what it calls them."""


@dataclass(frozen=True)
class Row:
    """One table: its size, and the mean error of each contender."""

    n_rows: int
    n_features: int
    errors: Mapping[str, float]


def measured(name: str, seeds: int = SEEDS) -> Row:
    """The root mean square error of correlations, mean of releases at fixed seeds.

    Raises
    ------
    FileNotFoundError
        If this machine does not have the table.
    """
    (entry,) = chosen(names=[name])
    table = made(entry)
    if table is None:
        raise FileNotFoundError(f"the table {name} is not on this machine")
    data, schema = table
    truth = Truth.of(data, schema, entry.target)
    asked = dict(epsilon=CELL.epsilon, neighbors=CELL.neighbors)
    contenders = {
        PEERS: asked | {"mechanism": peers_algorithm(len(truth.mean) + 1)},  # the constant is a feature
        BEFORE: Contender(BEFORE).options(schema, truth.n_rows, CELL),
        NOW: Contender(NOW).options(schema, truth.n_rows, CELL),
    }
    errors = {}
    for contender, options in contenders.items():
        assert options is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpm.ReleaseWarning)
            releases = (dpm.release(data, schema, **options, threads=1, insecure_seed=seed) for seed in range(seeds))
            errors[contender] = float(np.mean([truth.errors(release)["correlations"] for release in releases]))
    return Row(truth.n_rows, len(truth.mean), errors)


def accuracy() -> Iterator[str]:
    """The table of the first screen."""
    yield "| table | rows × features | OpenDP, diffprivlib | public bounds | default |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, label in TABLES.items():
        yield accuracy_row(label, measured(name))


def accuracy_row(label: str, row: Row) -> str:
    """A line of it, its least error bold."""
    least = min(row.errors.values())
    cells = [f"**{error:#.2g}**" if error == least else f"{error:#.2g}" for error in row.errors.values()]
    return f"| {label} | {row.n_rows:,} × {row.n_features} | {' | '.join(cells)} |"


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
"""Parts that are read from other pages."""


def main() -> None:
    """Write every part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--read", action="store_true", help="only what is read from other pages: make no release")
    options = parser.parse_args()
    for name, lines in READ.items():
        write_part(README, name, in_lines(lines()))
    if not options.read:
        table = list(accuracy())
        write_part(README, "accuracy", table)
    print(f"wrote the figures of {README}")


if __name__ == "__main__":
    main()
