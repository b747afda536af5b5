"""Runs one library in a process of its own: reads a job from standard input, writes one line of JSON an answer.

Started by ``benchmarks/peers/compare.py`` with the Python of that library's environment, so it imports nothing but NumPy at the
top.

A job is ``{"program": name, "rows": path, "epsilon": float, "repeats": int}``. The first line of the answer has the versions of
the packages; then comes, for every release, ``{"seconds": CPU seconds, "gram": matrix}`` (rows have norm at most 1; replace-one,
full rank, second moment alone), or for every draw of a direction ``{"seconds": CPU seconds, "direction": vector}``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

SPECTRUM = (40.0, 20.0, 10.0, 5.0, 0.0)

Program = Callable[[np.ndarray, float], Callable[[], Any]]


def from_eigen(eigenvalues: np.ndarray, vectors: np.ndarray, n: int) -> np.ndarray:
    """Σ λ_i v_i v_iᵀ with eigenvalues moved into [0, n]; n is public under replace-one."""
    return (vectors * np.clip(eigenvalues, 0.0, n)) @ vectors.T


def opendp_release(rows: np.ndarray, epsilon: float) -> Callable[[], np.ndarray]:
    """``make_private_pca`` at a known origin: its eigendecomposition of XᵀX, budget split as it does by default."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious", "idealized-numerics", "floating-point")
    n, d = rows.shape
    domain = dp.numpy.array2_domain(p=2, norm=1.0, origin=np.zeros(d), num_columns=d, size=n, T=float)
    measurement = dp.sklearn.decomposition.make_private_pca(domain, dp.symmetric_distance(), epsilon)
    spent = measurement.map(2)  # one row changed: one removed and one added
    if not 0.999 * epsilon < spent < 1.001 * epsilon:
        raise AssertionError(f"the measurement states ε = {spent}, not {epsilon}")

    def run() -> np.ndarray:
        released = measurement(rows)
        return from_eigen(released.S**2, released.Vt.T, n)

    return run


def diffprivlib_release(rows: np.ndarray, epsilon: float) -> Callable[[], np.ndarray]:
    """``covariance_eig`` with the public norm 1."""
    from diffprivlib.models.utils import covariance_eig

    def run() -> np.ndarray:
        eigenvalues, vectors = covariance_eig(rows, epsilon=epsilon, norm=1.0)
        return from_eigen(eigenvalues, vectors, len(rows))

    return run


def dpmoments_release(rows: np.ndarray, epsilon: float) -> Callable[[], np.ndarray]:
    """:func:`dpmoments.release` by ``iterative-eigenvectors``."""
    import dpmoments as dpm

    schema = dpm.Schema.unit_ball(rows.shape[1])
    options = dict(epsilon=epsilon, neighbors="replace_one", mechanism="iterative-eigenvectors", mean=False)
    return lambda: dpm.release(rows, schema, **options).unit_ball_gram


def peers_algorithm(d: int) -> Any:
    """What the peers run, but for the sampler: the paper's temperature ε_i/4, the budget in d equal parts."""
    from dpmoments.mechanisms import IterativeEigenvectors

    return IterativeEigenvectors(allocation="uniform", calibration="paper", eigenvalue_share=1.0 / d)


def opendp_direction(_: np.ndarray, epsilon: float) -> Callable[[], np.ndarray]:
    """One draw of its eigenvector sampler on diag(SPECTRUM)."""
    import opendp.prelude as dp
    from opendp.extras.numpy import _sscp_domain
    from opendp.extras.sklearn._make_eigenvector import make_private_eigenvector

    dp.enable_features("contrib", "honest-but-curious", "idealized-numerics", "floating-point")
    d = len(SPECTRUM)
    domain = _sscp_domain(num_features=d, norm=1.0, p=2, size=75, T=float)
    measurement = make_private_eigenvector(domain, dp.symmetric_distance(), epsilon)
    return lambda: np.asarray(measurement(np.diag(SPECTRUM)))


def diffprivlib_direction(_: np.ndarray, epsilon: float) -> Callable[[], np.ndarray]:
    """One draw of its Bingham mechanism on diag(SPECTRUM)."""
    from diffprivlib.mechanisms import Bingham

    mechanism = Bingham(epsilon=epsilon)
    return lambda: mechanism.randomize(np.diag(SPECTRUM))


def dpmoments_direction(_: np.ndarray, epsilon: float) -> Callable[[], np.ndarray]:
    """One draw at the same temperature, ε/4."""
    from dpmoments.papers.sphere import sample_bingham
    from dpmoments.privacy.sampling import secure_generator

    generator = secure_generator()
    return lambda: sample_bingham(epsilon / 4.0 * np.diag(SPECTRUM), None, generator)


PROGRAMS: dict[str, tuple[Program, tuple[str, ...]]] = {
    "opendp": (opendp_release, ("opendp", "numpy", "scikit-learn")),
    "diffprivlib": (diffprivlib_release, ("diffprivlib", "numpy", "scikit-learn")),
    "iterative-eigenvectors": (dpmoments_release, ("dpmoments", "numpy")),
    "opendp-direction": (opendp_direction, ("opendp",)),
    "diffprivlib-direction": (diffprivlib_direction, ("diffprivlib",)),
    "dpmoments-direction": (dpmoments_direction, ("dpmoments",)),
}


def main() -> None:
    """Answer the job on standard input."""
    job = json.load(sys.stdin)
    program, packages = PROGRAMS[job["program"]]
    rows = np.load(job["rows"])
    run = program(rows, job["epsilon"])
    print(json.dumps({"versions": {name: version(name) for name in packages}}), flush=True)
    for _ in range(job["repeats"]):
        start = time.process_time()
        result = run()
        seconds = time.process_time() - start
        name = "direction" if result.ndim == 1 else "gram"
        print(json.dumps({"seconds": seconds, name: result.tolist()}), flush=True)


if __name__ == "__main__":
    main()
