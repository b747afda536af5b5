"""Mechanisms that draw eigenvectors: Amin et al. (2019), and Kapralov & Talwar (2013).

A release is Ĝ = Σ λ̂_i θ̂_i θ̂_iᵀ: eigenvalues with additive noise, drawn **once**, and directions by the exponential mechanism
(``docs/evidence/derivations/iterative_eigenvectors.md``). Sum and count get separate noise.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy

from dpmoments.base.checks import check_one_of, check_probability
from dpmoments.base.errors import InputValueError, out_of_range
from dpmoments.base.message import Message
from dpmoments.base.values import FloatArray, finite_numbers
from dpmoments.mechanisms.additive import MAX_NOISE, Gaussian, GaussianNoise, Laplace, Noise, choose_bits
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.lattice_noise import noise_deviation, noise_scale_for, with_noise
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.papers.laws import Directions
from dpmoments.papers.models import ReleasedBasisModel
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.sensitivity import (
    Sensitivity,
    quadratic_form,
    sorted_eigenvalues_l1,
    sorted_eigenvalues_l2,
    sum_and_count_l1,
    sum_and_count_l2,
)
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

Calibration = Literal["tight", "paper"]

_PAPER_SENSITIVITY = 2.0
"""Sensitivity of uᵀGu and of eigenvalues in Amin et al. (2019); never below the true one."""

_TOLERABLE = 0.2
"""Target for the noise on the sum and on the eigenvalues, as a fraction of a public n."""


@dataclass(frozen=True)
class SpectralPlan(Plan):
    """Budgets and noise scales of one release."""

    rank: int  # number of directions drawn
    bits: int  # lattice exponent of the exact sums
    # budget of the sum (and of the count if it is private); None if they are not released
    sum_budget: PrivacyBudget | None
    eigenvalue_budget: PrivacyBudget
    # budget of all directions; None if no direction costs anything (one dimension)
    direction_budget: PrivacyBudget | None
    # noise scale of every eigenvalue, in unit-ball units: the scale of the discrete Laplace distribution under pure ε,
    # the standard deviation of the discrete Gaussian under zCDP
    eigenvalue_scale: float
    sum_scale: float | None  # noise scale of every entry of the sum, and of the count

    @staticmethod
    @abstractmethod
    def mean_squares(eigenvalues: FloatArray, temperatures: FloatArray, variance: float) -> FloatArray:
        """Compute mean squares of the entries of Ĝ − G in the released eigenbasis, shape (d, d)."""

    @abstractmethod
    def draw_directions(
        self, gram: FloatArray, eigenvalues: FloatArray, privacy_filter: PrivacyFilter
    ) -> tuple[FloatArray, list[float]]:
        """Return about unit vectors, shape (d, rank), and their temperatures."""
        # Both are computed from the noisy `eigenvalues`.

    def temperature(self, part: PrivacyBudget) -> float:
        return temperature(part, self.neighbors, self.mechanism.options["calibration"])

    @property
    def unspent_reason(self) -> str | None:
        paper = self.mechanism.options["calibration"] == "paper"
        return "the paper's noise is more than its budget requires" if paper else None

    @property
    def pure(self) -> bool:
        """True if the budget is pure ε."""
        return self.cost.kind is BudgetKind.PURE

    @property
    def details(self) -> Mapping[str, Any]:
        parts = {"sum": self.sum_budget, "eigenvalues": self.eigenvalue_budget, "directions": self.direction_budget}
        return {
            "rank": self.rank,
            "budgets": {
                name: part.epsilon if part.kind is BudgetKind.PURE else part.rho
                for name, part in parts.items()
                if part is not None
            },
            "eigenvalue_scale": self.eigenvalue_scale,
            "sum_scale": self.sum_scale,
            "lattice_bits": self.bits,
        }

    @property
    def expected_count_error(self) -> float | None:
        if self.count_is_public or self.sum_scale is None:
            return super().expected_count_error
        return noise_deviation(self.sum_scale, pure=self.pure)

    @property
    def passes(self) -> int | None:
        return 1

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        self.check_rows(rows)
        moments = rows.moments(bits=self.bits)
        count, total, d = self.released_count(moments.count, privacy_filter), None, self.shape.n_features
        if self.sum_scale is not None:
            sums, what = moments.sum.astype(object), "sum"  # Python integers: nothing overflows
            if count is None:
                sums, what = np.append(sums, moments.count << moments.bits), "sum-and-count"
            sensitivity = _sum_sensitivity(self.neighbors, d, pure=self.pure)
            noisy = with_noise(privacy_filter, what, sums, sensitivity, self.sum_scale, bits=self.bits, pure=self.pure)
            count, total = (float(noisy[d]) if count is None else count), noisy[:d]
        gram = moments.gram.astype(np.float64) * 4.0**-self.bits
        eigenvalues = self._noisy_eigenvalues(gram, count, privacy_filter)
        directions, temperatures = self.draw_directions(gram, eigenvalues, privacy_filter)
        estimate = (directions * eigenvalues[: self.rank]) @ directions.T
        return RunResult(
            count=count,
            sum=total,
            gram=0.5 * (estimate + estimate.T),
            diagnostics={"eigenvalues": eigenvalues.tolist(), "temperatures": temperatures},
            model=self._model_of_run(eigenvalues, np.array(temperatures)),
        )

    def _model_of_run(self, eigenvalues: FloatArray, temperatures: FloatArray) -> ReleasedBasisModel | None:
        """Return the noise model, or None if squares of the noise leave the range of floating point."""
        times = 2.0 if self.pure else 1.0
        with np.errstate(all="ignore"):
            cells = self.mean_squares(eigenvalues, temperatures, times * self.eigenvalue_scale**2)
        if not np.isfinite(cells).all():
            return None
        of_sum = None if self.sum_scale is None else times * self.sum_scale**2
        own_scale = self.own_count_noise[0]
        return ReleasedBasisModel(
            n_features=self.shape.n_features,
            cells=(cells + cells.T) / 2.0,  # they differ in the last bit
            sum_variance=of_sum,
            count_variance=times * own_scale**2 if own_scale else 0.0 if self.count_is_public else of_sum,
            laplace=self.pure,
        )

    def model_entries(self, diagnostics: Mapping[str, Any], receipt: Receipt) -> Mapping[str, Any] | None:
        eigenvalues, temperatures = diagnostics.get("eigenvalues"), diagnostics.get("temperatures")
        if not isinstance(temperatures, list) or len(temperatures) != self.rank:
            raise InputValueError("the diagnostics do not have temperatures of a run")
        model = self._model_of_run(
            finite_numbers(eigenvalues, self.shape.n_features, "eigenvalues"),
            finite_numbers(temperatures, self.rank, "temperatures"),
        )
        return None if model is None else model.to_dict()

    def _noisy_eigenvalues(self, gram: FloatArray, count: float | None, privacy_filter: PrivacyFilter) -> FloatArray:
        """Return all eigenvalues plus noise, descending, at least 0."""
        # They are at most n if n is public or released.
        rounded = np.rint(np.linalg.eigvalsh(gram) * 4.0**self.bits)
        on_lattice = np.array([int(value) for value in rounded], dtype=object)  # 2^63 is 8 million rows one way
        noisy = with_noise(
            privacy_filter,
            "eigenvalues",
            on_lattice,
            _eigenvalue_sensitivity(self.neighbors, self.shape.n_features, self.bits, pure=self.pure),
            self.eigenvalue_scale,
            bits=2 * self.bits,
            pure=self.pure,
        )
        # The exact eigenvalues are sorted, so sorting the noisy ones never adds error (rearrangement inequality).
        most = math.inf if count is None else max(count, 0.0)
        return np.asarray(np.clip(np.sort(noisy)[::-1], 0.0, most), dtype=np.float64)


def temperature(part: PrivacyBudget, neighbors: Neighbors, calibration: Calibration) -> float:
    """Return the t for which drawing u with density ∝ exp(t uᵀGu) costs ``part``.

    The log-ratio of neighbors' densities stays in an interval of length η: t·Δ under add-remove, where uᵀGu changes in
    the same direction for all u, and 2t·Δ under replace-one. Such a draw is η-DP and η²/8-zCDP (bounded range, Cesar &
    Rogers 2021). The paper takes η = 2t·Δ with Δ = 2 under both.
    """
    bounded_range = part.epsilon if part.kind is BudgetKind.PURE else math.sqrt(8.0 * part.rho)
    if calibration == "paper":
        width = 2.0 * _PAPER_SENSITIVITY
    else:
        width = quadratic_form(neighbors).value * (1.0 if neighbors is Neighbors.ADD_REMOVE else 2.0)
    return float(np.nextafter(np.nextafter(bounded_range / width, 0.0), 0.0))


class SpectralMechanism(Mechanism):
    """Mechanism that draws eigenvectors: how it divides its budget."""

    rank: int | None
    calibration: Calibration
    sum_share: float | None
    eigenvalue_share: float | None

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.PURE, BudgetKind.ZCDP})
    plan_class: ClassVar[type[SpectralPlan]]

    def __post_init__(self) -> None:
        if self.rank is not None and (isinstance(self.rank, bool) or self.rank < 1):
            raise out_of_range("rank", self.rank, "a whole number from 1 to the number of features, or None for all")
        check_one_of("calibration", self.calibration, ("tight", "paper"))
        for name, share in (("sum_share", self.sum_share), ("eigenvalue_share", self.eigenvalue_share)):
            if share is not None and not 0.0 < share < 1.0:
                raise out_of_range(name, share, "a share of the budget, above 0 and below 1")

    @abstractmethod
    def n_paid(self, n_features: int) -> int:
        """Return the number of directions that cost anything."""

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> SpectralPlan:
        # A share that is not given makes the noise (the root mean square of its Euclidean norm) n/5, within limits: 1/10 to
        # 3/10 of the budget for the sum, and 1/5 (1/10 under zCDP) to 1/2 of the rest for the eigenvalues; the lower limits
        # if n is private. If no direction costs anything the eigenvalues get all of the rest.
        d, pure, tight = shape.n_features, budget.kind is BudgetKind.PURE, self.calibration == "tight"
        if self.rank is not None and self.rank > d:
            raise InputValueError(
                f"{self.name}: rank={self.rank} is more than the table's {d} features: use rank={d} or leave it out"
            )
        kind_of_eigenvalues = sorted_eigenvalues_l1 if pure else sorted_eigenvalues_l2
        spread = kind_of_eigenvalues(neighbors, d).value if tight else _PAPER_SENSITIVITY
        of_sum = _sum_sensitivity(neighbors, d, pure=pure).value

        def share(sensitivity: float, least: float, most: float) -> float:
            """Return the share at which noise on d numbers has norm _TOLERABLE·n, in [least, most]."""
            if not shape.n_rows:
                return least
            # Error of the whole budget: proportional to 1/ε, and to 1/√ρ.
            error = sensitivity * math.sqrt(d)
            error *= math.sqrt(2.0) / budget.epsilon if pure else 1.0 / math.sqrt(2.0 * budget.rho)
            ratio = error / (_TOLERABLE * shape.n_rows)
            return min(max(ratio if pure else ratio * ratio, least), most)

        sum_share = share(of_sum, 0.1, 0.3) if self.sum_share is None else self.sum_share
        least = 0.2 if pure else 0.1
        own_share = share(spread, least, 0.5) if self.eigenvalue_share is None else self.eigenvalue_share
        sum_part, rest = budget.split(sum_share, 1.0 - sum_share) if shape.mean else (None, budget)
        eigenvalue_part, direction_part = rest.split(own_share, 1.0 - own_share) if self.n_paid(d) else (rest, None)

        bits = choose_bits(math.sqrt(2.0) * noise_scale_for(eigenvalue_part, spread))
        rounded = _eigenvalue_sensitivity(neighbors, d, bits, pure=pure).value
        # The paper's constant is for eigenvalues that are not rounded.
        spread = rounded if tight else max(rounded, _PAPER_SENSITIVITY)
        sum_scale = None if sum_part is None else noise_scale_for(sum_part, of_sum)
        if sum_scale is not None and math.ldexp(sum_scale, bits) > MAX_NOISE:
            raise InputValueError(
                f"{self.name}: the sum's share of {budget} is too small to release anything: raise sum_share"
            )
        return self.plan_class(
            mechanism=self,
            shape=shape,
            neighbors=neighbors,
            cost=budget,
            rank=self.rank or d,
            bits=bits,
            sum_budget=sum_part,
            eigenvalue_budget=eigenvalue_part,
            direction_budget=direction_part,
            eigenvalue_scale=noise_scale_for(eigenvalue_part, spread),
            sum_scale=sum_scale,
        )


def _sum_sensitivity(neighbors: Neighbors, n_features: int, *, pure: bool) -> Sensitivity:
    """Return the sensitivity of the sum, and of the count if that is private."""
    return sum_and_count_l1(neighbors, n_features) if pure else sum_and_count_l2(neighbors)


def _eigenvalue_sensitivity(neighbors: Neighbors, n_features: int, bits: int, *, pure: bool) -> Sensitivity:
    """Return the sensitivity of the eigenvalues rounded to the lattice of spacing 2^(−2·bits)."""
    if pure:
        return sorted_eigenvalues_l1(neighbors, n_features).in_units(1.0, rounding=n_features * 4.0**-bits)
    rounding = math.nextafter(math.sqrt(n_features), math.inf) * 4.0**-bits
    return sorted_eigenvalues_l2(neighbors, n_features).in_units(1.0, rounding=rounding)


# Variances of the error Ĝ − G of mechanisms that draw eigenvectors, cell by cell in the released eigenbasis.

_MAX_CONCENTRATION = 1e8
"""Largest κ passed to SciPy's Bessel functions; beyond, I₁/I₀ is 1 − 1/(2κ)."""


