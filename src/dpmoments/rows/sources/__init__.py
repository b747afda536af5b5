"""Where rows come from: one file a kind of engine."""
