"""The one fit of an estimator without a ledger, which it shares with all its copies."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from dpmoments.privacy.ledger import BudgetExceededError
from dpmoments.release_run import NOTES

__all__ = ["begin", "identity_of", "join", "share", "spent_by"]

NOTHING_SPENT = NOTES[0]
REMEDY = (
    "Give it ledger= and dataset=, so that every fit is charged, and refused beyond the grant; or, if the budget is meant to be "
    "spent once more, make a new estimator"
)
FITTED_BEFORE = (
    "without a ledger the budget of an estimator is for one fit, and this one, or a copy of it, was fitted before: fitting "
    f"again, as cross-validation does with copies, would spend the budget again. Now {NOTHING_SPENT}. {REMEDY}"
)
FROM_ELSEWHERE = (
    "this estimator is a copy from another process (joblib, pickle), and without a ledger nobody can tell how often its other "
    f"copies are fitted: {NOTHING_SPENT}. {REMEDY}, in this process"
)


class OneFit:
    """Whether the fit of an estimator and its copies has been made, in the memory of one process.

    Attributes
    ----------
    identity : str
        What pickles carry.
    """

    def __init__(self) -> None:
        self.identity = secrets.token_hex(16)
        self._process: int | None = os.getpid()
        self._taken = False

    @classmethod
    def of_elsewhere(cls) -> OneFit:
        """One that this process does not know: it allows no fit."""
        unknown = cls()
        unknown._process = None
        return unknown

    def take(self) -> None:
        """Take the fit.

        Raises
        ------
        BudgetExceededError
            If it is taken, or not this process's (a fork has a copy of the memory it was forked from).
        """
        with _LOCK:
            if self._process != os.getpid():
                raise BudgetExceededError(FROM_ELSEWHERE)
            if self._taken:
                raise BudgetExceededError(FITTED_BEFORE)
            self._taken = True

    def give_back(self) -> None:
        """Undo :meth:`take`: nothing was spent."""
        with _LOCK:
            self._taken = False


_LOCK = RLock()
_HELD: WeakKeyDictionary[Any, OneFit] = WeakKeyDictionary()
"""By estimator: no attribute of it, so that nothing that sets, copies or clears attributes loses it."""
_KNOWN: WeakValueDictionary[str, OneFit] = WeakValueDictionary()


def _hold(estimator: Any, one_fit: OneFit) -> None:
    with _LOCK:
        _HELD[estimator] = one_fit
        _KNOWN[one_fit.identity] = one_fit


def begin(estimator: Any) -> None:
    """A new estimator has a fit of its own."""
    _hold(estimator, OneFit())


def share(original: Any, copied: Any) -> None:
    """A copy has the fit of its original."""
    _hold(copied, _HELD[original])


def identity_of(estimator: Any) -> str:
    """What a pickle says of the fit."""
    return _HELD[estimator].identity


def join(estimator: Any, identity: object) -> None:
    """An estimator that was read from a pickle has the fit it was written with; none in a process that does not know it."""
    with _LOCK:
        known = _KNOWN.get(identity) if isinstance(identity, str) else None
        _hold(estimator, OneFit.of_elsewhere() if known is None else known)


@contextmanager
def spent_by(estimator: Any) -> Iterator[None]:
    """Take the fit for the block; it is given back where the block ends by an error that says that nothing was spent.

    Raises
    ------
    BudgetExceededError
        If there is none left.
    """
    one_fit = _HELD[estimator]
    one_fit.take()
    try:
        yield
    except BaseException as error:
        if any(NOTHING_SPENT in said for said in (str(error), *getattr(error, "__notes__", ()))):
            one_fit.give_back()
        raise
