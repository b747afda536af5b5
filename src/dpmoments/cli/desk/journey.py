"""Statements of a curator at the desk, and the calls and commands that follow from them."""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import shlex
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from yaml import YAMLError

import dpmoments
from dpmoments.base.databases import DatabaseQuery
from dpmoments.base.documents import check_output
from dpmoments.base.errors import InputFileNotFoundError, InputValueError, LedgerError, shown
from dpmoments.base.message import Message
from dpmoments.base.table_files import EXCEL_ENDINGS, FEATHER_ENDINGS, PARQUET_ENDINGS, STATISTICS_ENDINGS, file_ending
from dpmoments.base.text_files import CSV_DELIMITERS
from dpmoments.cli.options import column_and_feature, shell_arguments
from dpmoments.cli.output import explain, notes_of, refuge
from dpmoments.mechanisms.registry import MECHANISMS
from dpmoments.planning.forecast_table import Forecast
from dpmoments.planning.preflight import Preflight
from dpmoments.privacy.accounts import Account
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors, require_unit
from dpmoments.releases.disclosed import MessageWarning
from dpmoments.releases.loading import AnyRelease
from dpmoments.schema.derived import blank_entries, column_from_dict
from dpmoments.schema.document import format_yaml, parse_yaml, read_text, read_yaml_nodes
from dpmoments.schema.drafting import default_output
from dpmoments.schema.patterns import expanded

Form = Mapping[str, str]
Report = Callable[[float | None], None]

_TABLE_ENDINGS = (*PARQUET_ENDINGS, *FEATHER_ENDINGS, *CSV_DELIMITERS, *EXCEL_ENDINGS, *STATISTICS_ENDINGS)
_FILE_NAME = re.compile(r"\w[\w .()+=-]{0,199}")
"""Names of the files that the desk writes: no folders, no hidden files."""
ENTRIES_OF_KIND: Mapping[str, tuple[str, ...]] = {
    "numeric": ("lower", "upper", "missing", "fill", "decimal", "thousands"),
    "date": ("lower", "upper", "missing", "fill", "format", "unit"),
    "boolean": ("missing", "fill", "true_values", "false_values"),
    "categorical": ("levels", "other", "missing", "strip", "casefold", "aliases"),
}
"""Entries in a column's form, in addition to name and kind."""
_OF_ANY_KIND = ("missing_values", "source", "description")
_EDITED = {*(entry for entries in ENTRIES_OF_KIND.values() for entry in entries), *_OF_ANY_KIND}
_LISTS = ("levels", "missing_values", "true_values", "false_values")
_TEXTS = ("description", "source", "decimal", "thousands", "format", "unit")
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "unit": ("unit", "column", "max_rows", "missing_unit", "neighbors"),
    "forecast": ("n_rows", "epsilon", "delta", "rho", "mechanism"),
    "budget": ("ledger", "dataset", "granted_epsilon", "granted_delta", "granted_rho", "reason", "by"),
    "report": ("regressions", "groups", "title", "headline"),
}
"""Texts of the forms of some steps."""


class Job:
    """Call that reads the table, in a thread: its result, or why it ended without one."""

    def __init__(self, what: str, run: Callable[[Report], Any]) -> None:
        self.what, self.passes, self.error = what, 1, ""
        self.fraction: float | None = None
        self.result: Any = None
        self.unsaved: Any = None
        self.warnings: tuple[Message, ...] = ()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(run,), daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        self._stopping.set()

    def wait(self) -> None:
        self._thread.join()

    def _report(self, fraction: float | None) -> None:
        if self._stopping.is_set():
            raise KeyboardInterrupt
        if fraction is not None:
            self.passes += fraction < (self.fraction or 0.0)
        self.fraction = fraction

    def _work(self, run: Callable[[Report], Any]) -> None:
        try:
            with warnings.catch_warnings(record=True) as shown:
                warnings.simplefilter("always")
                self.result = run(self._report)
            said = [warning.message for warning in shown]
            self.warnings = tuple(each.message_data for each in said if isinstance(each, MessageWarning))
        except KeyboardInterrupt as stop:
            self.error = "; ".join(["stopped", *notes_of(stop)])
        except Exception as error:
            self.unsaved, self.error = getattr(error, "release", None), explain(error)


