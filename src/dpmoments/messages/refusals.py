"""Sentences of errors whose facts are the fields of the sentence."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

REFUSALS: Mapping[str, str] = MappingProxyType(
    {
        # schema
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
        "derived-of-other-kind": "{feature!r}: column '{column}' is {kind}, {reason}: leave it out",
        "product-of-levels": (
            "{feature!r}: both columns are categorical, and the Gram matrix already counts the rows of each pair "
            "of levels: leave it out"
        ),
        "derived-values-too-large": (
            "{feature!r}: given the bounds of {columns}, its values exceed {most:g}, or are within {least:g} of "
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
        "yaml-syntax": "{path} is not a YAML file{fault}",
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
        "file-permission": "{path} cannot be read: permission denied",
        "file-unreadable": "{path} cannot be read: damaged, truncated, or not {expected}",
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
        "unknown-column-entries": "{column} has unknown entries {names:all}{question}: use {options:all}",
        "absent-column-entries": "{column} has no {absent}",
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
        "not-a-pair": "column '{column}': {parameter}={value!r} must be a pair, {expected}",
        "number-as-text": "column '{column}': {parameter} {problem}",
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
        "schema-not-filled-in": "{blanks}. {advice}",
        "row-norm-and-weight": (
            "column '{column}' has a weight, and row_norm={row_norm!r}: weights divide the norm bound that follows "
            "from bounds on every column; leave one of the two out"
        ),
        "typical-without-bounds": (
            "column '{column}' has a typical range and {unbounded!r} has no bounds: typical ranges need bounds on "
            "every column: add them, or leave typical out"
        ),
        "row-norm-and-typical": (
            "row_norm={row_norm!r} and column '{column}' has a typical range: the norm bound does not apply to "
            "rows whose columns are weighted; leave one of the two out"
        ),
        # cells
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
            "column '{column}' has type {type} in the table and a {kind} column needs numbers: {advice}"
        ),
        "not-a-level-type": (
            "column '{column}' has type {type} in the table and a categorical column needs text or integers: "
            "convert it, or describe it as Numeric or Boolean"
        ),
        # rows
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
        "polars-guessed-types": (
            "the lazy frame scans {format} files, whose types Polars guesses from the first cells, and one row "
            "would decide how others are read: pass the path of CSV files, or write the table to Parquet with "
            "stated types"
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
        "folder-not-a-value": (
            "column '{column}' is in the names of folders, one of which is not a value of a {kind} column: "
            "describe it as Categorical"
        ),
        "dask-unknown-origin": (
            "the Dask frame does not show how it was made: it was persisted, or comes from a bag, an array or a "
            "graph. Its types may be guessed from its cells. Pass the frame before persist(), Parquet files, or "
            "{advice}"
        ),
        "dask-folder-types": (
            "the Dask frame's column '{column}' is in the names of folders, and its type is guessed from all of "
            "them, so that one row would decide how others are read. Pass dpmoments.EngineFiles(folder, "
            'engine="dask"), or state the type: read_parquet(folder, dataset={{"partitioning": '
            "pyarrow.dataset.partitioning(pyarrow.schema([('{column}', pyarrow.string())]), flavor=\"hive\")}})"
        ),
        "dask-wide-integers": (
            "{columns} of more than 53 bits, which pandas rounds if another cell of the partition is empty. Read "
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
            "{table} cannot be read on this cluster: {reason}, so that workers keep rows between tasks and may "
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
            "(from random numbers, a sample, or files that change). Write it to Parquet files once, and pass those"
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
            "{table} has no column {names:listed} among its {columns}{hint}: the names must be the schema's (they "
            "are not listed, because without a header line they could be a record)"
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
        "spark-not-started": "Spark cannot be started ({error}): {advice}",
        "text-without-columns": "{path} does not have the schema's columns: {advice}",
        "text-neither-true-nor-false": (
            "column '{column}' of the file has a value that is neither true nor false: state the texts for both, "
            "true_values=[...] and false_values=[...] in the schema"
        ),
        "text-not-a-number": (
            "column '{column}' of the file has a value that is not a number with the decimal mark "
            "{decimal!r}{marks}: {advice}"
        ),
        "block-masked": "a block must not be a masked array: fill masked cells with NaN and choose `missing`",
        "block-type": "a block must hold integers, float32 or float64, got dtype {dtype}",
        "block-dimensions": "a block must be two-dimensional, got {ndim} dimensions (one array: [array])",
        "block-columns": "a block must have {expected} columns, got {columns}",
        "cell-not-finite": (
            "a cell is NaN or infinite and missing='error': clean the rows, or choose 'center' or 'drop'"
        ),
        "cell-missing": (
            "column '{column}' has an {content} cell and its rule is missing='error': choose missing='drop' or "
            "missing={instead!r}{with_what} in the schema, or clean the table"
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
            "a row has no '{column}', which identifies privacy units, and the unit's rule is missing='error': "
            "choose missing='drop', or complete the table"
        ),
        # privacy
        "loss-negative": "a loss must not be negative",
        "losses-of-other-units": "losses in {first} and {second} do not add up",
        "loss-not-subtracted": "a loss in {unit} cannot be subtracted from one in {unit_2}",
        "not-a-budget": (
            "{parameter}={value!r} is not a privacy budget: {parameter} must be positive and finite (at most {most:g})"
        ),
        "zcdp-has-rho": "a zCDP budget has only rho: leave epsilon and delta out",
        "budget-has-no-rho": "a {kind} budget has no rho",
        "pure-has-no-delta": "a pure budget has delta = 0",
        "delta-out-of-range": (
            "delta={delta!r} cannot be: delta is a probability of failure, above 0 and below 1 (well below one "
            "over the number of rows)"
        ),
        "delta-goes-with-epsilon": (
            "delta goes with epsilon: a rho-zCDP budget has none (PrivacyBudget.zcdp(rho).to_epsilon(delta) shows "
            "what it means as (epsilon, delta))"
        ),
        "weights-not-positive": "weights {weights!r} must be positive numbers",
        "delta-above-asked": "the budget's own delta, {own:g}, is above the delta asked for, {delta:g}",
        "no-rho-implies-pure": "no ρ implies a pure budget of {budget}: give delta > 0 too, or rho",
        "unknown-budget-kind": "unknown kind of budget {kind!r}: use one of {kinds:all}",
        "budget-not-finite": "{parameter} of a budget must be a finite number",
        "budgets-of-other-kinds": (
            "a {first} and a {second} budget do not add up: convert one (see dpmoments.privacy.curves)"
        ),
        "filter-not-copied": (
            "a privacy filter is for one run and cannot be copied: its copies would each spend the whole budget"
        ),
        "bound-in-other-norm": "the bound that {sensitivity} makes is in another norm",
        "groups-within-groups": "groups within groups are not supported",
        "filter-of-units-in-groups": "rows of units are not divided into groups",
        "filter-of-group-closed": "close the filter of the whole run",
        "no-delta-for-a-row": (
            "ε = {epsilon:g} for units of {rows} rows leaves no δ for a single row, since δ grows with e^ε over a "
            "unit's rows: use a smaller epsilon, or a budget in rho"
        ),
        "nothing-for-a-row": (
            "a budget of {cost} for units of {rows} rows leaves nothing for a single row that can be calculated "
            "with: let fewer rows of a unit count, or spend more"
        ),
        "noise-too-small-for-lattice": (
            "the noise is too small in lattice units for its composition to be proven: use a finer lattice"
        ),
        "noise-off-diagonal": "noise off the diagonal must be at least 1/√2 of that on it",
        "distribution-of-other-norm": "{distribution} noise needs a sensitivity in {norm}, got one in {given}",
        "distribution-takes-no-claim": "a draw of {distribution} has a price of its own and takes no claim",
        "distribution-of-other-shape": "a draw of {distribution} is not for a query of shape {shape}",
        "distribution-of-other-rows": "a draw of {distribution} for {value} rows is not for a query of shape {shape}",
        "distribution-of-other-length": "a draw of {distribution} with {n_value} {entry} is not for a query of shape {shape}",
        "distribution-flag": "{parameter} must be true or false",
        "distribution-whole-number": "{parameter} must be a whole number",
        "distribution-out-of-range": "{parameter} is out of range",
        "distribution-tuple": "{parameter} must be a tuple",
        "distribution-numbers": "{parameter} must be {expected}",
        "distribution-sign": "{parameter} must be {expected}",
        "draw-above-claim": "a draw of {distribution} costs more than the plan claims: its exact δ is above the stated one",
        "dataset-not-text": "dataset must be a text that names the table, such as 'people-2026', got '{dataset}'",
        "dataset-not-printable": (
            "dataset='{dataset}' must name the table in 1 to {most} printable characters: 'people-2026'"
        ),
        "unknown-noise-distribution": "unknown noise distribution '{name}': use one of {known:all}",
        "draw-with-other-parameters": "the parameters of a {name} draw are {known}, and the file has others",
        "draw-not-finite": "the {entry} of {query!r} must be a finite number",
        "draw-with-other-loss": "the loss of {query!r} is not the loss of its distribution at its sensitivity",
        "draw-size": "the size of {query!r} must be a whole number, 1 or more",
        "draw-group": "the group of {query!r} must be a text",
        "receipt-above-cost": "the draws of this receipt add up to more than the stated cost",
        "receipt-of-many-coordinates": (
            "the draws of this receipt have more coordinates than their composition is proven for"
        ),
        "receipt-without-eigenvalue-bound": (
            "a draw of this receipt relies on a bound on the smallest eigenvalue that was not drawn"
        ),
        "receipt-of-groups": "the receipt is of several groups of rows, and this release of all rows",
        "receipt-of-other-budget": "the receipt is not for the stated budget and relation",
        "receipt-of-other-unit": "the receipt is not for the stated protected unit",
        "receipt-out-of-range": "the receipt holds a number that is out of range",
        "unknown-loss-unit": "'{name}' is not a valid LossUnit: losses are counted in {known:all}",
        "receipt-of-units": "the receipt is for units of several rows under another relation than add_remove",
        "receipt-draws-not-a-list": "the draws of a receipt must be a list",
        "draw-of-other-relation-in-receipt": "a draw of the receipt has the sensitivity of another relation",
        "receipt-allowance": "the receipt's allowance does not equal its cost",
        "receipt-of-many-losses": (
            "the draws of the receipt have more than {most:,} different losses, which no run has"
        ),
        "no-sampler": "no sampler for noise {got}",
        "draw-left-lattice": "a noise draw left the lattice: nothing was released; run again",
        "unknown-sensitivity": "unknown sensitivity '{name}': use one of {known}",
        "sensitivity-not-finite": "{parameter} of a sensitivity must be a finite number, 0 or above",
        "sensitivity-units": "units of a sensitivity must be a power of two, 1 or more",
        "sensitivity-too-small": "a sensitivity '{name}' is stated as less than it is",
        "sensitivity-lacks": "{name} lack {names:all}",
        "sensitivity-parameter": "{parameter} of {function} must be a finite number, and n_features a whole one",
        "weights-not-a-list": "{parameter} of {name} must be a list",
        "weights-number": "{parameter} of {name} are {number:,} numbers: 1 to {most:,} are expected",
        "weights-out-of-range": "{parameter} of {name} must be finite numbers above 0",
        "unknown-arithmetic": "unknown arithmetic '{name}'",
        "private-not-a-flag": "private must be true or false",
        "statement-of-units": "a privacy unit of several rows is stated under another relation than add_remove",
        "unknown-relation": (
            "neighbors={value!r} is not a neighboring relation: use 'add_remove' (the number of rows is private) "
            "or 'replace_one' (the number of rows is public)"
        ),
        "unit-without-name": "the column of a privacy unit has no name: give the column that identifies people",
        "max-rows-out-of-range": "max_rows={value!r} must be between 1 and {most:,}",
        "not-a-unit": "{value!r} is not a privacy unit: use 'row', or a column with a number of rows",
        "unit-needs-add-remove": (
            "a privacy unit is not supported under neighbors='{neighbors}': the number of kept rows depends on how "
            "many each unit has, so it is not public, as that relation assumes. Use neighbors='add_remove'"
        ),
        "unit-is-a-feature": (
            "the privacy unit's column '{column}' is in the schema, so it would be a feature of the release: "
            "remove it from the schema, or copy it under another name to use it as a feature too"
        ),
        # ledger
        "not-a-ledger": "ledger must be a dpmoments.Ledger or the path of its file, got {ledger!r}",
        "ledger-with-insecure-seed": (
            "a release with an insecure seed is not private and cannot be charged to a ledger: leave out ledger or "
            "insecure_seed"
        ),
        "unit-named-row": (
            "the privacy unit's column is called '{column}', which in a ledger means single rows: rename it"
        ),
        "cost-of-other-relation": (
            "a cost under replace_one says nothing about a row present or absent: release with "
            "neighbors='add_remove', or grant a dataset of another name for replace_one"
        ),
        "cost-under-add-remove": "a cost of {cost} under add_remove says nothing about a row replaced",
        "several-budgets-granted": "give only one of epsilon (with or without delta), rho and mu",
        "no-budget-granted": "give one of epsilon (with or without delta), rho and mu; none was given",
        "composition-needs-epsilon-delta": "composition={composition!r} needs a budget of epsilon and delta",
        "unit-not-text": "unit must be a text that names the privacy unit, such as 'row', got {unit!r}",
        "unit-not-printable": "unit={unit!r} must be 1 to {most} printable characters, such as 'row'",
        "dataset-needed": "a ledger keeps a budget for each dataset: name it, dataset='people-2026'",
        "mu-not-a-budget": "mu={value!r} is not a privacy budget: mu must be positive and finite (at most {most:g})",
        "delta-too-small": "delta={delta!r} is too small",
        "not-a-file-name": "{path!r} cannot be the name of a file",
        "not-one-line": "{parameter}={value!r} must be one line of at most {most} printable characters",
        "grant-needs-reason": (
            "the budget of '{dataset}' is {known}, and some of it is spent: to make it {asked}, state why and who "
            "decided it: reason='…', by='…'; the history keeps both"
        ),
        # mechanisms
        "ball-needs-mean": (
            "adaptive-ball needs the mean, because its moments are about a private center: release with mean=True, "
            "or use matrix-laplace or gaussian"
        ),
        "budget-too-small": (
            "the budget is too small: noise of {noise:.3g} per entry would hide a table of any size: give a larger "
            "budget"
        ),
        "eigenvalue-needs-regime": (
            "largest_eigenvalue needs rule='regime': the other rules assume nothing about the table"
        ),
        "regime-needs-delta": "rule='regime' needs epsilon and delta, got a budget of {budget}",
        "bounds-needed-for-budget": (
            "a budget of {budget} needs bounds on every column, and some have a scale range instead (one such "
            "column by itself is allowed). Give rho, or epsilon and delta > 0, or give every column lower and upper"
        ),
        "regime-needs-eigenvalue": (
            "rule='regime' needs the largest eigenvalue of the Gram matrix, or the number of rows, which bounds it "
            "and is private here: give largest_eigenvalue from public knowledge"
        ),
        "diagnostic-out-of-range": (
            "{name} of the diagnostics must be a number from 0 to {most:g}: the file was changed after the release"
        ),
        "rows-of-other-features": (
            "the plan is for {planned} features and the rows have {features}: make the plan from the same schema"
        ),
        "rows-of-other-relation": (
            "the plan is for neighbors='{planned}' and the rows were opened for '{neighbors}', which has other "
            "sensitivities: make both for the same relation"
        ),
        "rows-may-be-dropped": (
            "the schema has a rule that drops rows, but the plan is for a schema without one, whose row count is "
            "public: make the plan from the same schema"
        ),
        "budget-of-other-kind": "{mechanism} cannot spend a budget of {budget}: {advice}",
        "relation-not-supported": "{mechanism} is not defined for neighbors='{neighbors}': use {known}",
        "too-many-features": "{mechanism} takes at most {most} feature, and the table has {features}.",
        "mechanism-needs-row-bound": (
            "{mechanism} needs a bound on the norm of a row and the schema gives none: give every column bounds, "
            "or use a mechanism that needs none (dpmoments mechanisms lists them)"
        ),
        "coinpress-needs-rows": "coinpress needs rows: this table is publicly empty",
        "anchor-shape": "the anchor has {rows} rows; the table has {features} features",
        "eigenvalue-bounds-needed": (
            "coinpress needs a rough range for the eigenvalues of the covariance: "
            "CoinPress(eigenvalue_bounds=(lowest, highest)); a range of 1e6 costs a few percent"
        ),
        "mean-radius-needed": (
            "coinpress needs a bound on the norm of the mean, which may be generous: CoinPress(mean_radius=…); or "
            "mean=False for rows of mean zero"
        ),
        "failure-needs-paper": (
            "failure={failure!r} needs the paper's constants, since the practical ones have no β: leave it out, or "
            'give constants="paper"'
        ),
        "unknown-split": "split={split!r}: use {known}, or one share per step",
        "split-not-positive": "split={split!r}: give one positive share per step",
        "split-of-other-length": "split has {shares} shares and steps={steps}: leave steps out",
        "eigenvalue-bounds-not-a-range": (
            "eigenvalue_bounds={bounds!r}: give (lowest, highest) with 0 < lowest ≤ highest, finite"
        ),
        "covariance-not-symmetric": "covariance must be a symmetric matrix, got shape {shape}",
        "covariance-not-positive": "covariance must be positive semi-definite: it has a negative eigenvalue",
        "column-twice-in-table": "a table names '{column}' twice: by={by}",
        "tables-twice": "two tables have the same columns: one of them is enough, at twice the budget",
        "too-many-cells": "the tables have {cells:,} cells together, and {most:,} are the most: name fewer columns",
        "table-split-not-positive": "split must be positive numbers, one for each table: split=[2, 1]",
        "table-split-of-other-length": "split has {shares} numbers for {tables} tables: give one for each",
        "tables-not-a-list": "by must be a list of columns, or a list of such lists: by=['region', 'sex']",
        "tables-mixed": "by must be a list of columns, or a list of such lists: by=[['region', 'sex'], ['age_band']]",
        "histogram-needs-rows": "log-scale-histogram needs rows: this table is publicly empty",
        "mean-of-no-rows": "a table that is publicly empty has no mean",
        "value-needs-other-units": (
            "{parameter}={value!r} must be in [{least:g}, {most:g}]: give the table in other units"
        ),
        "mean-needs-radius": (
            "means by '{mechanism}' need a public bound on the mean: give radius, or use variance-aware"
        ),
        "mean-needs-scale": (
            "means by '{mechanism}' need a public bound on the standard deviation: give scale, or use variance-aware"
        ),
        "scale-and-covariance": "give scale or covariance, not both",
        "covariance-shape": "covariance has {rows} rows; the table has {features} features",
        "auto-has-no-options": "mechanism='auto' has no options: leave out {options:all}, or name an estimator",
        "mechanism-configured": "'{mechanism}' is configured already: leave out {options:all}",
        "rows-negative": "n_rows={rows} must not be negative",
        "matrix-not-square": "{parameter} must be a finite square matrix, got shape {shape}",
        "matrix-not-symmetric": "{parameter} must be symmetric",
        "matrix-not-positive": "{parameter} must be positive definite, but has an eigenvalue that is not positive",
        "spectrum-and-decay": "give spectrum or decay, not both: they set the same numbers",
        "decay-out-of-range": "decay={decay!r}: eigenvalues fall as i^−decay, which must be finite and not negative",
        "spectrum-of-other-length": (
            "the spectrum has {eigenvalues} eigenvalues and the encoded rows {features} features: give one for "
            "each (a categorical column has one feature per level)"
        ),
        "spectrum-negative": (
            "the spectrum holds a value that is negative or not finite: eigenvalues of a second moment are neither"
        ),
        "spectrum-too-large": (
            "the spectrum sums to {sum:g}: eigenvalues of E[x xᵀ] sum to the mean of ‖x‖², which is at most 1 for "
            "rows in the unit ball"
        ),
        # planning
        "accuracy-needed": (
            "say what is wanted: correlation=0.02, mean={{'age': 0.5}}, sd=…, share=0.01 or coefficient=0.05"
        ),
        "accuracy-of-two-columns": "{parameter} needs two columns, but the schema has one",
        "not-within-rows": "not within {most:.0e} rows: give a larger budget, or ask for less",
        "not-within-budget": (
            "not within {symbol} ≤ {most:g}: more rows, fewer columns or tighter bounds would do more"
        ),
        "original-units-unknown-for": (
            "the noise of {mechanism} in original units is not known beforehand: name another mechanism"
        ),
        "accuracy-without-feature": "{parameter}: the schema has no such feature",
        "accuracy-of-other-kind": "{parameter} of {names:listed}: ask for {instead} there",
        "unknown-names-in": "{parameter} names {names:listed}: use {known:listed}",
        "not-positive": "{parameter}: {value!r} must be a positive finite number",
        "deviation-needed": "its error depends on how much the values vary: give standard_deviation, to assume it",
        "unknown-deviations": "standard_deviation names {names:listed}: the features are {known}",
        "deviations-absent": "standard_deviation leaves out {names}: give scale, for those, or all of them",
        "forecast-in-other-units-rho": "the budget of the forecast is {budget}: use rho_needed",
        "forecast-in-other-units-epsilon": "the budget of the forecast is {budget}: use epsilon_needed",
        "original-units-unknown": "the noise of {mechanism} in original units is not known beforehand",
        "nothing-in-original-units": "nothing is known in original units: {reason}",
        "forecast-without-plot": "cannot plot this forecast: {reason}",
        "too-few-features": "n_features must be at least 1, got {n_features!r}",
        "not-a-mapping-of-features": (
            "{parameter} is a mapping of features to numbers, as in {parameter}={{'age': 18}}"
        ),
        "not-between-bounds": (
            "{parameter} of {feature!r}: {value!r} must be a number between {least:g} and {most:g}, the feature's "
            "bounds"
        ),
        "not-positive-of-feature": "{parameter} of {feature!r}: {value!r} must be a positive finite number",
        "deviation-above-half-range": (
            "{parameter} of {feature!r}: {value:g} is more than half the range, {half:g}, the largest possible "
            "standard deviation between {least:g} and {most:g}: is it in the units of the bounds?"
        ),
        "not-a-regression": "a regression is a target and its regressors, ['income', 'age'], got {columns}",
        "question-needed": (
            "state a question: means=True, tables=[['region', 'sex']] or regressions=[['income', 'age']]"
        ),
        "not-a-column-of-schema": "'{name}' is not a column of the schema.{question}",
        "target-of-several-features": "'{column}' has several features: the target of a regression must have one",
        # analysis
        "numbers-out-of-range": (
            "the numbers of this release exceed the range of floating point: they are very large, very small, or "
            "very far apart"
        ),
        "unsupported-option": "{function}() takes no {parameter}=: {reason}",
        "level-is-a-confidence": (
            "level={level!r}: level is a confidence such as 0.95; statsmodels' alpha is 1 − level"
        ),
        "intervals-of": "of={of!r}: intervals are of the 'clipped rows' or of the 'table' itself",
        "components-number": "n_components={n_components!r} must be a whole number from 1 to {most}",
        "unknown-adjustment": "adjust={adjust!r}: use 'bonferroni', or None for intervals that hold one by one",
        "no-restriction": "no restriction is given: name a coefficient, as in 'age = 0'",
        "restriction-not-finite": "the coefficients and values of restrictions are finite numbers",
        "restriction-without-coefficient": (
            "a restriction has no coefficient of the fit (that of a reference level is 0)"
        ),
        "restrictions-of-other-type": (
            "restrictions are text such as 'age + height = 0', a mapping of names to coefficients, or an array "
            "with a column for each coefficient, not {got}"
        ),
        "restrictions-shape": (
            "an array of shape {shape} is not one of restrictions: it has a column for each of the {coefficients} "
            "coefficients, the intercept first"
        ),
        "level-merged": "{level!r} has too few rows: it is merged into the reference level",
        "restriction-mapping": "a mapping gives a number for each name: {{'age': 1, 'height': -2}}",
        "correlation-of-one": "a correlation is of two features: name two at least",
        "margin-column-twice": "a margin names a column twice: {by!r}",
        "cross-table-of-one-column": "a cross table is of two columns, and both are {by!r}: name another",
        "cross-table-too-large": (
            "a cross table of {cells:,} cells cannot be tested, and {most:,} are the most: name columns of fewer "
            "levels; release.table(...) has its counts"
        ),
        "not-a-column-of-table": "'{name}' is not a column of this table of {columns:all}.{question}",
        "prediction-of-missing": (
            "rows with a missing value have no prediction: fill the values, or leave those rows out"
        ),
        "features-of-classes": "'{name}' is of the column '{column}' that makes the classes: name other columns",
        "array-without-names": (
            "an array has no column names, and rows are read by name: pass a pandas, Polars or Arrow frame, or a "
            "dict of columns"
        ),
        "array-of-other-rows": (
            "an array of shape {shape} is not one of rows of this release: its columns are the schema's {columns}, "
            "in order"
        ),
        "column-of-one-value": (
            "a dict of columns holds a list of values for each, and '{column}' holds none: give [value]"
        ),
        "rows-of-other-type": (
            "rows are read from a pandas, Polars or Arrow frame, or from a dict of columns, not from {got}"
        ),
        "frame-without-columns": "the frame has no column {names:listed}{hint}: the names must be the release's",
        "frame-with-repeated-columns": "the frame has more than one column named {names:listed}: rename them",
        "frame-with-unknown-levels": (
            "{n_unknown} of the frame's {rows} rows hold a value of '{column}' outside its levels, {levels}: leave "
            "those rows out, or give them a level"
        ),
        "covariances-of-repaired": "covariances are defined for unrepaired moments only",
        "no-variance": (
            "no feature has a released variance above 0: the noise hides them all, or they are constant; name "
            "other columns"
        ),
        "alpha-needs-noise": 'alpha="auto" is computed from the noise, which is unknown here: give a number',
        "graph-of-one": "a graph is of two features: name two columns at least",
        "correlations-singular": (
            "the correlations are too nearly singular for alpha={alpha:g}: give a larger one, or fewer columns"
        ),
        "nothing-but-groups": "the release has only the features of '{column}': nothing else has a mean by it",
        "groups-one-text": "groups are a list of names, not one string",
        "level-named-twice": "a level is named twice",
        "feature-of-groups": "'{name}' is of the column '{column}' that makes the groups: name another",
        "t-test-of-two-groups": (
            "a t-test is of two groups, and here are {groups} ({names}): name two by groups=, or use anova"
        ),
        "restrictions-contradict": "the restrictions contradict each other: no coefficients fulfill all of them",
        "unknown-covariance": (
            "cov_type={cov_type!r}: use 'HC1', 'nonrobust' or 'auto' (HC1 if the release has the products)"
        ),
        "system-singular": (
            "the system is singular at alpha={alpha!r}: features are collinear or the noise hides them: leave "
            "features out, or use ridge with alpha > 0 (or 'auto')"
        ),
        "no-covariance-of-coefficients": (
            "noise is too large for a covariance matrix of the coefficients: use t_test() and wald_test(), by test "
            "inversion"
        ),
        "no-standard-errors": "no standard errors: {reason}",
        "formula-unreadable": (
            "the formula {formula!r} cannot be read ({error}): write it as 'target ~ feature + feature', names "
            "with other signs in backticks: `hours-per-week`"
        ),
        "formula-of-several-targets": "the formula {formula!r} has {targets} targets: a regression has one",
        "formula-and-features": "{target!r} is a formula, which names its features: leave features={features!r} out",
        "formula-without-intercept": (
            "the formula has no intercept (it ends in - 1 or + 0) and intercept=True: take one of them"
        ),
        "intercept-needs-mean": (
            "an intercept needs the mean, and the release has none (mean=False): pass intercept=False"
        ),
        "target-among-features": "the target {target!r} is among the features: leave it out",
        "feature-computed-from-target": (
            "{feature!r} and the target {target!r} are computed one from the other: leave it out"
        ),
        "reference-without-levels": (
            "reference names '{column}', of which the regression does not have all levels: leave it out"
        ),
        "no-features": "no features: name at least one",
        "levels-too-rare": (
            "noise hides how many rows {names:all} have, so that nothing can be compared with {references}"
        ),
        "reference-one-text": "reference is a list of features, or a mapping of column to level, not one string",
        "reference-not-a-level": (
            "reference {level!r} is not a level of a categorical column of the release: give one as 'column=level'"
        ),
        "two-references": "reference names two levels of '{column}': give one",
        "sum-needed-about-center": "moments about a center need the sum about it, else their mean is not known",
        "sum-without-count": "a sum of rows without their number makes no mean: release both, or neither",
        "no-count": (
            "no count was released: under add_remove the number of rows is private, and mean=False spends nothing "
            "on it. Use release.gram, release with mean=True, or pass a public n_rows to release()"
        ),
        "names-one-text": "{what} are a list of names, not one string",
        "no-names": "no {what}: name at least one",
        "feature-twice": "a feature is named twice",
        "too-small": "{parameter}={value!r} must be a whole number, {least} or more",
        # estimators
        "not-a-release": "fit_release takes a dpmoments release, got {got}.",
        "array-columns-of-schema": (
            "X has {columns} columns, and the schema has {n_expected} without y ({expected:listed}): the columns "
            "of an array are the schema's, in order"
        ),
        "columns-not-in-order": (
            "the columns of X must be the schema's, in its order, so that results are in the order of X, and X "
            "{problem}: pass X[{expected!r}]"
        ),
        "no-samples": "Found array with 0 sample(s) while a minimum of 1 is required: X has no rows",
        "centered-needs-public-rows": (
            "assume_centered=True under neighbors='add_remove' has no public number of rows to divide by: use "
            "neighbors='replace_one', or assume_centered=False"
        ),
        "classes-with-schema": (
            "classes are for bounds=; a schema already lists the levels of every column: leave them out"
        ),
        "target-bounds-needed": (
            "target_bounds=None: noise must also hide every y, and its bounds are never read from y. Give "
            "target_bounds=(low, high), known without looking at the table"
        ),
        "target-bounds-with-schema": (
            "target_bounds are for bounds=; a schema already bounds every column: leave them out"
        ),
        "several-descriptions": (
            "{given} were given, but each describes the columns completely: keep one (a Schema has its own row_norm)"
        ),
        "bounds-shape": "bounds have shapes {shapes}, and X has {columns} columns: give a number, or one per column",
        "sparse-input": (
            "sparse input is not supported: every entry of the moments gets noise anyway. Pass X.toarray()"
        ),
        "fit-in-memory": "fit takes arrays and frames in memory, got {got}.",
        "lengths-differ": "X and y have different numbers of rows: y must have one value for each row of X",
        "frame-columns-twice": "two columns of the frame have the same name: rename one of them",
        "not-two-dimensional": (
            "Expected 2D array, got {ndim}D array instead: a table has rows and columns. Reshape your data using "
            "X.reshape(-1, 1) for a single column, or X.reshape(1, -1) for a single row"
        ),
        "complex-table": "Complex data not supported: X must hold numbers, or levels among objects",
        "table-not-of-numbers": (
            "X is an array of type {type}, not of numbers: pass a frame, or an array of objects (dtype=object), "
            "whose cells are read one by one"
        ),
        "no-table-features": "X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.",
        "not-all-rows": (
            "Expected 2D array: X is a sequence, and not all of it are rows, sequences of cells. Reshape your data "
            "to [[1.5], …] for a single column, or [[1.5, …]] for a single row"
        ),
        "rows-of-other-lengths": "the rows of X have different numbers of cells: each has one cell for every column",
        "target-required": "This {estimator} estimator requires y to be passed, but the target y is None",
        "target-dimensions": "y should be a 1d array, one value per row, and has {ndim} dimensions",
        "complex-target": "Complex data not supported: y must hold numbers or levels",
        "classes-needed": (
            "classes=None: the classes must be public, and are never read from y. Give classes=[…], or a schema "
            "with a Categorical column and target=…"
        ),
        "unknown-label-type": (
            "Unknown label type: classes={classes!r} must be a list of texts, whole numbers, or true and false"
        ),
        # plots
        "figure-and-axes": "figsize= is the size of a new figure, and ax= is of another one: give one of them",
        "plot-needs-mean": (
            "cannot plot {what}: it is made of deviations from the mean, and no mean was released (mean=False): release with "
            "mean=True, or draw release.plot.spectrum(), which needs none"
        ),
        "plot-needs-count": "cannot plot {what}: {reason}",
        "unknown-scale-of-plot": (
            "per={per!r}: use 'deviation', a feature's standard deviation, or 'unit', one unit of it"
        ),
        "unknown-order-of-coefficients": (
            "sort={sort!r}: use 'fit', the order of the fit, 'size', largest first, or 'p', clearest first"
        ),
        "too-few-coefficients": "n_coefficients must be at least 1, got {value!r}",
        "plot-of-one-feature": "of={of!r}: a plot shows the means of one feature; name one",
        "unknown-order-of-groups": (
            "sort={sort!r}: use 'schema', the order of the levels, 'mean' or 'rows', largest first"
        ),
        "unknown-order-of-columns": (
            "sort={sort!r}: use 'schema', the order of the columns, or 'alike', related ones together"
        ),
        "plane-of-two-features": (
            "features= must name two features, in whose plane regions are drawn, got {number}: name two, or none "
            "to plot the size in all of them"
        ),
        # reporting
        "no-planner": "no planner page: {reason}",
        "report-of-other-type": "a report needs a release or a forecast, got {got}: load a file with dpmoments.load",
        "report-of-mean": (
            "regressions and group means need count, mean and second moment (dpmoments.release), but only a mean "
            "was released"
        ),
        "report-of-counts": (
            "regressions and group means need count, mean and second moment (dpmoments.release), but only counts "
            "were released"
        ),
        "report-of-many-groups": (
            "the release has {groups} groups by {column}, but a page holds at most {most}: write the report of "
            "one, groups['level'], or save each in its own file"
        ),
        "report-regressions": "regressions is a list of R formulas: regressions=['income ~ age + C(sex)']",
        "report-groups": (
            "groups is a list of pairs, a column of levels and a feature: groups=[('sex', 'hours-per-week')]"
        ),
        "report-group-unreadable": (
            "{value!r} does not name one column of levels and one feature: write COLUMN:OF, such as sex:income, of "
            "the release's columns {columns:listed}"
        ),
        "report-needs-count": (
            "regressions and group means need a row count, which this release does not have (mean=False under "
            "add_remove); leave them out of the report"
        ),
        "report-of-several-features": (
            "'{column}' has {number} features, but a plot shows one: name one, such as {example!r}"
        ),
        # inspection
        "preflight-not-copied": (
            "a Preflight holds private facts and is neither pickled nor copied: run preflight again"
        ),
        # releases
        "counts-table-needed": "name the columns of one table: {tables}",
        "unknown-counts-table": "no table of this release has the columns {by:all}: it has {tables}",
        "ledger-does-not-confirm": "the ledger {path} does not confirm this release: {what}: {detail}",
        "groups-number": "{column} has {levels} levels, and there are {releases} releases",
        "release-of-other-group": "a release is not of the group {column} = {level}",
        "groups-of-several-runs": "the releases are of groups of several runs",
        "groups-of-several-budgets": "the releases of the groups do not state one budget under add_remove",
        "groups-of-other-column": (
            "groups are the levels of a categorical or boolean column, and '{column}' is {kind}"
        ),
        "no-interval": "no interval is available: {reason}",
        "count-not-finite": "noisy_count is not a finite number",
        "noise-of-other-features": "the noise model is for {n_features} features and the schema has {expected}",
        "not-in-moments": "a release has no {name}: {reason}",
        "pooled-means": "a mean-only release has no second moment to add: pool releases made by dpmoments.release",
        "pooled-counts": "a release of counts has no moments to add: pool releases made by dpmoments.release",
        "pooled-other-type": "a list of releases is pooled, got {got} in it{advice}",
        "nothing-to-pool": "no releases to pool: pass a list, [release_a, release_b]",
        "release-twice": (
            "the release {release} is given twice, perhaps inside one that was pooled before: its rows would count "
            "twice. Pass it once (releases with one insecure seed have one id, since they share their noise)"
        ),
        "dataset-twice": (
            "two releases are of the dataset '{dataset}' ({parts}): their rows would count twice, and both budgets "
            "add up. Pass one of them"
        ),
        "schemas-differ": (
            "{parts} have different schemas ({difference}), so that their numbers are in different units: release "
            "all tables with one schema file"
        ),
        "means-differ": (
            "one of {parts} was released with mean=True and the other with mean=False, which encode rows "
            "differently: release all tables alike"
        ),
        "relations-differ": (
            "{parts} hide different things ({first} and {second}): release all tables for the same neighbors="
        ),
        "units-differ": (
            "{parts} protect different units ({first}; {second}), so that no one guarantee covers both: release "
            "all tables with the same privacy_unit="
        ),
        "losses-differ": (
            "the losses of {parts} are counted in different ways ({first} in {first_unit}, {second} in "
            "{second_unit}), so that no one budget covers both: release all tables by one mechanism under one kind "
            "of budget"
        ),
        "not-private-in-registry": (
            "this release was made with an insecure seed and is not private: release the table again without "
            "insecure_seed"
        ),
        "not-a-registry-value": "{parameter}={value!r} is not a value of the registry: use one of {choices:all}",
        "authors-not-a-list": "authors must be a list of names",
        # cli
        "file-of-mean": (
            "{path} holds only a mean, and '{command}' needs count, mean and second moment, which 'dpmoments "
            "release' makes."
        ),
        "file-of-counts": (
            "{path} holds only contingency tables, and '{command}' needs count, mean and second moment, which "
            "'dpmoments release' makes."
        ),
        "file-of-groups": "{path} holds a release for each level of {column}, and '{command}' takes one.",
        "no-file-of-rows": "there is no file {path!r}: rows to analyze are read from a .parquet, .csv or .tsv file",
        "file-of-rows-unreadable": "{path} does not read as {ending}",
        "file-of-rows-ending": "{path} is no .parquet, .csv or .tsv file: rows to analyze are read from one",
        "file-of-one-release": "{path} holds one release, and this command takes a release for each level of a column.",
        "not-a-folder": "{path} is not a folder: make it first",
        "file-of-several-releases": "{path} holds several releases, and this command takes one.",
        "draft-exists": "{path} exists already and is not overwritten.",
        "spectrum-option": "a spectrum is a list of numbers, got {value!r}.",
        # spending
        "groups-need-add-remove": "groups of rows are planned for add_remove: a replaced row may change its group",
        "groups-of-units": (
            "groups cannot be released for a privacy unit: a person may have rows in several groups, so several "
            "releases would change at once. Release the whole table with privacy_unit= and the grouping column as "
            "one of its features"
        ),
        "groups-of-relation": (
            "groups cannot be released under neighbors='{neighbors}': a replaced row may change its group, so that "
            "two releases would change, at twice the budget. Use neighbors='add_remove'"
        ),
        "public-rows-of-units": (
            "n_rows cannot be public with a privacy unit, since the number of counted rows depends on each unit's "
            "rows. Leave it out"
        ),
        "table-without-rows": (
            "the table has no rows: under replace_one there is nothing to release (under add_remove the number of "
            "rows is private, and an empty table is released like any other)"
        ),
        "rows-not-as-stated": "n_rows={rows} and the table has another number of rows: leave n_rows out",
        "impossible-steps": (
            "cannot plot steps: the diagnostics contain impossible steps, so the file was changed after the release"
        ),
        "steps-of-several-runs": (
            "cannot plot steps: a pooled release was made by several runs. Plot those of one: "
            "release.parts[0].plot.steps()"
        ),
        "mechanism-without-steps": (
            "cannot plot steps: {mechanism} has only one step. Mechanisms with steps are coinpress, "
            "private-preconditioning and adaptive-ball, and of means coinpress and variance-aware"
        ),
        "input-not-finite": (
            "Input X contains NaN, infinity or a missing value in a column with the rule missing='error': fill "
            "these values, leave their rows out, or use another rule"
        ),
        "public-bounds-needed": (
            "no public bounds were given (schema, bounds and row_norm are None): noise must hide any possible row, "
            "and bounds read from the table would publish its extremes."
        ),
        "not-a-unit-column": (
            "column '{column}' identifies privacy units and holds {content}: it must hold integers, whole numbers, "
            "text, bytes or UUIDs. Convert it to text first"
        ),
        "neither-true-nor-false": (
            "column '{column}' holds a value that is neither in true_values nor in false_values: list what it means"
        ),
        "not-a-number": (
            "column '{column}' holds a text that is not a number with the decimal mark {decimal!r}: list what "
            "means a missing value in missing_values, or choose missing='drop' or 'fill'"
        ),
        "objects-not-numbers": (
            "column '{column}' holds objects, one of which is not a number: convert the column to numbers first, "
            "or describe it as Categorical"
        ),
        "spark-types-undeclared": "{reason}",
        "spark-rows-on-disk": "{reason}",
        "arrow-types-of-files": "{reason}",
        "dask-types-undeclared": (
            "the Dask frame {what}, so pandas may guess types in each partition, and one row would decide how "
            "others are read (a long line of a CSV file shifts the columns of the lines around it, also with "
            "dtype=). Pass {advice}; or write the table to Parquet with stated types and pass "
            "dask.dataframe.read_parquet(path)"
        ),
        "rows-need-mean": (
            "rows are drawn with the released mean and covariance, and this release has no {absent}: release with "
            "mean=True, which releases both"
        ),
        "without-mean": "no mean was released (mean=False): release with mean=True",
        "not-a-restriction": (
            "{text!r} is not a linear restriction: write it as 'age + 2*height = 1', names with other signs in "
            "backticks"
        ),
        "one-budget-needed": "give the privacy budget as epsilon (with or without delta) or as rho, {given}",
    }
)
"""Sentence by code: what was given, why it is refused, what to do.

No fact of an error is private.
"""
