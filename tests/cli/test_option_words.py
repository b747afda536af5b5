"""What a command prints names options, not keywords of Python; numbers are told how to be written; commands to copy are whole."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main

import dpmoments as dpm
from dpmoments.analysis.released import needs_mean
from dpmoments.base.text_files import TextFormat, other_delimiter
from dpmoments.cli import main
from dpmoments.cli.options import Option, options_of
from dpmoments.schema.document import parse_yaml
from support.said import refused

SCHEMA = """columns:
  - {name: a, kind: numeric, lower: 0, upper: 1}
  - {name: seen, kind: date, lower: 2020-01-01, upper: 2024-12-31}
"""
RELEASE = "release visits.csv --schema visits.yaml --delimiter ; --mechanism matrix-laplace --neighbors add_remove --epsilon 0.5"
UNIT = " --privacy-unit patient_id --max-rows-per-unit 3"


class Terminal:
    """Commands of one session, and what each printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def refused(self, command: str) -> str:
        assert main(command.split(" ")) in (1, 2)
        return self.capsys.readouterr().err

    def printed(self, command: str, code: int = 0) -> str:
        self.capsys.readouterr()
        assert main(command.split(" ")) == code
        return self.capsys.readouterr().out


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    cells = "".join(f"{row % 100};0.5;2021-03-04\n" for row in range(2_000))
    Path("visits.csv").write_text(f"patient_id;a;seen\n{cells}")
    Path("visits.yaml").write_text(SCHEMA)
    return Terminal(capsys)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("--n-rows 9.700 --epsilon 1", "--n-rows must be a whole number, got the text '9.700': write 9700"),
        ("--n-rows=1,234,567 --epsilon 1", "'1,234,567': write 1234567"),
        ("--n-rows 12.5 --epsilon 1", "'12.5': digits only"),
        ("--n-rows 9700 --epsilon 0,5", "--epsilon must be a number, got the text '0,5': write 0.5"),
        ("--n-rows 9700 --epsilon one", "'one': digits with a decimal point"),
    ],
)
def test_a_number_is_told_how_to_be_written(given: str, words: str, terminal: Terminal) -> None:
    assert words in terminal.refused(f"forecast --schema visits.yaml --neighbors add_remove {given}")


def test_cures_are_options(terminal: Terminal) -> None:
    refusal = terminal.refused(RELEASE.replace("--delimiter ; ", "") + " --output r.json")
    assert "would have 3 by \";\": pass --delimiter ';'" in refusal
    assert (
        "Create it with 'dpmoments ledger grant b.db people-2026 --epsilon 1 --neighbors add_remove'"
        in terminal.refused("ledger show b.db")
    )
    terminal.printed("ledger grant b.db people-2026 --epsilon 3 --neighbors add_remove")
    assert "name it with --dataset people-2026" in terminal.refused(f"{RELEASE} --output r.json --ledger b.db")
    refusal = terminal.refused(f"{RELEASE} --output r.json --ledger b.db --dataset other")
    assert "'dpmoments ledger grant b.db other --epsilon 1" in refusal
    asked = RELEASE.replace("0.5", "9") + " --output r.json --ledger b.db --dataset people-2026"
    assert "grant more with 'dpmoments ledger grant'" in terminal.refused(asked)
    Path("visits.csv").write_text("a;seen\n0,5;2020-01-31\n")
    refusal = terminal.refused(f"{RELEASE} --output r.json")
    assert "state how cells are written" in refusal
    assert "TextFormat" not in refusal


ASKED = "--schema visits.yaml --neighbors add_remove"


