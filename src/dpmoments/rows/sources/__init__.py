"""Where rows come from, one file a kind of engine: each maps a summary over its partitions and merges the results."""
