"""What ``make test-oldest`` and ``make test-newest`` install beside the wheel: what it needs or reads from, and what runs tests.

``python tests/support/wheel_requirements.py oldest`` prints it with the versions of ``pyproject.toml``, ``newest`` without.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
LEFT_OUT = {"dask", "distributed", "pyspark"}
"""Engines, which ask for newer pandas or for Java."""
CHECKERS = {"ruff", "mypy", "basedpyright", "types-PyYAML", "pandas-stubs", "scipy-stubs"}
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[[\w,]+\])?(>=(?P<oldest>[\w.]+))?")


def oldest_versions(requirements: Iterable[str]) -> dict[str, str]:
    """The lower bound of each, by name.

    Raises
    ------
    ValueError
        If one has no lower bound, or another one beside it.
    """
    found = {}
    for requirement in requirements:
        match = REQUIREMENT.fullmatch(requirement)
        if match is None or match["oldest"] is None:
            raise ValueError(
                f"{requirement!r} should state the oldest version that works, as in 'numpy>=2.0', and no more"
            )
        found[match["name"]] = match["oldest"]
    return found


def pinned(project: dict[str, Any]) -> list[str]:
    """A requirement for each library that is needed, or read from, and for what runs the tests."""
    tools = [
        one for one in project["dependency-groups"]["test"] if REQUIREMENT.match(one)["name"] not in LEFT_OUT | CHECKERS
    ]
    versions = oldest_versions([*project["project"]["dependencies"], *tools])
    return [f"{name}=={oldest}" for name, oldest in versions.items()]


def unpinned(project: dict[str, Any]) -> list[str]:
    """The same libraries, of which pip takes the newest."""
    return [pin.partition("==")[0] for pin in pinned(project)]


if __name__ == "__main__":
    chosen = {"oldest": pinned, "newest": unpinned}[sys.argv[1]]
    print("\n".join(chosen(tomllib.loads(PROJECT.read_text(encoding="utf-8")))))
