"""A survey of a whole table, file by file: one pass over its cells, and two or more over the units that its rows belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpmoments.inspection.survey import Survey, SurveyCounts, SurveyPart, candidate_units
from dpmoments.rows.sources.engine import EngineSource
from dpmoments.rows.sources.local import LocalSource
from dpmoments.rows.summary import Summary
from dpmoments.rows.threads import summarise_in_threads
from dpmoments.rows.unit_counts import UnitCounts, counts_of_units
from dpmoments.rows.units import UnitBlock

__all__ = ["survey_table", "survey_units"]


def survey_table(
    source: LocalSource[Any] | EngineSource,
    *,
    threads: int | None = None,
    on_block: Callable[[int], None] | None = None,
) -> tuple[SurveyCounts, list[str]]:
    """One run over a table, file by file.

    Parameters
    ----------
    source : LocalSource or EngineSource
    threads : int, optional
    on_block : callable, optional
        Called with what every piece that was read and handed on adds to the source's ``pass_length``, for progress.

    Returns
    -------
    counts : SurveyCounts
    failures : list of str
        Of files that could not be read to their end, in words that quote no cell; what was read before is counted.
    """
    if isinstance(source, EngineSource):
        found_there: tuple[SurveyCounts, list[str]]
        found_there = source.mapped(_survey_of_partition, _merged_surveys, (SurveyCounts(), []), on_block)
        return found_there
    survey = _survey_of(source)
    failures: list[str] = []
    ragged = SurveyCounts()

    def note_ragged_line() -> None:
        ragged.counts["rows", "ragged"] += 1

    parts = _parts(source, note_ragged_line, failures, on_block)
    found = summarise_in_threads(survey, parts, lambda pair: _surveyed(*pair), threads)
    return survey.merge(found, ragged), failures


def _survey_of_partition(source: LocalSource[Any]) -> tuple[SurveyCounts, list[str]]:
    return survey_table(source, threads=1)


def _merged_surveys(
    first: tuple[SurveyCounts, list[str]], second: tuple[SurveyCounts, list[str]]
) -> tuple[SurveyCounts, list[str]]:
    return first[0].merged(second[0]), [*first[1], *second[1]]


def survey_units(
    source: LocalSource[Any] | EngineSource,
    *,
    threads: int | None = None,
    on_block: Callable[[int], None] | None = None,
) -> UnitCounts:
    """Count the units of a table, whatever else stands in it: of rows that no rule drops and that have a unit.

    Two passes or more. Files that cannot be read to their end are told of by :func:`survey_table`.
    """
    unit = source.privacy_unit
    assert unit is not None, "the table was opened for rows"
    return counts_of_units(_SurveyedUnits(source), unit.max_rows, threads=threads, on_block=on_block)


@dataclass(frozen=True, eq=False, repr=False)
class _SurveyedUnits:
    """A table of which no cell stops a pass over its units."""

    source: LocalSource[Any] | EngineSource

    def summarise_units(
        self, summary: Summary[Any, Any], *, threads: int | None = None, on_block: Callable[[int], None] | None = None
    ) -> Any:
        if isinstance(self.source, EngineSource):
            nothing = summary.finish(summary.start())
            return self.source.mapped(partial(_units_of_partition, summary), summary.merge, nothing, on_block)
        survey = _survey_of(self.source)
        parts = _parts(self.source, lambda: None, [], on_block)

        def block(pair: tuple[LocalSource[Any], Any]) -> Any:
            ids = candidate_units(survey, SurveyPart.of(*pair))
            return UnitBlock(ids, np.zeros((len(ids), 0)))

        return summarise_in_threads(summary, parts, block, threads)


def _units_of_partition(summary: Summary[Any, Any], source: LocalSource[Any]) -> Any:
    return _SurveyedUnits(source).summarise_units(summary, threads=1)


def _survey_of(source: LocalSource[Any]) -> Survey:
    return Survey(source.schema, source.mean, source.text_of_cells, source.privacy_unit)


def _parts(
    source: LocalSource[Any],
    on_ragged_line: Callable[[], None],
    failures: list[str],
    on_block: Callable[[int], None] | None,
) -> Iterator[tuple[LocalSource[Any], Any]]:
    """The pieces of a table, file by file, each with its source; a file that fails does not stand in the way of the others."""
    for piece in source.unconverted(on_ragged_line).one_by_one():
        try:
            for part, length in piece.measured(piece.parts()):
                yield piece, part
                if on_block is not None:
                    on_block(length)
        except (ValueError, OSError, MemoryError) as error:  # what read_quietly raises
            failures.append(str(error))


def _surveyed(source: LocalSource[Any], part: Any) -> Any:
    return SurveyPart.of(source, part)
