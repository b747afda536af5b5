"""Files made to harm whoever reads them, one test for each fault that was found."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.analysis.released import features_entry
from dpmoments.audit.verification import checks
from dpmoments.base.errors import InputError
from dpmoments.base.values import from_plain
from dpmoments.cli import main
from dpmoments.moments.repair import Repair
from dpmoments.privacy import receipt as receipt_module
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.sensitivity import sensitivity_from_dict
from dpmoments.privacy.unit import Neighbors
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources import text
from dpmoments.schema import Schema
from support import mutations
from support.forged_files import signed
from support.fuzzed_documents import attempt, contents_of

Content = dict[str, Any]


def refusal(step: Callable[[], Any], kind: type[Exception] | tuple[type[Exception], ...] = ValueError) -> str:
    with pytest.raises(kind) as caught:
        step()
    assert isinstance(caught.value, InputError), caught.value
    return str(caught.value)


def content(index: int = 0) -> Content:
    return copy.deepcopy(contents_of("release")[index])


def with_features(changed: Content) -> Content:
    """The content with the features of its schema."""
    mean = changed.get("noisy_sum", ()) is not None
    return changed | {"features": features_entry(Schema.from_dict(changed["schema"]), mean=mean)}


def saved(changed: Content, folder: Path, kind: str = "dpmoments-release") -> Path:
    path = folder / "release.json"
    path.write_text(signed({"format": kind, "version": 1, "content": changed}))
    return path


# Schemas --------------------------------------------------------------------------------------------------------------


def schema_of(text: str, folder: Path) -> Schema:
    path = folder / "schema.yaml"
    path.write_text(text)
    return Schema.load(path)


TAGS = (
    "!!bool x", "!!int ''", "!!timestamp x", "!!timestamp 2001-01-01", "!!binary aGk=", "!!set {a, b}", "!!int 9:9", "!!float ''",
    "!!omap [a: 1]", "!!pairs [a: 1]", "!!python/object/apply:mutations.code_ran []", "!local 1", "!!int 0x" + "f" * 5000,
)  # fmt: skip


def test_a_schema_holds_plain_values_alone(tmp_path: Path) -> None:
    for value in TAGS:
        text = f"columns: [{{name: age, kind: numeric, lower: {value}, upper: 1}}]"
        assert "is not a YAML file" in refusal(lambda text=text: schema_of(text, tmp_path))
    assert not mutations.trips()


def test_aliases_of_aliases_are_counted(tmp_path: Path) -> None:
    for place in ("name: LAST, kind: boolean", "name: a, kind: LAST", "name: a, kind: boolean, missing: LAST"):
        text = mutations.laughs(12, 10, f"columns: [{{{place}}}]")
        assert "with aliases expanded" in refusal(lambda text=text: schema_of(text, tmp_path))
    levels = ", ".join(f"l{index}" for index in range(1000))
    columns = "".join(f"- {{name: c{index}, kind: categorical, levels: *a}}\n" for index in range(1000))
    text = f"columns:\n- {{name: c, kind: categorical, levels: &a [{levels}]}}\n{columns}"
    assert "250,000 values" in refusal(lambda: schema_of(text, tmp_path))
    assert "contains itself" in refusal(lambda: schema_of("columns: &a [*a]", tmp_path))


def test_an_alias_is_as_good_as_what_it_stands_for(tmp_path: Path) -> None:
    text = "columns: [{name: a, kind: categorical, levels: &l [x, y]}, {name: b, kind: categorical, levels: *l}]"
    assert schema_of(text, tmp_path).n_features == 4


class Compared(str):
    """Text that counts how often it is compared."""

    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_names_are_not_compared_each_with_each() -> None:
    Compared.times = 0
    Schema(*(dpm.Boolean(Compared(f"c{index}")) for index in range(500)))
    assert Compared.times < 5000


# Values in releases -----------------------------------------------------------------------------------------------------


def of_arguments(arguments: Any) -> Any:
    stated = {"name": "gram_nuclear", "neighbors": "add_remove", "units": 1.0, "rounding": 0.0, "value": 9.0}
    return sensitivity_from_dict(stated | {"arguments": arguments})


def of_column(more: Content) -> Any:
    return Schema.from_dict({"columns": [{"name": "a", "kind": "numeric", "lower": 0, "upper": 1} | more]})


def of_statement(more: Content) -> Any:
    return MomentRelease.from_dict(content() | {"privacy": content()["privacy"] | more})


DEEP, ONE = mutations.nested(3000), mutations.array("float64", [1], [1.0])
WRONG: tuple[tuple[Callable[[Any], Any], tuple[Any, ...]], ...] = (
    (from_plain, (
        mutations.array("int8", [1], [300]), mutations.array("float32", [1], [1e300]), mutations.array("float64", [0] * 70, []),
        mutations.array("float64", [-1], [1.0]), mutations.array("float64", "1", [1.0]), mutations.array("int64", [1], [10**400]),
        mutations.array("float64", [2**70], [1.0]), {"$array": {"dtype": "float64", "values": [1.0]}}, mutations.nested(200),
    )),
    (PrivacyBudget.from_dict, (
        None, [], {"kind": "magic"}, {"kind": []}, {"kind": "pure", "epsilon": "1"}, {"kind": "pure", "epsilon": 1.0, "mu": 1},
        {"kind": "zcdp", "rho": 1.0, "epsilon": []}, {"kind": "pure", "epsilon": 10**400},
    )),
    (of_arguments, (None, [], {}, {"n_features": "3"}, {"n_features": 2.5}, {"n_features": 3, "rows": 1})),
    (of_statement, ({"rules": [DEEP]}, {"version": {}}, {"arithmetic": {}})),
    (lambda name: MomentRelease.from_dict(content() | {name: ONE}), ("diagnostics", "details", "mechanism_options")),
    (of_column, tuple({key: DEEP} for key in ("name", "kind", "lower", "missing", "scale"))),
    (Neighbors.of, (DEEP,)), (Repair.of, (DEEP,)),
)  # fmt: skip


@pytest.mark.parametrize(("read", "values"), WRONG)
def test_values_that_are_not_what_they_say_are_refused_in_few_words(read: Callable[[Any], Any], values: Any) -> None:
    for value in values:
        assert len(refusal(lambda value=value: read(value), (TypeError, ValueError))) < 1000


def test_a_receipt_whose_sum_takes_minutes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipt_module, "_MAX_DIFFERENT_LOSSES", 0)
    assert "different losses" in refusal(lambda: MomentRelease.from_dict(content()))


def test_a_receipt_is_added_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MomentRelease.from_dict(content())
    monkeypatch.setattr(receipt_module, "total_loss", None)
    assert found.receipt.exhausts


# Numbers beyond floating point ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e300, 1e160])
@pytest.mark.parametrize("repair", ["auto", "clip", "noise-shift", "shrink", "rotation-invariant"])
def test_enormous_numbers_are_refused_or_analysed(size: float, repair: str) -> None:
    changed = content()
    n_cells = len(changed["noisy_gram_upper_triangle"])
    changed["noisy_gram_upper_triangle"] = [size * (index + 1) for index in range(n_cells)]
    changed["noise"] |= {"variance": 2e-310}
    release = MomentRelease.from_dict(changed | {"repair": repair})
    assert any(check.passed is False for check in checks(release))
    for step in (lambda: release.covariance, release.describe, release.pca, lambda: release.ridge("age", alpha=0.1)):
        with suppress(ValueError):
            step()
            continue
        refusal(step)


@pytest.mark.long(sets=2)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("details", {"noise_scale": 10**400}),
        ("diagnostics", {"eigenvalue_bound": {}}),
        ("mechanism_options", {"steps": 10**400}),
    ],
)
def test_checks_fail_and_do_not_break(name: str, value: Any) -> None:
    for changed in map(copy.deepcopy, contents_of("release")):
        release = MomentRelease.from_dict(changed | {name: changed[name] | value})
        assert any(check.passed is not True for check in checks(release)) or name == "diagnostics"


def number_paths(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where numbers stand; of a list the first and the last entry."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from number_paths(entry, (*at, key))
    elif isinstance(value, list):
        for place in sorted({0, len(value) - 1}) if value else ():
            yield from number_paths(value[place], (*at, place))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield at


ODD_NUMBERS = {
    "2^64": 2**64,
    "2^53 + 1": 2**53 + 1,
    "10^400": 10**400,
    "-0": -0.0,
    "least": 5e-324,
    "inf": 1e309,
    "nan": math.nan,
    "true": True,
    "text": "1",
    "null": None,
    "list": [1.0],
}


@pytest.mark.long
@pytest.mark.parametrize("odd", ODD_NUMBERS.values(), ids=ODD_NUMBERS)
@pytest.mark.parametrize("index", [0, 5])
def test_any_number_of_a_file_may_be_odd(index: int, odd: Any) -> None:
    """It is refused in our own words, or what was read answers: numbers are floats, however they were written."""
    sound = content(index)
    for path in number_paths(sound):
        changed = content(index)
        entry: Any = changed
        for part in path[:-1]:
            entry = entry[part]
        entry[path[-1]] = odd
        found = attempt(partial(MomentRelease.from_dict, changed), f"{path}", (ValueError, TypeError, KeyError))
        if found is not None:
            attempt(found.describe, f"{path}")
            attempt(partial(json.dumps, found.to_dict(), allow_nan=False), f"{path}", ())


@pytest.mark.long
def test_a_mean_beyond_floating_point() -> None:
    changed = copy.deepcopy(contents_of("mean release")[0])
    changed["noisy_mean"] = [1.7e308] * len(changed["noisy_mean"])
    release = MeanRelease.from_dict(changed)
    assert "floating point" in refusal(lambda: release.mean)
    assert checks(release)[0].passed is False


@pytest.mark.parametrize("repair", list(Repair))
def test_moments_beyond_floating_point(repair: Repair) -> None:
    """Matrix products overflow without a word, whatever NumPy was told: a repair gave infinite moments."""
    upper = [1e308] * len(content()["noisy_gram_upper_triangle"])
    changed = content() | {"noise": None, "noisy_count": None, "noisy_sum": None, "center": None}
    changed["noisy_gram_upper_triangle"] = upper
    release = MomentRelease.from_dict(with_features(changed)).with_repair(repair)
    with suppress(ValueError):
        assert np.isfinite(release.unit_ball_gram).all()
        return
    assert "floating point" in refusal(lambda: release.unit_ball_gram)


# The terminal ---------------------------------------------------------------------------------------------------------


def test_a_file_does_not_speak_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = content()
    changed["warnings"] = [{"code": "location-lost", "facts": {"names": ["all is well \x1b[2J\x9b31m\u202e"]}}]
    for column in changed["schema"]["columns"]:  # and of what is computed from it
        for key in ("name", "column", "factors"):
            if key in column:
                names = column[key] if isinstance(column[key], list) else [column[key]]
                renamed = ["age\x1b[8m" if name == "age" else name for name in names]
                column[key] = renamed if isinstance(column[key], list) else renamed[0]
    path = str(saved(with_features(changed), tmp_path))
    for command in (["show"], ["verify"], ["describe"], ["pca", "-k", "1"], ["ridge", "member", "--alpha", "0.1"]):
        main([command[0], path, *command[1:]])
        said = "".join(capsys.readouterr())
        assert not set(said) & {"\x1b", "\x9b", "\u202e"}
        assert "\\x1b[" in said or command[0] in ("verify", "pca")  # pca names no feature of a component lost in noise


# CSV files --------------------------------------------------------------------------------------------------------------

AGE = Schema(dpm.Numeric("age", 0, 100), dpm.Numeric("code", 0, 100))


@pytest.mark.parametrize("end", ["", "\n", "\r", "\r\n"])
def test_a_header_line_alone_is_a_table_whatever_ends_it(end: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(f"age,code{end}".encode())
    assert Rows.of(path, AGE).moments().count == 0


@pytest.mark.long
@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_a_last_block_may_be_the_end_of_a_line(end: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whether a file was refused depended on where its last block began, that is on the lengths of its rows."""
    path = tmp_path / "t.csv"
    path.write_bytes(("age,code" + end + "".join(f"{index % 97}.5,{index}{end}" for index in range(40))).encode())
    whole = Rows.of(path, AGE).moments()
    for size in range(40, 120):
        monkeypatch.setattr(text, "_CSV_BLOCK_BYTES", size)
        assert Rows.of(path, AGE).moments() == whole


def test_a_header_that_is_no_text_is_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"age,code,\xffSmith\n1,2,3\n")
    message = refusal(lambda: Rows.of(path, AGE))
    assert "Smith" not in message
    assert not np.any([word in message for word in ("0xff", "codec")])
