"""The page docs/mechanisms.md, written from the registry: python -m tools.documentation.mechanisms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpmoments.cli.mechanisms import BUDGETS_SHOWN, needs_bound
from dpmoments.mechanisms.base import ConfiguredMechanism
from dpmoments.mechanisms.means.base import MeanMechanism
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS

PAGE = Path(__file__).parents[2] / "docs" / "mechanisms.md"
Configured = type[ConfiguredMechanism[Any]]

WITHOUT_A_PROOF = {"auto"}
"""Mechanisms without an own derivation: ``auto`` chooses among the others."""
_PAGE_HEAD = """\
# Mechanisms

Written from the registry by `python -m tools.documentation.mechanisms`; `dpmoments mechanisms NAME` describes one
with its options. Each page has its formula, guarantee and options, and a picture of when it has the smallest error.

| name | what it does | budgets | neighbors | needs a row norm | source | |
| --- | --- | --- | --- | --- | --- | --- |
"""
_MEANS_HEAD = """
## Mean-only estimators

For `dpmoments.release_mean` and `dpmoments release-mean`. If rows need a bound, a schema with bounds implies it; otherwise it is
an option, `radius`, and for some `scale`.

| name | what it does | budgets | neighbors | rows need a bound | source | |
| --- | --- | --- | --- | --- | --- | --- |
"""


def mechanisms_page() -> str:
    """Return the documentation page with a line on every mechanism, in Markdown."""
    rows = (_page_row(mechanism, "proof") for mechanism in MECHANISMS.values())
    of_means = (_page_row(mechanism, "derivation") for mechanism in MEAN_MECHANISMS.values())
    return "".join([_PAGE_HEAD, *rows, _MEANS_HEAD, *of_means])


def own_page(mechanism: Configured) -> str:
    """Return the documentation page of one mechanism, relative to docs/.

    >>> own_page(MECHANISMS["coinpress"]), own_page(MEAN_MECHANISMS["coinpress"])
    ('evidence/mechanisms/coinpress.md', 'evidence/mechanisms/mean-coinpress.md')
    """
    kind = "mean-" if issubclass(mechanism, MeanMechanism) else ""
    return f"evidence/mechanisms/{kind}{mechanism.registry_name()}.md"


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
    derivation = derivation_page(mechanism)
    cells = (
        f"[`{mechanism.registry_name()}`]({own_page(mechanism)})",
        mechanism.summary,
        ", ".join(shown for kind, shown in BUDGETS_SHOWN.items() if kind in mechanism.budget_kinds),
        ", ".join(f"`{relation}`" for relation in sorted(mechanism.supported_neighbors)),
        "yes" if needs_bound(mechanism) else "no",
        mechanism.source,
        "" if derivation is None else f"[{label}]({derivation})",
    )
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(mechanisms_page(), encoding="utf-8")
