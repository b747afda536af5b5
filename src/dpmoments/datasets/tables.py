"""Wine, Adult and Airfoil as Arrow tables with public schemas."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import tempfile
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Literal

import numpy as np

from dpmoments.foundation.errors import InputConnectionError, InputNotADirectoryError, InputOSError, InputValueError
from dpmoments.foundation.table_libraries import pa, pc
from dpmoments.foundation.table_libraries import pa_csv as csv
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.numeric import Numeric
from dpmoments.schema.schema import Schema

# Fetch published files once, check them, and keep them in the user's cache.

_FOLDER_VARIABLE = "DPMOMENTS_DATA"
_TIMEOUT_SECONDS = 30.0
_MAX_DOWNLOAD = 64 * 2**20


@dataclass(frozen=True)
class PublishedFile:
    """Immutable published file: its name, https address and MD5."""

    name: str
    url: str
    md5: str


def _cache_folder() -> Path:
    """Return the folder of downloaded files: ``$XDG_CACHE_HOME/dpmoments``, by default ``~/.cache/dpmoments``."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification asks that a relative path be ignored.
    base = Path(configured) if os.path.isabs(configured) else Path.home() / ".cache"
    return base / "dpmoments"


def _find_local(file: PublishedFile) -> bytes | None:
    """Return the file's verified bytes from ``DPMOMENTS_DATA`` or the cache, or None."""
    folders = [_cache_folder()]
    chosen = os.environ.get(_FOLDER_VARIABLE)
    if chosen:
        if not Path(chosen).is_dir():
            raise InputNotADirectoryError(
                f"{_FOLDER_VARIABLE} is set to {chosen!r}, which is not a folder; name the folder that holds "
                f"{file.name}, or unset the variable"
            )
        folders.insert(0, Path(chosen))
    for folder in folders:
        path = folder / file.name
        if path.is_file():
            content = path.read_bytes()
            _check(file, content, str(path), "remove it, or put the published file in its place")
            return content
    return None


def load(file: PublishedFile) -> bytes:
    """Return the file's bytes from ``DPMOMENTS_DATA``, else the cache, else its publisher (then cached).

    Raises
    ------
    NotADirectoryError, ValueError
        If ``DPMOMENTS_DATA`` is not a folder; if bytes have the wrong MD5 (nothing is then stored).
    ConnectionError
        If the file cannot be downloaded. The message says where to save it by hand.
    OSError
        If the cache cannot be written.
    """
    content = _find_local(file)
    if content is None:
        content = _download(file)
        _check(file, content, file.url, "nothing was stored; try again later, or save the file there by hand")
        _store(_cache_folder() / file.name, content)
    return content


def _check(file: PublishedFile, content: bytes, where: str, advice: str) -> None:
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if md5 != file.md5:
        raise InputValueError(
            f"{where} is not the published {file.name}: its md5 is {md5}, expected {file.md5}; {advice}"
        )


def _download(file: PublishedFile) -> bytes:
    import http.client
    import urllib.request

    try:
        with urllib.request.urlopen(file.url, timeout=_TIMEOUT_SECONDS) as response:
            # The limit keeps an endless answer from filling the memory; an answer that it cuts fails the md5 check.
            content: bytes = response.read(_MAX_DOWNLOAD)
    except (OSError, http.client.HTTPException) as error:
        raise InputConnectionError(
            f"could not download {file.url} ({error}). Get {file.name} by other means and save it as "
            f"{_cache_folder() / file.name}, or set {_FOLDER_VARIABLE} to a folder that holds it"
        ) from error
    return content


