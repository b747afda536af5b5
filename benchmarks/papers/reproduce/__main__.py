"""Run, draw and write: see the package."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.papers.reproduce import page, plotter
from benchmarks.papers.reproduce.declaration import Figure
from benchmarks.papers.reproduce.figures import BESIDE, FIGURES
from benchmarks.papers.reproduce.results import Results
from benchmarks.papers.reproduce.runner import budget, run
from benchmarks.papers.reproduce.store import FOLDER, Store


def main() -> None:
    """What the arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.reproduce", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="few points and trials of every figure, within ten minutes"
    )
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="figures whose names begin so")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each (2)")
    parser.add_argument(
        "--minutes", type=float, default=None, help="begin nothing new after so many; a later run goes on"
    )
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder of the results")
    parser.add_argument(
        "--budget", action="store_true", help="say what is there and how long all takes, and run nothing"
    )
    parser.add_argument("--page", action="store_true", help="draw, and write the pages, from what is there")
    options = parser.parse_args()
    store = Store(options.output)
    chosen = [figure for figure in (*FIGURES, *BESIDE) if any(figure.name.startswith(start) for start in options.only)]
    if not chosen:
        parser.error(
            f"no figure is called {', '.join(options.only)}: use {', '.join(figure.name for figure in FIGURES)}"
        )
    if options.budget:
        print("\n".join(budget(chosen, store)))
        return
    if not options.page:
        limit = None if options.minutes is None else 60.0 * options.minutes
        run(chosen, store, quick=options.quick, workers=options.workers, stop_after=limit)
    found = {figure.name: page.read_results(figure, store) for figure in (*FIGURES, *BESIDE)}
    for written in page.PAGES:
        missing = written.missing(found)
        if missing:
            print(f"docs/{written.path.name} stays as it is: nothing was measured of {', '.join(missing)}")
        else:
            written.path.write_text("\n".join(page.lines(written, found)).rstrip() + "\n", encoding="utf-8")
            print(f"wrote docs/{written.path.name}")
        # Pictures of a page change with the page alone.
        draw(
            [figure for figure in chosen if figure in written.figures and found[figure.name].panels],
            found,
            options.output / "pictures" if missing else page.IMAGES,
            options.output,
        )


def draw(figures: Sequence[Figure], found: Mapping[str, Results], pictures: Path, output: Path) -> None:
    """Pictures of these figures, and into ``output`` those with what is not ours."""
    for figure in figures:
        results = found[figure.name]
        plotter.draw(figure, results, pictures / f"{figure.name}.png")
        if any(panel.published for panel in figure.panels):
            plotter.draw(figure, results, output / "published" / f"{figure.name}.png", published=True)
        if figure.name == "coinpress-8":
            plotter.draw_map(output / "map-of-europe.png")
        print(f"drew {figure.name}")


if __name__ == "__main__":
    main()
