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
import pandas as pd

import dpmoments as dpm
from benchmarks.pages import DOCS, EVIDENCE, part_of, tables_in, write_part
from benchmarks.peers.programs import peers_algorithm
from benchmarks.practice.comparison.contenders import BEFORE, NOW, Cell, Contender
from benchmarks.practice.comparison.errors import Truth
from benchmarks.practice.default_errors import file_of, gains, geometric_mean
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


def judged() -> Iterator[str]:
    """What the default gained on tables that no constant was chosen on, over the default before it."""
    before, now = (pd.read_csv(file_of(label)) for label in ("before", "now"))
    found = {error: gains(before, now[now["half"] == "judge"], error) for error in ("correlations", "means", "sds")}
    said = {error: geometric_mean(rows["gain"]) for error, rows in found.items()}
    numbers = found["correlations"][found["correlations"]["kind"] == "numbers"]["gain"]
    low, high = numbers.min(), numbers.max()
    yield (
        "We chose the constants of the default on one half of our tables; the other half undid one change, of how means are "
        f"joined. On the {found['means']['table'].nunique()} real tables of the other half (ε = 1 and 3, pure and with "
        f"δ = 10⁻⁶), errors of correlations are {said['correlations']:.2f} times smaller than by the default before it "
        f"({low:.2f} to {high:.2f} for "
        f"tables of numbers), of means in SDs {said['means']:.2f} times, of SDs {said['sds']:.2f} times; means and SDs of "
        "small clean tables with tight bounds are noisier "
        "([every table, budget and seed](docs/evidence/tables/default-errors-now.csv))."
    )


def without_error(cell: str) -> str:
    """A mean without its standard error."""
    return cell.partition(" ±")[0]


def regressions() -> Iterator[str]:
    """Against regressions that spend everything on one fit, from docs/evidence/regression-coverage.md."""
    rows = {row["peer"]: row for row in tables_in(part_of(EVIDENCE / "regression-coverage.md", "summary"))}
    better = {peer: f"{row['it is better by more than 10 %']} of {row['cells']}" for peer, row in rows.items()}
    yield (
        "**If you need one regression only**, a dedicated mechanism can spend the whole budget on it. Its error "
        f"was over 10 % below that of a release in {better['AdaSSP']} settings (table, target, ε, δ) for AdaSSP, in "
        f"{better['output perturbation, tuned']} for tuned output perturbation, in {better['gradient descent']} for noisy "
        f"gradient descent, and in {better['gradient descent, tuned']} for gradient descent that was tuned on the private "
        "table at no cost. Each further regression costs "
        "them another budget "
        "([comparison](docs/evidence/regression-coverage.md#one-release-or-all-the-budget-on-one-regression))."
    )


def misprint() -> Iterator[str]:
    draws = [row for row in tables_in(part_of(EVIDENCE / "misprinted-bingham.md", "peers")) if "sampler" in row]
    said = {row["sampler"].partition(" ")[0]: row for row in draws}
    mean = {name: without_error(row["mean of u_1²"]) for name, row in said.items()}
    yield (
        f"{said['opendp']['sampler'].replace('opendp', 'OpenDP')} and {said['diffprivlib']['sampler']} draw principal "
        "directions by the acceptance step printed in Amin et al. (2019), in which a sign is misprinted. In an example at ε "
        f"= 1, the mean square of their directions along the leading one is {mean['opendp']} and {mean['diffprivlib']}; for "
        f"the density that is proved private it is {mean['dpmoments']}. Their releases can spend more than the ε that they "
        "state ([by how much, and the right sampler](docs/evidence/misprinted-bingham.md)). *OpenDP, diffprivlib* in the "
        "table above is the algorithm of `make_private_pca` and `covariance_eig` with the sampler corrected, at the "
        "stated ε; results and run times of the packages themselves are in "
        "[peers](docs/evidence/misprinted-bingham.md#public-packages-measured)."
    )


def speed() -> Iterator[str]:
    """Ratios to a plain product, from docs/evidence/scale.md."""
    released = list(tables_in(part_of(EVIDENCE / "scale.md", "releases")))
    columns, whole = (in_a_row([median(row[column]) for row in released]) for column in ("d", "release"))
    part = part_of(EVIDENCE / "scale.md", "kernel")
    (stamp, *_) = part.strip().splitlines()
    rows = list(tables_in(part))
    sizes, inside, clipped = (
        in_a_row([median(row[column]) for row in rows]) for column in ("d", "inside the ball", "all clipped")
    )
    yield (
        f"With `dpmoments[fast]`, `dpm.release` of a NumPy array with {columns} columns takes {whole} times as long as NumPy's "
        f"`X.T @ X` just before it. The exact, clipped pass by itself, over rows that are encoded already, takes {inside} times "
        f"as long with {sizes} features, and {clipped} times if all rows have to be clipped (medians; {stamp.rstrip('.')}). "
        "Files, Dask, Spark and memory: [scale](docs/evidence/scale.md)."
    )


def median(cell: str) -> str:
    return cell.rpartition(", ")[2]


def in_lines(paragraphs: Iterable[str]) -> Iterator[str]:
    """As wide as pages are here."""
    for paragraph in paragraphs:
        yield from textwrap.wrap(paragraph, 150, break_long_words=False, break_on_hyphens=False)


def in_a_row(words: list[str]) -> str:
    """With commas, and an "and" before the last."""
    return f"{', '.join(words[:-1])} and {words[-1]}"


READ = {"judged": judged, "regressions": regressions, "misprint": misprint, "speed": speed}
"""Parts that are read from other pages."""


def main() -> None:
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
