"""Sources of rows, one file per kind of engine.

Each maps a summary over its partitions and merges the results.
"""
