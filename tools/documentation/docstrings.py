"""Docstrings in the site: cross-references written as roles (``:class:`Rows```) become code, and shared options are shown."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|data|attr):`~?([^`]+)`")


class RolesAsCode(griffe.Extension):
    """Replaces every role by what it names."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every object that is read."""
        if obj.docstring:
            obj.docstring.value = ROLE.sub(r"`\1`", obj.docstring.value)

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """Called for every function: those with ``**asked`` show the options that stand for it."""
        if ("asked", griffe.ParameterKind.var_keyword) not in [(each.name, each.kind) for each in func.parameters]:
            return
        function = getattr(import_module(func.parent.path), func.name)
        func.parameters = griffe.Parameters(
            *(
                griffe.Parameter(
                    name,
                    annotation=inspect.formatannotation(entry.annotation).strip("'"),
                    kind=getattr(griffe.ParameterKind, entry.kind.name.lower()),
                    default=None if entry.default is entry.empty else repr(entry.default),
                )
                for name, entry in inspect.signature(function).parameters.items()
            )
        )
