"""Naive Bayes from the moments of groups: that of scikit-learn where there is no noise, and sound where there is much."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB

import dpmoments as dpm
from support.said import refused

SCHEMA = dpm.Schema(
    dpm.Categorical("kind", ["a", "b", "c"]),
    dpm.Numeric("size", 0, 10),
    dpm.Numeric("weight", 0, 100),
    dpm.Boolean("flag"),
    dpm.Categorical("region", ["n", "s", "w"]),
    dpm.Product("size", "flag"),
)


@cache
def frame(n_rows: int = 6_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], n_rows, p=[0.5, 0.4, 0.1])
    size = rng.normal(np.where(kind == "a", 2.0, 6.0), np.where(kind == "b", 2.0, 1.0))
    return pd.DataFrame(
        {
            "kind": kind,
            "size": np.clip(size, 0, 10),
            "weight": np.clip(rng.normal(50, 10, n_rows) + 5 * (kind == "c"), 0, 100),
            "flag": rng.random(n_rows) < np.where(kind == "a", 0.2, 0.6),
            "region": np.where(rng.random(n_rows) < 0.3 + 0.4 * (kind == "b"), "n", rng.choice(["s", "w"], n_rows)),
        }
    )


def groups(seed: int = 0, **options: Any) -> dpm.GroupReleases:
    return dpm.release_groups(frame(), SCHEMA, by="kind", insecure_seed=seed, **options)


@pytest.mark.long
def test_without_noise_it_is_that_of_scikit_learn() -> None:
    exact = groups(epsilon=1e9)
    table, kind = frame(), frame()["kind"]
    codes = table["region"].map({"n": 0, "s": 1, "w": 2}).to_numpy()[:, None]
    for columns, inputs, reference in (
        (["size", "weight"], table[["size", "weight"]].to_numpy(), GaussianNB(var_smoothing=1e-12)),
        (["flag"], table[["flag"]].to_numpy(), BernoulliNB(alpha=1e-9)),
        (["region"], codes, CategoricalNB(alpha=1e-9)),
    ):
        found = exact.naive_bayes(columns).predict_proba(table)
        np.testing.assert_allclose(found, reference.fit(inputs, kind).predict_proba(inputs), atol=1e-3)
    # all together: log probabilities add up, less the prior counted once for each
    whole = exact.naive_bayes()
    assert whole.feature_names == ("size", "weight", "flag", "region=n", "region=s", "region=w")
    parts = [exact.naive_bayes([name]).decision_function(table) for name in ("size", "weight", "flag", "region")]
    together = np.sum(parts, axis=0) - 3.0 * np.log(whole.priors)
    np.testing.assert_allclose(whole.decision_function(table), together, atol=1e-6)
    assert (whole.predict(table) == kind).mean() > 0.8


@pytest.mark.long
def test_noise_makes_it_no_surer_and_a_lost_class_is_never_predicted() -> None:
    noisy = groups(epsilon=0.002).naive_bayes()
    assert np.isfinite(noisy.predict_proba(frame())).all()
    assert ((noisy.means[:, noisy.is_share] > 0.0) & (noisy.means[:, noisy.is_share] < 1.0)).all()
    for index in np.flatnonzero(noisy.priors == 0.0):
        assert noisy.classes[index] not in noisy.predict(frame())
    assert "never predicted" in str(noisy) or (noisy.priors > 0.0).all()
    json.dumps(noisy.to_dict(), allow_nan=False)


def test_classes_of_weighted_rows_are_lost_by_the_noise_on_their_effective_number() -> None:
    """The number of rows itself has other noise, of which two SDs would hide both classes."""
    weight = dpm.SamplingWeight("weight", upper=100, design_effect=1.3)
    schema = dpm.Schema(dpm.Categorical("kind", ["a", "b"]), dpm.Numeric("size", 0, 10), weight)
    table = frame()[frame()["kind"] != "c"]
    weighted = dpm.release_groups(table, schema, by="kind", epsilon=0.05, insecure_seed=2)
    counts = np.array([float(release.noisy_count or 0.0) for release in weighted.values()])
    laws = [release.noise for release in weighted.values()]
    noise = np.sqrt([math.nan if law is None else law.count_variance for law in laws])
    of_rows = np.array([release.rows_noise or 0.0 for release in weighted.values()])
    assert (2.0 * noise < counts).all()
    assert (counts < 2.0 * of_rows).all()
    np.testing.assert_allclose(weighted.naive_bayes().priors, counts / counts.sum())


@pytest.mark.long
def test_missing_values_and_mistakes() -> None:
    noisy = groups(epsilon=1.0)
    found = noisy.naive_bayes(["size", "flag"])
    gap = pd.DataFrame({"size": [1.0, None], "flag": [True, False]})
    assert np.isnan(found.predict_proba(gap)[1]).all()
    with refused("rows with a missing value have no prediction: fill the"):
        found.predict(gap)
    with refused("Unknown feature", close="size"):
        noisy.naive_bayes(["sizes"])
    with refused("Unknown feature"):
        noisy.naive_bayes(["size:flag"])
    with refused("made of deviations from the mean"):
        groups(epsilon=1.0, mean=False).naive_bayes()
