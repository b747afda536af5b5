"""The desk over HTTP, with its server running in this process: the whole journey, and every way to misuse it."""

from __future__ import annotations

import html
import http.client
import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.cli import main
from dpmoments.cli.desk import journey as journey_module
from dpmoments.cli.desk.app import Desk, server_of
from dpmoments.cli.desk.journey import Job, Journey
from support.databases import sqlite_file

pytestmark = pytest.mark.long(sets=None)

PLANTED = "Grandmother Planted"
"""A private value of the table: no level of the schema."""
ROWS = 6000


def people() -> pa.Table:
    rng = np.random.default_rng(0)
    region = rng.choice(["north", "south"], ROWS).astype(object)
    region[17] = PLANTED
    return pa.table(
        {
            "age": rng.uniform(20, 60, ROWS),
            "pay": rng.uniform(10, 50, ROWS),
            "smoker": rng.random(ROWS) < 0.3,
            "region": list(region),
            "person": rng.integers(0, 3000, ROWS),
        }
    )


def written(folder: Path, name: str) -> str:
    (pa_csv.write_csv if name.endswith(".csv") else pq.write_table)(people(), folder / name)
    return str(folder / name)


class Answer:
    """An answer, with the forms of its page."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.code, self.headers = response.status, response.headers
        self.body = response.read()
        self.text = self.body.decode()

    @property
    def words(self) -> str:
        return " ".join(
            html.unescape(re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<style>.*?</style>", "", self.text))).split()
        )

    def hidden(self) -> dict[str, str]:
        """The secrets of the page's forms."""
        return dict(re.findall(r'type="hidden" name="(token|state|page|request)" value="([^"]*)"', self.text))

    @property
    def private(self) -> bool:
        return "<strong>PRIVATE.</strong>" in self.text and "<title>PRIVATE: " in self.text

    @property
    def commands(self) -> list[str]:
        return [html.unescape(found) for found in re.findall(r'(?s)aria-label="Commands">(.*?)</pre>', self.text)]


class Window:
    """A browser's window: a cookie, and requests to the desk."""

    def __init__(self, desk: Desk, port: int) -> None:
        self.desk, self.port, self.cookie = desk, port, ""
        self.shown: list[Answer] = []

    def ask(self, method: str, path: str, form: dict[str, str] | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie}
        if form is not None:
            sent |= {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://127.0.0.1:{self.port}"}
        sent |= {name.replace("_", "-"): text for name, text in headers.items()}
        connection.request(method, path, None if form is None else urlencode(form), sent)
        answer = Answer(connection.getresponse())
        connection.close()
        self.shown.append(answer)
        return answer

    def open(self) -> Window:
        answer = self.ask("GET", self.desk.address.partition(str(self.port))[2])
        assert answer.code == 200
        self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        return self

    def see(self, path: str) -> Answer:
        answer = self.ask("GET", path)
        assert answer.code == 200, answer.words
        return answer

    def send(self, step: str, page: Answer | None = None, **form: str) -> Answer:
        """Fill in the form of a page, sent to a step, and follow where it leads."""
        page = page or self.see(f"/{step}")
        answer = self.ask(
            "POST", f"/{step}", page.hidden() | {name.replace("__", "-"): text for name, text in form.items()}
        )
        return self.see(answer.headers["Location"]) if answer.code == 303 else answer

    def wait(self) -> None:
        job = self.desk.journey.job
        assert job is not None
        job.wait()
        assert not job.running


@pytest.fixture
def start(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Window]]:
    """Start a desk for a table of a folder; what it printed is empty at the end."""
    running = []

    def started(name: str | dpm.DatabaseQuery | None = "people.csv", folder: Path = tmp_path) -> Window:
        known = isinstance(name, str) and not Path(name).is_absolute()
        table = written(folder, name) if known else name
        listening = socket.create_server(("127.0.0.1", 0))
        desk = Desk(Journey(folder, table), listening.getsockname()[1])
        server = server_of(desk)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        running.append((server, thread, listening))
        while not server.started:
            time.sleep(0.01)
        return Window(desk, listening.getsockname()[1])

    yield started
    for server, thread, listening in running:
        server.should_exit = True
        thread.join(10)
        listening.close()
        assert not thread.is_alive()
    assert capfd.readouterr() == ("", "")


