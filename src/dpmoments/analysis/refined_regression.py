"""Refined coefficients of a target.

``docs/evidence/derivations/refined-regression.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy

from dpmoments.analysis.clipping import ClippingEffect, TableBounds
from dpmoments.analysis.normal_equations import NormalEquations
from dpmoments.analysis.regressors import Regressors
from dpmoments.analysis.released import Released, Stated, columns_of, columns_with_indices
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import finite_numbers, is_finite_number, require_known
from dpmoments.messages.message import Message
from dpmoments.noise.cells import GaussianCells
from dpmoments.noise.terms import NoiseLaw, NoiseTerm
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.constraints import Constraints

TARGETS = "targets"
"""Entry of a release's diagnostics with its refined regressions."""
_ARRAYS, _NUMBERS = ("center", "whitening", "coefficients"), ("clipped", "clipped_error", "kept")

_LOST = 0.25
"""Loss of a clipped row that intervals allow for, in clips."""
_LONG_TAILS = 7.0
"""Squared radius around most rows, over their mean squared distance: long tails beyond it."""
_CONTRADICTION = 1e-4
"""Probability below which noise does not explain a difference of steps and moments."""
_LONGEST_TYPICAL = 0.4
"""Typical product of a row of a level, in clips, beyond which most may be clipped."""
_UPPER = float(scipy.special.ndtri(0.95))
"""SDs of noise up to upper limits, of clipped rows and of the residual variance."""
_CLIPPED = "the steps clip rows that decide the fit"


@dataclass(frozen=True, eq=False)
class StepsAnswer:
    """Average answer of the steps: Σ r a over the rows, regressors a and residuals r.

    Residuals are of the average line.
    """

    line: FloatArray  # (k + 1,), coefficients of the regressors
    products: FloatArray  # (k + 1,), the sum, with noise
    error: float  # standard deviation of the noise on each of its entries
    clip: float  # largest length of a row's product

    @classmethod
    def from_dict(cls, values: object, k: int) -> StepsAnswer:
        """Read a file's entry, with every check."""
        names = [entry.name for entry in fields(cls)]
        if not isinstance(values, Mapping):
            raise InputValueError(Message("refined-features"))
        require_known(values, names, "the answer of the steps")
        line, products = (finite_numbers(values[name], k + 1, name) for name in names[:2])
        for name in names[2:]:
            if not is_finite_number(values[name]) or values[name] <= 0.0:
                raise InputValueError(Message("refined-number", parameter=name))
        return cls(line, products, float(values["error"]), float(values["clip"]))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {"line": self.line.tolist(), "products": self.products.tolist(), "error": self.error, "clip": self.clip}


