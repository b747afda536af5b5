"""What a release tells to whoever has to judge it: a statement for an auditor, and an entry for a public registry."""
