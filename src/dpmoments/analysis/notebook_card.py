"""What a notebook shows of a release: what it is of, its privacy, its features with their noise, what speaks against it, ways on.

No script and no colour of its own but that of warnings, so that it is read on light and on dark; every text is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from dpmoments.analysis.cautions import cautions
from dpmoments.analysis.description import describe
from dpmoments.analysis.html_tables import html_table
from dpmoments.analysis.released import Released
from dpmoments.analysis.shown_names import label
from dpmoments.privacy.statement import PrivacyStatement

__all__ = ["card", "release_card"]

MOST_FEATURES = 12
LONGEST_TEXT = 2000
LONGEST_NAME = 48
FRAME = "border:1px solid rgba(128,128,128,.45);border-radius:4px;padding:.6em 1em;max-width:56em"
WARNING = "border-left:4px solid #d55e00;padding-left:.6em;margin:.5em 0"
NOT_PRIVATE = "NOT PRIVATE: made with an insecure seed."
WAYS_ON = ("describe()", "plot.correlation()", "ols(…)", 'save("release.json")')


def card(
    title: str,
    facts: Sequence[str],
    table: Sequence[Sequence[str]],
    privacy: PrivacyStatement,
    warnings: Sequence[str],
    ways_on: Sequence[str],
) -> str:
    """A card as HTML.

    Parameters
    ----------
    title : str
    facts : sequence of str
        A line each.
    table : sequence of sequences of str
        The head first; of many lines the first are shown.
    privacy : PrivacyStatement
    warnings : sequence of str
        Empty ones are left out.
    ways_on : sequence of str
        What to call next.

    Examples
    --------
    >>> from dpmoments.privacy.budget import PrivacyBudget
    >>> from dpmoments.privacy.neighbors import Neighbors
    >>> said = PrivacyStatement(PrivacyBudget.pure(1.0), Neighbors.ADD_REMOVE, "exact-lattice", True, (), "0")
    >>> "<i>" in card("a <i>name</i>", [], [("feature",)], said, [], [])
    False
    """
    head, *rows = table
    hidden = len(rows) - MOST_FEATURES
    shown = rows if hidden <= 1 else rows[:MOST_FEATURES]
    more = f"<p>… and {hidden:,} more</p>" if hidden > 1 else ""
    insecure = "" if privacy.private else f'<p style="{WARNING}"><strong>{NOT_PRIVATE}</strong></p>'
    warned = "".join(f'<p style="{WARNING}">{_escaped(said)}</p>' for said in warnings if said)
    summary = _escaped(f"Privacy: {privacy.budget}, {privacy.neighbors}")
    calls = " ".join(f'<code style="white-space:nowrap">{_escaped(call)}</code>' for call in ways_on)
    return (
        f'<div style="{FRAME}"><p><strong>{_escaped(title)}</strong></p>{insecure}{warned}'
        f"{''.join(f'<p>{_escaped(fact)}</p>' for fact in facts if fact)}"
        f"{html_table([head, *shown], _escaped)}{more}"
        f'<details style="margin:1em 0"><summary>{summary}</summary>'
        f"{''.join(f'<p>{_escaped(line)}</p>' for line in privacy.in_words().splitlines() if line)}</details>"
        f"<p>{calls}</p></div>"
    )


def release_card(release: Released) -> str:
    """The card of a release of moments."""
    n_columns, d = len(release.schema.columns), len(release.feature_names)
    of_columns = f" of {n_columns} columns" if n_columns != d else ""
    title = f"Release of {d:,} feature{'s' if d != 1 else ''}{of_columns} by {release.mechanism}"
    try:
        found = describe(release)
    except ValueError as refusal:  # a file may hold any numbers, and is to be shown all the same
        return card(title, [str(refusal)], [("",)], release.privacy, [], [])
    law = "" if release.noise is not None else "noise unknown: this mechanism has no closed law of its noise"
    return card(
        title,
        [f"rows: {found.rows_in_words}", law or found.noise_in_words],
        [
            [label(cell, LONGEST_NAME) if place == 0 else cell for place, cell in enumerate(row)]
            for row in found.table()
        ],
        release.privacy,
        [cautions(release)],
        [f"release.{call}" for call in WAYS_ON],
    )


def _escaped(text: str) -> str:
    """For HTML, and without characters that turn its direction or control a terminal."""
    return html.escape(label(text, LONGEST_TEXT))
