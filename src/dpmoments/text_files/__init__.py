"""How delimited text files are written, as a curator says, and their bytes as UTF-8, from which names and cells are read."""
