"""Proposals a direction takes under the right and under the printed acceptance, on the tables of Amin et al. (2019).

    OMP_NUM_THREADS=1 python -m benchmarks.papers.amin.acceptance_counts

Section 3.2 of the paper reports how many proposals its experiments needed. Here Algorithm 1 runs with its own budgets and
temperatures (half of ε for the eigenvalues, ε_i/4, by Corollary 1) on Wine, Airfoil, Adult and on tables by
Algorithm 3, each rule going the way that its own law leads it. Nobody can wait for 10²⁰ proposals: the expected number of every
direction is N = M |Ω|^{−1/2}/E[target], and E[target], over the uniform law, is the mean of target over density of 4,000 draws
from an envelope of its own (a few per cent of standard error). Counts are geometric; their median is that of one simulated count
a direction. Fixed seeds; about two minutes. Writes a table of docs/evidence/misprinted-bingham.md (its prose stays as it is).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from benchmarks.pages import EVIDENCE, head, write_part
from benchmarks.papers.amin.misprinted_bingham import printed_envelope, printed_law, successive_directions
from benchmarks.papers.reproduce.experiments import tables
from dpmoments.papers.sphere import envelope_parameter, sample_bingham_diagonal

PAGE = EVIDENCE / "misprinted-bingham.md"
EPSILONS = (0.01, 0.1, 0.5, 1.0, 4.0)
FAILURE = 0.05
"""β of Corollary 1."""
DRAWS = 4000
RUNS_BELOW_50_FEATURES = 20


def named() -> Iterator[tuple[str, np.ndarray]]:
    """The data of section 4, as this library has them, and of appendix C.1."""
    for name, form in (("Wine", "wine"), ("Airfoil", "airfoil"), ("Adult", "adult, complete")):
        yield name, tables.table(form)
    for d in (10, 100):
        for n in (1000, 10_000, 50_000):
            yield "Algorithm 3", tables.table(tables.SYNTHETIC, n, d)


def temperatures(eigenvalues: np.ndarray, epsilon: float, n: int, split: str, rng: np.random.Generator) -> list[float]:
    """ε_i/4 of every direction, from noisy eigenvalues as in Corollary 1, or in equal parts."""
    d, half = len(eigenvalues), epsilon / 2.0
    if split == "uniform":
        return [half / d / 4.0] * d
    noisy = np.clip(np.sort(eigenvalues + rng.laplace(0.0, 2.0 / half, d))[::-1], 0.0, n)
    weights = np.sqrt(noisy + 2.0 / half * math.log(2.0 * d / FAILURE))
    return list(half * weights / weights.sum() / 4.0)


def log_mean_proposals(gaps: np.ndarray, rng: np.random.Generator, *, printed: bool) -> float:
    """log of M |Ω|^{−1/2}/E_uniform[target], the expected number of proposals of one direction."""
    d, b = len(gaps), envelope_parameter(gaps)
    c = printed_envelope(gaps)[0] if printed else b
    normals = rng.standard_normal((DRAWS, d)) / np.sqrt(1.0 + 2.0 * gaps / c)
    s = (normals**2 @ gaps) / (normals**2).sum(axis=1)
    log_ratio = 0.5 * d * np.log1p(2.0 * s / c) - s - (d * np.log1p(2.0 * s / b) if printed else 0.0)
    log_target = np.logaddexp.reduce(log_ratio) - math.log(DRAWS) - 0.5 * float(np.log1p(2.0 * gaps / c).sum())
    log_bound = -0.5 * (d - b) + 0.5 * d * math.log(d / b)
    return log_bound - 0.5 * float(np.log1p(2.0 * gaps / b).sum()) - float(log_target)


def counts(rows: np.ndarray, epsilon: float, *, printed: bool) -> tuple[float, float]:
    """Median count and expected count of a direction, over the directions of a few runs."""
    n, d = rows.shape
    gram, rng = rows.T @ rows, np.random.default_rng(11)
    eigenvalues = np.linalg.eigvalsh(gram)[::-1]
    logs: list[float] = []

    def draw(gaps: np.ndarray) -> np.ndarray:
        logs.append(max(log_mean_proposals(gaps, rng, printed=printed), 0.0) if len(gaps) > 1 else 0.0)
        return printed_law(gaps, 1, rng)[0] if printed else sample_bingham_diagonal(-gaps, None, rng)[0]

    for _ in range(RUNS_BELOW_50_FEATURES if d < 50 else 1):
        successive_directions(gram, temperatures(eigenvalues, epsilon, n, "adaptive", rng), draw)
    means = np.exp(logs)
    # Geometric with mean N: ⌈−E/log(1 − 1/N)⌉, E standard exponential; floats, since 10²⁰ is beyond int64.
    simulated = np.ceil(rng.standard_exponential(len(means)) / -np.log1p(-1.0 / np.maximum(means, 1.0 + 1e-12)))
    return float(np.median(simulated)), float(means.mean())


def shown(value: float) -> str:
    """Three digits; a power of ten where it is long."""
    if value < 1e5:
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    exponent = math.floor(math.log10(value))
    return f"{value / 10**exponent:.0f}·10^{exponent}"


def lines() -> Iterator[str]:
    """Median / mean by table, rule and ε."""
    budgets = " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS)
    yield from head(f"table | rule | d | {budgets}", "lll" + "l" * len(EPSILONS))
    for name, rows in named():
        n, d = rows.shape
        for printed, rule in ((False, "right"), (True, "as printed")):
            cells = [" / ".join(map(shown, counts(rows, epsilon, printed=printed))) for epsilon in EPSILONS]
            yield f"| {name}, n = {n:,} | {rule} | {d} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    write_part(PAGE, "counts", lines())
