"""Linear regression from one release: its ridge parameter, and methods that spend all their budget on one regression."""
