"""Contenders for the default release, and their errors on a table."""
