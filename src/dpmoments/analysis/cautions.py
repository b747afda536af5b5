"""What speaks against reading an answer as that of the table, said below every answer."""

from __future__ import annotations

from dpmoments.analysis.released import Released
from dpmoments.repair.count_floor import few_rows_in_words

__all__ = ["cautions", "rows_of_units_in_words"]


def cautions(release: Released) -> str:
    """Too few rows for the budget, and what the mechanism learned that speaks against its answer; mostly empty.

    Intervals hold noise and sampling. What moving rows into a ball did to the moments is in none of them: the mechanism's own
    warning stands here.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> table = np.zeros((20, 2))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=0.1, insecure_seed=0)
    >>> cautions(released)[:32]
    'too few rows for this budget: th'
    """
    few = few_rows_in_words(release.noisy_count, release.noise)
    said = (few, rows_of_units_in_words(release), *release.warnings)
    return ". ".join(dict.fromkeys(words.rstrip(".") for words in said if words))


def rows_of_units_in_words(release: Released) -> str:
    """That rows of one unit may be alike, where several of them count and intervals take rows as independent; else empty."""
    unit = release.privacy.privacy_unit
    if unit is None or unit.max_rows == 1:
        return ""
    return (
        f"Up to {unit.max_rows:,} rows of one {unit.column} count, and what is said of sampling takes rows as independent: where "
        "rows of one are alike, intervals are too short and tests reject too often"
    )
