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
from dpmoments.planning.forecast import row_of
from dpmoments.planning.forecast_noise import ReleasePlan
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.request import PrivacyRequest
from dpmoments.privacy.unit import Neighbors

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
        By mechanism: of correlations, of one column's mean in standard deviations, of the second moment where it is released
        alone (Frobenius, as papers compare), or of means; mechanisms that cannot run, or state no error, are absent.
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
        An error that says nothing: that of zeros, or a standard deviation of every column for means.
    errors : mapping of str to ndarray of shape (len(EPSILONS), len(ROWS))
    taken : tuple of tuples of str or None
        What ``auto`` takes, by ε and rows.
    """

    useless: float
    errors: Mapping[str, np.ndarray]
    taken: tuple[tuple[str | None, ...], ...]


def budget(kind: str, epsilon: float) -> dict[str, float]:
    return {"epsilon": epsilon} if kind == "pure" else {"epsilon": epsilon, "delta": DELTA}


def schema(setting: str, value: float) -> dpm.Schema:
    """Columns of numbers between 0 and 1; without bounds for ``"means"``."""
    if setting == "means":
        return dpm.Schema.unbounded(int(value))
    n_columns = 1 if setting == "one-column" else int(value)
    return dpm.Schema(*(dpm.Numeric(f"x{place}", 0, 1) for place in range(n_columns)))


def typical(setting: str, value: float) -> TypicalTable:
    """The rows, as the forecast has them; a standard deviation of the range for one column."""
    columns = schema(setting, value)
    if setting == "one-column":
        return TypicalTable.of(columns, typical_sd={"x0": value}, typical_mean={"x0": 0.5})
    return TypicalTable.of(columns)


def second_moment(setting: str, value: float) -> np.ndarray:
    rows = typical(setting, value).encoded(1024, mean=SETTINGS[setting].with_mean)
    return np.asarray(rows.T @ rows / len(rows))


def useless(setting: str, value: float) -> float:
    """An error that says nothing: that of zeros, or one standard deviation of a mean."""
    if setting == "bounded-means":
        return math.sqrt(value / 12.0)
    if setting == "means":
        return math.sqrt(value)
    if setting == "one-column":
        return 1.0
    if not SETTINGS[setting].with_mean:
        return float(np.linalg.norm(second_moment(setting, value)))
    covariance = typical(setting, value).moments(1024)[1]
    correlation = covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    return float(np.sqrt(np.mean(correlation[np.tril_indices(len(correlation), -1)] ** 2)))


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
    errors, taken = dict[str, float](), None
    for name, kind_of_mechanism in MECHANISMS.items():
        mechanism = configured(kind_of_mechanism, setting, value, n_rows)
        spent, with_mean = PrivacyBudget.of(**budget(kind, epsilon)), SETTINGS[setting].with_mean
        plan = ReleasePlan(typical(setting, value), n_rows, PrivacyRequest(spent, neighbors), mechanism, mean=with_mean)
        row = row_of(name, plan)
        error = min(row.errors, key=lambda one: not math.isfinite(one))
        if math.isfinite(error):
            errors[name] = error
        taken = plan.plan.mechanism.name if name == "auto" and row.refusal is None else taken
    return Cell(errors, taken)


def shape_of(setting: str, value: float, n_rows: int) -> MomentShape:
    """What a plan knows of the table: the number of rows where that is public."""
    public = n_rows if SETTINGS[setting].neighbors.table_size_is_public else None
    return MomentShape.of(schema(setting, value), mean=SETTINGS[setting].with_mean, n_rows=public)


def configured(kind: type[Mechanism], setting: str, value: float, n_rows: int) -> Mechanism:
    """The mechanism as it comes; one that needs a bound on the smallest eigenvalue is told that of the typical rows."""
    if kind.registry_name() == "inverse-gaussian":
        smallest = float(np.linalg.eigvalsh(second_moment(setting, value))[0])
        return kind(smallest_eigenvalue=n_rows * smallest)  # type: ignore[call-arg]
    return kind()


def panels() -> Iterator[tuple[str, str, float, str]]:
    """Key of every panel, with its setting, what it differs by, and its kind of budget."""
    for name, setting in SETTINGS.items():
        for value in setting.panels:
            for kind in setting.kinds:
                yield f"{name} {value:g} {kind}", name, value, kind


def compute() -> None:
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
