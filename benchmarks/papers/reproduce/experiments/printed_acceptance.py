"""Iterative eigenvectors with directions by the acceptance that Amin et al. print: **not** ε-DP, for comparison alone."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from benchmarks.papers.amin.misprinted_bingham import printed_law, successive_directions
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.laws import Directions
from dpmoments.papers.mechanisms.eigenvectors import IterativeEigenvectors, IterativeEigenvectorsPlan
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import noised, without_low_bits
from dpmoments.privacy.sensitivity import Sensitivity
from dpmoments.privacy.unit import Neighbors


class PrintedDirections(Directions):
    """Priced like the right law, as the paper prices it, and drawn by the law of the printed acceptance."""


@noised.register
def _(law: PrintedDirections, query: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    gram = np.asarray(query, dtype=np.float64)
    drawn = successive_directions(gram, law.temperatures, lambda gaps: printed_law(gaps, 1, generator)[0])
    return without_low_bits(drawn)


@dataclass(frozen=True)
class PrintedAcceptance:
    """Asks a filter for directions by the printed law where the plan asks for the right one."""

    privacy_filter: PrivacyFilter

    def draw(self, what: str, law: Directions, query: np.ndarray, sensitivity: Sensitivity) -> np.ndarray:
        printed = PrintedDirections(law.temperatures, law.n_features, law.projected)
        return self.privacy_filter.draw(what, printed, query, sensitivity)


class MisprintedPlan(IterativeEigenvectorsPlan):
    """The same temperatures, directions by the law of the printed acceptance."""

    def draw_directions(
        self, gram: np.ndarray, eigenvalues: np.ndarray, privacy_filter: PrivacyFilter
    ) -> tuple[np.ndarray, list[float]]:
        return super().draw_directions(gram, eigenvalues, PrintedAcceptance(privacy_filter))


class Misprinted(IterativeEigenvectors):
    """:class:`IterativeEigenvectors` with the printed acceptance."""

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> MisprintedPlan:
        plan = super().calibrate(shape, budget, neighbors)
        return MisprintedPlan(**{option.name: getattr(plan, option.name) for option in fields(plan)})
