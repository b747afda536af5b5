"""The page of audits in the docs: every mechanism, and every planted fault.

python -m benchmarks.practice.audit_report
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from dpmoments.audit import AuditResult
from dpmoments.audit.settings import AuditSetting, audit_generator, audit_plan
from dpmoments.noise import insecure_generator
from dpmoments.rows.blas import usable_cores

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "docs" / "audit.md"
SEED = 20_000

sys.path.append(str(ROOT / "tests"))

HEAD = """\
# Audit

Written by `make audit`. `dpmoments audit` runs the same from the command line.

Each mechanism is run thousands of times on pairs of neighbouring tables on which it is hardest pressed: canaries where no other
row points, leading eigenvalues that are equal or swap, an empty table against one row, rows that must be clipped or
dropped. Half of the pilot runs on a pair train scores (a linear discriminant, an additive log-likelihood ratio) beside a few
dozen fixed statistics, the other half chooses the events {statistic ≥ threshold}. The two most promising pairs then get fresh
runs, which alone count: Clopper–Pearson bounds on the probabilities p and q of an event on the two tables give
ε ≥ log((p − δ)/q). The confidence, 99.9 % for each line, is shared equally by all events tried on the fresh runs.

*ε at least* is that bound. *Exact ε* is the loss on the worst of the pairs by the law of the noise that the plan states, where
there is a closed form. A ρ-zCDP promise is compared at δ = 0.01, where it implies the stated ε. Larger δ than one would release
with make the bounds sharper: an event must be seen to be counted.

What the table can and cannot say: a bound above the stated ε refutes a mechanism; one below proves nothing, and how far below
shows how much of its ε these attacks could not see. The proofs are in `derivations/`. Outputs are compared to the last bit, with
all that a run returns: moments, diagnostics, errors. Integer noise comes from the seeded
stand-in for OpenDP's exact samplers, which are ten times slower and have tests of their own (`dpmoments audit --exact-noise`
uses them); everything else is the code that releases run.

The first run caught `iterative-eigenvectors` under `replace_one`, ε at least 5 where 1 was stated: when noisy eigenvalues
were clipped to one and the same value, the last bits of the result followed the eigenbasis of the exact table. Since then
what floating-point samplers draw is released without its last bits.
"""


def audit_setting(index: int, setting: AuditSetting) -> AuditResult:
    """One line of the first table; the seed is its place in the table."""
    return setting.run(audit_generator(index, seed=SEED))


def audit_fault(index: int) -> AuditResult:
    """One line of the second table."""
    from faulty_mechanisms import FAULTS

    return FAULTS[index].audit(insecure_generator(SEED + 1000 + index))


def line(cells: Iterable[str]) -> str:
    """One row of a table in Markdown."""
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def budget_words(result: AuditResult) -> str:
    """The budget, and for zCDP the δ at which it is compared."""
    return f"{result.cost}" + (f", at δ = {result.delta:g}" if str(result.cost.kind) == "zcdp" else "")


def mechanism_line(result: AuditResult) -> str:
    """A row of the first table."""
    return line(
        (
            f"`{result.mechanism}`",
            "count, mean, second moment" if result.mean else "second moment",
            f"`{result.neighbors}`",
            budget_words(result),
            f"{result.stated_epsilon:.3f}",
            f"{'**EXCEEDED** ' if result.exceeded else ''}{result.lower_bound:.3f}",
            "–" if result.exact is None else f"{result.exact:.3f}",
            f"{result.pair}: {result.event}" if result.lower_bound else "–",
            f"{result.draws:,}",
            f"{result.seconds:.1f}",
        )
    )


def fault_line(words: str, result: AuditResult, actual: float | None) -> str:
    """A row of the second table."""
    shown = "–" if actual is None else "∞" if math.isinf(actual) else f"{actual:.3f}"
    return line(
        (
            words,
            f"`{result.neighbors}`",
            budget_words(result),
            f"{result.stated_epsilon:.3f}",
            f"{result.lower_bound:.3f}" + ("" if result.exceeded else " **MISSED**"),
            shown,
            f"{result.pair}: {result.event}",
            f"{result.draws:,}",
            f"{result.seconds:.1f}",
        )
    )


def page(results: Sequence[AuditResult], faults: Sequence[AuditResult], seconds: float) -> str:
    """The whole page."""
    from faulty_mechanisms import FAULTS

    exceeded = sum(result.exceeded for result in results)
    found = sum(result.exceeded for result in faults)
    lines = [
        HEAD,
        f"Mechanisms that were shown to spend more than they state: {exceeded} of {len(results)} lines. Planted faults found: "
        f"{found} of {len(faults)}. The whole run took {seconds:.0f} seconds on {usable_cores()} cores.",
        "",
        "## Mechanisms",
        "",
        line(
            (
                "mechanism",
                "releases",
                "neighbours",
                "budget",
                "stated ε",
                "ε at least",
                "exact ε",
                "worst pair, and the event on it",
                "runs a table",
                "processor seconds",
            )
        ),
        line(["---"] * 10),
        *map(mechanism_line, results),
        "",
        "## Planted faults",
        "",
        "Mechanisms made to spend more than they state (`tests/faulty_mechanisms.py`). *Actual ε* is what they spend on the",
        "worst pair, in closed form.",
        "",
        line(
            (
                "fault",
                "neighbours",
                "budget",
                "stated ε",
                "ε at least",
                "actual ε",
                "worst pair, and the event on it",
                "runs a table",
                "processor seconds",
            )
        ),
        line(["---"] * 9),
        *(fault_line(fault.words, result, fault.actual) for fault, result in zip(FAULTS, faults, strict=True)),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page; 1 if a mechanism was caught or a fault was missed."""
    from faulty_mechanisms import FAULTS

    started = time.perf_counter()
    todo = audit_plan().settings
    with ProcessPoolExecutor(usable_cores()) as pool:
        faults = pool.map(audit_fault, range(len(FAULTS)))
        results = []
        for number, result in enumerate(pool.map(audit_setting, range(len(todo)), todo), start=1):
            results.append(result)
            print(f"{number}/{len(todo)} {mechanism_line(result)}", flush=True)
        found = list(faults)
    OUTPUT.write_text(page(results, found, time.perf_counter() - started), encoding="utf-8")
    print(f"wrote {OUTPUT}")
    return int(any(result.exceeded for result in results) or not all(result.exceeded for result in found))


if __name__ == "__main__":
    raise SystemExit(main())
