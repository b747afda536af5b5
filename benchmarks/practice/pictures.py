"""The pictures of docs/api/pictures.md, drawn by the code that stands above each of them on that page.

python -m benchmarks.practice.pictures
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

PAGE = Path(__file__).parents[2] / "docs" / "api" / "pictures.md"
BLOCK_AND_PICTURE = r"```python\n(.*?)```\n+!\[[^\]]*\]\(([^)]+)\)"


def pictures() -> Iterator[tuple[Path, Figure]]:
    """Where each picture belongs, and the figure that its block draws; blocks continue one another."""
    names: dict[str, object] = {}
    for block, place in re.findall(BLOCK_AND_PICTURE, PAGE.read_text(encoding="utf-8"), re.S):
        plt.close("all")
        exec(compile(block, str(PAGE), "exec"), names)
        yield PAGE.parent / place, plt.gcf()
    plt.close("all")


if __name__ == "__main__":
    for place, figure in pictures():
        figure.savefig(place, dpi=100)
        print(f"wrote {place} ({place.stat().st_size // 1000} kB)")
