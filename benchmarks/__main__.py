"""Run every benchmark in turn, `python -m benchmarks`, or some of them, `python -m benchmarks speed.releases papers.amin`."""

from __future__ import annotations

import pkgutil
import runpy
import sys
from pathlib import Path

NOT_BENCHMARKS = (
    "__main__",
    "papers.items",
    "papers.reproduce",
    "papers.sheffet.techniques",
    "papers.summed_once",
    "peers.answers",
    "peers.programs",
    "peers.six_tables",  # hours, by its own command
    "peers.synthesizers",
    "practice.survey_weights",  # hours
    "practice.tables",
    "speed.timing",
)
"""What benchmarks import or start, what writes a page without measuring, what ``make`` has a target of its own for."""


def main() -> None:
    """Run the named modules, and all modules of the packages named; everything where nothing is named."""
    modules = pkgutil.walk_packages([str(Path(__file__).parent)], "benchmarks.")
    names = [module.name.removeprefix("benchmarks.") for module in modules if not module.ispkg]
    found = [name for name in names if not any(f"{name}.".startswith(f"{other}.") for other in NOT_BENCHMARKS)]
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