def main_buttons(page: Answer) -> list[str]:
    """Texts of the filled buttons of a page that are not folded away."""
    shown = re.sub(r"(?s)<details>.*?</details>", "", page.text)
    found = re.findall(r"<(?:button|a class=\"button\")(?![^>]*class=\"other\")[^>]*>(.*?)</", shown)
    return [html.unescape(text) for text in found]


COLUMNS = {
    **{f"keep__{index}": "yes" for index in range(4)},
    **{f"missing__{index}": "error" for index in range(4)},
    "kind__0": "numeric",
    "lower__0": "0",
    "upper__0": "100",
    "kind__1": "numeric",
    "lower__1": "0",
    "upper__1": "50.5",
    "description__1": "Pay in thousands: gross",
    "kind__2": "boolean",
    "kind__3": "categorical",
    "levels__3": "north\nsouth",
    "other__3": "drop",
    "casefold__3": "yes",
}
UNIT = {"unit": "row", "neighbors": "add_remove", "missing_unit": "error", "then": "next"}
GRANT = {"ledger": "budget.db", "dataset": "people-2026", "granted_epsilon": "2", "then": "grant"}


def to_release(window: Window, epsilon: str = "1", unit: dict[str, str] = UNIT, **grant: str) -> Answer:
    """Go through all steps before the release."""
    window.send("columns", **COLUMNS, then="next")
    window.send("unit", **unit)
    window.send("forecast", n_rows="6000", epsilon=epsilon)
    window.send("budget", **GRANT | grant)
    return window.see("/release")


def released(window: Window, page: Answer, output: str = "people.json") -> Answer:
    window.send("release", page, output=output, confirmed="yes")
    window.wait()
    return window.see("/release")


@pytest.mark.long
@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_the_whole_journey(name: str, start: Callable[..., Window], tmp_path: Path) -> None:
    window = start(None).open()
    written(tmp_path, name)
    page = window.send("table", table=name)
    assert "PRIVATE" not in page.words
    assert ('<option value="numeric" selected>' in page.text) == (name == "people.parquet")
    refused = window.send("columns", page, **COLUMNS | {"lower__0": ""}, then="next")
    assert refused.code == 422
    assert "column 'age' has no bounds (lower)" in refused.words
    assert not (tmp_path / "people.yaml").exists()
    page = window.send("columns", refused, **COLUMNS, then="next")
    assert page.text.count("<title>Privacy unit") == 1
    assert dpm.Schema.load(tmp_path / "people.yaml").names == ("age", "pay", "smoker", "region")
    assert "comes" not in window.send("unit", **UNIT).words
    page = window.see("/forecast?n_rows=6000&epsilon=0.5")
    assert "At ε = 0.5, 6,000 rows: means, shares, correlations and regressions can be read." in page.words
    assert "ε = 0.125" in page.words
    assert main_buttons(page) == ["Plan with ε = 0.5, pure"]
    page = window.send("forecast", page, n_rows="6000", epsilon="0.5")
    page = window.send("budget", page, **GRANT)
    assert "ε = 2" in page.words
    assert main_buttons(page) == ["Go on to the release"]
    page = window.see("/release")
    assert "Forecast At ε = 0.5, 6,000 rows" in page.words
    assert main_buttons(page) == ["Release, and spend ε = 0.5, pure"]
    page = released(window, page)
    assert main_buttons(page) == ["Go on to the report"]
    assert "Released: people.json" in page.words
    assert "Remaining for people-2026: ε = 1.5" in page.words
    page = window.see("/report")
    assert dpm.load(tmp_path / "people.json").privacy.sentences[0].text() in page.words
    assert "FAILED" not in page.words
    assert window.ask("GET", "/download/report?file=people.json").code == 404
    page = window.send(
        "report", page, file="people.json", regressions="pay ~ age\n\n", groups="region:pay", title="Wages"
    )
    assert main_buttons(page) == ["Get the report"]
    report = window.see("/download/report?file=people.json")
    assert "pay ~ age" in report.words
    assert "Wages: what a private release shows" in report.words
    assert report.headers["Content-Disposition"].startswith("attachment")
    assert report.body == (tmp_path / "people.html").read_bytes()
    audit = window.see("/download/audit?file=people.json")
    assert audit.text == dpm.load(tmp_path / "people.json").auditor_statement(ledger=tmp_path / "budget.db").describe()
    assert window.see("/download/release?file=people.json").body == (tmp_path / "people.json").read_bytes()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {name, "people.yaml", "budget.db", "people.json", "people.html"}
    assert all(answer.headers["Cache-Control"] == "no-store" for answer in window.shown)
    assert not any(PLANTED in answer.text for answer in window.shown)


