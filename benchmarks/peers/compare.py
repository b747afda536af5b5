"""A full eigendecomposition under pure ε, by public packages and by this library: time and error on the same data.

    OMP_NUM_THREADS=1 python -m benchmarks.peers.compare [--limit 120] [--epsilons 1 4] [--environment PATH]

The peers are installed from the package index, pinned, each into a virtual environment of its own under ``--environment``;
nothing of theirs becomes a dependency. Every case runs in a process of its own and is stopped at the limit. Where a package was
stopped before its first release, larger d at that ε and n are not tried. Writes the tables of docs/evidence/misprinted-bingham.md
(its prose stays).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.pages import EVIDENCE, write_part
from dpmoments.papers.metrics import normalized_frobenius_error

PAGE = EVIDENCE / "misprinted-bingham.md"
PROGRAM = Path(__file__).parent / "programs.py"
PINNED = {
    "dpmm": tuple(Path(__file__).with_name("requirements.txt").read_text(encoding="utf-8").split()),
    "opendp": ("opendp[scikit-learn]==0.16.0", "scikit-learn==1.9.1", "numpy==2.4.6"),
    "diffprivlib": (
        "diffprivlib==0.6.6",
        "scikit-learn==1.5.2",
        "numpy==2.4.6",
    ),  # imports names that later scikit-learns moved
}
DIMENSIONS = (5, 10, 20)
ROWS = (1000, 10_000)
REPEATS = {"iterative-eigenvectors": 20, "peers-algorithm": 20, "matrix-laplace": 20, "opendp": 5, "diffprivlib": 5}
LABELS = {
    "opendp": "OpenDP, `make_private_pca`",
    "diffprivlib": "diffprivlib, `covariance_eig`",
    "iterative-eigenvectors": "`iterative-eigenvectors`",
    "peers-algorithm": "`iterative-eigenvectors` as the two above (uniform, paper's temperature)",
    "matrix-laplace": "`matrix-laplace`",
}
DIRECTION_DRAWS = 2000


@dataclass(frozen=True)
class Answer:
    """What a process said before it ended or was stopped."""

    versions: dict[str, str]
    results: list[dict[str, object]] = field(repr=False)
    stopped: bool

    @property
    def seconds(self) -> float:
        """Median CPU seconds of a release: the first one also pays for imports."""
        return float(np.median([result["seconds"] for result in self.results]))

    def arrays(self, name: str) -> np.ndarray:
        """What was released or drawn, stacked."""
        return np.array([result[name] for result in self.results])


def table(n: int, d: int) -> np.ndarray:
    """n rows of norm 1, standard deviations falling as 0.8^i before they are scaled; the same on every run."""
    rows = np.random.default_rng(d).standard_normal((n, d)) * 0.8 ** np.arange(d)
    scaled: np.ndarray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def interpreter(environment: Path, program: str) -> Path:
    """The Python that runs a program; makes a peer's environment where it is not there with the pinned versions."""
    peer = program.removesuffix("-direction")
    if peer not in PINNED:
        return Path(sys.executable)
    folder = environment / peer
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    wanted = "\n".join(PINNED[peer])
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"installing {', '.join(PINNED[peer])} into {folder}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PINNED[peer]], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return python


