"""What the acceptance printed in Amin et al. (2019), Algorithm 2, samples from, and what that costs in privacy.

    OMP_NUM_THREADS=1 python -m benchmarks.papers.amin.misprinted_bingham

Three kinds of evidence: exact integrals against draws on one spectrum, exact log-ratios between neighbouring tables, and
proposals a draw. Fixed seeds; about ten seconds. Writes the tables of docs/evidence/misprinted-bingham.md (its prose stays as it
is).

The printed rule draws from a density ∝ e^{−s}(1 + 2s/b)^{−d}. Its integrals are exact too: (1 + 2s/b)^{−d} is the mean of
e^{−2sy/b} over y of the Gamma(d) law, so the density is a mixture of Bingham densities with gaps λ(1 + 2y/b), whose integrals
are those of :func:`bingham_integrals`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, logsumexp, roots_genlaguerre

from benchmarks.pages import EVIDENCE, head, write_part
from dpmoments.papers.sphere import envelope_parameter, sample_bingham_diagonal

PAGE = EVIDENCE / "misprinted-bingham.md"
SPECTRUM = np.array([40.0, 20.0, 10.0, 5.0, 0.0])
"""Eigenvalues of the Gram matrix of the example; at ε = 1 the paper's temperature is t = 1/4."""
DRAWS = 200_000
EPSILONS = (0.1, 1.0, 4.0)
DIMENSIONS = (2, 3, 5, 10, 20, 50)
FAR = 1e9
"""Stands for m → ∞."""


# --- exact integrals ----------------------------------------------------------------------------------------------


def bingham_integrals(gaps: np.ndarray) -> tuple[float, np.ndarray]:
    """log E[e^{−s}] over the uniform law, s = Σ gaps_i u_i², and E[u_i²] under the density ∝ e^{−s}.

    The mean is Γ(d/2) times the inverse Laplace transform of Π (z + λ_i)^{−1/2} at 1; trapezoid rule on the parabola
    z = c(1 + iv)² through the saddle point c = b/2.
    """
    d, saddle = len(gaps), envelope_parameter(gaps) / 2.0
    reach = math.sqrt(40.0 / saddle)
    root = 1.0 + 1j * np.arange(-reach, reach, 0.05 / math.sqrt(d))
    z = saddle * root**2
    step = 0.05 / math.sqrt(d)
    factors = (z[:, None] + gaps) / (saddle + gaps)  # near 1 at the saddle point: nothing overflows
    terms = np.exp(z - saddle - 0.5 * np.log(factors).sum(axis=1)) * 2.0 * saddle * root
    total = float(terms.real.sum())
    moments = (terms[:, None] / (2.0 * (z[:, None] + gaps))).real.sum(axis=0) / total
    log_value = float(gammaln(0.5 * d)) + saddle - 0.5 * float(np.log(saddle + gaps).sum())
    return log_value + math.log(total * step / (2.0 * math.pi)), moments


def printed_integrals(gaps: np.ndarray) -> tuple[float, np.ndarray]:
    """log E[e^{−s}(1 + 2s/b)^{−d}] over the uniform law, and E[u_i²] under that density."""
    d, b = len(gaps), envelope_parameter(gaps)
    nodes, weights = roots_genlaguerre(64, d - 1.0)
    nodes, weights = nodes[weights > 0.0], weights[weights > 0.0]
    parts = [bingham_integrals(gaps * (1.0 + 2.0 * y / b)) for y in nodes]
    logs = np.log(weights) - float(gammaln(d)) + np.array([log_value for log_value, _ in parts])
    total = float(logsumexp(logs))
    return total, np.exp(logs - total) @ np.array([moments for _, moments in parts])


def mean_proposals(gaps: np.ndarray, *, printed: bool) -> float:
    """The exact mean number of proposals a draw, M(b)·|Ω|^{−1/2} / E_uniform[target]."""
    d, b = len(gaps), envelope_parameter(gaps)
    log_bound = -0.5 * (d - b) + 0.5 * d * math.log(d / b)
    log_target = (printed_integrals if printed else bingham_integrals)(gaps)[0]
    return math.exp(log_bound - 0.5 * float(np.log1p(2.0 * gaps / b).sum()) - log_target)


# --- draws --------------------------------------------------------------------------------------------------------


