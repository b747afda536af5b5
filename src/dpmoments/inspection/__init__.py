"""Preflight check of a table for the curator: exact and not private."""
