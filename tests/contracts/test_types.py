"""What a type checker sees of the public names: classes are classes, and a misspelt name or option is an error."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from pathlib import Path

import pytest
from mypy import api

import dpmoments as dpm
import dpmoments.papers.mechanisms
from dpmoments.mechanisms import means
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.means.base import MeanMechanism
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS

GOOD = """
import numpy as np
import dpmoments as dpm

mechanism: dpm.mechanisms.Gaussian = dpm.mechanisms.Gaussian(variance="entrywise")
plan = dpm.mechanisms.CoinPress(eigenvalue_bounds=(1.0, 10.0), steps=3)
schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Boolean("smoker"))
released: dpm.MomentRelease = dpm.release(np.zeros((3, 2)), schema, epsilon=1.0, mechanism=mechanism, mean=True)
fit = released.ridge("age", ["smoker"], alpha=0.1, level=0.9)
slope: float = float(fit.coefficients[0])
released.pca(1, scaling="bounds").components
again: dpm.MomentRelease = dpm.load("people.json")
mean: dpm.MeanRelease = dpm.release_mean(np.zeros((3, 2)), schema, rho=1.0, mechanism=dpm.mechanisms.means.Naive(radius=1.0))
moments = dpm.rows.Rows.of(np.zeros((3, 2)), dpm.Schema.unit_ball(2)).moments()
exact = moments.gram * moments.scale**2
"""
BAD = {
    "misspelt class": ("dpm.mechanisms.Gausian()", "attr-defined"),
    "misspelt option": ("dpm.mechanisms.Gaussian(varience='entrywise')", "call-arg"),
    "option of another": ("dpm.mechanisms.MatrixLaplace(variance='entrywise')", "call-arg"),
    "option of a wrong type": ("dpm.mechanisms.CoinPress(steps='three')", "arg-type"),
    "choice that is none": ("dpm.mechanisms.Laplace(calibration='loose')", "arg-type"),
    "misspelt argument": ("dpm.release(None, dpm.Schema.unit_ball(1), epsilom=1.0)", "call-arg"),
    # What a file holds may be a release of either kind.
    "misspelt analysis": ("dpm.load('a.json').ridg('age')", "union-attr"),
    "misspelt analysis of a release": (
        "dpm.release(None, dpm.Schema.unit_ball(1), rho=1.0).ridg('age')",
        "attr-defined",
    ),
    "misspelt option of an analysis": ("dpm.load('a.json').ridge('age', alfa=1.0)", "call-arg"),
}


def errors(code: str, folder: Path) -> str:
    snippet = folder / "snippet.py"
    snippet.write_text(code)
    cache = Path(dpm.__file__).parents[2] / ".mypy_cache"
    arguments = ["--strict", "--no-error-summary", "--python-executable", sys.executable, "--cache-dir", str(cache)]
    return api.run([*arguments, "--disable-error-code", "import-untyped", str(snippet)])[0]


def test_good_code_is_accepted_and_every_slip_is_found(tmp_path: Path) -> None:
    assert errors(GOOD, tmp_path) == ""
    lines = ["import dpmoments as dpm", *(code for code, _ in BAD.values())]
    found = errors("\n".join(lines), tmp_path)
    for number, (name, (code, kind)) in enumerate(BAD.items(), start=2):
        assert f"snippet.py:{number}: error:" in found, f"{name}: {code}\n{found}"
        assert any(f":{number}:" in line and f"[{kind}]" in line for line in found.splitlines()), found


@pytest.mark.parametrize(("face", "registry"), [(dpm.mechanisms, MECHANISMS), (means, MEAN_MECHANISMS)])
def test_every_mechanism_is_exported_by_name(face: object, registry: dict[str, type]) -> None:
    for kind in registry.values():
        assert getattr(face, kind.__name__) is kind
        assert kind.__name__ in face.__all__  # type: ignore[attr-defined]


def test_every_mechanism_of_a_file_is_in_the_registry() -> None:
    """A new mechanism is one file, and one line in the registry and the package's face."""
    defined: dict[type, set[type]] = {Mechanism: set(), MeanMechanism: set()}
    for package in (dpm.mechanisms, means, dpmoments.papers.mechanisms):
        for entry in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{entry.name}")
            classes = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if not inspect.isabstract(kind)]
            for base, found in defined.items():
                found |= {kind for kind in classes if issubclass(kind, base) and kind.__module__ == module.__name__}
    for found in defined.values():
        found -= {kind for kind in found for other in found if other is not kind and issubclass(other, kind)}
    assert defined[Mechanism] == set(MECHANISMS.values())
    assert defined[MeanMechanism] == set(MEAN_MECHANISMS.values())
