"""Ridge regression from one released second moment, or with noise on its weights (Amin et al. 2019, C.2), rows replaced.

The error is the mean squared residual of the test rows, one metric for each α of ‖Xw − y‖² + α‖w‖². Panel: ``table`` (with ``n``
and ``d``, rows to train on, where it is synthetic) and ``targets``, the first column or all of them in turn; x is ε. A
method is as for ``second_moments``, or a ``perturbation`` of the weights, or ``knows`` the training rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from benchmarks.papers.reproduce.declaration import Method, Point
from benchmarks.papers.reproduce.experiments import tables
from benchmarks.papers.reproduce.experiments.second_moments import released_gram
from benchmarks.papers.summed_once import SummedOnce, summed_once
from benchmarks.practice.regression.methods import constrained_ridge, minimiser_sensitivity, vector_noise
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors

ALPHAS = (0.1, 1.0, 10.0, 100.0, 1000.0)
TRAINING = 0.8
"""Share of the rows, of real tables; a synthetic one has its n for training and a quarter of that to test on."""
BOUND = 1.0
"""W, the public bound on the weights that output perturbation needs under squared loss."""


def metric(alpha: float) -> str:
    return f"α = {alpha:g}"


@dataclass(frozen=True, eq=False)
class Split:
    """A table in two parts: sums of one, the mean second moment of the other."""

    training: SummedOnce
    tested: np.ndarray

    def loss(self, weights: np.ndarray, target: int) -> float:
        """Mean squared residual of the test rows; ``weights`` are those of all features, that of the target −1."""
        assert weights[target] == -1.0
        return float(weights @ self.tested @ weights)


@lru_cache(maxsize=6)
def split(name: str, n_rows: int | None, n_features: int | None) -> Split:
    table = tables.table(name, None if n_rows is None else n_rows + n_rows // 4, n_features)
    order = np.random.default_rng([len(table), 5]).permutation(len(table))
    trained = int(TRAINING * len(table))
    test = table[order[trained:]]
    return Split(summed_once(table[order[:trained]]), test.T @ test / len(test))


def measure(point: Point, methods: Sequence[Method]) -> Iterator[tuple[str, str, float]]:
    name, n, d = (point.settings.get(known) for known in ("table", "n", "d"))
    parts = split(name, n, d)
    targets = range(parts.training.n_features) if point.settings["targets"] == "all" else range(1)
    for method in methods:
        seed = point.seed(method.label, dict(method.settings))
        if "perturbation" in method.settings:
            rng, bounded = np.random.default_rng(seed), method.settings["perturbation"] == "bounded"
            for alpha in ALPHAS:
                yield method.label, metric(alpha), perturbed((name, n, d), bounded, alpha, point.x, targets, rng)
            continue
        known = method.settings.get("knows")
        gram = parts.training.gram if known else released_gram(parts.training, method, point.x, seed)
        for alpha in ALPHAS:
            weights = np.zeros_like(gram) if known == "nothing" else ridge_of_every_target(gram, alpha)
            losses = [parts.loss(with_target(weights[:, target], target), target) for target in targets]
            yield method.label, metric(alpha), float(np.mean(losses))


def with_target(weights: np.ndarray, target: int) -> np.ndarray:
    """Weights of the residual: −1 for the target."""
    found: np.ndarray = weights.copy()
    found[target] = -1.0
    return found


def ridge_of_every_target(gram: np.ndarray, alpha: float) -> np.ndarray:
    """Column j: weights of the others for target j, (G_AA + αI)⁻¹G_Aj = −K_Aj/K_jj, K = (G + αI)⁻¹ (a block inverse)."""
    inverse = np.linalg.inv(gram + alpha * np.eye(len(gram)))
    found: np.ndarray = -inverse / np.diag(inverse)
    return found


Which = tuple[str, int | None, int | None]
"""Name and size of a table."""


def perturbed(
    which: Which, bounded: bool, alpha: float, epsilon: float, targets: Sequence[int], rng: np.random.Generator
) -> float:
    """P: the weights with noise on them, an equal part of ε for each target."""
    sensitivity = minimiser_sensitivity(alpha, BOUND, Neighbors.REPLACE_ONE) if bounded else 1.0 / alpha
    budget = PrivacyBudget.pure(epsilon)
    exact = exact_weights(*which, alpha, bounded, len(targets))
    losses = []
    for target in targets:
        drawn = vector_noise((len(exact) - 1, 1), sensitivity, budget, 1.0 / len(targets), rng)[:, 0]
        weights = exact[:, target] + np.insert(drawn, target, 0.0)
        losses.append(split(*which).loss(with_target(weights, target), target))
    return float(np.mean(losses))


@lru_cache(maxsize=64)
def exact_weights(name: str, n: int | None, d: int | None, alpha: float, bounded: bool, n_targets: int) -> np.ndarray:
    """What the noise is added to, a column for each of the first targets."""
    gram = split(name, n, d).training.gram
    if not bounded:
        return ridge_of_every_target(gram, alpha)
    found = np.zeros_like(gram)
    for target in range(n_targets):
        others = np.delete(np.arange(len(gram)), target)
        found[others, target] = constrained_ridge(gram[np.ix_(others, others)], gram[others, target], alpha, BOUND)
    return found
