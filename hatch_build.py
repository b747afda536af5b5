"""README of the package: the repository's, with links that also lead somewhere on a package index."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)]+)\)")


def with_absolute_links(text: str, repository: str) -> str:
    """Return the text with each relative link as an address of the repository; pictures as their raw files."""

    def absolute(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        return f"{picture}[{words}]({repository}/{'raw' if picture else 'blob'}/main/{target})"

    return RELATIVE.sub(absolute, text)


class ReadmeHook(MetadataHookInterface):
    """Hatchling's hook for the field ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set ``readme`` from README.md and ``[project.urls]``."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = with_absolute_links(text, metadata["urls"]["Repository"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
