"""The pictures of docs/read-a-report.md: the pages that its code writes, as Chromium shows them.

python -m benchmarks.practice.pages
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import tempfile
from pathlib import Path

from dpmoments.cli import main as command_line

PAGE = Path(__file__).parents[2] / "docs" / "read-a-report.md"
WIDTH, HEIGHT = 1000, 1290
SHOWN = {"report.html": ("report.png", "#released"), "plan.html": ("planner.png", "h1")}
"""Of each page its picture, and what stands at the top of that."""


def write_pages(page: Path = PAGE) -> None:
    """Run the blocks of the page, which continue one another, in the current folder.

    Raises
    ------
    RuntimeError
        If a command fails.
    """
    names: dict[str, object] = {}
    for language, block in re.findall(r"```(python|console)\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
        if language == "python":
            exec(compile(block, str(page), "exec"), names)
        elif command_line(shlex.split(block.replace("\\\n", "").removeprefix("$ "))[1:]) != 0:
            raise RuntimeError(block)


def main() -> None:
    """Write the pages into a folder of their own, and their pictures beside the others of the docs."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), sync_playwright() as playwright:
        write_pages()
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, offline=True)
        for name, (picture, top) in SHOWN.items():
            shown = context.new_page()
            shown.goto(Path(os.getcwd(), name).as_uri())
            shown.evaluate("top => document.querySelector(top).scrollIntoView()", top)
            place = PAGE.parent / "images" / picture
            shown.screenshot(path=place)
            with Image.open(place) as taken:
                few_colors = taken.convert("RGB").quantize(96)
            few_colors.save(place, optimize=True)
            print(f"wrote {place} ({place.stat().st_size // 1000} kB)")
        browser.close()


if __name__ == "__main__":
    main()
