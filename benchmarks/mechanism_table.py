"""The table of mechanisms in the docs, written from the registry.

python -m benchmarks.mechanism_table
"""

from __future__ import annotations

from pathlib import Path

from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.registry import MECHANISMS
from dpmoments.privacy.budget import BudgetKind

OUTPUT = Path(__file__).parent.parent / "docs" / "mechanisms.md"
KIND_WORDS = {BudgetKind.PURE: "ε", BudgetKind.APPROXIMATE: "(ε, δ)", BudgetKind.ZCDP: "ρ"}


def row(name: str, mechanism: type[Mechanism]) -> str:
    """One line of the table."""
    kinds = ", ".join(words for kind, words in KIND_WORDS.items() if kind in mechanism.budget_kinds)
    neighbors = ", ".join(f"`{relation}`" for relation in sorted(mechanism.supported_neighbors))
    bound = "yes" if mechanism.needs_row_norm else "no"
    page = Path("derivations") / f"{mechanism.__module__.rsplit('.', 1)[-1]}.md"
    proof = f"[proof]({page})" if (OUTPUT.parent / page).exists() else ""
    return f"| `{name}` | {mechanism.summary} | {kinds} | {neighbors} | {bound} | {mechanism.source} | {proof} |"


def table() -> str:
    """The whole page."""
    lines = [
        "# Mechanisms",
        "",
        "Written from the registry by `python -m benchmarks.mechanism_table`; `dpmoments mechanisms NAME` describes one with its",
        "options.",
        "",
        "| name | what it does | budgets | neighbours | needs a row norm | source | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [row(name, mechanism) for name, mechanism in MECHANISMS.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    OUTPUT.write_text(table(), encoding="utf-8")
    print(f"wrote {OUTPUT}")
