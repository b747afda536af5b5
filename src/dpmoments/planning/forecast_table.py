"""Forecast as it is shown: columns in original units, what to change, then all mechanisms."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dpmoments.analysis.answers import Answer, aligned, plain
from dpmoments.analysis.resolvability import POWER
from dpmoments.foundation.errors import InputKeyError, InputValueError
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.registry import make_mechanism, unknown_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.synthetic_spectrum import Assumption
from dpmoments.messages.message import Message
from dpmoments.planning.changes import Change, Wanted, budget_needed, rows_needed
from dpmoments.planning.imagined_release import EXPLAINED, ForecastNoise, ReleasePlan
from dpmoments.planning.picture import MAX_FEATURES, plot_forecast
from dpmoments.plots.canvas import fonts_for
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpmoments.planning.ways import Ways


# A line of a forecast: one mechanism at one budget, or why it cannot run; and what derived features cost.

_NEEDED = {
    frozenset({BudgetKind.PURE}): "ε alone",
    frozenset({BudgetKind.APPROXIMATE}): "δ > 0",
    frozenset({BudgetKind.ZCDP}): "ρ",
    frozenset({BudgetKind.APPROXIMATE, BudgetKind.ZCDP}): "δ > 0 or ρ",
    frozenset({BudgetKind.PURE, BudgetKind.APPROXIMATE}): "ε",
    frozenset({BudgetKind.PURE, BudgetKind.ZCDP}): "ε alone or ρ",
}


@dataclass(frozen=True, slots=True)
class ForecastRow:
    """Forecast for one mechanism."""

    mechanism: str
    # RMSE ‖Ĝ − G‖_F/n in encoded units, before repair; None if the mechanism cannot run, or if measuring its error on
    # made-up rows would take minutes: of spectral mechanisms with more than 200 features
    second_moment_error: float | None = None
    # RMSE ‖mean error‖₂ in encoded units; None if no mean is wanted or the mechanism cannot run
    mean_error: float | None = None
    arithmetic: str | None = None  # arithmetic of the guarantee
    refusal: str | None = None  # reason why the mechanism cannot run
    # with `mean_assumed`: true if `second_moment_error` (`mean_error`) depends on the table, and is that on the
    # forecast's `assumption`
    assumed: bool = False
    mean_assumed: bool = False
    # upper bound on `second_moment_error` over all tables, for a mechanism that adapts to the table; None for others
    guaranteed_error: float | None = None
    chosen_because: Message | None = None  # why `auto` chose its mechanism
    short_refusal: str | None = None  # the refusal in a few words
    # noise SD of a typical correlation (with one column: of its mean, in standard deviations); None if unknown
    # beforehand
    typical_noise: float | None = None
    # true if that noise hides it, as `correlations()` (`describe()`) of the imagined release shows
    typical_is_noise: bool = False
    # largest fraction of the assumed rows that a query clipped; the errors then include the effect
    clipped: float = 0.0

    @property
    def second_moment_shown(self) -> str:
        """Text of ``second_moment_error``, marked with ~ if it is assumed."""
        return _shown(self.second_moment_error, self.assumed)

    @property
    def mean_shown(self) -> str:
        """Text of ``mean_error``, marked with ~ if it is assumed."""
        return _shown(self.mean_error, self.mean_assumed)

    @property
    def correlation_shown(self) -> str:
        """Text of ``typical_noise``, marked as noise if it hides a typical correlation."""
        return "–" if self.typical_noise is None else _marked(self.typical_noise, self.typical_is_noise)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        entries = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "short_refusal"}
        return {**entries, "chosen_because": None if self.chosen_because is None else self.chosen_because.to_dict()}


@dataclass(frozen=True, slots=True)
class DerivedCost:
    """Increase of the noise on other features by derived features, at the public bounds."""

    names: tuple[str, ...]  # the derived features: `age^2`
    mechanism: str  # the one with the smallest error whose noise distribution is known
    # largest relative increase of the noise SD on a Gram entry of two other features, in original units: 0.5 is half as
    # much again
    second_moment: float
    mean: float | None  # largest relative increase for the mean of another feature; None if no mean is wanted
    robust: bool = False  # true for the products that robust standard errors would need, which the schema does not have

    def __str__(self) -> str:
        means = "" if self.mean is None else f", on means by up to {self.mean:.0%}"
        title = "derived features" if not self.robust else "robust standard errors: the products"
        return (
            f"{title} {', '.join(self.names)} raise the noise on second moments of other features by up to "
            f"{self.second_moment:.0%}{means} ({self.mechanism})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {
            "names": list(self.names),
            "mechanism": self.mechanism,
            "second_moment": self.second_moment,
            "mean": self.mean,
        }


def _shown(error: float | None, assumed: bool) -> str:
    """Format an error: '0.123', '~0.12' if it is assumed, '–' if unknown."""
    if error is None:
        return "–"
    return f"~{error:.2g}" if assumed else f"{error:.3g}"


def short_refusal(mechanism: Mechanism, shape: MomentShape, budget: PrivacyBudget, refusal: str) -> str:
    """Return a refusal in a few words."""
    if budget.kind not in mechanism.budget_kinds:
        return f"needs {_NEEDED[mechanism.budget_kinds]}"
    if mechanism.most_features is not None and shape.n_features > mechanism.most_features:
        return f"takes at most {mechanism.most_features} feature"
    if mechanism.needs_row_norm and shape.row_norm is None:
        return "needs bounds on every column"
    words = re.sub(rf"^(mechanism )?'?{re.escape(mechanism.name)}'? ", "", refusal)
    return re.split(r"[:(;]|\. ", words)[0].strip()


def _refusals_in_a_line(rows: Sequence[ForecastRow]) -> str:
    """List mechanisms that cannot run, grouped by reason, or return an empty text."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.refusal is not None:
            reasons.setdefault(row.short_refusal or row.refusal, []).append(row.mechanism)
    if not reasons:
        return ""
    return "cannot run here: " + "; ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())


