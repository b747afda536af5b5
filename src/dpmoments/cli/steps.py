"""The library's log on standard error: what ``--verbose`` shows."""

from __future__ import annotations

import logging

from dpmoments.cli.tables import complain
from dpmoments.foundation.log import log

__all__ = ["tell_steps"]


class _Steps(logging.Handler):
    """A line on standard error, as it is when the line is written, with the time."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(self.format(record))


_STEPS = _Steps()
_STEPS.setFormatter(logging.Formatter("%(asctime)s dpmoments: %(message)s"))


def tell_steps(wanted: bool) -> None:
    """Show the steps of a job from here on, or no longer."""
    if wanted:
        log.addHandler(_STEPS)
        log.setLevel(logging.DEBUG)
    elif _STEPS in log.handlers:
        log.removeHandler(_STEPS)
        log.setLevel(logging.NOTSET)
