"""Progress of a long pass: a fraction of the table, never a number of rows (it may be private)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["Watch", "watched"]


class Watch:
    """Called with the number of rows of every block; passes on the fraction done."""

    def __init__(self, report: Callable[[float | None], None] | None) -> None:
        self._report = report
        self._expected: int | None = None
        self._seen = 0

    def expect(self, n_rows: int | None) -> None:
        """Start a pass over ``n_rows`` rows (None where that is not known)."""
        self._expected, self._seen = n_rows, 0

    def __call__(self, n_rows: int) -> None:
        if self._report is None:
            return
        self._seen += n_rows
        # A mechanism may pass over the table several times; each pass fills the bar anew.
        self._report(((self._seen - 1) % self._expected + 1) / self._expected if self._expected else None)


@contextmanager
def watched(progress: bool | Callable[[float | None], None]) -> Iterator[Watch]:
    """A :class:`Watch` that draws a bar on standard error, calls ``progress``, or does nothing."""
    if not progress:
        yield Watch(None)
        return
    if not isinstance(progress, bool):
        yield Watch(progress)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("reading rows"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def report(fraction: float | None) -> None:
            if fraction is not None:
                bar.update(task, total=1.0, completed=fraction)

        yield Watch(report)
