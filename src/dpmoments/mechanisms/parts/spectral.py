"""Parts shared by the mechanisms that draw eigenvectors: division of the budget, noisy eigenvalues, noisy sum and count.

A release is Ĝ = Σ λ̂_i θ̂_i θ̂_iᵀ: eigenvalues with additive noise, drawn **once**, and directions by the exponential mechanism
(``docs/derivations/iterative_eigenvectors.md``). Sum and count are released beside it, with noise of their own.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpmoments.array_types import FloatArray
from dpmoments.mechanisms.base import Mechanism, MomentShape, NoisyMoments, Plan, without_low_bits
from dpmoments.mechanisms.parts.additive import choose_bits, lattice_scale
from dpmoments.noise.lattice import LARGEST_SCALE, discrete_gaussian, discrete_laplace
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.sensitivity import quadratic_form, row_sum_l2, sorted_eigenvalues_l1, sorted_eigenvalues_l2
from dpmoments.rows.moments import Moments
from dpmoments.rows.rows import Rows

__all__ = ["Calibration", "SpectralPlan", "check_options", "cut_budget", "temperature"]

Calibration = Literal["tight", "paper"]

PAPER_SENSITIVITY = 2.0
"""Sensitivity of uᵀGu, and ℓ1 sensitivity of the eigenvalues, in Amin et al. (2019); never below the true values."""

TOLERABLE = 0.2
"""Target for the noise on the sum and on the eigenvalues, as a fraction of a public n; see :func:`cut_budget`."""


@dataclass(frozen=True)
class SpectralPlan(Plan):
    """Budgets and noise scales of one release.

    Attributes
    ----------
    rank : int
        Number of directions drawn.
    bits : int
        The lattice exponent of the exact sums.
    sum_budget : PrivacyBudget or None
        For the sum (and the count where it is private); None where they are not wanted.
    eigenvalue_budget : PrivacyBudget
    direction_budget : PrivacyBudget or None
        For all directions together; None where no direction costs anything (one dimension).
    eigenvalue_scale : float
        Scale of the noise on every eigenvalue, in unit-ball units: the scale of the discrete Laplace distribution under
        pure ε, the standard deviation of the discrete Gaussian under zCDP.
    sum_scale : float or None
        The same for every entry of the sum, and for the count.
    """

    rank: int
    bits: int
    sum_budget: PrivacyBudget | None
    eigenvalue_budget: PrivacyBudget
    direction_budget: PrivacyBudget | None
    eigenvalue_scale: float
    sum_scale: float | None

    @abstractmethod
    def draw_directions(
        self, gram: FloatArray, eigenvalues: FloatArray, generator: np.random.Generator
    ) -> tuple[FloatArray, list[float]]:
        """Unit vectors, shape (d, rank), and the temperature each was drawn at; ``eigenvalues`` are the noisy ones."""

    @property
    def pure(self) -> bool:
        """Whether the budget is pure ε."""
        return self.cost.kind is BudgetKind.PURE

    @property
    def details(self) -> Mapping[str, Any]:
        parts = {"sum": self.sum_budget, "eigenvalues": self.eigenvalue_budget, "directions": self.direction_budget}
        return {
            "rank": self.rank,
            "budgets": {name: _amount(part) for name, part in parts.items() if part is not None},
            "eigenvalue_scale": self.eigenvalue_scale,
            "sum_scale": self.sum_scale,
            "lattice_bits": self.bits,
        }

    @property
    def expected_sum_error(self) -> float | None:
        if self.sum_scale is None:
            return None
        return self.sum_scale * math.sqrt((2.0 if self.pure else 1.0) * self.shape.n_features)

    def run(self, rows: Rows, generator: np.random.Generator) -> NoisyMoments:
        self.check_rows(rows)
        moments = rows.moments(bits=self.bits)
        count, total = self._noisy_sum(moments, generator)
        gram = moments.gram.astype(np.float64) * 4.0**-self.bits
        eigenvalues = self._noisy_eigenvalues(gram, count, generator)
        directions, temperatures = self.draw_directions(gram, eigenvalues, generator)
        estimate = (directions * eigenvalues[: self.rank]) @ directions.T
        return NoisyMoments(
            count=count,
            sum=total,
            gram=without_low_bits(0.5 * (estimate + estimate.T)),
            diagnostics={"eigenvalues": eigenvalues.tolist(), "temperatures": temperatures},
        )

    def _noisy_sum(self, moments: Moments, generator: np.random.Generator) -> tuple[float | None, FloatArray | None]:
        public = self.neighbors.public_count(moments.count)
        if self.sum_scale is None:
            return public, None
        sums = moments.sum.astype(object)  # Python integers: nothing overflows
        if public is None:
            sums = np.append(sums, moments.count << moments.bits)
        scale = math.ldexp(self.sum_scale, self.bits)
        noisy = (sums + self._discrete(scale, len(sums), generator)).astype(np.float64) * 2.0**-self.bits
        d = self.shape.n_features
        return (float(noisy[d]) if public is None else public), noisy[:d]

    def _noisy_eigenvalues(self, gram: FloatArray, count: float | None, generator: np.random.Generator) -> FloatArray:
        """All eigenvalues plus noise, in descending order, at least 0 and at most n where n is public or was released."""
        on_lattice = np.rint(np.linalg.eigvalsh(gram) * 4.0**self.bits)
        scale = lattice_scale(self.eigenvalue_scale, self.bits)
        noisy = (on_lattice + self._discrete(scale, len(gram), generator)) * 4.0**-self.bits
        # The exact eigenvalues are sorted, so sorting the noisy ones never adds error (rearrangement inequality).
        most = math.inf if count is None else max(count, 0.0)
        return np.asarray(np.clip(np.sort(noisy)[::-1], 0.0, most), dtype=np.float64)

    def _discrete(self, scale: float, size: int, generator: np.random.Generator) -> Any:
        draw = discrete_laplace if self.pure else discrete_gaussian
        return draw(scale, size, generator)


def check_options(rank: int | None, calibration: str, sum_share: float | None, eigenvalue_share: float | None) -> None:
    """Refuse options that no table could be released with."""
    if rank is not None and (isinstance(rank, bool) or rank < 1):
        raise ValueError(f"rank={rank!r} must be a whole number from 1 to the number of features, or None for all")
    if calibration not in ("tight", "paper"):
        raise ValueError(f"calibration={calibration!r}: use 'tight' or 'paper'")
    for name, share in (("sum_share", sum_share), ("eigenvalue_share", eigenvalue_share)):
        if share is not None and not 0.0 < share < 1.0:
            raise ValueError(f"{name}={share!r} is a share of the budget: above 0 and below 1")


def temperature(part: PrivacyBudget, neighbors: Neighbors, calibration: Calibration) -> float:
    """The t for which drawing u with density ∝ exp(t uᵀGu) costs ``part``.

    The log-ratio of two neighbours' densities, as a function of u, stays in an interval of some length η. With Δ = 1 the
    sensitivity of uᵀGu, η = t·Δ under add-remove, where uᵀGu changes in the same direction for all u, and η = 2t·Δ under
    replace-one. Such a draw is η-DP and η²/8-zCDP (bounded range, Cesar & Rogers 2021). The paper's calibration takes
    η = 2t·Δ with Δ = 2 under both relations.

    Examples
    --------
    >>> temperature(PrivacyBudget.pure(1.0), Neighbors.REPLACE_ONE, "tight") <= 0.5
    True
    """
    bounded_range = part.epsilon if part.kind is BudgetKind.PURE else math.sqrt(8.0 * part.rho)
    if calibration == "paper":
        width = 2.0 * PAPER_SENSITIVITY
    else:
        width = quadratic_form(neighbors) * (1.0 if neighbors is Neighbors.ADD_REMOVE else 2.0)
    return float(np.nextafter(np.nextafter(bounded_range / width, 0.0), 0.0))


def cut_budget(
    mechanism: Mechanism,
    shape: MomentShape,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    *,
    rank: int | None,
    n_paid: int,
    calibration: Calibration,
    sum_share: float | None,
    eigenvalue_share: float | None,
) -> dict[str, Any]:
    """Divide the budget and calibrate the noise: the fields of a :class:`SpectralPlan`.

    A share that is not given is the one at which the noise (the root mean square of its Euclidean norm) is n/5, within
    limits: 1/10 to 3/10 of the budget for the sum, and 1/5 (1/10 under zCDP) to 1/2 of the rest for the eigenvalues. Where n is
    private the lower limits are taken. Where no direction costs anything the eigenvalues get all of the rest.

    Parameters
    ----------
    rank : int or None
        Directions wanted; None for all.
    n_paid : int
        How many of these directions cost budget.
    """
    d = shape.n_features
    if rank is not None and rank > d:
        raise ValueError(
            f"{mechanism.name}: rank={rank} is more than the table's {d} features: use rank={d} or leave it out"
        )
    pure = budget.kind is BudgetKind.PURE
    tight = calibration == "tight"
    kind_of_eigenvalues = sorted_eigenvalues_l1 if pure else sorted_eigenvalues_l2
    spread = kind_of_eigenvalues(neighbors, d) if tight else PAPER_SENSITIVITY
    sum_sensitivity = _sum_sensitivity(neighbors, d, pure)

    def share(sensitivity: float, n_entries: int, least: float, most: float) -> float:
        """Share of the budget at which noise on ``n_entries`` numbers has norm TOLERABLE·n, clipped to [least, most]."""
        if not shape.n_rows:
            return least
        # What the whole budget would leave. The error is proportional to 1/ε, and to 1/√ρ.
        error = sensitivity * math.sqrt(n_entries)
        error *= math.sqrt(2.0) / budget.epsilon if pure else 1.0 / math.sqrt(2.0 * budget.rho)
        ratio = error / (TOLERABLE * shape.n_rows)
        return min(max(ratio if pure else ratio * ratio, least), most)

    if sum_share is None:
        sum_share = share(sum_sensitivity, d, 0.1, 0.3)
    if eigenvalue_share is None:
        eigenvalue_share = share(spread, d, 0.2 if pure else 0.1, 0.5)
    sum_part, rest = budget.split(sum_share, 1.0 - sum_share) if shape.mean else (None, budget)
    eigenvalue_part, direction_part = rest.split(eigenvalue_share, 1.0 - eigenvalue_share) if n_paid else (rest, None)

    bits = choose_bits(math.sqrt(2.0) * _noise_scale(eigenvalue_part, spread))
    # Eigenvalues are rounded to the lattice, which changes each difference between neighbours by at most one unit.
    spread += (d if pure else math.sqrt(d)) * 4.0**-bits
    sum_scale = None if sum_part is None else _noise_scale(sum_part, sum_sensitivity)
    if sum_scale is not None and math.ldexp(sum_scale, bits) > LARGEST_SCALE:
        raise ValueError(
            f"{mechanism.name}: the sum's part of {budget} is too small to release anything: raise sum_share"
        )
    return dict(
        mechanism=mechanism,
        shape=shape,
        neighbors=neighbors,
        cost=budget,
        rank=d if rank is None else rank,
        bits=bits,
        sum_budget=sum_part,
        eigenvalue_budget=eigenvalue_part,
        direction_budget=direction_part,
        eigenvalue_scale=_noise_scale(eigenvalue_part, spread),
        sum_scale=sum_scale,
    )


def _sum_sensitivity(neighbors: Neighbors, d: int, pure: bool) -> float:
    """Sensitivity of (Σx, n) under add-remove, of Σx under replace-one: in ℓ1 (at most √d times ℓ2) if ``pure``, else in ℓ2."""
    of_sum = row_sum_l2(neighbors)
    private_count = 1.0 if neighbors is Neighbors.ADD_REMOVE else 0.0
    value = math.sqrt(d) * of_sum + private_count if pure else math.hypot(of_sum, private_count)
    return math.nextafter(math.nextafter(value, math.inf), math.inf)


def _noise_scale(part: PrivacyBudget, sensitivity: float) -> float:
    """Laplace scale under pure ε, standard deviation under zCDP; rounded up."""
    if part.kind is BudgetKind.PURE:
        return math.nextafter(math.nextafter(sensitivity, math.inf) / part.epsilon, math.inf)
    return zcdp_noise_scale(part.rho, math.nextafter(sensitivity, math.inf))


def _amount(part: PrivacyBudget) -> float:
    return part.epsilon if part.kind is BudgetKind.PURE else part.rho
