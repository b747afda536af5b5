"""Tables of classes by name, each loaded when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar

Class = TypeVar("Class")


class LoadedClasses(Mapping[str, Class], Generic[Class]):
    """Classes by registry name, from texts such as ``"dpmoments.mechanisms.auto:Auto"``.

    Each is loaded on first use; iterating over names loads nothing.
    """

    def __init__(self, entries: Mapping[str, str]) -> None:
        self.entries = dict(entries)

    def __getitem__(self, name: str) -> Class:
        module, _, class_name = self.entries[name].partition(":")
        result: Class = getattr(import_module(module), class_name)
        return result

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)
