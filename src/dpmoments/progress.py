"""Progress of a long pass: a fraction of the table, never a number of rows (it may be private)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Watch", "watched"]


STEPS = 100
SECONDS_BETWEEN_SIGNS = 0.2


class Watch:
    """Called with the number of rows of every block; reports progress in hundredths of a pass.

    Every hundredth is reported once, in order, whatever the table. If the fraction were reported after every block, the first
    one, or the number of reports, would reveal the number of rows. Where the number of rows is not known beforehand, None is
    reported from time to time, by the clock, to show that work goes on.
    """

    def __init__(self, report: Callable[[float | None], None] | None) -> None:
        self._report = report
        self._expected: int | None = None
        self._seen = 0
        self._told = 0
        self._last_sign = -SECONDS_BETWEEN_SIGNS

    def expect(self, n_rows: int | None) -> None:
        """Start a pass over ``n_rows`` rows (None where that is not known)."""
        self._expected, self._seen, self._told = n_rows, 0, 0

    def __call__(self, n_rows: int) -> None:
        if self._report is None:
            return
        if self._expected is None:
            self._give_sign()
            return
        # A mechanism may pass over the table several times; each pass fills the bar anew. An empty table's pass is one call.
        self._seen += n_rows if self._expected else 1
        while self._told < self._seen * STEPS // max(self._expected, 1):
            self._told += 1
            self._report(((self._told - 1) % STEPS + 1) / STEPS)

    def _give_sign(self) -> None:
        now = time.monotonic()
        if self._report is not None and now - self._last_sign >= SECONDS_BETWEEN_SIGNS:
            self._last_sign = now
            self._report(None)


@contextmanager
def watched(progress: bool | Callable[[float | None], None]) -> Iterator[Watch]:
    """A :class:`Watch` that draws a bar on standard error, calls ``progress``, or does nothing."""
    if not progress:
        yield Watch(None)
        return
    if not isinstance(progress, bool):
        yield Watch(progress)
        return
    from rich import console
    from rich import progress as drawn

    columns = (
        drawn.SpinnerColumn(),
        drawn.TextColumn("reading rows"),
        drawn.BarColumn(),
        drawn.TimeElapsedColumn(),
        drawn.TimeRemainingColumn(compact=True),
    )
    with drawn.Progress(*columns, console=console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def report(fraction: float | None) -> None:
            if fraction is not None:
                bar.update(task, total=1.0, completed=fraction)

        yield Watch(report)