class Journey:
    """Statements of a curator; all windows share them. Files are in one folder, but the table."""

    def __init__(self, folder: Path, table: str | DatabaseQuery | None = None) -> None:
        self.folder, self.given = folder, table
        self.table: str | DatabaseQuery | None = None
        self.marks: dict[str, str] = {}
        self.document: dict[str, Any] = {}
        self.stated = {name: "" for names in SETTINGS.values() for name in names}
        self.stated |= {"missing_unit": "error", "epsilon": "1", "ledger": "budget.db"}
        self.job: Job | None = None
        self.request = secrets.token_hex(16)
        self.releases: dict[str, tuple[Job, str]] = {}
        self._names: tuple[str, ...] = ()
        self._text, self._key = "", secrets.token_bytes()
        self._checked: tuple[str, dpmoments.PrivacyUnit | None] = "", None
        self._planned: tuple[Any, Forecast] | None = None
        self.unread = ""
        """Why the given file could not be read yet: it may be written in another format."""
        if isinstance(table, DatabaseQuery):
            self._use(table, {})
        elif table is not None:
            try:
                self._use(table, {})
            except ValueError as error:
                self.unread = explain(error)

    def file(self, name: str, ending: str) -> Path:
        """Return the path of a file of the folder; refuse names that lead elsewhere."""
        path = self.folder / name
        if not _FILE_NAME.fullmatch(name) or not name.endswith(ending) or path.is_symlink():
            raise InputValueError(
                f"{shown(name)} is not a name of a file that the desk can use: letters, digits, spaces and ._-+=() "
                f"in the desk's folder, ending with {ending}, and not a link"
            )
        return path

    def names_of(self, *endings: str) -> list[str]:
        """Return the names of the folder's files with these endings; default: tables."""
        files = [path for path in self.folder.iterdir() if path.is_file() and not path.is_symlink()]
        wanted = endings or _TABLE_ENDINGS
        return sorted(file.name for file in files if file_ending(file) in wanted and not file.name.startswith("."))

    @property
    def schema_path(self) -> Path:
        """Path of the schema: the table's name with ``.yaml``."""
        table = self._table
        return self.file("schema.yaml" if isinstance(table, DatabaseQuery) else default_output(table).name, ".yaml")

    @property
    def schema(self) -> dpmoments.Schema:
        """Schema of the file, once it is complete and saved."""
        written = dpmoments.Schema.load(self.schema_path) if self._file_text() else None
        if written is None or written != dpmoments.Schema.from_dict(self.document):
            raise InputValueError("the step 'Columns' is first: complete and save it")
        return written

    @property
    def ledger_path(self) -> Path:
        return self.file(self.stated["ledger"], ".db")

    @property
    def _table(self) -> str | DatabaseQuery:
        if self.table is None:
            raise InputValueError("the step 'Table' is first: complete and save it")
        return self.table

    @property
    def table_text(self) -> str:
        """Table as pages name it; of a database's URL only the kind."""
        table = self._table
        return f"{table.scheme}: {table.query}" if isinstance(table, DatabaseQuery) else table

    @property
    def state(self) -> str:
        """Digest of everything stated; a form that was made for another state is refused."""
        written = self.table and self._file_text()
        stated = [getattr(self.table, "url", ""), self.table, self.marks, self.document, self.stated, written]
        return hmac.digest(self._key, json.dumps(stated, default=str).encode(), "sha256").hex()

    # Steps: each takes the texts of its form, and calls the library.

    def read_table(self, form: Form) -> None:
        """Choose the table, and read its header and the schema file that it may have."""
        name = form.get("table", "")
        if "query" in form:
            last = self.table.url if isinstance(self.table, DatabaseQuery) else os.environ.get("DPMOMENTS_DATABASE", "")
            self._use(DatabaseQuery(form.get("database", "").strip() or last, form["query"].strip()), {})
        elif not name or name not in (*self.names_of(), self.given):
            raise InputFileNotFoundError(f"{name} does not exist")
        else:
            marks = {mark: form[mark] for mark in ("delimiter", "encoding", "decimal", "thousands") if form.get(mark)}
            self._use(name if name == self.given else str(self.folder / name), marks)

    def _use(self, table: str | DatabaseQuery, marks: dict[str, str]) -> None:
        before = self.table, self.marks
        self.table, self.marks, self.unread = table, marks, ""
        try:
            self._read()
        except BaseException:
            self.table, self.marks = before
            raise
        if isinstance(table, str):
            self.stated["dataset"] = self.stated["dataset"] or self.schema_path.stem

    def refresh(self) -> None:
        """Read the schema file again if another program changed it."""
        if self.table is not None and self._text != self._file_text():
            self._read()

    def _file_text(self) -> str:
        return read_text(self.schema_path) if self.schema_path.is_file() else ""

    def _read(self) -> None:
        text, document = self._file_text(), dict[str, Any]()
        if text:
            document = expanded(read_yaml_nodes(self.schema_path)[0])
            columns = document.get("columns") if isinstance(document, dict) else None
            if not isinstance(columns, list) or not all(isinstance(entries, dict) for entries in columns):
                raise InputValueError("this is not a schema: a mapping with a list of columns is expected")
            # A row-norm bound that follows from the columns is dropped, since these may change.
            plain = {entry: value for entry, value in document.items() if entry != "row_norm"}
            with suppress(TypeError, ValueError):  # not filled in yet
                if dpmoments.Schema.from_dict(plain).row_norm == document.get("row_norm"):
                    document = plain
        stated: dict[str, Any] = self.marks | ({"delimiter": "\t"} if self.marks.get("delimiter") == "tab" else {})
        text_format = dpmoments.TextFormat(**stated) if stated else None
        if text_format is None and document.get("text_format"):
            text_format = dpmoments.TextFormat.from_dict(document["text_format"])
        draft = dpmoments.Schema.draft(self._table, text_format=text_format)
        document = document or expanded(parse_yaml(draft.text))
        if text_format is not None:
            document["text_format"] = text_format.to_dict()
        self.document, self._names, self._text = document, draft.names, text

    def describe(self, form: Form) -> None:
        """Store columns, kinds, bounds and levels; write the schema if it is complete."""
        kept = [index for index in range(len(self.document["columns"])) if form.get(f"keep-{index}") == "yes"]
        columns = [_column(self.document["columns"][index], form, index) for index in kept]
        self.document["columns"] = columns
        if form.get("add") in self.other_names:
            columns.append({"name": form["add"], "missing": "error"})
        else:
            dpmoments.Schema.from_dict(self.document).save(self.schema_path)
            self._text = self._file_text()

    @property
    def columns(self) -> list[tuple[dict[str, Any], str, list[str] | None]]:
        """Entries, fault and private findings of each column of the schema."""
        if not self.document:
            raise InputValueError("the step 'Table' is first: complete and save it")
        private = {} if self.findings is None else self.findings.private_facts()["columns"]
        columns = self.document["columns"]
        return [(entries, _fault(entries), private.get(entries.get("name"), {}).get("verdicts")) for entries in columns]

    @property
    def other_names(self) -> tuple[str, ...]:
        """Columns of the table that the schema leaves out."""
        known = {entries.get("source") or entries.get("name") for entries in self.document.get("columns", [])}
        return tuple(name for name in self._names if name not in known)

    def take_unit(self, form: Form) -> None:
        self._take("unit", form)
        unit, neighbors = self.unit, Neighbors.of(self.neighbors)
        if unit is not None:
            require_unit(unit, self.schema, neighbors)

    def _take(self, step: str, form: Form) -> None:
        self.stated |= {name: form.get(name, "").strip() for name in SETTINGS[step]}

    @property
    def unit(self) -> dpmoments.PrivacyUnit | None:
        """Privacy unit; None if each row is its own."""
        if self.stated["unit"] != "column":
            return None
        missing: Any = self.stated["missing_unit"]
        max_rows = _number(self.stated["max_rows"]) if self.stated["max_rows"] else None
        return dpmoments.PrivacyUnit(self.stated["column"], max_rows, missing)

    @property
    def neighbors(self) -> str:
        """Neighboring relation, which has no default."""
        if not self.stated["neighbors"] or not self.stated["unit"]:
            raise InputValueError("the step 'Privacy unit' is first: complete and save it")
        return self.stated["neighbors"]

    def budget(self, prefix: str = "") -> dict[str, Any]:
        return _budget({name: self.stated[prefix + name] for name in ("epsilon", "delta", "rho")})

    def forecast(self, form: Form) -> Forecast:
        """Return the forecast for the numbers of a form; reads no data and states nothing."""
        texts = {name: form.get(f"sd-{index}", "").strip() for index, name in enumerate(self.schema.feature_names)}
        guesses = {name: _number(text) for name, text in texts.items() if text}
        options = dict(n_rows=_number(form["n_rows"]), neighbors=self.neighbors, privacy_unit=self.unit)
        options |= dict(typical_sd=guesses or None, mechanism=form.get("mechanism") or "auto")
        return dpmoments.forecast(self.schema, **options, **_budget(form))

    def mechanisms(self, form: Form) -> list[tuple[str, str]]:
        """Return the mechanisms for a form's budget, with a line on each; ``auto`` first."""
        kind, neighbors = PrivacyBudget.of(**_budget(form)).kind, self.neighbors
        fit = {name: each for name, each in MECHANISMS.items() if kind in each.budget_kinds}
        lines = [(name, each.summary) for name, each in fit.items() if neighbors in each.supported_neighbors]
        return sorted(lines, key=lambda line: line[0] != "auto")

    @property
    def mechanism(self) -> str:
        return self.stated["mechanism"] or "auto"

    def plan(self, form: Form) -> None:
        """Store the budget of a forecast that can be made."""
        planned = self.forecast(form)
        self._take("forecast", form)
        self._planned = (self.schema, self.unit, self.neighbors), planned

    @property
    def planned(self) -> Forecast | None:
        """Forecast of the stated release, if it was planned for this schema and unit."""
        now = self.schema, self.unit, self.neighbors
        return self._planned[1] if self._planned is not None and self._planned[0] == now else None

    def check(self) -> None:
        """Start a preflight check; its findings stay in memory."""
        schema, unit, table = self.schema, self.unit, self._table
        self._start("check", lambda report: dpmoments.preflight(table, schema, privacy_unit=unit, progress=report))
        self._checked = self._text, unit

    @property
    def findings(self) -> Preflight | None:
        """Private findings of a check of this schema and unit."""
        result = None if self.job is None else self.job.result
        return result if isinstance(result, Preflight) and self._checked == (self._text, self.unit) else None

    def grant(self, form: Form) -> None:
        """Store ledger and dataset; grant the dataset its budget if the form asks for that."""
        self._take("budget", form)
        if form.get("then") != "grant":
            return
        unit = "row" if self.unit is None else self.unit.column
        options = self.budget("granted_") | {name: self.stated[name] or None for name in ("reason", "by")}
        ledger = dpmoments.Ledger(self.ledger_path)
        ledger.grant(self.stated["dataset"], neighbors=self.neighbors, unit=unit, **options)

    @property
    def account(self) -> Account | None:
        """Budget of the dataset; None before its grant."""
        ledger = dpmoments.Ledger(self.ledger_path)
        known = self.ledger_path.exists() and self.stated["dataset"] in ledger.datasets
        return ledger.account(self.stated["dataset"]) if known else None

    @property
    def spends(self) -> PrivacyBudget:
        return PrivacyBudget.of(**self.budget())

    @property
    def next_output(self) -> str:
        """Name of a release that no file has yet."""
        stem = self.schema_path.stem
        names = (f"{stem}{'' if number == 1 else f'-{number}'}.json" for number in range(1, 10_000))
        return next(name for name in names if not (self.folder / name).exists())

    def release(self, form: Form) -> None:
        """Start a release, at most once for a request."""
        output, table, ledger = self.file(form.get("output", ""), ".json"), self._table, self.ledger_path
        if form.get("request") != self.request:
            raise InputValueError(
                "something was changed in another window, or in the schema file, after this page was shown. "
                "Nothing was done: check the page below, and press the button again"
            )
        if form.get("confirmed") != "yes":
            raise InputValueError("confirm that the budget may be spent. Nothing was spent")
        if self.account is None:
            raise LedgerError("the step 'Budget' is first: complete and save it")
        check_output(output)
        options = dict(schema=self.schema, neighbors=self.neighbors, privacy_unit=self.unit, **self.budget())
        options |= dict(output=output, ledger=ledger, dataset=self.stated["dataset"], mechanism=self.mechanism)
        job = self._start("release", lambda report: dpmoments.release(table, progress=report, **options))
        self.releases[self.request] = job, output.name
        self.request = secrets.token_hex(16)

    def _start(self, what: str, run: Callable[[Report], Any]) -> Job:
        if self.job is not None and self.job.running:
            raise InputValueError("the table is being read: wait, or stop that first")
        self.job = Job(what, run)
        return self.job

    def stop(self, _: Form) -> None:
        if self.job is not None:
            self.job.stop()

    def save_again(self, form: Form) -> None:
        """Save a release that could not be written, under another name."""
        request, (job, _) = next((key, made) for key, made in self.releases.items() if made[0].unsaved is not None)
        path = self.file(form.get("output", ""), ".json")
        job.unsaved.save(path)
        job.result, job.unsaved, job.error = job.unsaved, None, ""
        self.releases[request] = job, path.name

    def keep_unsaved(self) -> list[Path]:
        """Save releases that could not be written in a temporary folder; return their paths."""
        paths = []
        for job, name in self.releases.values():
            if job.unsaved is not None:
                paths.append(refuge(name))
                job.unsaved.save(paths[-1])
        return paths

    def opened(self, name: str) -> tuple[AnyRelease, Path]:
        """Read a release of the folder; return it with the path of its page."""
        path = self.file(name, ".json")
        if name not in self.names_of(".json"):
            raise InputFileNotFoundError(f"{name} does not exist")
        return dpmoments.load(path), self.file(f"{path.stem}.html", ".html")

    def report(self, form: Form) -> None:
        """Write the page of a release; replace one only if the form said so."""
        self._take("report", form)
        released, page = self.opened(form.get("file", ""))
        groups = [column_and_feature(line, released.runs[0].schema) for line in self._lines("groups")]
        dpmoments.report(
            released,
            page,
            regressions=self._lines("regressions"),
            groups=groups,
            title=self.stated["title"] or None,
            headline=self.stated["headline"] or None,
            overwrite=form.get("again") == "yes",
        )

    def _lines(self, name: str) -> list[str]:
        return [line.strip() for line in self.stated[name].splitlines() if line.strip()]

    def ledger_of(self, released: AnyRelease) -> Path | None:
        """Return the ledger if it was charged for a release."""
        entries = {run.origin.ledger.ledger for run in released.runs if run.origin.ledger is not None}
        known = self.ledger_path.exists() and dpmoments.Ledger(self.ledger_path).identity in entries
        return self.ledger_path if known else None

    # Commands that do the same.

    def commands(self, step: str, name: str) -> list[str]:
        """Return the commands of a step; none if something of it is not stated yet."""
        try:
            return [*self._commands(step, name)]
        except (TypeError, ValueError, OSError, LedgerError):
            return []

    def _commands(self, step: str, name: str) -> Iterator[str]:
        schema, table, ledger = ["--schema", str(self.schema_path)], self._table, str(self.ledger_path)
        unit, rows, absent = self.unit, list[str](), list[str]()
        if unit is not None:
            bound = [] if unit.max_rows is None else ["--max-rows-per-unit", str(unit.max_rows)]
            rows = ["--privacy-unit", unit.column, *bound]
            absent = ["--missing-unit", unit.missing]
        match step:
            case "table":
                marks = [f"--{mark}={text}" for mark, text in self.marks.items()]
                yield _command("init", "--output", str(self.schema_path), *marks, table=table)
            case "columns":
                text = format_yaml(self.schema.to_dict())
                yield f"cat > {shlex.quote(str(self.schema_path))} <<'END'\n{text}END"
            case "unit":
                yield _command("preflight", *schema, *rows, *absent, table=table)
            case "forecast":
                numbers = ["--n-rows", self.stated["n_rows"], *_options(self.budget())]
                numbers += ["--mechanism", self.mechanism]
                yield _command("forecast", *schema, *numbers, "--neighbors", self.neighbors, *rows)
            case "budget":
                amount = [*_options(self.budget("granted_")), "--neighbors", self.neighbors, *rows[:2]]
                why = _options({name: self.stated[name] for name in ("reason", "by")})
                yield _command("ledger", "grant", ledger, self.stated["dataset"], *amount, *why)
                yield _command("ledger", "show", ledger)
            case "release":
                spent = [*_options(self.budget()), "--neighbors", self.neighbors, *rows, *absent]
                spent += ["--mechanism", self.mechanism, "--ledger", ledger, "--dataset", self.stated["dataset"]]
                yield _command("release", *schema, *spent, "--output", str(self.file(name, ".json")), table=table)
            case "report" if name:
                path, (released, page) = self.folder / name, self.opened(name)
                charged = _options({"ledger": self.ledger_of(released)})
                yield _command("verify", str(path))
                asked = [text for line in self._lines("regressions") for text in ("--regression", line)]
                asked += [text for line in self._lines("groups") for text in ("--groups", line)]
                asked += _options({name: self.stated[name] for name in ("title", "headline")})
                yield _command("report", str(path), "--output", str(page), *asked)
                audit = shlex.quote(str(self.folder / f"{path.stem}-audit.txt"))
                yield f"{_command('show', str(path), '--audit', *charged)} > {audit}"


