"""The picture of docs/evidence/regression-coverage.md: error against ε on Adult, and 57 regressions from one release.

python -m benchmarks.practice.one_release_picture
"""

from __future__ import annotations

from typing import Any

import matplotlib as mpl

from benchmarks.pages import EVIDENCE
from benchmarks.papers import datasets as papers_datasets

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import dpmoments as dpm
from dpmoments.papers.mechanisms.eigenvectors import PaperLaplace

OUTPUT = EVIDENCE / "images" / "one-release.png"
EPSILONS = [0.1, 0.2, 0.5, 1.0, 2.0, 4.0]
SERIES = [
    ("Laplace, as published", PaperLaplace(), "clip", "#999999"),
    ("Laplace, tight", dpm.mechanisms.Laplace(), "clip", "#4c78a8"),
    ("matrix Laplace", dpm.mechanisms.MatrixLaplace(), "clip", "#f58518"),
    ("matrix Laplace, repaired", dpm.mechanisms.MatrixLaplace(), "auto", "#54a24b"),
]
TRIALS = 5
ALPHA = 0.01


def error_curves(axis: plt.Axes) -> None:
    """Mean of ‖Ĉ − C‖_F/n over trials, second moment alone, replace-one."""
    rows = papers_datasets.standardized_unit_rows(dpm.datasets.adult(), include_target=True)
    truth = rows.T @ rows / len(rows)
    schema = dpm.Schema.unit_ball(rows.shape[1])

    def error(seed: int, **options: Any) -> float:
        released = dpm.release(rows, schema, neighbors="replace_one", mean=False, insecure_seed=seed, **options)
        return dpm.metrics.normalized_frobenius_error(released.second_moment, truth)

    for label, mechanism, repair, color in SERIES:
        options = {"mechanism": mechanism, "repair": repair}
        errors = [np.mean([error(seed, epsilon=epsilon, **options) for seed in range(TRIALS)]) for epsilon in EPSILONS]
        axis.loglog(EPSILONS, errors, "o-", color=color, label=label)
    axis.set_xlabel("ε (pure differential privacy)")
    axis.set_ylabel("error of the second moment, ‖Ĉ − C‖_F / n")
    axis.set_title("Adult: 45,222 people, 106 features")
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3, which="both")


def many_regressions(axis: plt.Axes) -> None:
    """R² of a ridge regression of every feature on all other columns, from one release and from the table."""
    people = dpm.datasets.adult()
    options = dict(neighbors="replace_one", insecure_seed=0)
    released = dpm.release(people.frame, people.schema, epsilon=1.0, **options)
    exact = dpm.release(people.frame, people.schema, epsilon=1e12, **options)
    pairs = []
    for name in released.feature_names:
        index = released.feature_names.index(name)
        if exact.covariance[index, index] < 0.01 * exact.schema.encoding().unit[index] ** 2:
            continue  # rarer than one in a hundred: there is nothing to explain
        pairs.append([source.ridge(name, alpha=ALPHA).r_squared for source in (exact, released)])
    table, release = np.array(pairs).T
    axis.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1)
    axis.plot(table, release, "o", color="#54a24b", alpha=0.8)
    axis.set_xlabel("R² on the table itself")
    axis.set_ylabel("R² from the release")
    axis.set_title(f"{len(pairs)} ridge regressions from one release at ε = 1")
    axis.grid(alpha=0.3)


if __name__ == "__main__":
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
    error_curves(axes[0])
    many_regressions(axes[1])
    figure.savefig(OUTPUT, dpi=130)
