"""Public tables for examples, tests and benchmarks.

Loading a table spends nothing. The schemas hold bounds and levels from codebooks, never from the rows, as a curator of
private data would write them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import resources
from typing import Literal

import numpy as np

from dpmoments.base.checks import check_one_of
from dpmoments.base.table_libraries import pa, pq
from dpmoments.schema.schema import Schema

__all__ = ["adult", "airfoil", "wine"]

_DATA = resources.files("dpmoments.rows") / "data"
_N_ADULT_TRAIN = 32_561
"""Number of rows from adult.data, which come first; the others are from adult.test."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Public table and what is publicly known about it.

    Attributes
    ----------
    name
        Short name.
    frame
        The rows as a `pyarrow.Table`, cleaned, missing values null. Use ``frame.to_pandas()`` for pandas and
        ``polars.from_arrow(frame)`` for Polars; a release accepts the table directly.
    schema
        Columns with public bounds and levels, in the order of the frame.
    description
        Meaning of a row, and notes for users.
    source
        Origin, citation, license.
    target
        The column that regressions on this table usually predict, or None.
    """

    name: str
    frame: pa.Table = field(repr=False)
    schema: Schema = field(repr=False)
    description: str = field(repr=False)
    source: str
    target: str | None = None


def wine(*, cultivar: bool = False) -> Dataset:
    """Load chemical assays of 178 Italian wines, 13 numeric columns, from scikit-learn.

    Needs no network.

    Parameters
    ----------
    cultivar
        True to add the cultivar (scikit-learn's ``target``, the first column of the published file). Without it the
        columns are the 13 features of the papers.

    Returns
    -------
    Dataset
        178 rows, 13 float columns, no target; with `cultivar` a last column with levels 1, 2 and 3, the target.

    Examples
    --------
    >>> from dpmoments.datasets import wine
    >>> wine().frame.shape
    (178, 13)
    """
    from sklearn.datasets import load_wine  # scikit-learn is slow to import, and only this table needs it

    bunch = load_wine()
    columns = {name: np.ascontiguousarray(bunch.data[:, i]) for i, name in enumerate(bunch.feature_names)}
    schema = _schema("wine")
    if not cultivar:
        schema = Schema(*schema.columns[:-1])
    if cultivar:
        columns["cultivar"] = np.array([str(level) for level in bunch.target + 1])
    return Dataset(
        name="wine",
        frame=pa.table(columns).select(list(schema.names)),
        schema=schema,
        description="Chemical assays of 178 wines of one Italian region, three cultivars. One row per wine.",
        source="Aeberhard & Forina 1992, Wine, UCI Machine Learning Repository, doi:10.24432/C5PC7J, "
        "CC BY 4.0; the copy in scikit-learn",
        target="cultivar" if cultivar else None,
    )


def airfoil() -> Dataset:
    """Load the noise of airfoil sections in a wind tunnel (NASA 1989), 6 numeric columns.

    Bundled, needs no network.

    Returns
    -------
    Dataset
        1,503 rows, 6 float columns in hertz, degrees, meters, meters per second, meters and decibels; the target is
        ``sound_pressure_level``.

    Examples
    --------
    >>> from dpmoments.datasets import airfoil
    >>> airfoil().frame.shape
    (1503, 6)
    """
    schema = _schema("airfoil")
    return Dataset(
        name="airfoil",
        frame=_bundled("airfoil", schema),
        schema=schema,
        description="Self-noise of NACA 0012 sections in a wind tunnel. One row per frequency band of a run.",
        source="Brooks, Pope & Marcolini 1989, Airfoil Self-Noise, UCI Machine Learning Repository, "
        "doi:10.24432/C5VW2C, CC BY 4.0",
        target="sound_pressure_level",
    )


def adult(subset: Literal["train", "test", "all"] = "all", complete: bool = True) -> Dataset:
    """Load people of the 1994 US census extract, 14 columns and the target ``income``.

    Bundled, needs no network.

    Parameters
    ----------
    subset
        "train" has the rows of adult.data, "test" those of adult.test, "all" both in this order.
    complete
        True keeps the rows without a missing value; False keeps every row, with null for "?" (in ``workclass``,
        ``occupation`` and ``native-country``, which the schema encodes as a block of zeros).

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
        Six integer columns, eight string columns without surrounding spaces, and ``income``, a Boolean: true is ">50K".
        A Boolean is one feature, so a regression on it is the linear probability model of earning over 50,000 dollars,
        and its mean is the share of those who do.

    Raises
    ------
    ValueError
        If `subset` is unknown.

    Examples
    --------
    >>> from dpmoments.datasets import adult
    >>> people = adult()
    >>> people.frame.shape, people.target
    ((45222, 15), 'income')
    """
    rows = {"train": slice(0, _N_ADULT_TRAIN), "test": slice(_N_ADULT_TRAIN, None), "all": slice(None)}
    check_one_of("subset", subset, rows)
    schema = _schema("adult")
    frame = _bundled("adult", schema)[rows[subset]]
    return Dataset(
        name=f"adult-{subset}" if complete else f"adult-{subset}-with-missing",
        frame=(frame.drop_null() if complete else frame).combine_chunks(),
        schema=schema,
        description="Adults with an income in the March 1994 US Current Population Survey. One row per person; "
        "fnlwgt is the survey weight in hundredths of people, income whether it exceeds 50,000 dollars.",
        source="Becker & Kohavi 1996, Adult, UCI Machine Learning Repository, doi:10.24432/C5XW20, CC BY 4.0",
        target="income",
    )


def _schema(name: str) -> Schema:
    """Return the schema bundled as `name`.

    Its bounds and levels are from codebooks, physics and survey design, not from rows.
    """
    with resources.as_file(_DATA / f"{name}.yaml") as path:
        return Schema.load(path)


def _bundled(name: str, schema: Schema) -> pa.Table:
    """Return the columns of `schema` of the Parquet file bundled as `name`."""
    content = (_DATA / f"{name}.parquet").read_bytes()
    return pq.read_table(pa.BufferReader(content), columns=list(schema.names))
