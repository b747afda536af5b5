"""Errors of covariances (CoinPress, section 4.1): ‖Σ^{−1/2} Σ̂ Σ^{−1/2} − I‖_F, rows replaced, ρ-zCDP, a new table in every trial.

Panel: ``d``, ``n``, ``spread`` (K, of I ⪯ Σ ⪯ KI) in units of √d, ``rho``, ``skewed``; ``varies`` names the one that x
is. Method: ``options`` of the library's CoinPress, ``released`` steps of the released program with its two mistakes or
``mended``, or ``knows``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import dpmoments as dpm
from benchmarks.papers.reproduce.declaration import Method, Point


def rotation(d: int, rng: np.random.Generator) -> np.ndarray:
    """A uniformly random orthogonal matrix."""
    q, r = np.linalg.qr(rng.normal(size=(d, d)))
    return q * np.sign(np.diag(r))


def measure(point: Point, methods: Sequence[Method]) -> Iterator[tuple[str, str, float]]:
    known: dict[str, Any] = {"spread": 10.0, "rho": 0.5, "d": 10, "skewed": False} | dict(point.settings)
    known[known["varies"]] = point.x
    n, d, rho = int(known["n"]), int(known["d"]), float(known["rho"])
    spread = float(known["spread"]) * (1.0 if known["varies"] == "spread" else math.sqrt(d))
    rng = point.rng("table")
    table, truth = rng.normal(size=(n, d)), np.eye(d)
    if known["skewed"]:
        q, eigenvalues = rotation(d, rng), np.r_[np.full(d // 2, spread), np.ones(d - d // 2)]
        truth, table = (q * eigenvalues) @ q.T, table @ ((q * np.sqrt(eigenvalues)) @ q.T)
    for method in methods:
        seed = point.seed(method.label, dict(method.settings))
        yield method.label, "error", whitened_error(estimate(table, method, spread, rho, seed), truth)


def whitened_error(estimate: np.ndarray, truth: np.ndarray) -> float:
    """``dpm.metrics.mahalanobis_error``, which refuses the released program's estimates: they are not symmetric."""
    eigenvalues, vectors = np.linalg.eigh(truth)
    root = (vectors / np.sqrt(eigenvalues)) @ vectors.T
    return float(np.linalg.norm(root @ estimate @ root - np.eye(len(truth))))


def estimate(table: np.ndarray, method: Method, spread: float, rho: float, seed: int) -> np.ndarray:
    """Σ̂ of rows whose mean is known to be 0."""
    asked = method.settings
    if asked.get("knows") == "rows":
        centred = table - table.mean(axis=0)
        return centred.T @ centred / len(table)
    if "released" in asked:
        rng = np.random.default_rng(seed)
        return released_covariance(table, spread, rho, asked["released"], rng, mended=asked.get("mended", False))
    mechanism = dpm.mechanisms.CoinPress(eigenvalue_bounds=(1.0, spread), **asked.get("options", {}))
    released = dpm.release(
        table, dpm.Schema.unbounded(table.shape[1]), rho=rho, neighbors="replace_one", mechanism=mechanism,
        mean=False, insecure_seed=seed, threads=1,
    )  # fmt: skip
    return released.second_moment


def released_covariance(
    table: np.ndarray, spread: float, rho: float, steps: int, rng: np.random.Generator, *, mended: bool
) -> np.ndarray:
    """MVCRec with the constants of the experiments.

    The released program multiplies by A from the wrong side, although A is not symmetric from the second step on, and makes the
    absolute values of eigenvalues of what should lose its negative ones. ``mended`` has neither mistake.
    """
    n, d = table.shape
    a, logarithm = math.sqrt(d / n), math.log(1.0 / 0.1)
    clip_square = d + 2.0 * math.sqrt(d * logarithm) + 2.0 * logarithm
    ridge = 0.5 * (2.0 * a + a * a)
    shares = [1.0] if steps == 1 else [0.25 / (steps - 1)] * (steps - 1) + [0.75]
    linear = np.eye(d) / math.sqrt(spread)
    for step, share in enumerate(shares):
        mapped = table @ (linear.T if mended else linear)
        lengths = np.linalg.norm(mapped, axis=1)
        mapped *= np.minimum(1.0, math.sqrt(clip_square) / np.maximum(lengths, 1e-300))[:, None]
        noise = np.triu(rng.normal(0.0, clip_square / (n * math.sqrt(share * rho)), size=(d, d)))
        eigenvalues, vectors = np.linalg.eigh(mapped.T @ mapped / n + noise + np.triu(noise, 1).T)
        eigenvalues = np.maximum(eigenvalues, 0.0) if mended else np.abs(eigenvalues)
        if step < len(shares) - 1:
            linear = ((vectors / np.sqrt(eigenvalues + ridge)) @ vectors.T) @ linear
    back = np.linalg.inv(linear)
    found: np.ndarray = back @ (vectors * eigenvalues) @ vectors.T @ (back.T if mended else back)
    return found
