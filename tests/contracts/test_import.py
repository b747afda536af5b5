"""What ``import dpmoments`` brings in: nothing that is slow to load before it is used, and no warning."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import narwhals
import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
import pytest

import dpmoments as dpm
from dpmoments.base import table_libraries
from dpmoments.cli import entry
from dpmoments.cli.analyses import analyses

SLOW = {
    *("dask", "distributed", "duckdb", "numba", "pandas", "polars", "pyspark"),  # a user's, where the user has them
    *("formulaic", "matplotlib", "opendp", "randomgen", "rich", "sklearn", "typer", "urllib.request"),
    *("narwhals", "pyarrow", "pyarrow.dataset", "yaml"),
    *("jinja2", "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats"),
    *("importlib.metadata", "markupsafe"),
    *("dpmoments.datasets", "dpmoments.reporting.page", "dpmoments.schema.document", "dpmoments.releases.statements"),
}
PROGRAM = """
import sys
import dpmoments
print(*sys.modules)
dpmoments.noise.secure_generator()
dpmoments.privacy.curves.gaussian_epsilon(1e-6, 1.0, 1.0)
print(*sys.modules)
dpmoments.mechanisms.JohnsonLindenstrauss
print(*sys.modules)
"""
ANALYST = """
import sys
import dpmoments
release = dpmoments.load(sys.argv[1])
release.describe().summary(), release.pca().summary(), release.ridge(target="x1").summary()
print(*sys.modules)
"""


def lines(program: str, *arguments: str) -> list[str]:
    """What a program prints in a process of its own, where a warning is an error."""
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return run.stdout.splitlines()


@pytest.mark.long
def test_slow_modules_and_papers_wait_until_they_are_used() -> None:
    imported, used, of_a_paper = map(set, map(str.split, lines(PROGRAM)))
    assert SLOW & imported == set()
    assert "numpy" not in imported
    assert SLOW & used >= {"randomgen", "scipy.special"}
    assert not [name for name in imported if name.startswith("dpmoments.papers")]
    assert "dpmoments.papers.mechanisms.wishart_sampling" in of_a_paper


@pytest.mark.long
def test_an_analyst_needs_nothing_that_tables_are_read_with(tmp_path: Path) -> None:
    rows = np.linspace(-0.5, 0.5, 200).reshape(100, 2)
    dpm.release(
        rows,
        dpm.Schema.unit_ball(2),
        epsilon=100.0,
        neighbors="replace_one",
        insecure_seed=0,
        output=tmp_path / "x.json",
    )
    (used,) = lines(ANALYST, str(tmp_path / "x.json"))
    assert {"narwhals", "pandas", "pyarrow", "yaml"} & set(used.split()) == set()
    assert {"dpmoments.privacy.ledger", "dpmoments.mechanisms", "dpmoments.plots", "dpmoments.rows"} & set(
        used.split()
    ) == set()
    assert {"scipy.interpolate", "scipy.optimize"} & set(used.split()) == set()
    assert "dpmoments.analysis.regression" in used.split()


@pytest.mark.long
def test_the_command_imports_what_it_runs() -> None:
    """The help page needs no NumPy, and says of every command what the command says."""
    program = "import sys, dpmoments.cli\ndpmoments.cli.main(['--help'])\nprint(*sys.modules)"
    *_, used = lines(program)
    assert {"numpy", "pydantic", "dpmoments.analysis", "dpmoments.base.message"} & set(used.split()) == set()
    commands = {name: words for section in entry._COMMANDS.values() for name, words in section.items()}
    for name, summary in commands.items():
        said = (entry._loaded(name).help or "").partition("\n\n")[0]
        assert " ".join(said.split()) == summary
    others = {"show", "report", "groups", "pool", "synthetic", "export", "verify"}
    named = [name.replace("-", "_") for name in entry._COMMANDS[entry._ANALYST] if name not in others]
    assert named == list(analyses())


def test_public_names_are_those_of_type_checkers() -> None:
    """Each is the object that the stub for type checkers names; the papers' modules are in no list."""
    seen = {"__version__", "utility_bounds"}
    for statement in ast.parse(Path(dpm.__file__).with_suffix(".pyi").read_text()).body:
        for alias in statement.names if isinstance(statement, ast.ImportFrom) else ():
            module = importlib.import_module(str(statement.module))
            value = getattr(module, alias.name, None) or importlib.import_module(f"{statement.module}.{alias.name}")
            name = alias.asname or "utility_bounds"
            assert getattr(dpm, name) is value
            seen.add(name)
    assert seen == {*dpm.__all__, "metrics", "utility_bounds"} <= set(dir(dpm))


def test_what_waits_is_there() -> None:
    """Names can be completed, starred and asked for; a name that is none is none."""
    assert set(dpm.__all__) <= set(dir(dpm))
    starred: dict[str, object] = {}
    exec("from dpmoments import *", starred)
    assert set(dpm.__all__) <= set(starred)
    assert starred["datasets"] is dpm.datasets is sys.modules["dpmoments.datasets"]
    with pytest.raises(AttributeError, match="'dpmoments' has no attribute 'dataset'"):
        _ = dpm.dataset


KNOWN = {"nw": narwhals, "pa": pyarrow, "pa_csv": pyarrow.csv, "pc": pyarrow.compute, "pq": pyarrow.parquet}


@pytest.mark.parametrize("name", table_libraries.__all__)
def test_table_libraries_are_themselves(name: str) -> None:
    """Each stands for the module that other code imports, whatever is asked for first."""
    standing, known = getattr(table_libraries, name), KNOWN[name]
    assert standing.__name__ == known.__name__
    public = [attribute for attribute in dir(known) if not attribute.startswith("_")]
    assert public
    assert all(getattr(standing, attribute) is getattr(known, attribute) for attribute in public)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = standing.nothing
