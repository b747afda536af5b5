"""Parts of sentences that a fact names by a code: what is expected, found or advised."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

PHRASES: Mapping[str, str] = MappingProxyType(
    {
        # Kinds of values
        "array": "a NumPy array",
        "axes": "a matplotlib axes",
        "basis": "shape (d, k) with k ≤ d, one column per basis vector",
        "below-half": "above 0 and below 0.5",
        "character": "one character, not a letter, digit or line end",
        "column-name": "the column's name in the table, a text",
        "date": "a date as YYYY-MM-DD, such as 2026-03-01",
        "date-format": "a text such as '%d.%m.%Y'",
        "date-or-time": "a date, as in '2015-01-31' or '2015-01-31T12:00:00'",
        "feature-or-formula": "the name of a feature, or a formula",
        "flag": "true or false",
        "list": "a list",
        "list-of-texts": "a list of texts: put the texts of the file in quotes",
        "mapping": "a mapping",
        "messages": "a list of messages",
        "number": "a number",
        "privacy-unit": "a dpmoments.PrivacyUnit",
        "schema": "a dpmoments.Schema",
        "size-in-inches": "a width and a height in inches",
        "square": "a square matrix, (d, d)",
        "text": "a text",
        "text-format": "a dpmoments.TextFormat",
        "text-or-none": "a text, or left out",
        "vector": "a vector with at least one entry",
        "whole-number": "a whole number",
        # Analyses
        "partial-correlations": "partial correlations",
        "cross-table": "a cross table",
        "discriminant": "a discriminant",
        "graph": "a graph of dependence",
        "group-means": "group means",
        "anova": "analysis of variance",
        "naive-bayes": "naive Bayes",
        # What was found
        "fractions": "floating-point numbers that are not exact integers",
        "neither-text-nor-bytes": "values that cannot be read as text or bytes",
        "nested-values": "nested values",
        "none-given": "none was given",
        "not-both": "not both",
        "odd-objects": "objects, one of which is not an integer, text, bytes or UUID",
        "truth-values": "true and false",
        # Ranges of numbers
        "above-zero": "above 0",
        "zero-or-above": "0 or above",
        "above-two": "above 2, or the covariance does not exist",
        "auto-or-not-negative": "'auto', 0 or a positive number",
        "auto-or-positive": "'auto' or a positive number",
        "count": "a whole number, 0 or more",
        "error-or-drop": "'error', or 'drop' to drop rows without a unit",
        "fraction": "a fraction, above 0 and at most 1",
        "low-and-high": "a pair (low, high), each a number or one number per column",
        "not-negative": "finite and not negative",
        "one-or-more": "at least 1",
        "positive-whole": "a positive whole number",
        "steps": "a whole number from 1 to 1000",
        "positive": "a positive finite number",
        "probability": "a probability, above 0 and below 1",
        "rank": "a whole number from 1 to the number of features, or None for all",
        "rows-summed": "the number of rows summed, or 1 for averages",
        "share": "a share, between 0 and 1",
        "share-of-budget": "a share of the budget, above 0 and below 1",
        "threads": "at least 1: leave it out for one per core",
        "zero-or-one": "0 or 1",
        # Entries of noise models
        "as-many-as-dimensions": "at least the number of dimensions",
        "blocks": "sizes of blocks that follow each other",
        "given-for-center": "given, since noise is about a center of levels",
        "in-unit-ball": "in the unit ball",
        "known-for-parts": "known for the features of each part",
        "not-empty": "a list of at least one",
        "one-per-coordinate": "one number per coordinate, finite and not negative",
        "positive-definite": "symmetric and positive definite",
        "symmetric": "symmetric, finite and not negative",
        "symmetric-family": "a family that can be added about a center of levels",
        "twice-off-diagonal": "twice the variance off the diagonal",
        "unset": "left out for this family",
    }
)
"""Words by code; a fact of kind ``phrase`` holds the code."""
