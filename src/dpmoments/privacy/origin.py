"""Identity of a release: its id, its dataset, and its group of rows."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, replace
from typing import Annotated

from dpmoments.base.databases import CLAUSES
from dpmoments.base.message import Message
from dpmoments.base.records import NUMBERED, Record, Rule, hexadecimal
from dpmoments.base.values import check_label, check_name
from dpmoments.schema.constraints import Level

_ID_BITS = 128
Id = Annotated[str, hexadecimal(_ID_BITS // 4)]
Clause = Annotated[str, Rule(f"one of {', '.join(CLAUSES)}", lambda clause: clause in CLAUSES)]


@dataclass(frozen=True, slots=True)
class GroupOfRows(Record):
    """Group of rows of a release, one of several disjoint groups released in one run."""

    run: Id  # id of the run, which all its groups share
    by: str  # column whose levels divide the rows
    level: Level  # level of the group
    n_levels: Annotated[int, NUMBERED]  # number of groups

    def __post_init__(self) -> None:
        check_name(self.by)

    @property
    def rule(self) -> Message:
        """Meaning of the group for privacy."""
        return Message("group-of-rows", column=self.by, level=self.level, groups=self.n_levels)


@dataclass(frozen=True, slots=True)
class LedgerEntry(Record):
    """Entry in a ledger's history that charged a release."""

    ledger: Id  # id of the ledger
    number: Annotated[int, NUMBERED]  # number of the entry that reserved the budget
    # head of the chain of hashes at that entry, which depends on every entry up to it
    hash: Annotated[str, hexadecimal(64)]


@dataclass(frozen=True, slots=True)
class ReleaseOrigin(Record):
    """Identity of a release. Nothing in it depends on a row."""

    # 128 random bits in hexadecimal digits, so that no two releases share one; with an insecure seed, made from the
    # seed, so that a repeated run is equal bit for bit
    id: Id
    dataset: str | None = None  # curator's name of the table
    group: GroupOfRows | None = None  # group of rows, if it is one of several
    ledger: LedgerEntry | None = None  # ledger entry that reserved its budget, if any
    # if the table is the result of a database query: the clauses by which one row can change others
    query: tuple[Clause, ...] | None = None

    def __post_init__(self) -> None:
        check_dataset(self.dataset)

    @classmethod
    def fresh(
        cls, dataset: str | None = None, *, insecure_seed: int | None = None, query: tuple[str, ...] | None = None
    ) -> ReleaseOrigin:
        """Return the origin of a new release."""
        if insecure_seed is None:
            return cls(secrets.token_hex(_ID_BITS // 8), dataset, query=query)
        return cls(_id_of("release with an insecure seed", int(insecure_seed)), dataset, query=query)

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


def group_label(by: str, level: Level) -> str:
    """Return the label of a group in receipts and messages: the name of the level's feature."""
    return f"{by}={level}"


def check_dataset(dataset: object) -> None:
    """Raise unless ``dataset`` is None or a short text that a file can hold."""
    if dataset is not None:
        check_label("dataset", dataset, "the table", "the dataset's name", "people-2026")


def _id_of(*known: object) -> str:
    """Return an id made of these values; other values, or values of another type, make another."""
    text = "\n".join(f"{type(value).__name__} {value!r}" for value in ("dpmoments", *known))
    return hashlib.sha256(text.encode()).hexdigest()[: _ID_BITS // 4]
