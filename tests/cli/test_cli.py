"""The command line: every command on real files, every bad input with its exit code, and never a cell in a message."""

from __future__ import annotations

import functools
import importlib.metadata
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
import yaml
from rich.cells import cell_len

import dpmoments as dpm
from contracts.cases import CASES, COMPARISONS, Case
from dpmoments.analysis.answers import aligned
from dpmoments.audit.verification import checks
from dpmoments.base.errors import InputError
from dpmoments.base.message import Message
from dpmoments.cli import main
from dpmoments.cli.output import explain
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS
from dpmoments.schema.drafting import Header, HeaderColumn, _read_header, _schema_template
from dpmoments.spending.run import NOTHING_SPENT
from support.forged_files import forge, more_noise, smaller_budget_everywhere
from support.said import Said, refused

COMMANDS = shlex.split(
    "init preflight forecast forecast-mean forecast-counts release release-mean release-counts desk "
    "ledger mechanisms audit show report describe ridge pca groups pool synthetic verify"
)
SECRET = "cell-nobody-may-see"
SCRIPT = Path(sys.executable).with_name("dpmoments")


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """Standard output with every run of blanks as one."""
        return " ".join(self.out.split())

    @property
    def error(self) -> str:
        return " ".join(self.err.split())


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process; whatever happens, no traceback and no secret."""

    def run_command(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        for text in captured:
            assert "Traceback" not in text
            assert SECRET not in text
        return Outcome(code, captured.out, captured.err)

    return run_command


def people_table(n_rows: int = 2_000) -> pa.Table:
    rng = np.random.default_rng(5)
    age = rng.uniform(18, 80, n_rows)
    region = rng.choice(["north", "south", "east"], n_rows)
    income = 1_000 * age + 10_000 * (region == "north") + rng.normal(0, 3_000, n_rows)
    return pa.table({"age": age, "income": income, "region": region, "employed": rng.random(n_rows) < 0.6})


SCHEMA_TEXT = """
columns:
  - {name: age, kind: numeric, lower: 0, upper: 100}
  - {name: income, kind: numeric, lower: 0, upper: 120000}
  - {name: region, kind: categorical, levels: [north, south, east], other: zero}
  - {name: employed, kind: boolean}
"""


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with people.parquet, people.csv and people.yaml, for all tests."""
    made = tmp_path_factory.mktemp("people")
    pq.write_table(people_table(), made / "people.parquet")
    pa_csv.write_csv(people_table(), made / "people.csv")
    (made / "people.yaml").write_text(SCHEMA_TEXT)
    return made


