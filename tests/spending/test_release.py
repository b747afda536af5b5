"""The main job: what a release says, in the table's own units, and in which order things happen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.releases.moment_release import MomentRelease
from support.said import Said, refused, warned

UNLIMITED: dict[str, Any] = dict(epsilon=1e13, insecure_seed=0, repair="none")


def people(n_rows: int = 500, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.integers(0, 100, n_rows),
            "income": rng.uniform(0, 200_000, n_rows),
            "balance": rng.uniform(-5_000, 100, n_rows),
            "region": rng.choice(["north", "south"], n_rows),
            "employed": rng.random(n_rows) < 0.7,
        }
    )


SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100),
    dpm.Numeric("income", 0, 200_000, missing="center"),
    dpm.Numeric("balance", -5_000, 100),
    dpm.Categorical("region", ["north", "south"], other="zero"),
    dpm.Boolean("employed"),
)


def plain(table: pa.Table) -> np.ndarray:
    """The table as numbers, features in the schema's order: the slow, obvious way."""
    columns = [table[name].to_numpy().astype(float) for name in ("age", "income", "balance")]
    region = np.array(table["region"].to_pylist())
    return np.column_stack([*columns, region == "north", region == "south", table["employed"].to_numpy().astype(float)])


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_without_noise_moments_are_the_tables_own(neighbors: str) -> None:
    table = people()
    values = plain(table)
    release = dpm.release(table, SCHEMA, neighbors=neighbors, **UNLIMITED)
    scale = np.array([100, 200_000, 5_000, 1, 1, 1.0])
    assert release.n_rows == 500
    np.testing.assert_allclose(release.mean / scale, values.mean(axis=0) / scale, atol=1e-5)
    np.testing.assert_allclose(
        release.second_moment / np.outer(scale, scale), values.T @ values / 500 / np.outer(scale, scale), atol=1e-5
    )
    np.testing.assert_allclose(
        release.gram / np.outer(scale, scale), values.T @ values / np.outer(scale, scale), atol=5e-3
    )
    np.testing.assert_allclose(
        release.covariance / np.outer(scale, scale), np.cov(values.T, bias=True) / np.outer(scale, scale), atol=1e-5
    )
    assert release.feature_names == ("age", "income", "balance", "region=north", "region=south", "employed")


def test_second_moment_alone_needs_no_mean() -> None:
    table = people()
    values = plain(table)
    scale = np.array([100, 200_000, 5_000, 1, 1, 1.0])
    release = dpm.release(table, SCHEMA, neighbors="replace_one", mean=False, **UNLIMITED)
    np.testing.assert_allclose(
        release.second_moment / np.outer(scale, scale), values.T @ values / 500 / np.outer(scale, scale), atol=1e-5
    )
    for asked in ("mean", "covariance"):
        with refused("no mean was released"):
            getattr(release, asked)


def test_the_papers_setting() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    release = dpm.release(rows, dpm.Schema.unit_ball(4), neighbors="replace_one", mean=False, **UNLIMITED)
    np.testing.assert_allclose(release.second_moment * 300, rows.T @ rows, atol=1e-3)
    np.testing.assert_allclose(release.gram, rows.T @ rows, atol=1e-3)


def test_a_private_count_that_was_not_released_is_not_invented() -> None:
    release = dpm.release(people(), SCHEMA, mean=False, **UNLIMITED)
    assert release.gram.shape == (6, 6)
    for asked in ("n_rows", "second_moment"):
        with refused("no count was released: under add_remove the number"):
            getattr(release, asked)
    assert dpm.release(people(), SCHEMA, mean=False, n_rows=500, **UNLIMITED).n_rows == 500


def test_long_rows_are_clipped_to_a_smaller_public_norm() -> None:
    rows = np.array([[3.0, 4.0], [0.3, 0.4]])
    release = dpm.release(rows, dpm.Schema.unit_ball(2), neighbors="replace_one", **UNLIMITED)
    np.testing.assert_allclose(release.mean, [(0.6 + 0.3) / 2, (0.8 + 0.4) / 2], atol=1e-5)
    tight = dpm.Schema(dpm.Numeric("a", -1, 1), dpm.Numeric("b", -1, 1), row_norm=0.5)
    release = dpm.release(np.array([[1.0, 0.0], [0.0, 0.25]]), tight, neighbors="replace_one", **UNLIMITED)
    np.testing.assert_allclose(release.mean, [0.25, 0.125], atol=1e-5)


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_dropped_rows(neighbors: str, mean: bool) -> None:
    """They are left out, of the count too, which is then private under both relations."""
    table = people()
    region = table["region"].to_pylist()
    region[:100] = ["elsewhere"] * 100
    table = table.set_column(3, "region", pa.array(region))
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Categorical("region", ["north", "south"], other="drop"))
    n_rows = 400 if neighbors == "add_remove" and not mean else None
    release = dpm.release(table, schema, neighbors=neighbors, mean=mean, n_rows=n_rows, **UNLIMITED)
    assert release.n_rows == 400
    kept = table["age"].to_numpy()[100:].astype(float)
    total = np.sum((kept - 50) / 50) if mean else np.sum((kept / 100) ** 2)
    if mean:
        assert release.noisy_sum is not None
        assert release.center is not None
        about_zero = release.noisy_sum[0] + 400 * release.center[0]
        assert about_zero * np.sqrt(2) == pytest.approx(total, abs=1e-2)
    else:
        assert release.noisy_gram[0, 0] * 2 == pytest.approx(total, abs=1e-2)


