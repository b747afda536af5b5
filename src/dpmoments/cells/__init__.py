"""Cells of tables in their many types, read as numbers or levels: the same for the rows of a release and for a prediction."""