@pytest.fixture(autouse=True)
def folder(people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An otherwise empty current folder with the files of people."""
    monkeypatch.chdir(tmp_path)
    for file in people.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path


def release_command(*extra: str, data: str = "people.parquet", **changes: str | None) -> list[str]:
    """A release that works, with options replaced, or left out where None."""
    options: dict[str, str | None] = {
        "schema": "people.yaml",
        "epsilon": "1",
        "neighbors": "add_remove",
        "output": "people.json",
    }
    options |= {name.replace("_", "-"): value for name, value in changes.items()}
    given = [word for name, value in options.items() if value is not None for word in (f"--{name}", value)]
    counted = [] if "--ledger" in (*given, *extra) else ["--no-ledger"]
    return ["release", data, *given, *counted, *extra]


@pytest.fixture(scope="module")
def released_people(people: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    released = tmp_path_factory.mktemp("released") / "people.json"
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        patch.chdir(people)
        seeded = ("--insecure-seed", "3")
        assert main(release_command(*seeded, mechanism="matrix-laplace", output=str(released))) == 0
    return released


@pytest.fixture
def people_json(released_people: Path, folder: Path) -> Path:
    return Path(shutil.copy(released_people, folder))


# ---------------------------------------------------------------- help


def test_top_level_help_says_the_order_and_lists_every_command(run: Run) -> None:
    for arguments in ([], ["--help"], ["-h"]):
        outcome = run(*arguments)
        assert outcome.code == 0
        assert "init → preflight → forecast → release → show" in outcome.out
        for command in COMMANDS:
            assert re.search(rf"│ {command} ", outcome.out), command


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_an_example_of_it(run: Run, command: str) -> None:
    outcome = run(command, "--help")
    assert outcome.code == 0
    assert re.search(r"Examples?:", outcome.out)
    assert re.search(rf"(?m)^ +dpmoments {command}\b", outcome.out)


def test_the_entry_point_of_the_package_runs_main(capsys: pytest.CaptureFixture[str]) -> None:
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="dpmoments")
    assert script.load()(["--version"]) == main(["--version"]) == 0
    assert capsys.readouterr().out == f"dpmoments {dpm.__version__}\n" * 2


@pytest.mark.long
def test_as_a_process(folder: Path) -> None:
    """The installed script: a terminal that cannot show ε still gets an answer."""
    command, ascii_alone = release_command(mechanism="matrix-laplace"), {"PYTHONIOENCODING": "ascii", "PATH": ""}
    done = subprocess.run([SCRIPT, *command], capture_output=True, text=True, cwd=folder, env=ascii_alone)
    assert (done.returncode, done.stderr) == (0, "")
    assert "?-differential privacy" in done.stdout


@pytest.mark.long
def test_a_reader_that_goes_away_is_no_reason_for_a_message(people_json: Path) -> None:
    piped = subprocess.Popen([SCRIPT, "show", people_json], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert piped.stdout is not None
    assert piped.stderr is not None
    piped.stdout.close()
    assert piped.stderr.read() == b""
    piped.stderr.close()
    piped.wait()


# ---------------------------------------------------------------- init


def test_init_writes_names_and_kinds_and_blanks(run: Run) -> None:
    outcome = run("init", "people.parquet", "--output", "new.yaml")
    assert outcome.code == 0
    text = Path("new.yaml").read_text()
    columns = yaml.safe_load(text)["columns"]
    kinds = {"age": "numeric", "income": "numeric", "region": "categorical", "employed": "boolean"}
    assert {column["name"]: column["kind"] for column in columns} == kinds
    blank = {"name": "age", "kind": "numeric", "lower": None, "upper": None, "missing": "error"}
    assert (columns[0], columns[2]["levels"]) == (blank, None)
    with refused(".yaml: ", advice=Said("Fill these in from public knowledge")):
        dpm.Schema.load("new.yaml")
    filled = re.sub(r"(?m)^( *)lower:(  #.*)?$", r"\1lower: 0", re.sub(r"(?m)^( *)upper:$", r"\1upper: 1", text))
    Path("filled.yaml").write_text(filled.replace("levels:\n", "levels: [north, south]\n"))
    assert dpm.Schema.load("filled.yaml").names == tuple(kinds)


def test_init_of_a_text_file_guesses_nothing(run: Run) -> None:
    assert run("init", "people.csv", "--output", "new.yaml").code == 0
    columns = yaml.safe_load(Path("new.yaml").read_text())["columns"]
    assert [column["name"] for column in columns] == ["age", "income", "region", "employed"]
    assert {column["kind"] for column in columns} == {None}
    outcome = run(*release_command(schema="new.yaml"))
    assert outcome.code == 1
    for name in ("age", "income", "region", "employed"):
        assert f"column '{name}' has no kind" in outcome.error


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_template_is_a_function_of_the_header_alone(run: Run, ending: str) -> None:
    """Neighboring tables, as far apart as can be, give the same bytes; so does an empty one."""
    tables = {
        "usual": people_table(50),
        "empty": people_table(50)[:0],
        "odd": pa.table(
            {"age": [np.nan, 1e300], "income": [0.0, -1.0], "region": [SECRET, None], "employed": [True, None]}
        ),
    }
    texts = set()
    for name, table in tables.items():
        Path(name).mkdir()
        (pq.write_table if ending == "parquet" else pa_csv.write_csv)(table, f"{name}/people.{ending}")
        assert run("init", f"{name}/people.{ending}", "--output", f"{name}.yaml").code == 0
        texts.add(Path(f"{name}.yaml").read_text().replace(f"{name}/people", "people"))
    assert len(texts) == 1
    # planted fault: a template that took its types from the cells of a text file would tell the tables apart
    inferred = {str(pa_csv.read_csv(f"{name}/people.csv").schema) for name in tables if ending == "csv"}
    assert ending == "parquet" or len(inferred) > 1


def test_init_never_overwrites(run: Run) -> None:
    before = Path("people.yaml").read_bytes()
    outcome = run("init", "people.parquet")
    assert outcome.code == 1
    assert "people.yaml exists already" in outcome.error
    assert Path("people.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        (pa.int8(), "numeric"),
        (pa.uint64(), "numeric"),
        (pa.float16(), "numeric"),
        (pa.decimal128(8, 2), "numeric"),
        (pa.bool_(), "boolean"),
        (pa.string(), "categorical"),
        (pa.large_string(), "categorical"),
        (pa.dictionary(pa.int32(), pa.string()), "categorical"),
        (pa.dictionary(pa.int32(), pa.int64()), "numeric"),
        (pa.timestamp("us"), "date"),
        (pa.date32(), "date"),
        (pa.duration("us"), None),
        (pa.list_(pa.float64()), None),
        (pa.null(), None),
        (pa.binary(), None),
    ],
)
def test_kinds_follow_from_declared_types(declared: Any, kind: str | None) -> None:
    column = HeaderColumn("x", declared)
    assert column.kind == kind
    (written,) = yaml.safe_load(_schema_template(Header((column,)), "table"))["columns"]
    assert written["kind"] == kind
    assert ("lower" in written) == (kind in ("numeric", "date"))
    assert ("levels" in written) == (kind == "categorical")


@pytest.mark.parametrize("name", ['a "quoted": # name', "yes", "1e3", "a\nb"])
def test_any_name_survives_the_template(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({name: [1.0]}), tmp_path / "table.parquet")
    text = _schema_template(_read_header(tmp_path / "table.parquet"), f"some\n{name}.parquet")
    assert [column["name"] for column in yaml.safe_load(text)["columns"]] == [name]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"39,Private,13\n40,Private,9\n", "holds numbers in place of column names"),
        ("t.csv", b"", "has no columns"),
        ("t.csv", b",\n1,2\n", "no columns with names"),
        ("t.csv", b"age;sex\n1;2\n", "would have 2 by \";\": pass --delimiter ';'"),
        ("t.csv", b"a,b,a\n1,2,3\n", "two columns with the same name"),
        ("t.csv", b"\xff\xfe\x00a\n", "not a text file in UTF-8"),
        ("t.csv.gz", b"not compressed\n", "cannot be read"),
        ("t.parquet", b"PAR1 and then nothing", "damaged, truncated, or not a Parquet file"),
        ("t.docx", b"", "is not supported"),
        ("t.xlsx", b"", "not a workbook"),
    ],
)
def test_init_refuses_what_it_cannot_read(tmp_path: Path, run: Run, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    outcome = run("init", tmp_path / name, "--output", tmp_path / "t.yaml")
    assert outcome.code == 1
    assert message in outcome.error
    assert not (tmp_path / "t.yaml").exists()


def test_init_of_a_missing_file_and_into_a_missing_folder(run: Run) -> None:
    assert "no file matches 'nowhere.parquet'" in run("init", "nowhere.parquet").error
    outcome = run("init", "people.parquet", "--output", "nowhere/people.yaml")
    assert (outcome.code, outcome.error) == (1, "dpmoments: the folder nowhere does not exist: make it first")


# ---------------------------------------------------------------- forecast


@pytest.mark.long
def test_forecast_prints_what_the_library_computes(run: Run) -> None:
    budget = ("--rho", "0.5", "--neighbors", "replace_one")
    expected = dpm.forecast(dpm.Schema.load("people.yaml"), n_rows=5_000, rho=0.5, neighbors="replace_one")
    outcome = run("forecast", "--schema", "people.yaml", "--n-rows", "5000", *budget)
    assert outcome.code == 0
    row = expected["gaussian"]
    assert f"gaussian {row.correlation_error:.2g} {row.mean_error:.2g} exact-lattice" in outcome.words
    assert "isotropic, laplace, matrix-laplace (needs ε alone)" in outcome.words
    assert outcome.words.count("cannot run here") == 1
    printed = json.loads(run("forecast", "--schema", "people.yaml", "--n-rows", "5000", *budget, "--json").out)
    assert [entry["mechanism"] for entry in printed["mechanisms"]] == [row.mechanism for row in expected]
    assert [entry["correlation_error"] for entry in printed["mechanisms"]] == [
        row.correlation_error for row in expected
    ]


# ---------------------------------------------------------------- release


def test_every_option_reaches_the_library(run: Run) -> None:
    command = release_command(
        "--no-mean", "--option", "calibration=paper", "--insecure-seed", "9",
        mechanism="kapralov-talwar", repair="clip", n_rows="2000", neighbors="replace_one", epsilon="0.5",
    )  # fmt: skip
    assert run(*command).code == 0
    expected = dpm.release(
        "people.parquet", dpm.Schema.load("people.yaml"), epsilon=0.5, neighbors="replace_one",
        mechanism=dpm.mechanisms.KapralovTalwar(calibration="paper"), mean=False, repair="clip", n_rows=2000, insecure_seed=9,
    )  # fmt: skip
    released = dpm.load("people.json")
    np.testing.assert_array_equal(released.noisy_gram, expected.noisy_gram)
    assert released.mechanism_options == expected.mechanism_options
    assert (released.repair, released.noisy_sum) == (expected.repair, None)
    assert released.privacy == expected.privacy


def test_an_insecure_seed_is_shouted_about(run: Run) -> None:
    outcome = run(*release_command("--insecure-seed", "1"))
    assert outcome.code == 0
    assert outcome.err.startswith("Warning: NOT PRIVATE.")
    assert "NOT PRIVATE" in outcome.out
    assert "NOT PRIVATE" in run("show", "people.json").out
    verified = run("verify", "people.json")
    assert verified.code == 0
    assert verified.err.startswith("Warning: NOT PRIVATE")
    assert "NOT PRIVATE" not in "".join(run(*release_command(output="secure.json")).out)


@pytest.mark.long
def test_the_default_says_what_it_chose_and_why(run: Run) -> None:
    outcome = run(*release_command(mechanism=None))
    assert outcome.code == 0
    shown = run("show", "people.json").words
    assert "mechanism: standardized" in shown
    assert dpm.load("people.json").chosen_because.code == "rough-private-scales"
    assert f"Chosen: {dpm.load('people.json').chosen_because}" in shown


def test_a_warning_of_the_library_is_one_line(run: Run) -> None:
    outcome = run(*release_command(delta="0.1", neighbors="replace_one", mechanism="gaussian"))
    assert outcome.code == 0
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith("Warning: delta=0.1 is too large for")


def test_a_table_whose_rows_are_all_dropped_is_released_like_any_other(run: Run) -> None:
    Path("people.yaml").write_text("columns:\n  - {name: region, kind: categorical, levels: [nowhere]}\n")
    assert run(*release_command(epsilon="1000")).code == 0
    assert dpm.load("people.json").n_rows == 1


def mean_command(*extra: str, data: str = "people.parquet", **changes: str | None) -> list[str]:
    """A release of a mean that works, with options replaced, or left out where None."""
    options = {"epsilon": None, "rho": "0.5", "output": "mean.json"} | changes
    _, *arguments = release_command(*extra, data=data, **options)
    return ["release-mean", *arguments]


FORECAST = ("forecast", "--schema", "people.yaml", "--epsilon", "1", "--neighbors", "add_remove")
SD = "--standard-deviation"
FORECAST_MEAN = (
    *("forecast-mean", "--schema", "people.yaml", "--n-rows", "5000"),
    *("--rho", "0.5", "--neighbors", "replace_one"),
)

MISTAKES: dict[str, tuple[list[str], int, str]] = {
    "no budget": (release_command(epsilon=None), 2, "none was given"),
    "two budgets": (release_command(rho="1"), 2, "not both"),
    "negative epsilon": (release_command(epsilon="-1"), 2, "epsilon must be positive and finite"),
    "epsilon in words": (release_command(epsilon="one"), 2, "--epsilon"),
    "delta beside rho": (release_command(epsilon=None, rho="1", delta="1e-6"), 2, "delta goes with epsilon"),
    "delta of a pure mechanism": (
        release_command(delta="1e-6", mechanism="laplace"), 1, "give it --epsilon only (--delta = 0)",
    ),
    "no delta for gaussian": (release_command(mechanism="gaussian"), 1, "give it --epsilon and --delta > 0 or --rho"),
    "no neighbors": (release_command(neighbors=None), 2, "Missing option '--neighbors'"),
    "unknown neighbors": (release_command(neighbors="both"), 2, "'add_remove', 'replace_one'"),
    "no schema": (release_command(schema=None), 2, "Missing option '--schema'"),
    "unknown mechanism": (release_command(mechanism="laplac"), 2, "Unknown mechanism 'laplac'. Did you mean 'laplace'?"),
    "unknown option of a mechanism": (
        release_command("--option", "scale=1", mechanism="kapralov-talwar"),
        2, "no option 'scale': its options are rank, calibration",
    ),
    "option of none": (
        release_command("--option", "scale=1", mechanism="matrix-laplace"), 2, "it takes no options",
    ),
    "option without value": (release_command("--option", "rank", mechanism="kapralov-talwar"), 2, "not key=value"),
    "option of a wrong value": (
        release_command("--option", "calibration=loose", mechanism="kapralov-talwar"), 2, "use 'tight' or 'paper'",
    ),
    "unknown flag": (release_command("--private"), 2, "No such option"),
    "several paths": (release_command("people.csv"), 2, "put a glob in quotes"),
    "wrong n_rows": (release_command(n_rows="7", neighbors="replace_one"), 1, "leave it out"),
    "no table": (release_command(data="nobody.parquet"), 1, "no file matches 'nobody.parquet'"),
    "unknown ending": (release_command(data="people.yaml"), 1, "endings must be"),
    "no schema file": (release_command(schema="nobody.yaml"), 1, "nobody.yaml: No such file or directory"),
    "output exists": (release_command(output="people.yaml"), 1, "exists already"),
    "of a mean: pure budget of another mechanism": (
        mean_command(rho=None, epsilon="1", mechanism="variance-aware"), 1, "give it --epsilon and --delta > 0 or --rho",
    ),
    "of a mean: flag without a mechanism": (mean_command("--radius", "1"), 2, "--radius: auto has no options"),
    "of a mean: flag of another mechanism": (
        mean_command("--radius", "1", mechanism="variance-aware"), 2, "--radius: mechanism 'variance-aware' has no option",
    ),
    "of a mean: flag and option": (
        mean_command("--radius", "1", "--option", "radius=2", mechanism="symq"), 2, "'radius' is given twice",
    ),
    "of a mean: negative radius": (mean_command("--radius", "-1", mechanism="symq"), 2, "must be a positive finite number"),
    "of a mean: wrong relation": (mean_command(mechanism="symq"), 1, "not defined under add_remove: use replace_one"),
    "forecast of 0 rows": ([*FORECAST, "--n-rows", "0"], 2, "--n-rows"),
    "standard deviation income=": ([*FORECAST_MEAN, SD, "income="], 2, "'income=' is neither a number"),
    "standard deviation twice": ([*FORECAST_MEAN, SD, "3", SD, "income=4"], 2, "'3' is for all features: leave the others out"),
    "standard deviation of income twice": ([*FORECAST_MEAN, SD, "income=3", SD, "income=4"], 2, "'income' is given twice"),
    "standard deviation incom=3": ([*FORECAST_MEAN, SD, "incom=3"], 1, "standard deviation: 'incom' matches none of the names"),
    "ridge released.json height": (["ridge", "released.json", "height"], 1, "Unknown feature 'height'."),
    "ridge released.json region": (["ridge", "released.json", "region"], 1, "Name one of its features"),
    "ridge of a feature on itself": (["ridge", "released.json", "income", "--feature", "income"], 1, "leave it out"),
    "ridge released.json income --alpha -1": (["ridge", "released.json", "income", "--alpha", "-1"], 1, "a positive number"),
    "pca released.json -k 7": (["pca", "released.json", "-k", "7"], 1, "from 1 to 6"),
    "show nobody.json": (["show", "nobody.json"], 1, "nobody.json: No such file or directory"),
    "show people.parquet": (["show", "people.parquet"], 1, "not a release"),
    "summon released.json": (["summon", "released.json"], 2, "No such command 'summon'"),
    "median released.json": (["median", "released.json"], 1, "a release has no median: quantiles need the order of the values"),
    "a folder for output": (release_command(output="."), 1, "is a folder"),
    "no folder for output": (release_command(output="nowhere/a.json"), 1, "does not exist: make it first"),
    "magic": (["mechanisms", "magic"], 2, "Unknown mechanism 'magic'."),
}  # fmt: skip


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_refused_in_a_line_or_two(folder: Path, run: Run, mistake: str) -> None:
    command, code, message = MISTAKES[mistake]
    if "released.json" in command:
        assert run(*release_command(output="released.json", mechanism="matrix-laplace")).code == 0
    before = {path: path.read_bytes() for path in folder.iterdir()}
    outcome = run(*command)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.error
    assert 1 <= outcome.err.count("\n") <= 2
    assert outcome.err.startswith("dpmoments")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


UNREADABLE = "has a cell that is missing, not finite or not readable"


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (f"{SECRET},1\n", UNREADABLE),
        ("1,2\n,3\n", UNREADABLE),
        ("1,2\ninf,3\n", UNREADABLE),
        (f"1,2,{SECRET}\n", "cannot be read"),
        (f'1,"{SECRET}\n', UNREADABLE),
        (f"{SECRET}\xff,2\n", UNREADABLE),
    ],
)
def test_cells_that_cannot_be_are_never_shown(run: Run, cells: str, message: str) -> None:
    Path("people.yaml").write_text(
        "columns:\n  - {name: age, kind: numeric, lower: 0, upper: 9}\n  - {name: x, kind: numeric, lower: 0, upper: 9}\n"
    )
    Path("people.csv").write_bytes(("age,x\n" + cells).encode("latin-1"))
    outcome = run(*release_command(data="people.csv"))
    assert outcome.code == 1
    assert message in outcome.error
    assert not Path("people.json").exists()


def test_a_first_line_that_is_a_record_is_never_shown(run: Run) -> None:
    Path("people.csv").write_text(f"39,{SECRET}\n40,{SECRET}\n")
    for command in (release_command(data="people.csv"), ["init", "people.csv", "--output", "new.yaml"]):
        outcome = run(*command)
        assert outcome.code == 1
        assert "first line" in outcome.error or "has no column 'age'" in outcome.error


def test_a_table_named_where_another_file_belongs_is_never_shown(run: Run) -> None:
    for content in (
        f"a: b: {SECRET}\n",
        f"&{SECRET} *{SECRET}\n",
        f"!{SECRET} 1\n",
        f'{{"x": {SECRET}\n',
        f"{SECRET}\xff\n",
    ):
        Path("table.csv").write_bytes(content.encode("latin-1"))
        for command in (release_command(schema="table.csv"), ["show", "table.csv"], ["verify", "table.csv"]):
            assert run(*command).code == 1


def test_output_is_refused_before_the_table_is_looked_at(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr(dpm, "release", lambda *_, **__: pytest.fail("the table was looked at"))
    outcome = run(*release_command(output="people.json"))
    assert outcome.code == 1
    assert "cannot write in .: Permission denied; nothing was spent" in outcome.error


class Terminal(io.StringIO):
    """Standard input with a person behind it."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("what", ["release", "release-mean"])
@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("", 130)])
def test_a_person_is_asked_before_anything_is_spent(
    run: Run, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, what: str
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    command = release_command if what == "release" else mean_command
    outcome = run(*command("--no-progress", output="asked.json"))
    assert outcome.code == code
    spent = "ε = 1, pure" if what == "release" else "0.5-zCDP"
    mechanism = "auto" if what == "release" else "bounded-sums"
    assert f"Spend {spent} (add_remove) on people.parquet: 6 features, mechanism {mechanism}" in outcome.error
    assert Path("asked.json").exists() == (code == 0)
    assert (NOTHING_SPENT in outcome.error.casefold()) == (code == 1)


def test_yes_is_not_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    outcome = run(*release_command("--yes", "--no-progress", mechanism="matrix-laplace"))
    assert (outcome.code, outcome.err) == (0, "")


def test_progress_stays_off_standard_output(run: Run) -> None:
    with_bar = run(*release_command("--progress", "--insecure-seed", "1", output="a.json"))
    without = run(*release_command("--no-progress", "--insecure-seed", "1", output="b.json"))
    assert with_bar.code == without.code == 0
    assert with_bar.out.replace("a.json", "b.json") == without.out


def test_a_keyboard_interrupt_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    @functools.wraps(dpm.release)  # the command's options are its parameters
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dpm, "release", interrupted)
    outcome = run(*release_command())
    assert (outcome.code, outcome.error) == (130, "dpmoments: stopped")


