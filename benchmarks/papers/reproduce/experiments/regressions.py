"""‖β̂ − β‖ of least squares from a released second moment (Sheffet 2015), a new table in every trial, rows added or removed.

Panel: ``model``, one output (section 3.1) or many (section 6.2) with ``others`` of them as features; ``epsilon``; x is
n, which is public. Method: ``technique`` of ``benchmarks.papers.sheffet.techniques`` and its ``calibration``;
``degrees``, of those that have some: those that Algorithm 2 found, or n; ``knows`` for what is not private.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

import dpmoments as dpm
from benchmarks.papers.reproduce.declaration import Method, Point
from benchmarks.papers.sheffet.techniques import (
    JL_ADAPTIVE,
    Experiment,
    Technique,
    multiple_regressions,
    one_output,
    outputs_as_features,
    planned,
    posterior_without_a_ridge,
    projection_without_a_ridge,
    techniques,
)
from benchmarks.papers.summed_once import SummedOnce, summed_once
from dpmoments.mechanisms.base import Plan
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.unit import Neighbors

ADD_REMOVE = Neighbors.ADD_REMOVE
WITH_DEGREES = {"Algorithm 1": dpm.mechanisms.JohnsonLindenstrauss, "inverse Wishart": dpm.mechanisms.InverseWishart}
"""Whose degrees of freedom a figure sets."""


def measure(point: Point, methods: Sequence[Method]) -> Iterator[tuple[str, str, float]]:
    settings, n = point.settings, int(point.x)
    model = outputs_as_features(settings["others"]) if settings["model"] == "many" else one_output()
    table = model.table(n, point.rng("table", of=("model",)))
    rows = summed_once(table, ADD_REMOVE)
    del table
    found: dict[str, int] = {}  # degrees of freedom that Algorithm 2 found in this trial, by calibration
    (regression,) = model.regressions
    truth = regression.coefficients(model.covariance)
    for method in methods:
        estimate = estimated(rows, model, n, method.settings, point, found)
        yield method.label, "error", float(np.linalg.norm(regression.coefficients(estimate) - truth))


def estimated(
    rows: SummedOnce, model: Experiment, n: int, asked: Mapping[str, Any], point: Point, found: dict[str, int]
) -> np.ndarray:
    generator = insecure_generator(point.seed("noise", dict(asked), of=("model", "epsilon")))
    rng = point.rng("not private", dict(asked), of=("model", "epsilon"))
    epsilon, calibration = float(point.settings["epsilon"]), asked.get("calibration", "exact")
    known = asked.get("knows")
    if known == "rows":
        return rows.gram
    if known == "posterior":
        return posterior_without_a_ridge(rows.gram, n, rng)
    degrees: int | None = None
    if asked.get("degrees") == "Algorithm 2":
        degrees = algorithm_2(rows, model, n, epsilon, calibration, point, found)
    elif asked.get("degrees") == "n":
        degrees = n
    if known == "projection":
        if degrees is None:
            raise ValueError("a projection needs the degrees of Algorithm 2")
        return projection_without_a_ridge(rows.gram, degrees, rng)
    if degrees is not None:
        plan = with_degrees(
            asked["technique"], asked.get("adaptive", False), calibration, degrees, model.name, n, epsilon
        )
        return plan.run(rows, PrivacyFilter(plan, generator)).gram
    technique, plan = with_its_plan(asked["technique"], calibration, model.name, n, epsilon)
    return technique.repair(plan.run(rows, PrivacyFilter(plan, generator)).gram, plan)


def algorithm_2(
    rows: SummedOnce, model: Experiment, n: int, epsilon: float, calibration: str, point: Point, found: dict[str, int]
) -> int:
    if calibration not in found:
        _, plan = with_its_plan(JL_ADAPTIVE, calibration, model.name, n, epsilon)
        generator = insecure_generator(point.seed("degrees", calibration, of=("model", "epsilon")))
        noisy = plan.run(rows, PrivacyFilter(plan, generator))
        found[calibration] = int(noisy.diagnostics["degrees_of_freedom"])
    return found[calibration]


@cache
def models() -> Mapping[str, Experiment]:
    """By name: plans are made for the columns, which all numbers of other outputs share."""
    known = [one_output(), *map(outputs_as_features, range(10)), multiple_regressions(predictions=True)]
    return {model.name: model for model in known}


@cache
def by_label() -> Mapping[tuple[str, str], Technique]:
    return {(technique.label, technique.calibration): technique for technique in techniques()}


@lru_cache(maxsize=1024)
def with_its_plan(label: str, calibration: str, model: str, n: int, epsilon: float) -> tuple[Technique, Plan]:
    technique = by_label()[label, calibration]
    return technique, technique.plan(models()[model], n, epsilon, ADD_REMOVE)


@lru_cache(maxsize=512)
def with_degrees(
    label: str, adaptive: bool, calibration: str, degrees: int, model: str, n: int, epsilon: float
) -> Plan:
    """Algorithms 1, 4 and 5 with degrees of freedom that the figure sets; the ridge is kept, as the paper does."""
    mechanism = WITH_DEGREES[label](degrees, adaptive=adaptive, subtract_padding=False, calibration=calibration)
    return planned(mechanism)(models()[model], n, epsilon, ADD_REMOVE)
