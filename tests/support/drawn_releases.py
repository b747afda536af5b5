"""Releases drawn from the law of their noise, with no pass over a table: a millisecond each; and faults planted in code.

The template is a release of some mechanism: its schema, encoding, center and noise law stay. The exact moments of fresh rows and
one draw of the noise take the place of its moments.
"""

from __future__ import annotations

import inspect
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from types import CodeType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments.analysis import confidence, group_means
from dpmoments.moments.cells import GaussianCells, LaplaceCells, MatrixLaplaceCells
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.terms import NoiseTerm, ScaleTerm

__all__ = ["drawn", "drawn_noise", "nudged", "planted", "template", "without_bisection"]


def template(
    schema: dpm.Schema, mechanism: str, max_rows: int | None = None, *, seed: int = 0, **settings: Any
) -> dpm.MomentRelease:
    """A release whose rows do not matter: its law, schema and encoding are what is used."""
    levels = {column.name: column.levels[0] for column in schema.columns if isinstance(column, dpm.Categorical)}
    table = pd.DataFrame({column.name: [levels.get(column.name, 1.0)] * 200 for column in schema.columns})
    unit = None if max_rows is None else dpm.PrivacyUnit("person", max_rows)
    table["person"] = range(len(table))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpm.ReleaseWarning)  # of few rows, which do not matter
        return dpm.release(
            table[list(schema.names) + ["person"] * (unit is not None)],
            schema,
            mechanism=mechanism,
            insecure_seed=seed,
            privacy_unit=unit,
            **settings,
        )


def drawn_noise(law: NoiseLaw, rng: np.random.Generator) -> np.ndarray:
    """One draw of the noise on Σ z zᵀ."""
    return np.asarray(sum(_drawn_term(term, rng) for term in law.terms))


def _drawn_term(term: NoiseTerm | ScaleTerm, rng: np.random.Generator) -> np.ndarray:
    m = len(term.variances)
    if isinstance(term, ScaleTerm):
        together = np.diag(term.variances) + term.common_variance * np.outer(term.common, term.common)
        half = term.left * (rng.multivariate_normal(np.zeros(m), together, method="eigh") / 2.0) @ term.right.T
        return np.asarray(half + half.T)
    if isinstance(term.family, MatrixLaplaceCells):
        product = rng.standard_normal((m + 1, m)).T @ rng.standard_normal((m + 1, m))
        cells = (product + product.T) / np.sqrt((m + 1) * (2.0 + 2.0 * np.eye(m)))
    else:
        assert isinstance(term.family, GaussianCells | LaplaceCells)
        normal = isinstance(term.family, GaussianCells)
        draws = rng.standard_normal((m, m)) if normal else rng.laplace(size=(m, m)) / np.sqrt(2.0)
        cells = np.triu(draws) + np.triu(draws, 1).T
    cells = cells * np.sqrt(term.variances)
    matrix = np.eye(m) if term.matrix is None else term.matrix
    result = matrix @ cells @ matrix.T
    if term.exact is not None:
        known, row = term.exact
        result = result - float(row @ cells @ row) * np.outer(known, known)
    return np.asarray(result)


def drawn(release: dpm.MomentRelease, rows: np.ndarray, rng: np.random.Generator | None) -> dpm.MomentRelease:
    """Return the template's release of other rows, feature values in the table's units; without noise if rng is None."""
    encoded = (rows - release.encoding.offset) / release.encoding.scale
    if release.center is not None:
        encoded = encoded - release.center
    z = np.column_stack([np.ones(len(encoded)), encoded])
    moments = z.T @ z
    if rng is not None:
        assert release.noise is not None
        moments = moments + drawn_noise(release.noise, rng)
    return replace(
        release, noisy_count=float(moments[0, 0]), noisy_sum=moments[0, 1:].copy(), noisy_gram=moments[1:, 1:].copy()
    )


def nudged(release: dpm.MomentRelease, rng: np.random.Generator, relative: float = 1e-13) -> dpm.MomentRelease:
    """Return a release whose moments differ by a few roundings, as on another processor."""

    def moved(values: np.ndarray) -> np.ndarray:
        return values * (1.0 + relative * rng.standard_normal(values.shape))

    gram = np.triu(moved(release.noisy_gram))
    total = release.noisy_sum if release.noisy_sum is None else moved(release.noisy_sum)
    return replace(release, noisy_sum=total, noisy_gram=gram + np.triu(gram, 1).T)


def without_bisection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make p-values that are found by bisection NaN: they take long, and not every check uses them."""
    for module in (group_means, confidence):
        monkeypatch.setattr(module, "p_by_inversion", lambda _, shape: np.full(shape, np.nan))


@contextmanager
def planted(function: Any, before: str, after: str) -> Iterator[None]:
    """Plant a fault in a function, method or property: its text with one place changed, everywhere it is called."""
    function = _plain(function)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(before) == 1, f"{before!r} stands {source.count(before)} times in {function.__qualname__}"
    module = compile(
        f"from __future__ import annotations\n{source.replace(before, after)}", function.__code__.co_filename, "exec"
    )
    (faulty,) = (code for code in module.co_consts if isinstance(code, CodeType) and code.co_name == function.__name__)
    right = function.__code__
    function.__code__ = faulty
    try:
        yield
    finally:
        function.__code__ = right


def _plain(function: Any) -> Callable[..., Any]:
    if isinstance(function, property):
        function = function.fget
    if isinstance(function, cached_property):
        function = function.func
    function = inspect.unwrap(function)
    return getattr(function, "__func__", function)  # type: ignore[no-any-return]