# What the analyses say of the imagined releases, with what is assumed of the table.

_NOISE = "noise"
_SEEN_FROM = "r seen from"
_FAR_WORSE = 1.5
"""Name the worst pair if it has this many times the noise of the typical one."""


def column_table(noise: ForecastNoise) -> list[tuple[str, ...]]:
    """Return what ``describe()`` shows, one line per feature; ~ marks what is assumed."""
    # The share of a Boolean column or level determines its standard deviation.
    typical = noise.typical
    _, *rows = noise.description.table()
    seen = noise.smallest_correlations()
    last = (_SEEN_FROM,) if noise.n_pairs else ()
    lines: list[tuple[str, ...]] = [("feature", "typical mean", "± noise", "typical sd", "± noise", *last)]
    for index, (name, mean, of_mean, deviation, of_deviation) in enumerate(rows):
        guesses = ((mean, typical.assumed_means[index]), (deviation, typical.assumed[index]))
        mean, deviation = (f"~{text}" if assumed and text != _NOISE else text for text, assumed in guesses)
        smallest = (_seen_from(float(seen[index])),) if noise.n_pairs else ()
        lines.append((name, mean, of_mean, deviation, "–" if typical.shares[index] else of_deviation, *smallest))
    return lines


def _marked(deviation: float, is_noise: bool) -> str:
    """Format a noise SD, marked if it hides what it is on."""
    if not math.isfinite(deviation):
        return _NOISE
    return f"{deviation:.2g}{f' ({_NOISE})' if is_noise else ''}"


def _seen_from(smallest: float) -> str:
    """Format the smallest correlation, – for a feature that is compared with no other."""
    return "–" if math.isnan(smallest) else "none" if math.isinf(smallest) else f"{smallest:.2g}"


def correlation_text(noise: ForecastNoise) -> str:
    """Format the noise on a typical correlation, marked as noise if it hides one."""
    return _marked(noise.typical_correlation(), noise.typical_correlation_is_noise)


def coefficient_text(noise: ForecastNoise) -> str:
    """Format the noise on a standardized coefficient, or return "noise"."""
    return f"{noise.coefficient:.2g}" if math.isfinite(noise.coefficient) else _NOISE


_COUNTED = (
    "where values are missing, tests of groups count the rows with both values, with more noise than here: about 3 times that of "
    "the rows of a group"
)
"""Measured: 2.6 to 2.9 times, by Laplace and matrix Laplace noise on three groups."""


