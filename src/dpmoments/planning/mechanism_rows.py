"""A line of a forecast: one mechanism at one budget, or why it cannot run; and what derived features cost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpmoments.mechanisms.base import Mechanism, MomentShape
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget

__all__ = ["DerivedCost", "ForecastRow", "refusals_in_a_line", "short_refusal", "shown"]

NEEDED = {
    frozenset({BudgetKind.PURE}): "ε alone",
    frozenset({BudgetKind.APPROXIMATE}): "δ > 0",
    frozenset({BudgetKind.ZCDP}): "ρ",
    frozenset({BudgetKind.APPROXIMATE, BudgetKind.ZCDP}): "δ > 0 or ρ",
    frozenset({BudgetKind.PURE, BudgetKind.APPROXIMATE}): "ε",
    frozenset({BudgetKind.PURE, BudgetKind.ZCDP}): "ε alone or ρ",
}


@dataclass(frozen=True, slots=True)
class ForecastRow:
    """One mechanism at one budget.

    Attributes
    ----------
    mechanism : str
    second_moment_error : float or None
        Root mean square of ‖Ĝ − G‖_F/n for encoded rows in the unit ball, before any repair; None where the mechanism cannot run.
    mean_error : float or None
        Root mean square of ‖mean error‖₂ in the unit ball; None where no mean is wanted or the mechanism cannot run.
    arithmetic : str or None
        What the guarantee rests on.
    refusal : str or None
        Why the mechanism cannot run, where it cannot.
    assumed : bool
        Whether ``second_moment_error`` depends on the table, and is that on the forecast's ``assumption``.
    mean_assumed : bool
        The same for ``mean_error``.
    guaranteed_error : float or None
        What ``second_moment_error`` does not pass in any table, for a mechanism that adapts to the table; None for others.
    chosen_because : str or None
        Why ``auto`` chose what it did.
    short_refusal : str or None
        The refusal in a few words.
    typical_noise : float or None
        Standard deviation of the noise on a typical correlation (on a mean, in its standard deviations, where there is one
        column); None where it is not known beforehand.
    """

    mechanism: str
    second_moment_error: float | None = None
    mean_error: float | None = None
    arithmetic: str | None = None
    refusal: str | None = None
    assumed: bool = False
    mean_assumed: bool = False
    guaranteed_error: float | None = None
    chosen_because: str | None = None
    short_refusal: str | None = None
    typical_noise: float | None = None

    @property
    def second_moment_shown(self) -> str:
        """``second_moment_error`` to three digits, or to two and marked with ~ where it is assumed."""
        return shown(self.second_moment_error, self.assumed)

    @property
    def mean_shown(self) -> str:
        """``mean_error`` in the same way."""
        return shown(self.mean_error, self.mean_assumed)

    @property
    def correlation_shown(self) -> str:
        """``typical_noise`` to two digits, ``noise`` where no correlation would be left."""
        if self.typical_noise is None:
            return "–"
        return f"{self.typical_noise:.2g}" if self.typical_noise < 1.0 else "noise"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {
            "mechanism": self.mechanism,
            "second_moment_error": self.second_moment_error,
            "mean_error": self.mean_error,
            "arithmetic": self.arithmetic,
            "refusal": self.refusal,
            "assumed": self.assumed,
            "mean_assumed": self.mean_assumed,
            "guaranteed_error": self.guaranteed_error,
            "chosen_because": self.chosen_because,
            "typical_noise": self.typical_noise,
        }


@dataclass(frozen=True, slots=True)
class DerivedCost:
    """What the derived features of a schema cost the others, in noise of one mechanism at the public bounds.

    Attributes
    ----------
    names : tuple of str
        The derived features: ``age^2``.
    mechanism : str
        The one of least error whose noise has a law.
    second_moment : float
        By what share the standard deviation of the noise on a cell of two other features, in the table's units, is above what it
        is without the derived features: 0.5 is half as much again. The largest, where typical ranges make cells differ.
    mean : float or None
        The same for the mean of another feature; None where no mean is wanted.
    """

    names: tuple[str, ...]
    mechanism: str
    second_moment: float
    mean: float | None

    def __str__(self) -> str:
        means = "" if self.mean is None else f", on means by {self.mean:.0%}"
        return (
            f"derived features {', '.join(self.names)} raise the noise on every second moment of other features by "
            f"{self.second_moment:.0%}{means} ({self.mechanism})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {
            "names": list(self.names),
            "mechanism": self.mechanism,
            "second_moment": self.second_moment,
            "mean": self.mean,
        }


def shown(error: float | None, assumed: bool) -> str:
    """An error for people.

    Examples
    --------
    >>> shown(0.12345, False), shown(0.12345, True), shown(None, False)
    ('0.123', '~0.12', '–')
    """
    if error is None:
        return "–"
    return f"~{error:.2g}" if assumed else f"{error:.3g}"


def short_refusal(mechanism: Mechanism, shape: MomentShape, budget: PrivacyBudget, refusal: str) -> str:
    """A refusal in a few words."""
    if budget.kind not in mechanism.budget_kinds:
        return f"needs {NEEDED[mechanism.budget_kinds]}"
    if mechanism.most_features is not None and shape.n_features > mechanism.most_features:
        return f"takes {mechanism.most_features} feature at most"
    if mechanism.needs_row_norm and shape.row_norm is None:
        return "needs bounds on every column"
    words = re.sub(rf"^(mechanism )?'?{re.escape(mechanism.name)}'? ", "", refusal)
    return re.split(r"[:(;]|\. ", words)[0].strip()


def refusals_in_a_line(rows: Sequence[ForecastRow]) -> str:
    """All mechanisms that cannot run, those with the same reason together; empty where there is none.

    Examples
    --------
    >>> rows = [ForecastRow(name, refusal="…", short_refusal="needs δ > 0") for name in ("gaussian", "inverse-wishart")]
    >>> refusals_in_a_line(rows)
    'cannot run here: gaussian, inverse-wishart (needs δ > 0)'
    """
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.refusal is not None:
            reasons.setdefault(row.short_refusal or row.refusal, []).append(row.mechanism)
    if not reasons:
        return ""
    return "cannot run here: " + "; ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())
