"""SchemaDraft: the schema of a table with blanks for all that is not in its header."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from dpmoments.foundation.documents import NEVER_OVERWRITTEN, write_text
from dpmoments.foundation.text_format import TextFormat
from dpmoments.schema.header import frame_header, read_header
from dpmoments.schema.template import schema_template

__all__ = ["SchemaDraft", "draft"]


@dataclass(frozen=True, repr=False)
class SchemaDraft:
    """A schema whose bounds and levels are still blank, as YAML with comments. Made by :meth:`dpmoments.Schema.draft`.

    Attributes
    ----------
    text : str
        What ``print`` shows and :meth:`save` writes.
    names : tuple of str
        The columns.
    """

    text: str
    names: tuple[str, ...]

    def save(self, path: str | Path) -> None:
        """Write the YAML; fill in its blanks and read it with :meth:`dpmoments.Schema.load`.

        Raises
        ------
        FileExistsError
            If there is a file already: it may hold what was filled in.
        """
        write_text(self.text, path, taken=NEVER_OVERWRITTEN)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"SchemaDraft({len(self.names)} columns, to be filled in)"


def draft(data: Any, text_format: TextFormat | None = None) -> SchemaDraft:
    """The draft of a table in any form that is released: :meth:`dpmoments.Schema.draft`."""
    if isinstance(data, str | PathLike):
        header = read_header(data if isinstance(data, str) else Path(data), text_format)
        source, what = str(data), "file"
    else:
        header, source, what = frame_header(data), "a table", "frame"
    names = tuple(column.name for column in header.columns)
    return SchemaDraft(schema_template(header, source, what), names)
