"""Release files held to the published JSON Schema."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

__all__ = ["faults_of", "schema_faults"]


@cache
def validator() -> Any:
    """The validator of the schema in the package."""
    schema = json.loads(files("dpmoments.releases").joinpath("format.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def faults_of(document: Any) -> list[str]:
    """What the schema finds wrong with a document, the deepest reasons."""
    found = []
    for error in validator().iter_errors(document):
        deepest = max([error, *(error.context or ())], key=lambda one: len(one.absolute_path))
        found.append(f"{'/'.join(map(str, deepest.absolute_path))}: {deepest.message[:200]}")
    return found


def schema_faults(path: Path) -> list[str]:
    """What the schema finds wrong with a file."""
    return faults_of(json.loads(path.read_text(encoding="utf-8")))
