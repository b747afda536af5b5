"""Mechanisms that spend more than they state, each with one fault; the audit must find every one.

Each is a small subclass whose plan states the budget it was given; ``FAULTS`` lists them as the audit is to find them, and
``CONTROLS`` the same without the fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from dpmoments.audit import AuditEffort, AuditResult, audit, bingham_epsilon, neighboring_pairs
from dpmoments.audit.exact import one_direction_epsilon, stated_temperature
from dpmoments.audit.procedure import LEVEL, _default_pairs, make_trials
from dpmoments.mechanisms.additive import AdditivePlan, Gaussian, Isotropic, Laplace, MatrixLaplace, augmented_gram
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.papers.laws import Directions
from dpmoments.papers.mechanisms.eigenvectors import IterativeEigenvectors, IterativeEigenvectorsPlan
from dpmoments.papers.sampling import wishart
from dpmoments.papers.sphere import envelope_parameter, sample_bingham
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import gaussian_epsilon, gaussian_noise_scale
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import noised
from dpmoments.privacy.sensitivity import sorted_eigenvalues_l1
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

PURE = frozenset({BudgetKind.PURE})


def unit_gram(rows: Rows) -> np.ndarray:
    """The exact Gram matrix in unit-ball units."""
    moments = rows.moments()
    return np.asarray(moments.gram, dtype=np.float64) * moments.scale**2


def as_a(plan: AdditivePlan, kind: type[AdditivePlan], **changes: Any) -> AdditivePlan:
    """The same calibrated plan, run by another class."""
    values = {name: getattr(plan, name) for name in (option.name for option in fields(plan))}
    return kind(**(values | changes))


class RunBy:
    """A mechanism whose calibrated plan is run by another class."""

    run_by: ClassVar[Any]

    def calibrate(self, shape, budget, neighbors):
        return as_a(super().calibrate(shape, budget, neighbors), self.run_by)


# Filters that a dishonest mechanism would put between itself and the real one --------------------------------------------


class Unpriced(PrivacyFilter):
    """Makes every draw without asking what it costs, and writes nothing down."""

    def __init__(self, honest: PrivacyFilter) -> None:
        self.__dict__ = honest.__dict__

    def draw(self, what, law, query, sensitivity, claim=None, *, group=None):
        del what, sensitivity, claim, group
        return noised(law, query, self._generator)


class Halved(PrivacyFilter):
    """Has every draw priced and written down, and then makes it with half the noise."""

    def __init__(self, honest: PrivacyFilter) -> None:
        self.__dict__ = honest.__dict__

    def _answer(self, made, query):
        exact = np.asarray(query)
        return exact + (super()._answer(made, query) - exact) // 2


class Hotter(PrivacyFilter):
    """Has directions priced and written down, and draws them at a higher temperature."""

    def __init__(self, honest: PrivacyFilter, factor: float) -> None:
        self.__dict__ = honest.__dict__
        self._factor = factor

    def _answer(self, made, query):
        if isinstance(made.law, Directions):
            temperatures = tuple(self._factor * t for t in made.law.temperatures)
            made = replace(made, law=replace(made.law, temperatures=temperatures))
        return super()._answer(made, query)


# Half the noise scale: the plan states the right law, and the draw is half of it ------------------------------------------


class HalfPlan(AdditivePlan):
    def run(self, rows, privacy_filter):
        return super().run(rows, Halved(privacy_filter))


class HalfGaussian(RunBy, Gaussian):
    run_by = HalfPlan


class HalfLaplace(RunBy, Laplace):
    run_by = HalfPlan


class HalfIsotropic(RunBy, Isotropic):
    run_by = HalfPlan


class HalfMatrixLaplace(RunBy, MatrixLaplace):
    run_by = HalfPlan


# The sensitivity of the wrong neighbor --------------------------------------------------------------------------------


class UnpricedPlan(AdditivePlan):
    def run(self, rows, privacy_filter):
        return super().run(rows, Unpriced(privacy_filter))


class WrongNeighbor:
    """Add-remove noise, whatever the relation."""

    def calibrate(self, shape, budget, neighbors):
        plan = super().calibrate(shape, budget, Neighbors.ADD_REMOVE)
        return as_a(plan, UnpricedPlan, neighbors=neighbors)


class WrongNeighborGaussian(WrongNeighbor, Gaussian): ...


class WrongNeighborMatrixLaplace(WrongNeighbor, MatrixLaplace): ...


# Rows that are not clipped ------------------------------------------------------------------------------------------------


class UnclippedPlan(AdditivePlan):
    def run(self, rows, privacy_filter):
        self.check_rows(rows)
        gram = sum((block.T @ block for block in rows.source.blocks()), np.zeros((self.shape.n_features,) * 2))
        exact = np.array([[int(cell) for cell in row] for row in np.rint(gram * 4.0**self.bits)], dtype=object)
        return RunResult(None, None, self.add_noise(privacy_filter, "Gram matrix", exact))


class UnclippedRows(RunBy, MatrixLaplace):
    """Trusts that rows lie in the unit ball."""

    run_by = UnclippedPlan


# Clipping at a private number of rows ----------------------------------------------------------------------------------


class PrivateCountClipPlan(AdditivePlan):
    def run(self, rows, privacy_filter):
        noisy = super().run(rows, privacy_filter)
        eigenvalues, vectors = np.linalg.eigh(noisy.gram)
        clipped = (vectors * np.clip(eigenvalues, 0.0, rows.moments().count)) @ vectors.T
        return replace(noisy, gram=(clipped + clipped.T) / 2.0)


class PrivateCountClip(RunBy, MatrixLaplace):
    """Clips eigenvalues to [0, n], n the true number of rows, also where it is private."""

    run_by = PrivateCountClipPlan


# The exact number of rows that the rules keep, as if it were public ---------------------------------------------------


class KeptCountPlan(AdditivePlan):
    def run(self, rows, privacy_filter):
        self.check_rows(rows)
        moments = rows.moments(bits=self.bits)
        values = self.add_noise(privacy_filter, "everything", augmented_gram(moments, self.augmentation))
        count = float(moments.count)
        return RunResult(count, values[0, 1:] / self.augmentation, np.ascontiguousarray(values[1:, 1:]))


class KeptCount(RunBy, Gaussian):
    """Tells the number of rows kept as it is where a rule drops rows, under replace-one too."""

    run_by = KeptCountPlan


# One-sided Wishart noise ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GramPlan(Plan):
    """A plan of a mechanism that releases G by a function of its own, with noise of its own."""

    release: Callable[[np.ndarray, Plan, np.random.Generator], Any]

    def run(self, rows, privacy_filter):
        self.check_rows(rows)
        released = self.release(unit_gram(rows), self, privacy_filter._generator)
        gram, diagnostics = released if isinstance(released, tuple) else (released, {})
        return RunResult(None, None, gram, diagnostics)


@dataclass(frozen=True)
class GramMechanism(Mechanism):
    """Pure ε, the Gram matrix alone."""

    budget_kinds: ClassVar[frozenset[BudgetKind]] = PURE

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> Plan:
        return GramPlan(self, shape, neighbors, budget, type(self).release)


@dataclass(frozen=True)
class OneSidedWishart(GramMechanism):
    """G + W/(2c), W ~ Wishart_d(I, d + 1) (Jiang et al. 2016): its support, {Ĝ ⪰ G}, moves with the table."""

    @staticmethod
    def release(gram, plan, generator):
        d = len(gram)
        rate = plan.cost.epsilon / (1.0 if plan.neighbors is Neighbors.ADD_REMOVE else 2.0)
        return gram + wishart(np.eye(d), d + 1, generator) / (2.0 * rate)


# Eigenvectors -----------------------------------------------------------------------------------------------------------


def misprinted_bingham(matrix: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """One draw by the acceptance printed in Amin et al. (2019), Algorithm 2: the power −d/2 in place of +d/2."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    gaps, d = eigenvalues.max() - eigenvalues, len(eigenvalues)
    b = envelope_parameter(gaps)
    scales = 1.0 / np.sqrt(1.0 + 2.0 * gaps / b)
    while True:
        u = generator.standard_normal((256, d)) * scales
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        s = u**2 @ gaps
        accepted = np.flatnonzero(generator.random(len(u)) < np.exp(-s) * (1.0 + 2.0 * s / b) ** (-d / 2))
        if accepted.size:
            return vectors @ u[accepted[0]]


