"""Code that ``make lint`` checks and nothing runs: what is right has no type error, and each slip has the one it names.

A slip that is not found is an unused ``type: ignore``, which is an error too.
"""

# ruff: noqa: B018, F841
from __future__ import annotations

import numpy as np

import dpmoments as dpm


def right() -> None:
    mechanism: dpm.mechanisms.Standardized = dpm.mechanisms.Standardized(clip=False)
    plan = dpm.mechanisms.CoinPress(eigenvalue_bounds=(1.0, 10.0), steps=3)
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Boolean("smoker"), dpm.Categorical("region", ["a", "b"]))
    released: dpm.MomentRelease = dpm.release(np.zeros((3, 2)), schema, epsilon=1.0, mechanism=mechanism, mean=True)
    fit = released.ridge("age", ["smoker"], alpha=0.1, level=0.9)
    slope: float = float(fit.coefficients[0])
    wide = fit.conf_int(0.9, adjust="bonferroni").loc[["smoker"]]
    mean_of_params: float = fit.params.mean()
    released.pca(1, scaling="bounds").components
    again: dpm.MomentRelease = dpm.load("people.json")
    mean: dpm.MeanRelease = dpm.release_mean(
        np.zeros((3, 2)), schema, rho=1.0, mechanism=dpm.mechanisms.means.Naive(radius=1.0)
    )
    moments = dpm.rows.Rows.of(np.zeros((3, 2)), dpm.Schema.unit_ball(2)).moments()
    exact = moments.gram * moments.scale**2


def slips() -> None:
    dpm.mechanisms.Gausian()  # type: ignore[attr-defined]
    dpm.mechanisms.Standardized(clipped=False)  # type: ignore[call-arg]
    dpm.mechanisms.MatrixLaplace(clip=False)  # type: ignore[call-arg]
    dpm.mechanisms.CoinPress(steps="three")  # type: ignore[arg-type]
    dpm.mechanisms.Auto(rule="loose")  # type: ignore[arg-type]
    dpm.release(np.zeros((3, 1)), dpm.Schema.unit_ball(1), epsilom=1.0)  # type: ignore[call-arg]
    dpm.release(None, dpm.Schema.unit_ball(1), epsilon=1.0)  # type: ignore[arg-type]
    dpm.release([[0.5], [0.1]], dpm.Schema.unit_ball(1), epsilon=1.0)  # type: ignore[arg-type]
    dpm.load("a.json").ridg("age")  # type: ignore[attr-defined]
    dpm.load("a.json", dpm.MeanRelease).ridge("age")  # type: ignore[attr-defined]
    dpm.release(np.zeros((3, 1)), dpm.Schema.unit_ball(1), rho=1.0).ridg("age")  # type: ignore[attr-defined]
    dpm.release(np.zeros((3, 1)), dpm.Schema.unit_ball(1), rho=1.0).ols("age").conf_int(adjust="holm")  # type: ignore[arg-type]
    dpm.load("a.json").ridge("age", alfa=1.0)  # type: ignore[call-arg]
