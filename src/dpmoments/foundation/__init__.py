"""Foundation: errors, arrays, plain values, documents, progress, text formats, lazily loaded libraries."""
