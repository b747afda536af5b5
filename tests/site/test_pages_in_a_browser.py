"""The pages in a real browser: they ask for nothing, run nothing they should not, fit a narrow screen, and pass axe-core.

Skipped, visibly, where there is no Chromium: ``apt-get install chromium``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
)
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

pytestmark = [
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium found: apt-get install chromium to test pages in a browser"
    ),
    pytest.mark.long(sets=None),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    driver = pytest.importorskip(
        "playwright.sync_api", reason="playwright drives the browser: pip install axe-playwright-python"
    )
    with driver.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield found
        found.close()


class Opened:
    """A page that was opened without a network, and what happened."""

    def __init__(self, browser: Any, path: Path, width: int) -> None:
        context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, bypass_csp=False)
        self.page = context.new_page()
        self.happened: list[str] = []
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("console", lambda message: self.happened.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.happened.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.happened.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.url = path.as_uri()
        self.page.goto(self.url)

    def _asked(self, url: str) -> None:
        if url != self.url and not url.startswith("data:image/png;"):
            self.happened.append(f"asked for {url}")

    def inaccessible(self) -> list[str]:
        """What axe-core finds fault with."""
        import axe_playwright_python

        axe = Path(axe_playwright_python.__file__).parent / "axe.min.js"
        self.page.evaluate(axe.read_text(encoding="utf-8"))
        found = self.page.evaluate(f"axe.run(document, {{runOnly: {RULES!r}}})")
        assert found["passes"]
        return [f"{fault['id']}: {fault['nodes'][0]['html'][:200]}" for fault in found["violations"]]

    @property
    def overflow(self) -> int:
        """How many pixels the page is wider than the screen."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "report.html"
    names = ("<script>alert(1)</script>", '" onload="alert(2)', "שלום עולם", "x" * 200)
    rng = np.random.default_rng(0)
    by = dpm.Categorical("</svg><img src=x onerror=alert(3)>", ["<b>", "z"])
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 1) for name in names), by)
    table = {name: rng.random(3000) for name in names} | {by.name: rng.choice(["<b>", "z"], 3000)}
    release = dpm.release(pa.table(table), schema, epsilon=1.0, insecure_seed=1)
    dpm.report(release, path, regressions=[f"`{names[2]}` ~ `{names[3]}`"], groups=[(by.name, names[0])])
    return path


@pytest.mark.slow
@pytest.mark.parametrize("width", [1400, 400])
def test_a_report_is_for_every_screen_and_every_reader(browser: Any, report: Path, width: int) -> None:
    opened = Opened(browser, report, width)
    assert opened.overflow <= 0
    if width == 1400:
        folded = opened.page.locator("details")
        assert folded.count() == 3
        assert not folded.locator("table").first.is_visible()  # the annex is folded away
        assert opened.page.pdf()[:5] == b"%PDF-"
        assert opened.inaccessible() == []
    assert opened.happened == []


@pytest.mark.slow
def test_faults_of_a_page_are_found(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    image, script = '<img src="https://example.org/x.png">', "<script>alert(1)</script>"
    path.write_text(f'<html><body>{image}{script}<p style="width: 2000px">wide</p></body></html>')
    opened = Opened(browser, path, 400)
    assert any("asked for https://example.org" in line for line in opened.happened)
    assert "dialog: 1" in opened.happened
    assert opened.overflow > 0
    assert any(fault.startswith("image-alt") for fault in opened.inaccessible())


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 400])
def test_a_planner_page_is_for_every_screen_and_every_reader(browser: Any, tmp_path: Path, width: int) -> None:
    columns = [dpm.Numeric(f"x{place}", 0, 100) for place in range(5)]
    schema = dpm.Schema(*columns, dpm.Power("x0", 2), dpm.Categorical("</script>", ["a", "b"]))
    dpm.report(dpm.forecast(schema, n_rows=4000, epsilon=1.0), tmp_path / "plan.html")
    opened = Opened(browser, tmp_path / "plan.html", width)
    visible = opened.page.locator("table:visible")
    assert visible.count() == 1  # the others are folded
    assert visible.locator("tbody tr").count() == 7  # a column of two levels is one feature
    bars = opened.page.locator(".bars .bar")
    widths = [bar.evaluate("bar => parseFloat(getComputedStyle(bar, '::before').width)") for bar in bars.all()]
    left = [float(bar.inner_text().split()[0]) for bar in bars.all()]
    assert len(left) > 1
    assert [size / widths[0] for size in widths] == pytest.approx([share / left[0] for share in left], rel=0.02)
    drawn = opened.page.locator("figure svg").bounding_box()
    assert drawn["x"] + drawn["width"] <= width  # all of it, without scrolling
    assert opened.overflow <= 0
    assert opened.inaccessible() == []
    assert opened.happened == []
