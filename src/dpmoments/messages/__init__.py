"""Messages as data: a code with plain facts, and its words for each audience.

Files, receipts, warnings and errors hold the code and the facts.
"""
