"""The library's log, ``logging.getLogger("dpmoments")``: the steps of a job, and no private value.

What may stand in it: settings, paths, plans made without data, numbers of ledger entries, that a pass began or ended, and what
is a function of noisy answers, as the number of draws is. What may not: cells, numbers of rows, blocks or dropped rows, and
anything else that was counted in a table. The times at which things are said tell how long they took.
"""

from __future__ import annotations

import logging

__all__ = ["log"]

log = logging.getLogger("dpmoments")
log.addHandler(logging.NullHandler())  # silent, unless the caller's program wants to hear it