@dataclass(frozen=True, eq=False)
class RefinedRegression:
    """Refined coefficients w of a target y on the regressors a = (1, B(x − center)).

    Of encoded rows.
    """

    target: str
    features: tuple[str, ...]
    center: FloatArray  # (k + 1,), of the features, then of the target
    whitening: FloatArray  # (k, k): B
    coefficients: FloatArray  # (k + 1,), w, the constant first: y is predicted as center + wᵀa
    # with `clipped_error`: number of rows whose products were clipped, averaged over the steps, and the standard
    # deviation of its noise
    clipped: float
    clipped_error: float
    # share of what the steps changed that was kept. 0 if they show only noise, or contradict the moments: the release's own
    # ridge fit stays.
    kept: float
    answer: StepsAnswer

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS}
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        answer = self.answer.to_dict()
        return {"target": self.target, "features": list(self.features), **arrays, **numbers, "answer": answer}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RefinedRegression:
        """Read a file's entry, with every check."""
        _check_entry(values)
        return cls.of_entry(values)

    @classmethod
    def of_entry(cls, values: Mapping[str, Any]) -> RefinedRegression:
        """Return the regression of an entry that was checked when its release was made or read."""
        center, whitening, coefficients = (np.array(values[name], dtype=float) for name in _ARRAYS)
        clipped, clipped_error, kept = (float(values[name]) for name in _NUMBERS)
        features = tuple(values["features"])
        answer = StepsAnswer.from_dict(values["answer"], len(features))
        line = (features, center, whitening, coefficients)
        return cls(str(values["target"]), *line, clipped, clipped_error, kept, answer)

    def ordered(self, features: Sequence[str]) -> RefinedRegression:
        """Return the same regression with its features in another order."""
        order = [self.features.index(name) for name in features]
        center = np.append(self.center[order], self.center[-1])
        return replace(self, features=tuple(features), center=center, whitening=self.whitening[:, order])

    @property
    def slopes(self) -> FloatArray:
        """Slopes of encoded features, shape (k,)."""
        return np.asarray(self.whitening.T @ self.coefficients[1:])

    def line(self, release: Released) -> FloatArray:
        """Return the coefficients of encoded rows about the release's center, the constant first."""
        return self._about_center(release, self.coefficients)

    def _about_center(self, release: Released, coefficients: FloatArray) -> FloatArray:
        """Convert coefficients of the regressors a to those of rows about the release's center."""
        slopes, center = np.asarray(self.whitening.T @ coefficients[1:]), self.center - self._center_of(release)
        return np.append(coefficients[0] - slopes @ center[:-1] + center[-1], slopes)

    def _residual(self, release: Released) -> FloatArray:
        """Return the average line's residual as weights on (1, x, y), about the center."""
        return np.append(-self._about_center(release, self.answer.line), 1.0)

    def _center_of(self, release: Released) -> FloatArray:
        names = list(release.feature_names)
        places = [names.index(name) for name in (*self.features, self.target)]
        return np.zeros(len(places)) if release.center is None else release.center[places]

    def _regressors(self, release: Released) -> FloatArray:
        """Return the map from (1, x − the release's center) to a, shape (k + 1, k + 1)."""
        regressors = np.eye(len(self.features) + 1)
        regressors[1:, 1:] = self.whitening
        regressors[1:, 0] = -self.whitening @ (self.center - self._center_of(release))[:-1]
        return regressors

    def contradicts(self, release: Released, chosen: Regressors) -> bool:
        """Return True if moments and steps differ by more than noise explains.

        Both are the products of the regressors with the residuals of the average line. A few rows decide these where they differ,
        and the steps clip them. ``chosen`` are the features of this regression.
        """
        whole = NormalEquations.of(release, chosen.with_rare_levels)
        if whole is None:
            return False
        regressors, residual = self._regressors(release), self._residual(release)
        difference = self.answer.products - regressors @ (whole.moments[:-1] @ residual)
        covariance = regressors @ whole.noise_covariance(residual) @ regressors.T
        covariance += self.answer.error**2 * np.eye(len(difference))
        square = float(difference @ np.linalg.solve(covariance, difference))
        return float(scipy.special.chdtrc(len(difference), square)) < _CONTRADICTION

    def reason_against_intervals(
        self, release: Released, chosen: Regressors, plain: NormalEquations | None
    ) -> str | None:
        """Return why the steps' answer is not used; None if it may be."""
        # `plain` are the moments' equations.
        if plain is None or not plain.identified:
            return "noise on the moments is too large for their intervals"
        if (found := self.nothing_found(release, chosen)) is not None:
            return f"the steps {found}"
        if self.contradicts(release, chosen):
            return _CLIPPED
        if (level := self._clipped_level(release, chosen)) is not None:
            return f"the steps may clip most rows with {level}"
        if has_long_tails(release):
            return "columns may have long tails, and clipped residuals then move them by any amount"
        return None

    def equations(self, release: Released, chosen: Regressors, plain: NormalEquations | None) -> NormalEquations | None:
        """Return the normal equations with the steps' answer in place of released products.

        Of some of the features, ``plain`` the moments' equations of these. None if clipping may have taken more than intervals
        allow for, or if the released products have less noise than the answer with that.

        Products and squares of the regressors, and the squares of the residuals, are the release's: their noise counts only times
        what the average line still lacks.
        """
        if self.reason_against_intervals(release, chosen, plain) is not None:
            return None
        whole = NormalEquations.of(release, chosen.with_rare_levels)
        assert plain is not None
        assert whole is not None
        k, residual, regressors = len(self.features), self._residual(release), self._regressors(release)
        inverse, line = np.linalg.inv(regressors), -residual[:-1]
        products, gram = inverse @ self.answer.products, whole.gram
        moments = np.zeros((k + 2, k + 2))
        moments[:-1, :-1] = gram
        moments[:-1, -1] = moments[-1, :-1] = gram @ line + products
        moments[-1, -1] = self._most_squares(release, whole) + line @ gram @ line + 2.0 * line @ products
        of_regressors, of_answer = whole.design_map.copy(), np.eye(k + 2)
        of_regressors[-1] = line @ whole.design_map[:-1]
        of_answer[:-1, :-1] = inverse
        of_answer[-1, :-1] = line @ inverse
        variances = np.zeros((k + 2, k + 2))
        variances[:-1, -1] = variances[-1, :-1] = self.answer.error**2 + self._lost_to_clipping**2
        variances[-1, -1] = whole.residual_noise(residual) ** 2
        law = whole.noise.carried(of_regressors) + NoiseLaw((NoiseTerm(GaussianCells(), variances, of_answer),))
        wide = chosen.with_rare_levels.features
        kept = [0, *(wide.index(feature) + 1 for feature in chosen.features), k + 1]
        result = replace(plain, moments=moments[np.ix_(kept, kept)], noise=law, design_map=np.eye(k + 2)[kept])
        beyond, whitened = np.append(-self.line(release), 1.0)[kept], regressors[1:, kept[:-1]]
        noise = [float(np.sum(whitened @ each.noise_covariance(beyond) * whitened)) for each in (plain, result)]
        return result if noise[1] < noise[0] else None

    def _most_squares(self, release: Released, whole: NormalEquations) -> float:
        """Return the largest sum of squared residuals of the average line (95 %)."""
        # `whole` are the moments' equations of all features of this regression.
        residual = self._residual(release)
        return whole.residual_variance(residual) * whole.n_rows + _UPPER * whole.residual_noise(residual)

    def _clipped_level(self, release: Released, chosen: Regressors) -> str | None:
        """Return a level or Boolean of whose rows the steps may clip most; None without."""
        whole = NormalEquations.of(release, chosen.with_rare_levels)
        assert whole is not None
        deviation = math.sqrt(self._most_squares(release, whole) / release.n_rows)
        ranges = np.ptp(np.array(release.schema.feature_bounds), axis=0) / release.encoding.scale
        for column, indices in columns_with_indices(release):
            if not any(isinstance(part, Boolean | Categorical) for part in getattr(column, "factors", [column])):
                continue
            for index in indices:
                if index in chosen.features:
                    of_row = ranges[index] * self.whitening[:, self.features.index(release.feature_names[index])]
                    if deviation * float(np.linalg.norm(of_row)) > _LONGEST_TYPICAL * self.answer.clip:
                        return release.feature_names[index]
        return None

    @property
    def _lost_to_clipping(self) -> float:
        """Return the root mean square of what clipping may have taken from an entry of the answer.

        As if each clipped row had lost a share of the clip, all in one direction.
        """
        # the number of clipped rows given its noisy count: a normal law above 0
        z = max(self.clipped / self.clipped_error, -5.0)
        hazard = math.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi) / float(scipy.special.ndtr(z))
        rows = self.clipped_error * math.sqrt(1.0 + z * z + z * hazard)
        return _LOST * self.answer.clip * rows

    def clipping(self, n_rows: float, of_moments: ClippingEffect) -> ClippedResiduals:
        """Return the share of rows that were clipped, at most with 95 % confidence."""
        most = max(self.clipped, 0.0) + _UPPER * self.clipped_error
        return ClippedResiduals(min(most / n_rows, 1.0), kept=self.kept, of_moments=of_moments)

    def nothing_found(self, release: Released, chosen: Regressors) -> str | None:
        """Return why nothing of what the steps changed was kept; None if something was."""
        if self.kept > 0.0:
            return None
        return f"contradict the moments: {_CLIPPED}" if self.contradicts(release, chosen) else "show nothing but noise"