def exact_bingham(matrix: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return sample_bingham(matrix, None, generator)


@dataclass(frozen=True)
class ExactDirection(GramMechanism):
    """No fault: the whole budget on one direction, u uᵀ with density ∝ exp(t uᵀGu), at the paper's temperature t = ε/4."""

    @staticmethod
    def release(gram, plan, generator):
        u = exact_bingham(plan.cost.epsilon / 4.0 * gram, generator)
        return np.outer(u, u)


@dataclass(frozen=True)
class MisprintedDirection(GramMechanism):
    """The same with the misprinted acceptance."""

    @staticmethod
    def release(gram, plan, generator):
        u = misprinted_bingham(plan.cost.epsilon / 4.0 * gram, generator)
        return np.outer(u, u)


def plane_direction(matrix: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """An exact Bingham draw at d = 2: twice the angle from the leading eigenvector is von Mises."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    angle = 0.5 * generator.vonmises(0.0, 0.5 * (eigenvalues[1] - eigenvalues[0])) + np.pi * generator.integers(2)
    return vectors @ np.array([np.sin(angle), np.cos(angle)])


@dataclass(frozen=True)
class EigenvaluesOnce(GramMechanism):
    """No fault: iterative eigenvectors at d = 2, a share of ε for the eigenvalues and the rest for the direction."""

    share: float = 0.5

    draws: ClassVar[int] = 1

    @staticmethod
    def release(gram, plan, generator):
        mechanism, d = plan.mechanism, len(gram)
        assert d == 2, "one direction fixes the other"
        eigenvalues = np.linalg.eigvalsh(gram)[::-1]
        scale = sorted_eigenvalues_l1(plan.neighbors, d).value / mechanism.eigenvalue_epsilon(plan.cost)
        noisy = [eigenvalues + generator.laplace(0.0, scale, d) for _ in range(mechanism.draws)]
        u = plane_direction(mechanism.temperature(plan.cost, plan.neighbors) * gram, generator)
        basis = np.column_stack([u, [-u[1], u[0]]])
        estimate = (basis * noisy[-1]) @ basis.T
        # What the directions' budget was allocated by, and what the eigenvalues are read from.
        return (estimate + estimate.T) / 2.0, {"allocated_by": noisy[0], "eigenvalues": noisy[-1], "vectors": basis}

    def eigenvalue_epsilon(self, cost: PrivacyBudget) -> float:
        return self.share * cost.epsilon

    def temperature(self, cost: PrivacyBudget, neighbors: Neighbors) -> float:
        return (1.0 - self.share) * cost.epsilon * (1.0 if neighbors is Neighbors.ADD_REMOVE else 0.5)

    def exact_epsilon(self, cost: PrivacyBudget, first: np.ndarray, second: np.ndarray) -> float:
        """Largest log-ratio of the joint density of what is released, add-remove, ``second`` ⪰ ``first``, by its factors."""
        shift = np.abs(np.linalg.eigvalsh(second) - np.linalg.eigvalsh(first)).sum()
        t = self.temperature(cost, Neighbors.ADD_REMOVE)
        return self.draws * self.eigenvalue_epsilon(cost) * float(shift) + bingham_epsilon(t * first, t * second)


@dataclass(frozen=True)
class EigenvaluesTwice(EigenvaluesOnce):
    """Draws the noisy eigenvalues once for the allocation and once more for the estimate: 1.5 ε at a share of one half."""

    draws: ClassVar[int] = 2


class HotDirectionsPlan(IterativeEigenvectorsPlan):
    def run(self, rows, privacy_filter):
        return super().run(rows, Hotter(privacy_filter, self.mechanism.factor))


@dataclass(frozen=True)
class HotDirections(RunBy, IterativeEigenvectors):
    """Draws directions at a higher temperature than it calibrates, pays for and reports."""

    run_by = HotDirectionsPlan
    factor: float = 2.0


class UnpricedEigenvectorsPlan(IterativeEigenvectorsPlan):
    def run(self, rows, privacy_filter):
        return super().run(rows, Unpriced(privacy_filter))


@dataclass(frozen=True)
class WrongTemperature(IterativeEigenvectors):
    """Calibrates directions to twice their part of ε (ρ: four times), and reports the temperatures that follow."""

    def calibrate(self, shape, budget, neighbors):
        plan = super().calibrate(shape, budget, neighbors)
        part = plan.direction_budget
        hot = replace(part, epsilon=2.0 * part.epsilon) if plan.pure else replace(part, rho=4.0 * part.rho)
        return as_a(plan, UnpricedEigenvectorsPlan, direction_budget=hot)


class RedrawnEigenvaluesPlan(IterativeEigenvectorsPlan):
    def run(self, rows, privacy_filter):
        gram = unit_gram(rows)
        count = self.released_count(rows.moments().count, privacy_filter)
        first = self._noisy_eigenvalues(gram, count, Unpriced(privacy_filter))
        noisy = super().run(rows, privacy_filter)
        return replace(noisy, diagnostics={**noisy.diagnostics, "allocated_by": first})


class RedrawnEigenvalues(RunBy, IterativeEigenvectors):
    """The shipped mechanism, with noisy eigenvalues drawn once more, unpaid, and reported."""

    run_by = RedrawnEigenvaluesPlan


# Outputs beside the moments -------------------------------------------------------------------------------------------


class TellingDiagnosticPlan(AdditivePlan):
    def run(self, rows, privacy_filter):
        noisy = super().run(rows, privacy_filter)
        return replace(noisy, diagnostics={"clipped": {"rows": rows.moments().clipped}})


class TellingDiagnostic(RunBy, MatrixLaplace):
    """Reports the exact number of clipped rows among the diagnostics."""

    run_by = TellingDiagnosticPlan


class TellingErrorPlan(AdditivePlan):
    def run(self, rows, privacy_filter):
        if rows.moments().clipped:
            raise ValueError("a row is longer than 1")
        return super().run(rows, privacy_filter)


class TellingError(RunBy, MatrixLaplace):
    """Refuses tables with a long row after reading them."""

    run_by = TellingErrorPlan


# Floating point -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TellingLastBits(GramMechanism):
    """V Vᵀ for a uniformly rotated eigenbasis V of G: the identity in real arithmetic, whatever the table.

    In floating point the entries are 1 or 1 ± 2^−53, how often depends on the eigenbasis.
    """

    @staticmethod
    def release(gram, plan, generator):
        del plan
        angle = generator.uniform(0.0, 2.0 * np.pi)
        rotation = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        frame = np.linalg.eigh(gram)[1] @ rotation
        return frame @ frame.T


# The table of faults ------------------------------------------------------------------------------------------------------


def effort(warm_up: int, draws: int) -> AuditEffort:
    return AuditEffort(warm_up, draws, 1)


TINY_EFFORT, SMALL_EFFORT = effort(200, 1500), effort(600, 3000)


@dataclass(frozen=True)
class Fault:
    """One fault as the audit is to find it.

    ``actual`` is the ε really spent, where a closed form is known. ``pairs`` names the pairs to look at (all if empty) and
    ``effort`` is what suffices to find it. ``seen_by``: "events" on the outputs, a "measured" parameter of the draws (the
    rate of noise, the temperature of directions), or the "stated laws" of the draws alone.
    """

    words: str
    mechanism: Mechanism
    budget: PrivacyBudget
    neighbors: Neighbors
    actual: float | None
    effort: AuditEffort = SMALL_EFFORT
    pairs: tuple[str, ...] = ()
    mean: bool = False
    n_features: int = 2
    seen_by: str = "events"

    @property
    def id(self) -> str:
        return f"{self.mechanism.name}-{self.budget}-{self.neighbors}"

    def audit(
        self, generator: np.random.Generator, effort: AuditEffort | None = None, *, level: float = LEVEL
    ) -> AuditResult:
        chosen = [
            pair
            for pair in _default_pairs(self.n_features, self.budget, self.neighbors)
            if not self.pairs or pair.name in self.pairs
        ]
        return audit(
            self.mechanism,
            self.budget,
            self.neighbors,
            generator,
            mean=self.mean,
            effort=effort or self.effort,
            pairs=chosen,
            level=level,
        )


ADD_REMOVE, REPLACE_ONE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
pure = PrivacyBudget.pure
ONE, WITH_DELTA, HALF_RHO = pure(1.0), PrivacyBudget.approximate(1.0, 0.01), PrivacyBudget.zcdp(0.5)
LONE, SWAPPED = ("no row | one row",), ("leading eigenvalues 50, 49 | swapped",)
TWO_ROWS, ORTHOGONAL = ("no row | 2 equal rows",), ("lone row | its orthogonal",)
HEAVY = {
    ADD_REMOVE: ("heavy axis | one row more along it", "one row on every axis | one more"),
    REPLACE_ONE: ("heavy axis | a canary orthogonal to it", "many rows on every axis and one more | elsewhere"),
}
"""Where a direction costs nearly all that it may, under pure ε and under zCDP."""


def gaussian_actual(factor: float) -> float:
    """ε at δ = 0.01 of Gaussian noise ``factor`` times too small for WITH_DELTA."""
    return gaussian_epsilon(0.01, factor, gaussian_noise_scale(1.0, 0.01, 1.0))


def misprinted_actual(epsilon: float, d: int, m: int) -> float:
    """Log-ratio at the first axis, C = diag(m, m − 1, 0, …) against the first two swapped: t + d·log(1 + 2t/b), t = ε/4."""
    t = epsilon / 4.0
    b = envelope_parameter(t * np.array([0.0, 1.0, *[float(m)] * (d - 2)]))
    return t + d * float(np.log1p(2.0 * t / b))


def hot_actual(budget: PrivacyBudget, neighbors: Neighbors) -> float:
    """What directions at twice the temperature spend with the rest, on the worse of the pairs named in HEAVY."""
    chosen = [pair for pair in neighboring_pairs(2, neighbors) if pair.name in HEAVY[neighbors]]
    return max(
        one_direction_epsilon(
            trial.plan,
            trial.first.moments(),
            trial.second.moments(),
            trial.delta,
            strength=2.0 * stated_temperature(trial.plan),
        )
        for trial in make_trials(IterativeEigenvectors(), budget, chosen, mean=False)
    )


def twice_actual(mechanism: EigenvaluesOnce, epsilon: float) -> float:
    """On no row against one row."""
    return mechanism.exact_epsilon(PrivacyBudget.pure(epsilon), np.zeros((2, 2)), np.diag([1.0, 0.0]))


HALF = "half the noise scale"
OF_ANOTHER = "sensitivity of the wrong neighbor: add-remove noise under replace-one"
DRAWN_TWICE = "noisy eigenvalues drawn twice"
CALIBRATED = "directions calibrated to twice their part of ε"
ONE_SIDED = "one-sided Wishart noise"
FAULTS = (
    Fault(
        "acceptance of the Bingham sampler as misprinted",
        MisprintedDirection(),
        pure(4.0),
        REPLACE_ONE,
        misprinted_actual(4.0, 10, 50),
        effort(1000, 5000),
        SWAPPED,
        n_features=10,
    ),
    Fault(HALF, HalfGaussian(), WITH_DELTA, ADD_REMOVE, gaussian_actual(2.0)),
    Fault(
        HALF,
        HalfGaussian(),
        HALF_RHO,
        REPLACE_ONE,
        gaussian_epsilon(0.01, 2.0, 1.0),
        effort(20, 200),
        ORTHOGONAL,
        seen_by="measured",
    ),
    *(
        Fault(
            HALF,
            mechanism,
            ONE,
            ADD_REMOVE,
            2.0,
            effort(20, 200),
            ("no row | one row along the diagonal", "no row | one row"),
            seen_by="measured",
        )
        for mechanism in (HalfLaplace(), HalfIsotropic(), HalfMatrixLaplace())
    ),
    Fault(
        OF_ANOTHER,
        WrongNeighborGaussian(),
        WITH_DELTA,
        REPLACE_ONE,
        gaussian_actual(2.0**0.5),
        effort(2000, 20_000),
        ORTHOGONAL,
    ),
    Fault(OF_ANOTHER, WrongNeighborMatrixLaplace(), pure(2.0), REPLACE_ONE, 4.0, effort(2000, 20_000), ORTHOGONAL),
    Fault(
        DRAWN_TWICE,
        EigenvaluesTwice(),
        pure(3.0),
        ADD_REMOVE,
        twice_actual(EigenvaluesTwice(), 3.0),
        effort(4000, 60_000),
        LONE,
    ),
    Fault(DRAWN_TWICE, EigenvaluesTwice(), ONE, ADD_REMOVE, 1.5, effort(8000, 100_000), TWO_ROWS),
    Fault(DRAWN_TWICE, EigenvaluesTwice(share=0.8), ONE, ADD_REMOVE, 1.8, effort(1000, 5000), TWO_ROWS),
    Fault(
        "noisy eigenvalues drawn twice, in the shipped mechanism",
        RedrawnEigenvalues(eigenvalue_share=0.8),
        ONE,
        ADD_REMOVE,
        1.8,
        effort(1000, 4000),
        TWO_ROWS,
    ),
    *(
        Fault(
            "directions drawn at twice the temperature that is paid for and reported",
            HotDirections(),
            budget,
            neighbors,
            hot_actual(budget, neighbors),
            # Under zCDP the worst pair has a small gap, which shows the temperature less clearly.
            effort(40, 600 if budget.kind is BudgetKind.PURE else 2500),
            HEAVY[neighbors],
            seen_by="measured",
        )
        for budget in (pure(0.1), ONE, pure(4.0), HALF_RHO)
        for neighbors in Neighbors
    ),
    Fault(
        CALIBRATED,
        WrongTemperature(),
        ONE,
        ADD_REMOVE,
        hot_actual(ONE, ADD_REMOVE),
        effort(20, 20),
        HEAVY[ADD_REMOVE],
        seen_by="stated laws",
    ),
    Fault(
        CALIBRATED,
        WrongTemperature(),
        HALF_RHO,
        REPLACE_ONE,
        hot_actual(HALF_RHO, REPLACE_ONE),
        effort(20, 20),
        HEAVY[REPLACE_ONE],
        seen_by="stated laws",
    ),
    Fault(ONE_SIDED, OneSidedWishart(), ONE, ADD_REMOVE, np.inf, TINY_EFFORT),
    Fault(ONE_SIDED, OneSidedWishart(), ONE, REPLACE_ONE, np.inf, TINY_EFFORT),
    Fault("rows that are not clipped", UnclippedRows(), ONE, ADD_REMOVE, np.inf, TINY_EFFORT),
    Fault("clipping at a private number of rows", PrivateCountClip(), ONE, ADD_REMOVE, np.inf, TINY_EFFORT),
    Fault(
        "a dropped row encoded as 0 and left out of a public count",
        KeptCount(),
        WITH_DELTA,
        REPLACE_ONE,
        np.inf,
        TINY_EFFORT,
        mean=True,
    ),
    Fault("an exact count among the diagnostics", TellingDiagnostic(), ONE, ADD_REMOVE, np.inf, TINY_EFFORT, mean=True),
    Fault(
        "last bits of a floating-point output: nothing is spent in real arithmetic",
        TellingLastBits(),
        ONE,
        REPLACE_ONE,
        None,
    ),
    Fault("an error that depends on the rows", TellingError(), ONE, REPLACE_ONE, np.inf, TINY_EFFORT, mean=True),
)

CONTROLS = (
    Fault(
        "none: the exact Bingham sampler", ExactDirection(), pure(4.0), REPLACE_ONE, 1.0, pairs=SWAPPED, n_features=10
    ),
    Fault(
        "none: noisy eigenvalues drawn once",
        EigenvaluesOnce(),
        pure(3.0),
        ADD_REMOVE,
        twice_actual(EigenvaluesOnce(), 3.0),
        effort(1000, 5000),
        LONE,
    ),
)
"""The same without the fault: what they really spend is below what they state, and the audit must not say otherwise."""
