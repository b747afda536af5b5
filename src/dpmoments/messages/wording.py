"""Facts put into the words of a message. Templates are the library's own: no text of a fact is ever read as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dpmoments.foundation.errors import visible
from dpmoments.foundation.values import no_less
from dpmoments.messages.codes import Fact

Words = str | Callable[[Mapping[str, Fact]], str]
"""A template with the facts' names in braces, or a function of the facts."""
MAX_NAMED = 5
"""Names that one message lists; of more it says how many there are."""


class _Names(tuple["Fact", ...]):
    """Facts that are listed when they are formatted."""

    def __format__(self, spec: str) -> str:
        return listed([*map(str, self)], quoted=spec != "plain")


def filled(words: Words, facts: Mapping[str, Fact]) -> str:
    """Return the words with the facts in them; characters of names that a terminal obeys are shown.

    Examples
    --------
    >>> print(filled("{names} and {share:.0%}", {"names": ("a", "{share}"), "share": 0.2}))
    'a', '{share}' and 20%
    """
    shown = {name: _shown(fact) for name, fact in facts.items()}
    return words(shown) if callable(words) else words.format(**shown)


def _shown(fact: Fact) -> Fact:
    """Return a fact without characters of names that a terminal obeys."""
    if isinstance(fact, tuple):
        return _Names(map(_shown, fact))
    return visible(fact) if isinstance(fact, str) else fact


def listed(names: Sequence[str], *, quoted: bool = True) -> str:
    """Return names as a message lists them.

    Examples
    --------
    >>> listed(["age", "income"]), listed("abcdefg", quoted=False)
    ("'age', 'income'", 'a, b, c, d, e and 2 more')
    """
    result = [f"'{name}'" if quoted else name for name in names[:MAX_NAMED]]
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(result) + more


def budget_text(facts: Mapping[str, Fact]) -> str:
    """Return a budget in words.

    Examples
    --------
    >>> budget_text({"epsilon": 1.0}), budget_text({"rho": 0.5})
    ('ε = 1', 'ρ = 0.5')
    """
    signs = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    return ", ".join(f"{sign} = {no_less(_float(facts, name))}" for name, sign in signs.items() if name in facts)


def at_most_percent(share: Fact) -> str:
    """Return a share in percent, rounded up to two digits.

    Examples
    --------
    >>> at_most_percent(0.2201)
    '23%'
    """
    assert isinstance(share, int | float)
    return f"{no_less(100.0 * share, 2)}%"


def _float(facts: Mapping[str, Fact], name: str) -> float:
    value = facts[name]
    assert isinstance(value, int | float)
    return float(value)