def test_errors_of_other_code_are_told_without_their_words(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    @functools.wraps(dpm.release)
    def defect(*_: object, **__: object) -> None:
        float(SECRET)

    monkeypatch.setattr(dpm, "release", defect)
    outcome = run(*release_command())
    assert outcome.code == 1
    assert re.search(r"unexpected ValueError at test_cli.py:\d+; its message is withheld", outcome.error)


def test_own_words_are_those_of_a_raise_in_the_library() -> None:
    def caught(call: Callable[[], object]) -> Exception:
        try:
            call()
        except Exception as error:
            return error
        raise AssertionError("nothing was raised")

    own = caught(lambda: dpm.PrivacyBudget.pure(-1.0))
    assert isinstance(own, InputError)
    assert "got -1.0" in explain(own)
    # numpy refuses a cell inside a call that the library makes: the frame is ours, the words are not
    foreign = caught(lambda: dpm.rows.Rows.of(np.zeros((1, 1)), dpm.Schema.unit_ball(1)).histogram(len, [SECRET, "b"]))
    assert isinstance(foreign, ValueError)
    assert SECRET in str(foreign)
    assert not isinstance(foreign, InputError)
    assert SECRET not in explain(foreign)


# ---------------------------------------------------------------- release-mean, and what is done with it


@pytest.fixture
def mean_json(folder: Path, run: Run) -> Path:
    assert run(*mean_command("--insecure-seed", "3", mechanism="variance-aware")).code == 0
    return folder / "mean.json"


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_release_mean_writes_what_the_library_makes(run: Run, neighbors: str) -> None:
    outcome = run(*mean_command("--insecure-seed", "3", neighbors=neighbors))
    assert outcome.code == 0
    assert outcome.err.startswith("Warning: NOT PRIVATE.")
    released = dpm.load("mean.json")
    expected = dpm.release_mean(
        "people.parquet", dpm.Schema.load("people.yaml"), rho=0.5, neighbors=neighbors, insecure_seed=3
    )
    assert released.to_dict() == expected.to_dict()
    exactness = {"add_remove": "noisy", "replace_one": "exact"}[neighbors]
    assert (
        f"Wrote mean.json: the mean of {released.n_rows:,} rows ({exactness}), 6 features from 4 columns, by"
        in outcome.words
    )
    assert " ".join(released.privacy.describe().split()) in outcome.words
    assert "dpmoments show mean.json" in outcome.out


def test_every_option_of_release_mean_reaches_the_library(run: Run) -> None:
    command = mean_command(
        "--option", "clip=gaussian", "--option", "split=[1, 3]", "--radius", "2", "--scale", "0.25", "--insecure-seed", "9",
        mechanism="coinpress", rho=None, epsilon="0.5", delta="1e-9", data="people.csv",
    )  # fmt: skip
    assert run(*command).code == 0
    expected = dpm.release_mean(
        "people.csv", dpm.Schema.load("people.yaml"), epsilon=0.5, delta=1e-9, neighbors="add_remove", mechanism="coinpress",
        radius=2.0, scale=0.25, clip="gaussian", split=(1, 3), insecure_seed=9,
    )  # fmt: skip
    released = dpm.load("mean.json")
    assert released.mechanism_options == expected.mechanism_options
    assert released.to_dict() == expected.to_dict()
    command = mean_command(
        "--radius", "2", "--option", "quantile=0.4", mechanism="symq", neighbors="replace_one", output="b.json"
    )
    assert run(*command).code == 0
    assert dpm.load("b.json").mechanism_options == {"radius": 2.0, "quantile": 0.4}


def test_release_mean_warns_in_a_line_and_show_repeats_it(run: Run) -> None:
    outcome = run(*mean_command("--radius", "0.001", "--scale", "1e-6", mechanism="coinpress"))
    assert outcome.code == 0
    clipped, beyond = outcome.err.splitlines()
    assert clipped == f"Warning: {Message('rows-mostly-clipped').text('shell')}"
    assert beyond == f"Warning: {Message('mean-beyond-radius').text('shell')}"
    assert f"Warning: {Message('rows-mostly-clipped')}" in run("show", "mean.json").words
    warnings = json.loads(run("show", "mean.json", "--json").out)["warnings"]
    assert [one["code"] for one in warnings] == ["rows-mostly-clipped", "mean-beyond-radius"]


def test_show_of_a_mean_release(mean_json: Path, run: Run) -> None:
    released = dpm.load(mean_json)
    outcome = run("show", mean_json)
    assert (outcome.code, outcome.err) == (0, "")
    assert " ".join(released.privacy.describe().split()) in outcome.words
    for what, _, _, loss in released.receipt.lines():
        assert what in outcome.words
        assert loss in outcome.words
    assert "together of ρ = 0.5 ρ = 0.5" in outcome.words
    assert "Mean only: no second moment was released" in outcome.words
    assert f"by variance-aware, 0.5-zCDP, add_remove rows: {released.n_rows:,} (noisy)" in outcome.words
    assert "income numeric 0 to 120000 error" in outcome.words
    for name, mean, noise in released.table()[1:]:
        assert f"{name} {mean} {noise}" in outcome.words
    assert "± noise: SD of the privacy noise on the mean of the clipped rows." in outcome.words
    shown = json.loads(run("show", mean_json, "--json").out)
    assert shown.keys() == {
        "origin", "privacy", "receipt", "mechanism", "mechanism_options", "warnings", "schema", "n_rows", "feature_names", "mean",
        "mean_noise", "noise",
    }  # fmt: skip
    assert shown["mean_noise"] == released.standard_errors.tolist()
    assert shown["noise"] == released.noise.to_dict()
    assert shown["receipt"] == released.receipt.to_dict()
    assert shown["mean"] == released.mean.tolist()
    assert dpm.Schema.from_dict(shown["schema"]) == released.schema


def test_verify_of_a_mean_release(mean_json: Path, run: Run) -> None:
    outcome = run("verify", mean_json)
    assert outcome.code == 0
    assert outcome.err.startswith("Warning: NOT PRIVATE")
    for check in ("checksum", "finite", "number of rows", "rules", "receipt adds up to the stated", "known mechanism"):
        assert re.search(rf"(?m)^ok +.*{check}", outcome.out), check
    assert "shows that the file is consistent; it does not show that the draws took place" in outcome.words
    forge(mean_json, lambda content: content.update(mechanism="magic"))
    outcome = run("verify", mean_json)
    assert outcome.code == 0  # it may come from outside the library: that cannot be told
    assert "this library has no mechanism 'magic' for such a release" in outcome.words
    forge(mean_json, lambda content: content.update(mechanism="naive", mechanism_options={}))
    outcome = run("verify", mean_json)
    assert outcome.code == 1
    assert "FAILED    known mechanism" in outcome.out
    assert "is inconsistent: known mechanism" in outcome.error


# ---------------------------------------------------------------- show, ridge, pca


def test_show_prints_the_statement_the_receipt_the_schema_and_the_moments(people_json: Path, run: Run) -> None:
    released = dpm.load(people_json)
    outcome = run("show", people_json)
    assert (outcome.code, outcome.err) == (0, "")
    assert " ".join(released.privacy.describe().split()) in outcome.words
    assert "income numeric 0 to 120000 error" in outcome.words
    assert "region categorical north, south, east error" in outcome.words
    assert f"rows: {released.n_rows:,} ± " in outcome.words
    for row in released.describe().table()[1:]:
        assert " ".join(row) in outcome.words
    (made,) = released.receipt.draws
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    head = lines.index("noised law sensitivity loss")
    assert lines[head + 1 : head + 3] == [
        f"count, sum and Gram matrix matrix-laplace gram_nuclear = {made.sensitivity.value / made.sensitivity.units:.6g} ε = 1",
        "together of ε = 1 ε = 1",
    ]
    place = outcome.words.index
    assert place("Made by dpmoments") < place("Receipt:") < place("together") < place("mechanism: matrix-laplace")


def test_show_says_in_which_unit_a_budget_is_counted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gaussian noise under (ε, δ) adds up in ρ: the last line compares like with like."""
    monkeypatch.setenv("COLUMNS", "200")  # no line is folded
    Path("scales.yaml").write_text("columns:\n  - {name: income, kind: numeric, scale: [1, 1.0e+6]}\n")
    assert run(*release_command(delta="1e-9", mechanism="coinpress", schema="scales.yaml")).code == 0
    receipt = dpm.load("people.json").receipt
    outcome = run("show", "people.json")
    assert len(receipt.draws) > 2
    for what, law, sensitivity, loss in receipt.lines():
        assert " ".join(f"{what} {law} {sensitivity} {loss}".split()) in outcome.words
    assert re.search(r"together of ρ = 0\.0\d+ ρ = 0\.0\d+", outcome.words)


def test_a_narrow_terminal_wraps_sentences_and_no_row_of_a_table(
    people_json: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    lines = run("show", str(people_json)).out.splitlines()
    assert all(row in lines for row in aligned(dpm.load(people_json).describe().table()).splitlines())
    assert all(len(line) <= 50 for line in lines if "  " not in line.strip())


def test_show_as_json_is_the_release_to_the_last_bit(people_json: Path, run: Run) -> None:
    released = dpm.load(people_json)
    shown = json.loads(run("show", people_json, "--json").out)
    for name in ("mean", "covariance", "second_moment", "gram"):
        np.testing.assert_array_equal(shown[name], getattr(released, name))
    assert shown.keys() == {
        "origin", "privacy", "receipt", "mechanism", "mechanism_options", "repair", "warnings", "noise", "schema", "n_rows",
        "feature_names", "mean", "mean_noise", "standard_deviation", "covariance", "second_moment", "gram",
    }  # fmt: skip
    assert shown["n_rows"] == released.n_rows
    assert shown["receipt"] == released.receipt.to_dict()
    assert shown["feature_names"] == list(released.feature_names)
    assert dpm.Schema.from_dict(shown["schema"]) == released.schema
    np.testing.assert_array_equal(shown["standard_deviation"], np.sqrt(np.diag(released.covariance)))


def test_show_has_a_dash_where_noise_made_a_variance_negative(run: Run) -> None:
    command = release_command("--insecure-seed", "3", epsilon="0.01", repair="none", neighbors="replace_one")
    assert run(*command).code == 0
    negative = np.diag(dpm.load("people.json").covariance) < 0
    assert negative.any()
    assert not negative.all()
    shown = json.loads(run("show", "people.json", "--json").out)["standard_deviation"]
    assert [deviation is None for deviation in shown] == negative.tolist()
    assert run("show", "people.json").code == 0


# ---------------------------------------------------------------- verify


def test_verify_says_what_it_checked(people_json: Path, run: Run) -> None:
    forge(people_json, lambda content: content.update())  # a mended checksum alone keeps a release whole
    outcome = run("verify", people_json)
    assert outcome.code == 0
    for check in (
        *("checksum", "finite", "symmetric", "no negative eigenvalue", "number of rows", "stated budget calls for"),
        "receipt adds up to the stated budget: 1 draw, ε = 1 of ε = 1",
    ):
        assert re.search(rf"(?m)^ok +.*{check}", outcome.out), check
    assert "FAILED" not in outcome.out
    assert "shows that the file is consistent; it does not show that the draws took place" in outcome.words
    people_json.write_text(people_json.read_text().replace('"epsilon": 1.0', '"epsilon": 0.1'))
    outcome = run("verify", people_json)
    assert (outcome.code, outcome.out) == (1, "")
    assert "checksum does not match" in outcome.error


def scaled(name: str, factor: float) -> Callable[[dict[str, Any]], None]:
    def edit(content: dict[str, Any]) -> None:
        values = content[name]
        content[name] = [factor * value for value in values] if isinstance(values, list) else factor * values

    return edit


EDITS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "less noise than is paid for": (lambda content: more_noise(content, 0.5), "add up to more than the stated cost"),
    "smaller epsilon": (lambda content: content["privacy"]["budget"].update(epsilon=0.1), "not for the stated budget"),
    "smaller epsilon everywhere": (smaller_budget_everywhere, "noise as the stated budget"),
    "other relation": (lambda content: content["privacy"].update(neighbors="replace_one"), "not for the stated budget"),
    "receipt of no draws": (lambda content: content["receipt"].update(draws=[]), "receipt adds up to the stated budget"),
    "receipt of half the budget": (lambda content: more_noise(content, 2.0), "noise as the stated budget"),
    "less noise": (
        lambda content: content["noise"].update(diagonal_variance=2e-6, off_diagonal_variance=1e-6),
        "noise as the stated budget",
    ),
    "other details": (lambda content: content["details"].update(rate=9.0), "noise as the stated budget"),
    "better arithmetic": (
        lambda content: content["privacy"].update(arithmetic="exact-lattice"), "noise as the stated budget",
    ),
    "other rules": (lambda content: content["privacy"]["rules"].pop(), "noise as the stated budget"),
    "mechanism of another budget": (lambda content: content.update(mechanism="gaussian"), "noise as the stated budget"),
    "unknown options": (lambda content: content.update(mechanism_options={"x": 1}), "noise as the stated budget"),
    "second moment of no table": (scaled("noisy_gram_upper_triangle", 30.0), "within reach of a possible table"),
    "second moment turned over": (scaled("noisy_gram_upper_triangle", -1.0), "within reach of a possible table"),
    "count below none": (lambda content: content.update(noisy_count=-300.0), "number of rows"),
    "noise law of nothing": (lambda content: content["noise"].update(rate={"float": "nan"}), "consistent"),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_verify_finds_edits_that_carry_a_right_checksum(people_json: Path, run: Run, edit: str) -> None:
    change, message = EDITS[edit]
    forge(people_json, change)
    outcome = run("verify", people_json)
    assert outcome.code == 1
    assert message in outcome.error
    if outcome.out:
        assert f"FAILED    {message}" in outcome.out


@pytest.mark.long(sets=32)
@pytest.mark.parametrize(
    ("case", "repair"),
    # The two in turn, so that each mechanism has both, with the mean and without.
    [(case, ("auto", "none")[(index + index // 2) % 2]) for index, case in enumerate(CASES)],
    ids=[case.id for case in CASES],
)
def test_every_release_of_every_mechanism_verifies(case: Case, repair: str, tmp_path: Path) -> None:
    released = dpm.release(
        case.table(), dpm.Schema.unit_ball(case.n_features), mechanism=case.mechanism, neighbors=case.neighbors,
        mean=case.mean, repair=repair, insecure_seed=1, **budget_arguments(case),
    )  # fmt: skip
    released.save(tmp_path / "release.json")
    outcomes = checks(dpm.load(tmp_path / "release.json"))
    assert not [check for check in outcomes if check.passed is False]
    if case.mechanism.name not in COMPARISONS:  # which have no name to calibrate them by
        assert outcomes[-1].passed, "the noise was not calibrated anew"


def budget_arguments(case: Case) -> dict[str, float]:
    budget = case.budget()
    return {"rho": budget.rho} if budget.rho else {"epsilon": budget.epsilon, "delta": budget.delta}


# ---------------------------------------------------------------- mechanisms


def test_mechanisms_lists_the_registry(run: Run) -> None:
    outcome = run("mechanisms")
    assert outcome.code == 0
    for name, mechanism in MECHANISMS.items():
        assert re.search(rf"(?m)^{name} +\S", outcome.out)
        assert f"{name}: {' '.join(mechanism.summary.split())}" in outcome.words
        assert " ".join(mechanism.source.split()) in outcome.words
    assert re.search(r"(?m)^laplace +ε +both +needed$", outcome.out)
    assert re.search(r"(?m)^gaussian +\(ε, δ\) ρ +both +needed$", outcome.out)


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_a_mechanism_is_described_with_its_options(run: Run, name: str) -> None:
    mechanism = MECHANISMS[name]
    outcome = run("mechanisms", name)
    assert outcome.code == 0
    for option in fields(mechanism):
        assert f"option {option.name}=" in outcome.words
    first = (mechanism.__doc__ or "").split("\n\n")[0]
    assert " ".join(first.split()) in outcome.words
    assert ">>>" not in outcome.out
    assert ("For means only:" in outcome.out) == (name in MEAN_MECHANISMS)
    assert max(map(cell_len, outcome.out.splitlines())) <= 80


# ---------------------------------------------------------------- the how-to page


@pytest.mark.slow
def test_the_how_to_page_runs_as_written(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block of ``api/command-line.md``, in order, prints what it shows."""
    page = Path(__file__).parents[2] / "docs" / "api" / "command-line.md"
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    ran = set()
    for language, block in re.findall(r"(?ms)^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(block, str(page), "exec"), {})
        elif language == "yaml":
            name = Path(block.partition("\n")[0].removeprefix("# "))
            written = yaml.safe_load(name.read_text())["columns"]
            filled = yaml.safe_load(block)["columns"]
            assert [list(column) for column in filled] == [list(column) for column in written]
            assert [column["name"] for column in filled] == [column["name"] for column in written]
            name.write_text(block)
        elif language == "console":
            printed: list[str] = []
            for line in block.splitlines():
                if line.startswith("$ dpmoments "):
                    words = shlex.split(line)[2:]
                    outcome = run(*words)
                    assert outcome.code == 0, (line, outcome.err)
                    printed = [" ".join(shown.split()) for shown in outcome.out.splitlines()]
                    ran.add(words[0])
                else:
                    assert " ".join(line.split()) in printed, line
        else:
            assert language == "text"
    assert ran >= set(COMMANDS) - {"desk", "audit"}  # tests/desk, tests/audit


@pytest.mark.parametrize(
    ("command", "kind", "format"),
    [
        (release_command(), dpm.MomentRelease, "dpmoments-release"),
        (mean_command(output="people.json"), dpm.MeanRelease, "dpmoments-mean-release"),
    ],
)
def test_a_release_that_cannot_be_written_is_kept_elsewhere(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, command: list[str], kind: type, format: str
) -> None:
    refuge = tmp_path / "refuge"
    refuge.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(refuge))
    save, output = kind.save, Path("people.json")

    def full_at_first(release: Any, path: Path, **options: Any) -> None:
        if Path(path) == output:
            raise OSError(28, "No space left on device")
        save(release, path, **options)

    monkeypatch.setattr(kind, "save", full_at_first)
    outcome = run(*command)
    assert outcome.code == 1
    assert "saved in" in outcome.error
    (kept,) = refuge.rglob("people.json")
    assert json.loads(kept.read_text())["format"] == format
    assert not output.exists()


def test_a_release_without_a_ledger_says_so(run: Run) -> None:
    command = [word for word in release_command() if word != "--no-ledger"]
    found = run(*command)
    assert found.code == 0
    assert "Warning: not charged to a ledger" in found.err
    assert run(*release_command("--ledger", "b.db", "--dataset", "d", "--no-ledger", output="x.json")).code == 2


def test_a_terminal_is_asked_for_a_ledger(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    found = run(*(word for word in release_command() if word != "--no-ledger"))
    assert found.code == 2
    assert "--no-ledger" in found.err
    assert not Path("people.json").exists()


def test_a_release_prints_what_remains_of_its_ledger(run: Run) -> None:
    grant = ("ledger", "grant", "b.db", "people", "--epsilon", "3", "--neighbors", "add_remove")
    assert run(*grant).code == 0
    found = run(*release_command("--ledger", "b.db", "--dataset", "people"))
    assert found.code == 0
    assert "Remaining for people: ε = 2, of ε = 3 granted." in found.out
    assert run(*grant[:4], "--epsilon", "4", *grant[6:]).code == 1
    assert run(*grant[:4], "--epsilon", "4", *grant[6:], "--reason", "second wave", "--by", "board").code == 0
    assert "changed from ε = 3 to ε = 4; reason: 'second wave', by 'board'" in run("ledger", "show", "b.db").out
