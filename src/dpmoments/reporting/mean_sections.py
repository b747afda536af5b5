"""What a report says of a release of a mean alone."""

from __future__ import annotations

from dpmoments.analysis.answers import number
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.reporting.report_sections import PageTable, Section

__all__ = ["mean_sections"]

ALONE = "A mean alone was released: there is no second moment, and so no correlation, component or regression."
BEYOND = (
    "Of the mean of the table's rows, but for what clipping moved: the rows are taken as they are, not as a sample."
)


def mean_sections(release: MeanRelease, level: float) -> tuple[Section, ...]:
    """The mean of every feature with its noise, and an interval where the noise has a law.

    Parameters
    ----------
    release : MeanRelease
    level : float
        Confidence of the intervals.
    """
    rows = [list(row) for row in release.table()]
    if release.noise is not None:
        rows[0].append(f"{level:.0%} interval")
        for row, (low, high) in zip(rows[1:], release.conf_int(level).tolist(), strict=True):
            row.append(f"[{number(low)}, {number(high)}]")
    lost = _lost(release)
    for place in lost:
        rows[place + 1][1] = "noise"
    said = (
        f"Of {len(rows) - 1} means {len(lost)} are lost: their noise is as large as what could be learnt."
        if lost
        else ""
    )
    return (
        Section(
            "What was released, and how noisy it is",
            "released",
            lead=tuple(filter(None, [ALONE, said])),
            tables=(PageTable.of("The mean of every feature, in the table's own units", rows),),
            remarks=(release.noise_in_words, BEYOND if release.noise is not None else ""),
            warning=" ".join(f"{text}." for text in release.warnings),
        ),
    )


def _lost(release: MeanRelease) -> list[int]:
    """Places of means whose noise is as large as the spread of a guess within the public bounds, by the rule of a description."""
    if release.schema.row_norm is None:
        return []
    lower, upper = release.schema.feature_bounds
    spreads = (upper - lower) / 12.0**0.5
    return [
        place
        for place, (noise, spread) in enumerate(zip(release.standard_errors, spreads, strict=True))
        if noise >= spread
    ]