def _store(path: Path, content: bytes) -> None:
    """Write a temporary file in the same folder, then rename it: no reader ever sees half a file."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as handle:
            temporary = Path(handle.name)
            handle.write(content)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise InputOSError(
            f"could not store {path} ({error}); set XDG_CACHE_HOME to a folder that can be written, or place "
            f"the file in a folder of your own and name that in {_FOLDER_VARIABLE}"
        ) from error


# Public schemas of the tables: bounds and levels from codebooks, physics and survey design, not from rows.

# Levels in the order of the codebook, adult.names.
_WORKCLASS = (
    "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov", "Without-pay",
    "Never-worked",
)  # fmt: skip
_EDUCATION = (
    "Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc", "9th",
    "7th-8th", "12th", "Masters", "1st-4th", "10th", "Doctorate", "5th-6th", "Preschool",
)  # fmt: skip
_MARITAL_STATUS = (
    "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent",
    "Married-AF-spouse",
)  # fmt: skip
_OCCUPATION = (
    "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty",
    "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving",
    "Priv-house-serv", "Protective-serv", "Armed-Forces",
)  # fmt: skip
_RELATIONSHIP = ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried")
_RACE = ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black")
_SEX = ("Female", "Male")
_NATIVE_COUNTRY = (
    "United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany", "Outlying-US(Guam-USVI-etc)",
    "India", "Japan", "Greece", "South", "China", "Cuba", "Iran", "Honduras", "Philippines", "Italy",
    "Poland", "Jamaica", "Vietnam", "Mexico", "Portugal", "Ireland", "France", "Dominican-Republic", "Laos",
    "Ecuador", "Taiwan", "Haiti", "Columbia", "Hungary", "Guatemala", "Nicaragua", "Scotland", "Thailand",
    "Yugoslavia", "El-Salvador", "Trinadad&Tobago", "Peru", "Hong", "Holand-Netherlands",
)  # fmt: skip


def _adult_schema() -> Schema:
    """Return the schema of Adult: 14 columns and the target ``income``."""
    return Schema(
        Numeric("age", 17, 90),
        Categorical("workclass", _WORKCLASS, missing="zero"),
        Numeric("fnlwgt", 0, 2_000_000),
        Categorical("education", _EDUCATION),
        Numeric("education-num", 1, 16),
        Categorical("marital-status", _MARITAL_STATUS),
        Categorical("occupation", _OCCUPATION, missing="zero"),
        Categorical("relationship", _RELATIONSHIP),
        Categorical("race", _RACE),
        Categorical("sex", _SEX),
        Numeric("capital-gain", 0, 99_999),
        Numeric("capital-loss", 0, 5_000),
        Numeric("hours-per-week", 1, 99),
        Categorical("native-country", _NATIVE_COUNTRY, missing="zero"),
        Boolean("income"),
    )


def _airfoil_schema() -> Schema:
    """Return the schema of Airfoil, from the description of the wind-tunnel tests."""
    return Schema(
        Numeric("frequency", 100, 20_000),
        Numeric("angle_of_attack", 0, 30),
        Numeric("chord_length", 0, 0.61),
        Numeric("free_stream_velocity", 0, 80),
        Numeric("suction_side_displacement_thickness", 0, 0.1),
        Numeric("sound_pressure_level", 80, 160),
    )


def _wine_schema(*, cultivar: bool) -> Schema:
    """Return the schema of Wine: round bounds for table wines in the assays' units; cultivars as numbers."""
    return Schema(
        Numeric("alcohol", 8, 18),
        Numeric("malic_acid", 0, 10),
        Numeric("ash", 0, 5),
        Numeric("alcalinity_of_ash", 0, 40),
        Numeric("magnesium", 0, 200),
        Numeric("total_phenols", 0, 5),
        Numeric("flavanoids", 0, 6),
        Numeric("nonflavanoid_phenols", 0, 1),
        Numeric("proanthocyanins", 0, 5),
        Numeric("color_intensity", 0, 20),
        Numeric("hue", 0, 2),
        Numeric("od280/od315_of_diluted_wines", 0, 5),
        Numeric("proline", 0, 2_000),
        *([Categorical("cultivar", ("1", "2", "3"))] if cultivar else []),
    )


