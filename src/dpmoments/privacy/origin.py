"""Identity of a release: its id, its dataset, and its group of rows."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from dpmoments.foundation.databases import CLAUSES
from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.values import check_name, check_text, require_kinds, require_known
from dpmoments.messages.message import Message
from dpmoments.schema.constraints import Level

_ID_BITS = 128
_MAX_DATASET_LENGTH = 200


@dataclass(frozen=True, slots=True)
class GroupOfRows:
    """Group of rows of a release, one of several disjoint groups released in one run."""

    run: str  # id of the run, which all its groups share
    by: str  # column whose levels divide the rows
    level: Level  # level of the group
    n_levels: int  # number of groups

    @property
    def rule(self) -> Message:
        """Meaning of the group for privacy."""
        return Message("group-of-rows", column=self.by, level=self.level, groups=self.n_levels)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GroupOfRows:
        """Read the entries of a file."""
        require_known(values, (entry.name for entry in fields(cls)), "the group of rows")
        run, by, level, n_levels = _checked_id(values["run"]), values["by"], values["level"], values["n_levels"]
        check_name(by)
        if not isinstance(level, str | int):
            raise InputTypeError("the level of a group of rows must be a text, a whole number, or true or false")
        if isinstance(n_levels, bool) or not isinstance(n_levels, int) or n_levels < 1:
            raise InputValueError("the number of groups must be a whole number, 1 or more")
        return cls(run, by, level, n_levels)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """Entry in a ledger's history that charged a release."""

    ledger: str  # id of the ledger, 128 bits in hexadecimal digits
    number: int  # number of the entry that reserved the budget, from 1
    # head of the chain of hashes at that entry, which depends on every entry up to it: 256 bits in hexadecimal digits
    hash: str

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> LedgerEntry:
        """Read the entries of a file."""
        require_known(values, (entry.name for entry in fields(cls)), "the entry of a ledger")
        ledger, number, digest = values["ledger"], values["number"], values["hash"]
        if not isinstance(ledger, str) or not re.fullmatch(f"[0-9a-f]{{{_ID_BITS // 4}}}", ledger):
            raise InputValueError(f"the id of a ledger is {_ID_BITS // 4} hexadecimal digits")
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise InputValueError("the number of a ledger's entry must be a whole number, 1 or more")
        if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
            raise InputValueError("the hash of a ledger's entry is 64 hexadecimal digits")
        return cls(ledger, number, digest)


@dataclass(frozen=True, slots=True)
class ReleaseOrigin:
    """Identity of a release. Nothing in it depends on a row."""

    # 128 random bits in hexadecimal digits, so that no two releases share one; with an insecure seed, made from the
    # seed, so that a repeated run is equal bit for bit
    id: str
    dataset: str | None = None  # curator's name of the table
    group: GroupOfRows | None = None  # group of rows, if it is one of several
    ledger: LedgerEntry | None = None  # ledger entry that reserved its budget, if any
    # if the table is the result of a database query: the clauses by which one row can change others
    query: tuple[str, ...] | None = None

    @classmethod
    def fresh(
        cls, dataset: str | None = None, *, insecure_seed: int | None = None, query: tuple[str, ...] | None = None
    ) -> ReleaseOrigin:
        """Return the origin of a new release."""
        own_id = (
            _id_of("release with an insecure seed", int(insecure_seed)) if insecure_seed is not None else _random_id()
        )
        return cls(own_id, dataset, query=query)

    @classmethod
    def of_parts(cls, parts: tuple[ReleaseOrigin, ...]) -> ReleaseOrigin:
        """Return the origin of a release made of several, in any order."""
        return cls(_id_of("pool", *sorted(part.id for part in parts)))

    def of_group(self, by: str, level: Level, n_levels: int) -> ReleaseOrigin:
        """Return the origin of one group of rows of this run, with its own id."""
        group = GroupOfRows(self.id, by, level, n_levels)
        return replace(self, id=_id_of("group", self.id, by, level), group=group)

    @property
    def rules(self) -> tuple[Message, ...]:
        """Additions to the privacy statement's rules of schema and run."""
        of_query = () if self.query is None else (Message("rows-of-query", clauses=self.query),)
        return (*of_query, *(() if self.group is None else (self.group.rule,)))

    @property
    def label(self) -> str:
        """Dataset and group, or the beginning of the id if neither is known."""
        of_group = None if self.group is None else group_label(self.group.by, self.group.level)
        dataset = self.dataset or (None if of_group else f"{self.id[:8]}…")
        return "/".join(filter(None, (dataset, of_group)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {
            "id": self.id,
            "dataset": self.dataset,
            "group": None if self.group is None else _plain(self.group),
            "ledger": None if self.ledger is None else _plain(self.ledger),
            "query": None if self.query is None else list(self.query),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ReleaseOrigin:
        """Return the inverse of :meth:`to_dict`."""
        require_kinds(values, id=str)
        require_known(values, (entry.name for entry in fields(cls)), "the origin")
        group, dataset, ledger, query = (values[name] for name in ("group", "dataset", "ledger", "query"))
        check_dataset(dataset)
        if query is not None and not (isinstance(query, list) and set(query) <= set(CLAUSES)):
            raise InputValueError(
                f"the query of a release's origin must be a list of {', '.join(map(str, [*CLAUSES]))}"
            )
        return cls(
            _checked_id(values["id"]),
            dataset,
            None if group is None else GroupOfRows.from_dict(group),
            None if ledger is None else LedgerEntry.from_dict(ledger),
            None if query is None else tuple(query),
        )


def group_label(by: str, level: Level) -> str:
    """Return the label of a group in receipts and messages: the name of the level's feature."""
    return f"{by}={level}"


def check_dataset(dataset: object) -> None:
    """Raise unless ``dataset`` is None or a short text that a file can hold."""
    if dataset is None:
        return
    if not isinstance(dataset, str):
        raise InputTypeError(f"dataset must be a text that names the table, such as 'people-2026', got '{dataset}'")
    check_text(dataset, "dataset")
    if not dataset.strip() or len(dataset) > _MAX_DATASET_LENGTH or not dataset.isprintable():
        raise InputValueError(
            f"dataset='{dataset}' must name the table in 1 to {_MAX_DATASET_LENGTH} printable characters: 'people-2026'"
        )


def _plain(record: GroupOfRows | LedgerEntry) -> dict[str, Any]:
    return {entry.name: getattr(record, entry.name) for entry in fields(record)}


def _checked_id(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(f"[0-9a-f]{{{_ID_BITS // 4}}}", value):
        raise InputValueError(f"the id of a release is {_ID_BITS // 4} hexadecimal digits")
    return value


def _random_id() -> str:
    return secrets.token_hex(_ID_BITS // 8)


def _id_of(*known: object) -> str:
    """Return an id made of these values; other values, or values of another type, make another."""
    text = "\n".join(f"{type(value).__name__} {value!r}" for value in ("dpmoments", *known))
    return hashlib.sha256(text.encode()).hexdigest()[: _ID_BITS // 4]
