"""Every screenshot of the README and the docs: pages and cards as Chromium shows them, without a network.

python -m tools.documentation.screenshots [report|readme|notebook|desk …]

Needs Chromium (``apt-get install chromium``), playwright and Pillow, which ``make test`` installs; of a notebook, no Jupyter.
"""

from __future__ import annotations

import contextlib
import html
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import dpmoments as dpm
from dpmoments.cli import main as command_line

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
IMAGES = DOCS / "images"
REPORT_PAGE, FORECAST_PAGE = DOCS / "read-a-report.md", DOCS / "forecast.md"
NOTEBOOK_PAGE, CURATOR_PAGE = DOCS / "api" / "pictures.md", DOCS / "start-curator.md"
MOST_BYTES = 250_000
COLORS = 256


def chromium() -> str:
    """Where the browser is.

    Raises
    ------
    SystemExit
        If there is none.
    """
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise SystemExit("no Chromium found, which takes the screenshots: apt-get install chromium")
    return found


def write_pages(page: Path = REPORT_PAGE) -> dict[str, Any]:
    """Run the blocks of a page, which continue one another, in the current folder; return its names.

    Raises
    ------
    RuntimeError
        If a command fails.
    """
    names: dict[str, Any] = {}
    for language, block in re.findall(
        r"^```(python|console)\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M
    ):
        if language == "python":
            exec(compile(block, str(page), "exec"), names)
        elif command_line(shlex.split(block.replace("\\\n", "").removeprefix("$ "))[1:]) != 0:
            raise RuntimeError(block)
    return names


def opened(browser: Any, path: Path, width: int, height: int, *, scale: float = 1.0, dark: bool = False) -> Any:
    """A page from the disk."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        device_scale_factor=scale,
        color_scheme="dark" if dark else "light",
        offline=True,
    )
    shown = context.new_page()
    shown.goto(path.as_uri())
    return shown


def keep(picture: Any, name: str) -> None:
    """Write a picture in few colors.

    Raises
    ------
    ValueError
        If it is larger than a page should have to load.
    """
    from PIL import Image

    place = IMAGES / name
    picture.convert("RGB").quantize(COLORS, method=Image.Quantize.MAXCOVERAGE).save(place, optimize=True)
    size = place.stat().st_size
    print(f"wrote {place} ({size // 1000} kB)")
    if size > MOST_BYTES:
        raise ValueError(f"{place.name} has {size:,} bytes, more than {MOST_BYTES:,}: show less of it")


def taken(shown: Any, **options: Any) -> Any:
    """What a page, or an element of one, shows."""
    from PIL import Image

    with tempfile.NamedTemporaryFile(suffix=".png") as file:
        shown.screenshot(path=file.name, **options)
        return Image.open(file.name).copy()


def report(browser: Any) -> None:
    """docs/read-a-report.md and docs/forecast.md: a report, and the planner's page."""
    write_pages()
    dpm.report(write_pages(FORECAST_PAGE)["table"], "plan.html")
    for name, picture in (("report.html", "report.png"), ("plan.html", "planner.png")):
        shown = opened(browser, Path(os.getcwd(), name), 1000, 1290)
        shown.evaluate("document.querySelector('h1').scrollIntoView()")
        keep(taken(shown), picture)


def readme(browser: Any) -> None:
    """README.md: the first screen of the report that its example writes."""
    write_pages(ROOT / "README.md")
    shown = opened(browser, Path(os.getcwd(), "people.html"), 900, 1000, scale=2.0)
    shown.evaluate("document.querySelector('nav').remove()")
    end = shown.evaluate("document.querySelectorAll('section')[1].getBoundingClientRect().top")
    keep(taken(shown, clip={"x": 0, "y": 0, "width": 900, "height": min(end, 700)}), "readme-report.png")


BROWSER_PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; padding: 16px 20px; width: 820px; font: 14px/1.6 system-ui, sans-serif; color: {ink}; background: {paper} }}
pre.code {{ background: {soft}; border: 1px solid {line}; padding: 5px 8px; margin: 0 0 8px; font: 13px/1.3 monospace }}
table {{ border-collapse: collapse; border: 0; font-size: 12px }}
td, th {{ padding: .5em; line-height: 1; vertical-align: middle; border: 0 }}
tr:nth-child(odd) td {{ background: {soft} }}
code {{ background: {soft}; padding: 1px 5px; font: 13px monospace }}
</style><pre class="code">{code}</pre>{card}"""
"""A cell of a notebook and its answer, with the rules that JupyterLab has for tables and code in answers."""
LIGHT = {"ink": "#212121", "paper": "#fff", "soft": "#f5f5f5", "line": "#e0e0e0"}
DARK = {"ink": "#fff", "paper": "#111", "soft": "#212121", "line": "#616161"}


def notebook(browser: Any) -> None:
    """docs/api/pictures.md: the card of a release, as a notebook shows it."""
    from PIL import Image

    block = re.findall(r"## In notebooks.*?```python\n(.*?)```", NOTEBOOK_PAGE.read_text(encoding="utf-8"), re.S)[0]
    *lines, last = block.rstrip().splitlines()
    names: dict[str, Any] = {}
    exec(compile("\n".join(lines), str(NOTEBOOK_PAGE), "exec"), names)
    card = eval(last, names)._repr_html_()
    cards = []
    for colors in (LIGHT, DARK):
        page = Path("card.html")
        page.write_text(BROWSER_PAGE.format(code=html.escape(block.rstrip()), card=card, **colors), encoding="utf-8")
        cards.append(taken(opened(browser, page.resolve(), 860, 300), full_page=True))
    whole = Image.new("RGB", (cards[0].width, sum(one.height for one in cards)))
    for place, one in enumerate(cards):
        whole.paste(one, (0, place * cards[0].height))
    keep(whole, "notebook-card.png")


def desk(browser: Any) -> None:
    """docs/start-curator.md: the page of the columns, with the mistake that the page makes."""
    for block in re.findall(r"```python\n(.*?)```", CURATOR_PAGE.read_text(encoding="utf-8"), re.S)[:2]:
        exec(compile(block, str(CURATOR_PAGE), "exec"), {})
    command = [sys.executable, "-m", "dpmoments", "desk", "people.csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = next(line.strip() for line in process.stdout if "http://" in line)
        try:
            shown = browser.new_page(viewport={"width": 880, "height": 1130})
            shown.goto(address)
            shown.goto(urljoin(address, "/columns"))
            shown.click("button[value=check]")
            shown.wait_for_selector("fieldset :text('every cell fits')")
            shown.evaluate("scrollTo(0, 0)")
            keep(taken(shown), "desk.png")
        finally:
            process.send_signal(signal.SIGINT)


SCREENSHOTS: dict[str, Callable[[Any], None]] = {
    "report": report,
    "readme": readme,
    "notebook": notebook,
    "desk": desk,
}


def main() -> None:
    """Take those that are named, or all, each in a folder of its own."""
    unknown = set(sys.argv[1:]) - set(SCREENSHOTS)
    if unknown:
        raise SystemExit(f"no screenshots named {', '.join(sorted(unknown))}: use {', '.join(SCREENSHOTS)}")
    from playwright.sync_api import sync_playwright

    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for name in sys.argv[1:] or SCREENSHOTS:
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                SCREENSHOTS[name](browser)
        browser.close()


if __name__ == "__main__":
    main()
