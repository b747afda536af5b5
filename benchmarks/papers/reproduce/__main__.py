"""Run, draw and write: see the package."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.papers.reproduce import page, plotter
from benchmarks.papers.reproduce.declaration import Figure
from benchmarks.papers.reproduce.figures import BESIDE, FIGURES
from benchmarks.papers.reproduce.results import Results
from benchmarks.papers.reproduce.runner import FOLDER, Store, budget, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.reproduce", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="few points and trials of every figure, within ten minutes"
    )
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="figures whose names begin so")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each (2)")
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
        run(chosen, store, quick=options.quick, workers=options.workers)
    found = {figure.name: page.read_results(figure, store) for figure in (*FIGURES, *BESIDE)}
    for figure in chosen:
        print("\n".join(told(figure, found, options.output)))
    for written in page.PAGES:
        kept = page.Kept.read(written.path)
        if missing := written.missing(found, kept):
            print(f"docs/{written.path.name} stays as it is: {', '.join(missing)} must be run in full first")
        elif any(page.complete(found[figure.name], found) for figure in written.figures):
            page.write_findings(written, found)
            written.path.write_text("\n".join(page.lines(written, found, kept)).rstrip() + "\n", encoding="utf-8")
            print(f"wrote the figures that were run in full to docs/{written.path.name}")


def told(figure: Figure, found: Mapping[str, Results], output: Path) -> Iterator[str]:
    """Verdicts, numbers and the picture of a figure; the page has the picture of a full run alone."""
    results = found[figure.name]
    yield f"\n{page.heading(figure)}"
    if not results.panels or any(not found[name].panels for name in figure.borrowed):
        lenders = ", ".join(name for name in figure.borrowed if not found[name].panels)
        yield f"  not measured{f': run {lenders} first' if lenders else ''}"
        return
    if not page.complete(results, found):
        yield "  a part of its points and trials: verdicts may change with the full run"
    for claim, outcome in page.judged(figure, results):
        if outcome is None:
            yield f"  not compared   {claim.says}"
        else:
            word = outcome.verdict.answer if claim.ours else outcome.verdict
            yield f"  {word.upper()}   {claim.says}"
            yield f"      {outcome.found}"
    folder = page.IMAGES if page.complete(results, found) else output / "pictures"
    yield from (f"  {path}" for path in draw(figure, results, folder / f"{figure.name}.png", output))


def draw(figure: Figure, results: Results, picture: Path, output: Path) -> Iterator[Path]:
    """Draw a figure, and into ``output`` what is not ours; return the paths."""
    plotter.draw(figure, results, picture)
    yield picture
    if any(panel.published for panel in figure.panels):
        plotter.draw(figure, results, output / "published" / f"{figure.name}.png", published=True)
        yield output / "published" / f"{figure.name}.png"
    if figure.name == "coinpress-8":
        plotter.draw_map(output / "map-of-europe.png")
        yield output / "map-of-europe.png"


if __name__ == "__main__":
    main()