def _command(name: str, *words: str, table: str | DatabaseQuery | None = None) -> str:
    return " ".join(["dpmoments", name, *([] if table is None else [shell_arguments(table)]), shlex.join(words)])


def _options(given: Mapping[str, Any]) -> list[str]:
    return [text for name, value in given.items() if value for text in (f"--{name}", str(value))]


def _budget(form: Form) -> dict[str, Any]:
    given = {name: _number(form[name]) for name in ("epsilon", "delta", "rho") if form.get(name, "").strip()}
    PrivacyBudget.of(**given)
    return given


def _value(text: str) -> Any:
    """Read a text as in a schema file: a number, true or false; else the text."""
    try:
        value = parse_yaml(text)
    except (YAMLError, ValueError, RecursionError):  # a text that is not YAML is a text
        return text
    return value if isinstance(value, bool | int | float) else text


def _number(text: str) -> Any:
    """Return the number of a text; other texts unchanged, for the library to refuse."""
    value = _value(text.strip())
    return text if isinstance(value, bool) else value


def _item(line: str) -> str | int | float:
    """Read a missing value: a number unless it is in quotes."""
    number: str | int | float = _number(line)
    return line[1:-1] if len(line) > 1 and line[0] == line[-1] == '"' else number


def lines_of(values: Sequence[Any] | None) -> str:
    """Return levels or missing values for a form, one in each line."""
    texts = [(item, str(item)) for item in values or ()]
    quoted = [
        isinstance(item, str) and (_item(text) != text or text.strip() != text or not text) for item, text in texts
    ]
    return "\n".join(f'"{text}"' if in_quotes else text for (_, text), in_quotes in zip(texts, quoted, strict=True))


