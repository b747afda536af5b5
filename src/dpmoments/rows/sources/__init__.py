"""Sources of rows, one file per kind, which map summaries over partitions and merge results."""
