"""The public description of a table: what it accepts, what it refuses, and that a file of it means what it says."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpmoments as dpm
from dpmoments.schema import Coordinate, Schema
from dpmoments.schema.document import parse_yaml
from support.examples import examples
from support.said import codes, refused

SECRET = "Smith-4711"

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
bounds = st.tuples(st.floats(-1e100, 1e100), st.floats(-1e100, 1e100)).filter(lambda pair: pair[1] - pair[0] > 1e-90)
integer_levels = st.lists(st.integers(-(2**53) + 1, 2**53 - 1), min_size=1, max_size=5, unique=True)
text_levels = st.lists(texts, min_size=1, max_size=5, unique=True)


@st.composite
def columns(draw: st.DrawFn) -> Any:
    name, kind = draw(texts), draw(st.sampled_from(["numeric", "boolean", "categorical"]))
    if kind == "numeric":
        lower, upper = draw(bounds)
        return dpm.Numeric(name, lower, upper, missing=draw(st.sampled_from(["error", "center", "drop"])))
    if kind == "boolean":
        return dpm.Boolean(name, missing=draw(st.sampled_from(["error", "center", "drop"])))
    return dpm.Categorical(
        name,
        draw(st.one_of(integer_levels, text_levels)),
        missing=draw(st.sampled_from(["error", "zero", "drop"])),
        other=draw(st.sampled_from(["drop", "zero"])),
    )


def test_every_column_says_its_public_values() -> None:
    columns = {
        "0 to 9.5": dpm.Numeric("x", 0, 9.5),
        "standard deviation from 1 to 100, mean within 7 of 3": dpm.Numeric("x", scale=(1, 100), center=3, radius=7),
        "1, 2, 3, 4": dpm.Categorical("x", [1, 2, 3, 4]),
        "1, 2, 3, 4, … (5 levels)": dpm.Categorical("x", [1, 2, 3, 4, 5]),
        "true or false": dpm.Boolean("x"),
        "row clipped in length": dpm.Coordinate("x"),
    }
    assert {column.public_values_text: column for column in columns.values()} == columns


def distinct_features(candidates: list[Any]) -> bool:
    features = [feature for column in candidates for feature in column.feature_names]
    return len(set(features)) == len(features) and len({column.name for column in candidates}) == len(candidates)


@st.composite
def with_derived(draw: st.DrawFn, parts: list[Any]) -> list[Any]:
    """Columns and, here and there, a power or product of them that can be made."""
    found = list(parts)
    for _ in range(draw(st.integers(0, 2))):
        first, second = draw(st.sampled_from(parts)), draw(st.sampled_from(parts))
        try:
            derived = (
                dpm.Power(first.name, draw(st.integers(2, 4)))
                if first is second
                else dpm.Product(first.name, second.name)
            )
            tried = [*found]
            tried.insert(draw(st.integers(0, len(found))), derived)
            Schema(*tried)
        except ValueError:
            continue
        found = tried
    return found


schemas = st.builds(
    lambda parts, norm: Schema(*parts, row_norm=norm),
    st.lists(columns(), min_size=1, max_size=4).filter(distinct_features).flatmap(with_derived),
    st.one_of(st.just("default"), st.floats(1e-90, 1e90)),
)

NO_BOUNDS = "has no bounds: give lower and upper from public"
NOT_BELOW = "must be below upper="
NOT_FINITE = "must be finite, and at most"
NO_LEVELS = "has no levels: list them from public knowledge"
NO_NAME = "a column's name is a non-empty string, got"
HALF_A_PAIR = "is not valid Unicode text (it holds half of a"
NO_NORM = "the bound on a row's norm must be positive and"
REFUSED: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: dpm.Numeric("age"), ValueError, NO_BOUNDS),
    (lambda: dpm.Numeric("age", 0), ValueError, NO_BOUNDS),
    (lambda: dpm.Numeric("age", 100, 0), ValueError, NOT_BELOW),
    (lambda: dpm.Numeric("age", 5, 5), ValueError, NOT_BELOW),
    (lambda: dpm.Numeric("age", 2**53, 2**53 + 1), ValueError, NOT_BELOW),
    (lambda: dpm.Numeric("age", math.nan, 1), ValueError, NOT_FINITE),
    (lambda: dpm.Numeric("age", 0, math.inf), ValueError, NOT_FINITE),
    (lambda: dpm.Numeric("age", 0, 10**400), ValueError, NOT_FINITE),
    (lambda: dpm.Numeric("age", 0, 1e160), ValueError, NOT_FINITE),
    (lambda: dpm.Numeric("age", 0, 1e-200), ValueError, "are too close together for floating point: use a"),
    (lambda: dpm.Numeric("age", "0", 1), TypeError, "must be a number, got the text"),
    (lambda: dpm.Numeric("age", False, True), TypeError, "must be"),
    (lambda: dpm.Numeric("age", 0, 1, missing="mean"), ValueError, ": use '"),
    (lambda: dpm.Numeric("age", 0, 1, missing="zero"), ValueError, ": use '"),
    (lambda: dpm.Categorical("a", ["x"], missing="center"), ValueError, ": use '"),
    (lambda: dpm.Categorical("a", ["x"], other="error"), ValueError, ": use '"),
    (lambda: dpm.Date("d", "2020-01-01", "2021-01-01", unit=["days"]), ValueError, ": use '"),
    (lambda: dpm.Boolean(""), TypeError, NO_NAME),
    (lambda: dpm.Boolean(3), TypeError, NO_NAME),
    (lambda: dpm.Boolean("\ud800"), ValueError, HALF_A_PAIR),
    (lambda: dpm.Categorical("a", ["\udfff"]), ValueError, HALF_A_PAIR),
    (lambda: dpm.Categorical("a", []), ValueError, NO_LEVELS),
    (lambda: dpm.Categorical("a", None), ValueError, NO_LEVELS),
    (lambda: dpm.Categorical("a", "north"), ValueError, "is one text: give a list of levels"),
    (lambda: dpm.Categorical("a", {"x", "y"}), ValueError, NO_LEVELS),
    (lambda: dpm.Categorical("a", ["x", "x"]), ValueError, "a level is listed twice in levels"),
    (lambda: dpm.Categorical("a", [True, False]), TypeError, "levels must be strings or integers (Boolean is for"),
    (lambda: dpm.Categorical("a", [1.5]), TypeError, "levels must be strings or integers (Boolean is for"),
    (lambda: dpm.Categorical("a", ["1", 2]), TypeError, "levels must be all strings or all integers (in a"),
    (lambda: dpm.Categorical("a", [2**53]), ValueError, "is larger: give the levels, and the column, as text"),
    (lambda: Schema(), ValueError, "a schema needs at least one column"),
    (lambda: Schema("age"), TypeError, "a schema consists of Numeric, Date, Categorical and"),
    (lambda: Schema(dpm.Boolean("a"), dpm.Boolean("a")), ValueError, "duplicate column names in the schema"),
    (
        lambda: Schema(dpm.Categorical("a", ["b"]), dpm.Boolean("a=b")),
        ValueError,
        "two columns give the same feature name",
    ),
    (lambda: Schema(dpm.Boolean("a"), row_norm=0), ValueError, NO_NORM),
    (lambda: Schema(dpm.Boolean("a"), row_norm=-1), ValueError, NO_NORM),
    (lambda: Schema(dpm.Boolean("a"), row_norm=math.nan), ValueError, NO_NORM),
    (lambda: Schema(Coordinate("a"), row_norm=10**400), ValueError, NO_NORM),
    (lambda: Schema(dpm.Boolean("a"), row_norm="adaptive"), TypeError, "must be"),
    (lambda: Schema(dpm.Boolean("a"), row_norm=True), TypeError, "must be"),
    (lambda: Schema(dpm.Boolean("a"), row_norm=None), ValueError, "row_norm=None is for coordinates without bounds:"),
    (lambda: Schema(Coordinate("a")), ValueError, "coordinates have no bounds of their own: give"),
    (lambda: Schema.unit_ball(0), ValueError, "a table needs at least one feature"),
    (lambda: Schema.unit_ball(1.5), TypeError, "must be"),
    (lambda: Schema.unit_ball(2, names=["a"]), ValueError, "names for"),
    (lambda: Schema.unit_ball(2, names="ab"), ValueError, "names for"),
]


@pytest.mark.parametrize(("make", "kind", "code"), REFUSED)
def test_what_cannot_be_a_schema_is_refused_with_the_reason(
    make: Callable[[], object], kind: type[Exception], code: str
) -> None:
    with refused(code, kind):
        make()


def test_marks_of_text_are_given_by_name() -> None:
    with pytest.raises(TypeError, match="positional"):
        dpm.Numeric("age", 0, 1, "error", ",")  # type: ignore[misc]


def test_features_and_row_norm() -> None:
    schema = Schema(dpm.Numeric("age", 0, 100), dpm.Categorical("region", ["n", "s", "e"]), dpm.Boolean("married"))
    assert schema.feature_names == ("age", "region=n", "region=s", "region=e", "married")
    assert schema.n_features == 5
    assert schema.row_norm == 2**16 / 37837  # next above √3, of the columns, not of the features: a level is 37837·2⁻¹⁶
    assert 37837 < 2**16 / math.sqrt(3) < 37838
    assert Schema(dpm.Boolean("a"), dpm.Boolean("b"), row_norm=1).row_norm == 1.0
    assert Schema(dpm.Boolean("a"), dpm.Boolean("b"), row_norm=9).row_norm == math.sqrt(2)  # no row is longer
    assert Schema(Coordinate("a"), row_norm=np.float32(2)).row_norm == 2.0
    assert Schema.unit_ball(np.int64(3), names=["a", "b", "c"]).feature_names == ("a", "b", "c")


def test_levels_add_up_where_every_kept_row_has_one() -> None:
    for missing, other, complete in (("drop", "drop", True), ("zero", "drop", False), ("drop", "zero", False)):
        assert dpm.Categorical("a", ["x"], missing, other).complete == complete  # type: ignore[arg-type]


def test_feature_bounds() -> None:
    schema = Schema(dpm.Numeric("age", -3, 100), dpm.Categorical("region", ["n", "s"]), dpm.Boolean("married"))
    lower, upper = schema.feature_bounds
    np.testing.assert_array_equal(lower, [-3, 0, 0, 0])
    np.testing.assert_array_equal(upper, [100, 1, 1, 1])
    np.testing.assert_array_equal(Schema.unit_ball(2).feature_bounds, [[-1, -1], [1, 1]])
    np.testing.assert_array_equal(Schema.unbounded(1).feature_bounds, [[-math.inf], [math.inf]])


def test_a_schema_cannot_be_changed_after_it_was_made() -> None:
    levels, names = ["n", "s"], ["a", "b"]
    schema, ball = Schema(dpm.Categorical("region", levels)), Schema.unit_ball(2, names=names)
    levels.append("e")
    names[0] = "z"
    with pytest.raises(ValueError, match="read-only"):
        schema.encoding().unit[0] = 7.0
    schema.feature_bounds[0][0] = 7.0
    schema.to_dict()["columns"][0]["levels"].append("e")
    assert schema == Schema(dpm.Categorical("region", ["n", "s"]))
    assert ball.feature_names == ("a", "b")
    np.testing.assert_array_equal(schema.encoding().unit, [1.0, 1.0])
    with pytest.raises(FrozenInstanceError):
        schema.row_norm = 5.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        dpm.Numeric("age", 0, 1).upper = 5.0  # type: ignore[misc]


@pytest.mark.long
@settings(max_examples=examples(75), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(schema=schemas)
def test_a_file_gives_the_same_schema_back(schema: Schema, tmp_path: Path) -> None:
    path = tmp_path / "schema.yaml"
    schema.save(path)
    assert Schema.load(path) == schema
    assert Schema.from_dict(schema.to_dict()) == schema


def test_awkward_names_and_levels_come_back_from_a_file(tmp_path: Path) -> None:
    awkward = [
        "1e6",
        "010",
        "no",
        "~",
        "",
        " a",
        "a ",
        "a: b",
        "a #b",
        "- a",
        "\x85",
        "\u2028",
        "\t",
        "\r\n",
        "'",
        '"',
        "\\",
        "Größe",
    ]
    schema = Schema(dpm.Categorical("levels", awkward), *(dpm.Boolean(name) for name in awkward if name))
    schema.save(tmp_path / "schema.yaml")
    assert Schema.load(tmp_path / "schema.yaml") == schema
    # planted fault: PyYAML's own way of writing loses some of them
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(schema.to_dict(), allow_unicode=True))
    with refused(".yaml: "):
        Schema.load(tmp_path / "schema.yaml")


EVERY_OPTION = {
    "cleaning": Schema(
        dpm.Numeric("pay", 0, 200, "fill", fill=30, typical=(20, 90), decimal=",", thousands=".", source="INC", weight=16),
        dpm.Boolean("smoker", "fill", fill=True, true_values=["yes", 2], false_values=[1, "no"], weight=0.5),
        dpm.Categorical("town", ["a", "b"], "zero", "zero", aliases={"a": ["A", 1]}, strip=True, casefold=True, weight=4),
        dpm.Date(
            "day", dt.date(2015, 1, 1), dt.datetime(2020, 1, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))), "drop",
            unit="years", origin="1900-01-01", format="%d.%m.%Y", missing_values=["1900-01-01"], description="of admission",
        ),
        dpm.Power("day", 2),
        missing_values=[-9, "k.A."],
        text_format=dpm.TextFormat(delimiter=";", encoding="latin-1", nulls=["-"], true=["ja"], quote=None, skip_lines=2),
        mean_weight=4,
    ),
    "scale": Schema(dpm.Numeric("rent", scale=[0.1, np.float64(7)], center=-3, radius=1 / 3), dpm.Numeric("age", 0, 100)),
    "unit ball": Schema.unit_ball(3, missing="drop"),
    "unbounded": Schema.unbounded(2),
}  # fmt: skip


@pytest.mark.parametrize("name", EVERY_OPTION)
def test_a_file_holds_every_option(name: str, tmp_path: Path) -> None:
    schema, path = EVERY_OPTION[name], tmp_path / "schema.yaml"
    schema.save(path)
    loaded = Schema.load(path)
    assert loaded == Schema.from_dict(schema.to_dict()) == schema
    assert repr(loaded) == repr(schema)
    assert [column.description for column in loaded.columns] == [column.description for column in schema.columns]
    for column in schema.table_columns:
        for option in {"typical", "weight", "scale", "missing_values", "description"} & set(column.options):
            assert (option in column.to_dict()) == (getattr(column, option) is not None)


def test_options_of_noise_are_stated_in_the_rules() -> None:
    facts = {rule.code: rule.facts for rule in EVERY_OPTION["cleaning"].rules}
    assert facts["noise-by-weight"] == {"names": ("pay", "smoker", "town"), "weights": (16.0, 0.5, 4.0)}
    assert facts["noise-by-mean-weight"] == {"weight": 4.0}
    assert "noise-by-typical-range" in facts
    assert not any(code.startswith("noise-by") for code in codes(EVERY_OPTION["scale"].rules))
    dates = EVERY_OPTION["cleaning"].columns[3]
    assert dates.bounds == pytest.approx((115.0, 120.0), abs=0.01)


def test_levels_in_a_file_stay_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "schema.yaml"
    path.write_text("columns: [{name: zip, kind: categorical, levels: [010, 0x10, 12:30, no, on, 1_000, 2020-01-31]}]")
    levels = ("010", "0x10", "12:30", "no", "on", "1_000", "2020-01-31")
    assert Schema.load(path).columns == (dpm.Categorical("zip", levels),)
    # planted fault: YAML 1.1, as PyYAML reads it, changes five of the seven
    changed = yaml.safe_load("[010, 0x10, 12:30, no, on, 1_000, 2020-01-31]")
    assert sum(level not in levels for level in changed) == 7
    assert [level for level in changed if isinstance(level, int)] == [8, 16, 750, False, True, 1000]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e6", 1e6), ("1.5", 1.5), ("-3", -3), ("+3", 3), (".5", 0.5), ("5.", 5.0), ("1.0e+16", 1e16), ("0", 0),
        ("~", None), ("", None), ("null", None), ("true", True), ("False", False), ("yes", "yes"), ("1e", "1e"),
        (".inf", ".inf"), (".nan", ".nan"), ("'1'", "1"), ("-", [None]), ("+", "+"), ("1.2.3", "1.2.3"),
    ],
)  # fmt: skip
def test_scalars_of_a_file(text: str, value: object) -> None:
    parsed = parse_yaml(text)
    assert parsed == value
    assert type(parsed) is type(value)


MINIMAL = "{name: age, kind: numeric, lower: 0, upper: 1}"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("columns: [{name: age, kind: numeric, lower: , upper: 9}]", ".yaml: "),
        ("columns: [{name: a, kind: numeric}, {name: b, kind: categorical}]", ".yaml: "),
        (f"columns: [{MINIMAL}, {{name: x, kind: number}}]", ".yaml: "),
        ("columns: [{name: x, kind: [numeric]}]", ".yaml: "),
        ("columns: [{name: age, kind: numeric, lower: 0, upper: 1, max: 3}]", ".yaml: "),
        ("columns: [{name: age, kind: numeric, lower: 0, upper: 1, 3: 4}]", ".yaml: "),
        (f"columns: [{MINIMAL}]\nlimits: 3\n4: 5", ".yaml: "),
        ("columns: [{kind: boolean}]", ".yaml: "),
        ("columns: [age]", ".yaml: "),
        ("columns: []", ".yaml: "),
        ("columns: age", ".yaml: "),
        ("[1, 2]", ".yaml: "),
        ("", ".yaml: "),
        (f"columns: [{MINIMAL}]\nversion: 2", ".yaml: "),
        (f"columns: [{MINIMAL}]\nformat: other", ".yaml: "),
        ("columns: [{name: age, kind: numeric, lower: .inf, upper: 1}]", ".yaml: "),
        ("columns: [{name: age, kind: numeric, lower: 0, lower: 5, upper: 9}]", "is not a YAML file"),
        (f"columns: [{MINIMAL}]\ncolumns: [{MINIMAL}]", "is not a YAML file"),
        ("columns: [{name: age, kind: numeric, lower: !!python/object/apply:os.getcwd [], upper: 1}]", "is not a YAML file"),
        ("columns: &a [*a]", "is not a YAML file"),
        ("a:\n - b\n  c: {", "is not a YAML file"),
        ("[" * 2_000, "is not a YAML file"),
        ("a: \x00", "is not a YAML file"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_schema_is_refused_with_the_reason(tmp_path: Path, text: str, code: str) -> None:
    path = tmp_path / "schema.yaml"
    path.write_text(text)
    with refused(code, path=str(path)):
        Schema.load(path)


@pytest.mark.parametrize(
    "content",
    [
        f"name,age\n{SECRET},'39\n".encode(),
        f"{SECRET}: [1, 2\nother".encode(),
        f"a: !{SECRET} x".encode(),
        f"%{SECRET}\n---\n".encode(),
        f"a: *{SECRET}".encode(),
        f"- {SECRET}\n- 3".encode(),
        SECRET.encode("utf-16"),
        b"PAR1\xff\xfe" + SECRET.encode(),
    ],
)
def test_a_table_taken_for_a_schema_is_not_quoted(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        Schema.load(path)
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in f"{error} {error!r} {vars(error)}"
        error = error.__cause__ or error.__context__


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "schema.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + f"columns: [{MINIMAL}]\n".encode())
    assert Schema.load(path) == Schema(dpm.Numeric("age", 0, 1))


def test_every_rule_is_told_in_words() -> None:
    schema = Schema(
        dpm.Numeric("age", 0, 100, missing="center"),
        dpm.Boolean("married", missing="drop"),
        dpm.Categorical("region", ["n", "s"], missing="zero", other="zero"),
        Coordinate("x", missing="drop"),
        row_norm=1.5,
    )
    told = " ".join(map(str, schema.rules))
    for words in ("age: values clipped to [0, 100]; missing values: center", "married: true or false; missing values: drop",
                  "region: 2 public levels; missing values: zero; other values: zero", "1 coordinates", "above 1.5"):  # fmt: skip
        assert words in told
    assert "no-row-norm-bound" in codes(Schema.unbounded(2).rules)