@pytest.mark.slow
def test_a_report_is_written_again_only_beside_the_old_one(start: Callable[..., Window], tmp_path: Path) -> None:
    """Over a page that its form was not shown beside, nothing is written; a wrong question is refused."""
    window = start().open()
    released(window, to_release(window))
    before = window.see("/report")
    for wrong in ({"regressions": "pay ~ nobody"}, {"groups": "pay"}):
        assert window.send("report", window.see("/report"), file="people.json", **wrong).code == 422
        assert not (tmp_path / "people.html").exists()
    window.send("report", window.see("/report"), file="people.json", regressions="", groups="")
    plain = (tmp_path / "people.html").read_text()
    refused = window.send("report", before, file="people.json", regressions="pay ~ age", groups="")
    assert refused.code == 422
    assert "exists" in refused.words
    assert (tmp_path / "people.html").read_text() == plain
    window.send("report", window.see("/report"), file="people.json", again="yes", regressions="pay ~ age", groups="")
    assert "pay ~ age" in (tmp_path / "people.html").read_text()
    assert "--regression 'pay ~ age'" in window.see("/report").commands[0]


def run_as_shown(command: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Run a command as a shell would: words, one file written, here-documents."""
    if command.startswith("cat"):
        subprocess.run(["bash", "-c", command], check=True)
        return
    program, *words = shlex.split(command)
    assert program == "dpmoments"
    to = words.pop() if words[-2:-1] == [">"] else None
    assert main(words[:-1] if to else words) == 0, capfd.readouterr().err
    printed = capfd.readouterr().out
    if to:
        assert Path(to).parent == folder
        Path(to).write_text(printed)


@pytest.mark.slow
def test_a_private_value_is_on_private_pages_alone(start: Callable[..., Window], tmp_path: Path) -> None:
    window = start().open()
    window.send("columns", **COLUMNS, then="check")
    window.wait()
    page = window.see("/columns")
    assert page.private
    assert PLANTED in page.words
    assert "PRIVATE 1 of 6,000 cells of region (under 0.1%) are not levels" in page.words
    assert page.words.count("PRIVATE every cell fits") == 3
    to_release(window)
    released(window, window.see("/release"))
    window.send("report", window.see("/report"), file="people.json")
    window.see("/download/audit?file=people.json")
    window.see("/columns")
    holders = [answer for answer in window.shown if PLANTED in answer.text]
    assert holders
    assert all(answer.private for answer in holders)
    assert sum(answer.private for answer in window.shown) == len(holders)
    assert not any(PLANTED.encode() in path.read_bytes() for path in tmp_path.iterdir() if path.name != "people.csv")


def test_findings_go_with_the_schema_they_are_for(start: Callable[..., Window]) -> None:
    window = start().open()
    window.send("columns", **COLUMNS, then="check")
    window.wait()
    assert window.see("/columns").private
    window.send("columns", **COLUMNS | {"upper__0": "120"}, then="next")
    assert not window.see("/columns").private


def test_a_release_that_stops_at_a_cell_quotes_nothing(start: Callable[..., Window], tmp_path: Path) -> None:
    table = people().set_column(0, "age", pa.array([PLANTED, *["30"] * (ROWS - 1)]))
    window = start().open()
    pa_csv.write_csv(table, tmp_path / "people.csv")
    page = released(window, to_release(window))
    assert "No release was made" in page.words
    assert "nothing was spent" in page.words
    assert "1 refunded" in window.see("/budget").words
    assert not any(PLANTED in answer.text for answer in window.shown)


def test_a_mechanism_can_be_chosen_and_raising_a_grant_asks_why(start: Callable[..., Window], tmp_path: Path) -> None:
    window = start().open()
    to_release(window)
    offered = dict(re.findall(r'name="mechanism" value="([a-z-]*)"( checked)?', window.see("/forecast").text))
    assert offered["auto"] == " checked"
    assert "laplace" in offered
    assert "gaussian" not in offered  # of ε alone
    assert 'value="gaussian"' in window.see("/forecast?epsilon=&rho=0.5").text
    refused = window.send("forecast", n_rows="6000", epsilon="1", mechanism="gaussian")
    assert refused.code == 422
    assert "cannot spend a budget of" in refused.words
    window.send("forecast", n_rows="6000", epsilon="1", mechanism="laplace")
    page = window.see("/release")
    assert "--mechanism laplace" in page.commands[0]
    released(window, page)
    assert dpm.load(tmp_path / "people.json").mechanism == "laplace"

    assert "reason" in window.send("budget", **GRANT | {"granted_epsilon": "9"}).words
    page = window.send("budget", **GRANT | {"granted_epsilon": "9", "reason": "A second question", "by": "The board"})
    assert "A second question" in page.words
    assert "--reason 'A second question' --by 'The board'" in page.commands[0]


class Halted:
    """Progress of a job that waits at a sign until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, passes: int) -> None:
        self.reached, self.go = threading.Event(), threading.Event()
        plain = Job._report

        def report(job: Job, fraction: float | None) -> None:
            plain(job, fraction)
            if job.what == "release" and job.passes == passes:
                self.reached.set()
                assert self.go.wait(30)
                plain(job, fraction)

        monkeypatch.setattr(Job, "_report", report)