@pytest.mark.long(sets=6)
@pytest.mark.parametrize(
    "command",
    [
        "ridge r.json a --alpha -1",
        "pca r.json -k 30",
        "graphical-lasso r.json --alpha 0",
        f"forecast {ASKED} --n-rows 9 --epsilon 1 --typical-sd b=3",
        f"forecast {ASKED} --n-rows 9 --epsilon 1 --goal mean(b)±3",
        f"forecast-mean {ASKED} --n-rows 9 --rho 1 --delta 0.1",
        f"{RELEASE} --mechanism coinpress --option steps=0 --output s.json",
        f"{RELEASE} --decimal ; --output s.json",
        f"{RELEASE} --privacy-unit patient_id --output s.json",
        f"{RELEASE.replace('add_remove', 'replace_one')}{UNIT} --output s.json",
        "ledger grant b.db people-2026 --mu 0 --neighbors add_remove",
        "pool r.json others.json --output s.json",
    ],
)
def test_no_error_at_the_shell_has_a_keyword_of_python(command: str, terminal: Terminal) -> None:
    terminal.printed(f"{RELEASE} --output r.json --insecure-seed 1")
    other = RELEASE.replace("add_remove", "replace_one")
    terminal.printed(f"{other} --no-mean --output others.json --insecure-seed 2")
    refusal = terminal.refused(command)
    assert not re.search(r"\b[a-z_]+=|\w\(\)|\b(True|False|None)\b", re.sub(r"'[^']*'", "", refusal)), refusal


def test_arguments_are_written_as_the_reader_writes_them() -> None:
    tab = other_delimiter("age\tsex", ",", TextFormat(), lambda names: len(names) > 1)
    assert tab is not None
    assert tab.text("shell").endswith("pass --delimiter tab")
    assert tab.text("curator").endswith('pass delimiter="\\t"')
    assert needs_mean().text("shell").endswith("a release made without --no-mean has one")
    assert needs_mean().text("curator").endswith("a release made with mean=True has one")


def test_a_name_is_never_rewritten_as_an_option(tmp_path: Path) -> None:
    name = "use neighbors='none', pass overwrite=True, {} {argument:overwrite}"
    dpm.Ledger(tmp_path / "b.db").grant("other", epsilon=1.0)
    with refused("The ledger has no budget for dataset", dpm.LedgerError) as caught:
        dpm.Ledger(tmp_path / "b.db").account(name)
    assert f"'{name}'" in caught.value.text("shell")


@pytest.mark.long
def test_a_grant_for_rows_is_never_a_reason_to_protect_rows_alone(terminal: Terminal) -> None:
    charged = " --output r.json --ledger b.db --dataset people-2026"
    granted = terminal.printed("ledger grant b.db people-2026 --epsilon 3 --neighbors add_remove")
    assert "--privacy-unit" not in granted
    refusal = terminal.refused(RELEASE + UNIT + charged)
    assert "Nothing of it is spent yet: grant it again with --privacy-unit patient_id" in refusal
    assert "Release with" not in refusal
    granted = terminal.printed(
        "ledger grant b.db people-2026 --epsilon 3 --neighbors add_remove --privacy-unit patient_id"
    )
    assert "--privacy-unit patient_id --max-rows-per-unit K --output" in granted
    refusal = terminal.refused(RELEASE + charged)
    assert "Release with --privacy-unit patient_id --max-rows-per-unit K" in refusal
    terminal.printed(RELEASE + UNIT + charged)
    refusal = terminal.refused(RELEASE + UNIT.replace("patient_id", "ward") + charged.replace("r.json", "s.json"))
    assert "no column 'ward'" in refusal
    assert "grant" not in refusal
    refusal = terminal.refused(
        RELEASE + UNIT.replace("patient_id", "patients_id") + charged.replace("r.json", "s.json")
    )
    assert "did you mean 'patient_id'?" in refusal
    names = Path("visits.csv").read_text().splitlines()
    Path("visits.csv").write_text("\n".join([f"{names[0]};ward", *(f"{line};1" for line in names[1:])]))
    refusal = terminal.refused(RELEASE + UNIT.replace("patient_id", "ward") + charged.replace("r.json", "s.json"))
    assert "Release with --privacy-unit patient_id --max-rows-per-unit K" in refusal
    assert "Do not grant a second budget to the same people" in refusal


