"""Time of drawing all 1,000 eigenvectors one after another, as a ratio to ``numpy.linalg.eigh`` in the same run.

``python -m benchmarks.speed.eigenvectors`` prints the median of three turns. Temperature times range of the spectrum is 10⁶.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.speed.timing import interleaved
from dpmoments.papers.sphere import sample_orthonormal_frame

D, STRENGTH = 1000, 1e6


if __name__ == "__main__":
    rng = np.random.default_rng(D)
    root = rng.standard_normal((D, 2 * D))
    gram = root @ root.T
    gram /= np.linalg.norm(gram, 2)
    jobs: dict[str, Callable[[], object]] = {
        "eigh": partial(np.linalg.eigh, gram),
        "draw": partial(sample_orthonormal_frame, gram, np.full(D, STRENGTH), rng),
    }
    times = interleaved(jobs, 3, time.perf_counter)
    eigh, draw = (statistics.median(times[name]) for name in jobs)
    print(f"d = {D}: eigh {1e3 * eigh:.1f} ms, all eigenvectors / eigh {draw / eigh:.1f}")