def _describe_noise(noise: ForecastNoise, worst: ForecastNoise | None, mechanism: str) -> tuple[str, ...]:
    """Return the sentences below the table of columns."""
    lines = _describe_correlations(noise, worst, mechanism)
    if not lines and worst is not None:
        times = float(np.max(np.divide(worst.mean, noise.mean, out=np.ones(len(noise.mean)), where=noise.mean > 0.0)))
        lines = [f"if rows fill their bounds and {mechanism} gains nothing, the noise is up to {times:.2g} × that"]
    counted = _COUNTED if noise.typical.schema.has_available else ""
    return tuple(filter(None, [noise.description.noise_text, *lines, counted, noise.typical.words]))


def _describe_correlations(noise: ForecastNoise, worst: ForecastNoise | None, mechanism: str) -> list[str]:
    correlation = noise.typical_correlation()
    if not math.isfinite(correlation):
        return []
    at_most = ""
    if worst is not None:
        at_most = f"; {correlation_text(worst)} if rows fill their bounds and {mechanism} gains nothing"
    lines = [
        f"± on a correlation (the median of two columns that are not correlated): {correlation_text(noise)}{at_most}"
    ]
    lines.append(
        f"{_SEEN_FROM}: smallest correlation with another feature (the median) whose sign will be clear with {POWER:.0%} "
        f"probability in a table of {noise.n_pairs:,} pairs, despite noise and sampling error; none: no sign will be clear"
    )
    first, second, largest, is_noise = noise.worst_correlation
    if largest > _FAR_WORSE * correlation:
        lines.append(f"± on the worst, {first} ~ {second}: {_NOISE if is_noise else f'{largest:.2g}'}")
    if noise.regression is not None:
        k = noise.regression.regressors
        which = "one regressor that explains" if k == 1 else f"{k} regressors that explain"
        lines.append(
            f"± on a standardized coefficient (of {noise.regression.target} on {which} {EXPLAINED:.0%} of its variance): "
            f"{coefficient_text(noise)}"
        )
    return lines


def _plain_columns(noise: ForecastNoise) -> Mapping[str, Sequence[Any]]:
    """Return plain values, one row per feature."""
    typical, said = noise.typical, noise.description.columns()
    return {
        "feature": typical.schema.feature_names,
        "typical_mean": typical.means.tolist(),
        "typical_mean_assumed": typical.assumed_means.tolist(),
        "typical_sd": typical.standard_deviations.tolist(),
        "typical_sd_assumed": typical.assumed.tolist(),
        **{name: values for name, values in said.items() if name.endswith("noise")},
        "smallest_correlation": plain(noise.smallest_correlations(), finite=True),
    }


def _plain_noise(noise: ForecastNoise, worst: ForecastNoise | None) -> dict[str, Any]:
    """Return columns, correlations and the coefficient as plain values."""
    regression = noise.regression
    return {
        "columns": {name: list(values) for name, values in _plain_columns(noise).items()},
        "correlation": plain(noise.typical_correlation(), finite=True),
        "correlation_is_noise": noise.typical_correlation_is_noise,
        "correlation_at_most": None if worst is None else plain(worst.typical_correlation(), finite=True),
        "coefficient": plain(noise.coefficient, finite=True),
        "coefficient_is_noise": math.isinf(noise.coefficient),
        "regressors": None if regression is None else regression.regressors,
        "target": None if regression is None else regression.target,
        "assumes": noise.typical.words,
    }


class _Part(Answer):
    """Table of a forecast, with the lines above and below it."""

    def __init__(self, heading: Sequence[str], rows: Sequence[Sequence[str]], remarks: Sequence[str]) -> None:
        self._heading, self._rows, self._remarks = tuple(heading), rows, tuple(remarks)

    @property
    def heading(self) -> tuple[str, ...]:
        return self._heading

    def table(self) -> Sequence[Sequence[str]]:
        return self._rows

    @property
    def remarks(self) -> tuple[str, ...]:
        return self._remarks

    def columns(self) -> Mapping[str, Sequence[Any]]:
        head, *rows = self._rows
        return {name: [row[index] for row in rows] for index, name in enumerate(head)}

    def to_dict(self) -> dict[str, Any]:
        return {name: list(values) for name, values in self.columns().items()}


