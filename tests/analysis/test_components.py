"""Principal components against scikit-learn's PCA on the table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.analysis import functionals
from dpmoments.analysis.functionals import noise_edges
from dpmoments.moments.cells import GaussianCells
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.terms import NoiseTerm
from support.said import refused

pytestmark = pytest.mark.long(sets=None)


def table() -> np.ndarray:
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(3000, 3)) @ np.array([[3.0, 1.0, 0.0], [0.0, 1.0, 0.2], [0.0, 0.0, 0.3]])
    return np.clip(mixed + [10.0, -2.0, 0.5], [-5, -9, -2], [25, 5, 3])


def released(**options: object) -> dpm.MomentRelease:
    schema = dpm.Schema(dpm.Numeric("a", -5, 25), dpm.Numeric("b", -9, 5), dpm.Numeric("c", -2, 3))
    settings = dict(epsilon=1e13, insecure_seed=0, repair="none") | options
    return dpm.release(table(), schema, **settings)  # type: ignore[arg-type]


def test_columns_that_do_not_vary_keep_their_units_and_have_no_partial_correlations() -> None:
    columns = dpm.Numeric("a", -5, 25), dpm.Numeric("b", -9, 5), dpm.Numeric("c", -2, 3)
    values = np.where([True, False, False], table(), [0.0, -2.0, 0.5])
    found = dpm.release(values, dpm.Schema(*columns), epsilon=1e13, insecure_seed=0, repair="none")
    np.testing.assert_allclose(found.pca(scaling="correlation").scale, [values[:, 0].std(), 1.0, 1.0], rtol=1e-6)
    assert np.isnan(found.partial_correlation().correlation).all()
    assert found.partial_correlation().feature_names == ("a", "b", "c")


def test_partial_correlations_of_small_deviations_are_those_within_narrow_bounds() -> None:
    columns = dpm.Numeric("a", -5e3, 25e3), dpm.Numeric("b", -9e3, 5e3), dpm.Numeric("c", -2e3, 3e3)
    wide = dpm.release(table(), dpm.Schema(*columns), epsilon=1e13, insecure_seed=0, repair="none")
    found, expected = wide.partial_correlation(), released().partial_correlation()
    np.testing.assert_allclose(found.correlation, expected.correlation, atol=1e-5)


def test_components_are_orthonormal_under_noise() -> None:
    found = released(epsilon=0.5, repair="auto").pca(scaling="bounds")
    np.testing.assert_allclose(found.components @ found.components.T, np.eye(3), atol=1e-12)
    assert "component 1" in found.summary()


def test_components_say_what_they_are_about() -> None:
    for mean, about in ((True, "about the released mean,"), (False, "about zero (no mean was released),")):
        assert about in released(mean=mean, neighbors="replace_one").pca().heading[0]


def test_impossible_numbers_of_components() -> None:
    release = released()
    for k in (0, 4, 1.5, True):
        with refused("must be a whole number from 1 to"):
            release.pca(k)  # type: ignore[arg-type]


def test_the_noise_edge_of_many_components_is_that_of_one_a_little_before(monkeypatch: pytest.MonkeyPatch) -> None:
    d, law = 90, NoiseLaw((NoiseTerm(GaussianCells(), np.full((91, 91), 2.0)),))
    components = np.linalg.qr(np.random.default_rng(0).normal(size=(d, d)))[0]
    cells = np.random.default_rng(1).uniform(1.0, 3.0, (d, d))
    cells = cells + cells.T
    edges = noise_edges(cells, components, law)
    assert len(set(edges[:64].tolist())) == 64
    monkeypatch.setattr(functionals, "_EDGES_PER_OCTAVE", d)
    own = noise_edges(cells, components, law)
    np.testing.assert_array_equal(edges[64:66], own[64])
    assert own[65] < own[64] < 1.02 * own[65]


def test_the_noise_edge_is_of_the_largest_row_of_noise_between_later_components() -> None:
    d, law = 7, NoiseLaw((NoiseTerm(GaussianCells(), np.full((8, 8), 2.0)),))
    components = np.linalg.qr(np.random.default_rng(0).normal(size=(d, d)))[0]
    cells = np.random.default_rng(1).uniform(1.0, 3.0, (d, d))
    cells = cells + cells.T
    edges = noise_edges(cells, components, law)
    for index in range(d):
        projection = components[index:].T @ components[index:]
        rows = np.zeros(d)
        for j, direction in enumerate(projection):
            covariance = cells * np.outer(direction, direction)  # of N b: two entries share one cell
            covariance[np.diag_indices(d)] = cells @ direction**2
            rows[j] = np.trace(projection @ covariance)
        [whole] = noise_edges(np.full((d - index, d - index), rows.max() / (d - index)), np.eye(1, d - index), law)
        assert edges[index] == pytest.approx(whole, rel=1e-12)


def test_rare_levels_are_named_where_they_hide_components() -> None:
    """Divided by their deviation, levels of few rows are mostly noise, and raise the floor of all components."""
    rng = np.random.default_rng(0)
    levels = ["a", "b", "rare", "other"]
    group = np.array(levels)[rng.choice(4, 20_000, p=[0.5, 0.4985, 0.0008, 0.0007])]
    x = rng.normal(0, 1, 20_000)
    table = pa.table({"group": group, "x": x, "y": x + rng.normal(0, 1, 20_000)})
    schema = dpm.Schema(dpm.Categorical("group", levels), dpm.Numeric("x", -5, 5), dpm.Numeric("y", -8, 8))
    release = dpm.release(table, schema, epsilon=1.0, mechanism="matrix-laplace", insecure_seed=1)
    found = release.pca(scaling="correlation")
    assert found.is_noise[0]
    assert set(found.rare_levels) == {"group=rare", "group=other"}
    assert "few rows hides components: " in found.summary()
    assert release.pca(scaling="bounds").rare_levels == ()
    without = release.pca(columns=["group=a", "group=b", "x", "y"], scaling="correlation")
    assert not without.is_noise[0]
    assert without.rare_levels == ()
