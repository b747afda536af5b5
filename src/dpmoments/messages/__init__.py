"""Messages as data: a code with plain facts in files, receipts, warnings and errors, and their words for each audience."""
