"""Values of tables, in their many types, read as numbers or levels.

The same for a release and for a prediction.
"""
