"""Notebooks of the documentation: run them, and show them as pages of the site.

``python -m tools.documentation.notebooks`` runs every notebook of ``docs`` and writes what its cells print. As a hook of
MkDocs, each becomes a page.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"


def notebooks() -> list[Path]:
    """Return the notebooks of the documentation."""
    return sorted(DOCS.glob("*.ipynb"))


def run(notebook: dict[str, Any]) -> list[str]:
    """Run the code cells in order, in an empty folder, and return what each prints."""
    names: dict[str, object] = {"__name__": "notebook"}
    printed = list[str]()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                stream = io.StringIO()
                with contextlib.redirect_stdout(stream):
                    exec(compile("".join(cell["source"]), "cell", "exec"), names)
                printed.append(stream.getvalue())
    return printed


def recorded(notebook: dict[str, Any]) -> list[str]:
    """Return what each code cell printed when the notebook was written."""
    cells = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    return ["".join(text for output in cell["outputs"] for text in output["text"]) for cell in cells]


def with_outputs(notebook: dict[str, Any], printed: list[str]) -> dict[str, Any]:
    """Return the notebook with other outputs."""
    results, cells = iter(printed), list[dict[str, Any]]()
    for number, cell in enumerate(notebook["cells"], start=1):
        if cell["cell_type"] == "code":
            text = next(results).splitlines(keepends=True)
            outputs = [{"name": "stdout", "output_type": "stream", "text": text}] if text else []
            cell = {**cell, "execution_count": number, "outputs": outputs}
        cells.append(cell)
    return {**notebook, "cells": cells}


def markdown(notebook: dict[str, Any]) -> str:
    """Return a notebook as a page: code and what it prints."""
    parts, outputs = list[str](), iter(recorded(notebook))
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        if text := next(outputs).rstrip("\n"):
            parts.append(f"```text\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each notebook of the site."""
    from mkdocs.structure.files import File

    for path in sorted(Path(config["docs_dir"]).glob("*.ipynb")):
        content = markdown(json.loads(path.read_text(encoding="utf-8")))
        files.append(File.generated(config, path.with_suffix(".md").name, content=content))
    return files


def main() -> None:
    """Run every notebook and write its outputs."""
    for path in notebooks():
        notebook = json.loads(path.read_text(encoding="utf-8"))
        text = json.dumps(with_outputs(notebook, run(notebook)), ensure_ascii=False, indent=1)
        path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
