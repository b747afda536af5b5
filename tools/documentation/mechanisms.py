"""The page docs/mechanisms.md, written from the registry: python -m tools.documentation.mechanisms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from dpmoments.cli.mechanisms import BUDGETS_SHOWN, needs_bound
from dpmoments.mechanisms.base import ConfiguredMechanism
from dpmoments.mechanisms.means.base import MeanMechanism
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS

PAGE = Path(__file__).parents[2] / "docs" / "mechanisms.md"
WHEN = yaml.safe_load((PAGE.parent / "evidence" / "mechanisms.yaml").read_text(encoding="utf-8"))
"""When to take each, which no program knows."""
Configured = type[ConfiguredMechanism[Any]]

WITHOUT_A_PROOF = {"auto"}
"""Mechanisms without an own derivation: ``auto`` chooses among the others."""
_PAGE_HEAD = """\
# Mechanisms

Written from the registry by `python -m tools.documentation.mechanisms`; `dpmoments mechanisms NAME` describes one
with its options; its [reference](api/mechanisms.md) has the guarantee, its proof the formula, and
[a map](evidence/every-mechanism.md#when-each-mechanism-has-the-least-error) shows which has the least error.

| name | what it does, and when to take it | budgets | neighbors | needs a row norm | source | |
| --- | --- | --- | --- | --- | --- | --- |
"""
_MEANS_HEAD = """
## Mean-only estimators

For `dpmoments.release_mean` and `dpmoments release-mean`. If rows need a bound, a schema with bounds implies it; otherwise it is
an option, `radius`, and for some `scale`.

| name | what it does, and when to take it | budgets | neighbors | rows need a bound | source | |
| --- | --- | --- | --- | --- | --- | --- |
"""


def mechanisms_page() -> str:
    """Return the documentation page with a line on every mechanism, in Markdown."""
    rows = (_page_row(mechanism, "proof") for mechanism in MECHANISMS.values())
    of_means = (_page_row(mechanism, "derivation") for mechanism in MEAN_MECHANISMS.values())
    return "".join([_PAGE_HEAD, *rows, _MEANS_HEAD, *of_means])


def derivation_page(mechanism: Configured) -> str | None:
    """Return the page with its derivation, relative to docs/; None without one.

    Estimators of means share a page, except those derived with a mechanism of the same name.

    >>> derivation_page(MECHANISMS["matrix-laplace"]), derivation_page(MEAN_MECHANISMS["naive"])
    ('evidence/derivations/matrix_laplace.md', 'evidence/derivations/means.md')
    """
    name = mechanism.registry_name()
    if name in WITHOUT_A_PROOF:
        return None
    of_means = issubclass(mechanism, MeanMechanism) and name not in MECHANISMS
    return f"evidence/derivations/{'means' if of_means else name.replace('-', '_')}.md"


def _page_row(mechanism: Configured, label: str) -> str:
    derivation, name = derivation_page(mechanism), mechanism.registry_name()
    when = WHEN["means" if issubclass(mechanism, MeanMechanism) else "covariance"][name]
    cells = (
        f"`{name}`",
        f"{mechanism.summary[0].upper()}{mechanism.summary[1:]}. " + re.sub(r"\]\((?!https?:)", "](evidence/", when),
        ", ".join(shown for kind, shown in BUDGETS_SHOWN.items() if kind in mechanism.budget_kinds),
        ", ".join(f"`{relation}`" for relation in sorted(mechanism.supported_neighbors)),
        "yes" if needs_bound(mechanism) else "no",
        mechanism.source,
        "" if derivation is None else f"[{label}]({derivation})",
    )
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(mechanisms_page(), encoding="utf-8")