def projected_cells(eigenvalues: FloatArray, temperatures: FloatArray, variance: float) -> FloatArray:
    """Compute mean squares of the entries of V̂ᵀ(Ĝ − G)V̂ for orthogonal directions.

    Each direction is drawn orthogonal to those before it. Direction i leans towards j > i by an angle φ of density ∝
    exp(tᵢ Δ cos²φ), Δ = λᵢ − λⱼ, so that 2φ is von Mises of concentration κ = tᵢΔ/2. Entry (i, j) is ½Δ sin 2φ, of
    variance (Δ/2tᵢ)·I₁(κ)/I₀(κ), and Δ sin²φ, of mean ½Δ(1 − I₁(κ)/I₀(κ)), is what moves from one diagonal entry to the
    other: Δ/2t and 1/2t if κ is large, Δ²/8 and Δ/2 at its most. These second-order means and the effect of two leans
    at once are added (``docs/evidence/derivations/noise-of-runs.md``).
    """
    cells, losses = _leaning(*_pairs(eigenvalues, temperatures, variance))
    return _with_second_order(cells, losses, eigenvalues, len(temperatures), variance)


def subtracted_cells(eigenvalues: FloatArray, temperatures: FloatArray, variance: float) -> FloatArray:
    """Compute the mean squares if each direction is drawn from the whole sphere.

    It is drawn after subtracting the earlier terms. What draw i leaves in entry (i, j), c of variance (Δ/2tᵢ)·I₁/I₀ as
    above, is still there when j is drawn: direction j follows it, leaning by c/λⱼ, and takes it away. In its place
    comes its own random lean against a direction in which nothing is left, a gap of λⱼ. It takes c away to the degree
    that c is small relative to λⱼ.
    """
    rank, d = len(temperatures), len(eigenvalues)
    drawn = np.arange(d) < rank
    left, losses = _leaning(*_pairs(eigenvalues, temperatures, variance))
    left = np.triu(left, 1)
    square = left.sum(axis=0)
    kept = np.where(drawn, square / (square + eigenvalues**2 + variance), 1.0)
    strengths = np.zeros(d)
    strengths[:rank] = temperatures
    own, lost = _leaning(eigenvalues, 0.5 * strengths * eigenvalues)
    cells = left * kept + np.triu(np.tile(np.where(drawn, own, 0.0), (d, 1)), 1)
    # the larger eigenvalue of [[0, c], [c, λⱼ]] less λⱼ, shared among the directions that left something
    followed = np.where(drawn, 0.5 * (np.sqrt(eigenvalues**2 + 4.0 * square) - eigenvalues), 0.0)
    shares = np.divide(left, square, out=np.zeros_like(left), where=square > 0.0)
    # released directions are not orthogonal: the eigenbasis turns by (own lean)·λⱼ/Δ, as far as they are separated
    turned = (
        2.0
        * own
        / np.sqrt(np.maximum(np.subtract.outer(eigenvalues, eigenvalues) ** 2 + 4.0 * own, np.finfo(float).tiny))
    )
    moved = shares * followed + np.triu(np.where(drawn, lost + turned, 0.0), 1)
    return _with_second_order(cells + cells.T, losses + moved + moved.T, eigenvalues, rank, variance)


