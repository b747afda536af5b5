"""CoinPress's experiments (Biswas et al. 2020, after Figures 3 to 8): our curves over the published ones, and the Map of Europe.

    python -m benchmarks.papers.coinpress.figures [--trials 100] [--only NAME …] [--output build/coinpress]

Errors are trimmed means (10 % at either end) over the trials, default parameters everywhere. Published curves are read from the
folder that the environment variable DPMOMENTS_DATA names; without it our curves are drawn alone. The genetic components of the
map are fetched once from those who published them (`dpmoments.datasets.popres`); where they cannot be, the map is left out.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import trim_mean

import dpmoments as dpm
from dpmoments.mechanisms.base import MomentShape
from dpmoments.mechanisms.registry import make_mean_mechanism
from dpmoments.noise.entropy import insecure_generator
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.rows.rows import Rows

D = 10
"""Features in the covariance experiments."""
MEAN_D = 50
PUBLISHED_COLORS = plt.get_cmap("Greys")


@dataclass(frozen=True)
class Experiment:
    """One figure: errors at every point, ours by method, beside a published file.

    ``trial(x, rng, seed)`` returns the errors of one run by method, ``"non-private"`` among them.
    """

    name: str
    title: str
    axis: str
    points: Sequence[float]
    trial: Callable[[float, np.random.Generator, int], dict[str, float]]
    published: str | None = None
    log: bool = False


def rotation(d: int, rng: np.random.Generator) -> np.ndarray:
    """A uniformly random orthogonal matrix."""
    q, r = np.linalg.qr(rng.normal(size=(d, d)))
    return q * np.sign(np.diag(r))


def covariance_estimate(table: np.ndarray, spread: float, rho: float, seed: int) -> np.ndarray:
    """Σ̂ by CoinPress with its default parameters, rows of mean zero, I ⪯ Σ ⪯ spread · I."""
    n, d = table.shape
    shape = MomentShape(d, n_rows=n, mean=False, row_norm=None)
    mechanism = dpm.mechanisms.CoinPress(eigenvalue_bounds=(1.0, spread))
    plan = mechanism.plan(shape, dpm.PrivacyBudget.zcdp(rho), "replace_one")
    rows = Rows.of(table, dpm.Schema.unbounded(d), neighbors="replace_one", threads=1)
    return plan.run(rows, PrivacyFilter(plan, insecure_generator(seed))).gram / n


def covariance_trial(
    rng: np.random.Generator, seed: int, *, n: int, spread: float, rho: float, skewed: bool
) -> dict[str, float]:
    """Isotropic rows, or half of the eigenvalues ``spread`` and half 1 in random directions."""
    table, truth = rng.normal(size=(n, D)), np.eye(D)
    if skewed:
        q, eigenvalues = rotation(D, rng), np.r_[np.full(D // 2, spread), np.ones(D - D // 2)]
        truth, table = (q * eigenvalues) @ q.T, table @ ((q * np.sqrt(eigenvalues)) @ q.T)
    centred = table - table.mean(axis=0)
    return {
        "non-private": dpm.metrics.mahalanobis_error(centred.T @ centred / n, truth),
        "dpmoments": dpm.metrics.mahalanobis_error(covariance_estimate(table, spread, rho, seed), truth),
    }


def mean_trial(
    table: np.ndarray, center: float, radius: float, rho: float, seed: int, methods: Sequence[str]
) -> dict[str, float]:
    """‖μ̂ − μ‖₂ by each method; the coordinatewise ones are told the same radius for every coordinate."""
    n, d = table.shape
    options = {
        "coinpress": {"radius": radius, "scale": 1.0},
        "coinpress, t = 2": {"radius": radius, "scale": 1.0, "steps": 2, "split": (0.25, 0.75)},
        "naive": {"radius": radius, "scale": 1.0},
        "karwa-vadhan": {"radius": radius, "scale": 1.0},
        "symq": {"radius": radius},
        "variance-aware": {},
    }
    rows = Rows.of(table, dpm.Schema.unbounded(d), neighbors="replace_one", threads=1)
    shape, budget = MomentShape(d, n_rows=n, row_norm=None), dpm.PrivacyBudget.zcdp(rho)
    truth = np.full(d, center)
    errors = {"non-private": dpm.metrics.mahalanobis_mean_error(table.mean(axis=0), truth)}  # rows of unit covariance
    for method in methods:
        plan = make_mean_mechanism(method.partition(",")[0], **options[method]).plan(shape, budget, "replace_one")
        noisy = plan.run(rows, PrivacyFilter(plan, insecure_generator(seed)))
        errors[method] = dpm.metrics.mahalanobis_mean_error(noisy.mean, truth)
    return errors


def experiments(all_methods: bool) -> list[Experiment]:
    """Every figure with the published settings."""
    wide, mean_radius = 10 * math.sqrt(D), 10 * math.sqrt(MEAN_D)
    ours = ("coinpress", "variance-aware")
    methods = (*ours, "karwa-vadhan", "symq", "naive") if all_methods else ours

    def covariance(skewed: bool, **fixed: float) -> Callable[[float, np.random.Generator, int], dict[str, float]]:
        def trial(x: float, rng: np.random.Generator, seed: int) -> dict[str, float]:
            settings = {"n": 0.0, "spread": wide, "rho": 0.5} | fixed
            free = next(name for name in settings if math.isnan(settings[name]))
            settings[free] = x
            n, spread, rho = int(settings["n"]), settings["spread"], settings["rho"]
            return covariance_trial(rng, seed, n=n, spread=spread, rho=rho, skewed=skewed)

        return trial

    def normal(n: int, d: int, center: float, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(center, 1.0, size=(n, d))

    def tails(x: float, rng: np.random.Generator, seed: int) -> dict[str, float]:
        """Rows of the laws that the section names, and of the independent coordinates that the released code draws for them."""
        n, size = int(x), (int(x), MEAN_D)
        laws = {
            "normal": rng.normal(size=size),
            "multivariate Laplace": dpm.datasets.multivariate_laplace(n, MEAN_D, rng),
            "multivariate t, 3 df": dpm.datasets.multivariate_student(n, MEAN_D, rng, degrees=3.0),
            "independent Laplace": rng.laplace(0.0, math.sqrt(0.5), size=size),
            "independent t, 3 df": rng.standard_t(3, size) / math.sqrt(3.0),
        }
        errors = {}
        for law, table in laws.items():
            found = mean_trial(10.0 + table, 10.0, mean_radius, 0.5, seed, ("coinpress", "coinpress, t = 2"))
            errors |= {f"{law}: {method}": error for method, error in found.items()}
        return errors

    free = math.nan
    n_means, rhos = np.linspace(1000, 10_000, 12), np.geomspace(0.005, 0.5, 10)
    spreads = np.concatenate([np.geomspace(1, 1e4, 10), [1e5, 1e6]]) * math.sqrt(D)
    radii = np.concatenate([np.linspace(1, 1e4, 10), [1e5, 1e6]]) * math.sqrt(MEAN_D)
    n_covariances = np.linspace(3000, 8000, 12)
    return [
        Experiment(
            "mean-n",
            "Mean, d = 50, R = 10√d, ρ = 0.5",
            "n",
            n_means,
            lambda n, rng, seed: mean_trial(normal(int(n), MEAN_D, 0.0, rng), 0.0, mean_radius, 0.5, seed, methods),
            "mean_vary_n.csv",
        ),
        Experiment(
            "mean-R",
            "Mean, d = 50, n = 1000, ρ = 0.5",
            "R",
            radii,
            lambda r, rng, seed: mean_trial(normal(1000, MEAN_D, 0.0, rng), 0.0, r, 0.5, seed, methods),
            "mean_vary_R.csv",
            log=True,
        ),
        Experiment(
            "mean-d",
            "Mean, n = 4000, R = 10√d, ρ = 0.5",
            "d",
            [2, 10, 50, 200, 500],
            lambda d, rng, seed: mean_trial(normal(4000, int(d), 0.0, rng), 0.0, 10 * math.sqrt(d), 0.5, seed, ours),
            log=True,
        ),
        Experiment(
            "mean-rho",
            "Mean, d = 50, n = 2000, R = 10√d",
            "ρ",
            rhos,
            lambda rho, rng, seed: mean_trial(normal(2000, MEAN_D, 0.0, rng), 0.0, mean_radius, rho, seed, methods),
            log=True,
        ),
        Experiment("mean-tails", "Mean at the edge of the ball, other laws, CoinPress", "n", n_means, tails),
        Experiment(
            "covariance-n",
            "Covariance, isotropic, d = 10, K = 10√d, ρ = 0.5",
            "n",
            n_covariances,
            covariance(False, n=free),
            "cov_isotropic_vary_n.csv",
        ),
        Experiment(
            "covariance-K",
            "Covariance, isotropic, d = 10, n = 7000, ρ = 0.5",
            "K",
            spreads,
            covariance(False, n=7000, spread=free),
            "cov_isotropic_vary_K.csv",
            log=True,
        ),
        Experiment(
            "covariance-rho",
            "Covariance, isotropic, d = 10, n = 8000, K = 10√d",
            "ρ",
            rhos,
            covariance(False, n=8000, rho=free),
            "cov_isotropic_vary_rho.csv",
            log=True,
        ),
        Experiment(
            "covariance-skewed-n",
            "Covariance, skewed, d = 10, K = 10√d, ρ = 0.5",
            "n",
            n_covariances,
            covariance(True, n=free),
            "cov_skewed_vary_n.csv",
        ),
        Experiment(
            "covariance-skewed-K",
            "Covariance, skewed, d = 10, n = 7000, ρ = 0.5",
            "K",
            spreads,
            covariance(True, n=7000, spread=free),
            log=True,
        ),
        Experiment(
            "covariance-skewed-rho",
            "Covariance, skewed, d = 10, n = 8000, K = 10√d",
            "ρ",
            rhos,
            covariance(True, n=8000, rho=free),
            log=True,
        ),
    ]


def published_curves(folder: Path | None, name: str | None) -> tuple[np.ndarray, dict[str, np.ndarray]] | None:
    """The published points and curves, or None where the files are not there."""
    if folder is None or name is None or not (folder / "coinpress" / name).is_file():
        return None
    with (folder / "coinpress" / name).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    first, *curves = rows[0]
    return np.array([float(row[first]) for row in rows]), {
        curve: np.array([float(row[curve]) for row in rows]) for curve in curves
    }


def run_experiment(experiment: Experiment, trials: int, folder: Path | None, output: Path) -> None:
    """Measure, print and draw one figure."""
    print(f"\n{experiment.title} ({trials} trials)", flush=True)
    curves: dict[str, list[float]] = {}
    for index, x in enumerate(experiment.points):
        rng = np.random.default_rng([index, trials])
        runs = [experiment.trial(float(x), rng, trial) for trial in range(trials)]
        for method in runs[0]:
            curves.setdefault(method, []).append(float(trim_mean([run[method] for run in runs], 0.1)))
        found = "  ".join(f"{method} {values[-1]:.4g}" for method, values in curves.items())
        print(f"  {experiment.axis} = {x:<12.6g} {found}", flush=True)
    figure, axes = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
    if (published := published_curves(folder, experiment.published)) is not None:
        points, theirs = published
        names = [name for name in theirs if name != "non_private"]
        for index, name in enumerate(names):
            shade = PUBLISHED_COLORS(0.35 + 0.5 * index / max(len(names) - 1, 1))
            axes.plot(points, theirs[name], ":", color=shade, label=f"published, {name}")
    for method, values in curves.items():
        style = (
            {"color": "black", "lw": 1.0} if method.endswith("non-private") else {"marker": "o", "ms": 3.5, "lw": 1.8}
        )
        axes.plot(experiment.points, values, label=method, **style)
    floor = min(min(values) for values in curves.values())
    # Published curves reach 10⁵ where too few steps were taken: the picture ends where ours can still be read.
    axes.set_ylim(0.85 * floor, 12 * floor)
    axes.set_yscale("log")
    if experiment.log:
        axes.set_xscale("log")
    axes.set(xlabel=experiment.axis, ylabel="error (trimmed mean)", title=experiment.title)
    axes.legend(fontsize=7, ncols=2)
    figure.savefig(output / f"{experiment.name}.png", dpi=150)
    plt.close(figure)


def map_of_europe(trials: int, output: Path) -> None:
    """Figure 8: the first two genetic components of 1387 Europeans, ρ = 1, K = 30; dot products with the exact components."""
    people = dpm.datasets.popres()
    colors = [_matplotlib_color(color) for color in people.colors]
    table = 20.0 * people.components * people.eigenvalues
    exact = np.linalg.eigh(np.cov(table.T, bias=True))[1][:, ::-1][:, :2]
    naive = dpm.mechanisms.CoinPress(eigenvalue_bounds=(1.0, 30.0), steps=1)
    default = dpm.mechanisms.CoinPress(eigenvalue_bounds=(1.0, 30.0))
    shape, budget = MomentShape(20, n_rows=len(table), mean=False, row_norm=None), dpm.PrivacyBudget.zcdp(1.0)
    rng = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {}
    panels = [("not private", exact)]
    for label, mechanism in (("one step", naive), ("default", default)):
        plan, products = mechanism.plan(shape, budget, "replace_one"), []
        for trial in range(trials):
            turn = rotation(20, rng)  # as published: the coordinates tell nothing of the components
            rows = Rows.of(table @ turn, dpm.Schema.unbounded(20), neighbors="replace_one", threads=1)
            gram = plan.run(rows, PrivacyFilter(plan, insecure_generator(trial))).gram
            vectors = turn @ np.linalg.eigh(gram)[1][:, ::-1][:, :2]
            vectors = vectors * np.sign((vectors * exact).sum(axis=0))
            angles = [dpm.metrics.principal_angles(vectors[:, [i]], exact[:, [i]])[0] for i in range(2)]
            products.append(np.cos(angles))
            if trial == 0:
                panels.append((label, vectors))
        found[label] = np.mean(products, axis=0)
        print(f"  {label}: mean |dot product| {found[label][0]:.4f}, {found[label][1]:.4f} (published run: 0.96, 0.92)")
    panels.append(("default, ρ = 0.1", _one_map(table, default, shape, exact)))
    figure, grid = plt.subplots(2, 2, figsize=(9, 8), layout="constrained")
    for axes, (label, vectors) in zip(grid.ravel(), panels, strict=True):
        axes.scatter(table @ vectors[:, 1], table @ -vectors[:, 0], c=colors, s=5)
        axes.set(title=label, xticks=[], yticks=[])
    figure.suptitle("Genes mirror geography in Europe: first two components")
    figure.savefig(output / "map-of-europe.png", dpi=150)
    plt.close(figure)


def _one_map(
    table: np.ndarray, mechanism: dpm.mechanisms.CoinPress, shape: MomentShape, exact: np.ndarray
) -> np.ndarray:
    """Signed first two components at a tenth of the budget."""
    plan = mechanism.plan(shape, dpm.PrivacyBudget.zcdp(0.1), "replace_one")
    rows = Rows.of(table, dpm.Schema.unbounded(20), neighbors="replace_one", threads=1)
    gram = plan.run(rows, PrivacyFilter(plan, insecure_generator(0))).gram
    vectors = np.linalg.eigh(gram)[1][:, ::-1][:, :2]
    signed: np.ndarray = vectors * np.sign((vectors * exact).sum(axis=0))
    return signed


def _matplotlib_color(name: str) -> str:
    """X11 shades are numbered (green4) and Matplotlib's are not."""
    plain = name.rstrip("0123456789")
    known = {"violetred": "mediumvioletred", "lightpink": "lightpink"}
    return known.get(plain, plain)


def main() -> None:
    """Run the experiments named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--only", nargs="*", default=None, help="names of experiments, or their beginnings")
    parser.add_argument("--baselines", action="store_true", help="the coordinatewise estimators too (slow)")
    parser.add_argument("--output", type=Path, default=Path("build") / "coinpress")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    folder = Path(os.environ["DPMOMENTS_DATA"]) if "DPMOMENTS_DATA" in os.environ else None

    def wanted(name: str) -> bool:
        return arguments.only is None or any(name.startswith(start) for start in arguments.only)

    for experiment in experiments(arguments.baselines):
        if wanted(experiment.name):
            run_experiment(experiment, arguments.trials, folder, arguments.output)
    if wanted("map-of-europe"):
        print(f"\nMap of Europe, ρ = 1, K = 30 ({arguments.trials} trials)")
        try:
            map_of_europe(arguments.trials, arguments.output)
        except ConnectionError as error:
            print(f"  left out: {error}")
    print(f"\npictures in {arguments.output}")


if __name__ == "__main__":
    main()
