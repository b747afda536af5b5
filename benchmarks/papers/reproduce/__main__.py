"""Run, draw and write: see the package."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.papers.reproduce import page, plotter
from benchmarks.papers.reproduce.declaration import Figure
from benchmarks.papers.reproduce.figures import BESIDE, FIGURES
from benchmarks.papers.reproduce.results import Results
from benchmarks.papers.reproduce.runner import FOLDER, Store, progress, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.reproduce", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="few points and trials of every figure, within ten minutes"
    )
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="figures whose names begin so")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each (2)")
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder of the results")
    parser.add_argument("--budget", action="store_true", help="say what is there and what is left, and run nothing")
    parser.add_argument("--page", action="store_true", help="draw, and write the pages, from what is there")
    options = parser.parse_args()
    store = Store(options.output)
    figures = (*FIGURES, *BESIDE)
    chosen = [figure for figure in figures if any(figure.name.startswith(start) for start in options.only)]
    if not chosen:
        known = ", ".join(figure.name for figure in figures)
        parser.error(f"no figure is called {', '.join(options.only)}: use {known}")
    if options.budget:
        print("\n".join(progress(figure, store) for figure in chosen))
        return
    if not options.page:
        run(chosen, store, quick=options.quick, workers=options.workers)
    found = {figure.name: page.read_results(figure, store) for figure in figures}
    for figure in chosen:
        print("\n".join(told(figure, found, options.output)))
    for written in page.PAGES:
        if any(page.complete(found[figure.name], found) for figure in written.figures):
            page.write(written, found)
            print(f"wrote the figures that were run in full to docs/evidence/{written.path.name}")


def told(figure: Figure, found: Mapping[str, Results], output: Path) -> Iterator[str]:
    """Verdicts, numbers and the picture of a figure; the page has the picture of a full run alone."""
    results = found[figure.name]
    yield f"\n{page.heading(figure)}"
    if not results.panels or any(not found[name].panels for name in figure.borrowed):
        lenders = ", ".join(name for name in figure.borrowed if not found[name].panels)
        yield f"  not measured{f': run {lenders} first' if lenders else ''}"
        return
    full = page.complete(results, found)
    if not full:
        yield "  a part of its points and trials: verdicts may change with the full run"
    for claim, verdict, numbers in page.judged(results):
        yield f"  {verdict.upper()}   {claim.says}"
        yield f"      {numbers}"
    picture = (page.IMAGES if full else output / "pictures") / f"{figure.name}.png"
    plotter.draw(figure, results, picture)
    yield f"  {picture}"
    if figure.name == "coinpress-8":
        plotter.draw_map(output / "map-of-europe.png")
        yield f"  {output / 'map-of-europe.png'}"


if __name__ == "__main__":
    main()
