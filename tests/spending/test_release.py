"""The main job: what a release says, in the table's own units, and in which order things happen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
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


def test_second_moment_alone_needs_no_mean() -> None:
    release = dpm.release(people(), SCHEMA, neighbors="replace_one", mean=False, **UNLIMITED)
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


def test_a_delta_that_allows_publishing_rows_is_warned_of() -> None:
    budget = dict(epsilon=1.0, delta=0.01)
    with warned("delta-too-large", delta=0.01, rows=len(people())):
        dpm.release(people(), SCHEMA, neighbors="replace_one", mechanism="gaussian", **budget)
    for job, options in (
        (dpm.release, dict(mechanism="gaussian")),
        (dpm.release_mean, dict(mechanism="coinpress")),
        (dpm.release_groups, dict(mechanism="gaussian", by="region")),
    ):
        with warned("delta-too-large", delta=0.01):
            job(people(), SCHEMA, **budget, **options)


@pytest.mark.long
def test_auto_takes_the_least_expected_error() -> None:
    """Where a ball is not looked for: without a mean."""
    for options in (dict(epsilon=1.0), dict(epsilon=1.0, delta=1e-9)):
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
