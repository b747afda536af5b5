"""The picture of docs/how-it-works.md: the steps of one release of two columns, with its own noisy numbers.

python -m benchmarks.practice.how_it_works
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, Ellipse, Rectangle

import dpmoments as dpm

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "how-it-works.png"
ROWS, RELEASED, CLIPPED = "#8a8f98", "#1f5fa8", "#c2410c"


def table() -> np.ndarray:
    """Return 1,000 made-up rows of age and pay, in thousands: correlated, and with a long tail of pay."""
    rng = np.random.default_rng(3)
    age, luck = rng.normal(45, 11, 1000), rng.standard_normal(1000)
    return np.column_stack([age, np.exp(3.3 + 0.012 * (age - 45) + 0.45 * luck)])


def ellipse(mean: np.ndarray, covariance: np.ndarray, **style: object) -> Ellipse:
    """Return the ellipse of two standard deviations."""
    values, vectors = np.linalg.eigh(covariance)
    width, height = 4 * np.sqrt(np.maximum(values, 0))
    angle = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0]))
    return Ellipse(tuple(mean), width, height, angle=float(angle), fill=False, **style)


def main() -> None:
    """Draw the three panels."""
    rows = table()
    schema = dpm.Schema(dpm.Numeric("age", 18, 100), dpm.Numeric("pay", 0, 200))
    release = dpm.release(rows, schema, epsilon=1.0, insecure_seed=4)
    stored = release.to_dict()
    offset, scale = (np.array(stored["features"][name]) for name in ("offset", "scale"))
    center = offset + scale * np.array(stored["center"])
    scales = scale * np.array(stored["noise"]["scales"])
    radius = float(np.sqrt(stored["diagnostics"]["squared_radius"]))

    figure, (first, second, third) = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
    first.scatter(*rows.T, s=4, color=ROWS, linewidths=0)
    first.add_patch(Rectangle((18, 0), 82, 200, fill=False, color="black", linestyle=":"))
    first.errorbar(*center, xerr=scales[0], yerr=scales[1], color=RELEASED, capsize=4, linewidth=2)
    first.set(xlim=(14, 104), ylim=(-8, 208), xlabel="age", ylabel="pay")
    first.set_title("1  Rough center and scales,\nwith noise; dotted: public bounds", loc="left", fontsize=10)

    standardized = (rows - center) / scales
    lengths = np.linalg.norm(standardized, axis=1)
    inside = lengths <= radius
    moved = standardized[~inside] * (radius / lengths[~inside])[:, None]
    second.scatter(*standardized[inside].T, s=4, color=ROWS, linewidths=0)
    for before, after in zip(standardized[~inside], moved, strict=True):
        second.plot(*np.column_stack([before, after]), color=CLIPPED, linewidth=0.6, alpha=0.7)
    second.scatter(*moved.T, s=5, color=CLIPPED, linewidths=0)
    second.add_patch(Circle((0, 0), radius, fill=False, color=RELEASED, linewidth=1.5))
    second.set(xlabel="age, in rough scales", ylabel="pay, in rough scales", aspect="equal")
    second.set_title(
        f"2  Standardized rows; {(~inside).sum()} of {len(rows):,}\nare clipped to the ball", loc="left", fontsize=10
    )

    third.scatter(*rows.T, s=4, color=ROWS, linewidths=0, alpha=0.4)
    third.add_patch(ellipse(rows.mean(axis=0), np.cov(rows.T), linestyle="--", color="black", label="the table"))
    released = ellipse(release.mean, release.covariance, color=RELEASED, linewidth=2, label="the release, ε = 1")
    third.add_patch(released)
    third.set(xlim=(14, 84), ylim=(-8, 100), xlabel="age", ylabel="pay")
    third.legend(loc="upper left", fontsize=8, frameon=False)
    third.set_title("3  Sums with noise, repaired:\nmeans and covariance (2 SDs)", loc="left", fontsize=10)
    for axes in (first, second, third):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=100)


if __name__ == "__main__":
    main()
