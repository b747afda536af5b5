"""The tables of docs/evidence/audit.md: every mechanism, and every planted fault.

``python -m benchmarks.practice.audit_report`` (`make audit`) writes them; what they mean stands on the page.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import dpmoments
from benchmarks.pages import EVIDENCE, head, write_part
from dpmoments.audit import AuditResult
from dpmoments.audit.procedure import AuditSetting, audit_generator, audit_plan
from dpmoments.noise import insecure_generator
from dpmoments.rows.summary import usable_cores

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from contracts.faulty_mechanisms import FAULTS, Fault

PAGE = EVIDENCE / "audit.md"
SEED = 20_000
CONFIDENCE = 0.999
"""Of all bounds of the page together; every line gets an equal part of what is missing to 1 (Bonferroni)."""


def audit_setting(index: int, setting: AuditSetting) -> AuditResult:
    """One line of the first table; the seed is its place in the table."""
    return setting.run(audit_generator(index, seed=SEED), level=level_of_a_line())


def audit_fault(index: int) -> AuditResult:
    """One line of the second table."""
    return FAULTS[index].audit(insecure_generator(SEED + 1000 + index), level=level_of_a_line())


@cache
def level_of_a_line() -> float:
    """The confidence of one line, for which all lines hold together with CONFIDENCE."""
    return 1.0 - (1.0 - CONFIDENCE) / (len(audit_plan()[0]) + len(FAULTS))


def heading(*words: str) -> tuple[str, str]:
    names = (*words, "exact ε", "measured ε", "worst pair, and the event on it", "runs a table", "processor seconds")
    return head(" | ".join(names), "l" * len(names))


def epsilon_words(epsilon: float | None) -> str:
    """An ε, or that there is none."""
    if epsilon is None:
        return "–"
    return "∞" if math.isinf(epsilon) else f"{epsilon:.3f}"


def line(about: Sequence[str], result: AuditResult, found: Sequence[str]) -> str:
    """Its neighbors, budget and stated ε stand between what it is about and what was found."""
    budget = f"{result.cost}" + (f", at δ = {result.delta:g}" if str(result.cost.kind) == "zcdp" else "")
    cells = [
        *about,
        f"`{result.neighbors}`",
        budget,
        f"{result.stated_epsilon:.3f}",
        *found,
        epsilon_words(result.exact),
        epsilon_words(None if result.measured is None else result.measured.epsilon),
        f"{result.pair}: {result.event}" if result.lower_bound else "–",
        f"{result.draws:,}",
        f"{result.seconds:.1f}",
    ]
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def mechanism_line(result: AuditResult) -> str:
    releases = "count, mean, second moment" if result.mean else "second moment"
    at_least = f"{'**EXCEEDED** ' if result.exceeded else ''}{result.lower_bound:.3f}"
    return line((f"`{result.mechanism}`", releases), result, (at_least,))


def fault_line(fault: Fault, result: AuditResult) -> str:
    found = f"by {fault.seen_by}" if result.exceeded else "**MISSED**"
    return line((fault.words,), result, (epsilon_words(fault.actual), found, f"{result.lower_bound:.3f}"))


def summary(results: Sequence[AuditResult], faults: Sequence[AuditResult], seconds: float) -> str:
    exceeded, found = (sum(result.exceeded for result in of) for of in (results, faults))
    processor_seconds = sum(result.seconds for result in (*results, *faults))
    return (
        f"Mechanisms that were shown to spend more than they state: {exceeded} of {len(results)} lines. Planted faults found: "
        f"{found} of {len(faults)}. The whole run, of version {dpmoments.__version__}, took {processor_seconds:.0f} seconds of "
        f"processor time, {seconds:.0f} seconds on {usable_cores()} cores that other work may have shared."
    )


def main() -> int:
    """Write the page's parts; 1 if a mechanism was caught or a fault was missed."""
    started, results, found = time.perf_counter(), list[AuditResult](), list[AuditResult]()
    todo = audit_plan()[0]
    mechanisms = [*heading("mechanism", "releases", "neighbors", "budget", "stated ε", "ε at least")]
    faults = [*heading("fault", "neighbors", "budget", "stated ε", "actual ε", "found", "ε at least")]
    with ProcessPoolExecutor(usable_cores()) as pool:
        audits, planted = pool.map(audit_setting, range(len(todo)), todo), pool.map(audit_fault, range(len(FAULTS)))
        for number, result in enumerate(audits, start=1):
            results.append(result)
            mechanisms.append(mechanism_line(result))
            print(f"{number}/{len(todo)} {mechanisms[-1]}", flush=True)
        for fault, result in zip(FAULTS, planted, strict=True):
            found.append(result)
            faults.append(fault_line(fault, result))
            print(faults[-1], flush=True)
    write_part(PAGE, "summary", [summary(results, found, time.perf_counter() - started)])
    write_part(PAGE, "mechanisms", mechanisms)
    write_part(PAGE, "planted faults", faults)
    return int(any(result.exceeded for result in results) or not all(result.exceeded for result in found))


if __name__ == "__main__":
    raise SystemExit(main())