def ask(python: Path, program: str, rows: np.ndarray, epsilon: float, repeats: int, limit: float) -> Answer:
    """Run one case in a process of its own, for at most ``limit`` seconds by the clock."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/rows.npy", rows)
        job = {"program": program, "rows": f"{folder}/rows.npy", "epsilon": epsilon, "repeats": repeats}
        # Answers go to a file, so that those given before a stop are kept.
        with open(f"{folder}/answers.jsonl", "w+", encoding="utf-8") as answers:
            environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            with subprocess.Popen(
                [python, "-W", "ignore", PROGRAM], stdin=subprocess.PIPE, stdout=answers, env=environment, text=True
            ) as process:
                stopped = False
                try:
                    process.communicate(json.dumps(job), timeout=limit)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    stopped = True
            if not stopped and process.returncode:
                raise RuntimeError(f"{program} at d = {rows.shape[1]}, ε = {epsilon:g} failed: its error is above")
            answers.seek(0)
            lines = [json.loads(line) for line in answers if line.endswith("\n")]
    if not lines:
        raise RuntimeError(f"{program} did not start within {limit:g} s: raise --limit")
    return Answer(lines[0]["versions"], lines[1:], stopped)


def release_table(environment: Path, epsilons: list[float], limit: float) -> tuple[list[str], dict[str, str]]:
    """Time and error of every case, and the versions that ran."""
    lines = ["| ε | n | d | release | releases | CPU seconds each | × ours | ‖Ĝ − G‖_F/n |", "| --- |" + " --- |" * 7]
    versions: dict[str, str] = {}
    for epsilon, n in product(epsilons, ROWS):
        given_up: set[str] = set()
        for d in DIMENSIONS:
            rows = table(n, d)
            gram = rows.T @ rows
            unit = 0.0
            for program in REPEATS:  # ours first: the others' times are multiples of it
                head = f"| {epsilon:g} | {n:,} | {d} | {LABELS[program]} |"
                if program in given_up:
                    lines.append(f"{head} not tried: stopped at a smaller d | | | |")
                    continue
                answer = ask(interpreter(environment, program), program, rows, epsilon, REPEATS[program], limit)
                versions |= {
                    f"{name} ({program})" if program in PINNED else name: v for name, v in answer.versions.items()
                }
                if not answer.results:
                    given_up.add(program)
                    lines.append(f"{head} none: stopped at {limit:g} s | > {limit:g} | | |")
                else:
                    if program == "iterative-eigenvectors":
                        unit = answer.seconds
                    errors = [normalized_frobenius_error(found, gram, n_rows=n) for found in answer.arrays("gram")]
                    count = f"{len(errors)}" + (
                        f" of {REPEATS[program]}, stopped at {limit:g} s" if answer.stopped else ""
                    )
                    ratio = f"{answer.seconds / unit:,.3g}" if unit else ""
                    lines.append(f"{head} {count} | {answer.seconds:.3g} | {ratio} | {np.mean(errors):.3f} |")
                print(lines[-1], flush=True)
    return lines, versions


def direction_table(environment: Path, limit: float) -> list[str]:
    """Each package's own sampler of a direction on diag(40, 20, 10, 5, 0) at ε = 1."""
    lines = ["| sampler | draws | mean of u_1² | CPU milliseconds a draw |", "| --- | --- | --- | --- |"]
    for peer in (*PINNED, "dpmoments"):
        program = f"{peer}-direction"
        answer = ask(interpreter(environment, program), program, np.zeros((1, 1)), 1.0, DIRECTION_DRAWS, limit)
        squares = answer.arrays("direction")[:, 0] ** 2
        spread = squares.std() / np.sqrt(len(squares))
        version = answer.versions[peer]
        lines.append(
            f"| {peer} {version} | {len(squares)} | {squares.mean():.3f} ± {spread:.3f} | {1e3 * answer.seconds:.3g} |"
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Run all cases and put the tables into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds by the clock before a case is stopped")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--environment", type=Path, default=Path.home() / ".cache" / "dpmoments" / "peers")
    options = parser.parse_args()
    directions = direction_table(options.environment, options.limit)
    releases, versions = release_table(options.environment, options.epsilons, options.limit)
    command = f"python -m benchmarks.peers.compare --limit {options.limit:g} --epsilons " + " ".join(
        f"{epsilon:g}" for epsilon in options.epsilons
    )
    ran = ", ".join(f"{name} {value}" for name, value in sorted(versions.items()))
    tables = [
        f"By `OMP_NUM_THREADS=1 {command}`, Python {sys.version.split()[0]}. Versions: {ran}.",
        "",
        "## Full release",
        "",
        *releases,
        "",
        "## One direction, diag(40, 20, 10, 5, 0), ε = 1",
        "",
        *directions,
    ]
    write_part(PAGE, "peers", tables)
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