@pytest.mark.long
@pytest.mark.parametrize(("passes", "said"), [(1, "nothing was spent"), (3, "counts as spent")])
def test_a_stop_is_that_of_the_command(
    passes: int, said: str, start: Callable[..., Window], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Before the first draw the reservation is refunded; after it, it stays."""
    window = start().open()
    page = to_release(window, epsilon="1", granted_delta="1e-6")
    window.send("forecast", n_rows="6000", epsilon="1", delta="1e-7")
    halted = Halted(monkeypatch, passes)
    shown = window.send("release", output="people.json", confirmed="yes")
    assert halted.reached.wait(30)
    assert "The release is being made" in window.see("/columns").words
    assert json.loads(window.see("/progress").text)["running"] is True
    assert "wait, or stop that first" in window.send("unit", shown, **UNIT | {"then": "check"}).words
    window.ask("POST", "/stop", {"token": page.hidden()["token"], "state": "old"})
    halted.go.set()
    window.wait()
    page = window.see("/release")
    assert "No release was made: stopped" in page.words
    assert said in page.words
    account = dpm.Ledger(tmp_path / "budget.db").account("people-2026")
    assert (account.n_refunded, account.n_open) == ((1, 0) if passes == 1 else (0, 1))
    assert not (tmp_path / "people.json").exists()


def test_a_form_releases_once(start: Callable[..., Window], tmp_path: Path) -> None:
    """A double click, a reload, the back button, and a second window."""
    window = start().open()
    page = to_release(window)
    other = window.see("/release")
    assert other.hidden()["request"] == page.hidden()["request"]
    form = page.hidden() | {"output": "people.json", "confirmed": "yes"}
    sent = [threading.Thread(target=window.ask, args=("POST", "/release", form)) for _ in range(4)]
    for thread in sent:
        thread.start()
    for thread in sent:
        thread.join()
    window.wait()
    again = window.ask("POST", "/release", other.hidden() | {"output": "other.json", "confirmed": "yes"})
    assert (again.code, again.headers["Location"]) == (303, "/release")
    assert dpm.Ledger(tmp_path / "budget.db").account("people-2026").n_released == 1
    assert not (tmp_path / "other.json").exists()
    assert window.see("/release").hidden()["request"] != page.hidden()["request"]


@pytest.mark.slow
def test_what_another_window_changed_is_not_obeyed_unseen(start: Callable[..., Window], tmp_path: Path) -> None:
    window = start().open()
    page = to_release(window)
    window.send("forecast", n_rows="6000", epsilon="2")
    refused = window.send("release", page, output="people.json", confirmed="yes")
    assert refused.code == 409
    assert "changed in another window" in refused.words
    assert "ε = 2" in refused.words
    schema = (tmp_path / "people.yaml").read_text()
    (tmp_path / "people.yaml").write_text(schema.replace("upper: 100.0", "upper: 90.0"))
    refused = window.send("release", refused, output="people.json", confirmed="yes")
    assert refused.code == 409
    assert dpm.Ledger(tmp_path / "budget.db").account("people-2026").n_released == 0
    unconfirmed = window.send("release", refused, output="people.json")
    assert "confirm" in unconfirmed.words, unconfirmed.words
    assert 'value="90.0"' in window.see("/columns").text


def test_a_release_that_cannot_be_written_is_kept(
    start: Callable[..., Window], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = start().open()
    page = to_release(window)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(dpm.MomentRelease, "save", full)
        page = released(window, page)
    assert "The release was made and paid for" in page.words
    (refuge,) = window.desk.journey.keep_unsaved()  # as the desk is closed
    assert isinstance(dpm.load(refuge), dpm.MomentRelease)
    shutil.rmtree(refuge.parent)
    page = window.send("save", page, output="again.json")
    assert "Released: again.json" in page.words
    assert isinstance(dpm.load(tmp_path / "again.json"), dpm.MomentRelease)
    assert window.desk.journey.keep_unsaved() == []


# ---------------------------------------------------------------- misuse


def test_the_first_address_opens_once(start: Callable[..., Window]) -> None:
    window = start()
    for path in ("/", "/columns", "/desk.js", "/progress", "/download/release?file=x.json"):
        assert window.ask("GET", path).code == 403
    assert window.ask("GET", "/open?token=wrong").code == 403
    assert window.ask("GET", "/open").code == 403
    window.open()
    cookie = window.shown[-1].headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert window.see("/columns").code == 200
    assert window.open().see("/columns").code == 200  # the same browser, again
    stranger = Window(window.desk, window.port)
    assert stranger.ask("GET", window.desk.address.partition(str(window.port))[2]).code == 403
    assert stranger.ask("GET", "/columns", Cookie=f"{window.cookie}x").code == 403


def test_other_names_of_this_machine_are_refused(start: Callable[..., Window]) -> None:
    window = start().open()
    for host in ("evil.example", "127.0.0.1", "127.0.0.1:1", f"evil.example:{window.port}", f"[::1]:{window.port}", ""):
        assert window.ask("GET", "/columns", Host=host).code in (400, 421), host
    assert window.ask("GET", "/columns", Host=f"localhost:{window.port}").code == 200


MISUSED: list[tuple[dict[str, str], dict[str, str], int]] = [
    ({"Origin": "http://evil.example"}, {}, 403),
    ({"Origin": "http://127.0.0.1:1"}, {}, 403),
    ({"Sec_Fetch_Site": "same-site"}, {}, 403),
    ({"Cookie": ""}, {}, 403),
    ({"Content_Type": "text/plain"}, {}, 415),
    ({"Content_Length": "9999999999"}, {}, 413),
    ({}, {"token": "x"}, 403),
]


def test_forms_of_other_pages_are_refused(start: Callable[..., Window], tmp_path: Path) -> None:
    window = start().open()
    sent = window.see("/columns").hidden() | {name.replace("__", "-"): text for name, text in COLUMNS.items()}
    for headers, form, code in MISUSED:
        assert window.ask("POST", "/columns", sent | form, **headers).code == code, (headers, form)
        assert not (tmp_path / "people.yaml").exists()
    assert window.ask("POST", "/columns", sent).code == 303


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["../people", "/tmp/people", "..", "a\\b", ".hidden", "a\nb", "x" * 300, "link", "people\0"]
)
def test_no_path_leads_out_of_the_folder(name: str, start: Callable[..., Window], tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir(), outside.mkdir()
    for ending in (".json", ".db", ".html"):
        (inside / f"link{ending}").symlink_to(outside / f"secret{ending}")
    window = start("people.csv", inside).open()
    page = to_release(window)
    assert window.send("release", page, output=f"{name}.json", confirmed="yes").code == 422
    assert window.send("budget", **GRANT | {"ledger": f"{name}.db"}).code == 422
    window.send("budget", window.ask("GET", "/release"), **GRANT)
    asked = urlencode({"file": f"{name}.json"})
    for path in ("/report", "/download/release", "/download/report", "/download/audit"):
        answer = window.ask("GET", f"{path}?{asked}")
        assert answer.code in (422, 500)
        assert "privacy" not in answer.words.partition("is not")[0].lower().replace("privacy unit", "")
    assert window.send("table", table=f"../outside/{name}").code == 422
    assert list(outside.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"inside", "outside"}


def test_paths_of_pages_are_those_of_steps(start: Callable[..., Window]) -> None:
    window = start().open()
    for path in (
        "/desk.css",
        "/../pyproject.toml",
        "/%2e%2e/app.py",
        "/download/x?file=people.json",
        "/_columns",
        "/templates/step.html",
    ):
        assert window.ask("GET", path).code in (404, 422, 500)
    for step in ("_columns", "nothing", "page"):
        assert window.ask("POST", f"/{step}", window.see("/columns").hidden()).code == 404


def test_pages_run_nothing_of_a_table(start: Callable[..., Window], tmp_path: Path) -> None:
    name = '<script>alert(1)</script>"'
    pq.write_table(pa.table({name: [1.0, 2.0]}), tmp_path / "x.parquet")
    window = start(None).open()
    page = window.send("table", table="x.parquet")
    page = window.send("columns", page, keep__0="yes", kind__0="numeric", lower__0=name, upper__0=name)
    assert page.code == 422
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;alert" in page.text
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]


def test_an_error_of_a_reader_is_not_shown(start: Callable[..., Window], monkeypatch: pytest.MonkeyPatch) -> None:
    window = start().open()

    def fails(*_: Any) -> None:
        raise RuntimeError(PLANTED)

    monkeypatch.setattr(Journey, "columns", property(fails))
    answer = window.ask("GET", "/columns")
    assert (answer.code, PLANTED in answer.text, "RuntimeError" in answer.text) == (422, False, True)
    monkeypatch.setattr(Desk, "_page", fails)
    answer = window.ask("GET", "/columns")
    assert (answer.code, PLANTED in answer.text, "RuntimeError" in answer.text) == (500, False, True)


# ---------------------------------------------------------------- texts of forms


def test_levels_of_a_form_come_back(start: Callable[..., Window], tmp_path: Path) -> None:
    for values in ([2, -3], ["1", "2"], [-9, "n/a", 1.5, "1.5", "", " x", '"1"']):
        form = {"kind-0": "numeric", "missing_values-0": journey_module.lines_of(values)}
        assert journey_module._column({"name": "x"}, form, 0)["missing_values"] == values
    form = {"kind-0": "categorical", "levels-0": "1\n2\n3+"}
    assert journey_module._column({"name": "x"}, form, 0)["levels"] == ["1", "2", "3+"]
    levels = ["north", "010", "1e6", "no", "null", "a: b", "- c", '"', '"1"', "1"]
    text = journey_module.lines_of(levels)
    window = start().open()
    page = window.send("columns", **COLUMNS | {"levels__3": text}, then="next")
    assert page.code == 200, page.words
    column = dpm.Schema.load(tmp_path / "people.yaml").columns[3]
    assert list(column.levels) == levels  # type: ignore[union-attr]


def test_a_mistake_in_a_column_of_other_hands_is_named(start: Callable[..., Window], tmp_path: Path) -> None:
    dpm.Schema(dpm.Numeric("age", 0, 1234)).save(tmp_path / "people.yaml")
    text = (tmp_path / "people.yaml").read_text()
    (tmp_path / "people.yaml").write_text(text.replace("1234", "-5"))
    assert "lower=0.0 must be below upper=-5.0" in start().open().ask("GET", "/columns").words


def test_a_schema_of_other_hands_keeps_what_the_page_does_not_show(
    start: Callable[..., Window], tmp_path: Path
) -> None:
    age = dpm.Numeric("age", 0, 100, typical=(20, 60))
    region = dpm.Categorical("region", ["north", "south"], aliases={"north": ["N"]})
    schema = dpm.Schema(age, dpm.Power("age", 2), region)
    schema.save(tmp_path / "people.yaml")
    window = start().open()
    form = {
        "kind__0": "numeric",
        "lower__0": "0",
        "upper__0": "90",
        "kind__2": "categorical",
        "levels__2": "north\nsouth",
        "aliases__2": "N = north",
    }
    keep = {f"keep__{index}": "yes" for index in range(3)}
    window.send("columns", **form | keep, then="next")
    changed = dpm.Schema.load(tmp_path / "people.yaml")
    assert changed == dpm.Schema(dpm.Numeric("age", 0, 90, typical=(20, 60)), dpm.Power("age", 2), region)
    page = window.send("columns", **form | keep, add="pay")
    assert "<legend>pay</legend>" in page.text
    assert window.ask("GET", "/unit").code == 422  # not saved yet
    window.send("columns", **{**form, "keep__0": "yes", "keep__1": "yes"}, then="next")
    assert dpm.Schema.load(tmp_path / "people.yaml").row_norm == dpm.Schema(age, dpm.Power("age", 2)).row_norm


def test_how_a_column_is_written_can_be_stated(start: Callable[..., Window], tmp_path: Path) -> None:
    """What preflight advises for a messy file has a field; the form comes back with what was saved."""
    text = "Ort;Lohn;Raucher;Tag\n" + "Ost;1.234,5;ja;31.01.2020\neast = x;2,5;nein;01.02.2021\n" * 300
    (tmp_path / "leute.csv").write_text(text)
    window = start(str(tmp_path / "leute.csv")).open()
    page = window.see("/table")
    assert "would have 4 by" in page.words
    assert "<details open>" in page.text
    assert re.search(r"value=\"[^\"]*leute.csv\" checked", page.text)
    page = window.send("table", page, table=str(tmp_path / "leute.csv"), delimiter=";")
    form = {f"keep__{index}": "yes" for index in range(4)} | {"then": "next"}
    form |= {
        "kind__0": "categorical",
        "levels__0": "Ost\nWest",
        "aliases__0": "east = x = Ost\nW = West",
        "source__0": "",
    }
    form |= {"kind__1": "numeric", "lower__1": "0", "upper__1": "5000", "decimal__1": ",", "thousands__1": "."}
    form |= {"kind__2": "boolean", "true_values__2": "ja", "false_values__2": "nein"}
    form |= {
        "kind__3": "date",
        "lower__3": "2020-01-01",
        "upper__3": "2021-12-31",
        "format__3": "%d.%m.%Y",
        "unit__3": "years",
    }
    window.send("columns", page, **form)
    expected = (
        dpm.Categorical("Ort", ["Ost", "West"], aliases={"Ost": ["east = x"], "West": ["W"]}),
        dpm.Numeric("Lohn", 0, 5_000, decimal=",", thousands="."),
        dpm.Boolean("Raucher", true_values=["ja"], false_values=["nein"]),
        dpm.Date("Tag", "2020-01-01", "2021-12-31", format="%d.%m.%Y", unit="years"),
    )
    assert dpm.Schema.load(tmp_path / "leute.yaml").columns == expected
    shown = window.see("/columns")
    assert "east = x = Ost\nW = West</textarea>" in html.unescape(shown.text)
    window.send("columns", shown, **form | {"then": "check"})
    window.wait()
    assert window.see("/columns").words.count("every cell fits") >= 4
    renamed = form | {"source__2": "Raucher?", "aliases__0": ""}
    window.send("columns", **renamed)
    ort, _, smoker, _ = dpm.Schema.load(tmp_path / "leute.yaml").columns
    assert (getattr(ort, "aliases", 1), getattr(smoker, "source", 1)) == (None, "Raucher?")


def test_a_text_file_of_another_format(start: Callable[..., Window], tmp_path: Path) -> None:
    text = "alter;lohn\n" + "\n".join(f"{30 + row % 20};{row % 40},5" for row in range(500))
    (tmp_path / "leute.csv").write_bytes(text.encode("utf-16"))
    window = start(None).open()
    assert window.send("table", table="leute.csv").code == 422
    page = window.send("table", table="leute.csv", delimiter=";", encoding="utf-16", decimal=",")
    assert "<legend>lohn</legend>" in page.text
    form = {f"{name}__{index}": text for index in range(2) for name, text in (("keep", "yes"), ("kind", "numeric"))}
    form |= {"lower__0": "0", "upper__0": "99", "lower__1": "0", "upper__1": "50"}
    window.send("columns", page, **form, then="check")
    window.wait()
    assert "every cell fits" in window.see("/columns").words
    assert "--delimiter=" in window.see("/table").commands[0]


@pytest.mark.long
@pytest.mark.parametrize("given", [False, True])
def test_a_query_on_a_database(
    given: bool, start: Callable[..., Window], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """From its page or from the command that opens the desk; the printed commands do the same."""
    folder = tmp_path / "desk"
    folder.mkdir()
    rows = people().slice(100).to_pylist()
    url = sqlite_file(
        tmp_path / "people.sqlite", rows, {"age": "REAL", "pay": "REAL", "smoker": "BOOLEAN", "region": "TEXT"}
    )
    query = "SELECT * FROM people WHERE age < 50"
    window = start(dpm.DatabaseQuery(url, query) if given else None, folder).open()
    if not given:
        assert window.send("table", query=query).code == 422  # no URL
        window.send("table", database=url, query=query)
    assert f"In use: sqlite: {query}" in window.see("/table").words
    page = released(window, to_release(window))
    assert "Released: schema.json" not in page.words
    assert "Released: people.json" in page.words
    made = dpm.load(folder / "people.json")
    assert "rows-of-query" in [rule.code for rule in made.privacy.rules]
    kept = sum(row["age"] < 50 and row["region"] != PLANTED for row in rows)
    assert abs(made.n_rows - kept) < 100
    ran = [
        command for step in ("table", "unit", "release") for command in window.see(f"/{step}").commands[0].splitlines()
    ]
    shown = f"--database {url} --query '{query}'"
    assert all(shown in command for command in ran)
    theirs = tmp_path / "command"
    theirs.mkdir()
    (theirs / "schema.yaml").write_bytes((folder / "schema.yaml").read_bytes())
    (theirs / "budget.db").write_bytes((folder / "budget.db").read_bytes())
    for command in ran[1:]:
        run_as_shown(command.replace(str(folder), str(theirs)), theirs, capfd)
    assert dpm.load(theirs / "people.json").schema == made.schema


def test_no_page_shows_a_password(
    start: Callable[..., Window], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    secret = "hunter2hunter2"
    url = f"postgresql://ada:{secret}@127.0.0.1:1/x"
    window = start(None).open()
    refused = window.send("table", database=url, query="SELECT 1")
    assert refused.code == 422
    assert "no server answers there" in refused.words
    monkeypatch.setenv("DPMOMENTS_DATABASE", url)
    assert window.send("table", query="SELECT 1").code == 422
    monkeypatch.setattr(Journey, "_read", lambda _: None)  # as if the server had answered
    page = window.see("/table")
    assert window.ask("POST", "/table", page.hidden() | {"query": "SELECT age FROM people"}).code == 303
    page = window.see("/table")
    assert "In use: postgresql: SELECT age FROM people" in page.words
    assert "--database \"$DPMOMENTS_DATABASE\" --query 'SELECT age FROM people'" in page.commands[0]
    assert not any(secret in answer.text for answer in window.shown)
    assert secret not in "".join(capfd.readouterr())


# ---------------------------------------------------------------- the command


@pytest.mark.slow
def test_the_command_opens_and_closes(tmp_path: Path) -> None:
    table = written(tmp_path, "people.csv")
    command = [sys.executable, "-m", "dpmoments", "desk", table, "--folder", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        address = lines[1].strip()
        port = int(re.findall(r"http://127\.0\.0\.1:(\d+)/", address)[0])
        stranger = http.client.HTTPConnection("127.0.0.1", port)
        stranger.request("GET", "/")
        assert stranger.getresponse().status == 403
        stranger.close()
        process.send_signal(2)
        rest = process.stdout.read()
    assert (process.returncode, rest) == (0, "The desk is closed.\n")


def test_the_command_without_its_libraries(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "dpmoments.cli.desk.app", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "dpmoments.cli.desk.app")
    assert main(["desk"]) == 1
    assert "pip install 'dpmoments[desk]'" in capsys.readouterr().err
