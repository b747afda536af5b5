"""The forecast as it is shown: columns in the table's units first, what to change, then all mechanisms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from dpmoments.analysis.answers import TableAnswer, aligned
from dpmoments.mechanisms.assumption import Assumption
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.planning.changes import Change
from dpmoments.planning.columns_in_words import (
    TableInWords,
    column_table,
    columns_in_words,
    plain_columns,
    plain_noise,
)
from dpmoments.planning.imagined_release import NoiseInUnits
from dpmoments.planning.mechanism_rows import DerivedCost, ForecastRow, refusals_in_a_line
from dpmoments.planning.needed import Wanted, budget_needed, rows_needed
from dpmoments.planning.picture import MOST_FEATURES, plot_forecast
from dpmoments.planning.setting import Setting
from dpmoments.plots.letters import fonts_for
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.unit import PrivacyUnit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Forecast"]

ABOUT_AS_MUCH = 1.05
DEFAULT = "auto"
"""What a release takes unless told."""


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(TableAnswer):
    """What a release would be worth: the noise in the table's units, and a row for every mechanism, refusals last.

    Attributes
    ----------
    rows : tuple of ForecastRow
        The least expected error first.
    n_rows : int
        With a privacy unit, of the rows that count.
    budget : PrivacyBudget
    neighbors : Neighbors
    assumption : Assumption
        What the marked numbers of the mechanisms assume of the table.
    derived_cost : DerivedCost or None
        None where the schema has no derived feature, or no mechanism with a law of its noise can run.
    setting : Setting or None
        The release that the numbers in the table's units are of: that by the best mechanism.
    noise : NoiseInUnits or None
        Its noise; None where no mechanism can run whose noise is known beforehand in the table's units.
    worst : NoiseInUnits or None
        For a mechanism that adapts to the table, its noise where it gains nothing.
    changes : tuple of Change
        What would lower the noise, the most helpful first.
    without_units : str
        Why there are no numbers in the table's units, where there are none.
    privacy_unit : PrivacyUnit or None
        For whom the budget is, where that is not one row.
    """

    rows: tuple[ForecastRow, ...]
    n_rows: int
    budget: PrivacyBudget
    neighbors: Neighbors
    assumption: Assumption
    derived_cost: DerivedCost | None = None
    setting: Setting | None = None
    noise: NoiseInUnits | None = None
    worst: NoiseInUnits | None = None
    changes: tuple[Change, ...] = ()
    without_units: str = ""
    privacy_unit: PrivacyUnit | None = None

    def __iter__(self) -> Iterator[ForecastRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, mechanism: str) -> ForecastRow:
        """The row of the mechanism named."""
        for row in self.rows:
            if row.mechanism == mechanism:
                return row
        raise KeyError(mechanism)

    @property
    def units(self) -> str:
        """What errors of the mechanisms are measured in."""
        return "unit-ball units" if self.assumption.units is None else "in assumed standard deviations"

    @property
    def best(self) -> str | None:
        """The mechanism with the least noise in the table's units; None where that of none is known."""
        return None if self.setting is None else self.setting.mechanism.name

    @property
    def asked_of(self) -> str | None:
        """The mechanism of which rows and budgets needed are told, unless one is named."""
        runs = any(row.mechanism == DEFAULT and row.refusal is None for row in self.rows)
        known = runs and self.setting is not None and self._setting_of(DEFAULT).noise is not None
        return DEFAULT if known else self.best

    def rows_needed(self, *, mechanism: str | None = None, **wanted: Any) -> int:
        """The smallest number of rows at which the noise is as small as wanted, with the budget of this forecast.

        Parameters
        ----------
        mechanism : str, optional
            Default: ``auto``, which :func:`dpmoments.release` takes by default; the best of this forecast where that cannot run.
        **wanted
            ``correlation=0.02``, ``coefficient=0.05``: on the typical ones. ``mean={"age": 0.5}``, ``sd={"age": 0.5}`` in the
            table's units, ``share={"smoker": 0.01}``; one number stands for all features. Each is the standard deviation of the
            noise; 1.96 of them are half a 95 % interval.

        Returns
        -------
        int
            By search over plans: with one row fewer the noise is larger. Exact for additive noise; for ``adaptive-ball`` it rests
            on the table assumed. With a privacy unit, of rows that count.

        Raises
        ------
        ValueError
            If nothing is wanted, a name is unknown, or no number of rows up to 10¹² is enough.

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
        """The smallest ε (at the δ of this forecast) at which the noise is as small as wanted, with its number of rows.

        Parameters
        ----------
        mechanism, **wanted
            As for :meth:`rows_needed`.

        Raises
        ------
        ValueError
            If it is not within ε ≤ 100, or the budget is one of ρ.
        """
        if self.budget.kind is BudgetKind.ZCDP:
            raise ValueError(f"the forecast is of {self.budget}: ask for rho_needed")
        setting = self._setting_of(mechanism or self.asked_of)
        return budget_needed(setting, Wanted.of(setting.typical, **wanted))

    def rho_needed(self, *, mechanism: str | None = None, **wanted: Any) -> float:
        """As :meth:`epsilon_needed`, the smallest ρ of a forecast made with ``rho``."""
        if self.budget.kind is not BudgetKind.ZCDP:
            raise ValueError(f"the forecast is of {self.budget}: ask for epsilon_needed")
        setting = self._setting_of(mechanism or self.asked_of)
        return budget_needed(setting, Wanted.of(setting.typical, **wanted))

    def noise_of(self, mechanism: str) -> NoiseInUnits:
        """The noise of a mechanism in the table's units.

        Raises
        ------
        ValueError
            If it cannot run, or its noise is not known beforehand.
        """
        noise = self._setting_of(mechanism).noise
        if noise is None:
            raise ValueError(f"the noise of {mechanism} in the table's units is not known beforehand")
        return noise

    def _setting_of(self, mechanism: str | None) -> Setting:
        if self.setting is None:
            raise ValueError(f"nothing is known in the table's units: {self.without_units}")
        return self.setting if mechanism is None else replace(self.setting, mechanism=make_mechanism(mechanism))

    @property
    def title(self) -> str:
        """What the forecast is of."""
        return f"Forecast for {self.n_rows:,} {self.rows_in_words}, {self.budget}, {self.neighbors}; no data read"

    @property
    def rows_in_words(self) -> str:
        """What ``n_rows`` is a number of."""
        return "rows" if self.privacy_unit is None else self.privacy_unit.rows_in_words

    @property
    def heading(self) -> tuple[str, ...]:
        if self.noise is None:
            return self.title, self.without_units
        return (
            self.title,
            f"best: {self.best}{self._why_best}",
            "noise in the table's units, standard deviations, before repair:",
        )

    @property
    def _why_best(self) -> str:
        assert self.setting is not None
        others = [
            row for row in self.rows if row.typical_noise is not None and row.mechanism not in (self.best, "auto")
        ]
        own = self[self.setting.mechanism.name].typical_noise if self.best else None
        if not others or not own:
            return ""
        second = min(others, key=lambda row: row.typical_noise or math.inf)
        assert second.typical_noise is not None
        times = second.typical_noise / own
        as_much = "about as much" if times < ABOUT_AS_MUCH else f"{times:.2g} × as much"
        chosen = ", which auto takes" if self["auto"].chosen_because and self._auto_takes_it else ""
        named = "" if chosen or self.asked_of == self.best else f"; a release takes it if told, mechanism={self.best!r}"
        return f"{chosen} (the least noise; {second.mechanism} has {as_much}{named})"

    @property
    def _auto_takes_it(self) -> bool:
        said = self["auto"].chosen_because or ""
        return said.startswith(f"{self.best},")

    def table(self) -> list[tuple[str, ...]]:
        """A line a feature: spread assumed, noise on the mean, on the standard deviation; the mechanisms where there is none."""
        return self.mechanism_table() if self.noise is None else column_table(self.noise)

    def mechanism_table(self) -> list[tuple[str, ...]]:
        """A line a mechanism that can run: errors in the unit ball, noise on a correlation, arithmetic."""
        lines: list[tuple[str, ...]] = [("mechanism", "second moment", "mean", "± corr.", "arithmetic")]
        lines += [
            (row.mechanism, row.second_moment_shown, row.mean_shown, row.correlation_shown, row.arithmetic or "–")
            for row in self.rows
            if row.refusal is None
        ]
        return lines

    @property
    def in_words(self) -> tuple[str, ...]:
        """What stands below the columns: correlations, a coefficient, what is assumed, what to change."""
        if self.noise is None or self.best is None:
            return ()
        helpful = ("what would help:", *(f"  {change}" for change in self.changes)) if self.changes else ()
        return (*columns_in_words(self.noise, self.worst, self.best), *helpful)

    @property
    def mechanisms_in_words(self) -> tuple[str, ...]:
        """Heading, what is assumed, and the remarks of the table of mechanisms."""
        marked = [f"~ assumes: {self.assumption.words}"] if any(row.assumed for row in self.rows) else []
        return (f"Expected error of every mechanism ({self.units}, before repair)", *marked)

    @property
    def mechanism_remarks(self) -> tuple[str, ...]:
        """What the numbers do not say: the cost of derived features, how far an adaptive error can move, why ``auto`` chose."""
        adaptive = [
            f"{row.mechanism} adapts to the table: its error is at most {row.guaranteed_error:.3g}, and the less the smaller the "
            "ball is that most rows lie in; on the table assumed rows fill their bounds, as real ones seldom do"
            for row in self.rows
            if row.guaranteed_error is not None and row.chosen_because is None
        ]
        derived = () if self.derived_cost is None else (str(self.derived_cost),)
        refused = refusals_in_a_line(self.rows)
        return (
            *derived,
            *adaptive,
            *(f"{row.mechanism}: {row.chosen_because}" for row in self.rows if row.chosen_because),
            *((refused,) if refused else ()),
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        return (*self.in_words, *(() if self.noise is None else self.mechanisms_in_words), *self.mechanism_remarks)

    def summary(self) -> str:
        """The forecast as text."""
        if self.noise is None:
            lines = [*self.heading, *self.mechanisms_in_words, aligned(self.mechanism_table()), *self.mechanism_remarks]
        else:
            lines = [*self.heading, aligned(self.table()), *self.in_words, ""]
            lines += [*self.mechanisms_in_words, aligned(self.mechanism_table()), *self.mechanism_remarks]
        return "\n".join(line for place, line in enumerate(lines) if line or place > 2)

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """A feature a row as plain values; a mechanism a row where nothing is known in the table's units."""
        if self.noise is None:
            fields = ("mechanism", "second_moment_error", "mean_error", "arithmetic", "refusal")
            return {name: [getattr(row, name) for row in self.rows] for name in fields}
        return plain_columns(self.noise)

    def to_dict(self) -> dict[str, Any]:
        """The forecast as JSON holds it."""
        found: dict[str, Any] = {
            "n_rows": self.n_rows,
            "budget": self.budget.to_dict(),
            "neighbors": str(self.neighbors),
            "protected_unit": "row" if self.privacy_unit is None else self.privacy_unit.to_dict(),
            "assumption": {"spectrum": list(self.assumption.spectrum), "units": self.assumption.units},
            "mechanisms": [row.to_dict() for row in self.rows],
            "derived_cost": None if self.derived_cost is None else self.derived_cost.to_dict(),
            "best": self.best,
            "in_units": None,
            "changes": [change.to_dict() for change in self.changes],
        }
        if self.noise is not None:
            found["in_units"] = plain_noise(self.noise, self.worst)
        return found

    def plot(
        self,
        against: Literal["columns", "budget"] = "columns",
        *,
        n_features: int = MOST_FEATURES,
        ax: Axes | None = None,
    ) -> Axes:
        """What the budget buys, before it is spent: :func:`dpmoments.planning.picture.plot_forecast`.

        Against the ``"columns"``, the noise on mean and standard deviation of every feature (the ``n_features`` with the most
        noise), or against the ``"budget"``, that on a typical correlation from an eighth of the budget to eight times it.

        Raises
        ------
        ValueError
            If nothing is known in the table's units, or ``against`` is neither.
        """
        if self.setting is None or self.noise is None:
            raise ValueError(f"no picture of this forecast, which has {self.without_units}")
        with fonts_for(self.setting.typical.schema):
            return plot_forecast(self.setting, self.noise, self.title, against=against, n_features=n_features, ax=ax)

    def _repr_html_(self) -> str:
        """The answer for notebooks: two tables; every text is escaped."""
        if self.noise is None:
            return super()._repr_html_()
        first = TableInWords(self.heading, self.table(), self.in_words)
        second = TableInWords(self.mechanisms_in_words, self.mechanism_table(), self.mechanism_remarks)
        return first._repr_html_() + second._repr_html_()
