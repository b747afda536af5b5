"""A release's file: exact to the bit, written whole or not at all, and refused with the reason when it is not as written."""

from __future__ import annotations

import contextlib
import copy
import errno
import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpmoments as dpm
from dpmoments.base import documents
from dpmoments.base.values import from_plain, to_plain
from dpmoments.privacy.origin import GroupOfRows, ReleaseOrigin
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.schema import Schema
from support.examples import examples
from support.forged_files import signed
from support.said import refused

SECRET = "Smith-4711"

texts = st.text(st.characters(codec="utf-8"), max_size=8)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), texts)
arrays = st.one_of(
    st.lists(st.floats(), max_size=4).map(np.array),
    st.lists(st.integers(-128, 127), max_size=4).map(lambda entries: np.array(entries, dtype=np.int8)),
    st.lists(st.floats(width=32), max_size=4).map(lambda entries: np.array(entries, dtype=np.float32).reshape(-1, 1)),
    st.just(np.zeros((0, 3))),
    st.just(np.array(3.5)),
    st.just(np.array([[True, False]])),
)
values = st.recursive(
    scalars | arrays,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(texts | st.sampled_from(["$float", "$$", "$array", "array", "float"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def bits(value: Any) -> Any:
    """A value as something that two equal ones have in common, to the bit: NaN, −0.0, types and shapes told apart."""
    if isinstance(value, np.ndarray):
        return (
            "array",
            value.dtype.str,
            value.shape,
            value.tobytes() if not np.isnan(value).any() else repr(value.tolist()),
        )
    if isinstance(value, float):
        return "nan" if math.isnan(value) else ("float", value.hex())
    if isinstance(value, dict):
        return ("dict", [(key, bits(entry)) for key, entry in value.items()])
    if isinstance(value, list | tuple):
        return (type(value).__name__, [bits(entry) for entry in value])
    return (type(value).__name__, value)


FIELDS = ("origin", "schema", "privacy", "receipt", "mechanism", "repair")
VALUES = ("mechanism_options", "details", "noisy_count", "noisy_sum", "noisy_gram", "center", "diagnostics")


def assert_same(first: MomentRelease, second: MomentRelease) -> None:
    for name in FIELDS:
        assert getattr(first, name) == getattr(second, name), name
        assert repr(getattr(first, name)) == repr(getattr(second, name)), name
    models = [None if one.noise_model is None else bits(one.noise_model.to_dict()) for one in (first, second)]
    assert models[0] == models[1]
    for name in VALUES:
        assert bits(getattr(first, name)) == bits(getattr(second, name)), name


@settings(max_examples=examples(300), deadline=None)
@given(value=values)
def test_values_come_back_through_json(value: Any) -> None:
    assert bits(from_plain(json.loads(json.dumps(to_plain(value), allow_nan=False)))) == bits(value)


def test_numpy_scalars_and_other_things_in_options() -> None:
    plain = {
        "a": np.float32(0.1),
        "b": np.int8(3),
        "c": np.bool_(True),
        "d": np.longdouble(2),
        "e": np.float64("inf"),
        7: "x",
    }
    assert from_plain(json.loads(json.dumps(to_plain(plain)))) == {
        "a": float(np.float32(0.1)), "b": 3, "c": True, "d": 2.0, "e": math.inf, "7": "x",
    }  # fmt: skip
    assert to_plain({"mechanism": dpm.mechanisms.Laplace()}) == {"mechanism": "Laplace()"}
    assert to_plain(np.array(["a", None], dtype=object)) == ["a", None]
    assert from_plain(to_plain(np.array([2.0], dtype=np.longdouble))).dtype == np.float64


CASES: dict[str, dict[str, Any]] = {
    "pure": dict(epsilon=1.0),
    "approximate": dict(epsilon=1.0, delta=1e-9, mechanism="gaussian"),
    "zcdp": dict(rho=0.5),
    "replace-one": dict(epsilon=1.0, neighbors="replace_one"),
    "gram alone": dict(epsilon=1.0, mean=False),
    "laplace": dict(epsilon=1.0, mechanism="laplace", repair="none"),
}
SCHEMA = Schema(dpm.Numeric("age", 0, 100), dpm.Categorical("region", ["north", "south"]))


def release(**options: Any) -> MomentRelease:
    rng = np.random.default_rng(0)
    frame = {"age": rng.uniform(0, 100, 50), "region": rng.choice(["north", "south"], 50)}
    return dpm.release(pa.table(frame), SCHEMA, **({"epsilon": 1.0} if "rho" not in options else {}) | options)


def odd() -> MomentRelease:
    """Numbers and texts that a careless writer changes, such as −0.0, the least float and a line end."""
    group = GroupOfRows("0" * 32, "a \n", 2**53, 2**70)
    gram = np.array([[-0.0, 5e-324, 0.1 + 0.2], [5e-324, 1e308, -1e-300], [0.1 + 0.2, -1e-300, 1.0 / 3.0]])
    return replace(
        release(),
        schema=Schema.unbounded(3, names=[f"Größe {i}\n" for i in range(3)]),
        mechanism="Größe \u2028",
        mechanism_options={"$tag": (1, (2,)), "steps": [math.nan, -math.inf, -0.0]},
        details={"grid": np.array([[1.0, math.nan]]), "none": np.zeros((0, 3))},
        diagnostics={"": {"$$": 2**70}},
        noisy_count=-0.0,
        noisy_sum=np.array([5e-324, -0.0, 1e300]),
        noisy_gram=gram,
        origin=ReleaseOrigin("f" * 32, "«people»", group),
    )


@pytest.mark.parametrize("options", [*CASES.values(), None], ids=[*CASES, "odd"])
def test_a_release_comes_back_to_the_bit(options: dict[str, Any] | None, tmp_path: Path) -> None:
    made, path = odd() if options is None else release(**options), tmp_path / "release.json"
    made.save(path)
    loaded = dpm.load(path)
    assert_same(made, loaded)
    assert loaded.privacy.describe() == made.privacy.describe()
    first = path.read_bytes()
    loaded.save(path, overwrite=True)
    assert path.read_bytes() == first


def test_an_insecure_release_stays_marked(tmp_path: Path) -> None:
    release(insecure_seed=1, output=tmp_path / "a.json")
    assert not dpm.load(tmp_path / "a.json").privacy.private


# ---------------------------------------------------------------------------------------------------------------------
# damage and edits


@pytest.fixture(scope="module")
def released() -> MomentRelease:
    return release()


@pytest.fixture
def saved(released: MomentRelease, tmp_path: Path) -> Path:
    released.save(tmp_path / "release.json")
    return tmp_path / "release.json"


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_changed_byte_is_refused_or_changes_nothing(data: st.DataObject, saved: Path) -> None:
    whole = saved.read_bytes()
    original = json.loads(whole)
    place = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255))
    damaged = whole[:place] + bytes([byte]) + whole[place + 1 :]
    changed = saved.with_name("changed.json")
    changed.write_bytes(damaged)
    try:
        dpm.load(changed)
    except ValueError:
        return
    assert json.loads(damaged) == original  # white space, or the byte itself


def test_a_sum_without_a_count_makes_no_release(saved: Path) -> None:
    release = dpm.load(saved)
    assert release.noisy_sum is not None
    with refused("a sum of rows without their number makes no mean: release"):
        replace(release, noisy_count=None)
    assert replace(release, noisy_count=None, noisy_sum=None, center=None).mechanism == release.mechanism


def put(*path: Any) -> Callable[[Any, Any], None]:
    """A setter of the entry at ``path`` of a file's content."""

    def setter(content: Any, value: Any) -> None:
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = value

    return setter


EDITS: list[tuple[str, Callable[[Any, Any], None], Any, str]] = [
    ("matrix too long", put("noisy_gram_upper_triangle"), [1.0] * 7, "finite numbers"),
    ("sum too short", put("noisy_sum"), [1.0], "finite numbers"),
    ("huge integer", put("noisy_gram_upper_triangle", 0), 10**400, "finite numbers"),
    ("unknown repair", put("repair"), "magic", "repair must be one of"),
    ("negative variance", put("noise", "variance"), -1.0, "must be"),
    ("rate of zero", put("noise", "rate"), 0, "must be"),
    ("unknown noise", put("noise", "name"), "gausian", ": use '"),
    ("other schema", put("schema", "columns", 1, "levels"), ["a"], "finite numbers"),
    ("group by nothing", put("origin", "group"), {"run": "0" * 32, "by": "", "level": "a", "n_levels": 2}, "non-empty string"),
    ("noise for others", put("noise", "n_features"), 2, "finite numbers"),
    ("rate of no Wishart", put("noise", "rate"), 1e300, "must be"),
    ("noise of another law", put("noise", "name"), "centered-levels-gaussian", "has unknown entries"),
    ("unknown tag", put("diagnostics", "a"), {"$code": "1"}, "is marked"),
    ("float that is none", put("diagnostics", "a"), {"$float": "0x7"}, "is marked"),
    ("array of text", put("diagnostics", "a"), {"$array": {"dtype": "float64", "shape": [1], "values": ["1"]}}, "is marked"),
    ("array of objects", put("diagnostics", "a"), {"$array": {"dtype": "object", "shape": [1], "values": [1]}}, "is marked"),
    ("array of another shape", put("diagnostics", "a"), {"$array": {"dtype": "int8", "shape": [9], "values": [1]}}, "is marked"),
]  # fmt: skip


@pytest.mark.parametrize(("setter", "value", "cause"), [row[1:] for row in EDITS], ids=[row[0] for row in EDITS])
def test_an_edit_with_a_mended_checksum_is_refused(
    saved: Path, setter: Callable[[Any, Any], None], value: Any, cause: str
) -> None:
    document = json.loads(saved.read_text())
    saved.write_text(signed(copy.deepcopy(document)))
    dpm.load(saved)  # the checksum alone is not what refuses
    setter(document["content"], value)
    saved.write_text(signed(document))
    with refused("does not hold a consistent", cause=cause, path=str(saved)) as caught:
        dpm.load(saved)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"noisy_count": ', '"noisy_count": NaN, "was": ', "it is damaged or not JSON"),
        ('"noisy_count": ', '"noisy_count": 1e999, "was": ', "it is damaged or not JSON"),
        ('"noisy_count": ', f'"noisy_count": {"9" * 5000}, "was": ', "it is damaged or not JSON"),
        ('"noisy_count": ', '"noisy_count": 1, "noisy_count": ', "it is damaged or not JSON"),
        ('"diagnostics": {', '"diagnostics": {"a": ' + "[" * 100_000, "it is damaged or not JSON"),
        ('"version": 1,', '"version": 2,', "this library reads version"),
        ('"version": 1,', '"version": true,', "this library reads version"),
        ('"content"', '"contents"', "has unknown entries"),
        ('"sha256": "', '"sha256": "0', "was changed after it was written, or is damaged: its"),
    ],
)
def test_text_that_no_release_has_is_refused(saved: Path, old: str, new: str, code: str) -> None:
    text = saved.read_text()
    assert old in text
    saved.write_text(text.replace(old, new, 1))
    with refused(code):
        dpm.load(saved)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("format", "is not a dpmoments"),
        ("version", "this library reads version"),
        ("content", "it has no content"),
        ("sha256", "was changed after it was written, or is damaged: its"),
    ],
)
def test_what_stands_beside_the_content_is_checked(saved: Path, entry: str, said: str) -> None:
    document = json.loads(saved.read_text())
    without = {name: value for name, value in document.items() if name != entry}
    for changed in (document | {entry: None}, without):
        saved.write_text(json.dumps(changed))
        with refused(said, path=str(saved)):
            dpm.load(saved)


