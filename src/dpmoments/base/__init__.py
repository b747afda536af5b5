"""Errors, arrays, plain values, documents, progress, text formats and lazy libraries."""

__version__ = "0.2.0"
"""``pyproject.toml`` reads it here."""
