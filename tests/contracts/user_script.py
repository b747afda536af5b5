"""Script of a user, whose types ``make lint`` checks by mypy --strict and Pyright; nothing runs it.

``assert_type`` is an error if a result is Any or Unknown: an editor then offers no names after the dot.
"""

from typing import assert_type

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import dpmoments as dpm
from dpmoments.analysis.correlations import Correlations
from dpmoments.analysis.description import Description
from dpmoments.analysis.regression_results import FittedLine
from dpmoments.planning.forecast_table import Forecast

people = pd.DataFrame({"age": [30, 40], "pay": [1.0, 2.0], "sex": ["Female", "Male"], "smoker": [True, False]})
schema = dpm.Schema(
    dpm.Numeric("age", 17, 90),
    dpm.Numeric("pay", 0, 100_000, missing="drop"),
    dpm.Categorical("sex", ["Female", "Male"]),
    dpm.Boolean("smoker"),
)
assert_type(dpm.preflight(people, schema), dpm.Preflight)
assert_type(dpm.forecast(schema, n_rows=50_000, epsilon=1.0), Forecast)
assert_type(schema.names, tuple[str, ...])

budget = dpm.Ledger("budget.db")
budget.grant("people-2026", epsilon=3.0, reason="first year", by="the board")
released = dpm.release(
    people,
    schema,
    epsilon=1.0,
    neighbors="add_remove",
    privacy_unit=dpm.PrivacyUnit("person_id", max_rows=5),
    mechanism=dpm.mechanisms.Standardized(),
    output="people.json",
    dataset="people-2026",
    ledger=budget,
)
assert_type(released, dpm.MomentRelease)
assert_type(released.privacy.budget, dpm.PrivacyBudget)
assert_type(dpm.release("people/*.parquet", schema, rho=0.5), dpm.MomentRelease)
assert_type(dpm.release(np.zeros((3, 4)), schema, epsilon=1.0, delta=1e-6), dpm.MomentRelease)

release = dpm.load("people.json")
fit = release.ols("pay ~ age + C(sex) + smoker")
assert_type(fit, FittedLine)
assert_type(fit.params.mean(), float)
assert_type(fit.conf_int(0.9), pd.DataFrame)
assert_type(release.ridge("pay", ["age", "smoker"], alpha=0.1), FittedLine)
assert_type(release.describe(), Description)
assert_type(release.correlations(), Correlations)
assert_type(release.plot.correlation(), Axes)
assert_type(release.synthetic(100), pd.DataFrame)
assert_type(release.covariance_frame(), pd.DataFrame)
print(release.t_test("pay", "sex"), release.group_means("sex"), release.pca(2), release.mean.round(2))

assert_type(dpm.load("means.json", dpm.MeanRelease).n_rows, int)
groups = dpm.release_groups(people, schema, by="sex", epsilon=1.0)
assert_type(groups["Male"], dpm.MomentRelease)
assert_type(dpm.pool(groups.values()), dpm.PooledRelease)
assert_type(dpm.release_counts(people, schema, by=["sex"], epsilon=1.0), dpm.CountsRelease)
assert_type(dpm.report(release, "people.html"), None)
