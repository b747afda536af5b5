"""How many pages of reports state a false finding, and how many real effects above the forecast's resolution they state.

A made-up table of 20,000 people, drawn anew for each release: 15 columns in groups that are independent of each other, so
that 0 is the true correlation, coefficient or difference across groups. A page has every correlation, one regression and
the differences of two columns between regions and sectors. A clear statement is false if nothing is there, or its sign is wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, write_part
from dpmoments.reporting.report import _Asked, _chapters
from dpmoments.schema import Schema

PAGE = EVIDENCE / "derivations" / "resolvability.md"
ROWS, ROWS_OF_TRUTH = 20_000, 1_000_000
BUDGETS = ((1.0, 0.0), (3.0, 0.0), (1.0, 1e-6))
REGRESSION = "score ~ hours + stress + spending + urban + region"
GROUPS = (("region", "rent"), ("sector", "height"))
GROUP_OF = {
    **dict.fromkeys(("score", "hours", "grade"), "school"),
    **dict.fromkeys(("stress", "sleep"), "health"),
    **dict.fromkeys(("income", "owner"), "wealth"),
    **dict.fromkeys(("region", "rent"), "place"),
}
"""Columns that depend on each other; each other column is a group of its own."""
PAIR = re.compile(r"(?P<one>\S+) and (?P<other>\S+): (?P<sign>positive|negative|not \w+)")
SLOPE = re.compile(r"score is (?P<sign>higher|lower) by \S+ (per unit of|for|if) (?P<one>\S+)")
DIFFERENCE = re.compile(r"Mean of (?P<of>\S+): (?P<high>\S+) is higher than (?P<low>\S+) by")


def drawn(rows: int, rng: np.random.Generator) -> pa.Table:
    normal = rng.standard_normal((rows, 8))
    score = normal[:, 0]
    hours = 0.3 * score + normal[:, 1]
    grade = 0.12 * score + normal[:, 2]
    stress = normal[:, 3]
    sleep = 0.05 * stress + normal[:, 4]
    income = rng.lognormal(10.0, 0.7, rows)
    region = rng.choice(4, rows, p=[0.5, 0.3, 0.15, 0.05])
    return pa.table(
        {
            "score": 500.0 + 100.0 * score,
            "hours": 20.0 + 6.0 * hours,
            "grade": 3.0 + 0.6 * grade,
            "stress": 50.0 + 12.0 * stress,
            "sleep": 7.0 + sleep,
            "income": income,
            "owner": rng.random(rows) < 0.2 + 0.3 * (income > 30_000.0),
            "region": pa.array(np.array(["north", "south", "east", "west"])[region]),
            "rent": 900.0 + np.array([0.0, 60.0, 0.0, -120.0])[region] + 200.0 * normal[:, 5],
            "height": 170.0 + 9.0 * normal[:, 6],
            "weight": 75.0 + 13.0 * normal[:, 7],
            "spending": rng.lognormal(6.0, 1.2, rows),
            "visits": rng.poisson(1.5, rows).astype(float),
            "urban": rng.random(rows) < 0.6,
            "sector": pa.array(rng.choice(["farm", "trade", "state"], rows, p=[0.1, 0.6, 0.3])),
        }
    )


def schema() -> Schema:
    """Return public bounds that a curator would give."""
    return dpm.Schema(
        dpm.Numeric("score", 0, 1_000, typical=(300, 700)),
        dpm.Numeric("hours", 0, 60),
        dpm.Numeric("grade", 1, 6),
        dpm.Numeric("stress", 0, 100),
        dpm.Numeric("sleep", 0, 14),
        dpm.Numeric("income", 0, 200_000, typical=(5_000, 60_000)),
        dpm.Boolean("owner"),
        dpm.Categorical("region", ["north", "south", "east", "west"]),
        dpm.Numeric("rent", 0, 3_000, typical=(500, 1_500)),
        dpm.Numeric("height", 120, 220),
        dpm.Numeric("weight", 30, 180),
        dpm.Numeric("spending", 0, 5_000, typical=(0, 2_000)),
        dpm.Numeric("visits", 0, 12),
        dpm.Boolean("urban"),
        dpm.Categorical("sector", ["farm", "trade", "state"]),
    )


@cache
def truth() -> tuple[dict[frozenset[str], float], dict[str, float], dict[str, float]]:
    """Return true correlations, and the means of rent and standard deviations, of a large table."""
    whole = drawn(ROWS_OF_TRUTH, np.random.default_rng(0))
    exact = dpm.release(whole, schema(), epsilon=1e13, delta=1e-9, mechanism="gaussian", repair="none", insecure_seed=0)
    names, known = exact.feature_names, exact.correlation
    pairs = {
        frozenset((one, other)): float(known[i, j]) if of_group(one) == of_group(other) else 0.0
        for i, one in enumerate(names)
        for j, other in enumerate(names)
        if i < j
    }
    means = exact.group_means("region", of=["rent"])
    described = exact.describe()
    return (
        pairs,
        dict(zip(map(str, means.groups), means.mean[0].tolist(), strict=True)),
        dict(zip(names, described.standard_deviation.tolist(), strict=True)),
    )


def of_group(feature: str) -> str:
    """Return the group of a feature's column."""
    column = feature.partition("=")[0]
    return GROUP_OF.get(column, column)


