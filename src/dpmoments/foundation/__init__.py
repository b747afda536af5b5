"""Errors, arrays, plain values, documents, progress, text formats, lazy libraries; and the version of the library."""

__version__ = "0.1.0"
"""``pyproject.toml`` reads it here."""
