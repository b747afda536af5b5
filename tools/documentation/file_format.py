"""Write the JSON Schema of release files, and the table of their fields in ``docs/api/file-format.md``.

    python -m tools.documentation.file_format

A test fails if one of them is out of date, or if a file of any kind does not satisfy the schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from dpmoments.base.databases import CLAUSES
from dpmoments.base.message import PART
from dpmoments.base.wordings import QUERIES, REASONS, RULES, WARNINGS, WORDINGS
from dpmoments.moments.models import _NOISE_MODELS, MeanLaw
from dpmoments.moments.repair import Repair
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.laws import LAWS
from dpmoments.privacy.receipt import ARITHMETICS
from dpmoments.privacy.sensitivity import SENSITIVITIES
from dpmoments.privacy.unit import Neighbors
from dpmoments.schema.derived import _KINDS

ROOT = Path(__file__).parent.parent.parent
SCHEMA = ROOT / "src" / "dpmoments" / "releases" / "format.schema.json"
PAGE = ROOT / "docs" / "api" / "file-format.md"
BEGIN, END = "<!-- fields -->", "<!-- end of fields -->"

Node = dict[str, Any]


def typed(kind: str | list[str], words: str = "", **more: Any) -> Node:
    """A value of a JSON type."""
    return {"type": kind, **({"description": words} if words else {}), **more}


def ref(name: str, words: str = "") -> Node:
    """A value that is described once."""
    return {"$ref": f"#/$defs/{name}", **({"description": words} if words else {})}


def or_null(node: Node, words: str) -> Node:
    """A value that may be null."""
    return {"anyOf": [node, {"type": "null"}], "description": words}


def one_of(values: Any, words: str = "") -> Node:
    """One of several texts."""
    return {"enum": sorted(map(str, values)), **({"description": words} if words else {})}


def record(properties: Mapping[str, Node], words: str = "", optional: tuple[str, ...] = ()) -> Node:
    """A mapping of these entries, and no others."""
    return {
        "type": "object",
        **({"description": words} if words else {}),
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


NUMBER, INTEGER, TEXT, FLAG = typed("number"), typed("integer"), typed("string"), typed("boolean")
NUMBERS = typed("array", items=NUMBER)
ANY_NUMBER = {"anyOf": [NUMBER, record({"$float": {"enum": ["nan", "inf", "-inf"]}})]}
FACTS: Mapping[str, Node] = {
    "number": ANY_NUMBER,
    "numbers": typed("array", items=ANY_NUMBER),
    "integer": INTEGER,
    "flag": FLAG,
    "name": TEXT,
    "names": typed("array", items=TEXT),
    "level": typed(["string", "integer", "boolean"]),
    "word": typed("string", pattern="^[A-Za-z0-9_.-]{1,80}$"),
    "words": typed("array", items=typed("string", pattern="^[A-Za-z0-9_.-]{1,80}$")),
}


def message(code: str) -> Node:
    """A message of one code with its facts."""
    kinds = {**WORDINGS[code].facts, f"{PART}?": "names"}
    kinds = {name: kind for name, kind in kinds.items() if kind != "message"}  # no file holds a message within one
    facts = {name.removesuffix("?"): FACTS[kind] for name, kind in kinds.items()}
    optional = tuple(name.removesuffix("?") for name in kinds if name.endswith("?"))
    needed = len(optional) < len(facts)
    return record(
        {"code": {"const": code}, "facts": record(facts, optional=optional)}, optional=() if needed else ("facts",)
    )


def messages(codes: frozenset[str]) -> Node:
    """A message of one of several codes."""
    return {"oneOf": [message(code) for code in WORDINGS if code in codes]}


def column(kind: str, properties: Mapping[str, Node], optional: tuple[str, ...]) -> Node:
    """A column of one kind."""
    return record({"kind": {"const": kind}, **properties}, optional=optional)


def definitions() -> Node:
    """Everything that several entries share."""
    missing = typed("string", "What a missing value does: error, drop its row, fill, center, or zero.")
    marks = typed("array", "Values that mean a missing one.", items=typed(["string", "number"]))
    described = {
        "description": typed("string", "What the column holds, in the curator's words."),
        "missing_values": marks,
        "source": typed("string", "Name of the column in the table, if it is another one."),
        "weight": typed("number", "Priority of the column; 1 without."),
    }
    pair = typed("array", items=NUMBER, minItems=2, maxItems=2)
    numeric = {
        "name": TEXT,
        "lower": NUMBER,
        "upper": NUMBER,
        "scale": pair,
        "center": NUMBER,
        "radius": NUMBER,
        "typical": pair,
        "missing": missing,
        "fill": NUMBER,
        "decimal": TEXT,
        "thousands": TEXT,
        **described,
    }
    dates = {
        "name": TEXT,
        "lower": TEXT,
        "upper": TEXT,
        "unit": TEXT,
        "origin": TEXT,
        "format": TEXT,
        "missing": missing,
        "fill": TEXT,
    }
    levels = typed("array", items=typed(["string", "integer", "boolean"]))
    codes = typed("array", items=typed(["string", "number"]))
    flags = {
        "name": TEXT,
        "missing": missing,
        "fill": typed("boolean"),
        "true_values": codes,
        "false_values": codes,
        **described,
    }
    categories = {
        "name": TEXT,
        "levels": levels,
        "missing": missing,
        "other": typed(["string", "integer"], "What another value does: drop its row, zero, or count as this level."),
        "aliases": typed(
            "object",
            "Other spellings of levels.",
            additionalProperties=typed("array", items=typed(["string", "integer"])),
        ),
        "strip": typed("boolean", "True if spaces around a value are ignored."),
        "casefold": typed("boolean", "True if case is ignored."),
        **described,
    }
    weights = {
        "name": TEXT,
        "upper": typed("number", "Cap: larger weights count as it."),
        "population": typed("number", "Public size of the population."),
        "sample_size": typed("integer", "Public, usual number of rows."),
        "design_effect": typed(["number", "object"], "Ratio of sampling variances to simple ones, one or by column."),
        "computed_from": one_of(["design", "table"]),
        "missing": one_of(["error", "drop"], "What a missing, negative or infinite weight does."),
        **{option: described[option] for option in ("missing_values", "source", "description")},
    }
    written = {
        **dict.fromkeys(("delimiter", "encoding", "decimal", "thousands"), TEXT),
        "quote": typed(["string", "null"]),
        **{option: typed("array", items=TEXT) for option in ("nulls", "true", "false")},
        **dict.fromkeys(("skip_lines", "skip_below"), INTEGER),
        "sheet": typed(["string", "integer"]),
    }
    assert {"numeric", "categorical", "boolean", "date", "coordinate", "power", "product", "sampling_weight"} == set(
        _KINDS
    )
    neighbors = one_of(Neighbors, "add_remove: the number of rows is private; replace_one: the table's size is public.")
    max_rows = or_null(INTEGER, "Null if the total weight of a unit is bounded.")
    unit = record({"column": TEXT, "max_rows": max_rows, "missing": one_of(["error", "drop"])})
    return {
        "plain": {
            "description": "Numbers, texts, lists and mappings; {$float}, {$tuple} and {$array} mark what JSON cannot hold.",
            "anyOf": [
                typed(["number", "string", "boolean", "null"]),
                typed("array", items=ref("plain")),
                typed("object", additionalProperties=ref("plain")),
            ],
        },
        "budget": {
            "description": "A privacy budget or loss.",
            "oneOf": [
                record({"kind": {"const": "pure"}, "epsilon": NUMBER, "delta": {"const": 0.0}}),
                record({"kind": {"const": "approximate"}, "epsilon": NUMBER, "delta": NUMBER}),
                record({"kind": {"const": "zcdp"}, "rho": NUMBER}),
            ],
        },
        "unit": unit,
        "origin": record(
            {
                "id": typed("string", "128 random bits that no other release has.", pattern="^[0-9a-f]{32}$"),
                "dataset": typed(["string", "null"], "The curator's name of the table."),
                "group": or_null(
                    record(
                        {"run": TEXT, "by": TEXT, "level": typed(["string", "integer", "boolean"]), "n_levels": INTEGER}
                    ),
                    "The group of rows, if it is one of several.",
                ),
                "ledger": or_null(
                    record({"ledger": TEXT, "number": INTEGER, "hash": TEXT}),
                    "The entry of the ledger that was charged.",
                ),
                "query": typed(
                    ["array", "null"],
                    "Of a database query: its clauses by which one row can change others.",
                    items={"enum": [*CLAUSES]},
                ),
            }
        ),
        "columns": typed(
            "array",
            items={
                "oneOf": [
                    column("numeric", numeric, tuple(numeric.keys() - {"name"})),
                    column("categorical", categories, tuple(categories.keys() - {"name", "levels"})),
                    column("boolean", flags, tuple(flags.keys() - {"name"})),
                    column("date", {**dates, **described}, ("unit", "origin", "format", "missing", "fill", *described)),
                    column(
                        "coordinate",
                        {"name": TEXT, "missing": missing, "description": described["description"]},
                        ("missing", "description"),
                    ),
                    column("sampling_weight", weights, tuple(weights.keys() - {"name"})),
                    column("power", {"column": TEXT, "exponent": INTEGER}, ()),
                    column("product", {"factors": typed("array", items=TEXT)}, ()),
                ]
            },
        ),
        "schema": record(
            {
                "format": {"const": "dpmoments-schema"},
                "version": {"const": 1},
                "row_norm": typed(["number", "null"], "Bound on the norm of an encoded row; null: no public bound."),
                "missing_values": typed(
                    "array",
                    "Missing values of columns that state none of their own.",
                    items=typed(["string", "number"]),
                ),
                "text_format": record(written, "How the table's text files are written.", tuple(written)),
                "mean_weight": typed("number", "Weight of means relative to covariances; 1 without it."),
                "item_lists": typed(
                    "object", "Named lists of columns.", additionalProperties=typed("array", items=TEXT)
                ),
                "goals": typed("array", "How precise answers should be, such as 'mean(income) ± 500'.", items=TEXT),
                "columns": ref("columns", "The columns, in order."),
            },
            optional=("missing_values", "text_format", "mean_weight", "item_lists", "goals"),
        ),
        "features": record(
            {
                "names": typed("array", "Names of the d features: columns, and one for every level.", items=TEXT),
                "offset": typed("array", "value = offset + scale · encoded value.", items=NUMBER),
                "scale": typed("array", "Original units of one encoded unit.", items=NUMBER),
            }
        ),
        "rule": messages(RULES),
        "warning": messages(WARNINGS),
        "reason": messages(REASONS),
        "query": messages(QUERIES),
        "privacy": record(
            {
                "budget": ref("budget", "What the release cost the privacy unit."),
                "neighbors": neighbors,
                "arithmetic": one_of(ARITHMETICS, "What the proof assumes about the arithmetic."),
                "private": typed("boolean", "False if an insecure seed was used: nothing is protected."),
                "rules": typed("array", "What was done to values and rows.", items=ref("rule")),
                "version": typed("string", "Version of dpmoments."),
                "privacy_unit": ref("unit", "Absent if the privacy unit is one row."),
            },
            optional=("privacy_unit",),
        ),
        "draw": record(
            {
                "what": ref("query", "The query that got noise."),
                "law": typed(
                    "object",
                    "The noise distribution: its name and parameters.",
                    properties={"name": one_of(LAWS)},
                    required=["name"],
                    additionalProperties=ref("plain"),
                ),
                "sensitivity": record(
                    {
                        "name": one_of(function.__name__ for function in SENSITIVITIES),
                        "arguments": typed("object", additionalProperties=ref("plain")),
                        "neighbors": neighbors,
                        "units": NUMBER,
                        "rounding": NUMBER,
                        "value": NUMBER,
                    },
                    "The largest change of the query between neighboring tables; value is in units of 1/units.",
                ),
                "loss": typed("number", "Privacy loss of the draw, in the receipt's loss unit."),
                "delta": typed("number", "Its share of δ."),
                "size": typed("integer", "Number of coordinates with noise of their own.", minimum=1),
                "claim": or_null(
                    ref("budget"), "The loss that the plan stated, if the distribution has an exact curve."
                ),
                "group": typed(["string", "null"], "The group of rows, if the draw is for one of several."),
            },
        ),
        "receipt": record(
            {
                "protected_unit": {"anyOf": [{"const": "row"}, ref("unit")], "description": "The privacy unit."},
                "neighbors": neighbors,
                "cost": ref("budget", "The budget of these draws: the stated one, less that of the draws before."),
                "loss_unit": one_of(LossUnit, "The unit in which losses add up."),
                "allowance": typed("number", "The most that all draws may lose together on one row, in that unit."),
                "draws": typed("array", "Every draw of noise.", items=ref("draw")),
                "before": ref("receipt", "The draws that found levels, if the release found some."),
            },
            optional=("before",),
        ),
        "noise": typed(
            "object",
            "The noise model: its name and parameters.",
            properties={"name": one_of(_NOISE_MODELS), "n_features": INTEGER},
            required=["name", "n_features"],
            additionalProperties=ref("plain"),
        ),
        "mean_noise": record(
            {
                "law": one_of(get_args(MeanLaw)),
                "deviations": typed("array", "Noise SD of each mean, encoded units.", items=NUMBER),
                "count_deviations": typed("array", "Noise SD from the noisy row count.", items=NUMBER),
                "clipped": typed(["number", "null"], "Fraction of clipped rows, if it is known."),
                "bias_suspected": FLAG,
                "dimension": typed("integer", "Number of coordinates of the draw, of K-norm noise."),
                "block_sizes": typed("array", "Size of the block of each mean, of K-norm noise.", items=INTEGER),
            },
            optional=("dimension", "block_sizes"),
        ),
        "release": record(
            {
                **statements(),
                "noisy_count": typed(
                    ["number", "null"], "Row count: noisy, or exact if it is public; null: not released."
                ),
                "noisy_sum": or_null(
                    NUMBERS, "Σ(x − center) of the encoded rows, d numbers; null if no mean was released."
                ),
                "noisy_gram_upper_triangle": typed(
                    "array",
                    "Σ(x − center)(x − center)ᵀ: row by row from the diagonal on, d(d + 1)/2 numbers, before any repair.",
                    items=NUMBER,
                ),
                "center": or_null(NUMBERS, "The private center, encoded; null: 0."),
                "noise": or_null(ref("noise"), "Distribution of the noise; null if it is unknown."),
                "details": typed("object", "Numbers that the plan settled on.", additionalProperties=ref("plain")),
                "repair": one_of(Repair, "How the library reads the noisy moments; it changes no number of the file."),
                "chosen_because": or_null(ref("reason"), "Why auto chose the mechanism; null if it was named."),
            }
        ),
        "mean_release": record(
            {
                **statements(),
                "noisy_mean": typed("array", "Mean of the encoded rows, d numbers.", items=NUMBER),
                "noisy_count": typed("number", "Row count, noisy or exact."),
                "noise": or_null(ref("mean_noise"), "Distribution of the noise on the mean; null if it is unknown."),
            }
        ),
        "counts_release": record(
            {
                **statements(),
                "tables": typed(
                    "array", "One contingency table for each draw of noise.", items=ref("counts"), minItems=1
                ),
                "public_rows": typed(
                    ["integer", "null"], "Sum of the counts of every table, if it is public; null: it is private."
                ),
            }
        ),
        "counts": record(
            {
                "by": typed("array", "Its columns.", items=TEXT, minItems=1),
                "levels": typed("array", "The levels of each column, in order.", items=levels),
                "noisy_counts": typed(
                    "array", "Counts before any repair, row by row: the last column varies fastest.", items=NUMBER
                ),
                "noise_deviation": typed("number", "Noise SD of each count, in rows."),
            }
        ),
        "group_releases": record(
            {
                "by": {"type": "object", "description": "The column whose levels divide the rows."},
                "releases": typed("array", "One release for each level, in order.", items=ref("release")),
            }
        ),
        "pooled_release": record(
            {
                "repair": one_of(Repair, "How the sums are read."),
                "releases": typed(
                    "array", "The releases of disjoint tables, whose moments add up.", items=ref("release")
                ),
            }
        ),
    }


def statements() -> dict[str, Node]:
    """Entries of releases of moments, of means and of counts."""
    return {
        "origin": ref("origin", "Which release this is."),
        "schema": ref("schema", "The public description of the table."),
        "features": ref("features", "The features, and how their values were encoded."),
        "privacy": ref("privacy", "What is guaranteed."),
        "receipt": ref("receipt", "Every draw of noise, and what it cost."),
        "mechanism": typed("string", "The mechanism that ran."),
        "mechanism_options": typed("object", "Its options.", additionalProperties=ref("plain")),
        "diagnostics": typed("object", "What else the mechanism learned privately.", additionalProperties=ref("plain")),
        "warnings": typed("array", "Reasons not to trust the release.", items=ref("warning")),
    }


FORMATS = {
    "dpmoments-release": "release",
    "dpmoments-mean-release": "mean_release",
    "dpmoments-counts-release": "counts_release",
    "dpmoments-group-releases": "group_releases",
    "dpmoments-pooled-release": "pooled_release",
}


def schema() -> Node:
    """The whole schema."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Release file of dpmoments",
        "oneOf": [
            record(
                {
                    "format": {"const": name},
                    "version": {"const": 1},
                    "sha256": typed(
                        "string",
                        "SHA-256 of the content as JSON with sorted keys, ASCII only, without spaces.",
                        pattern="^[0-9a-f]{64}$",
                    ),
                    "content": ref(content),
                }
            )
            for name, content in FORMATS.items()
        ],
        "$defs": definitions(),
    }