def _with_second_order(
    cells: FloatArray, moved: FloatArray, eigenvalues: FloatArray, rank: int, variance: float
) -> FloatArray:
    """Add the effect of pairs of leans off the diagonal, and the diagonal."""
    # Noise, and what leans move along it.
    indices = np.arange(len(eigenvalues))
    means = (np.sign(np.subtract.outer(indices, indices)) * moved).sum(axis=1)
    result = cells + moved @ moved
    diagonal = variance + means**2 + 2.0 * (moved**2).sum(axis=1)
    if rank < len(eigenvalues):  # what was not drawn is missing, up to the largest eigenvalue left
        diagonal[rank:] += float(eigenvalues[rank]) ** 2
    result[indices, indices] = diagonal
    return result


def _pairs(eigenvalues: FloatArray, temperatures: FloatArray, variance: float) -> tuple[FloatArray, FloatArray]:
    """Return Δ and κ of all pairs; a gap counts for no less than the noise on it."""
    gaps = np.sqrt(np.subtract.outer(eigenvalues, eigenvalues) ** 2 + 2.0 * variance)
    np.fill_diagonal(gaps, 0.0)
    strengths = np.zeros(len(eigenvalues))
    strengths[: len(temperatures)] = temperatures
    first = np.minimum.outer(np.arange(len(eigenvalues)), np.arange(len(eigenvalues)))
    return gaps, 0.5 * strengths[first] * gaps


