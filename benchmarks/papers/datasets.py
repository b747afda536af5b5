"""Tables of the papers: public and scaled by their own rows, synthetic, or genetic."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmoments.base.errors import InputOSError, InputValueError
from dpmoments.base.table_libraries import pa, pc
from dpmoments.datasets import Dataset
from dpmoments.schema.columns import Boolean, Categorical, Column
from dpmoments.schema.constraints import levels_of


def standardized_unit_rows(
    data: Dataset, *, include_target: bool = False, unknown_is_a_level: bool = False
) -> NDArray[np.float64]:
    """Standardize every encoded column, then scale every row to norm 1, as Amin et al. 2019.

    Every numeric column gives one feature, and every other column one feature per level, in the order of the schema.
    Features that are constant on these rows are dropped. ``unknown_is_a_level`` adds a last level for missing
    values: so ``adult("all", complete=False)`` has the paper's 48,842 rows and 108 features. State
    ``include_target``, and the subset, with any error measured on Adult: both change n or d.

    **Not private.** Means, standard deviations and the dropped columns are read from the rows, and no budget pays for
    them.

    >>> from dpmoments.datasets import wine
    >>> standardized_unit_rows(wine()).shape
    (178, 13)
    """
    left_out = set() if include_target else {data.target}
    features = []
    for column, cells in _columns(data, left_out, unknown_is_a_level=unknown_is_a_level):
        if not isinstance(column, Categorical | Boolean):
            features.append(cells.to_numpy().astype(np.float64))
        else:
            features.extend(_indicators(cells, levels_of(column)))
            if unknown_is_a_level:
                features.append(pc.is_null(cells).to_numpy().astype(np.float64))
    varying = [feature for feature in features if np.any(feature != feature[0])]
    rows = _standardized(np.column_stack(varying))
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0.0, norms, 1.0))


def replication_rows(data: Dataset, *, standardize: bool) -> NDArray[np.float64]:
    """Encode a table without its target as the student replication of Amin et al. 2019 does.

    Rows longer than 1 get norm 1. Numeric columns come first, then the others with one feature per level except the
    first, levels in alphabetical order; a level of the schema that never occurs has a feature, which is zero.
    ``standardize`` brings numeric columns to mean 0 and variance 1 first, which the replication does for Adult only,
    and is **not private**.

    >>> from dpmoments.datasets import adult
    >>> replication_rows(adult(), standardize=True).shape
    (45222, 97)
    """
    numeric, indicators = [], []
    for column, cells in _columns(data, {data.target}, unknown_is_a_level=False):
        if not isinstance(column, Categorical | Boolean):
            numeric.append(cells.to_numpy().astype(np.float64))
        else:
            indicators += _indicators(cells, sorted(levels_of(column), key=str)[1:])
    rows = np.column_stack(numeric + indicators)
    if standardize:
        rows[:, : len(numeric)] = _standardized(rows[:, : len(numeric)])
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0))


def _columns(
    data: Dataset, left_out: set[str | None], *, unknown_is_a_level: bool
) -> Iterator[tuple[Column, pa.ChunkedArray]]:
    """Yield columns and their values; refuse a missing value that is not a level."""
    for column in data.schema.table_columns:
        if column.name in left_out:
            continue
        cells = data.frame[column.name]
        if cells.null_count and not (unknown_is_a_level and isinstance(column, Categorical | Boolean)):
            raise InputValueError(
                f"column '{column.name}' of {data.name} has missing values: load the complete rows, or pass "
                "unknown_is_a_level=True if the encoding has it"
            )
        yield column, cells


def _indicators(cells: pa.ChunkedArray, levels: Sequence[str | int]) -> list[NDArray[np.float64]]:
    values = cells.to_numpy()
    return [(values == level).astype(np.float64) for level in levels]


def _standardized(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    centered = columns - columns.mean(axis=0)
    return np.asarray(centered / centered.std(axis=0))


# The synthetic tables of the papers: correlated rows in the unit ball, and rows of heavy tails.


def amin_synthetic(
    n_rows: int,
    n_features: int,
    rng: np.random.Generator,
    *,
    columns: Literal["standardized", "centered", "drawn"] = "standardized",
    scaling: Literal["unit", "largest"] = "unit",
) -> NDArray[np.float64]:
    """Draw correlated Gaussian rows of norm 1: Algorithm 3 of Amin et al. 2019, appendix C.1.

    X = ZU, Z standard normal and U uniform on [0, 1), drawn in this order: all features are positively correlated, and
    one eigenvalue of the second moment is far above the others. Columns are then "standardized", "centered" or as
    "drawn", and every row is divided by its own norm ("unit") or by the "largest". In the paper a column of its d × n
    matrix is a person, to be given mean 0, variance 1 and norm 1, which no column can have: here norm 1 is of the
    person, as the privacy guarantee requires, and comes last; mean and variance are of the feature. "centered" follows
    the released code of Dong, Liang & Yi 2022 ("Differentially Private Covariance Revisited").

    >>> rows = amin_synthetic(1000, 5, np.random.default_rng(0))
    >>> rows.shape, bool(np.allclose(np.linalg.norm(rows, axis=1), 1.0))
    ((1000, 5), True)
    """
    normals = rng.standard_normal((n_rows, n_features))
    mixing = rng.random((n_features, n_features))
    rows: NDArray[np.float64] = normals @ mixing
    if columns != "drawn":
        rows -= rows.mean(axis=0)
    if columns == "standardized" and n_rows > 1:
        rows /= rows.std(axis=0)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if scaling == "largest":
        norms = np.full_like(norms, norms.max())
    return rows / np.where(norms > 0.0, norms, 1.0)


def algorithm_3(n_rows: int, n_features: int) -> NDArray[np.float64]:
    """The table of appendix C.1 by which all benchmarks mean a given size."""
    return amin_synthetic(n_rows, n_features, np.random.default_rng([n_rows, n_features]))


def multivariate_laplace(n_rows: int, n_features: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw rows of the symmetric multivariate Laplace distribution, of mean 0 and covariance I.

    A row is √W·z, z standard normal and W exponential of mean 1: its coordinates are uncorrelated, not independent.
    Biswas et al. 2020 (CoinPress), Figure 5, name it without a formula; their released code draws independent
    coordinates.

    >>> rows = multivariate_laplace(100_000, 2, np.random.default_rng(0))
    >>> bool(np.allclose(np.cov(rows.T), np.eye(2), atol=0.05))
    True
    """
    normals = rng.standard_normal((n_rows, n_features))
    return np.asarray(normals * np.sqrt(rng.standard_exponential((n_rows, 1))))


