"""Errors, arrays, plain values, documents, progress, text formats and lazily loaded libraries."""