def test_a_release_repeats_only_with_an_insecure_seed() -> None:
    table = people()
    first, again = (dpm.release(table, SCHEMA, epsilon=1.0, insecure_seed=5) for _ in range(2))
    assert first.noisy_gram.tobytes() == again.noisy_gram.tobytes()
    assert not first.privacy.private
    assert "NOT PRIVATE" in first.privacy.describe()
    assert "NOT PRIVATE" in repr(first)
    first, again = (dpm.release(table, SCHEMA, epsilon=1.0) for _ in range(2))
    assert first.noisy_gram.tobytes() != again.noisy_gram.tobytes()
    assert first.privacy.private


def test_the_output_is_checked_before_a_row_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpmoments.rows.rows import Rows

    def no_reading(*_: object, **__: object) -> None:
        raise AssertionError("a row was read")

    monkeypatch.setattr(Rows, "moments", no_reading)
    taken = tmp_path / "taken.json"
    taken.write_text("precious")
    with refused("exists already", FileExistsError):
        dpm.release(people(), SCHEMA, epsilon=1.0, output=taken)
    assert taken.read_text() == "precious"
    with refused("does not exist: make it first", FileNotFoundError):
        dpm.release(people(), SCHEMA, epsilon=1.0, output=tmp_path / "absent" / "people.json")
    with pytest.raises(AssertionError, match="a row was read"):
        dpm.release(people(), SCHEMA, epsilon=1.0, mechanism="laplace", output=tmp_path / "free.json")


@pytest.mark.long(sets=4)
@pytest.mark.parametrize("repair", ["auto", "clip", "shift", "noise-shift", "shrink"])
@pytest.mark.parametrize("mean", [True, False])
def test_repaired_moments_are_those_of_a_possible_table(repair: str, mean: bool) -> None:
    for seed in range(5):
        release: MomentRelease = dpm.release(
            people(60), SCHEMA, epsilon=0.2, neighbors="replace_one", mean=mean, repair=repair, insecure_seed=seed
        )
        matrix = release.unit_ball_covariance if mean else release.unit_ball_gram
        assert np.linalg.eigvalsh(matrix).min() >= -1e-9
        if mean:
            lower, upper = SCHEMA.feature_bounds
            assert (release.mean >= lower - 1e-9).all()
            assert (release.mean <= upper + 1e-9).all()


def test_statement_in_words_names_unit_budget_and_rules() -> None:
    text = dpm.release(people(), SCHEMA, rho=0.5, neighbors="replace_one").privacy.describe()
    for part in ("replace-one", "ρ = 0.5", "one row", "age: values clipped to [0, 100]", "exact integers", "implies"):
        assert part in text
    text = dpm.release(people(), SCHEMA, epsilon=1.0, delta=1e-6, mechanism="gaussian").privacy.describe()
    for part in ("add-remove", "ε = 1", "1e-06"):
        assert part in text


def test_a_delta_that_allows_publishing_rows_is_warned_of() -> None:
    with warned("delta-too-large", delta=0.01, rows=len(people())):
        dpm.release(people(), SCHEMA, epsilon=1.0, delta=0.01, neighbors="replace_one", mechanism="gaussian")
    with warned("delta-too-large", delta=0.01):
        dpm.release(people(), SCHEMA, epsilon=1.0, delta=0.01, mechanism="gaussian")
    with warned("delta-too-large", delta=0.01):
        dpm.release_mean(people(), SCHEMA, epsilon=1.0, delta=0.01, mechanism="coinpress")
    with warned("delta-too-large", delta=0.01):
        dpm.release_groups(people(), SCHEMA, by="region", epsilon=1.0, delta=0.01, mechanism="gaussian")


def test_progress_reports_fractions_alone() -> None:
    seen: list[float | None] = []
    dpm.release(people(200_000), SCHEMA, epsilon=1.0, progress=seen.append)
    assert seen[-1] == 1.0
    assert all(fraction is not None and 0 < fraction <= 1 for fraction in seen)


@pytest.mark.long
def test_auto_takes_the_least_expected_error() -> None:
    """Where a ball is not looked for: without a mean."""
    for options in (dict(epsilon=1.0), dict(epsilon=1.0, delta=1e-9), dict(rho=0.5)):
        table = dpm.forecast(SCHEMA, n_rows=500, mean=False, **options)
        best = min(
            row.second_moment_error
            for row in table
            if row.second_moment_error is not None
            and row.mechanism in ("gaussian", "isotropic", "laplace", "matrix-laplace")
        )
        chosen = table["auto"].second_moment_error
        assert chosen is not None
        assert chosen <= best


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("threads", "2", Said("must be", parameter="threads", expected="a whole number", got="str")),
        ("threads", 1.5, Said("must be", parameter="threads", expected="a whole number", got="float")),
        ("insecure_seed", "a", Said("must be", parameter="insecure_seed", expected="a whole number", got="str")),
        ("mechanism", ["laplace"], Said("mechanism must be a name or a configured", got="list", noun="mechanism")),
    ],
)
def test_wrong_types_are_named(option: str, value: object, said: Said) -> None:
    with refused(said, TypeError):
        dpm.release(people(), SCHEMA, epsilon=1.0, **{option: value})  # type: ignore[arg-type]


def test_a_numpy_number_of_rows_is_a_whole_number() -> None:
    assert dpm.release(people(), SCHEMA, mean=False, n_rows=np.int64(500), **UNLIMITED).n_rows == 500