def multivariate_student(
    n_rows: int, n_features: int, rng: np.random.Generator, *, degrees: float = 3.0
) -> NDArray[np.float64]:
    """Draw rows of the multivariate Student t distribution, of mean 0 and covariance I.

    It has ν = ``degrees`` > 2 degrees of freedom: a row is z·√((ν − 2)/V), z standard normal and V a χ² of ν degrees.
    With ν = 3, Figure 5 of Biswas et al. 2020 (CoinPress) by its text; their released code draws independent
    coordinates.

    >>> rows = multivariate_student(100_000, 2, np.random.default_rng(0), degrees=8.0)
    >>> bool(np.allclose(np.cov(rows.T), np.eye(2), atol=0.05))
    True
    """
    squares = rng.chisquare(degrees, (n_rows, 1))
    return np.asarray(rng.standard_normal((n_rows, n_features)) * np.sqrt((degrees - 2.0) / squares))


# Published files that are not bundled: fetched once, checked, and kept in the user's cache.

_FOLDER_VARIABLE = "DPMOMENTS_DATA"


@dataclass(frozen=True)
class PublishedFile:
    """Immutable published file: its name, https address and MD5."""

    name: str
    url: str
    md5: str

    def checked(self, content: bytes, where: str, advice: str) -> bytes:
        """The content, which must be the published one."""
        md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if md5 != self.md5:
            raise InputValueError(
                f"{where} is not the published {self.name}: its md5 is {md5}, expected {self.md5}; {advice}"
            )
        return content


