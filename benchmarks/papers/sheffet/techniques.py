"""The tables of Sheffet's experiments, what is asked of them, and every technique that answers.

Read by ``benchmarks.papers.reproduce`` and the benchmarks of this folder; nothing runs here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import invwishart, wishart

import dpmoments as dpm
from dpmoments import mechanisms
from dpmoments.mechanisms.additive import AdditivePlan, GaussianNoise
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.repair import Repair as Names
from dpmoments.moments.repair import clip, repair_gram
from dpmoments.papers.mechanisms.eigenvectors import EntrywiseGaussian
from dpmoments.papers.repairs import noise_shift, shift, shrink
from dpmoments.privacy.curves import additive_wishart_degrees
from dpmoments.privacy.sensitivity import gram_frobenius
from dpmoments.privacy.unit import Neighbors

DELTA = 1e-6
PAPER, EXACT = "paper", "exact"


# --- tables and what is asked of them -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Regression:
    """One target column, the columns it is regressed on, and how the error is measured."""

    features: tuple[int, ...]
    target: int
    predictions: bool
    """Measure ‖X(β̂ − β)‖/‖Xβ‖ over the table instead of ‖β̂ − β‖/‖β‖."""

    def coefficients(self, gram: np.ndarray) -> np.ndarray:
        """Least squares from a Gram matrix (least norm where it is singular)."""
        chosen = list(self.features)
        found: np.ndarray = np.linalg.lstsq(gram[np.ix_(chosen, chosen)], gram[chosen, self.target], rcond=1e-12)[0]
        return found

    def error(self, estimate: np.ndarray, exact: np.ndarray, truth: np.ndarray) -> float:
        """Relative error of what ``estimate`` gives against ``truth``, the coefficients from the ``exact`` Gram matrix."""
        found = self.coefficients(estimate)
        if not self.predictions:
            return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))
        chosen = list(self.features)
        moments = exact[np.ix_(chosen, chosen)], exact[chosen, self.target]
        fitted, nothing = (dpm.metrics.excess_ridge_risk(w, *moments) for w in (found, np.zeros_like(truth)))
        return math.sqrt(fitted / nothing)


@dataclass(frozen=True)
class Experiment:
    """Normal rows of mean zero with a known covariance, divided by a public bound on their norm, and what is asked of them.

    With an ``intercept`` column 0 is 1 in every row; ``covariance`` is the second moment, where it is a column like the others.
    """

    name: str
    covariance: np.ndarray
    row_bound: float
    regressions: tuple[Regression, ...]
    intercept: bool = False

    def table(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """The n rows; those beyond the bound are clipped when they are read."""
        rows: np.ndarray = rng.standard_normal((n, len(self.covariance)))
        if self.intercept:
            rows[:, 0] = 1.0
        rows = rows @ np.linalg.cholesky(self.covariance).T
        rows /= self.row_bound
        return rows

    def asserted_eigenvalue(self, n: int) -> float:
        """What the model lets one assert without the table: half of the expected smallest eigenvalue."""
        return 0.5 * n * float(np.linalg.eigvalsh(self.covariance)[0]) / self.row_bound**2

    def errors(self, estimates: Sequence[np.ndarray], exact: np.ndarray) -> list[float]:
        """Of each estimate, the mean of the relative errors of the regressions."""
        truths = [regression.coefficients(exact) for regression in self.regressions]
        asked = list(zip(self.regressions, truths, strict=True))
        return [
            float(np.mean([regression.error(estimate, exact, truth) for regression, truth in asked]))
            for estimate in estimates
        ]


def multiple_regressions(predictions: bool) -> Experiment:
    """5 base features, 5 nearly collinear ones, 4 targets.

    Column 5 + j is (x_j + x_{j+1})/√2 plus noise of standard deviation 0.1. Each target is a combination of base features with
    noise of standard deviation ½. With ``predictions`` the targets are regressed on all ten features and their predictions
    compared; else on the five base features, and the coefficients are compared.
    """
    mixing = np.zeros((14, 14))
    mixing[:5, :5] = np.eye(5)
    for j in range(5):
        mixing[5 + j, [j, (j + 1) % 5]] = math.sqrt(0.5)
        mixing[5 + j, 5 + j] = 0.1
        if j < 4:
            weights = np.cos(np.arange(5) * (j + 1.0))
            mixing[10 + j, :5] = weights / np.linalg.norm(weights)
            mixing[10 + j, 10 + j] = 0.5
    features = tuple(range(10 if predictions else 5))
    regressions = tuple(Regression(features, target, predictions) for target in range(10, 14))
    return Experiment("collinear" if predictions else "base", mixing @ mixing.T, 8.0, regressions)


BASE, OUTPUTS = 10, 10


def outputs_as_features(others: int) -> Experiment:
    """Section 6.2: one of 10 outputs on the intercept, the 10 base features and ``others`` of the other outputs.

    An output is β₀ + xᵀβ + noise of standard deviation ½, ‖(β₀, β)‖ = 1, the x standard normal: given x and the intercept the
    other outputs tell nothing, so that their coefficients are 0. All the tasks share one release of all 21 columns.
    """
    if not 0 <= others < OUTPUTS:
        raise ValueError(
            f"others={others} must be at least 0 and below the {OUTPUTS} outputs: one of them is the target"
        )
    known = 1 + BASE
    directions = np.random.default_rng(62).standard_normal((OUTPUTS, known))
    mixing = np.eye(known + OUTPUTS)
    mixing[known:, :known] = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    mixing[known:, known:] *= 0.5
    features = (*range(known), *range(known + 1, known + 1 + others))
    return Experiment(
        f"outputs-{others}", mixing @ mixing.T, 9.0, (Regression(features, known, predictions=False),), intercept=True
    )


def one_output() -> Experiment:
    """Section 3.1: the first of those outputs on the intercept and the 10 base features, in a table of these 12 columns."""
    model = outputs_as_features(0)
    kept = np.ix_(range(BASE + 2), range(BASE + 2))
    return replace(model, name="one", covariance=model.covariance[kept], row_bound=6.0)


# --- techniques ---------------------------------------------------------------------------------------------------

Repair = Callable[[np.ndarray, Plan], np.ndarray]


def _law_of(plan: Plan) -> NoiseLaw:
    assert isinstance(plan, AdditivePlan)
    return plan.model.law()


def shifted_by_norm(gram: np.ndarray, plan: Plan) -> np.ndarray:
    """Where an eigenvalue is negative add cI, c a 95 % bound on the spectral norm of the noise."""
    return noise_shift(gram, _law_of(plan))


def adapted(gram: np.ndarray, plan: Plan) -> np.ndarray:
    return repair_gram(gram, _law_of(plan), Names.SPECTRAL, None)


def with_its_mean(gram: np.ndarray, plan: Plan) -> np.ndarray:
    """Additive Wishart noise less its mean, its mean added again: as Algorithm 3 draws it."""
    kept: np.ndarray = gram + plan.details["degrees_of_freedom"] * plan.details["scale"] * np.eye(len(gram))
    return kept


@dataclass(frozen=True)
class Technique:
    """A line of the figures: how to plan it and what is done to its output."""

    label: str
    calibration: str
    plan: Callable[[Experiment, int, float, Neighbors], Plan]
    repair: Repair = lambda gram, _: gram


def shape_of(experiment: Experiment, n: int) -> MomentShape:
    # n, a power of two, is public here: the defaults use it to choose degrees of freedom, privacy does not rest on it.
    return MomentShape(len(experiment.covariance), n_rows=n, mean=False)


def planned(mechanism: Mechanism) -> Callable[[Experiment, int, float, Neighbors], Plan]:
    def plan(experiment: Experiment, n: int, epsilon: float, neighbors: Neighbors) -> Plan:
        budget = dpm.PrivacyBudget.approximate(epsilon, DELTA)
        return mechanism.plan(shape_of(experiment, n), budget, neighbors)

    return plan


def analyze_gauss(experiment: Experiment, n: int, epsilon: float, neighbors: Neighbors) -> Plan:
    """Dwork et al. 2014: σ = Δ√(2 ln(1.25/δ))/ε on every cell of the upper triangle."""
    plan = planned(EntrywiseGaussian())(experiment, n, epsilon, neighbors)
    sensitivity = gram_frobenius(neighbors, len(experiment.covariance)).value
    noise_scale = max(sensitivity * math.sqrt(2.0 * math.log(1.25 / DELTA)) / epsilon, plan.noise.noise_scale)
    return replace(plan, noise=GaussianNoise(noise_scale, noise_scale))


def matrix_laplace(experiment: Experiment, n: int, epsilon: float, neighbors: Neighbors) -> Plan:
    """Pure ε: δ is not spent."""
    budget = dpm.PrivacyBudget.pure(epsilon)
    return mechanisms.MatrixLaplace().plan(shape_of(experiment, n), budget, neighbors)


def additive_wishart(calibration: str) -> Callable[[Experiment, int, float, Neighbors], Plan]:
    """Noise of the paper's scale, s² = B²: more degrees of freedom, the library's choice, have a mean that is no use to keep."""

    def plan(experiment: Experiment, n: int, epsilon: float, neighbors: Neighbors) -> Plan:
        if calibration == PAPER:
            return planned(mechanisms.AdditiveWishart(calibration=PAPER))(experiment, n, epsilon, neighbors)
        beyond = additive_wishart_degrees(epsilon, DELTA, 1.0, neighbors)
        mechanism = mechanisms.AdditiveWishart(degrees_of_freedom=len(experiment.covariance) + beyond)
        return planned(mechanism)(experiment, n, epsilon, neighbors)

    return plan


def inverse_gaussian(calibration: str) -> Callable[[Experiment, int, float, Neighbors], Plan]:
    """Noise on the inverse, with the eigenvalue that the model lets one assert."""

    def plan(experiment: Experiment, n: int, epsilon: float, neighbors: Neighbors) -> Plan:
        mechanism = mechanisms.InverseGaussian(experiment.asserted_eigenvalue(n), calibration=calibration)
        return planned(mechanism)(experiment, n, epsilon, neighbors)

    return plan


GAUSS = "Gaussian noise, clipped"
JL_UNBIASED, JL_ADAPTIVE = "JL, fixed r, w²I subtracted", "JL, adaptive"
ADDITIVE, INVERSE = "additive Wishart", "noise on the inverse"
ADDITIVE_AS_DRAWN, INVERSE_WISHART_ADAPTIVE = "additive Wishart, its mean kept", "inverse Wishart, adaptive"
ADAPTED, LAPLACE = "Gaussian noise, adapted", "matrix Laplace (δ = 0), adapted"


def techniques() -> list[Technique]:
    found = []
    for calibration in (PAPER, EXACT):
        paired = {
            JL_UNBIASED: mechanisms.JohnsonLindenstrauss(calibration=calibration),
            JL_ADAPTIVE: mechanisms.JohnsonLindenstrauss(
                adaptive=True, subtract_padding=False, calibration=calibration
            ),
            ADDITIVE: mechanisms.AdditiveWishart(debias="positive-definite", calibration=calibration),
            INVERSE_WISHART_ADAPTIVE: mechanisms.InverseWishart(
                adaptive=True, subtract_padding=False, calibration=calibration
            ),
        }
        gauss = analyze_gauss if calibration == PAPER else planned(mechanisms.Gaussian())
        repairs: dict[str, Repair] = {
            "as drawn": lambda gram, _: gram,
            "clipped": lambda gram, _: clip(gram),
            "cI, least c": lambda gram, _: shift(gram),
            "cI, c from the noise": shifted_by_norm,
            "shrunk": lambda gram, plan: shrink(gram, _law_of(plan)),
            "adapted": adapted,
        }
        found += [
            Technique(f"Gaussian noise, {label}", calibration, gauss, repair) for label, repair in repairs.items()
        ]
        found += [Technique(label, calibration, planned(mechanism)) for label, mechanism in paired.items()]
        found.append(Technique(ADDITIVE_AS_DRAWN, calibration, additive_wishart(calibration), with_its_mean))
        found.append(Technique(INVERSE, calibration, inverse_gaussian(calibration)))
    found.append(Technique(LAPLACE, EXACT, matrix_laplace, adapted))
    return found


# --- what needs no privacy ----------------------------------------------------------------------------------------


def projection_without_a_ridge(gram: np.ndarray, degrees: int, rng: np.random.Generator) -> np.ndarray:
    """The baseline of section 3.2: r random combinations of the rows, **not private**; their Gram matrix over r."""
    found: np.ndarray = np.atleast_2d(wishart(degrees, gram).rvs(random_state=rng)) / degrees
    return found


def posterior_without_a_ridge(gram: np.ndarray, degrees: int, rng: np.random.Generator) -> np.ndarray:
    """The baseline of section 5.1: one draw from the posterior of the covariance under a flat prior, **not private**."""
    found: np.ndarray = np.atleast_2d(invwishart(degrees, gram).rvs(random_state=rng))
    return found
