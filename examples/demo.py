"""The main job on a real table: release Adult once at ε = 1, then two regressions, a principal component analysis
and a page to read it by.

Run it with `make demo`. The table is public, so the demo can show the answers from the table beside those from the release.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import dpmoments as dpm

EPSILON = 1.0


def main(folder: Path) -> None:
    """Release Adult into ``folder`` and analyze the release."""
    folder.mkdir(parents=True, exist_ok=True)
    people = dpm.datasets.adult()
    print(
        f"The table: {people.frame.num_rows:,} people, {len(people.schema.columns)} columns (Adult, US census 1994)\n"
    )

    print(dpm.forecast(people.schema, n_rows=people.frame.num_rows, epsilon=EPSILON, neighbors="replace_one"), "\n")

    path = folder / "adult.json"
    path.unlink(missing_ok=True)  # the table is public: making the release again costs nobody anything
    started = time.perf_counter()
    release = dpm.release(people.frame, people.schema, epsilon=EPSILON, neighbors="replace_one", output=path)
    print(f"Released in {time.perf_counter() - started:.2f} s: {release}\n")
    print(release.privacy.describe(), "\n")

    # From here on only the file is used, as an analyst would.
    release = dpm.load(path)
    hours = release.ols("`hours-per-week` ~ age + `education-num` + C(sex) + income")
    income = release.ols("income", ["age", "education-num", "hours-per-week", "marital-status"])
    exact = dpm.release(people.frame, people.schema, epsilon=1e12, neighbors="replace_one", insecure_seed=0)
    for fit in (hours, income):
        print(fit)
        without_noise = exact.ols(fit.target, list(fit.features))
        print(f"  from the table itself: {np.array2string(without_noise.coefficients, precision=4)}\n")

    print(release.group_means("sex", of=["hours-per-week", "income"]), "\n")

    components = release.pca(3, scaling="bounds")
    print("Principal components (numeric columns scaled by their bounds)")
    print(components.summary())
    overlap = np.abs(np.sum(components.components * exact.pca(3, scaling="bounds").components, axis=1))
    print(f"cosine with the table's own components: {np.array2string(overlap, precision=4)}\n")

    picture = folder / "adult.png"
    draw(release, exact, picture)
    page = folder / "adult.html"
    dpm.report(
        release,
        page,
        regressions=["`hours-per-week` ~ age + `education-num` + C(sex) + income"],
        groups=[("sex", "hours-per-week")],
        overwrite=True,
    )
    print(f"Wrote the release to {path}, a picture of it to {picture}, and a page to read it by to {page}")


def draw(release: dpm.MomentRelease, exact: dpm.MomentRelease, path: Path) -> None:
    """Means and correlations of the numeric columns: from the release, against the table's own."""
    names = [column.name for column in release.schema.columns if len(column.feature_names) == 1]
    index = [release.feature_names.index(name) for name in names]

    def correlation(source: dpm.MomentRelease) -> np.ndarray:
        covariance = source.covariance[np.ix_(index, index)]
        deviation = np.sqrt(np.diag(covariance))
        return covariance / np.outer(deviation, deviation)

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for axis, source, title in zip(
        axes, (release, exact), (f"released at ε = {EPSILON:g}", "the table itself"), strict=True
    ):
        image = axis.imshow(correlation(source), vmin=-0.5, vmax=0.5, cmap="RdBu_r")
        axis.set_xticks(range(len(names)), names, rotation=40, ha="right")
        axis.set_yticks(range(len(names)), names)
        axis.set_title(title)
    figure.colorbar(image, ax=axes, label="correlation", shrink=0.8)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo-output"))
