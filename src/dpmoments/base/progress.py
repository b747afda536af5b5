"""Progress of long passes over a table, in hundredths of a pass.

The number of rows may be private.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


# The library's log, ``logging.getLogger("dpmoments")``: the steps of a job, and no private value.

log = logging.getLogger("dpmoments")
log.addHandler(logging.NullHandler())  # silent, unless the caller's program wants to hear it

_STEPS = 100
_SECONDS_BETWEEN_SIGNS = 0.2


class Watch:
    """Reporter of progress in hundredths of a pass.

    Every hundredth of a pass is reported once, in order, for any table. Reporting after every batch would reveal the
    number of rows, through the first fraction or the number of reports. If the length of a pass is unknown, None is
    reported at time intervals to show activity; the next pass is as long as that one was.
    """

    def __init__(self, report: Callable[[float | None], None] | None, bar: Bar | None = None) -> None:
        self._report = report
        self._bar = bar
        self._counted: int | None = None
        self._expected: int | None = None
        self._steps = self._seen = self._told = 0
        self._before = 0
        self._of: int | None = None
        self._planned = False
        self._last_sign = -_SECONDS_BETWEEN_SIGNS

    def plan(self, n_passes: int | None, n_rows: int | None) -> None:
        """Set the public facts of a run."""
        # Its number of passes, and the number of rows (None if private).
        self._before, self._of, self._planned = 0, n_passes, True
        if self._bar is not None:
            self._bar.n_rows = n_rows

    @contextmanager
    def passing(self, length: int | None, n_passes: int = 1) -> Iterator[None]:
        """Track one pass or several in a row; ``length`` is the total amount per pass if known."""
        self._expected = self._counted if length is None else length
        self._seen = self._told = 0
        self._steps = n_passes * _STEPS
        passes = f"pass {self._before + 1}" + (f" to {self._before + n_passes}" if n_passes > 1 else "")
        log.debug("%s over the table: begun", passes)
        self._show()
        yield
        if self._expected is None:
            self._counted = self._seen // n_passes
        else:
            self._tell(self._steps)  # an empty table, or a file that became shorter
        self._before += n_passes
        log.debug("%s over the table: ended", passes)

    def __call__(self, amount: int) -> None:
        """Record that ``amount`` more of the pass (rows, or its unit of length) is done."""
        self._seen += amount
        if self._expected is not None:
            self._tell(self._seen * _STEPS // max(self._expected, 1))
        elif self._report is not None and (now := time.monotonic()) - self._last_sign >= _SECONDS_BETWEEN_SIGNS:
            self._last_sign = now
            self._report(None)

    def _tell(self, due: int) -> None:
        while self._report is not None and self._told < min(due, self._steps):
            if self._told and self._told % _STEPS == 0:
                self._show()
            self._told += 1
            self._report(((self._told - 1) % _STEPS + 1) / _STEPS)

    def _show(self) -> None:
        if self._bar is not None:
            index = f", pass {self._before + self._told // _STEPS + 1}" + (f" of {self._of}" if self._of else "")
            self._bar.begin("reading rows" + (index if self._planned else ""))


class Bar:
    """Progress bar of the current pass, with the remaining time."""

    def __init__(self, display: Progress, task: TaskID) -> None:
        self._display, self._task = display, task
        self._begun = time.monotonic()
        self.n_rows: int | None = None
        """Number of rows if public; shown as rows per second."""

    def begin(self, words: str) -> None:
        """Start a pass."""
        self._begun = time.monotonic()
        self._display.reset(self._task, total=None, description=words, rate="")

    def report(self, fraction: float | None) -> None:
        """Show the finished fraction of the pass; None if unknown."""
        if fraction is None:
            return
        rate = ""
        if self.n_rows is not None and (seconds := time.monotonic() - self._begun) > 0:
            rate = f"{fraction * self.n_rows / seconds:,.0f} rows/s"
        self._display.update(self._task, total=1.0, completed=fraction, rate=rate)


@contextmanager
def watched(progress: bool | Callable[[float | None], None]) -> Iterator[Watch]:
    """Yield a :class:`Watch`."""
    # It draws a bar on standard error, calls `progress`, or does nothing.
    if not isinstance(progress, bool):
        yield Watch(progress)
        return
    if not progress:
        yield Watch(None)
        return
    from rich import console
    from rich import progress as drawn

    columns = (
        drawn.SpinnerColumn(),
        drawn.TextColumn("{task.description}"),
        drawn.BarColumn(),
        drawn.TimeElapsedColumn(),
        drawn.TimeRemainingColumn(compact=True),
        drawn.TextColumn("{task.fields[rate]}"),
    )
    with drawn.Progress(*columns, console=console.Console(stderr=True), transient=True) as display:
        bar = Bar(display, display.add_task("reading rows", total=None, rate=""))
        yield Watch(bar.report, bar)
