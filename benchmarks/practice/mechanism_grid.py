"""Every mechanism's forecast on a grid of rows and ε, for the pages of the mechanisms: reads no data.

The numbers are kept in docs/evidence/images/mechanisms/forecast.json, so that pages and pictures can be made again, and tested,
without computing them anew.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpmoments as dpm
from benchmarks.pages import EVIDENCE
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.registry import MECHANISMS
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.synthetic_spectrum import Assumption, SyntheticSpectrum
from dpmoments.mechanisms.units import plan_before_release
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors

__all__ = [
    "DELTA",
    "EPSILONS",
    "GRID",
    "KINDS",
    "ROWS",
    "SETTINGS",
    "Cell",
    "Panel",
    "cell",
    "compute",
    "kept",
    "panels",
]

GRID = EVIDENCE / "images" / "mechanisms" / "forecast.json"
ROWS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
DELTA = 1e-9
KINDS: Mapping[str, str] = {"pure": "pure ε", "delta": "δ = 1e-9"}
DIGITS = 4
MEAN_RADIUS = 100.0
"""How far from 0 the mean may lie, in standard deviations of a column, where means are estimated alone."""


@dataclass(frozen=True)
class Setting:
    """Of which tables a row of panels tells.

    Attributes
    ----------
    about : str
        ``"covariance"`` or ``"mean"``.
    panels : mapping of int or float to str
        What differs from panel to panel (the number of columns, or a standard deviation), and the title.
    kinds : tuple of str
        Of ``KINDS``.
    with_mean : bool
        Whether count and mean are released beside the second moment.
    neighbors : Neighbors
    """

    about: str
    panels: Mapping[float, str]
    kinds: tuple[str, ...] = tuple(KINDS)
    with_mean: bool = True
    neighbors: Neighbors = Neighbors.ADD_REMOVE


SETTINGS: Mapping[str, Setting] = {
    "columns": Setting("covariance", {d: f"{d} columns" for d in (3, 10, 50)}),
    "second-moment-alone": Setting(
        "covariance", {d: f"{d} columns" for d in (3, 10, 50)}, kinds=("delta",), with_mean=False
    ),
    "few-columns": Setting(
        "covariance",
        {d: f"{d} columns" for d in (2, 3, 10)},
        kinds=("pure",),
        with_mean=False,
        neighbors=Neighbors.REPLACE_ONE,
    ),
    "one-column": Setting("covariance", {sd: f"sd {sd:g} of the range" for sd in (0.25, 0.01, 0.0001)}),
    "means": Setting("mean", {1: "1 column", 10: "10 columns", 50: "50 columns"}, neighbors=Neighbors.REPLACE_ONE),
    "bounded-means": Setting(
        "mean", {1: "1 column", 10: "10 columns", 50: "50 columns"}, neighbors=Neighbors.REPLACE_ONE
    ),
}


@dataclass(frozen=True)
class Cell:
    """What is forecast for one number of rows and one ε.

    Attributes
    ----------
    errors : mapping of str to float
        By mechanism; those that cannot run, or state no error, are absent.
    taken : str or None
        The mechanism that ``auto`` takes, where it can run.
    """

    errors: Mapping[str, float]
    taken: str | None = None


@dataclass(frozen=True)
class Panel:
    """One panel of a picture: errors on the grid, NaN where a mechanism cannot run.

    Attributes
    ----------
    useless : float
        An error that says nothing: that of releasing zeros, or a standard deviation of every column for means.
    errors : mapping of str to ndarray of shape (len(EPSILONS), len(ROWS))
    taken : tuple of tuples of str or None
        What ``auto`` takes, by ε and rows.
    """

    useless: float
    errors: Mapping[str, np.ndarray]
    taken: tuple[tuple[str | None, ...], ...]


def budget(kind: str, epsilon: float) -> dict[str, float]:
    """The arguments of a release that say it."""
    return {"epsilon": epsilon} if kind == "pure" else {"epsilon": epsilon, "delta": DELTA}


def schema(setting: str, value: float) -> dpm.Schema:
    """Columns of numbers between 0 and 1; without bounds for ``"means"``."""
    if setting == "means":
        return dpm.Schema.unbounded(int(value))
    n_columns = 1 if setting == "one-column" else int(value)
    return dpm.Schema(*(dpm.Numeric(f"x{place}", 0, 1) for place in range(n_columns)))


def assumption(setting: str, value: float) -> Assumption:
    """Of the rows, as the forecast has it."""
    # A column between 0 and 1 is encoded between −1 and 1.
    spectrum = [(2.0 * value) ** 2] if setting == "one-column" else None
    return Assumption.of(schema(setting, value), mean=SETTINGS[setting].with_mean, spectrum=spectrum)


def useless(setting: str, value: float) -> float:
    """An error that says nothing."""
    if setting == "bounded-means":
        return math.sqrt(value / 12.0)
    if setting == "means":
        return math.sqrt(value)
    return float(np.linalg.norm(assumption(setting, value).spectrum))


def cell(setting: str, value: float, kind: str, epsilon: float, n_rows: int) -> Cell:
    """What :func:`dpmoments.forecast` or :func:`dpmoments.forecast_mean` says of one cell."""
    neighbors = SETTINGS[setting].neighbors
    if SETTINGS[setting].about == "mean":
        table = dpm.forecast_mean(
            schema(setting, value),
            n_rows=n_rows,
            neighbors=neighbors,
            **({} if setting == "bounded-means" else {"radius": MEAN_RADIUS, "scale": 1.0}),
            **budget(kind, epsilon),
        )
        return Cell({row.mechanism: row.error for row in table if row.error is not None})
    shape = shape_of(setting, value, n_rows)
    assumed = assumption(setting, value).table(n_rows)
    errors, taken = dict[str, float](), None
    for name, kind_of_mechanism in MECHANISMS.items():
        try:
            plan = plan_before_release(
                configured(kind_of_mechanism, assumed),
                shape,
                PrivacyBudget.of(**budget(kind, epsilon)),
                neighbors,
                None,
            )
            filters = (PrivacyFilter.open(plan, insecure_seed=seed) for seed in range(plan.measured_runs))
            error = plan.errors_on(assumed, filters).gram / n_rows
        except (ValueError, OverflowError):
            continue
        if math.isfinite(error):
            errors[name] = error
        taken = plan.mechanism.name if name == "auto" else taken
    return Cell(errors, taken)


def shape_of(setting: str, value: float, n_rows: int) -> MomentShape:
    """What a plan knows of the table: the number of rows where that is public."""
    public = n_rows if SETTINGS[setting].neighbors.table_size_is_public else None
    return MomentShape.of(schema(setting, value), mean=SETTINGS[setting].with_mean, n_rows=public)


def configured(kind: type[Mechanism], assumed: SyntheticSpectrum) -> Mechanism:
    """The mechanism as it comes; one that needs a bound on the smallest eigenvalue is told that of the table assumed."""
    if kind.registry_name() == "inverse-gaussian":
        return kind(smallest_eigenvalue=float(assumed.eigenvalues[-1]))  # type: ignore[call-arg]
    return kind()


def panels() -> Iterator[tuple[str, str, float, str]]:
    """Key of every panel, with its setting, what it differs by, and its kind of budget."""
    for name, setting in SETTINGS.items():
        for value in setting.panels:
            for kind in setting.kinds:
                yield f"{name} {value:g} {kind}", name, value, kind


def compute() -> None:
    """The whole grid, into its file: some minutes."""
    found: dict[str, Any] = {}
    for key, setting, value, kind in panels():
        cells = [[cell(setting, value, kind, epsilon, n_rows) for n_rows in ROWS] for epsilon in EPSILONS]
        names = sorted({name for line in cells for one in line for name in one.errors})
        found[key] = {
            "useless": useless(setting, value),
            "errors": {name: [[_short(one.errors.get(name)) for one in line] for line in cells] for name in names},
            "taken": [[one.taken for one in line] for line in cells],
        }
        print(key, flush=True)
    content = {
        "made_with": {
            "dpmoments": dpm.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "command": "python -m benchmarks.practice.mechanism_pages --forecast",
        },
        "rows": ROWS,
        "epsilons": EPSILONS,
        "delta": DELTA,
        "panels": found,
    }
    GRID.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        json.dumps(content, separators=(",", ":"), ensure_ascii=False).replace('],"', '],\n"').replace('},"', '},\n"')
    )
    GRID.write_text(lines + "\n", encoding="utf-8")


def kept() -> Mapping[str, Panel]:
    """The grid that was computed before.

    Raises
    ------
    ValueError
        If it is not of the rows and budgets that this program has.
    """
    content = json.loads(GRID.read_text(encoding="utf-8"))
    asked = {"rows": list(ROWS), "epsilons": list(EPSILONS), "delta": DELTA}
    if any(content[name] != value for name, value in asked.items()):
        raise ValueError(
            f"{GRID.name} is of another grid: run python -m benchmarks.practice.mechanism_pages --forecast"
        )
    return {
        key: Panel(
            useless=panel["useless"],
            errors={name: np.array(values, dtype=float) for name, values in panel["errors"].items()},
            taken=tuple(tuple(line) for line in panel["taken"]),
        )
        for key, panel in content["panels"].items()
    }


def _short(error: float | None) -> float | None:
    return None if error is None else float(f"{error:.{DIGITS}g}")
