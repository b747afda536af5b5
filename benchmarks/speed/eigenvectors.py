"""
Time of drawing all d eigenvectors one after another, as a ratio to ``numpy.linalg.eigh`` in the same run, and the
number of proposals a draw on the sphere takes.

``python -m benchmarks.speed.eigenvectors`` [--repeats 3] [--quick]

First table, a full-rank draw. Timings are interleaved (one of each, again and again) and ratios are of medians. Columns:

- ``strong``, ``flat``: temperature times range of the spectrum 10⁶, 0;
- ``low rank``: as ``strong``, with all but five eigenvalues at rounding noise;
- ``one core``: ``strong`` and ``eigh`` both on one core; ``step by step``: one dense decomposition a step (d = 100);
- ``exponent``: of ``strong`` in d since the row before.

Second table, mean proposals a draw of ``sample_bingham_diagonal`` against 2√d + 4.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from benchmarks.speed.kernel import interleaved_medians
from dpmoments.papers.sphere import sample_bingham, sample_bingham_diagonal, sample_orthonormal_frame

SIZES = (100, 250, 400, 1000)
QUICK_SIZES = (100, 250, 400)
TARGET_RATIO = 60.0
TARGET_EXPONENT = 3.4

FloatArray = npt.NDArray[np.float64]


def step_by_step(matrix: FloatArray, temperatures: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The algorithm as published: restrict, decompose, draw, project."""
    vectors = np.empty((len(matrix), 0))
    complement = np.eye(len(matrix))
    for temperature in temperatures:
        restricted = complement.T @ matrix @ complement
        direction = sample_bingham(temperature * (restricted + restricted.T) / 2.0, None, rng)
        vectors = np.column_stack([vectors, complement @ direction])
        complement = np.linalg.qr(vectors, mode="complete").Q[:, vectors.shape[1] :]
    return vectors


def measure_frames(d: int, repeats: int) -> tuple[dict[str, float], float]:
    """Seconds of each job at one size, and mean proposals a vector of the strong one."""
    rng = np.random.default_rng(d)
    root = rng.standard_normal((d, 2 * d))
    gram = root @ root.T
    gram /= np.linalg.norm(gram, 2)
    factor = rng.standard_normal((d, 5))
    low_rank = factor @ factor.T
    low_rank /= np.linalg.norm(low_rank, 2)

    def draw(matrix: FloatArray, strength: float) -> float:
        return float(sample_orthonormal_frame(matrix, np.full(d, strength), rng)[1].mean())

    def on_one_core(job: object, *arguments: object) -> None:
        with threadpool_limits(1, user_api="blas"):
            job(*arguments)  # type: ignore[operator]

    jobs = {
        "eigh": lambda: np.linalg.eigh(gram),
        "eigh, one core": lambda: on_one_core(np.linalg.eigh, gram),
        "strong": lambda: draw(gram, 1e6),
        "flat": lambda: draw(gram, 0.0),
        "low rank": lambda: draw(low_rank, 1e6),
        "strong, one core": lambda: on_one_core(draw, gram, 1e6),
    }
    if d <= 100:
        jobs["step by step"] = lambda: step_by_step(gram, np.full(d, 1e6), rng)
    return interleaved_medians(jobs, repeats), draw(gram, 1e6)


def spectra(d: int) -> dict[str, FloatArray]:
    return {
        "flat": np.zeros(d),
        "half mass": np.r_[max(d - 2.0, 0.0), np.zeros(d - 1)],
        "one far above": np.r_[1e12, np.zeros(d - 1)],
        "half far above": np.r_[np.full(d // 2, 1e12), np.zeros(d - d // 2)],
        "linear, range d": np.linspace(0.0, d, d),
        "linear, range 1e6": np.linspace(0.0, 1e6, d),
        "geometric": 1e6 * 0.8 ** np.arange(d),
        "heavy-tailed": d * np.abs(np.random.default_rng(d).standard_cauchy(d)),
    }


def print_frames(sizes: tuple[int, ...], repeats: int) -> None:
    names = ["strong", "flat", "low rank"]
    print(
        f"all d eigenvectors, time relative to numpy.linalg.eigh, medians of {repeats}; target at d = 1000: {TARGET_RATIO:g}"
    )
    print(
        f"{'d':>5} {'eigh ms':>8} "
        + " ".join(f"{name:>9}" for name in names)
        + f" {'one core':>9} {'step by step':>13} {'proposals':>10} {'exponent':>9}"
    )
    previous: tuple[int, float] | None = None
    seconds_by_size: dict[int, float] = {}
    for d in sizes:
        seconds, proposals = measure_frames(d, repeats)
        ratios = " ".join(f"{seconds[name] / seconds['eigh']:>9.1f}" for name in names)
        one_core = seconds["strong, one core"] / seconds["eigh, one core"]
        dense = f"{seconds['step by step'] / seconds['eigh']:>13.1f}" if "step by step" in seconds else f"{'':>13}"
        exponent = ""
        if previous is not None:
            exponent = f"{math.log(seconds['strong'] / previous[1]) / math.log(d / previous[0]):.2f}"
        print(
            f"{d:>5} {1e3 * seconds['eigh']:>8.1f} {ratios} {one_core:>9.1f} {dense} {proposals:>10.1f} {exponent:>9}",
            flush=True,
        )
        previous = d, seconds["strong"]
        seconds_by_size[d] = seconds["strong"]
    if {250, 1000} <= seconds_by_size.keys():
        growth = math.log(seconds_by_size[1000] / seconds_by_size[250]) / math.log(4.0)
        print(f"growth from d = 250 to 1000: d^{growth:.2f} (target d^{TARGET_EXPONENT})")


def print_proposals() -> None:
    sizes = (2, 5, 10, 50, 100, 500)
    print("\nmean proposals a draw on the sphere, 2000 draws each")
    print(f"{'spectrum':>20} " + " ".join(f"{'d=' + str(d):>7}" for d in sizes))
    rng = np.random.default_rng(0)
    for name in spectra(2):
        counts = [sample_bingham_diagonal(spectra(d)[name], 2000, rng)[1] / 2000 for d in sizes]
        print(f"{name:>20} " + " ".join(f"{count:>7.2f}" for count in counts), flush=True)
    print(f"{'target 2√d + 4':>20} " + " ".join(f"{2.0 * math.sqrt(d) + 4.0:>7.2f}" for d in sizes))


def main() -> None:
    parser = argparse.ArgumentParser(description="Sequential eigenvector draws relative to numpy.linalg.eigh.")
    parser.add_argument("--repeats", type=int, default=3, help="timed turns; medians are reported")
    parser.add_argument("--quick", action="store_true", help="leave out d = 1000")
    options = parser.parse_args()
    print_frames(QUICK_SIZES if options.quick else SIZES, options.repeats)
    print_proposals()


if __name__ == "__main__":
    main()