def by_rejection(
    size: int,
    omega: np.ndarray,
    log_acceptance: Callable[[np.ndarray], np.ndarray],
    batch: Callable[[int], int],
    rng: np.random.Generator,
) -> tuple[np.ndarray, int]:
    """Angular central Gaussian proposals, accepted by their squared coordinates, and how many it took."""
    kept: list[np.ndarray] = []
    n_kept = n_proposals = 0
    while n_kept < size:
        u = rng.standard_normal((batch(size - n_kept), len(omega))) / np.sqrt(omega)
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        accepted = np.flatnonzero(rng.standard_exponential(len(u)) > -log_acceptance(u * u))[: size - n_kept]
        kept.append(u[accepted])
        n_kept += len(accepted)
        n_proposals += int(accepted[-1]) + 1 if n_kept == size else len(u)
    return np.concatenate(kept), n_proposals


def printed_sampler(gaps: np.ndarray, size: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Algorithm 2 to the letter but for the equation of b: accept with probability e^{−s} / (M (uᵀΩu)^{d/2})."""
    d, b = len(gaps), envelope_parameter(gaps)
    omega = 1.0 + 2.0 * gaps / b
    log_bound = -0.5 * (d - b) + 0.5 * d * math.log(d / b)

    def log_acceptance(squares: np.ndarray) -> np.ndarray:
        return np.asarray(-squares @ gaps - log_bound - 0.5 * d * np.log(squares @ omega))

    return by_rejection(size, omega, log_acceptance, lambda _: 1 << 16, rng)


def printed_envelope(gaps: np.ndarray) -> tuple[float, float]:
    """c of an angular central Gaussian I + 2Λ/c that fits the law of the printed rule, and the log of its bound.

    The logarithm of the ratio of e^{−s}(1 + 2s/b)^{−d} to it, L(s) = (d/2)log(1 + 2s/c) − s − d·log(1 + 2s/b), has
    derivative zero where x = 2s solves x² + (b + c + d)x + cb + 2cd − bd = 0: at most one such x is positive, and L is largest
    there (at s = 0 where none is). The c that makes proposals fewest is found numerically; any c gives the same law.
    """
    d, b = len(gaps), envelope_parameter(gaps)

    def peak(c: float) -> float:
        half = 0.5 * (b + c + d)
        constant = c * b + 2.0 * c * d - b * d
        s = 0.5 * max(0.0, -constant / (half + math.sqrt(max(half * half - constant, 0.0))))
        return 0.5 * d * math.log1p(2.0 * s / c) - s - d * math.log1p(2.0 * s / b)

    def log_proposals(log_c: float) -> float:
        return peak(math.exp(log_c)) - 0.5 * float(np.log1p(2.0 * gaps / math.exp(log_c)).sum())

    most = math.log(d * b / (b + 2.0 * d))  # beyond it the maximum stays at s = 0 and the envelope only widens
    c = math.exp(minimize_scalar(log_proposals, bounds=(most - 5.0, most), method="bounded").x)
    return c, peak(c)


def printed_law(gaps: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draws from e^{−s}(1 + 2s/b)^{−d}, the law of the printed rule, at a few proposals each."""
    d, b = len(gaps), envelope_parameter(gaps)
    c, log_bound = printed_envelope(gaps)

    def log_acceptance(squares: np.ndarray) -> np.ndarray:
        s = squares @ gaps
        return np.asarray(0.5 * d * np.log1p(2.0 * s / c) - s - d * np.log1p(2.0 * s / b) - log_bound)

    return by_rejection(size, 1.0 + 2.0 * gaps / c, log_acceptance, lambda missing: 4 * missing + 28, rng)[0]


def successive_directions(
    gram: np.ndarray, temperatures: Sequence[float], draw: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Algorithm 1's directions, shape (d, k): each by ``draw`` from the gaps t(λ_max − λ_i) that those before it leave."""
    basis, directions = np.eye(len(gram)), np.empty((len(gram), len(temperatures)))
    for step, temperature in enumerate(temperatures):
        values, vectors = np.linalg.eigh(basis.T @ gram @ basis)
        basis = basis @ vectors
        u = draw(temperature * (values[-1] - values))
        directions[:, step] = basis @ u
        # The reflection that takes u to an axis; its other columns span the complement of u.
        axis = int(np.argmax(np.abs(u)))
        normal = u.copy()
        normal[axis] += np.copysign(1.0, u[axis])
        reflected = basis - np.outer(basis @ normal, normal) * (2.0 / (normal @ normal))
        basis = np.delete(reflected, axis, axis=1)
    return directions


def moment_table() -> list[str]:
    """E[u_i²] on the example: exact integrals of both laws, and draws of both samplers."""
    gaps = (SPECTRUM.max() - SPECTRUM) / 4.0
    right, right_proposals = sample_bingham_diagonal(-gaps, DRAWS, np.random.default_rng(1))
    printed, printed_proposals = printed_sampler(gaps, DRAWS, np.random.default_rng(2))

    same_law = printed_law(gaps, DRAWS, np.random.default_rng(3))

    def exact_cells(moments: np.ndarray) -> str:
        return " | ".join(f"{moment:.4f}" for moment in moments)

    def drawn_cells(draws: np.ndarray) -> str:
        squares = draws**2
        errors = squares.std(axis=0) / math.sqrt(len(draws))
        return " | ".join(f"{m:.4f} ± {e:.4f}" for m, e in zip(squares.mean(axis=0), errors, strict=True))

    axes = range(1, len(gaps) + 1)
    return [
        *head(f"| {' | '.join(f'E[u_{axis}²]' for axis in axes)} | proposals a draw", "l" + "l" * (len(gaps) + 1)),
        f"| e^{{−s}}, exact | {exact_cells(bingham_integrals(gaps)[1])} | {mean_proposals(gaps, printed=False):.2f} |",
        f"| acceptance with power +d/2, {DRAWS:,} draws | {drawn_cells(right)} | {right_proposals / DRAWS:.2f} |",
        "| e^{−s}(1 + 2s/b)^{−d}, exact | "
        f"{exact_cells(printed_integrals(gaps)[1])} | {mean_proposals(gaps, printed=True):.1f} |",
        f"| acceptance as printed, {DRAWS:,} draws | {drawn_cells(printed)} | {printed_proposals / DRAWS:.1f} |",
        f"| the same law by an envelope of its own, {DRAWS:,} draws | {drawn_cells(same_law)} | |",
    ]


# --- neighbours ---------------------------------------------------------------------------------------------------


def swapped_loss(epsilon: float, d: int, m: float) -> float:
    """Log-ratio at the first axis between diag(m, m − 1, 0, …) and diag(m − 1, m, 0, …): t + d·log(1 + 2t/b), t = ε/4.

    The two have the same spectrum, so that the normalising integrals cancel whatever they are.
    """
    t = epsilon / 4.0
    b = envelope_parameter(t * np.array([0.0, 1.0, *[m] * (d - 2)]))
    return t + d * math.log1p(2.0 * t / b)


def tied_loss(epsilon: float, d: int, m: float, *, printed: bool) -> float:
    """Log-ratio at the first axis between diag(m, m, 0, …) and diag(m − 1, m + 1, 0, …), t = ε/4, integrals included."""
    t = epsilon / 4.0
    first = t * np.array([0.0, 0.0, *[m] * (d - 2)])
    second = t * np.array([2.0, 0.0, *[m + 1.0] * (d - 2)])
    if not printed:
        return 2.0 * t + bingham_integrals(second)[0] - bingham_integrals(first)[0]
    penalty = d * math.log1p(2.0 * second[0] / envelope_parameter(second))
    return 2.0 * t + penalty + printed_integrals(second)[0] - printed_integrals(first)[0]


def loss_table() -> list[str]:
    rows = [*head("d | ε | swapped, m = 50 | swapped, m → ∞ | tied, m = 50 | tied, right law", "llllll")]
    for d in DIMENSIONS:
        for epsilon in EPSILONS:
            losses = [
                swapped_loss(epsilon, d, 50.0),
                swapped_loss(epsilon, d, FAR),
                tied_loss(epsilon, d, 50.0, printed=True),
                tied_loss(epsilon, d, 50.0, printed=False),
            ]
            ratios = [loss / epsilon for loss in losses]
            rows.append(
                f"| {d} | {epsilon:g} | " + " | ".join(f"**{r:.2f}**" if r > 1 else f"{r:.2f}" for r in ratios) + " |"
            )
    return rows


def proposal_table() -> list[str]:
    """Exact proposals a draw as the budget grows, eigenvalues m = 50 and 49 before zeros."""
    rows = [*head("d | ε | acceptance with power +d/2 | acceptance as printed", "llll")]
    for d in (5, 10, 20):
        for epsilon in EPSILONS:
            gaps = 0.25 * epsilon * np.array([0.0, 1.0, *[50.0] * (d - 2)])
            right, printed = (mean_proposals(gaps, printed=which) for which in (False, True))
            rows.append(f"| {d} | {epsilon:g} | {right:.2f} | {printed:,.4g} |")
    return rows


if __name__ == "__main__":
    tables = [
        "## The law of a draw",
        "",
        *moment_table(),
        "",
        "## The log-ratio between neighbours, in multiples of ε",
        "",
        *loss_table(),
        "",
        "## Proposals",
        "",
        *proposal_table(),
    ]
    print("\n".join(tables))
    write_part(PAGE, "tables", tables)
    print(f"\nwrote {PAGE}")
