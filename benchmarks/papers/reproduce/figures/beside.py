"""What the figures beside the papers' own share: methods that the papers do not show, and panels of other forms."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.papers.reproduce.declaration import Method
from benchmarks.papers.reproduce.figures import amin, sheffet
from benchmarks.papers.sheffet import techniques

AMIN = "Beside Amin et al. 2019"
SHEFFET = "Beside Sheffet 2015"
DEPTH = 23
"""Trials of methods that are quick; slow ones on tables of a hundred columns have fewer."""
SLOW = 8

AD_TIGHT, UNIFORM_TIGHT, KT_TIGHT = (
    Method(
        f"{name}, tight",
        {"mechanism": mechanism, "options": options},
        most_trials=DEPTH,
        style={"color": color, "ls": "--"},
    )
    for name, mechanism, options, color in (
        ("AD", "iterative-eigenvectors", {"allocation": "adaptive"}, "tab:red"),
        ("IT-U", "iterative-eigenvectors", {"allocation": "uniform"}, "tab:orange"),
        ("KT", "kapralov-talwar", {}, "tab:green"),
    )
)
GAPS = Method(
    "iterative-eigenvectors", {"mechanism": "iterative-eigenvectors"}, most_trials=DEPTH, style={"color": "tab:brown"}
)
"""As the library has it: tight, the budget split by gaps."""
MATRIX_LAPLACE = Method("matrix Laplace, clipped", {"mechanism": "matrix-laplace"}, style={"color": "tab:purple"})
GAUSSIAN = replace(amin.EXACT_GAUSSIAN[1], style={"color": "tab:cyan"})
AD_PRINTED, UNIFORM_PRINTED = (
    Method(f"{name} as printed, not private", {"printed": split}, most_trials=DEPTH, style={"color": color, "ls": ":"})
    for name, split, color in (("AD", "adaptive", "tab:red"), ("IT-U", "uniform", "tab:orange"))
)

CLIPPED = sheffet.both("Analyze Gauss, clipped", "tab:orange", {"technique": techniques.GAUSS})
LEAST_SHIFT = sheffet.both("Analyze Gauss + least cI", "tab:olive", {"technique": "Gaussian noise, cI, least c"})
SHRUNK = sheffet.both("Analyze Gauss, shrunk", "tab:brown", {"technique": "Gaussian noise, shrunk"})
ADAPTED = Method(
    "Analyze Gauss, adapted, paper",
    {"technique": techniques.ADAPTED, "calibration": "paper"},
    style={"color": "black", "ls": ":"},
)
"""The library's repair of the published noise; exactly calibrated it is the library's default."""
PROJECTION_LESS = sheffet.both("Algorithm 1 less its ridge", "tab:red", {"technique": techniques.JL_UNBIASED})
INVERSE = sheffet.both("noise on the inverse", "tab:pink", {"technique": techniques.INVERSE})
PURE = Method(
    "matrix Laplace, δ = 0", {"technique": techniques.LAPLACE, "calibration": "exact"}, style={"color": "tab:cyan"}
)
