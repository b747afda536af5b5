"""Web server of the desk: pages for one curator on this machine."""

from __future__ import annotations

import hmac
import io
import secrets
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpmoments.audit.verification import checks
from dpmoments.base.errors import InputValueError
from dpmoments.cli.desk.journey import ENTRIES_OF_KIND, SETTINGS, Form, Journey, lines_of, lines_of_aliases
from dpmoments.cli.output import explain
from dpmoments.reporting.page import filled_in
from dpmoments.reporting.report import plan_content


class _ChangedElsewhereError(InputValueError):
    """Form of a page that is no longer up to date."""


_MAX_BODY = 4_000_000
"""Maximum length of a form, in bytes."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_STEPS: Mapping[str, str] = {
    "table": "Table",
    "columns": "Columns",
    "unit": "Privacy unit",
    "forecast": "Forecast",
    "budget": "Budget",
    "release": "Release",
    "report": "Report",
}
_FORMS: Mapping[str, tuple[Callable[[Journey, Form], None] | None, str]] = {
    "table": (Journey.read_table, "/columns"),
    "columns": (Journey.describe, "/unit"),
    "unit": (Journey.take_unit, "/forecast"),
    "forecast": (Journey.plan, "/budget"),
    "budget": (Journey.grant, "/budget"),
    "release": (Journey.release, "/release"),
    "save": (Journey.save_again, "/release"),
    "report": (Journey.report, "/report?file={file}"),
    "stop": (Journey.stop, "/{page}"),
    "close": (None, "/"),
}
"""Action of each form, and the page that follows."""


class _Guard:
    """Outermost layer: refuses other programs, other pages and other names of this machine."""

    def __init__(self, app: ASGIApp, hosts: set[str], cookie: tuple[str, str]) -> None:
        self._app, self._hosts, self._cookie = app, hosts, cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        code, words = self._refusal(scope)
        try:
            await (PlainTextResponse(words, code) if words else self._app)(scope, receive, guarded)
        except Exception:
            if not begun:  # else it was answered; the server would log it, and it may quote the table
                await PlainTextResponse("The request could not be read.", 400)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str]:
        """Return the code and the reason of a refusal; an empty reason for none."""
        headers, origins = Headers(scope=scope), {f"http://{host}" for host in self._hosts}
        posts, begins = scope["method"] not in ("GET", "HEAD"), scope["path"] == "/open"
        if headers.get("host", "") not in self._hosts:  # another name for this machine (DNS rebinding)
            return 421, "This server answers only to its own address."
        if not begins and headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, "This request is of another page."
        if "origin" in headers and headers["origin"] not in origins:
            return 403, "This request is of another page."
        if posts and headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
            return 415, "Only forms are accepted."
        if posts and not 0 <= int(headers.get("content-length", "-1")) <= _MAX_BODY:
            return 413, "The form is too long, or does not state its length."
        name, value = self._cookie
        if not begins and not _same(Request(scope).cookies.get(name, ""), value):
            return 403, "Open the address that dpmoments desk printed. It opens once; start the desk again for another."
        return 200, ""


def _same(first: str, second: str) -> bool:
    return hmac.compare_digest(first.encode(), second.encode())


class Desk:
    """Pages of a journey, under one lock: a form is judged and obeyed before the next one."""

    def __init__(self, journey: Journey, port: int) -> None:
        self.journey = journey
        self.ended: Callable[[], None] = lambda: None
        self._token: str | None = secrets.token_urlsafe(32)
        self._form_token = secrets.token_urlsafe(32)
        self._cookie = f"dpmoments-desk-{port}", secrets.token_urlsafe(32)
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._lock = threading.Lock()
        self.address = f"http://127.0.0.1:{port}/open?token={self._token}"

    def app(self) -> ASGIApp:
        script = Path(__file__).parent / "templates" / "desk.js"
        routes = [
            Route("/", lambda _: RedirectResponse("/columns" if self.journey.table else "/table", 303)),
            Route("/open", self._open),
            Route("/desk.js", lambda _: FileResponse(script)),
            Route("/progress", self._progress),
            Route("/download/{what}", self._download),
            Route("/{step}", self._step, methods=["GET", "POST"]),
        ]
        answers: dict[Any, Any] = {Exception: lambda _, error: PlainTextResponse(explain(error), 500)}
        return _Guard(Starlette(routes=routes, exception_handlers=answers), self._hosts, self._cookie)

    # Requests.

    def _open(self, request: Request) -> Response:
        """Replace the token of the first address by the session's cookie."""
        name, value = self._cookie
        known = _same(request.cookies.get(name, ""), value)
        with self._lock:
            if not known and (self._token is None or not _same(request.query_params.get("token", ""), self._token)):
                return PlainTextResponse("This address was opened before, or is wrong. Start the desk again.", 403)
            self._token = None
        # A page, not a redirect: browsers keep strict cookies from redirects that another site began.
        response = HTMLResponse(filled_in("open.html", __package__))
        response.set_cookie(name, value, httponly=True, samesite="strict", path="/")
        return response

    def _progress(self, _: Request) -> Response:
        job = self.journey.job
        if job is None or not job.running:
            return JSONResponse({"running": False})
        return JSONResponse({"running": True, "passes": job.passes, "fraction": job.fraction})

    def _download(self, request: Request) -> Response:
        """Send a release of the folder, its page, or its statement for auditors."""
        name, what = request.query_params.get("file", ""), request.path_params["what"]
        with self._lock:
            released, page = self.journey.opened(name)
            if what == "release":
                return _attached((self.journey.folder / name).read_bytes(), name, "application/json")
            if what == "audit":
                statement = released.auditor_statement(ledger=self.journey.ledger_of(released)).describe()
                return _attached(statement.encode(), f"{page.stem}-audit.txt", "text/plain")
            if what == "report" and page.is_file():
                return _attached(page.read_bytes(), page.name, "text/html")
        raise HTTPException(404)

    async def _step(self, request: Request) -> Response:
        step = request.path_params["step"]
        if request.method == "POST":
            pairs = parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=100_000)
            return await run_in_threadpool(self._obeyed, step, dict(pairs))
        return await run_in_threadpool(self._shown, step, dict(request.query_params))

    def _shown(self, step: str, form: Form) -> Response:
        if step not in _STEPS:
            raise HTTPException(404)
        with self._lock:
            return self._page(step, form)

    def _obeyed(self, step: str, form: Form) -> Response:
        """Process a form, then show the next page; or its own again, with the fault."""
        journey, page = self.journey, form.get("page", "table")
        if step not in _FORMS:
            raise HTTPException(404)
        if not _same(form.get("token", ""), self._form_token):
            return PlainTextResponse("This form is of an earlier session: open the page again.", 403)
        with self._lock:
            try:
                if form.get("request", "") in journey.releases:  # a double click, a reload, another window
                    return RedirectResponse("/release", 303)
                journey.refresh()
                if step not in ("stop", "close") and not _same(form.get("state", ""), journey.state):
                    raise _ChangedElsewhereError(
                        "something was changed in another window, or in the schema file, after this page was shown. Nothing "
                        "was done: check the page below, and press the button again"
                    )
                obey, following = _FORMS[step]
                obey(journey, form) if obey is not None else self.ended()
                if form.get("then") == "check":
                    journey.check()
                if form.get("then") == "check" or form.get("add"):
                    following = "/columns"
                return RedirectResponse(following.format(page=page, file=quote(form.get("file", ""))), 303)
            except Exception as error:
                code = 409 if isinstance(error, _ChangedElsewhereError) else 422
                return self._page(page if page in _STEPS else "table", form, explain(error), code)

    # Pages.

    def _page(self, step: str, form: Form, fault: str = "", code: int = 200) -> Response:
        journey = self.journey
        common = dict(step=step, steps=_STEPS, token=self._form_token, journey=journey, form=form)
        try:
            journey.refresh()
            own = {"columns": self._columns, "forecast": self._forecast, "report": self._report}.get(step)
            content = {} if own is None else own(form)
            said = dict(fault=fault or (journey.unread if step == "table" else ""), state=journey.state)
            page = filled_in(f"{step}.html", __package__, **{"private": False} | common | said | content)
        except Exception as error:
            words, code = "\n".join(filter(None, [fault, explain(error)])), max(code, 422)
            page = filled_in("step.html", __package__, **common, fault=words, state="", private=False)
        return HTMLResponse(page, code)

    def _columns(self, _: Form) -> dict[str, Any]:
        shown, findings = io.StringIO(), self.journey.findings
        if findings is not None:
            findings.show(shown)
        forms = {"kinds": ENTRIES_OF_KIND, "lines_of": lines_of, "lines_of_aliases": lines_of_aliases}
        return forms | {"private": findings is not None, "findings_text": shown.getvalue()}

    def _forecast(self, form: Form) -> dict[str, Any]:
        asked = {name: form.get(name, self.journey.stated[name]) for name in SETTINGS["forecast"]}
        features, _ = self.journey.schema.feature_names, self.journey.neighbors
        content: dict[str, Any] = {"asked": asked, "features": features, "refused": "", "forecast": None}
        content["mechanisms_of_budget"] = []
        try:
            content["mechanisms_of_budget"] = self.journey.mechanisms(asked)
            if asked["n_rows"]:
                content |= plan_content(self.journey.forecast({**form, **asked}))
        except (TypeError, ValueError) as error:
            content["refused"] = explain(error)
        return content

    def _report(self, form: Form) -> dict[str, Any]:
        made = [name for job, name in self.journey.releases.values() if job.result is not None]
        name = form.get("file") or (made[-1] if made else "")
        released, page = self.journey.opened(name) if name else (None, None)
        content = {"has_page": page is not None and page.is_file(), "checks": released and checks(released)}
        return {"name": name, "released": released, **content}


def server_of(desk: Desk) -> uvicorn.Server:
    """Return a server that logs nothing; it ends when the curator closes the desk."""
    quiet: dict[str, Any] = dict(access_log=False, log_config=None, log_level="critical", server_header=False)
    config = uvicorn.Config(desk.app(), lifespan="off", ws="none", timeout_graceful_shutdown=2, **quiet)
    server = uvicorn.Server(config)
    desk.ended = lambda: setattr(server, "should_exit", True)
    return server


def _attached(content: bytes, name: str, kind: str) -> Response:
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
    return Response(content, media_type=kind, headers=headers)
