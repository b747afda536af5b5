"""Sentences of errors of schemas and tables; their facts are the fields of the sentence."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_FILL_IN = (
    "Fill these in from public knowledge (they are never read from the data, because that would leak it), or delete unwanted "
    "columns"
)
_GIVE_TYPES = (
    "give the types, spark.read.schema('age double, region string'), or pass CSV files as "
    "EngineFiles(path, engine='spark')"
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
        "not-a-unit-column": (
            "column '{column}' identifies privacy units and holds {content:phrase}: it must hold integers, whole numbers, "
            "text, bytes or UUIDs. Convert it to text first"
        ),
        # Tables
        "dask-folder-types": (
            "the Dask frame's column '{column}' is in the names of folders, and its type is guessed from all of "
            "them, so that one row would decide how others are read. Pass dpmoments.EngineFiles(folder, "
            'engine="dask"), or state the type: read_parquet(folder, dataset={{"partitioning": '
            "pyarrow.dataset.partitioning(pyarrow.schema([('{column}', pyarrow.string())]), flavor=\"hive\")}})"
        ),
        "dask-wide-integers": (
            "{columns:message} of more than 53 bits, which pandas rounds if another cell of the partition is empty. Read "
            'Parquet files with dask.dataframe.read_parquet(..., dtype_backend="pyarrow"), or pass '
            'dpmoments.EngineFiles(path, engine="dask")'
        ),
        "dask-shuffle-on-disk": (
            'the Dask frame\'s plan has a {step}, which writes rows to a disk: use shuffle_method="tasks", or '
            'write the prepared table to Parquet files and pass dpmoments.EngineFiles(path, engine="dask")'
        ),
        "dask-cluster-spills": (
            "{table} cannot be read on this cluster: {reason:message}, so that workers keep rows between tasks and may "
            "write them to their disks. Write the prepared table to Parquet files and pass "
            'dpmoments.EngineFiles(path, engine="dask"); or use threads, dask.config.set(scheduler="threads"); '
            "or start every worker with distributed.worker.memory.target and distributed.worker.memory.spill set "
            "to false"
        ),
        "table-without-columns": (
            "{table} has no column {names:listed} among its {columns}{hint:message?}: rename the column in the table or, if "
            "every file has the other name, state it in the schema, as the column's source (names are not listed, because "
            "without a header line they could be a record)"
        ),
        "text-without-columns": "{path} does not have the schema's columns: {advice:message}",
        "spark-catalog-types": (
            "the Spark frame reads a table of {format} files from a catalog, which does not show that its types were declared "
            "rather than inferred: copy it to a table of Parquet files with stated types, or " + _GIVE_TYPES
        ),
        "spark-failfast": (
            "the Spark frame reads {format} files with mode='FAILFAST', which stops every pass at a value of another type: use "
            "mode='PERMISSIVE', the default, which makes it missing"
        ),
        "spark-inferred-types": (
            "the Spark frame reads {format} files, whose types Spark infers from their cells, and one row would decide how "
            "others are read: " + _GIVE_TYPES
        ),
        "spark-without-header": (
            "the Spark frame reads CSV files without a header line, whose first row decides how many columns there are: say "
            "header=True if they have one, or " + _GIVE_TYPES
        ),
        "spark-origin-hidden": (
            "the Spark frame is made of an RDD, a checkpoint or a query that hides where its types come from: pass the frame "
            "that it was made of, or write it to Parquet files with stated types and pass these"
        ),
        "spark-folder-types": (
            "the Spark frame uses the column {names:listed} from the names of folders, whose type Spark infers from all of "
            "them, and one row would decide how others are read: name it in the schema of the reader, "
            "spark.read.schema('{first} string, ...')"
        ),
        "spark-source-unknown": (
            "the Spark frame reads a source, {name}, that does not show that its types were declared rather than inferred: "
            "write it to Parquet files with stated types and pass these, or " + _GIVE_TYPES
        ),
        "spark-event-log": (
            "Spark's event log is on, and would record the number of rows of each step: start the session with {setting}=false, "
            "or write the table to Parquet files and pass those"
        ),
        "spark-cache-on-disk": (
            "the plan of the Spark frame has a cache on a disk, which may hold unencrypted rows: start the session with "
            "{setting}=true, or write the table to Parquet files and pass those"
        ),
        "spark-step-on-disk": (
            "the plan of the Spark frame has a step, {name}, that may write unencrypted rows to a disk: start the session with "
            "{setting}=true, or write the table to Parquet files and pass those"
        ),
        "types-of-files-differ": (
            "a file of the dataset has the column {name!r} as {type}, and the dataset has it as {other}, the type of another "
            "file: one cell would decide whether the cast succeeds. For files of several types pass the folder's path"
        ),
        "partition-not-read": (
            "a partition cannot be read: stopped by {kind}{where:message?}; the message is withheld, because it may quote the "
            "table"
        ),
        "partition-twice": "the engine returned a partition's result twice: the sums would be wrong",
        "dask-types-undeclared": (
            "the Dask frame {what:message}, so pandas may guess types in each partition, and one row would decide how "
            "others are read (a long line of a CSV file shifts the columns of the lines around it, also with "
            "dtype=). Pass "
            'dpmoments.EngineFiles(path, engine="dask"), which reads every cell by the schema'
            "; or write the table to Parquet with stated types and pass "
            "dask.dataframe.read_parquet(path)"
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
        "made-of-delayed": "is made of, or with, delayed objects (as from_delayed and read_json do)",
        "read-by-function": (
            "is read by a function for each partition (as read_csv, read_table, read_fwf and from_map do)"
        ),
        "source-of-kind": "comes from a source of the kind {kind}",
        "partitions-share-rows": "several of its partitions contain the same rows",
        "plan-has-steps": "its plan has the steps {steps:all}",
        "column-has-levels": "column '{column}' has levels",
        "unit-has-ids": "the privacy unit's column '{column}' may have ids",
        "perhaps-made-of": "{what:message} (perhaps made of {name!r})",
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
