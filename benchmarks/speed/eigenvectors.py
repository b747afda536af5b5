"""Time of drawing all d eigenvectors one after another, as a ratio to ``numpy.linalg.eigh`` in the same run.

``python -m benchmarks.speed.eigenvectors`` prints medians of three turns. Temperature times range of the spectrum is 10⁶;
*exponent* is that of the time in d since the row before; *step by step* makes one dense decomposition a step, as published
(d = 100).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.pages import head
from benchmarks.speed.timing import interleaved
from dpmoments.base.values import FloatArray
from dpmoments.papers.sphere import sample_bingham, sample_orthonormal_frame

STRENGTH = 1e6


def step_by_step(matrix: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The algorithm as published: restrict, decompose, draw, project."""
    vectors = np.empty((len(matrix), 0))
    complement = np.eye(len(matrix))
    for _ in range(len(matrix)):
        restricted = complement.T @ matrix @ complement
        direction = sample_bingham(STRENGTH * (restricted + restricted.T) / 2.0, None, rng)
        vectors = np.column_stack([vectors, complement @ direction])
        complement = np.linalg.qr(vectors, mode="complete").Q[:, vectors.shape[1] :]
    return vectors


def main() -> None:
    print(*head("d | eigh, ms | all eigenvectors / eigh | exponent | step by step / eigh", "rrrrr"), sep="\n")
    before: tuple[int, float] | None = None
    for d in (100, 250, 400, 1000):
        rng = np.random.default_rng(d)
        root = rng.standard_normal((d, 2 * d))
        gram = root @ root.T
        gram /= np.linalg.norm(gram, 2)
        jobs: dict[str, Callable[[], object]] = {
            "eigh": partial(np.linalg.eigh, gram),
            "draw": partial(sample_orthonormal_frame, gram, np.full(d, STRENGTH), rng),
        }
        if d == 100:
            jobs["step by step"] = partial(step_by_step, gram, rng)
        times = interleaved(jobs, 3, time.perf_counter)
        seconds = {name: statistics.median(each) for name, each in times.items()}
        exponent = f"{math.log(seconds['draw'] / before[1]) / math.log(d / before[0]):.2f}" if before else ""
        dense = f"{seconds['step by step'] / seconds['eigh']:.1f}" if "step by step" in seconds else ""
        ratio = seconds["draw"] / seconds["eigh"]
        print(f"| {d} | {1e3 * seconds['eigh']:.1f} | {ratio:.1f} | {exponent} | {dense} |", flush=True)
        before = d, seconds["draw"]


if __name__ == "__main__":
    main()
