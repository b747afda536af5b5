"""A full eigendecomposition under pure ε, by public packages and by this library: time on the same data.

    OMP_NUM_THREADS=1 python -m benchmarks.peers.compare

The peers are installed from the package index, pinned, each into a virtual environment of its own under :data:`ENVIRONMENTS`;
nothing of theirs becomes a dependency. Every case runs in a process of its own and is stopped at the limit. Where a package was
stopped before its first release, larger d at that n are not tried. Writes the tables of docs/evidence/misprinted-bingham.md
(its prose stays).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.pages import EVIDENCE, head, write_part

PAGE = EVIDENCE / "misprinted-bingham.md"
PROGRAM = Path(__file__).parent / "programs.py"
PINNED = {
    "dpmm": tuple(Path(__file__).with_name("requirements.txt").read_text(encoding="utf-8").split()),
    "opendp": ("opendp[scikit-learn]==0.16.0", "scikit-learn==1.9.1", "numpy==2.4.6"),
    # It imports names that later scikit-learns moved.
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.5.2", "numpy==2.4.6"),
}
ENVIRONMENTS = Path.home() / ".cache" / "dpmoments" / "peers"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
EPSILON, LIMIT = 1.0, 120.0
"""Seconds by the clock before a case is stopped."""
DIMENSIONS = (5, 10, 20)
ROWS = (1000, 10_000)
REPEATS = {"iterative-eigenvectors": 20, "opendp": 5, "diffprivlib": 5}
LABELS = {
    "opendp": "OpenDP, `make_private_pca`",
    "diffprivlib": "diffprivlib, `covariance_eig`",
    "iterative-eigenvectors": "`iterative-eigenvectors`",
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


def interpreter(program: str) -> Path:
    """The Python that runs a program; makes a peer's environment where it is not there with the pinned versions."""
    peer = program.removesuffix("-direction")
    if peer not in PINNED:
        return Path(sys.executable)
    folder = ENVIRONMENTS / peer
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    wanted = "\n".join(PINNED[peer])
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"installing {', '.join(PINNED[peer])} into {folder}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PINNED[peer]], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return python


def ask(program: str, rows: np.ndarray, epsilon: float, repeats: int) -> Answer:
    """Run one case in a process of its own, until the limit."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/rows.npy", rows)
        job = {"program": program, "rows": f"{folder}/rows.npy", "epsilon": epsilon, "repeats": repeats}
        # Answers go to a file, so that those given before a stop are kept.
        with open(f"{folder}/answers.jsonl", "w+", encoding="utf-8") as answers:
            stopped = False
            try:
                subprocess.run(
                    [interpreter(program), "-W", "ignore", PROGRAM], input=json.dumps(job), stdout=answers, text=True,
                    timeout=LIMIT, check=True, env=os.environ | ONE_THREAD,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                stopped = True
            answers.seek(0)
            lines = [json.loads(line) for line in answers if line.endswith("\n")]
    if not lines:
        raise RuntimeError(f"{program} did not start within {LIMIT:g} s")
    return Answer(lines[0]["versions"], lines[1:], stopped)


def release_table() -> tuple[list[str], dict[str, str]]:
    """Time of every case, and the versions that ran."""
    lines = [*head("ε | n | d | release | releases | CPU seconds each | × ours", "lllllll")]
    versions: dict[str, str] = {}
    for n in ROWS:
        given_up: set[str] = set()
        for d in DIMENSIONS:
            rows = table(n, d)
            unit = 0.0
            for program, repeats in REPEATS.items():  # ours first: the others' times are multiples of it
                about = f"| {EPSILON:g} | {n:,} | {d} | {LABELS[program]} |"
                if program in given_up:
                    lines.append(f"{about} not tried: stopped at a smaller d | | |")
                    continue
                answer = ask(program, rows, EPSILON, repeats)
                of = f" ({program})" if program in PINNED else ""
                versions |= {f"{name}{of}": version for name, version in answer.versions.items()}
                if not answer.results:
                    given_up.add(program)
                    lines.append(f"{about} none: stopped at {LIMIT:g} s | > {LIMIT:g} | |")
                    continue
                if program == "iterative-eigenvectors":
                    unit = answer.seconds
                count = f"{len(answer.results)}" + (f" of {repeats}, stopped at {LIMIT:g} s" if answer.stopped else "")
                ratio = f"{answer.seconds / unit:,.3g}" if unit else ""
                lines.append(f"{about} {count} | {answer.seconds:.3g} | {ratio} |")
                print(lines[-1], flush=True)
    return lines, versions


def direction_table() -> list[str]:
    """Each package's own sampler of a direction on diag(40, 20, 10, 5, 0) at ε = 1."""
    lines = [*head("sampler | draws | mean of u_1² | CPU milliseconds a draw", "llll")]
    for peer in ("opendp", "diffprivlib", "dpmoments"):
        answer = ask(f"{peer}-direction", np.zeros((1, 1)), 1.0, DIRECTION_DRAWS)
        squares = answer.arrays("direction")[:, 0] ** 2
        mean = f"{squares.mean():.3f} ± {squares.std() / np.sqrt(len(squares)):.3f}"
        lines.append(f"| {peer} {answer.versions[peer]} | {len(squares)} | {mean} | {1e3 * answer.seconds:.3g} |")
        print(lines[-1], flush=True)
    return lines


if __name__ == "__main__":
    directions, (releases, versions) = direction_table(), release_table()
    ran = ", ".join(f"{name} {value}" for name, value in sorted(versions.items()))
    command = "`OMP_NUM_THREADS=1 python -m benchmarks.peers.compare`"
    tables = [f"By {command}, Python {sys.version.split()[0]}. Versions: {ran}.", "", "### Full release", "", *releases]
    tables += ["", "### One direction, diag(40, 20, 10, 5, 0), ε = 1", "", *directions]
    write_part(PAGE, "peers", tables)
