"""Run every benchmark in turn: `python -m benchmarks`, or some of them, `python -m benchmarks kernel_speed accuracy`."""

from __future__ import annotations

import pkgutil
import runpy
import sys
from pathlib import Path


def main() -> None:
    """Run the named benchmark modules; all of them where none is named."""
    found = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]) if module.name != "__main__"]
    wanted = sys.argv[1:] or found
    if unknown := sorted(set(wanted) - set(found)):
        raise SystemExit(f"no benchmark named {', '.join(unknown)}: use {', '.join(found)}")
    sys.argv = sys.argv[:1]
    for name in wanted:
        print(f"\n== {name}", flush=True)
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")


if __name__ == "__main__":
    main()
