"""Wine, Adult and Airfoil as Arrow tables with public schemas."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass, field
from importlib import resources
from typing import Literal

import numpy as np

from dpmoments.datasets.files import PublishedFile, find_local, load
from dpmoments.datasets.schemas import adult_schema, airfoil_schema, wine_schema
from dpmoments.foundation.table_libraries import pa, pc
from dpmoments.foundation.table_libraries import pa_csv as csv
from dpmoments.schema.schema import Numeric, Schema

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
ADULT_TRAIN = PublishedFile("adult.data", f"{_UCI}/adult/adult.data", "5d7c39d7b8804f071cdd1f2a7c460872")
ADULT_TEST = PublishedFile("adult.test", f"{_UCI}/adult/adult.test", "35238206dfdf7f1fe215bbb874adecdc")
AIRFOIL = PublishedFile(
    "airfoil_self_noise.dat", f"{_UCI}/00291/airfoil_self_noise.dat", "b12d5b7b475ec7b3971d97f21e377414"
)
_BUNDLES = {"adult.data": "adult_complete_train.csv.gz", "adult.test": "adult_complete_test.csv.gz"}


@dataclass(frozen=True, eq=False)
class Dataset:
    """A public table and what is publicly known about it.

    Attributes
    ----------
    name
        Short name.
    frame
        The rows as a `pyarrow.Table`, cells cleaned, missing cells null. ``frame.to_pandas()`` gives a pandas
        frame (if pandas is installed) and ``polars.from_arrow(frame)`` a Polars one; a release takes the
        table as it is.
    schema
        Columns with public bounds and levels, in the order of the frame.
    description
        What a row is, and what to know before using it.
    source
        Where it comes from, whom to cite, its licence.
    target
        The column that regressions on this table usually predict; None where there is none.
    """

    name: str
    frame: pa.Table = field(repr=False)
    schema: Schema = field(repr=False)
    description: str = field(repr=False)
    source: str
    target: str | None = None


def wine(*, cultivar: bool = False) -> Dataset:
    """Chemical assays of 178 Italian wines, 13 numeric columns, from scikit-learn; needs no network.

    Parameters
    ----------
    cultivar
        Whether the cultivar (scikit-learn's ``target``, the first column of the published file) is a column too. By
        default it is left out, which gives the 13 features of the papers.

    Returns
    -------
    Dataset
        178 rows, 13 float columns, no target; with `cultivar` that as a last column of levels 1, 2 and 3, the target.

    Examples
    --------
    >>> from dpmoments.datasets import wine
    >>> wine().frame.shape
    (178, 13)
    """
    from sklearn.datasets import load_wine  # scikit-learn is slow to import, and only this table needs it

    bunch = load_wine()
    columns = {name: np.ascontiguousarray(bunch.data[:, i]) for i, name in enumerate(bunch.feature_names)}
    schema = wine_schema(cultivar=cultivar)
    if cultivar:
        columns["cultivar"] = np.array([str(level) for level in bunch.target + 1])
    return Dataset(
        name="wine",
        frame=pa.table(columns).select(list(schema.names)),
        schema=schema,
        description="Chemical assays of 178 wines of one Italian region, three cultivars. One row a wine.",
        source="Aeberhard & Forina 1992, Wine, UCI Machine Learning Repository, doi:10.24432/C5PC7J, "
        "CC BY 4.0; the copy in scikit-learn",
        target="cultivar" if cultivar else None,
    )


def airfoil() -> Dataset:
    """Noise of airfoil sections in a wind tunnel (NASA 1989), 6 numeric columns; fetched once, then cached.

    Returns
    -------
    Dataset
        1,503 rows, 6 float columns in hertz, degrees, metres, metres a second, metres and decibels; the
        target is ``sound_pressure_level``.

    Raises
    ------
    ValueError
        If a file of that name is found or downloaded and is not the published one (md5).
    ConnectionError
        If it is neither in ``DPMOMENTS_DATA`` nor in the cache and cannot be downloaded; the message says
        where to put it.

    Examples
    --------
    >>> from dpmoments.datasets import airfoil
    >>> airfoil().frame.shape  # doctest: +SKIP
    (1503, 6)
    """
    schema = airfoil_schema()
    names = list(schema.names)
    frame = csv.read_csv(
        pa.BufferReader(load(AIRFOIL)),
        read_options=csv.ReadOptions(column_names=names),
        parse_options=csv.ParseOptions(delimiter="\t"),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float64())),
    )
    return Dataset(
        name="airfoil",
        frame=frame,
        schema=schema,
        description="Self-noise of NACA 0012 sections in a wind tunnel. One row a frequency band of a run.",
        source="Brooks, Pope & Marcolini 1989, Airfoil Self-Noise, UCI Machine Learning Repository, "
        "doi:10.24432/C5VW2C, CC BY 4.0",
        target="sound_pressure_level",
    )


def adult(subset: Literal["train", "test", "all"] = "all", complete: bool = True) -> Dataset:
    """People of the 1994 US census extract, 14 columns and the target ``income``.

    Files are looked for in ``DPMOMENTS_DATA``, then in the cache. Where they are not found, complete rows come from
    **the copy bundled with this package**, with no network; rows with unknown cells are fetched from UCI.

    Parameters
    ----------
    subset
        "train" is adult.data, "test" is adult.test, "all" is both in this order.
    complete
        True keeps the rows without an unknown cell; False keeps every row, with null where the file has "?"
        (which happens in ``workclass``, ``occupation`` and ``native-country``, where the schema takes it as a
        block of zeros).

        ========  ========  =========
        subset    complete  all rows
        ========  ========  =========
        train       30,162     32,561
        test        15,060     16,281
        all         45,222     48,842
        ========  ========  =========

    Returns
    -------
    Dataset
        Six integer columns, eight string columns stripped of blanks, and ``income``, a boolean: true is
        ">50K". As a boolean it is one feature, so a regression on it is the linear probability model of
        earning over 50,000 dollars, and its mean is the share of those who do.

    Raises
    ------
    ValueError
        If `subset` is unknown, or a file is not the published one (md5).
    ConnectionError
        If ``complete`` is False and a file cannot be found or downloaded; the message says where to put it.

    Examples
    --------
    >>> from dpmoments.datasets import adult
    >>> people = adult()
    >>> people.frame.shape, people.target
    ((45222, 15), 'income')
    """
    files = {"train": (ADULT_TRAIN,), "test": (ADULT_TEST,), "all": (ADULT_TRAIN, ADULT_TEST)}
    if subset not in files:
        raise ValueError(f"subset must be one of {', '.join(files)}; got {subset!r}")
    schema = adult_schema()
    parts = [_read_adult(_complete_rows(file) if complete else load(file), schema) for file in files[subset]]
    frame = pa.concat_tables(parts)
    return Dataset(
        name=f"adult-{subset}" if complete else f"adult-{subset}-with-missing",
        frame=(frame.drop_null() if complete else frame).combine_chunks(),
        schema=schema,
        description="Adults with an income in the March 1994 US Current Population Survey. One row a person; "
        "fnlwgt is the survey weight in hundredths of people, income whether it exceeds 50,000 dollars.",
        source="Becker & Kohavi 1996, Adult, UCI Machine Learning Repository, doi:10.24432/C5XW20, CC BY 4.0",
        target="income",
    )


def _complete_rows(file: PublishedFile) -> bytes:
    """The published file where it is at hand, else the bundled copy of its complete rows."""
    content = find_local(file)
    if content is not None:
        return content
    bundle = resources.files("dpmoments.datasets").joinpath("data", _BUNDLES[file.name])
    return gzip.decompress(bundle.read_bytes())


def _read_adult(content: bytes, schema: Schema) -> pa.Table:
    """Parse adult.data or adult.test, which has a comment as its first line and "." after its labels."""
    lines = re.sub(rb"[ \t]*,[ \t]*", b",", content)
    lines = re.sub(rb"(?m)^\|.*\n", b"", lines)
    names = list(schema.names)
    types = {column.name: pa.int64() if isinstance(column, Numeric) else pa.string() for column in schema.table_columns}
    table = csv.read_csv(
        pa.BufferReader(lines),
        read_options=csv.ReadOptions(column_names=names),
        parse_options=csv.ParseOptions(quote_char=False),
        convert_options=csv.ConvertOptions(column_types=types, null_values=["?"], strings_can_be_null=True),
    )
    label = pc.utf8_rtrim(table["income"], characters=".")
    return table.set_column(names.index("income"), "income", pc.equal(label, ">50K"))
