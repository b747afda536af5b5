"""Planning: the noise of a release before any data is read, and how to reduce it."""