def test_deep_values(saved: Path) -> None:
    document = json.loads(saved.read_text())
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    document["content"]["diagnostics"] = {"a": deep}
    saved.write_text(signed(document))
    assert dpm.load(saved).diagnostics["a"] == deep
    parsed = []
    for depth in (200, 800, 5_000, 50_000):  # too deep to read, to check or to restore: never an error of another kind
        saved.write_text(signed(document).replace("[" * 101, "[" * depth).replace("]" * 101, "]" * depth))
        parsed.append(_can_be_parsed(saved))
        with refused(
            "was changed after it was written, or is damaged: its" if parsed[-1] else "it is damaged or not JSON",
            path=str(saved),
        ):
            dpm.load(saved)
    assert parsed[:2] == [True, True]
    assert parsed == sorted(parsed, reverse=True)


def _can_be_parsed(path: Path) -> bool:
    """Python 3.13 parses deeper lists than 3.11, and 3.14 all of these."""
    try:
        json.loads(path.read_text())
    except RecursionError:
        return False
    return True


@pytest.mark.parametrize(
    "content",
    [
        f"name,age\n{SECRET},39\n".encode(),
        json.dumps({"format": SECRET, "version": 1}).encode(),
        json.dumps([{"name": SECRET}] * 2).encode(),
        b'{"' + SECRET.encode() + b'": 1, "' + SECRET.encode() + b'": 2}',
        b'{"a": ' + SECRET.encode() + b"}",
        b"PAR1\xff\xfe" + SECRET.encode(),
        SECRET.encode("utf-16"),
    ],
)
def test_a_table_taken_for_a_release_is_not_quoted(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "people.json"
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        dpm.load(path)
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in f"{error} {error!r} {vars(error)}"
        error = error.__cause__ or error.__context__


def test_nothing_in_a_file_is_run(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading calls no importer, evaluator or unpickler, whatever the file's text looks like."""
    import builtins
    import pickle

    def refuse(*_: object, **__: object) -> object:
        raise AssertionError("the file was run")

    document = json.loads(saved.read_text())
    document["content"]["diagnostics"] = {"a": "__import__('os').system('true')", "__reduce__": ["os.system", "true"]}
    document["content"]["mechanism"] = "os.system"
    saved.write_text(signed(document))
    for module, name in ((builtins, "eval"), (builtins, "exec"), (pickle, "loads"), (pickle, "load"), (os, "system")):
        monkeypatch.setattr(module, name, refuse)
    loaded = dpm.load(saved)
    assert loaded.mechanism == "os.system"
    assert loaded.diagnostics["__reduce__"] == ["os.system", "true"]


# ---------------------------------------------------------------------------------------------------------------------
# writing


def test_a_name_that_is_taken_stays_as_it_is(saved: Path) -> None:
    before, broken = saved.read_bytes(), saved.with_name("link.json")
    broken.symlink_to(saved.with_name("absent.json"))
    for taken in (saved, broken):
        with refused("exists already", FileExistsError):
            release().save(taken)
    assert saved.read_bytes() == before
    release().save(saved, overwrite=True)
    assert saved.read_bytes() != before


def test_names_that_no_file_can_have_are_refused_and_the_longest_can_be_had(tmp_path: Path) -> None:
    for name in ("x" * 256, "a\0b"):
        with pytest.raises(OSError):
            release(output=tmp_path / name)
    release(output=tmp_path / ("x" * 255))
    assert os.listdir(tmp_path) == ["x" * 255]


def test_a_file_that_appears_while_the_release_is_made_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, made = tmp_path / "release.json", release()
    real = os.fsync

    def appear(descriptor: int) -> None:
        real(descriptor)
        path.write_text("another release")

    monkeypatch.setattr(documents.os, "fsync", appear)
    with refused("exists already", FileExistsError):
        made.save(path)
    assert path.read_text() == "another release"
    assert os.listdir(tmp_path) == ["release.json"]


@pytest.mark.parametrize(
    "interruption", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device"), SystemExit(1)]
)
@pytest.mark.parametrize("step", ["fsync", "link", "fdopen"])
def test_an_interrupted_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruption: BaseException, step: str
) -> None:
    made = release()

    def interrupt(*_: object, **__: object) -> None:
        raise interruption

    monkeypatch.setattr(documents.os, step, interrupt)
    if step == "link":  # a file system without hard links: the next step stops it
        monkeypatch.setattr(documents.os, "replace", interrupt)
    with pytest.raises(type(interruption)):
        made.save(tmp_path / "release.json")
    assert os.listdir(tmp_path) == []
    monkeypatch.undo()
    made.save(tmp_path / "release.json")
    assert_same(dpm.load(tmp_path / "release.json"), made)


def test_an_interrupted_overwrite_leaves_the_old_release(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(documents.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        release().save(saved, overwrite=True)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(documents.os, "link", refuse)
    made = release()
    made.save(tmp_path / "release.json")
    assert_same(dpm.load(tmp_path / "release.json"), made)
    with pytest.raises(FileExistsError):
        documents.publish(tmp_path / "release.json", tmp_path / "release.json")


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
def test_others_may_read_a_release_as_the_umask_says(tmp_path: Path) -> None:
    for mask, mode in ((0o022, 0o644), (0o077, 0o600)):
        previous = os.umask(mask)
        try:
            release().save(tmp_path / f"{mode}.json")
        finally:
            assert os.umask(previous) == mask
        assert (tmp_path / f"{mode}.json").stat().st_mode & 0o777 == mode


def test_repaired_moments_cannot_be_changed_through_what_is_handed_out() -> None:
    made = release()
    for name in ("unit_ball_mean", "unit_ball_gram", "noisy_gram"):
        before = getattr(made, name).copy()
        with contextlib.suppress(ValueError):  # read-only, or computed anew
            getattr(made, name)[0] = 99.0
        np.testing.assert_array_equal(getattr(made, name), before)
