"""Errors, arrays, plain values, documents, progress, text formats, lazy libraries."""
