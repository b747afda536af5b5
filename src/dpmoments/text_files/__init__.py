"""How delimited text files are written: what a curator says of one, and its bytes as UTF-8, from which names and cells are read."""
