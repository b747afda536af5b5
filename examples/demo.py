"""The main job on a real table: release six columns of Adult once at ε = 1, then ask five questions of the release.

Run it with `make demo`. The table is public, so the demo can show the answers from the table beside those from the release.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

import dpmoments as dpm

EPSILON = 1.0
COLUMNS = ("age", "education-num", "marital-status", "sex", "hours-per-week", "income")
REGRESSION = "`hours-per-week` ~ age + `education-num` + C(sex) + income"

Answer = tuple[str, float, float, float]
"""Question, estimate, and the ends of its 95 % interval."""


def main(folder: Path) -> None:
    """Release Adult into ``folder`` and analyze the release."""
    folder.mkdir(parents=True, exist_ok=True)
    people = dpm.datasets.adult()
    schema = dpm.Schema(*(column for column in people.schema.columns if column.name in COLUMNS))
    rows = people.frame.num_rows

    print(f"Table: Adult (US census 1994), {rows:,} people, {len(people.schema.columns)} columns.")
    print(f"Asked: count, means and covariances of {', '.join(schema.names)},")
    print(f"       once, at ε = {EPSILON:g}; neighboring tables differ in one row's values (replace_one).\n")

    print("Forecast, before any row is read: noise SD of a correlation (median over pairs)")
    for columns in (people.schema, schema):
        forecast = dpm.forecast(columns, n_rows=rows, epsilon=EPSILON, neighbors="replace_one")
        assert forecast.noise is not None, "of the default mechanism it is known"
        noise = forecast.noise.typical_correlation()
        print(f"  {len(columns.names):2} columns ({columns.n_features:3} features): ± {noise:.3f}")

    path = folder / "adult.json"
    path.unlink(missing_ok=True)  # the table is public: making the release again costs nobody anything
    started = time.perf_counter()
    dpm.release(people.frame, schema, epsilon=EPSILON, neighbors="replace_one", output=path)
    print(f"\nReleased in {time.perf_counter() - started:.2f} s. From here on only the file is read.\n")

    release = dpm.load(path)
    exact = dpm.release(people.frame, schema, epsilon=1e12, neighbors="replace_one", insecure_seed=0)
    print(f"{'':62}{'release':>8}{'95 % interval':>20}{'table':>9}")
    for (question, estimate, lower, upper), (_, truth, *_) in zip(answers(release), answers(exact), strict=True):
        print(f"{question:62}{estimate:8.3f}{f'[{lower:.3f}, {upper:.3f}]':>20}{truth:9.3f}")
    print("Intervals include privacy noise and sampling error.\n")

    picture = folder / "adult.png"
    draw(release, exact, picture)
    page = folder / "adult.html"
    dpm.report(release, page, regressions=[REGRESSION], groups=[("sex", "hours-per-week")], overwrite=True)
    print(f"The release:          {path}")
    print(f"A page to read it by: {page}")
    print(f"A picture of it:      {picture}")
    print(f"Next: dpmoments show {path}")


def answers(release: dpm.MomentRelease) -> Iterator[Answer]:
    """Answer five questions from a release."""
    described = release.describe()
    for question, feature in (("mean age", "age"), ("share of incomes above $50,000", "income")):
        index = described.feature_names.index(feature)
        yield question, described.mean[index], *described.conf_int()[index]

    shares = release.group_means("sex", of=["income"]).differences
    yield "… women's share minus men's", shares.difference.item(), shares.lower.item(), shares.upper.item()

    related = release.correlations(["education-num", "income"])
    pair = (0, 1)
    question = "correlation of years of education and income"
    yield question, related.correlation[pair], related.lower[pair], related.upper[pair]

    fit = release.ols(REGRESSION)
    years = fit.features.index("education-num")
    question = "hours a week per year of education (age, sex, income equal)"
    yield question, fit.coefficients[years], fit.lower[years], fit.upper[years]


def draw(release: dpm.MomentRelease, exact: dpm.MomentRelease, path: Path) -> None:
    """Correlations of the numeric columns: from the release, against the table's own."""
    names = [column.name for column in release.schema.columns if len(column.feature_names) == 1]
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for axis, source, title in zip(
        axes, (release, exact), (f"released at ε = {EPSILON:g}", "the table itself"), strict=True
    ):
        image = axis.imshow(source.correlations(names).correlation, vmin=-0.5, vmax=0.5, cmap="RdBu_r")
        axis.set_xticks(range(len(names)), names, rotation=40, ha="right")
        axis.set_yticks(range(len(names)), names)
        axis.set_title(title)
    figure.colorbar(image, ax=axes, label="correlation", shrink=0.8)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo-output"))
