"""Inspection: the preflight check of a table, exact and not private, for the curator."""
