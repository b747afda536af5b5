"""Sources of rows, one file per kind of engine: each maps a summary over its partitions and merges the results."""
