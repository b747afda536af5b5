"""What a preflight counts, cell by cell and row by row in plain Python."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import dpmoments as dpm
from dpmoments.schema import Schema


def plain_facts(rows: list[dict[str, Any]], schema: Schema) -> dict[str, Any]:
    """Counts over rows whose cells are numbers, texts and None, as ``Preflight.private_facts`` names them."""
    columns: dict[str, Counter[str]] = {name: Counter() for name in schema.names}
    levels: dict[str, Counter[Any]] = {name: Counter() for name in schema.names}
    unknown: dict[str, Counter[Any]] = {name: Counter() for name in schema.names}
    rules: dict[tuple[str, str], Counter[str]] = {}
    for column in schema.table_columns:
        if column.missing == "drop":
            rules[column.name, "missing"] = Counter()
        if isinstance(column, dpm.Categorical) and column.other == "drop":
            rules[column.name, "other"] = Counter()
    totals: Counter[str] = Counter()
    derived: Counter[str] = Counter()
    for row in rows:
        broken: list[tuple[str, str]] = []
        stopping = False
        changed = set()
        for column in schema.table_columns:
            name, cell = column.name, row[column.name]
            what = kind_of_cell(cell, column)
            if what == "level":
                assert isinstance(column, dpm.Categorical)
                levels[name][next(level for level in column.levels if str(level) == text_of(cell))] += 1
            elif what is not None:
                columns[name][what] += 1
                if what != "between":
                    changed.add(name)
            if what == "unknown":
                unknown[name][text_of(cell)] += 1
                if column.other == "drop":  # type: ignore[union-attr]
                    broken.append((name, "other"))
            if what in ("empty", "infinite"):
                stopping |= column.missing == "error"
                if column.missing == "drop":
                    broken.append((name, "missing"))
        broken = [rule for rule in rules if rule in broken]  # in the schema's order
        for place, rule in enumerate(broken):
            rules[rule]["rows"] += 1
            rules[rule]["first"] += place == 0
            rules[rule]["alone"] += len(broken) == 1
        for feature in schema.derived_columns:
            derived[feature.name] += bool(changed & set(feature.stated.factors))
        totals["rows"] += 1
        totals["rows_kept"] += not broken
        totals["rows_with_a_cell_at_which_a_release_stops"] += stopping
        totals["rows_kept_without_these"] += not broken and not stopping
        if not broken and not stopping:
            totals["rows_shortened"] += length(row, schema) > 1.0 + 1e-9
    return {
        "totals": dict(totals),
        "columns": columns,
        "levels": levels,
        "unknown": unknown,
        "rules": rules,
        "derived": derived,
    }


def kind_of_cell(cell: Any, column: Any) -> str | None:
    """What is not as it should be with a cell; None of one that is."""
    if isinstance(column, dpm.Categorical):
        if cell is None or (cell == "" and "" not in column.levels):
            return "empty"
        return "level" if text_of(cell) in map(str, column.levels) else "unknown"
    if cell is None or math.isnan(cell):
        return "empty"
    if math.isinf(cell):
        return "infinite"
    if isinstance(column, dpm.Coordinate):
        return None
    lower, upper = column.bounds
    if column.kind == "numeric" and column.rough is not None:
        _, _, center, radius = column.rough
        lower, upper = center - radius, center + radius
    if cell < lower:
        return "below"
    if cell > upper:
        return "above"
    return "between" if isinstance(column, dpm.Boolean) and 0 < cell < 1 else None


def text_of(cell: Any) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def length(row: dict[str, Any], schema: Schema) -> float:
    """Norm of an encoded row whose columns have no derived features."""
    if schema.row_norm is None:
        return 0.0
    squares = 0.0
    for column in schema.table_columns:
        cell = row[column.name]
        what = kind_of_cell(cell, column)
        if isinstance(column, dpm.Categorical):
            squares += what == "level"
        elif isinstance(column, dpm.Coordinate):
            squares += 0.0 if what else float(cell) ** 2
        elif what not in ("empty", "infinite"):
            lower, upper = column.bounds
            squares += ((min(max(cell, lower), upper) - (lower + upper) / 2) / ((upper - lower) / 2)) ** 2
    return math.sqrt(squares) / schema.row_norm


def require_shift(found: dict[str, Any] | None, rows: list[dict[str, Any]], schema: Schema, name: str) -> None:
    """Compare the shift of a mean with that of the cells written out, over rows that no rule drops."""
    column: Any = next(column for column in schema.table_columns if column.name == name)
    filled, present = 0, []
    for row in rows:
        kinds = {other.name: (other, kind_of_cell(row[other.name], other)) for other in schema.table_columns}
        if any(
            (what in ("empty", "infinite") and other.missing == "drop")
            or (what == "unknown" and getattr(other, "other", None) == "drop")
            for other, what in kinds.values()
        ):
            continue
        if kinds[name][1] in ("empty", "infinite"):
            filled += 1
        else:
            present.append(row[name])
    bounded = not isinstance(column, dpm.Coordinate) and getattr(column, "rough", None) is None
    if not (bounded and column.missing in ("center", "fill") and filled and present):
        assert found is None
        return
    assert found is not None
    lower, upper = column.bounds
    cells = [Fraction(min(max(cell, lower), upper)) for cell in present]
    middle = Fraction(column.replacement)
    mean = (sum(cells) + filled * middle) / (len(cells) + filled) - sum(cells) / Fraction(len(cells))
    assert found["cells"] == filled
    assert math.isclose(found["mean"], mean, abs_tol=1e-8 * (upper - lower))


def require_equal(facts: dict[str, Any], rows: list[dict[str, Any]], schema: Schema) -> None:
    """Compare what a preflight found with the plain count."""
    plain = plain_facts(rows, schema)
    for name, number in plain["totals"].items():
        assert facts[name] == number, name
    for name in schema.names:
        found = facts["columns"][name]
        for what in ("empty", "infinite", "below", "above", "between", "unknown"):
            assert found.get(what, 0) == plain["columns"][name][what], (name, what)
        assert found["unreadable"] == 0
        if "shift" in found:
            require_shift(found["shift"], rows, schema, name)
        if "levels" in found:
            assert {level: cells for level, cells in found["levels"].items() if cells} == {
                str(level): cells for level, cells in plain["levels"][name].items()
            }
            assert {value["text"]: value["cells"] for value in found["unknown_values"]} == plain["unknown"][name]
    assert [(rule["column"], rule["rule"]) for rule in facts["rules"]] == list(plain["rules"])
    for rule in facts["rules"]:
        expected = plain["rules"][rule["column"], rule["rule"]]
        assert {what: rule[what] for what in ("rows", "first", "alone")} == {
            what: expected[what] for what in ("rows", "first", "alone")
        }
    assert {name: rows for name, rows in facts["derived"].items() if rows} == {
        name: rows for name, rows in plain["derived"].items() if rows
    }