def has_long_tails(release: Released) -> bool:
    """Return True if a few rows may be so long that they decide the loss by clipping."""
    # A column is marked as clipped, or most rows need a ball (without one the public bounds) far larger than they are on average.
    table = TableBounds.of(release)
    if table is not None and table.likely.any():
        return True
    variances = np.diag(release.unit_ball_covariance)
    if release.numbers_alone:
        variances = variances[list(Constraints.of(release.schema, mean=True).free)]
    radius = release.diagnostics.get("radius", 1.0)
    return float(radius) ** 2 > _LONG_TAILS * float(variances.sum())


@dataclass(frozen=True, eq=False)
class ClippedResiduals(ClippingEffect):
    """Largest share of rows with clipped residual products, and share of the refinement kept."""

    share: float
    kept: float = 1.0
    intervals: bool = True  # true if there are intervals, which allow for the clipping
    of_moments: ClippingEffect | None = None  # of the rows of the moments

    @property
    def description(self) -> str:
        """Text of some sentences."""
        said = [
            "Coefficients are refined, and of clipped residuals: in the equations, the products of residual and features were "
            f"clipped for at most {self.share:.2%} of the rows (95 % confidence)."
        ]
        if self.intervals:
            said.append(
                f"Intervals allow for it as if each of these had lost {_LOST:.0%} of what was left. A few rows far from the line "
                "lose more, and the table's own coefficients may be further away. The sampling part is of the largest residual "
                "variance that noise leaves."
            )
        elif self.kept < 0.995:
            said.append(f"Of what the steps changed, {1.0 - self.kept:.0%} was taken back as noise.")
        if self.of_moments is not None and self.of_moments.share is not None:
            said.append(self.of_moments.description)
        return " ".join(said)


