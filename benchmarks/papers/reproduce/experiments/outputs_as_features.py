"""One output on the base features and k other outputs, whose coefficients should come out 0 (Sheffet 2015, section 6.2).

As ``regressions``, and beside the error of every method: the norm of its coefficients on the other outputs; with the most of
them, how many coefficients the lasso sets to 0; of Gaussian noise that gets cI, whether the draw needed it; of
least squares, the share of rows beyond the bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import lasso_path

from benchmarks.papers.reproduce.declaration import Method, Point
from benchmarks.papers.reproduce.experiments.regressions import ADD_REMOVE, estimated, with_its_plan
from benchmarks.papers.sheffet.techniques import BASE, OUTPUTS, Experiment, outputs_as_features
from benchmarks.papers.summed_once import SummedOnce, summed_once
from dpmoments.moments.repair import clip
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator

SPURIOUS, NEEDED, CLIPPED = "norm on the other outputs", "needed cI", "rows clipped"
BASE_ZEROS, OTHER_ZEROS = "base features at 0", "other outputs at 0"
MOST = OUTPUTS - 1
"""The k of the lasso."""
SCALED = "Gaussian noise, cI, c from the noise"


def measure(point: Point, methods: Sequence[Method]) -> Iterator[tuple[str, str, float]]:
    """One release a method: of all columns, whatever k."""
    others, n = int(point.settings["others"]), int(point.x)
    model = outputs_as_features(others)
    table = model.table(n, point.rng("table", of=("model",)))
    beyond = float(np.mean(np.einsum("ij,ij->i", table, table) > 1.0))
    rows = summed_once(table, ADD_REMOVE)
    del table
    found: dict[str, int] = {}
    (regression,) = model.regressions
    truth = regression.coefficients(model.covariance)
    for method in methods:
        estimate = estimated(rows, model, n, method.settings, point, found)
        difference = regression.coefficients(estimate) - truth
        yield method.label, "error", float(np.linalg.norm(difference))
        yield method.label, SPURIOUS, float(np.linalg.norm(difference[1 + BASE :]))
        if method.settings.get("knows") == "rows":
            yield method.label, CLIPPED, beyond
        if method.settings.get("technique") == SCALED:
            yield method.label, NEEDED, float(needed_repair(rows, model, n, method, point))
        if others == MOST:
            zeros = lasso(estimate, n)
            yield method.label, BASE_ZEROS, float(zeros.base)
            yield method.label, OTHER_ZEROS, float(zeros.others)


def needed_repair(rows: SummedOnce, model: Experiment, n: int, method: Method, point: Point) -> bool:
    """Whether the release of this trial, drawn again from its seed, is changed by its repair."""
    asked = method.settings
    technique, plan = with_its_plan(
        asked["technique"], asked["calibration"], model.name, n, float(point.settings["epsilon"])
    )
    generator = insecure_generator(point.seed("noise", dict(asked), of=("model", "epsilon")))
    drawn = plan.run(rows, PrivacyFilter(plan, generator)).gram
    return not np.array_equal(technique.repair(drawn, plan), drawn)


@dataclass(frozen=True)
class Zeros:
    """How many coefficients are 0: of the base features, which all matter, and of the other outputs, which do not."""

    base: int
    others: int


def lasso(matrix: np.ndarray, n: int) -> Zeros:
    """The lasso on a second moment, the intercept not penalised, features standardised, the penalty by the least BIC.

    A positive semi-definite S is RᵀR, so that columns of R are a table of which S is the exact second moment. Negative
    eigenvalues are set to 0.
    """
    (regression,) = outputs_as_features(MOST).regressions
    eigenvalues, vectors = np.linalg.eigh(clip(matrix))
    columns = np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T
    constant = columns[:, :1]
    residual = columns - constant @ np.linalg.lstsq(constant, columns, rcond=None)[0]
    chosen = list(regression.features[1:])
    lengths = np.linalg.norm(residual[:, chosen], axis=0)
    features = residual[:, chosen] / np.where(lengths > 0.0, lengths, 1.0)
    target = residual[:, regression.target] / np.linalg.norm(residual[:, regression.target])
    largest = np.abs(features.T @ target).max() / len(features)  # the least penalty at which every coefficient is 0
    _, path, _ = lasso_path(features, target, alphas=largest * np.geomspace(1.0, 1e-4, 100), max_iter=20_000)
    # What is left of the target, as a share; a singular matrix may leave nothing, which no table of n rows does.
    left = np.maximum(((target[:, None] - features @ path) ** 2).sum(axis=0), 1e-6)
    best = path[:, np.argmin(n * np.log(left) + math.log(n) * (path != 0.0).sum(axis=0))]
    return Zeros(int((best[:BASE] == 0.0).sum()), int((best[BASE:] == 0.0).sum()))