_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
ADULT_TRAIN = PublishedFile("adult.data", f"{_UCI}/adult/adult.data", "5d7c39d7b8804f071cdd1f2a7c460872")
_ADULT_TEST = PublishedFile("adult.test", f"{_UCI}/adult/adult.test", "35238206dfdf7f1fe215bbb874adecdc")
_AIRFOIL = PublishedFile(
    "airfoil_self_noise.dat", f"{_UCI}/00291/airfoil_self_noise.dat", "b12d5b7b475ec7b3971d97f21e377414"
)
_BUNDLES = {"adult.data": "adult_complete_train.csv.gz", "adult.test": "adult_complete_test.csv.gz"}


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
    """Load chemical assays of 178 Italian wines, 13 numeric columns, from scikit-learn; needs no network.

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
    schema = _wine_schema(cultivar=cultivar)
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
    """Load the noise of airfoil sections in a wind tunnel (NASA 1989), 6 numeric columns; fetched once, then cached.

    Returns
    -------
    Dataset
        1,503 rows, 6 float columns in hertz, degrees, meters, meters per second, meters and decibels; the target is
        ``sound_pressure_level``.

    Raises
    ------
    ValueError
        If the file found or downloaded is not the published one (MD5).
    ConnectionError
        If it is neither in ``DPMOMENTS_DATA`` nor in the cache and cannot be downloaded; the message says where to save
        it.

    Examples
    --------
    >>> from dpmoments.datasets import airfoil
    >>> airfoil().frame.shape  # doctest: +SKIP
    (1503, 6)
    """
    schema = _airfoil_schema()
    names = list(schema.names)
    frame = csv.read_csv(
        pa.BufferReader(load(_AIRFOIL)),
        read_options=csv.ReadOptions(column_names=names),
        parse_options=csv.ParseOptions(delimiter="\t"),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float64())),
    )
    return Dataset(
        name="airfoil",
        frame=frame,
        schema=schema,
        description="Self-noise of NACA 0012 sections in a wind tunnel. One row per frequency band of a run.",
        source="Brooks, Pope & Marcolini 1989, Airfoil Self-Noise, UCI Machine Learning Repository, "
        "doi:10.24432/C5VW2C, CC BY 4.0",
        target="sound_pressure_level",
    )


def adult(subset: Literal["train", "test", "all"] = "all", complete: bool = True) -> Dataset:
    """Load people of the 1994 US census extract, 14 columns and the target ``income``.

    Files are searched in ``DPMOMENTS_DATA``, then in the cache. Otherwise complete rows come from **the copy bundled
    with this package**, without network; rows with missing values are fetched from UCI.

    Parameters
    ----------
    subset
        "train" is adult.data, "test" is adult.test, "all" is both in this order.
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
        If `subset` is unknown, or a file is not the published one (MD5).
    ConnectionError
        If ``complete`` is False and a file cannot be found or downloaded; the message says where to save it.

    Examples
    --------
    >>> from dpmoments.datasets import adult
    >>> people = adult()
    >>> people.frame.shape, people.target
    ((45222, 15), 'income')
    """
    files = {"train": (ADULT_TRAIN,), "test": (_ADULT_TEST,), "all": (ADULT_TRAIN, _ADULT_TEST)}
    if subset not in files:
        raise InputValueError(f"subset must be one of {', '.join(files)}; got {subset!r}")
    schema = _adult_schema()
    parts = [_read_adult(_complete_rows(file) if complete else load(file), schema) for file in files[subset]]
    frame = pa.concat_tables(parts)
    return Dataset(
        name=f"adult-{subset}" if complete else f"adult-{subset}-with-missing",
        frame=(frame.drop_null() if complete else frame).combine_chunks(),
        schema=schema,
        description="Adults with an income in the March 1994 US Current Population Survey. One row per person; "
        "fnlwgt is the survey weight in hundredths of people, income whether it exceeds 50,000 dollars.",
        source="Becker & Kohavi 1996, Adult, UCI Machine Learning Repository, doi:10.24432/C5XW20, CC BY 4.0",
        target="income",
    )


def _complete_rows(file: PublishedFile) -> bytes:
    """Return the published file if available, else the bundled copy of its complete rows."""
    content = _find_local(file)
    if content is not None:
        return content
    bundle = resources.files("dpmoments.datasets").joinpath("data", _BUNDLES[file.name])
    return gzip.decompress(bundle.read_bytes())


def _read_adult(content: bytes, schema: Schema) -> pa.Table:
    """Parse adult.data or adult.test; the latter begins with a comment and has "." after its labels."""
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