_ABOUT_AS_MUCH = 1.05
_DEFAULT = "auto"
"""Default mechanism of a release."""


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(Answer):
    """Forecast of a release: noise in original units, and a row per mechanism, refusals last.

    Attributes
    ----------
    rows : tuple of ForecastRow
        Smallest expected error first.
    n_rows : int
        With a privacy unit, the number of rows that count.
    budget : PrivacyBudget
    neighbors : Neighbors
    assumption : Assumption
        Assumption about the table behind the marked errors of mechanisms.
    derived_cost : DerivedCost or None
        None if the schema has no derived feature, or no mechanism with known noise can run.
    robust_cost : DerivedCost or None
        What the products for robust standard errors would cost; None if they were not asked for, or are all there.
    setting : ReleasePlan or None
        The release that the numbers in original units are for: by ``mechanism``, else by the best one.
    noise : ForecastNoise or None
        Its noise; None if no mechanism can run whose noise in original units is known beforehand.
    worst : ForecastNoise or None
        Worst-case noise of a mechanism that adapts to the table.
    changes : tuple of Change
        Changes that would lower the noise, best first.
    without_units : Message
        Reason for missing numbers in original units.
    privacy_unit : PrivacyUnit or None
        The privacy unit, if it is not one row.
    mechanism : str or None
        Mechanism that the forecast was requested for; None for the best one.
    """

    rows: tuple[ForecastRow, ...]
    n_rows: int
    budget: PrivacyBudget
    neighbors: Neighbors
    assumption: Assumption
    derived_cost: DerivedCost | None = None
    setting: ReleasePlan | None = None
    noise: ForecastNoise | None = None
    worst: ForecastNoise | None = None
    changes: tuple[Change, ...] = ()
    without_units: Message = field(default_factory=lambda: Message("no-units-of-any-mechanism"))
    privacy_unit: PrivacyUnit | None = None
    robust_cost: DerivedCost | None = None
    mechanism: str | None = None

    def __iter__(self) -> Iterator[ForecastRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, mechanism: str) -> ForecastRow:
        """Return the row of the named mechanism."""
        for row in self.rows:
            if row.mechanism == mechanism:
                return row
        raise InputKeyError(unknown_mechanism(mechanism, [row.mechanism for row in self.rows], of_means=False))

    @property
    def units(self) -> str:
        """Units of the errors of mechanisms."""
        return "unit-ball units" if self.assumption.units is None else "in assumed standard deviations"

    @property
    def best(self) -> str | None:
        """Mechanism with the least noise in original units; None if none is known."""
        return self.known[0].mechanism if self.known else None

    @property
    def known(self) -> tuple[ForecastRow, ...]:
        """Mechanisms with known noise in original units, least noise first."""
        rows = (row for row in self.rows if row.typical_noise is not None)
        return tuple(sorted(rows, key=lambda row: (row.typical_noise or math.inf, row.mechanism == _DEFAULT)))

    @property
    def asked_of(self) -> str | None:
        """Default mechanism for the rows and budgets needed."""
        if self.mechanism is not None:
            return self.mechanism
        runs = any(row.mechanism == _DEFAULT and row.refusal is None for row in self.rows)
        known = runs and self.setting is not None and self._setting_of(_DEFAULT).noise is not None
        return _DEFAULT if known else self.best

    def rows_needed(self, *, mechanism: str | None = None, **wanted: Any) -> int:
        """Find the smallest number of rows with noise as small as wanted, at this budget.

        Parameters
        ----------
        mechanism : str, optional
            Default: that of the forecast; else ``auto``, the default of :func:`dpmoments.release`, or the best if that
            cannot run.
        **wanted
            Noise SDs: ``correlation=0.02``, ``coefficient=0.05`` for the typical ones; ``mean={"age": 0.5}``,
            ``sd={"age": 0.5}`` in original units, ``share={"smoker": 0.01}``; one number applies to all features. A 95
            % interval is ± 1.96 of them.

        Returns
        -------
        int
            By search over plans: with one row fewer the noise is larger. Exact for additive noise; for
            ``adaptive-ball`` it depends on the assumed table. With a privacy unit, the number of rows that count.

        Raises
        ------
        ValueError
            If nothing is wanted, a name is unknown, or 10¹² rows are not enough.

        Examples
        --------
        >>> import dpmoments as dpm
        >>> schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Numeric("weight", 0, 200))
        >>> table = dpm.forecast(schema, n_rows=1000, epsilon=1.0, typical_sd={"age": 18, "weight": 15})
        >>> needed = table.rows_needed(correlation=0.02, mechanism="laplace")
        >>> again = dpm.forecast(schema, n_rows=needed, epsilon=1.0, typical_sd={"age": 18, "weight": 15})
        >>> again.noise_of("laplace").typical_correlation() <= 0.02
        True
        """
        setting = self._setting_of(mechanism or self.asked_of)
        return rows_needed(setting, Wanted.of(setting.typical, **wanted))

    def epsilon_needed(self, *, mechanism: str | None = None, **wanted: Any) -> float:
        """Find the smallest ε (at this δ) with noise as small as wanted, at this number of rows.

        Parameters
        ----------
        mechanism, **wanted
            As for :meth:`rows_needed`.

        Raises
        ------
        ValueError
            If ε = 100 is not enough, or the budget is in ρ.
        """
        if self.budget.kind is BudgetKind.ZCDP:
            raise InputValueError(Message("forecast-in-other-units-rho", budget=self.budget))
        setting = self._setting_of(mechanism or self.asked_of)
        return budget_needed(setting, Wanted.of(setting.typical, **wanted))

    def rho_needed(self, *, mechanism: str | None = None, **wanted: Any) -> float:
        """Find the smallest ρ, as :meth:`epsilon_needed`, for a forecast made with ``rho``."""
        if self.budget.kind is not BudgetKind.ZCDP:
            raise InputValueError(Message("forecast-in-other-units-epsilon", budget=self.budget))
        setting = self._setting_of(mechanism or self.asked_of)
        return budget_needed(setting, Wanted.of(setting.typical, **wanted))

    def ways(
        self, *, means: bool = False, tables: Sequence[Sequence[str]] = (), regressions: Sequence[Sequence[str]] = ()
    ) -> Ways:
        """Compare one release of everything with releases made for stated questions.

        Parameters
        ----------
        means : bool
            The means of all columns, which :func:`dpmoments.release_mean` also gives.
        tables : sequence of sequences of str
            Contingency tables by these columns, which :func:`dpmoments.release_counts` also gives: ``[["region", "sex"]]``.
        regressions : sequence of sequences of str
            Each a target and its regressors, which a release of these columns also gives: ``[["income", "age", "sex"]]``.

        Returns
        -------
        Ways
            The error of each way, and the best. Errors are noise SDs, on the forecast's assumptions.

        Raises
        ------
        ValueError
            If no question is stated, a column is unknown, or the noise is not known beforehand.
        TypeError
            If a name is given in place of a list of names.

        Examples
        --------
        >>> from dpmoments import Boolean, Numeric, Schema, forecast
        >>> schema = Schema(Numeric("age", 0, 120), Numeric("income", 0, 200_000), Boolean("smoker"), Boolean("insured"))
        >>> found = forecast(schema, n_rows=5000, epsilon=1.0).ways(tables=[["smoker", "insured"]])
        >>> found.best, round(found.ways[0].own_release, 2)
        ('release_counts(…)', 1.36)
        """
        from dpmoments.planning.ways import ways_to_answer

        setting = self._setting_of(self.asked_of)
        return ways_to_answer(setting, self.title, means=means, tables=tables, regressions=regressions)

    def noise_of(self, mechanism: str) -> ForecastNoise:
        """Return the noise of a mechanism in original units.

        Raises
        ------
        ValueError
            If it cannot run, or its noise is not known beforehand.
        """
        noise = self._setting_of(mechanism).noise
        if noise is None:
            raise InputValueError(Message("original-units-unknown", mechanism=mechanism))
        return noise

    def _setting_of(self, mechanism: str | None) -> ReleasePlan:
        if self.setting is None:
            raise InputValueError(Message("nothing-in-original-units", reason=self.without_units))
        return self.setting if mechanism is None else replace(self.setting, mechanism=make_mechanism(mechanism))

    @property
    def title(self) -> str:
        """Title: rows, budget and relation."""
        return f"Forecast for {self.n_rows:,} {self.rows_text}, {self.budget}, {self.neighbors}; no data read"

    @property
    def rows_text(self) -> str:
        """Noun for ``n_rows``."""
        return "rows" if self.privacy_unit is None else self.privacy_unit.rows_text

    @property
    def heading(self) -> tuple[str, ...]:
        if self.noise is None:
            return self.title, f"no numbers in original units: {self.without_units}"
        return (
            self.title,
            f"best: {self.best}{self._why_best}" if self.mechanism is None else f"mechanism: {self._requested}",
            "what describe() would show if the table is as assumed, in original units:",
        )

    @property
    def _requested(self) -> str:
        """Requested mechanism, compared with the best."""
        assert self.mechanism is not None
        row, best = self[self.mechanism], self.known[0]
        takes = "" if row.chosen_because is None else f", which takes {row.chosen_because.facts['mechanism']}"
        assert row.typical_noise is not None
        assert best.typical_noise is not None
        ratio = 1.0 if row.typical_noise == best.typical_noise else best.typical_noise / row.typical_noise
        if ratio * _ABOUT_AS_MUCH > 1.0:
            return f"{self.mechanism}{takes} (the least noise{self._measure})"
        return f"{self.mechanism}{takes} ({best.mechanism} has the least noise{self._measure}, {ratio:.2g} × as much)"

    @property
    def _why_best(self) -> str:
        others = [
            row for row in self.rows if row.typical_noise is not None and row.mechanism not in (self.best, "auto")
        ]
        own = self.known[0].typical_noise
        if not others or not own:
            return ""
        second = min(others, key=lambda row: row.typical_noise or math.inf)
        assert second.typical_noise is not None
        times = second.typical_noise / own
        as_much = "about as much" if times < _ABOUT_AS_MUCH else f"{times:.2g} × as much"
        chosen = ", which auto takes" if self["auto"].chosen_because and self._auto_takes_it else ""
        named = "" if chosen or self.asked_of == self.best else f"; request it with mechanism={self.best!r}"
        return f"{chosen} (the least noise{self._measure}; {second.mechanism} has {as_much}{named})"

    @property
    def _measure(self) -> str:
        """Quantity of which ``typical_noise`` is the noise."""
        known = self.noise is not None and math.isfinite(self.noise.typical_correlation())
        return " on a typical correlation" if known else " on a typical mean"

    @property
    def _auto_takes_it(self) -> bool:
        reason = self["auto"].chosen_because
        return reason is not None and reason.facts["mechanism"] == self.best

    def table(self) -> list[tuple[str, ...]]:
        """Return one line per feature: assumed mean and SD with their noise; else the mechanisms."""
        return self.mechanism_table() if self.noise is None else column_table(self.noise)

    def mechanism_table(self) -> list[tuple[str, ...]]:
        """Return one line per possible mechanism: errors, noise on a correlation, arithmetic."""
        lines: list[tuple[str, ...]] = [("mechanism", "second moment", "mean", "± corr.", "arithmetic")]
        lines += [
            (row.mechanism, row.second_moment_shown, row.mean_shown, row.correlation_shown, row.arithmetic or "–")
            for row in self.rows
            if row.refusal is None
        ]
        return lines

    @property
    def description(self) -> tuple[str, ...]:
        """Lines below the columns: correlations, a coefficient, assumptions, what to change."""
        if self.noise is None or self.setting is None:
            return ()
        helpful = ("what would help:", *(f"  {change}" for change in self.changes)) if self.changes else ()
        return (*_describe_noise(self.noise, self.worst, self.setting.mechanism.name), *helpful)

    @property
    def mechanisms_text(self) -> tuple[str, ...]:
        """Heading of the table of mechanisms, and what it assumes."""
        marked = [f"~ assumes: {self.assumption.words}"] if any(row.assumed for row in self.rows) else []
        return (f"Expected error of every mechanism ({self.units}, before repair)", *marked)

    @property
    def mechanism_remarks(self) -> tuple[str, ...]:
        """Remarks on mechanisms: derived features, adaptive errors, the choice of ``auto``."""
        adaptive = [
            f"{row.mechanism} adapts to the table: its error is at most {row.guaranteed_error:.3g}, and smaller "
            "if most rows lie in a small ball; in the assumed table rows fill their bounds, as real ones rarely "
            "do"
            for row in self.rows
            if row.guaranteed_error is not None and row.chosen_because is None
        ]
        unknown = [row.mechanism for row in self.rows if row.refusal is None and row.second_moment_error is None]
        of_unknown = (f"not measured (too many features): the error of {', '.join(unknown)}",) if unknown else ()
        derived = (str(cost) for cost in (self.derived_cost, self.robust_cost) if cost is not None)
        refused = _refusals_in_a_line(self.rows)
        clipped = [f"{row.mechanism} ({row.clipped:.2g} of them)" for row in self.rows if row.clipped > 0.0]
        of_clipped = (f"errors include the clipping of assumed rows: {', '.join(clipped)}",) if clipped else ()
        return (
            *derived,
            *adaptive,
            *of_clipped,
            *of_unknown,
            *(f"{row.mechanism}: {row.chosen_because.text('curator')}" for row in self.rows if row.chosen_because),
            *((refused,) if refused else ()),
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        return (*self.description, *(() if self.noise is None else self.mechanisms_text), *self.mechanism_remarks)

    def text(self) -> str:
        """Return the forecast as text."""
        if self.noise is None:
            lines = [*self.heading, *self.mechanisms_text, aligned(self.mechanism_table()), *self.mechanism_remarks]
        else:
            lines = [*self.heading, aligned(self.table()), *self.description, ""]
            lines += [*self.mechanisms_text, aligned(self.mechanism_table()), *self.mechanism_remarks]
        return "\n".join(line for index, line in enumerate(lines) if line or index > 2)

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return plain values, one row per feature, or per mechanism without original units."""
        if self.noise is None:
            fields = ("mechanism", "second_moment_error", "mean_error", "arithmetic", "refusal")
            return {name: [getattr(row, name) for row in self.rows] for name in fields}
        return _plain_columns(self.noise)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        result: dict[str, Any] = {
            "n_rows": self.n_rows,
            "budget": self.budget.to_dict(),
            "neighbors": str(self.neighbors),
            "protected_unit": "row" if self.privacy_unit is None else self.privacy_unit.to_dict(),
            "assumption": {"spectrum": list(self.assumption.spectrum), "units": self.assumption.units},
            "mechanisms": [row.to_dict() for row in self.rows],
            "derived_cost": None if self.derived_cost is None else self.derived_cost.to_dict(),
            "robust_cost": None if self.robust_cost is None else self.robust_cost.to_dict(),
            "best": self.best,
            "in_units": None,
            "changes": [change.to_dict() for change in self.changes],
        }
        if self.noise is not None:
            result["in_units"] = _plain_noise(self.noise, self.worst)
        return result

    def plot(
        self,
        against: Literal["columns", "budget"] = "columns",
        *,
        n_features: int = MAX_FEATURES,
        ax: Axes | None = None,
    ) -> Axes:
        """Plot the noise against the columns or the budget.

        See :func:`dpmoments.planning.picture.plot_forecast`. ``"columns"`` shows the noise on mean and standard
        deviation of the ``n_features`` features with the most noise, ``"budget"`` that on a typical correlation from an
        eighth of the budget to eight times it.

        Raises
        ------
        ValueError
            If nothing is known in original units, or ``against`` is neither.
        """
        if self.setting is None or self.noise is None:
            raise InputValueError(Message("forecast-without-plot", reason=self.without_units))
        with fonts_for(self.setting.typical.schema):
            return plot_forecast(self.setting, self.noise, self.title, against=against, n_features=n_features, ax=ax)

    def _repr_html_(self) -> str:
        """Return two escaped tables for notebooks."""
        if self.noise is None:
            return super()._repr_html_()
        first = _Part(self.heading, self.table(), self.description)
        second = _Part(self.mechanisms_text, self.mechanism_table(), self.mechanism_remarks)
        return first._repr_html_() + second._repr_html_()