def rows() -> Iterator[str]:
    """The table of fields, a line each."""
    yield "| field | in | type | meaning |"
    yield "| --- | --- | --- | --- |"
    defined = definitions()
    records = ("release", "mean_release", "counts_release", "group_releases", "pooled_release")
    parts = ("origin", "schema", "features", "privacy", "receipt", "draw", "mean_noise", "counts")
    for name in (*records, *parts):
        for field, node in defined[name]["properties"].items():
            yield f"| `{field}` | {name.replace('_', ' ')} | {_type(node)} | {_words(node, defined)} |"


def _type(node: Node) -> str:
    if "$ref" in node:
        return node["$ref"].removeprefix("#/$defs/").replace("_", " ")
    if "enum" in node:
        return "one of " + ", ".join(f"`{value}`" for value in node["enum"][:9])
    if "const" in node:
        return f"`{node['const']}`"
    if "anyOf" in node:
        return " or ".join(_type(option) for option in node["anyOf"])
    if node.get("type") == "array":
        return f"list of {_type(node['items'])}" if "items" in node else "list"
    kind = node.get("type", "object")
    return " or ".join(kind) if isinstance(kind, list) else kind


def _words(node: Node, defined: Node) -> str:
    if "description" in node:
        return str(node["description"])
    return str(defined[node["$ref"].removeprefix("#/$defs/")].get("description", "")) if "$ref" in node else ""


def schema_text() -> str:
    """The schema file."""
    return json.dumps(schema(), ensure_ascii=False, indent=1) + "\n"


def page_text() -> str:
    """The page with the table of today."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n\n{chr(10).join(rows())}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    PAGE.write_text(page_text(), encoding="utf-8")
