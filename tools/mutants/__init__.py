"""The mutation score: faults planted one at a time in the parts on which privacy rests, and whether a test notices.

``make mutants`` runs it and writes ``tools/mutants/mutation-score.md``.
"""