def true_sign(text: str) -> tuple[int, int]:
    """Return the sign that a statement gives, and the true one, 0 if nothing is there."""
    pairs, rents, _ = truth()
    if (pair := PAIR.match(text)) is not None:
        value = pairs[frozenset((pair["one"], pair["other"]))]
        return (1 if pair["sign"] == "positive" else -1), int(np.sign(value))
    if (slope := SLOPE.match(text)) is not None:
        return (1 if slope["sign"] == "higher" else -1), int(slope["one"].rstrip(",") == "hours")
    difference = DIFFERENCE.match(text)
    assert difference is not None, text
    if difference["of"] != "rent":
        return 1, 0
    high, low = rents[difference["high"]], rents[difference["low"]]
    same = {difference["high"], difference["low"]} == {"north", "east"}
    return 1, 0 if same else int(np.sign(high - low))


@dataclass
class Tally:
    """Counts over pages."""

    pages: int = 0
    statements: int = 0
    clear: int = 0
    false: int = 0
    pages_with_a_false_one: int = 0
    real: int = 0
    real_stated: int = 0

    def add(self, statements: list[tuple[str, bool]], visible: set[frozenset[str]]) -> None:
        """Add a page's statements; ``visible`` are the pairs that the forecast says will be seen."""
        wrong, stated = 0, set()
        for text, clear in statements:
            if not clear:
                continue
            said, true = true_sign(text)
            wrong += said != true
            if (pair := PAIR.match(text)) is not None and said == true:
                stated.add(frozenset((pair["one"], pair["other"])))
        self.pages += 1
        self.statements += len(statements)
        self.clear += sum(clear for _, clear in statements)
        self.false += wrong
        self.pages_with_a_false_one += wrong > 0
        self.real += len(visible)
        self.real_stated += len(visible & stated)


def visible_pairs(epsilon: float, delta: float) -> set[frozenset[str]]:
    """Return the pairs whose true correlation is at least the smallest one that the forecast says will be seen."""
    pairs, _, deviations = truth()
    known = {name: deviations[name] for name in schema().feature_names}
    forecast = dpm.forecast(schema(), n_rows=ROWS, epsilon=epsilon, delta=delta, mechanism="auto", typical_sd=known)
    noise, names = forecast.noise, schema().feature_names
    assert noise is not None
    return {
        pair
        for pair, value in pairs.items()
        if abs(value) >= noise.smallest_correlation[tuple(sorted(map(names.index, pair)))[::-1]]
    }


def page(epsilon: float, delta: float, seed: int) -> list[tuple[str, bool]]:
    """Return the statements of one report's page, each with True if it is clear."""
    table = drawn(ROWS, np.random.default_rng([seed, 71]))
    release = dpm.release(table, schema(), epsilon=epsilon, delta=delta, insecure_seed=seed, threads=1)
    [(_, sections)] = _chapters([("", "", release)], _Asked([REGRESSION], GROUPS))
    return [(statement.text, statement.clear) for section in sections for statement in section.statements]


def lines_of(found: dict[tuple[float, float], Tally]) -> Iterator[str]:
    yield "| ε, δ | pages | statements a page | clear | pages with a false one | real and above the forecast | of them stated |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for (epsilon, delta), tally in found.items():
        yield (
            f"| {epsilon:g}, {delta:g} | {tally.pages} | {tally.statements / tally.pages:.0f} | "
            f"{tally.clear / tally.pages:.1f} | {tally.pages_with_a_false_one} | {tally.real / tally.pages:.0f} | "
            f"{tally.real_stated / tally.real:.3f} |"
        )


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=40)
    parser.add_argument("--results", type=Path, default=Path("planted-findings.jsonl"))
    options = parser.parse_args()
    done: dict[tuple[Any, ...], list[tuple[str, bool]]] = {}
    if options.results.exists():
        for line in options.results.read_text(encoding="utf-8").splitlines():
            cell, statements = json.loads(line)
            done[tuple(cell)] = [(text, clear) for text, clear in statements]
    found = {}
    with options.results.open("a", encoding="utf-8") as file:
        for budget in BUDGETS:
            tally, visible = Tally(), visible_pairs(*budget)
            for seed in range(options.releases):
                if (*budget, seed) not in done:
                    done[(*budget, seed)] = page(*budget, seed)
                    file.write(json.dumps([[*budget, seed], done[(*budget, seed)]]) + "\n")
                    file.flush()
                tally.add(done[(*budget, seed)], visible)
            found[budget] = tally
            print(budget, tally, flush=True)
    write_part(PAGE, "planted", lines_of(found))


if __name__ == "__main__":
    main()