def load(file: PublishedFile) -> bytes:
    """Return the file's bytes from ``DPMOMENTS_DATA``, the user's cache, or its publisher; the publisher's are then cached."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpmoments" / file.name
    chosen = Path(os.environ.get(_FOLDER_VARIABLE) or cache.parent) / file.name
    for path in (chosen, cache):
        if path.is_file():
            return file.checked(path.read_bytes(), str(path), "remove it, or put the published file in its place")
    try:
        with urllib.request.urlopen(file.url, timeout=30.0) as response:
            content: bytes = response.read()
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the connection
        raise InputOSError(
            f"could not download {file.url} ({error}). Get {file.name} by other means and save it as {cache}, or "
            f"set {_FOLDER_VARIABLE} to a folder that holds it"
        ) from error
    file.checked(content, file.url, "nothing was stored; try again later, or save the file there by hand")
    cache.parent.mkdir(parents=True, exist_ok=True)
    partial = cache.with_name(f".{cache.name}.{os.getpid()}")  # renamed: no reader ever sees half a file
    partial.write_bytes(content)
    partial.replace(cache)
    return content


# Genetic principal components of 1,387 Europeans, fetched from their publishers.

_REPOSITORY = "https://raw.githubusercontent.com/NovembreLab/Novembre_etal_2008_misc/master/files"
_ANALYSIS = f"{_REPOSITORY}/POPRES_08_24_01.EuroThinFinal.LD_0.8.exLD.out0-PCA"
_COMPONENTS = PublishedFile("popres.eigs", f"{_ANALYSIS}.eigs", "a81d9a5fdba56f79a23a4d1aa2a5074d")
_EIGENVALUES = PublishedFile("popres.eval", f"{_ANALYSIS}.eval", "3b2f9c885d7cdd4e011e4314a3f55052")
_COLORS = PublishedFile("popres_color.txt", f"{_REPOSITORY}/POPRESID_Color.txt", "22e680e67c68e161558982a153ed8f92")
_N_COMPONENTS = 20


@dataclass(frozen=True, eq=False)
class GeneticComponents:
    """Principal components of genotypes, person by person, without genotypes or names."""

    # (n_people, 20): eigenvectors of the people's similarity matrix, one person per row; each column has norm 1
    components: NDArray[np.float64] = field(repr=False)
    eigenvalues: NDArray[np.float64] = field(repr=False)  # (20,), in descending order
    # for each person an X11 color name, which stands for a country of origin
    colors: tuple[str, ...] = field(repr=False)
    source: str  # publishers and citation


def popres() -> GeneticComponents:
    """Return twenty genetic principal components of 1,387 Europeans (POPRES).

    CoinPress's Map of Europe, section 4.2. The files are fetched once from their publishers, checked and cached. They
    are about people, and we know of no license to pass them on: they are **never part of this package**.
    """
    people = [line.split() for line in _lines(_COMPONENTS)[1:]]  # the first line holds rounded eigenvalues
    colors = dict(line.split() for line in _lines(_COLORS))
    return GeneticComponents(
        components=np.array([cells[2 : 2 + _N_COMPONENTS] for cells in people], dtype=np.float64),
        eigenvalues=np.array(_lines(_EIGENVALUES)[:_N_COMPONENTS], dtype=np.float64),
        colors=tuple(colors[cells[1]] for cells in people),
        source="Novembre et al. 2008, Genes mirror geography within Europe, Nature 456:98; POPRES (Nelson et al. 2008); "
        "github.com/NovembreLab/Novembre_etal_2008_misc",
    )


def _lines(file: PublishedFile) -> list[str]:
    return load(file).decode("ascii").splitlines()