def _entries(diagnostics: Mapping[str, Any]) -> list[Any]:
    entries = diagnostics.get(TARGETS, [])
    if not isinstance(entries, list):
        raise InputValueError(Message("refined-features"))
    return entries


def _check_entry(values: object) -> None:
    """Raise unless a file's entry is a refined regression."""
    if not isinstance(values, Mapping):
        raise InputValueError(Message("refined-features"))
    require_known(values, ("target", "features", *_ARRAYS, *_NUMBERS, "answer"), "a refined regression")
    features, whitening = values["features"], values["whitening"]
    if not isinstance(features, list) or not features or not all(isinstance(name, str) for name in features):
        raise InputValueError(Message("refined-features"))
    k = len(features)
    if not isinstance(whitening, list) or len(whitening) != k:
        raise InputValueError(Message("refined-whitening"))
    rows = [finite_numbers(row, k, "whitening") for row in whitening]
    for name in ("center", "coefficients"):
        finite_numbers(values[name], k + 1, name)
    for name in _NUMBERS:
        if (
            not is_finite_number(values[name])
            or (name == "clipped_error" and values[name] <= 0.0)
            or (name == "kept" and not 0.0 <= values[name] <= 1.0)
        ):
            raise InputValueError(Message("refined-number", parameter=name))
    StepsAnswer.from_dict(values["answer"], k)
    if np.linalg.matrix_rank(np.array(rows)) < k:
        raise InputValueError(Message("refined-whitening"))


def check_refined_features(diagnostics: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise unless the refined regressions of a file are of these features."""
    for entry in _entries(diagnostics):
        refined = RefinedRegression.from_dict(entry)
        if not {refined.target, *refined.features} <= set(names) or refined.target in refined.features:
            raise InputValueError(Message("refined-features"))


def refined_targets(release: Stated) -> tuple[str, ...]:
    """Return the targets whose coefficients were refined."""
    return tuple(entry["target"] for entry in release.diagnostics.get(TARGETS, ()))


def _entry_of(release: Stated, chosen: Regressors) -> Mapping[str, Any] | None:
    """Return a release's entry of this target; None without an intercept."""
    target, entries = release.feature_names[chosen.target], release.diagnostics.get(TARGETS, ())
    return next((entry for entry in entries if chosen.intercept and entry["target"] == target), None)


def refined_regression(release: Stated, chosen: Regressors) -> RefinedRegression | None:
    """Return the refined regression of this target on exactly these features. None without one."""
    entry = _entry_of(release, chosen)
    features = [release.feature_names[index] for index in chosen.with_rare_levels.features]
    if entry is None or set(entry["features"]) != set(features):
        return None
    return RefinedRegression.of_entry(entry).ordered(features)


def has_other_references(release: Stated, chosen: Regressors) -> bool:
    """Return True if this target was refined on the same columns with other reference levels."""
    entry, asked = _entry_of(release, chosen), chosen.with_rare_levels.features
    own = [] if entry is None else [release.feature_names.index(name) for name in entry["features"]]
    return set(own) != set(asked) and set(columns_of(release, own)) == set(columns_of(release, asked))