def _leaning(gaps: FloatArray, concentrations: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Δ²/4 · E sin² 2φ and Δ · E sin² φ, 2φ von Mises."""
    known = np.minimum(concentrations, _MAX_CONCENTRATION)
    ratio = scipy.special.ive(1, known) / scipy.special.ive(0, known)
    ratio = np.where(concentrations > known, 1.0 - 0.5 / np.maximum(concentrations, 1.0), ratio)
    over = np.divide(ratio, concentrations, out=np.full_like(ratio, 0.5), where=concentrations > 1e-8)
    return 0.25 * gaps**2 * over, 0.5 * gaps * (1.0 - ratio)


@dataclass(frozen=True)
class IterativeEigenvectorsPlan(SpectralPlan):
    """Calibrated :class:`IterativeEigenvectors`."""

    mechanism: IterativeEigenvectors

    mean_squares = staticmethod(projected_cells)

    def draw_directions(
        self, gram: FloatArray, eigenvalues: FloatArray, privacy_filter: PrivacyFilter
    ) -> tuple[FloatArray, list[float]]:
        temperatures = np.zeros(self.rank)
        if self.direction_budget is not None:
            n_paid = min(self.rank, len(gram) - 1)  # the last direction is fixed up to its sign by the others
            weights = self.weights(eigenvalues)[:n_paid]
            parts = self.direction_budget.split(*map(float, weights))
            temperatures[:n_paid] = [self.temperature(part) for part in parts]
        law = Directions(tuple(temperatures.tolist()), len(gram))
        drawn = privacy_filter.draw("directions", law, gram, quadratic_form(self.neighbors))
        # The orthonormal columns nearest to the drawn ones, which are orthonormal up to rounding.
        basis, triangle = np.linalg.qr(drawn)
        return basis * np.where(np.diagonal(triangle) < 0.0, -1.0, 1.0), temperatures.tolist()

    def weights(self, eigenvalues: FloatArray, others: FloatArray | None = None) -> FloatArray:
        """Return weights proportional to the directions' budget shares."""
        # A direction's own eigenvalue is one of ``eigenvalues``; for a bound those of all others may be given apart.
        d, others = len(eigenvalues), eigenvalues if others is None else others
        if self.mechanism.allocation == "uniform":
            return np.ones(d)
        log_term = math.log(2.0 * d / self.mechanism.failure)
        floor = self.eigenvalue_scale * (log_term if self.pure else math.sqrt(2.0 * log_term))
        importance = eigenvalues + floor
        if self.mechanism.allocation == "gaps":
            below = np.cumsum(others[::-1])[::-1] - others  # sum of the smaller ones
            importance = np.arange(d - 1, -1, -1) * eigenvalues - below + floor
        # Minimizes Σ importance_i/t_i for a given Σ ε_i, ε_i ∝ t_i (pure), or Σ ρ_i, ρ_i ∝ t_i² (zCDP).
        return np.asarray(np.maximum(importance, floor) ** (1.0 / 2.0 if self.pure else 2.0 / 3.0))


@dataclass(frozen=True)
class IterativeEigenvectors(SpectralMechanism):
    """Release noisy eigenvalues with directions, each orthogonal to those before it.

    The release is Σ λ̂_i θ̂_i θ̂_iᵀ. Direction i has density ∝ exp(t_i θᵀGθ) on the unit vectors orthogonal to the directions
    before it, and is drawn exactly (see :func:`dpmoments.noise.sample_bingham`). Eigenvalues get discrete Laplace (pure ε) or
    Gaussian (zCDP) noise. The time is O(d³).

    **Privacy.** ε-DP or ρ-zCDP by composition of the eigenvalues, each direction, and sum and count if released. A direction's
    budget may depend on the noisy eigenvalues only; the last of d directions is fixed by the others and costs nothing. The
    directions come from a floating-point sampler on the sphere, for which no proof exists at the level of bits: arithmetic
    ``idealized``.

    Parameters
    ----------
    allocation : {"gaps", "adaptive", "uniform"}
        Division of the directions' budget; λ̂ are the noisy eigenvalues and τ is a bound on their noise. ``"uniform"``: equally
        (IT-U). ``"adaptive"``: ε_i ∝ √(λ̂_i + τ) (the paper's Corollary 1, AD). ``"gaps"``: ε_i ∝ √(Σ_{j>i} (λ̂_i − λ̂_j) + τ),
        which minimizes the error to first order. Under zCDP the powers are 2/3, not 1/2.
    rank : int, optional
        Number of directions, and rank of the release. Default: all.
    calibration : {"tight", "paper"}
        ``"paper"``: takes 2 as the sensitivity of the eigenvalues and of θᵀGθ under both relations, which is more noise than ε
        requires; for comparison.
    sum_share : float, optional
        Budget share of the sum of rows (and the count if it is private), if they are released. Default: the share that brings
        the root mean square norm of its noise to n/5, between 0.1 and 0.3; 0.1 if n is private.
    eigenvalue_share : float, optional
        Share of the rest for the eigenvalues. Default: by the same rule, from 0.2 (0.1 under zCDP) to 0.5.
    failure : float
        β: τ bounds the noise on all eigenvalues with probability 1 − β. It affects only the division of the budget.

    Examples
    --------
    >>> plan = IterativeEigenvectors().plan(MomentShape(10, mean=False), PrivacyBudget.pure(1.0), "add_remove")
    >>> plan.rank, round(plan.eigenvalue_scale, 6)
    (10, 5.0)
    """

    allocation: Literal["gaps", "adaptive", "uniform"] = "gaps"
    rank: int | None = None
    calibration: Calibration = "tight"
    sum_share: float | None = None
    eigenvalue_share: float | None = None
    failure: float = 0.05

    plan_class: ClassVar[type[SpectralPlan]] = IterativeEigenvectorsPlan
    summary: ClassVar[str] = (
        "eigenvectors drawn one after another on the sphere; its error grows as √n, that of additive noise does not"
    )
    source: ClassVar[str] = "Amin et al. 2019, Algorithm 1; exact sampler of Kent, Ganeiber & Mardia 2018"

    def __post_init__(self) -> None:
        check_one_of("allocation", self.allocation, ("gaps", "adaptive", "uniform"))
        check_probability("failure", self.failure)
        super().__post_init__()

    def n_paid(self, n_features: int) -> int:
        return min(self.rank or n_features, n_features - 1)


@dataclass(frozen=True)
class KapralovTalwarPlan(SpectralPlan):
    """Calibrated :class:`KapralovTalwar`."""

    mechanism: KapralovTalwar

    mean_squares = staticmethod(subtracted_cells)

    def draw_directions(
        self, gram: FloatArray, eigenvalues: FloatArray, privacy_filter: PrivacyFilter
    ) -> tuple[FloatArray, list[float]]:
        directions, temperatures, remaining = np.empty((len(gram), self.rank)), [0.0] * self.rank, gram
        if self.direction_budget is not None:
            temperatures = list(map(self.temperature, self.direction_budget.split(*[1.0] * self.rank)))
        for step, strength in enumerate(temperatures):
            law = Directions((strength,), len(gram), projected=False)
            drawn = privacy_filter.draw(
                Message("direction", direction=step + 1), law, remaining, quadratic_form(self.neighbors)
            )[:, 0]
            direction = drawn / np.linalg.norm(drawn)  # the filter has rounded it
            directions[:, step] = direction
            remaining = remaining - eigenvalues[step] * np.outer(direction, direction)
        return directions, temperatures


@dataclass(frozen=True)
class KapralovTalwar(SpectralMechanism):
    """Release noisy eigenvalues with directions, each drawn from the whole sphere.

    The release is Σ λ̂_i θ̂_i θ̂_iᵀ, as compared by Amin et al. (2019): noisy eigenvalues drawn once, direction i with density
    ∝ exp(t θᵀC_iθ), C_1 = G and C_{i+1} = C_i − λ̂_i θ̂_i θ̂_iᵀ, budget in equal parts. The directions are not orthogonal, and
    what one draw misses stays in the matrix. Mostly for comparison: :class:`IterativeEigenvectors` does better on most tables.
    Each direction takes one eigendecomposition.

    **Privacy.** ε-DP or ρ-zCDP by composition: given earlier outputs, C_i differs from G by a constant, so that every score
    θᵀC_iθ has the sensitivity of θᵀGθ. The directions come from a floating-point sampler on the sphere: arithmetic
    ``idealized``.

    Parameters
    ----------
    rank : int, optional
        Number of directions. Default: all.
    calibration : {"tight", "paper"}
        ``"paper"``: sensitivity 2 of both eigenvalues and θᵀGθ under either relation, for comparison.
    sum_share, eigenvalue_share : float, optional
        As for :class:`IterativeEigenvectors`.

    Examples
    --------
    >>> plan = KapralovTalwar(rank=3).plan(MomentShape(10, mean=False), PrivacyBudget.zcdp(0.5), "add_remove")
    >>> plan.details["rank"]
    3
    """

    rank: int | None = None
    calibration: Calibration = "tight"
    sum_share: float | None = None
    eigenvalue_share: float | None = None

    plan_class: ClassVar[type[SpectralPlan]] = KapralovTalwarPlan
    summary: ClassVar[str] = "eigenvectors drawn on the sphere, subtracted rather than projected out; for comparison"
    source: ClassVar[str] = "Kapralov & Talwar 2013, as in Amin et al. 2019"

    def n_paid(self, n_features: int) -> int:
        return 0 if n_features == 1 else self.rank or n_features


# Additive noise, and the choice of a mechanism, as papers have them: not in the registry.


@dataclass(frozen=True)
class EntrywiseGaussian(Gaussian):
    """Gaussian noise of variance σ² on every entry, above the diagonal too.

    That is "Analyze Gauss" (Dwork et al. 2014). It has the privacy of :class:`~dpmoments.mechanisms.Gaussian`, and √2 more error.

    Examples
    --------
    >>> plan = EntrywiseGaussian().plan(MomentShape(10, mean=False), PrivacyBudget.zcdp(0.5), "add_remove")
    >>> round(plan.expected_error, 4)
    10.0
    """

    diagonal_ratio: ClassVar[float] = 1.0
    about_levels: ClassVar[bool] = False
    summary: ClassVar[str] = "normal noise of one variance on every entry of the Gram matrix; for comparison"
    source: ClassVar[str] = "Dwork et al. 2014 (Analyze Gauss)"

    def noise_for(self, budget: PrivacyBudget, sensitivity: float) -> Noise:
        scale = super().noise_for(budget, sensitivity).deviation(1)
        return GaussianNoise(scale, scale)


@dataclass(frozen=True)
class PaperLaplace(Laplace):
    """Laplace noise of scale 2D/ε, times 1 + w² with count and mean.

    The baseline L of Amin et al. (2019), which adds more noise than its ε needs.

    Examples
    --------
    >>> plan = PaperLaplace().plan(MomentShape(2, mean=False), PrivacyBudget.pure(1.0), "add_remove")
    >>> round(plan.noise.noise_scale, 9)
    4.0
    """

    unspent_reason: ClassVar[str | None] = "the paper's noise is more than its budget requires"
    summary: ClassVar[str] = "independent Laplace noise of the published scale on every entry; for comparison"
    source: ClassVar[str] = "Amin et al. 2019, baseline L"

    def noise_unit(self, shape: MomentShape, neighbors: Neighbors, augmentation: float) -> float:
        return 2.0 * (shape.n_features + (1 if augmentation else 0)) * (1.0 + augmentation**2)


@dataclass(frozen=True)
class RegimeRule(Mechanism):
    """Iterative eigenvectors if λ₁ ln λ₁ ≤ ln(1/δ)/ε or δ is 0, else the Gaussian mechanism.

    The rule of Amin et al. (2019, section 3.1), which the replication report calls hybrid. ``largest_eigenvalue`` is λ₁
    of the Gram matrix of the encoded rows, from public knowledge; default: the number of rows, if it is public.

    Examples
    --------
    >>> budget = PrivacyBudget.approximate(1.0, 1e-6)
    >>> [RegimeRule(largest).plan(MomentShape(5), budget, "add_remove").mechanism.name for largest in (2.0, 100.0)]
    ['iterative-eigenvectors', 'gaussian']
    """

    largest_eigenvalue: float | None = None

    counts_rows: ClassVar[bool] = True  # the mechanism chosen does
    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.PURE, BudgetKind.APPROXIMATE})
    summary: ClassVar[str] = "iterative eigenvectors or Gaussian noise, by a public largest eigenvalue; for comparison"
    source: ClassVar[str] = "Amin et al. 2019, section 3.1"

    def __post_init__(self) -> None:
        if self.largest_eigenvalue is not None and not 0.0 < self.largest_eigenvalue < math.inf:
            raise out_of_range("largest_eigenvalue", self.largest_eigenvalue, "a positive finite number")

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> Plan:
        pure = PrivacyBudget.pure(budget.epsilon)
        if budget.kind is BudgetKind.PURE:
            return IterativeEigenvectors().plan(shape, pure, neighbors)
        largest = self.largest_eigenvalue if self.largest_eigenvalue is not None else shape.n_rows
        if largest is None:
            raise InputValueError(
                "the rule needs the largest eigenvalue of the Gram matrix, or the number of rows, which bounds it and "
                "is private here: give largest_eigenvalue from public knowledge"
            )
        if largest * math.log(max(largest, 1.0)) * budget.epsilon <= -math.log(budget.delta):
            return IterativeEigenvectors().plan(shape, pure, neighbors)
        return Gaussian().plan(shape, budget, neighbors)
