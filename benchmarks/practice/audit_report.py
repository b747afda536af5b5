"""The page of audits in the docs: every mechanism, and every planted fault.

python -m benchmarks.practice.audit_report
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import dpmoments
from benchmarks.pages import EVIDENCE, head, write_page
from dpmoments.audit import AuditResult
from dpmoments.audit.procedure import AuditSetting, audit_generator, audit_plan
from dpmoments.noise import insecure_generator
from dpmoments.rows.summary import usable_cores

if TYPE_CHECKING:
    from contracts.faulty_mechanisms import Fault

ROOT = Path(__file__).parents[2]
OUTPUT = EVIDENCE / "audit.md"
SEED = 20_000

sys.path.append(str(ROOT / "tests"))

CONFIDENCE = 0.999
"""Of all bounds of the page together; every line gets an equal part of what is missing to 1 (Bonferroni)."""

HEAD = """\
# Audit

Written by `make audit` from one version of the code, with fixed seeds; also `dpmoments audit`.

Each mechanism is run thousands of times on pairs of tables on which it is hardest pressed: canaries where no other row
points, leading eigenvalues that are equal or swap, an empty table against one row, rows that must be clipped or dropped.
Half of the pilot runs on a pair train scores (a linear discriminant, an additive log-likelihood ratio) beside a few dozen
fixed statistics, the other half chooses the events {statistic ≥ threshold}. The most promising pair then gets fresh runs,
which alone count: Clopper–Pearson bounds on the probabilities p and q of an event on the two tables give ε ≥ log((p −
δ)/q). Where the promise is pure, some pairs are k rows apart; then k·ε ≥ log(p/q), which shows more of a small ε.

- *ε at least* is that bound. It assumes nothing of the mechanism. A ρ-zCDP promise is compared at δ = 0.01, where it
  implies the stated ε.
- *Exact ε* is the loss on the worst pair of neighbors by the laws that the plan states, where there is a closed form:
  additive noise, and `iterative-eigenvectors` in the plane, where a run draws one direction, with a density whose constant
  is a Bessel function (under zCDP: the ε that the least ρ implies).
- *Measured ε* is the same with a parameter of the law measured from what fresh runs drew, all else as stated. For additive
  noise it is the scale: the loss −log density of the noise itself is a gamma variable of known shape, so that its sum over all
  runs bounds the scale from above, to about 3 % ([proof](derivations/measured-noise.md)). For a direction it is the
  temperature: directions are an exponential family in it, and Chernoff's bound on their total score is a confidence bound. Noise
  of half the scale shows as twice ε, which events at this effort often miss, and a direction that is drawn too hot loses most
  where it is all but never seen. As a bound on ε it holds if the draws are of the stated family; above the stated ε, it refutes
  the stated law in any case.

Everything that is tried on fresh runs (events, orders of a pair, both probabilities, the temperature) and all lines of both
tables share 0.1 % equally: by Bonferroni's inequality all bounds of this page hold together with 99.9 % confidence.

What the tables can and cannot say: a bound above the stated ε refutes a mechanism; one below proves nothing, and how far
below shows how much of its ε these attacks could not see. Outputs are compared to the
last bit, with all that a run returns: moments, diagnostics, errors. Integer noise comes from the seeded stand-in for
the exact samplers, which are slower and have tests of their own (`dpmoments audit --exact-noise` uses them);
everything else is the code that releases run, the privacy filter among it. How long a run takes is not looked at ([known
limits](../threat-model.md)).

