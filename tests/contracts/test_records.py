"""Every record and release of a file: read as it was written, and a forged entry is refused or kept to the letter."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.base.records import Record
from dpmoments.moments.models import MeanModel
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.accounts import Losses, ReservedCost
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.grants import Grant
from dpmoments.privacy.origin import GroupOfRows, LedgerEntry, ReleaseOrigin
from dpmoments.privacy.receipt import PrivacyStatement
from dpmoments.privacy.unit import Neighbors, PrivacyUnit

UNIT = PrivacyUnit("person_id", max_rows=3)
GROUP = GroupOfRows("f" * 32, "region", "north", 2)
ENTRY = LedgerEntry("a" * 32, 1, "0" * 64)
LOSSES = Losses(Fraction(1), Fraction(0), Fraction(1, 2), Fraction(3, 4), False)
RECORDS: dict[str, Any] = {
    "a grant": replace(Grant.of(epsilon=3.0, delta=1e-6, unit="person_id"), reason="a second study"),
    "a grant in μ": Grant.of(mu=0.5, neighbors="replace_one"),
    "losses": LOSSES,
    "unit": UNIT,
    "group": GROUP,
    "ledger": ENTRY,
    "origin": ReleaseOrigin("0123456789abcdef" * 2, "people", GROUP, ENTRY, ("ORDER BY",)),
    "a bare origin": ReleaseOrigin("0123456789abcdef" * 2),
    "a pure budget": PrivacyBudget.pure(1.0),
    "an approximate budget": PrivacyBudget.approximate(1.0, 1e-6),
    "a zCDP budget": PrivacyBudget.zcdp(0.5),
    "statement": PrivacyStatement(PrivacyBudget.zcdp(0.5), Neighbors.ADD_REMOVE, "exact-lattice", True, (), "1", UNIT),
    "a statement of rows": PrivacyStatement(
        PrivacyBudget.pure(1.0), Neighbors.REPLACE_ONE, "idealized", False, (), "1"
    ),
    "reservation": ReservedCost(
        "f" * 32, "laplace", PrivacyBudget.pure(1.0), LossUnit.EPSILON, Neighbors.ADD_REMOVE, "row", LOSSES
    ),
    "mean": MeanModel("laplace", np.array([1.0, 2.0]), np.array([0.5, 0.0]), clipped=0.25, bias_suspected=True),
    "a mean of K-norm noise": MeanModel("k-norm", np.ones(2), np.zeros(2), dimension=3, block_sizes=(1, 1)),
}
FORGERIES = (None, True, 7, -1, 1.5, math.nan, 2**1100, "text", "", [], [None], {}, {"kind": "pure"})
MAY_BE_ABSENT = {"delta", "privacy_unit", "dimension", "block_sizes", "reason"}
"""Entries that a file may leave out."""


SCHEMA = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Categorical("region", ["north", "south"], missing="drop"))
MADE: dict[str, Callable[[pa.Table], Any]] = {
    "moments": lambda table: dpm.release(table, SCHEMA, epsilon=1.0, insecure_seed=0),
    "moments under replace-one": lambda table: dpm.release(
        table, SCHEMA, epsilon=1.0, delta=1e-6, mechanism="gaussian", neighbors="replace_one", insecure_seed=0
    ),
    "a mean": lambda table: dpm.release_mean(table, SCHEMA, rho=0.5, insecure_seed=0),
    "counts": lambda table: dpm.release_counts(table, SCHEMA, by="region", epsilon=1.0, insecure_seed=0),
    "groups": lambda table: dpm.release_groups(table, SCHEMA, by="region", epsilon=1.0, insecure_seed=0),
    "a pooled release": lambda table: dpm.pool(
        [dpm.release(table, SCHEMA, epsilon=1.0, insecure_seed=seed, dataset=f"site {seed}") for seed in range(2)]
    ),
}
READ_ELSEWHERE = ("schema", "by", "releases")
"""Entries that are read as they are elsewhere: schema and column (``tests/schema``), and the releases above."""
FREE = ("mechanism_options", "diagnostics", "details")
"""Entries that may hold anything, and less."""
RECOMPUTED = "sensitivity.value"
"""Entry that is computed anew, and refused if it is below that (``tests/privacy/test_privacy_filter.py``)."""


def kept(content: Any) -> Any:
    """Content in which true is not 1, and 1 is 1.0; an entry that is none counts as absent."""
    if isinstance(content, dict):
        return {name: kept(entry) for name, entry in content.items() if entry is not None}
    if isinstance(content, list):
        return [kept(entry) for entry in content]
    return isinstance(content, bool), content


def entries(content: Any) -> Iterator[tuple[Any, ...]]:
    """The paths of all entries, those of records within records included; of a list that of the first."""
    parts = (
        content.items() if isinstance(content, dict) else enumerate(content[:1]) if isinstance(content, list) else ()
    )
    for name, entry in parts:
        yield (name,)
        if name not in READ_ELSEWHERE or (isinstance(entry, list) and isinstance(entry[0], str)):
            yield from ((name, *rest) for rest in entries(entry))


def forged(content: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    result = copy.deepcopy(content)
    place: Any = result
    for name in path[:-1]:
        place = place[name]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return result


def test_every_record_is_here() -> None:
    assert {type(record).__name__ for record in RECORDS.values()} == {each.__name__ for each in Record.__subclasses__()}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_comes_back_to_the_bit(name: str) -> None:
    record = RECORDS[name]
    content = json.loads(json.dumps(record.to_dict()))
    assert kept(type(record).from_dict(content).to_dict()) == kept(content)


def faults(record: Any) -> list[str]:
    """Entries of a record's file that may be forged so that it is read as something else."""
    read, content = type(record).from_dict, json.loads(json.dumps(record.to_dict()))
    found = []
    for path in entries(content):
        written = ".".join(map(str, path))
        may_lack = path[-1] in MAY_BE_ABSENT or isinstance(path[-1], int) or {*FREE} & {*path[:-1]}
        # NaN is no value of a file: the document of a release refuses it.
        values = FORGERIES if isinstance(record, Record) else [value for value in FORGERIES if value == value]
        for value in (*values, *([] if may_lack else [...])):
            changed = forged(content, path, value)
            with suppress(KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
                if value is ... or kept(read(changed).to_dict()) != kept(changed):
                    read(changed)
                    found.append(f"{written}: {value}")
        if not {*FREE} & {*path[:-1]} and not isinstance(path[-1], int):
            with suppress(TypeError, ValueError, AttributeError):
                read(forged(content, (*path[:-1], "surplus"), 1))
                found.append(f"a surplus entry beside {written}")
    return [fault for fault in found if RECOMPUTED not in fault]


@pytest.mark.parametrize("name", RECORDS)
def test_a_forged_entry_is_refused_or_kept_to_the_letter(name: str) -> None:
    assert faults(RECORDS[name]) == []


@pytest.mark.long
@pytest.mark.parametrize("name", MADE)
def test_a_forged_entry_of_a_release_is_refused_or_kept_to_the_letter(name: str) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"age": rng.uniform(0, 100, 50), "region": rng.choice(["north", "south"], 50)})
    assert faults(MADE[name](table)) == []


def test_a_reader_that_converts_fills_in_or_overlooks_is_found() -> None:
    class Lax(PrivacyUnit):
        @classmethod
        def from_dict(cls, values: Any, path: str = "") -> Any:
            del path
            return cls(str(values.get("column", "id")), math.floor(values["max_rows"]), "drop")

    found = faults(Lax("id", 3, "drop"))
    for words in ("column: 7", "column: Ellipsis", "max_rows: 1.5", "max_rows: True", "missing: text", "surplus"):
        assert any(words in fault for fault in found), words


def test_a_fault_is_named_by_its_path() -> None:
    content = RECORDS["origin"].to_dict()
    content["ledger"]["number"] = 0
    with pytest.raises(ValueError, match=r"^origin\.ledger\.number must be a whole number, 1 or more"):
        ReleaseOrigin.from_dict(content, "origin")