@pytest.mark.long
def test_what_a_unit_costs_is_said_beside_what_a_row_does(terminal: Terminal) -> None:
    terminal.printed(f"{RELEASE}{UNIT} --output r.json")
    assert "on a unit of 3 rows: no more than ε = 0.5, pure\n" in terminal.printed("show r.json")
    verified = " ".join(terminal.printed("verify r.json").split())
    assert "ε = 0.166667 of ε = 0.166667 on one row; on a unit of 3 rows: no more than ε = 0.5, pure, rec" in verified
    terminal.printed(f"{RELEASE} --output rows.json")
    assert "on a unit" not in terminal.printed("show rows.json")
    assert "on one row" not in terminal.printed("verify rows.json")


def test_times_of_the_history_are_whole_in_a_narrow_terminal(terminal: Terminal) -> None:
    terminal.printed("ledger grant b.db people-2026 --epsilon 3 --neighbors add_remove")
    terminal.printed(f"{RELEASE} --output r.json --ledger b.db --dataset people-2026")
    printed = terminal.printed("ledger history b.db")
    assert len(re.findall(r" \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", printed)) == 3
    assert "matrix-laplace" in printed
    ledger = dpm.Ledger("b.db")
    assert repr(ledger) == "Ledger('b.db')"
    grant, reserved, committed = ledger.history()
    assert str(grant).startswith(f"1 {grant.time} people-2026 grant: ε = 3, add_remove, row (")
    assert "reserve: ε = 0.5, pure, matrix-laplace, release " in repr(reserved)
    assert "commit: entry 2" in str(committed)
    for entry in ledger.history():
        assert not re.search(r"\d{16}", repr(entry))
    assert re.search(r"\d{16}", str(reserved.to_dict()))  # exact there


def test_init_writes_the_text_options_into_the_schema(terminal: Terminal) -> None:
    printed = terminal.printed(
        "init visits.csv --output my.yaml --delimiter ; --encoding latin-1 --decimal , --null k.A. --null ?"
    )
    first, second = re.findall(r"(?m)^  dpmoments (.*)$", printed)
    assert shlex.split(first) == ["preflight", "visits.csv", "--schema", "my.yaml"]
    assert second.startswith("forecast --schema my.yaml")
    written = Path("my.yaml").read_text()
    assert "--privacy-unit patient_id --max-rows-per-unit K" in written
    assert "docs/people-not-rows.md" in written
    stated = {"delimiter": ";", "encoding": "latin-1", "decimal": ",", "nulls": ["k.A.", "?"]}
    assert parse_yaml(written)["text_format"] == stated


def test_options_override_the_schemas_text_format_one_by_one(terminal: Terminal) -> None:
    schema = dpm.Schema(dpm.Numeric("a", 0, 1), text_format=dpm.TextFormat(delimiter=";", decimal=",", nulls=["?"]))
    schema.save("f.yaml")
    Path("f.csv").write_text("a;b\n0,5;1\n?;2\n")
    assert "1 of 2 cells of a" in terminal.printed("preflight f.csv --schema f.yaml", code=1)
    Path("f.csv").write_text("a;b\n0.5;1\n?;2\n")
    assert "1 of 2 cells of a (50.0%) are missing" in terminal.printed(
        "preflight f.csv --schema f.yaml --decimal .", code=1
    )


def test_commands_follow_the_signatures_of_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[dict[str, Any]] = []

    def ask(schema: dpm.Schema, *, n_rows: int, mean: bool = True, rho: float | None = None, threads: int = 1) -> None:
        """A function without words of its own for the command line."""

    monkeypatch.setattr(dpm.Schema, "load", lambda path: f"schema of {path}")

    @options_of(ask, own={"n_rows": Option("How many.", default=7)})
    def command(options: dict[str, Any], loud: bool = False) -> None:
        heard.append(options | {"loud": loud})

    app = typer.Typer()
    app.command()(command)
    typer.main.get_command(app).main(["--schema", "s.yaml", "--no-mean", "--loud"], standalone_mode=False)
    assert heard == [{"schema": "schema of s.yaml", "n_rows": 7, "mean": False, "rho": None, "loud": True}]


def test_a_new_parameter_without_words_is_found() -> None:
    def ask(*, mean: bool = True, color: str = "red") -> None:
        """A parameter that no option is described for."""

    with pytest.raises(AssertionError, match="color"):
        options_of(ask)
    assert callable(options_of(ask, leave_out=("color",))(lambda _: None))