def _aliases(text: str, levels: Sequence[Any]) -> dict[Any, list[Any]]:
    """Read other spellings of levels, ``spelling = level`` in each line."""
    known, result = {str(level): level for level in levels}, dict[Any, list[Any]]()
    for line in filter(None, map(str.strip, text.splitlines())):
        parts = line.split("=")
        splits = [("=".join(parts[:cut]).strip(), "=".join(parts[cut:]).strip()) for cut in range(1, len(parts))]
        spelling, level = next((split for split in splits if split[1] in known), splits[-1] if splits else (line, ""))
        result.setdefault(known.get(level, level), []).append(_item(spelling))
    return result


def lines_of_aliases(aliases: Mapping[Any, Sequence[Any]] | None) -> str:
    """Return other spellings of levels for a form, ``spelling = level`` in each line."""
    pairs = [(level, spelling) for level, spellings in (aliases or {}).items() for spelling in spellings]
    return "\n".join(f"{lines_of([spelling])} = {level}" for level, spelling in pairs)


def _column(entries: Mapping[str, Any], form: Form, index: int) -> dict[str, Any]:
    """Return a column with the entries of its form; others stay, unless its kind changes."""
    kind = form.get(f"kind-{index}")
    if kind is None:  # a derived feature
        return dict(entries)
    same = entries.get("kind") in (None, kind)
    kept = {key: value for key, value in entries.items() if key not in _EDITED and (same or key in ("name", "source"))}
    made: dict[str, Any] = {**kept, "kind": kind or None}
    for name in (*ENTRIES_OF_KIND.get(kind, ("missing",)), *_OF_ANY_KIND):
        text = form.get(f"{name}-{index}", "").strip()
        if name in _LISTS:
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            items: list[Any] = [_item(line) for line in lines]
            if name == "levels" and not all(isinstance(item, int) for item in items):  # then all are texts
                items = [item if isinstance(item, str) else line for item, line in zip(items, lines, strict=True)]
            value: Any = items or None
        elif name == "aliases":
            value = _aliases(text, made.get("levels") or ()) or None
        elif name in ("strip", "casefold"):
            value = bool(text) or None
        else:
            value = (text if name in _TEXTS else _value(text)) if text else None
        if value is not None or name in ("lower", "upper", "levels"):
            made[name] = value
    return made


def _fault(entries: Mapping[str, Any]) -> str:
    if blank := blank_entries(entries):
        return blank
    try:
        column_from_dict(entries)
    except (TypeError, ValueError) as error:
        return explain(error)
    return ""
