"""Planning: the noise of a release in the table's units before any data is read, and what it would take to have less."""
