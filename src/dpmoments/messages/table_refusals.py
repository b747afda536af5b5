"""Sentences of errors of schemas and tables; their facts are the fields of the sentence."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_FILL_IN = (
    "Fill these in from public knowledge (they are never read from the data, because that would leak it), or delete unwanted "
    "columns"
)

TABLE_REFUSALS: Mapping[str, str] = MappingProxyType(
    {
        # Files
        "file-damaged": "{path} is not a {noun}: it is damaged or not JSON ({failure:message})",
        "output-exists": "{path} exists already: {advice:message}",
        "unknown-engine": "unknown engine {engine!r}: use one of {engines:all}, or pass the path itself",
        "database-not-opened": (
            "the query cannot be run on {database} ({cause:phrase}); the database's own message may quote a password"
        ),
        "unknown-text-format-entries": "text_format has unknown entries {names:all}{question:message?}: use {known:all}",
        "text-file-unreadable": "{path} cannot be read: {reason:message}",
        "no-table-in-folder": (
            "the folder '{path}' holds no .parquet, .feather, .arrow, .csv, .tsv, .xlsx, .dta, .sav or .sas7bdat file"
        ),
        "no-file-matches": "no file matches '{path}'",
        "entry-of-other-type": "{name} must be {expected:phrase}",
        "not-unicode": "{where:message?}{parameter}={text!r} is not valid Unicode text (it holds half of a surrogate pair)",
        # Schemas
        "derived-of-other-kind": "{feature!r}: column '{column}' is {kind}, {reason:phrase}: leave it out",
        "yaml-syntax": "{path} is not a YAML file{fault:message?}",
        "file-unreadable": "{path} cannot be read: damaged, truncated, or not {expected:phrase}",
        "unknown-column-entries": "{column} has unknown entries {names:all}{question:message?}: use {options:all}",
        "not-a-pair": "column '{column}': {parameter}={value!r} must be a pair, {expected:phrase}",
        "number-as-text": "column '{column}': {parameter} {problem:message}",
        "schema-not-filled-in": "{blanks:messages}. " + _FILL_IN,
        "draft-not-possible": "{path}: {advice:message}",
        "schema-file-mistake": "{path}: {mistakes:messages}{advice:message?}",
        # Cells
        "not-a-number-type": (
            "column '{column}' has type {type} in the table and a {kind} column needs numbers: convert it, or "
            "describe it as Categorical{advice:message?}"
        ),
        # Tables
        "table-without-columns": (
            "{table} has no column {names:listed} among its {columns}{hint:message?}: rename the column in the table or, if "
            "every file has the other name, state it in the schema, as the column's source (names are not listed, because "
            "without a header line they could be a record)"
        ),
        "text-without-columns": "{path} does not have the schema's columns: {advice:message}",
        "types-of-files-differ": (
            "a file of the dataset has the column {name!r} as {type}, and the dataset has it as {other}, the type of another "
            "file: one cell would decide whether the cast succeeds. For files of several types pass the folder's path"
        ),
        "partition-not-read": (
            "a partition cannot be read: stopped by {kind}{where:message?}; the message is withheld, because it may quote the "
            "table"
        ),
        # The desk
        "desk-changed-elsewhere": (
            "something was changed in another window, or in the schema file, after this page was shown. Nothing was done: check "
            "the page below, and press the button again"
        ),
        "table-unreadable": "{table} cannot be read: {reason:message}",
        # Parts of other sentences
        "foreign-error": "{text}",
        "did-you-mean": " (did you mean {close:listed}?)",
        "names-alike": "; it has {names:listed}",
        "release-not-overwritten": (
            "a release cannot be made again without spending again, so it is not overwritten; choose another name"
        ),
        "never-overwritten": "it is not overwritten; choose another name",
        "not-overwritten-unless-asked": "it is not overwritten; choose another name, or {argument:overwrite}",
        "entry-absent": "it has no entry {name!r}",
        "json-syntax": "{problem}: line {line_number} column {column_number}",
        "text-not-read": "its text cannot be read",
        "key-twice": "a key occurs twice in one entry",
        "not-a-text-file": (
            "damaged, or not a text file in {encoding}: if it is text, pass the encoding it was saved in"
        ),
        "other-delimiter": (
            "its first line has {count} column(s) by the delimiter {by} and would have {other_count} by {other_by}: pass "
            "{argument:delimiter={delimiter}}"
        ),
        "text-for-number": (
            "must be a number, got the text {text!r}: digits with a decimal point, without a unit or thousands separators"
        ),
        "text-for-number-written": "must be a number, got the text {text!r}: write {number}",
        "text-for-number-is-date": (
            "must be a number, got the text {text!r}: a column with dates for bounds is of kind date, dpmoments.Date"
        ),
        "of-column": "column '{column}': ",
        "damaged-file": "damaged, truncated, or not what its name says",
        "damaged-or-not-text": (
            "damaged, or not text in UTF-8; if it is text, pass the encoding it was saved in, {argument:encoding}"
        ),
        "query-failed": "its query fails, on the table or before it",
        "reader-stopped": "{reason:message} ({kind})",
        "line-of-other-length": "one of its lines has a different number of fields than the first",
        "at-line": " at {line}",
        "text-is-read-with-decimal": '; or state decimal="." in the schema, and text is read',
        "text-is-read-with-words": "; or state true_values and false_values in the schema, and text is read",
        "lacks-columns": "lacks {names:listed}",
        "has-other-columns": "has {names:listed}, which the schema lacks",
        "other-order": "has them in another order",
        "comma-ends-entry": " (in braces a comma ends an entry: write 1000, not 1,000)",
        "blank-entries": "{column} has no {names:and no}",
        "blank-bounds": "{column} has no bounds ({names:all})",
        "fill-in-blanks": ". " + _FILL_IN,
        "value-read-differently": "it holds a value that YAML reads differently than it looks",
        "fault-in-line": " (line {line}): {fault:message}",
        "mistake-in-line": "line {line}: {fault:message}",
        "fault-of-entry": "{entry}: {fault:message}",
        "value-runs-on": (
            "{fault:message} (a value runs on from line {first} to {last}: is a colon, or the space after one, missing there?)"
        ),
        "indented-with-tab": "it is indented with a tab, but YAML allows only spaces",
        "dash-without-space": "add a space after the - that begins a column",
        "bracket-not-closed": "the {opening} that opens there is not closed with {closing}",
        "bracket-or-comma-missing": (
            "the {opening} that opens there is not closed with {closing}, or a comma is missing in it"
        ),
        "indent-differs": "its indent differs: indent it like the line above, with a column's entries aligned",
        "colon-missing": "a colon is missing or superfluous, here or in the line before, or an indent differs",
        "quote-not-closed": "a quote is opened and not closed",
        "check-indents": "check its indents and quotes",
        "alias-of-itself": "an alias contains itself",
        "too-many-values": "it holds more than {most:,} values with aliases expanded, or nests them {deepest} deep",
        "mismarked-value": "a value that is marked as {kind} is not one",
        "value-of-other-kind": "it holds a value of a kind that schemas do not use",
        "typographic-quotes": (
            '{column}: {text} has typographic quotes, {marks:all}, which YAML reads as part of it: write {bare}, or "{bare}" in '
            "straight quotes"
        ),
        "levels-are-text": "{column}: levels is a text, not a list: put them in [ ], levels: [{parts:all}]",
        "levels-hold-one": (
            "{column}: levels holds one level, {level!r}: with commas it would be levels: [{parts:all}]; if it really is one, "
            'quote it: levels: ["{level}"]'
        ),
        "levels-of-two-kinds": (
            "{column}: {text} is text because it begins with 0, but {number} is a number: put all in quotes, levels: "
            "[{parts:all}]"
        ),
        "point-starts-decimals": (
            "{text} is {number}, because a point starts the decimals: write {number}, or {number}000"
        ),
        "unknown-entry-of-schema": "unknown entries in the schema: {name!r}{question:message?}",
        "two-columns-of-one-name": "lines {first} and {second}: two columns are named {name!r}: rename or delete one",
        "colon-without-space": "every column is a mapping with a name and a kind: add a space after each colon",
    }
)
"""Sentence by code: what was given, why it is refused, what to do.

No fact of an error is private.
"""
