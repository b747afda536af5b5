"""The history of a ledger: entries, each with a hash of itself and of all before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.values import require_kinds, require_known
from dpmoments.ledger.grants import Grant
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.origin import LedgerEntry

_ENTRIES = ("number", "time", "action", "dataset", "content")


class Action(StrEnum):
    """What an entry says was done."""

    GRANT = "grant"
    RESERVE = "reserve"
    COMMIT = "commit"
    REFUND = "refund"


@dataclass(frozen=True, repr=False)
class HistoryEntry:
    """One entry.

    Attributes
    ----------
    number : int
        From 1, without gaps: this is the order. ``time`` is what the clock said, for people alone.
    time : str
        In UTC.
    content : mapping
        A grant; or what a release costs; or ``reservation``, the number of the entry that reserved it.
    text : str
        The entry as it is kept, canonical JSON.
    hash : str
        SHA-256 of the hash before it and of ``text``.
    """

    number: int
    time: str
    action: Action
    dataset: str
    content: Mapping[str, Any]
    text: str
    hash: str

    @classmethod
    def after(cls, number: int, link: str, action: Action, dataset: str, content: Mapping[str, Any]) -> HistoryEntry:
        """The entry that follows the one of that number and hash."""
        values = dict(number=number + 1, time=_now(), action=str(action), dataset=dataset, content=dict(content))
        return cls.read(number + 1, _canonical(values), _linked(link, _canonical(values)), link)

    @classmethod
    def read(cls, number: int, text: str, digest: str, link: str) -> HistoryEntry:
        """An entry of the file, checked against its place and the hash before it."""
        if digest != _linked(link, text):
            raise InputValueError(
                "it was changed, or one before it was changed, taken out or put in: its hash does not follow"
            )
        values = json.loads(text)
        require_known(values, _ENTRIES, "an entry")
        require_kinds(values, time=str, action=str, dataset=str)
        if not isinstance(values["content"], dict):
            raise InputTypeError("the content of an entry must be a mapping")
        if values["number"] != number or isinstance(values["number"], bool):
            raise InputValueError("it is not in its place")
        return cls(number, values["time"], Action(values["action"]), values["dataset"], values["content"], text, digest)

    def of(self, ledger: str) -> LedgerEntry:
        """What a release says of it."""
        return LedgerEntry(ledger, self.number, self.hash)

    @property
    def in_words(self) -> str:
        """What was granted, reserved or ended; numbers are rounded, and exact in ``content``."""
        if self.action is Action.GRANT:
            granted = Grant.from_dict(self.content)
            return f"{granted}, {granted.neighbors}, {granted.unit}"
        if self.action is Action.RESERVE:
            content = self.content
            return (
                f"{PrivacyBudget.from_dict(content['cost'])}, {content['mechanism']}, release {content['release'][:8]}…"
            )
        return f"of entry {self.content['reservation']}"

    def __str__(self) -> str:
        return f"{self.number} {self.time} {self.dataset} {self.action}: {self.in_words} ({self.hash[:12]}…)"

    def __repr__(self) -> str:
        return f"HistoryEntry({str(self)!r})"

    def to_dict(self) -> dict[str, Any]:
        """The entry and its hash, for a program."""
        return {name: getattr(self, name) for name in _ENTRIES} | {"content": dict(self.content), "hash": self.hash}


def first_link(ledger: str) -> str:
    """What takes the place of a hash before the first entry."""
    return hashlib.sha256(f"dpmoments ledger {ledger}".encode()).hexdigest()


def _now() -> str:
    """The time that the clock shows."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _canonical(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _linked(link: str, text: str) -> str:
    return hashlib.sha256(f"{link}\n{text}".encode()).hexdigest()
