"""Contenders for the default release, their errors on a table, and what one gains over another."""
