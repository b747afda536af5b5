"""Every mechanism is a class of the public face and of the registry; ``make lint`` checks the types of ``type_slips.py``."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import dpmoments as dpm
import dpmoments.papers.mechanisms
from contracts.cases import COMPARISONS
from dpmoments.mechanisms import means
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.means.base import MeanMechanism
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS


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
                found -= {kind for kind in found if kind.registry_name() in COMPARISONS}
    for found in defined.values():
        found -= {kind for kind in found for other in found if other is not kind and issubclass(other, kind)}
    assert defined[Mechanism] == set(MECHANISMS.values())
    assert defined[MeanMechanism] == set(MEAN_MECHANISMS.values())