The first run caught `iterative-eigenvectors` under `replace_one`: when noisy eigenvalues were clipped to one value, the last
bits of the result followed the eigenbasis of the exact table. What floating-point samplers draw is released without its
last bits.
"""


def audit_setting(index: int, setting: AuditSetting) -> AuditResult:
    """One line of the first table; the seed is its place in the table."""
    return setting.run(audit_generator(index, seed=SEED), level=level_of_a_line())


def audit_fault(index: int) -> AuditResult:
    """One line of the second table."""
    from contracts.faulty_mechanisms import FAULTS

    return FAULTS[index].audit(insecure_generator(SEED + 1000 + index), level=level_of_a_line())


@cache
def level_of_a_line() -> float:
    """The confidence of one line, for which all lines hold together with CONFIDENCE."""
    from contracts.faulty_mechanisms import FAULTS

    return 1.0 - (1.0 - CONFIDENCE) / (len(audit_plan()[0]) + len(FAULTS))


def line(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def heading(*words: str) -> tuple[str, str]:
    names = (*words, "exact ε", "measured ε", "worst pair, and the event on it", "runs a table", "processor seconds")
    return head(" | ".join(names), "l" * len(names))


def budget_words(result: AuditResult) -> str:
    return f"{result.cost}" + (f", at δ = {result.delta:g}" if str(result.cost.kind) == "zcdp" else "")


def epsilon_words(epsilon: float | None) -> str:
    """An ε, or that there is none."""
    if epsilon is None:
        return "–"
    return "∞" if math.isinf(epsilon) else f"{epsilon:.3f}"


def measured_cells(result: AuditResult) -> list[str]:
    """The last cells of a line."""
    return [
        epsilon_words(result.exact),
        epsilon_words(None if result.measured is None else result.measured.epsilon),
        f"{result.pair}: {result.event}" if result.lower_bound else "–",
        f"{result.draws:,}",
        f"{result.seconds:.1f}",
    ]


def mechanism_line(result: AuditResult) -> str:
    releases = "count, mean, second moment" if result.mean else "second moment"
    at_least = f"{'**EXCEEDED** ' if result.exceeded else ''}{result.lower_bound:.3f}"
    about = (f"`{result.mechanism}`", releases, f"`{result.neighbors}`", budget_words(result))
    return line(*about, f"{result.stated_epsilon:.3f}", at_least, *measured_cells(result))


def fault_line(fault: Fault, result: AuditResult) -> str:
    found = f"by {fault.seen_by}" if result.exceeded else "**MISSED**"
    about = (fault.words, f"`{result.neighbors}`", budget_words(result), f"{result.stated_epsilon:.3f}")
    return line(*about, epsilon_words(fault.actual), found, f"{result.lower_bound:.3f}", *measured_cells(result))


def page(results: Sequence[AuditResult], faults: Sequence[AuditResult], seconds: float) -> str:
    from contracts.faulty_mechanisms import FAULTS

    exceeded = sum(result.exceeded for result in results)
    found = sum(result.exceeded for result in faults)
    processor_seconds = sum(result.seconds for result in (*results, *faults))
    lines = [
        HEAD,
        f"Mechanisms that were shown to spend more than they state: {exceeded} of {len(results)} lines. Planted faults found: "
        f"{found} of {len(faults)}. The whole run, of version {dpmoments.__version__}, took {processor_seconds:.0f} seconds of "
        f"processor time, {seconds:.0f} seconds on {usable_cores()} cores that other work may have shared.",
        "",
        "## Mechanisms",
        "",
        *heading("mechanism", "releases", "neighbors", "budget", "stated ε", "ε at least"),
        *map(mechanism_line, results),
        "",
        "## Planted faults",
        "",
        "Mechanisms made to spend more than they state (`tests/contracts/faulty_mechanisms.py`). *Actual ε* is what they",
        "spend on the worst pair, in closed form or as a bound from above.",
        "",
        *heading("fault", "neighbors", "budget", "stated ε", "actual ε", "found", "ε at least"),
        *map(fault_line, FAULTS, faults),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page; 1 if a mechanism was caught or a fault was missed."""
    from contracts.faulty_mechanisms import FAULTS

    started = time.perf_counter()
    todo = audit_plan()[0]
    with ProcessPoolExecutor(usable_cores()) as pool:
        audits, faults = pool.map(audit_setting, range(len(todo)), todo), pool.map(audit_fault, range(len(FAULTS)))
        results = []
        for number, result in enumerate(audits, start=1):
            results.append(result)
            print(f"{number}/{len(todo)} {mechanism_line(result)}", flush=True)
        found = []
        for fault, result in zip(FAULTS, faults, strict=True):
            found.append(result)
            print(fault_line(fault, result), flush=True)
    write_page(OUTPUT, page(results, found, time.perf_counter() - started))
    print(f"wrote {OUTPUT}")
    return int(any(result.exceeded for result in results) or not all(result.exceeded for result in found))


if __name__ == "__main__":
    raise SystemExit(main())
