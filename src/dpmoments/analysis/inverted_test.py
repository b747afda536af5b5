"""The inverted test of Anderson & Rubin (1949).

Confidence sets of coefficients that hold however noisy the regressors are.

Q(b) = gᵀ W(b)⁻¹ g, g = (M b)_A, is the test statistic at b = (−β, 1); W, the covariance of g, is quadratic in b. The least Q
over some entries of b is found by Newton's method with the exact gradient and Hessian
(docs/evidence/derivations/regression-inference.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from dpmoments.base.values import FloatArray, IntegerArray, first_largest
from dpmoments.moments.law import NoiseLaw

_MAX_STEPS = 60
_SETTLED = 1e-9
"""Relative decrease of Q that a last step may promise."""
_MIN_DAMPING, _MAX_DAMPING = 1e-9, 1e12
"""Shares of the largest curvature that damp a step.

In a flat valley a least share of 1e-4 would take hundreds of steps.
"""
_EXACT = 1e-7
"""Relative accuracy of the ends of an interval."""
_NOT_ZERO = 1e-6
"""Share of the largest entry of a direction from which an entry is not 0."""
_MAX_DOUBLINGS = 60
_MAX_ROOT_STEPS = 60
_MAX_TOUCHING = 20
_SAME_VALLEY = 1e-3
"""Distance from a least point, relative to Q, at which a search is taken to lead there."""


class _Point(NamedTuple):
    """Q at b and what its derivatives need."""

    beyond: FloatArray
    statistic: float
    multiplier: FloatArray  # u = W⁻¹ g
    root: FloatArray  # L, W = L Lᵀ, of rows and columns times `own`; or R, RᵀR = W⁻¹, if W is nearly singular
    own: FloatArray | None
    on_target: FloatArray  # M b
    total: float  # bᵀM b

    def whitened(self, matrix: FloatArray) -> FloatArray:
        """Return R A with RᵀR = W⁻¹."""
        if self.own is None:
            return self.root @ matrix
        scaled = (self.own[:, None] * matrix).T
        return scipy.linalg.blas.dtrsm(1.0, self.root, scaled, side=1, lower=1, trans_a=1, overwrite_b=1).T


class _Aim(NamedTuple):
    """Augmented Lagrangian of the distance from r, with Q held to a limit."""

    target: FloatArray  # (k + 1,), r for b; NaN where b is free
    unit: float  # squared distance that counts as 1
    limit: float
    multiplier: float

    def away(self, point: _Point) -> FloatArray:
        return np.nan_to_num(point.beyond - self.target, nan=0.0)

    def pressure(self, point: _Point) -> float:
        """Return the multiplier of (Q/limit − 1)/2 that its excess at a point calls for."""
        return max(self.multiplier + _STIFFNESS * (point.statistic / self.limit - 1.0) / 2.0, 0.0)

    def square(self, point: _Point) -> float:
        return float(self.away(point) @ self.away(point))

    def value(self, point: _Point) -> float:
        return self.square(point) / (2.0 * self.unit) + self.pressure(point) ** 2 / (2.0 * _STIFFNESS)


class Search:
    """Searches for the least test statistic of one set of normal equations."""

    def __init__(
        self,
        moments: FloatArray,  # M, (k + 1, k + 1)
        n_rows: float,
        noise: NoiseLaw,  # of M
        sampling: FloatArray,  # V, (k, k): sampling adds bᵀM b/n · V to the covariance of g
        solution: FloatArray,  # β of the equations as they are, (k,)
        errors: FloatArray,  # of β by the delta method, (k,): the search for ends begins there
    ) -> None:
        self._moments, self._n_rows, self._noise, self._sampling = moments, n_rows, noise, sampling
        self._system, self._solution, self._errors = moments[:-1], np.append(-solution, 1.0), errors
        self._last = len(solution)
        self._rows, self._all = np.arange(self._last), np.arange(self._last + 1)
        self._unit = 1.0 / np.maximum(np.abs(np.diag(moments)), np.finfo(float).tiny)

    def at(self, beyond: FloatArray) -> _Point:
        """Evaluate the statistic at b."""
        on_target = self._moments @ beyond
        total = max(float(beyond @ on_target), 0.0)
        scaled = self._noise.covariance_of_product(beyond, self._rows)
        scaled += total / self._n_rows * self._sampling
        own = 1.0 / np.sqrt(np.maximum(np.diag(scaled), np.finfo(float).tiny))
        scaled *= own[:, None]
        scaled *= own
        scaled[self._rows, self._rows] += 1e-12  # directions without any error count as known to six digits
        error, lapack = own * on_target[:-1], scipy.linalg.lapack
        root, failed = lapack.dpotrf(scaled.T, lower=1, clean=0)
        if not failed:
            solved = lapack.dpotrs(root, error, lower=1)[0]
            return _Point(beyond, float(error @ solved), own * solved, root, own, on_target, total)
        eigenvalues, vectors = np.linalg.eigh(scaled)
        root = (vectors / np.sqrt(np.maximum(eigenvalues, 1e-12))).T * own
        whitened = root @ on_target[:-1]
        return _Point(beyond, float(whitened @ whitened), whitened @ root, root, None, on_target, total)

    def derivatives(self, point: _Point, entries: IntegerArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the Hessian of Q over 2, in all or some entries of b."""
        # The gradient is M_·A u − K b, K = Cov(N (u, 0)) + (uᵀ V u/n) M; the Hessian (M_A· − L)ᵀ W⁻¹ (M_A· − L) − K
        # with L = ∂(W(b) u)/∂b at fixed u.
        u, b = point.multiplier, point.beyond
        extended = np.append(u, 0.0)
        penalty = self._noise.covariance_of_product(extended, self._all)
        change = self._noise.mixed_derivative(extended, b)[:-1]
        if point.total > 0.0:
            of_rows = self._sampling @ u
            penalty += float(u @ of_rows) / self._n_rows * self._moments
            change += np.outer(of_rows, 2.0 / self._n_rows * point.on_target)
        slope, system = self._system.T @ u - penalty @ b, self._system
        if entries is not None and len(entries) < len(b):
            slope, penalty = slope[entries], penalty[np.ix_(entries, entries)]
            system, change = np.take(system, entries, axis=1), np.take(change, entries, axis=1)
        carried = point.whitened(system - change)
        curvature: FloatArray = carried.T @ carried  # NumPy computes half of it
        curvature -= penalty
        return slope, curvature

    def least(
        self,
        fixed: Mapping[int, float],
        starts: Iterable[FloatArray] = (),
        enough: float = -math.inf,
        lowest: _Point | None = None,
    ) -> _Point:
        """Find the least Q over the entries of b that are not fixed."""
        # `fixed` maps fixed entries of b to their values. The search stops at a Q of `enough` or less, and near `lowest`.
        held = np.array(sorted(fixed), dtype=int)
        free = np.setdiff1d(self._all, held)
        best: _Point | None = None
        for start in (None, *starts):
            beyond = np.zeros(len(self._all)) if start is None else np.array(start, dtype=float)
            beyond[held] = [fixed[int(index)] for index in held]
            for _ in range(2 if start is None and len(free) else 0):  # least squares at the weights of b
                point = self.at(beyond)
                wanted = -point.whitened(self._system[:, held] @ beyond[held][:, None])[:, 0]
                part = point.whitened(np.take(self._system, free, axis=1))
                square = part.T @ part
                solution = _solved(square, 1e-13 * float(np.trace(square)), part.T @ wanted)
                beyond[free] = np.linalg.lstsq(part, wanted, rcond=None)[0] if solution is None else solution
            reached = self._descended(beyond, free, enough=enough, lowest=lowest)
            if best is None or reached.statistic < best.statistic:
                best = reached
            if best.statistic <= enough:
                break
        assert best is not None
        return best

    def _descended(
        self,
        beyond: FloatArray,
        free: IntegerArray,
        aim: _Aim | None = None,
        enough: float = -math.inf,
        lowest: _Point | None = None,
    ) -> _Point:
        """Return the point that damped Newton steps lead to: of least Q, or nearest to an aim."""
        point, damping = self.at(beyond), 0.0
        if not len(free):
            return point
        value = point.statistic if aim is None else aim.value(point)
        scale = np.sqrt(self._unit[free])
        for _ in range(_MAX_STEPS):
            if point.statistic <= enough:
                break
            slope, curvature = self.derivatives(point, free)
            if lowest is not None:
                away = (point.beyond - lowest.beyond)[free]
                if 0.0 <= float(away @ curvature @ away) <= _SAME_VALLEY * lowest.statistic:
                    return lowest
            if aim is not None:
                pressure = aim.pressure(point) / aim.limit
                steep = math.sqrt(_STIFFNESS) / aim.limit * slope if pressure > 0.0 else np.zeros_like(slope)
                slope = pressure * slope + aim.away(point)[free] / aim.unit
                curvature = pressure * curvature + np.outer(steep, steep)
                curvature += np.diag(np.isfinite(aim.target[free]) / aim.unit)
            slope = slope * scale
            curvature *= scale[:, None]
            curvature *= scale
            floor = float(np.abs(np.diag(curvature)).max()) + np.finfo(float).tiny
            moved, promised = None, math.inf
            while damping < _MAX_DAMPING:
                step = _solved(curvature, damping * floor, slope)
                if step is not None:
                    trial = point.beyond.copy()
                    trial[free] -= scale * step
                    candidate = self.at(trial)
                    reached = candidate.statistic if aim is None else aim.value(candidate)
                    if reached <= value:
                        moved, value, promised = candidate, reached, float(slope @ step)
                        break
                damping = max(10.0 * damping, _MIN_DAMPING)
            if moved is None:
                break
            point, damping = moved, 0.0 if damping < 10.0 * _MIN_DAMPING else 0.1 * damping
            if promised <= _SETTLED * (value + 1e-9):
                break
        return point

    def limits(self, index: int, limit: float, inside: FloatArray) -> tuple[float, float]:
        """Find the ends of {β_j : least Q ≤ limit}."""
        # `at_infinity` has shown that the set is bounded. `limit` is a quantile of χ² with one degree of freedom,
        # `inside` a b whose Q is at most that.
        start = self.at(inside)
        if not start.statistic <= limit:
            return -math.inf, math.inf
        ends = [self._touching(index, limit, start, side) for side in (1.0, -1.0)]
        if ends[0] is not None and ends[1] is not None:
            return -ends[0], -ends[1]
        center = self.least({index: float(inside[index]), self._last: 1.0}, [inside])
        return -self.end(index, limit, center, 1.0), -self.end(index, limit, center, -1.0)

    def at_infinity(self, index: int, enough: float = -math.inf) -> float:
        """Return the least Q far out, or one that is ``enough``."""
        # The coefficient is unbounded at every limit from there on.
        direction = self.least_direction
        size = np.abs(direction.beyond) / np.sqrt(self._unit)
        if direction.statistic <= enough and size[index] >= _NOT_ZERO * size.max():
            return direction.statistic
        return self.least({index: 1.0, self._last: 0.0}, enough=enough).statistic

    @cached_property
    def least_direction(self) -> _Point:
        """A b without target, of small Q at every length: a witness for each of its entries."""
        at_solution = self.at(self._solution)
        whitened = at_solution.whitened(self._system[:, :-1])
        vector = scipy.linalg.eigh(whitened.T @ whitened, subset_by_index=[0, 0])[1][:, 0]
        held = int(first_largest(np.abs(vector) / np.sqrt(self._unit[:-1])))
        start = np.append(vector / vector[held], 0.0)
        return self._descended(start, np.setdiff1d(self._all, [held, self._last]))

    def end(self, index: int, limit: float, center: _Point, side: float, *, thorough: bool = False) -> float:
        """Find the end of b_j on one side of a point whose Q is ``limit`` or less."""
        # By Newton's method for √Q, whose slope is known, within a bracket; infinite if Q stays below the limit.
        near, far = center, None
        reach = math.sqrt(limit) * float(self._errors[index])
        reach = reach if math.isfinite(reach) and reach > 0.0 else 1.0
        for _ in range(_MAX_DOUBLINGS):
            reached = self._from(near, index, float(center.beyond[index]) + side * reach, thorough)
            if reached.statistic > limit:
                far = reached
                break
            near, reach = reached, 2.0 * reach
        if far is None:
            return side * math.inf
        for _ in range(_MAX_ROOT_STEPS):
            low, high = float(near.beyond[index]), float(far.beyond[index])
            accuracy = _EXACT * abs(high - float(center.beyond[index])) + np.finfo(float).tiny
            if abs(high - low) <= accuracy:
                break
            trial = (low + high) / 2.0
            start = min(near, far, key=lambda each: abs(each.statistic - limit))
            slope = float(self.derivatives(start)[0][index])
            if start.statistic > 0.0 and slope * side > 0.0:
                # √Q is nearly linear, and its slope that of Q/2 over √Q; a little too far, so that the bracket closes
                root = math.sqrt(start.statistic)
                beside = 0.4 * accuracy * side * (1.0 if start is near else -1.0)
                newton = float(start.beyond[index]) + (math.sqrt(limit) - root) * root / slope + beside
                if min(low, high) < newton < max(low, high):
                    trial = newton
            reached = self._from(start, index, trial, thorough)
            near, far = (near, reached) if reached.statistic > limit else (reached, far)
        end = float(far.beyond[index])
        if not thorough:
            again = self.least({index: end, self._last: 1.0}, [center.beyond])
            if again.statistic < limit:  # another valley reaches further
                return self.end(index, limit, again, side, thorough=True)
        return end

    def _touching(self, index: int, limit: float, center: _Point, side: float) -> float | None:
        """Find an end of b_j by Newton's method for all entries of b; None if it is not the end."""
        # The other entries are where the second-order expansion is least, given b_j; along b_j it, or the first-order
        # expansion of √Q, is at the limit.
        free, point = self._all[:-1], center
        others = np.delete(free, index)
        for _ in range(_MAX_TOUCHING):
            slope, curvature = self.derivatives(point, free)
            across, apart = curvature[others, index], np.ix_(others, others)
            solved = _solved(curvature[apart], 0.0, np.column_stack([across, slope[others]]))
            if solved is None:
                return None
            least = max(point.statistic - float(slope[others] @ solved[:, 1]), 0.0)
            rise = side * (float(slope[index]) - float(across @ solved[:, 1]))
            bend = float(curvature[index, index]) - float(across @ solved[:, 0])
            square = rise**2 + bend * (limit - least)
            if bend > 0.0 and square > 0.0:
                change = side * (math.sqrt(square) - rise) / bend
            elif rise > 0.0 and least > 0.0:
                change = side * (math.sqrt(limit) - math.sqrt(least)) * math.sqrt(least) / rise
            else:
                return None
            beyond = point.beyond.copy()
            beyond[others] -= solved[:, 1] + change * solved[:, 0]
            beyond[index] += change
            step, point = abs(float(beyond[index] - point.beyond[index])), self.at(beyond)
            reach = (float(beyond[index]) - float(center.beyond[index])) * side
            if step <= 1e-3 * _EXACT * reach and abs(point.statistic - limit) <= _EXACT * limit:
                beyond[index] += 0.5 * _EXACT * side * reach
                held = {index: float(beyond[index]), len(free): 1.0}
                again = self.least(held, [center.beyond], lowest=self.at(beyond))
                return held[index] if again.statistic >= limit else None  # another valley may reach further
        return None

    def _from(self, point: _Point, index: int, value: float, thorough: bool) -> _Point:
        """Find the least Q with another value of b_j."""
        # It is searched from a point nearby, and perhaps from elsewhere.
        free = np.setdiff1d(self._all, [index, self._last])
        beyond = point.beyond.copy()
        beyond[index] = value
        if len(free):
            curvature = self.derivatives(point)[1]
            step = _solved(curvature[np.ix_(free, free)], 0.0, curvature[free, index])
            if step is not None:
                beyond[free] -= step * (value - float(point.beyond[index]))
        if thorough:
            return self.least({index: value, self._last: 1.0}, [beyond])
        return self._descended(beyond, free)

    def nearest(self, toward: FloatArray, limit: float) -> FloatArray:
        """Find the b nearest to coefficients r that has Q ≤ limit: min Σ (βᵢ − rᵢ)² over finite rᵢ."""
        point = self.at(self._solution)
        held = {int(index): -float(toward[index]) for index in np.flatnonzero(~np.isnan(toward))}
        best = self.least({**held, self._last: 1.0}, [point.beyond])
        if best.statistic <= limit:
            return best.beyond
        # from the solution, whose Q is 0, outward: a penalty on the distance would jump over the limit where the valley
        # of Q bends
        aim = _Aim(np.append(-toward, np.nan), 1.0, limit, 0.5 * _STIFFNESS + _FIRST_PRESSURE)
        aim = aim._replace(unit=aim.square(point))
        for _ in range(_MAX_PRESSURES):
            point = self._descended(point.beyond, self._all[:-1], aim)
            if abs(point.statistic - limit) <= _AT_LIMIT * limit:
                return point.beyond
            aim = aim._replace(multiplier=aim.pressure(point))
            # the solution may be a thousand times as far from r as what is sought
            if point.statistic < 0.5 * limit and aim.square(point) < 0.01 * aim.unit:
                aim = aim._replace(unit=aim.square(point), multiplier=0.5 * _STIFFNESS)
        return self._solution


_STIFFNESS = 10.0
"""Weight of the squared excess of Q; multipliers are about 1/4."""
_FIRST_PRESSURE = 0.25
_MAX_PRESSURES = 60
"""Multipliers that are tried for the nearest point."""
_AT_LIMIT = 1e-9
"""Relative distance from the limit at which the search for the nearest point ends."""


def _solved(matrix: FloatArray, damping: float, vector: FloatArray) -> FloatArray | None:
    """Return the solution of a positive definite system with a damped diagonal."""
    # None if it is not.
    if not len(matrix):  # LAPACK's wrapper takes no empty one
        return vector
    damped = matrix.copy()
    damped[np.diag_indices(len(matrix))] += damping
    _, solution, failed = scipy.linalg.lapack.dposv(damped.T, vector, lower=1, overwrite_a=1)
    return None if failed else np.asarray(solution)
