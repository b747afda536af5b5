"""The pages in a real browser: they ask for nothing, run nothing they should not, fit a narrow screen, and pass axe-core.

Skipped, visibly, where there is no Chromium: ``apt-get install chromium``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.reporting.planner import _planner_words

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

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium found: apt-get install chromium to test pages in a browser"
)


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


@pytest.mark.parametrize("width", [1400, 400])
def test_a_report_is_for_every_screen_and_every_reader(browser: Any, report: Path, width: int) -> None:
    opened = Opened(browser, report, width)
    assert opened.overflow <= 0
    if width == 1400:
        folded = opened.page.locator("details table")
        assert folded.count() == 1
        assert not folded.is_visible()  # the receipt is folded away
        assert opened.page.pdf()[:5] == b"%PDF-"
        assert opened.inaccessible() == []
    assert opened.happened == []


def test_faults_of_a_page_are_found(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    image, script = '<img src="https://example.org/x.png">', "<script>alert(1)</script>"
    path.write_text(f'<html><body>{image}{script}<p style="width: 2000px">wide</p></body></html>')
    opened = Opened(browser, path, 400)
    assert any("asked for https://example.org" in line for line in opened.happened)
    assert "dialog: 1" in opened.happened
    assert opened.overflow > 0
    assert any(fault.startswith("image-alt") for fault in opened.inaccessible())


def test_the_planner_answers_to_sliders_and_ticks(browser: Any, tmp_path: Path) -> None:
    columns = [dpm.Numeric(f"x{place}", 0, 100) for place in range(5)]
    schema = dpm.Schema(*columns, dpm.Power("x0", 2), dpm.Categorical("</script>", ["a", "b"]))
    dpm.report(dpm.forecast(schema, n_rows=4000, epsilon=1.0), tmp_path / "plan.html")
    opened = Opened(browser, tmp_path / "plan.html", 400)
    page = opened.page
    before = page.locator("tbody").first.inner_text()
    page.get_by_label("x0", exact=True).uncheck()
    assert page.get_by_label("x0^2").is_disabled()
    assert not page.get_by_label("x0^2").is_checked()
    page.locator("#budget").press("ArrowRight")
    page.locator("#rows").press("ArrowLeft")
    again = dpm.forecast(dpm.Schema(*columns[1:], schema.columns[-1]), n_rows=2800, epsilon=1.4)
    assert again.setting is not None
    words = _planner_words(replace(again.setting, mechanism=make_mechanism("auto")), again.noise_of("auto"))
    assert page.locator("#said").inner_text() == f"ε = 1.4, 2,800 rows, 5 of 7 columns. {words}"
    assert opened.overflow <= 0
    assert opened.inaccessible() == []
    page.get_by_role("button", name="Back to what was asked for").click()
    assert page.locator("tbody").first.inner_text() == before
    assert opened.happened == []


def test_a_long_grid_is_inflated_by_the_browser(browser: Any, tmp_path: Path) -> None:
    columns = [dpm.Numeric(f"x{place}", 0, 100) for place in range(60)]
    dpm.report(dpm.forecast(dpm.Schema(*columns), n_rows=4000, rho=0.5), tmp_path / "plan.html")
    opened = Opened(browser, tmp_path / "plan.html", 1400)
    page = opened.page
    page.get_by_label("x0", exact=True).uncheck()
    again = dpm.forecast(dpm.Schema(*columns[1:]), n_rows=4000, rho=0.5)
    assert again.setting is not None
    words = _planner_words(replace(again.setting, mechanism=make_mechanism("auto")), again.noise_of("auto"))
    assert page.locator("#said").inner_text() == f"ρ = 0.5, 4,000 rows, 59 of 60 columns. {words}"
    assert opened.happened == []
    old = browser.new_context(offline=True).new_page()
    old.add_init_script("delete window.DecompressionStream")
    old.goto((tmp_path / "plan.html").as_uri())
    assert old.get_by_text("too old for the sliders").is_visible()
    assert not old.locator("#choices").is_visible()
