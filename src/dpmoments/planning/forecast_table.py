"""Forecast as it is shown: columns in original units, what to change, then all mechanisms."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from dpmoments.analysis.answers import Answer, Column, plain
from dpmoments.analysis.resolvability import POWER
from dpmoments.base.errors import InputKeyError, InputValueError
from dpmoments.base.message import Message
from dpmoments.mechanisms.registry import make_mechanism, unknown_mechanism
from dpmoments.planning.changes import Change, Wanted, budget_needed, rows_needed
from dpmoments.planning.forecast_noise import ForecastNoise, ReleasePlan
from dpmoments.planning.picture import MAX_FEATURES, plot_forecast
from dpmoments.plots.canvas import fonts_for
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpmoments.planning.ways import Ways


# The mechanisms, one line each: its errors at one budget, or why it cannot run.

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
    """Forecast for one mechanism: root mean square errors before repair.

    They are of noise and of clipped typical rows.
    """

    mechanism: str
    correlation_error: float | None = None  # over pairs of columns; None if unknown
    mean_error: float | None = None  # over features, in typical standard deviations; None if unknown
    # without a mean, as papers compare mechanisms: ‖Ĝ − G‖_F/n in encoded units; None if unknown
    second_moment_error: float | None = None
    arithmetic: str | None = None  # arithmetic of the guarantee
    refusal: str | None = None  # reason why the mechanism cannot run
    short_refusal: str | None = None  # the refusal in a few words
    chosen_because: Message | None = None  # why `auto` chose its mechanism

    @property
    def errors(self) -> tuple[float, float, float]:
        """Errors by which mechanisms are compared, the first known decides; infinite if unknown."""
        known = (self.correlation_error, self.mean_error, self.second_moment_error)
        first, second, third = (math.inf if error is None else error for error in known)
        return first, second, third

    @property
    def is_known(self) -> bool:
        """True if an error is known."""
        return any(map(math.isfinite, self.errors))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        entries = {name: value for name, value in asdict(self).items() if name != "short_refusal"}
        return entries | {"chosen_because": None if self.chosen_because is None else self.chosen_because.to_dict()}


def short_refusal(setting: ReleasePlan, refusal: str) -> str:
    """Return a refusal in a few words."""
    mechanism, schema = setting.mechanism, setting.typical.schema
    if setting.request.budget.kind not in mechanism.budget_kinds:
        return f"needs {_NEEDED[mechanism.budget_kinds]}"
    if mechanism.most_features is not None and schema.n_features > mechanism.most_features:
        return f"takes at most {mechanism.most_features} feature"
    if mechanism.needs_row_norm and schema.row_norm is None:
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


# The columns: what the analyses say of the imagined release, with what is assumed of the table.

_NOISE = "noise"
_SEEN_FROM = "r seen from"
_FAR_WORSE = 1.5
"""Name the worst pair if it has this many times the noise of the typical one."""
_MOVED = 0.01
"""Name what clipping does to standard deviations from this share on."""


def column_table(noise: ForecastNoise) -> list[tuple[str, ...]]:
    """Return what ``describe()`` shows, one line per feature; ~ marks what is assumed."""
    # The share of a Boolean column or level determines its standard deviation.
    typical = noise.typical
    _, *rows = noise.description.table()
    seen, any_pair = noise.smallest_correlations(), noise.n_pairs > 0
    last = (_SEEN_FROM,) if any_pair else ()
    lines: list[tuple[str, ...]] = [("feature", "typical mean", "± noise", "typical sd", "± noise", *last)]
    for index, (name, mean, of_mean, deviation, of_deviation, *_) in enumerate(rows):
        guesses = ((mean, typical.assumed_means[index]), (deviation, typical.assumed[index]))
        mean, deviation = (f"~{text}" if assumed and text != _NOISE else text for text, assumed in guesses)
        smallest = (_seen_from(float(seen[index])),) if any_pair else ()
        lines.append((name, mean, of_mean, deviation, "–" if typical.shares[index] else of_deviation, *smallest))
    return lines


def _seen_from(smallest: float) -> str:
    """Format the smallest correlation, – for a feature that is compared with no other."""
    return "–" if math.isnan(smallest) else "none" if math.isinf(smallest) else f"{smallest:.2g}"


def correlation_text(noise: ForecastNoise) -> str:
    """Format the noise on a typical correlation, marked as noise if it hides one."""
    deviation, hidden = noise.typical_correlation(), noise.typical_correlation_is_noise
    if not math.isfinite(deviation):
        return _NOISE
    return f"{deviation:.2g} ({_NOISE})" if hidden else f"{deviation:.2g}"


def coefficient_text(noise: ForecastNoise) -> str:
    """Format the noise on a standardized coefficient, or return "noise"."""
    return f"{noise.coefficient:.2g}" if math.isfinite(noise.coefficient) else _NOISE


_COUNTED = (
    "where values are missing, tests of groups count the rows with both values, with more noise than here: about 3 times that of "
    "the rows of a group"
)
"""Measured: 2.6 to 2.9 times, by Laplace and matrix Laplace noise on three groups."""


def _describe_noise(noise: ForecastNoise) -> Iterator[str]:
    """Yield the sentences below the table of columns."""
    yield from filter(None, [noise.description.noise_text])
    moved = noise.clipped_deviations.max(initial=0.0)
    if moved > _MOVED:
        yield f"clipping is in no ±: it makes standard deviations of typical rows up to {moved:.0%} smaller"
    if not math.isnan(correlation := noise.typical_correlation()):
        yield f"± on a correlation (the median over pairs of columns): {correlation_text(noise)}"
        yield (
            f"{_SEEN_FROM}: smallest correlation with another feature (the median) whose sign will be clear with {POWER:.0%} "
            f"probability in a table of {noise.n_pairs:,} pairs, despite noise and sampling error; none: no sign will be clear"
        )
        first, second, largest, is_noise = noise.worst_correlation
        if largest > _FAR_WORSE * correlation:
            yield f"± on the worst, {first} ~ {second}: {_NOISE if is_noise else f'{largest:.2g}'}"
        if (regression := noise.regression) is not None:
            others = "one other" if regression.regressors == 1 else f"{regression.regressors} others"
            yield f"± on a standardized coefficient (of {regression.target} on {others}): {coefficient_text(noise)}"
    if noise.typical.schema.has_available:
        yield _COUNTED
    yield from filter(None, [noise.typical.words])


class _Mechanisms(Answer):
    """The table of mechanisms, with the lines above and below it."""

    def __init__(self, forecast: Forecast) -> None:
        self._forecast = forecast

    @property
    def heading(self) -> tuple[str, ...]:
        what = "typical rows" if self._forecast.mean else "encoded units"
        return (f"Error of every mechanism (root mean square, {what}, before repair)",)

    def _columns(self) -> list[Column]:
        rows = [row for row in self._forecast.rows if row.refusal is None]
        stated = {name: [getattr(row, name) for row in rows] for name in ForecastRow.__dataclass_fields__}
        errors = {"second_moment_error": "second moment"}
        if self._forecast.mean:
            errors = {"correlation_error": "correlations", "mean_error": "means, in sd"}
        return [
            Column("mechanism", stated["mechanism"], "mechanism", label=True),
            *(
                Column(name, stated[name], head, ["–" if error is None else f"{error:.2g}" for error in stated[name]])
                for name, head in errors.items()
            ),
            Column("arithmetic", stated["arithmetic"], "arithmetic"),
        ]

    @property
    def remarks(self) -> tuple[str, ...]:
        forecast = self._forecast
        costs = [str(cost) for cost in (forecast.derived_cost, forecast.robust_cost) if cost is not None]
        chosen = [f"{row.mechanism}: {row.chosen_because.text('curator')}" for row in forecast if row.chosen_because]
        return tuple(filter(None, (*costs, *chosen, _refusals_in_a_line(forecast.rows))))


_ABOUT_AS_MUCH = 1.05


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(Answer):
    """Forecast of a release: noise in original units, and a row per mechanism, refusals last.

    Attributes
    ----------
    rows : tuple of ForecastRow
        Smallest error first.
    n_rows : int
        With a privacy unit, the number of rows that count.
    budget : PrivacyBudget
    neighbors : Neighbors
    mechanism : str or None
        Mechanism of the numbers in original units: the one asked for, else ``auto``, else the best that can run.
    setting : ReleasePlan or None
        The release that these numbers are for; None if they are not known.
    changes : tuple of Change
        Changes that would lower the noise, best first.
    derived_cost : Change or None
        What the noise on other features would be without the derived ones; None if the schema has none.
    robust_cost : Change or None
        What the products for robust standard errors would cost; None if they were not asked for, or are all there.
    without_units : InputValueError
        Reason for missing numbers in original units.
    privacy_unit : PrivacyUnit or None
        The privacy unit, if it is not one row.
    mean : bool
        False if only the second moment is released.
    """

    rows: tuple[ForecastRow, ...]
    n_rows: int
    budget: PrivacyBudget
    neighbors: Neighbors
    mechanism: str | None = None
    setting: ReleasePlan | None = None
    changes: tuple[Change, ...] = ()
    derived_cost: Change | None = None
    robust_cost: Change | None = None
    without_units: InputValueError = field(
        default_factory=lambda: InputValueError("the noise of no possible mechanism is known beforehand"), compare=False
    )
    privacy_unit: PrivacyUnit | None = None
    mean: bool = True

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
    def noise(self) -> ForecastNoise | None:
        """Noise in original units; None if it is not known."""
        return None if self.setting is None else self.setting.noise

    @property
    def best(self) -> str | None:
        """Mechanism with the least error, ``auto`` by the name of its choice; None if none is known."""
        known = [row for row in self.rows if row.is_known]
        return min(known, key=lambda row: (row.errors, row.mechanism == "auto")).mechanism if known else None

    def rows_needed(self, *, mechanism: str | None = None, **wanted: Any) -> int:
        """Find the smallest number of rows with noise as small as wanted, at this budget.

        Parameters
        ----------
        mechanism : str, optional
            Default: that of the forecast.
        **wanted
            Noise SDs: ``correlation=0.02``, ``coefficient=0.05`` for the typical ones; ``mean={"age": 0.5}``,
            ``sd={"age": 0.5}`` in original units, ``share={"smoker": 0.01}``; one number applies to all features. A 95
            % interval is ± 1.96 of them.

        Returns
        -------
        int
            By search over imagined releases. With a privacy unit, the number of rows that count.

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
        return rows_needed(*self._wanted(mechanism, wanted))

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
            raise InputValueError(f"the budget of the forecast is {self.budget}: use rho_needed")
        return budget_needed(*self._wanted(mechanism, wanted))

    def rho_needed(self, *, mechanism: str | None = None, **wanted: Any) -> float:
        """Find the smallest ρ, as :meth:`epsilon_needed`, for a forecast made with ``rho``."""
        if self.budget.kind is not BudgetKind.ZCDP:
            raise InputValueError(f"the budget of the forecast is {self.budget}: use epsilon_needed")
        return budget_needed(*self._wanted(mechanism, wanted))

    def _wanted(self, mechanism: str | None, wanted: Mapping[str, Any]) -> tuple[ReleasePlan, Wanted]:
        setting = self._setting_of(mechanism)
        return setting, Wanted(setting.typical, **wanted)

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

        return ways_to_answer(self._setting_of(None), self.title, means=means, tables=tables, regressions=regressions)

    def noise_of(self, mechanism: str) -> ForecastNoise:
        """Return the noise of a mechanism in original units.

        Raises
        ------
        ValueError
            If it cannot run, or its noise is not known beforehand.
        """
        noise = self._setting_of(mechanism).noise
        assert noise is not None
        return noise

    def _setting_of(self, mechanism: str | None) -> ReleasePlan:
        if self.setting is None:
            raise self.without_units.preceded_by("nothing is known in original units: ")
        setting = self.setting if mechanism is None else replace(self.setting, mechanism=make_mechanism(mechanism))
        if setting.noise is None:
            raise InputValueError(f"the noise of {setting.mechanism.name} in original units is not known beforehand")
        return setting

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
            return self.title, f"no numbers in original units: {self.without_units}", *self.mechanisms.heading
        assert self.mechanism is not None
        assert self.best is not None
        assert self.setting is not None
        taken = self.setting.plan.mechanism.name
        name = self.mechanism if taken == self.mechanism else f"{self.mechanism}, which takes {taken}"
        pairs = zip(self[self.best].errors, self[self.mechanism].errors, ("correlations", "means", ""), strict=True)
        least, own, of = next(pair for pair in pairs if math.isfinite(pair[0]))
        compared = f"{self.best} has {least / own:.2g} times its error of {of}"
        if least * _ABOUT_AS_MUCH >= own:
            compared = f"none has a smaller error of {of}"
        in_units = "what describe() would show if the table is as assumed, in original units:"
        return self.title, f"mechanism: {name} ({compared})", in_units

    @property
    def mechanisms(self) -> Answer:
        """The table of mechanisms."""
        return _Mechanisms(self)

    def table(self) -> Sequence[Sequence[str]]:
        """Return one line per feature: assumed mean and SD with their noise; else the mechanisms."""
        return self.mechanisms.table() if self.noise is None else column_table(self.noise)

    @property
    def remarks(self) -> tuple[str, ...]:
        if self.noise is None:
            return self.mechanisms.remarks
        helpful = ["what would help:", *(f"  {change}" for change in self.changes)] if self.changes else []
        return (*_describe_noise(self.noise), *helpful)

    def text(self) -> str:
        """Return the columns and the mechanisms as text."""
        below = () if self.noise is None else (self.mechanisms.text(),)
        return "\n".join([super().text(), *below])

    def _repr_html_(self) -> str:
        """Return two escaped tables for notebooks."""
        return super()._repr_html_() + ("" if self.noise is None else self.mechanisms._repr_html_())

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return plain values, one row per feature, or per mechanism without original units."""
        if self.noise is None:
            fields = ("mechanism", "second_moment_error", "arithmetic", "refusal")
            return {name: [getattr(row, name) for row in self.rows] for name in fields}
        noise, typical = self.noise, self.noise.typical
        return {
            "feature": typical.schema.feature_names,
            "typical_mean": typical.means.tolist(),
            "typical_mean_assumed": typical.assumed_means.tolist(),
            "typical_sd": typical.standard_deviations.tolist(),
            "typical_sd_assumed": typical.assumed.tolist(),
            **{name: values for name, values in noise.description.columns().items() if name.endswith("noise")},
            "smallest_correlation": plain(noise.smallest_correlations(), finite=True),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        costs = {"derived_cost": self.derived_cost, "robust_cost": self.robust_cost}
        result: dict[str, Any] = {
            "n_rows": self.n_rows,
            "budget": self.budget.to_dict(),
            "neighbors": str(self.neighbors),
            "protected_unit": "row" if self.privacy_unit is None else self.privacy_unit.to_dict(),
            "mechanism": self.mechanism,
            "best": self.best,
            "mechanisms": [row.to_dict() for row in self.rows],
            **{name: None if cost is None else cost.to_dict() for name, cost in costs.items()},
            "changes": [change.to_dict() for change in self.changes],
            "in_units": None,
        }
        if (noise := self.noise) is not None:
            regression = noise.regression
            result["in_units"] = {
                "columns": {name: list(values) for name, values in self.columns().items()},
                "correlation": plain(noise.typical_correlation(), finite=True),
                "correlation_is_noise": noise.typical_correlation_is_noise,
                "coefficient": plain(noise.coefficient, finite=True),
                "coefficient_is_noise": math.isinf(noise.coefficient),
                "regressors": None if regression is None else regression.regressors,
                "target": None if regression is None else regression.target,
                "assumes": noise.typical.words,
            }
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
            raise self.without_units.preceded_by(
                "cannot plot this forecast: it has no numbers in original units, since "
            )
        with fonts_for(self.setting.typical.schema):
            return plot_forecast(self.setting, self.noise, self.title, against=against, n_features=n_features, ax=ax)
