"""Estimators as scikit-learn's common checks take them, and the table of what they do not pass.

    python tests/support/checked_estimators.py

writes the table into ``docs/evidence/scikit-learn-checks.md``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.pages import write_part

from dpmoments.estimators import DPPCA, DPCovariance, DPLinearDiscriminant, DPRidge
from dpmoments.estimators.base import _NOISE, _REASONS

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "scikit-learn-checks.md"


LEFT_OUT = {"check_transformer_data_not_an_array", "check_transformer_general", "check_pipeline_consistency"}
"""Checks that scikit-learn leaves out for estimators that are not deterministic."""
ESTIMATORS = {
    "DPCovariance": DPCovariance,
    "DPPCA": DPPCA,
    "DPRidge": DPRidge,
    "DPLinearDiscriminant": DPLinearDiscriminant,
}


def for_checks(name: str, **parameters: Any) -> Any:
    """Bounds that hold the data of all checks, some of which are near 100; an ε at which accuracy is not what fails."""
    more: dict[str, Any] = {
        "DPRidge": {"target_bounds": (-20.0, 20.0)},
        "DPLinearDiscriminant": {"classes": [0, 1, 2]},
    }.get(name, {})
    return ESTIMATORS[name](bounds=(-200.0, 200.0), epsilon=1e6, mechanism="laplace", **more, **parameters)


def table_of_checks() -> str:
    lines = ["| check | estimators | what | why |", "| --- | --- | --- | --- |"]
    for name, (reason, estimators) in _REASONS.items():
        whose = "all" if len(estimators) == len(ESTIMATORS) else ", ".join(f"`{each}`" for each in estimators)
        what = "left out by scikit-learn" if name in LEFT_OUT else "may fail" if reason == _NOISE else "fails"
        lines.append(f"| `{name}` | {whose} | {what} | {reason} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_part(PAGE, "checks", table_of_checks().splitlines())
