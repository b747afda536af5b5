"""Where each step of a mechanism looked for the rows, or for their mean, as its diagnostics say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.values import finite_numbers, is_finite_number
from dpmoments.schema.encoding import Encoding
from dpmoments.schema.schema import Schema

__all__ = ["Region", "Steps", "StepsOfRelease", "steps_of"]

MOST_STEPS = 1000


class StepsOfRelease(Protocol):
    """A release of moments, or of a mean alone."""

    @property
    def schema(self) -> Schema:
        """The public description of the table."""

    @property
    def mechanism(self) -> str:
        """Name of the mechanism that ran."""

    @property
    def diagnostics(self) -> Mapping[str, Any]:
        """What else the mechanism learned privately."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""


@dataclass(frozen=True, eq=False)
class Region:
    """An ellipsoid {x : (x − center)ᵀ shape⁻¹ (x − center) ≤ 1}, in the table's units.

    Attributes
    ----------
    center : ndarray of shape (d,)
    shape : ndarray of shape (d, d)
    noise : float
        The noise of the step as a share of the ellipsoid's half-widths; NaN where it is not known.
    """

    center: FloatArray
    shape: FloatArray
    noise: float

    @property
    def half_widths(self) -> FloatArray:
        """How far it reaches from its centre along each feature, shape (d,)."""
        return np.sqrt(np.diag(self.shape))

    @classmethod
    def of(cls, center: FloatArray, linear: FloatArray, radius: float, noise: float, encoding: Encoding) -> Region:
        """That of encoded rows with ‖linear·(x − center)‖ ≤ radius.

        Raises
        ------
        ValueError
            If ``linear`` is singular or the radius not above 0, as in no file that a run wrote.
        """
        try:
            back = np.linalg.inv(linear) * encoding.scale[:, None] * radius
        except np.linalg.LinAlgError:
            back = np.full_like(linear, np.nan)
        shape = back @ back.T
        if not (np.isfinite(shape).all() and (np.diag(shape) > 0.0).all()):
            raise ValueError(UNREADABLE)
        return cls(encoding.decode_mean(center), shape, noise)


UNREADABLE = (
    "no picture of steps: the diagnostics hold steps that no run makes, and the file was changed after the release"
)


@dataclass(frozen=True, eq=False)
class Steps:
    """The regions of a run, one a step.

    Attributes
    ----------
    regions : tuple of Region
    what : str
        What they held.
    of_noise : str
        What their noise is.
    names : tuple of str
        What each is called.
    remark : str
        What else is to be said of them.
    """

    regions: tuple[Region, ...]
    what: str
    of_noise: str
    names: tuple[str, ...]
    remark: str = ""


def steps_of(release: StepsOfRelease, center: FloatArray | None = None, hidden: float = math.nan) -> Steps:
    """The regions of a release's run.

    Parameters
    ----------
    release : StepsOfRelease
    center : ndarray of shape (d,), optional
        Of a release by ``adaptive-ball``, in the unit ball.
    hidden : float
        The standard deviation that its noise hides, in the unit ball.

    Raises
    ------
    ValueError
        If its mechanism has no steps, or its diagnostics were changed.
    """
    said = release.diagnostics
    try:
        if "steps" in said:
            return _recorded(release, list(said["steps"]))
        if release.mechanism == "adaptive-ball" and ("radius" in said or "public_bounds" in said):
            return _ball(release, center, hidden)
    except (TypeError, KeyError, ValueError, OverflowError):
        pass  # a release file is untrusted: what its entries hold instead does not matter
    else:
        raise ValueError(
            f"no picture of steps: {release.mechanism} releases at once, in one step. Mechanisms with steps are coinpress, "
            "private-preconditioning and adaptive-ball, and of means coinpress and variance-aware"
            if release.mechanism != "pooled"
            else "no picture of steps: a pooled release was made by several runs. Draw those of one: "
            "release.parts[0].plot.steps()"
        )
    raise ValueError(UNREADABLE)


def _recorded(release: StepsOfRelease, steps: list[Any]) -> Steps:
    d, encoding = len(release.feature_names), release.schema.encoding(mean=_has_center(steps))
    if not 0 < len(steps) <= MOST_STEPS:
        raise ValueError
    of_mean = "mean_radius" in steps[0]
    regions = []
    for step in steps:
        center = finite_numbers(step["center"], d, "center") if "center" in step else np.zeros(d)
        if "scales" in step:
            linear = np.diag(1.0 / finite_numbers(step["scales"], d, "scales"))
        else:
            rows = step.get("linear", release.diagnostics.get("linear", ()))
            linear = np.array([finite_numbers(row, d, "linear") for row in rows]).reshape(d, d)
        radius = _positive(step["mean_radius" if of_mean else "radius"])
        scale = _positive(step["noise_scale"]) if "noise_scale" in step else math.nan
        # of a mean the noise is of the length of rows, of a covariance of its square
        noise = scale / radius if of_mean else math.sqrt(scale) / radius
        regions.append(Region.of(center, linear, radius, noise, encoding))
    return Steps(
        tuple(regions),
        "where the mean was known to be" if of_mean else "rows beyond it were moved into it",
        "noise on the mean" if of_mean else "standard deviations that noise hides",
        (*map(str, range(1, len(steps))), f"{len(steps)} (last)"),
    )


def _has_center(steps: list[Any]) -> bool:
    return bool(steps) and "center" in steps[0]


def _ball(release: StepsOfRelease, center: FloatArray | None, hidden: float) -> Steps:
    d, encoding = len(release.feature_names), release.schema.encoding(mean=True)
    stayed = "radius" not in release.diagnostics
    at_bounds = Region.of(np.zeros(d), np.eye(d), 1.0, hidden if stayed else math.nan, encoding)
    what, of_noise = "rows beyond it were moved into it", "standard deviations that noise hides"
    if stayed:
        reason = str(release.diagnostics["public_bounds"])
        return Steps((at_bounds,), what, of_noise, ("public bounds",), f"no smaller ball was taken: {reason}")
    radius = _positive(release.diagnostics["radius"])
    if center is None:
        raise ValueError
    found = Region.of(center, np.eye(d), radius, hidden / radius, encoding)
    beyond = release.diagnostics["share_beyond_bound"]
    remark = f"at most {beyond:.2%} of the rows were moved (95 % confidence)" if is_finite_number(beyond) else ""
    return Steps((at_bounds, found), what, of_noise, ("public bounds", "ball found"), remark)


def _positive(value: object) -> float:
    if not is_finite_number(value) or not float(value) > 0.0:  # type: ignore[arg-type]
        raise ValueError
    return float(value)  # type: ignore[arg-type]
