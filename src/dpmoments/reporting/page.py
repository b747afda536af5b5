"""Pages: templates filled in with every text escaped, whoever wrote it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dpmoments.foundation.visible_text import visible

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["filled_in"]


def filled_in(template: str, **content: Any) -> str:
    """A page as text.

    Parameters
    ----------
    template : str
        Name of a file in ``templates/``.
    **content
        What it names. Texts are escaped, and what a browser obeys instead of showing is spelled out; only what this package made
        itself (``markupsafe.Markup``) is taken as it is.

    Raises
    ------
    jinja2.UndefinedError
        If the template names what is not given.
    """
    return _environment().get_template(template).render(**content)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("dpmoments.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: Any) -> Any:
    """Before escaping; what is markup already stays."""
    return visible(value) if type(value) is str else value
