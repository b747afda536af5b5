"""Blocks of a page of the docs, run as its reader would: Python continues, commands of the shell stand between."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from dpmoments.cli.entry import main

__all__ = ["run_in_order"]


def run_in_order(page: Path) -> None:
    """Blocks of Python, which continue one another, and commands between them, which must end with 0."""
    names: dict[str, object] = {"__name__": "page"}
    for language, block in re.findall(
        r"^```(python|console)\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M
    ):
        if language == "python":
            exec(compile(block, str(page), "exec"), names)
            continue
        for command in block.replace("\\\n", "").removeprefix("$ ").split("\n$ "):
            assert main(shlex.split(command)[1:]) == 0, command
