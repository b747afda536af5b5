"""What a numpydoc docstring says of the parameters: the command line and the pages of the mechanisms read it."""

from __future__ import annotations

import inspect
import re
from typing import Any, NamedTuple

__all__ = ["ParameterWords", "parameters_in_words"]


class ParameterWords(NamedTuple):
    """What stands for one parameter: behind its name, and beneath it."""

    kind: str
    text: str


def parameters_in_words(documented: Any) -> dict[str, ParameterWords]:
    """The section on parameters, by name, the lines of each joined; empty where there is none.

    Examples
    --------
    >>> def area(width, height):
    ...     '''An area.
    ...
    ...     Parameters
    ...     ----------
    ...     width, height : float
    ...         In metres.
    ...     '''
    >>> parameters_in_words(area)["height"]
    ParameterWords(kind='float', text='In metres.')
    """
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", inspect.getdoc(documented) or "", re.S | re.M)
    kinds: dict[str, str] = {}
    lines: dict[str, list[str]] = {}
    names: list[str] = []
    for line in (section[1] if section else "").splitlines():
        if line and not line.startswith(" "):
            listed, _, kind = line.partition(" : ")
            names = listed.split(", ")
            kinds |= dict.fromkeys(names, kind)
        else:
            for name in names:
                lines.setdefault(name, []).append(line.strip())
    return {name: ParameterWords(kind, " ".join(filter(None, lines.get(name, [])))) for name, kind in kinds.items()}
