"""The registry: every mechanism under its name, and what is said of names and objects that are none."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import dpmoments.mechanisms
import dpmoments.mechanisms.means
from dpmoments.mechanisms.base import ConfiguredMechanism
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS, make_mean_mechanism, make_mechanism
from support.said import refused

KINDS = [
    (MECHANISMS, make_mechanism, "mechanism", dpmoments.mechanisms, "laplace"),
    (MEAN_MECHANISMS, make_mean_mechanism, "estimator of means", dpmoments.mechanisms.means, "naive"),
]
both_kinds = pytest.mark.parametrize(("known", "make", "noun", "package", "one"), KINDS, ids=["moments", "means"])
Make = Callable[..., ConfiguredMechanism[Any]]
Known = Mapping[str, type[ConfiguredMechanism[Any]]]


@both_kinds
def test_names_are_sorted_and_lead_to_their_classes(
    known: Known, make: Make, noun: str, package: Any, one: str
) -> None:
    del noun
    assert list(known) == sorted(known)
    for name, kind in known.items():
        assert name == kind.registry_name()
        assert make(name) == kind()
        configured = kind()
        assert make(configured) is configured
    public = {kind for _, kind in inspect.getmembers(package, inspect.isclass) if issubclass(kind, ConfiguredMechanism)}
    assert public - {package.base.Mechanism if package is dpmoments.mechanisms else package.base.MeanMechanism} == set(
        known.values()
    )
    assert isinstance(make(one), known[one])


@both_kinds
def test_what_names_nothing_is_refused(known: Known, make: Make, noun: str, package: Any, one: str) -> None:
    del package
    with refused("Unknown ", name="nothing", of_means=known is MEAN_MECHANISMS, known=tuple(known)):
        make("nothing")
    for wrong in (None, 3, known[one], ["laplace"]):
        with refused("mechanism must be a name or a configured", TypeError, got=type(wrong).__name__, noun=noun):
            make(wrong)
    with refused("is configured already: leave out"):
        make(known[one](), calibration="paper")
    with pytest.raises(TypeError, match="calibre"):
        make(one, calibre=3)
