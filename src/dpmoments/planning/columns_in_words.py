"""The noise of a plan as tables and sentences: a line a feature, correlations and a coefficient below, and what is assumed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpmoments.analysis.answers import TableAnswer, finite_or_none, number_or_none
from dpmoments.planning.imagined_release import EXPLAINED, NoiseInUnits

__all__ = [
    "MORE",
    "NOISE",
    "TableInWords",
    "column_table",
    "columns_in_words",
    "digits",
    "plain_columns",
    "plain_noise",
]

NOISE = "noise"
"""Stands in place of a number that is noise: as large as what could be learnt."""
MORE = ">"
"""Before a number that says too little."""
FAR_WORSE = 1.5
"""The worst pair is named where it has so many times the noise of the typical one."""


def column_table(noise: NoiseInUnits) -> list[tuple[str, ...]]:
    """Rows of text, the head first: a line a feature."""
    typical = noise.typical
    lines: list[tuple[str, ...]] = [("feature", "typical sd", "± mean", "95 %", "± sd", "of the sd", "± rows")]
    lost = noise.mean_is_noise, noise.standard_deviation_is_noise
    more = [MORE if rough else "" for rough in noise.standard_deviation_is_rough]
    for place, name in enumerate(typical.schema.feature_names):
        share, deviation = typical.shares[place], float(typical.standard_deviations[place])
        spread = float(noise.standard_deviation[place])
        lines.append(
            (
                name,
                f"{'~' if typical.assumed[place] else ''}{digits(deviation, 3)}",
                NOISE if lost[0][place] else digits(noise.mean[place]),
                NOISE if lost[0][place] else digits(noise.mean_half_width[place]),
                "–" if share else NOISE if lost[1][place] else f"{more[place]}{digits(spread)}",
                "–" if share or lost[1][place] or deviation <= 0.0 else f"{more[place]}{spread / deviation:.1%}",
                digits(noise.count[place]) if share else "–",
            )
        )
    return lines


def columns_in_words(noise: NoiseInUnits, worst: NoiseInUnits | None, mechanism: str) -> tuple[str, ...]:
    """Sentences below that table.

    Parameters
    ----------
    noise : NoiseInUnits
    worst : NoiseInUnits or None
        Where the mechanism gains nothing, if it adapts to the table.
    mechanism : str
    """
    said = [*_correlations(noise, worst, mechanism)]
    if not said and worst is not None:
        times = float(np.nanmax(worst.mean / noise.mean))
        said.append(f"where rows fill their bounds and {mechanism} gains nothing the noise is up to {times:.2g} × that")
    if noise.typical.words:
        said.append(noise.typical.words)
    cells = [cell for line in column_table(noise)[1:] for cell in line[1:]]
    if NOISE in cells or any(f" {NOISE}" in line for line in said):
        said.append(f"{NOISE}: that is as large as what could be learnt")
    if any(cell.startswith(MORE) for cell in cells):
        said.append(f"{MORE}: and more, the noise being so large that its square counts, too")
    return tuple(said)


def _correlations(noise: NoiseInUnits, worst: NoiseInUnits | None, mechanism: str) -> list[str]:
    correlation = noise.typical_correlation()
    if not math.isfinite(correlation):
        return []
    at_most = ""
    if worst is not None:
        most = NOISE if worst.typical_correlation_is_noise else f"{worst.typical_correlation():.2g}"
        at_most = f"; {most} where rows fill their bounds and {mechanism} gains nothing"
    shown = NOISE if noise.typical_correlation_is_noise else f"{correlation:.2g}"
    said = [f"± on a correlation (the median of two columns that are not correlated): {shown}{at_most}"]
    first, second, largest = noise.worst_correlation
    if largest > FAR_WORSE * correlation:
        said.append(
            f"± on the worst, {first} ~ {second}: {largest:.2g}" if largest < 1.0 else f"lost: {first} ~ {second}"
        )
    shown = NOISE if noise.coefficient_is_noise else f"{noise.coefficient:.2g}"
    which = "one regressor" if noise.regressors == 1 else f"{noise.regressors} uncorrelated regressors"
    said.append(
        f"± on a standardised coefficient ({which} that explain{'s' if noise.regressors == 1 else ''} {EXPLAINED:.0%} of the "
        f"variance): {shown}"
    )
    return said


def plain_columns(noise: NoiseInUnits) -> Mapping[str, Sequence[Any]]:
    """A feature a row as plain values; the words of the table are flags."""
    typical = noise.typical
    return {
        "feature": typical.schema.feature_names,
        "typical_sd": typical.standard_deviations.tolist(),
        "typical_sd_assumed": typical.assumed.tolist(),
        "mean_noise": finite_or_none(noise.mean),
        "mean_half_width": finite_or_none(noise.mean_half_width),
        "mean_is_noise": noise.mean_is_noise.tolist(),
        "standard_deviation_noise": finite_or_none(noise.standard_deviation),
        "standard_deviation_half_width": finite_or_none(noise.standard_deviation_half_width),
        "standard_deviation_is_noise": noise.standard_deviation_is_noise.tolist(),
        "standard_deviation_is_rough": noise.standard_deviation_is_rough.tolist(),
        "count_noise": finite_or_none(noise.count),
        "correlation_is_noise": noise.correlation_is_noise.tolist(),
    }


def plain_noise(noise: NoiseInUnits, worst: NoiseInUnits | None) -> dict[str, Any]:
    """Columns, correlations and the coefficient as JSON holds them."""
    return {
        "columns": {name: list(values) for name, values in plain_columns(noise).items()},
        "correlation": number_or_none(noise.typical_correlation()),
        "correlation_is_noise": noise.typical_correlation_is_noise,
        "correlation_at_most": None if worst is None else number_or_none(worst.typical_correlation()),
        "coefficient": number_or_none(noise.coefficient),
        "coefficient_is_noise": noise.coefficient_is_noise,
        "regressors": noise.regressors,
        "assumes": noise.typical.words,
    }


def digits(value: float, significant: int = 2) -> str:
    """So many significant digits, without an exponent where the number is one that people write out.

    Examples
    --------
    >>> digits(20000.0), digits(0.00451), digits(1234567.0), digits(0.0)
    ('20,000', '0.0045', '1,200,000', '0')
    """
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    size = math.floor(math.log10(abs(value)))
    if not -5 < size < 9:
        return f"{value:.{significant}g}"
    rounded = round(value, significant - 1 - size)
    return f"{rounded:,.0f}" if size >= significant - 1 else f"{rounded:.{max(0, significant - 1 - size)}f}"


class TableInWords(TableAnswer):
    """A table with what stands above and below it."""

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
        return {name: [row[place] for row in rows] for place, name in enumerate(head)}

    def to_dict(self) -> dict[str, Any]:
        return {name: list(values) for name, values in self.columns().items()}
