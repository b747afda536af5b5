"""Run every benchmark in turn, `python -m benchmarks`, or some of them, `python -m benchmarks speed.releases papers.amin`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
APART = (
    "papers.reproduce",
    "peers.programs",
    "peers.six_tables",
    "peers.synthesizers",
    "practice.survey_weights",
    "__main__",
)
"""What takes hours or what ``make`` has a target of its own for, and what benchmarks start."""


def main() -> None:
    """Run the named modules, and all modules of the packages named; everything where nothing is named."""
    programs = [file for file in sorted(FOLDER.rglob("*.py")) if 'if __name__ == "__main__"' in file.read_text("utf-8")]
    names = [".".join(file.relative_to(FOLDER).with_suffix("").parts) for file in programs]
    found = [name for name in names if not any(f"{name}.".startswith(f"{other}.") for other in APART)]
    wanted = []
    for asked in sys.argv[1:]:
        matching = [name for name in found if name == asked or name.startswith(f"{asked}.")]
        if not matching:
            raise SystemExit(f"no benchmark named {asked}: use {', '.join(found)}")
        wanted += matching
    sys.argv = sys.argv[:1]
    for name in wanted or found:
        print(f"\n== {name}", flush=True)
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")


if __name__ == "__main__":
    main()
