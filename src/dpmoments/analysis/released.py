"""Releases as analyses see them: what every release states, and moments."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np

from dpmoments.analysis.answers import in_floating_point
from dpmoments.analysis.available_cases import AvailableCases
from dpmoments.base.documents import DocumentKind
from dpmoments.base.errors import InputKeyError, InputTypeError, InputValueError, listed, meant, shown, visible
from dpmoments.base.message import PART, Message, messages_of
from dpmoments.base.records import AS_IT_IS, ReadBy, read_entries
from dpmoments.base.values import (
    BoolArray,
    FloatArray,
    IntegerArray,
    bordered,
    finite_numbers,
    is_finite_number,
    require_known,
    to_plain,
)
from dpmoments.base.wordings import WARNINGS
from dpmoments.moments.law import NoiseLaw, Rounding
from dpmoments.moments.models import NoiseModel
from dpmoments.moments.repair import Repair, exact_law, few_rows_message, floored_count, repair_moments
from dpmoments.privacy.origin import ReleaseOrigin
from dpmoments.privacy.receipt import PrivacyStatement, Receipt
from dpmoments.schema.constraints import Constraints
from dpmoments.schema.dates import Date
from dpmoments.schema.derived import DerivedColumn, SchemaColumn
from dpmoments.schema.encoding import LATTICE, Encoding
from dpmoments.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd


_STATEMENTS = {
    "origin": ReleaseOrigin,
    "schema": Schema,
    "features": Annotated[Any, AS_IT_IS],
    "privacy": PrivacyStatement,
    "receipt": Receipt,
    "mechanism": str,
    "mechanism_options": dict,
    "diagnostics": dict,
    "warnings": Annotated[tuple[Message, ...], ReadBy(lambda values: messages_of(values, WARNINGS, "warnings"))],
}
"""Entries of every release's file, and their kinds."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(ABC):
    """Statements of every release: what is public, what was spent, and what ran."""

    schema: Schema
    privacy: PrivacyStatement  # privacy guarantee and loss; `print(release.privacy.describe())`
    receipt: Receipt  # every noise draw and its privacy loss
    mechanism: str  # name of the mechanism that ran
    mechanism_options: Mapping[str, Any]
    diagnostics: Mapping[str, Any] = field(default_factory=dict)  # further private findings of the mechanism
    # identity of the release: `release.id`, `release.dataset`, and its group of rows
    origin: ReleaseOrigin = field(default_factory=ReleaseOrigin.fresh)

    file_kind: ClassVar[DocumentKind]
    holds_counts: ClassVar[bool] = False
    """True for contingency tables, whose rows are counted and not encoded."""

    def __post_init__(self) -> None:
        self.receipt.require_for(self.privacy)
        unit = self.privacy.privacy_unit
        if unit is not None and (unit.max_rows is None) != (self.schema.sampling_weight is not None):
            raise InputValueError(
                "a unit is bounded by its weights if rows have a sampling weight, and else by its rows: the file was changed"
            )
        if not self.diagnostics.get("warnings", True):  # a file holds none, and a release is what its file says
            learned = {name: value for name, value in self.diagnostics.items() if name != "warnings"}
            object.__setattr__(self, "diagnostics", learned)

    @property
    def id(self) -> str:
        """128 bits in hexadecimal digits that no other release has."""
        return self.origin.id

    @property
    def dataset(self) -> str | None:
        """Curator's name of the dataset; None if not named."""
        return self.origin.dataset

    @property
    def mechanism_text(self) -> str:
        """Mechanism that ran, with the options that have a value."""
        options = ", ".join(f"{key}={value}" for key, value in self.mechanism_options.items() if value is not None)
        return f"{self.mechanism} ({options})" if options else self.mechanism

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of every array."""
        return self.schema.feature_names

    @property
    def warnings(self) -> tuple[Message, ...]:
        """Private findings of the mechanism that limit trust in the release; usually empty."""
        return tuple(self.diagnostics.get("warnings", ()))

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release as JSON, all of it or nothing; :func:`dpmoments.load` reads it."""
        self.file_kind.write(self.to_dict(), path, overwrite=overwrite)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file, bit for bit."""

    def _statements(self) -> dict[str, Any]:
        return {
            "origin": self.origin.to_dict(),
            "schema": self.schema.to_dict(),
            "features": features_entry(self.schema, mean=getattr(self, "noisy_sum", ()) is not None),
            "privacy": self.privacy.to_dict(),
            "receipt": self.receipt.to_dict(),
            "mechanism": self.mechanism,
            "mechanism_options": to_plain(self.mechanism_options),
            "diagnostics": to_plain({key: value for key, value in self.diagnostics.items() if key != "warnings"}),
            "warnings": [message.to_dict() for message in self.diagnostics.get("warnings", ())],
        }

    @staticmethod
    def _read(content: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the statements of a file and its ``own`` entries, by their kinds."""
        given = read_entries(content, {**_STATEMENTS, **own})
        schema = given["schema"].with_indicators if "noisy_gram_upper_triangle" in own else given["schema"]
        features, expected = given.pop("features"), features_entry(schema, mean=given.get("noisy_sum", ()) is not None)
        require_known(features, expected, "features")
        d = len(expected["names"])
        numbers = [(finite_numbers(features[name], d, name), np.array(expected[name])) for name in ("offset", "scale")]
        if features["names"] != expected["names"] or not all(np.allclose(*pair, 1e-9, 0.0) for pair in numbers):
            raise InputValueError("the features are not those of the schema")
        said, learned = given.pop("warnings"), given["diagnostics"]
        if "warnings" in learned:
            raise InputValueError("warnings are an entry of a release, and not of its diagnostics")
        return {**given, "schema": schema, "diagnostics": {**learned, "warnings": said} if said else learned}

    def _described(self, size: str) -> str:
        flag = (", no ledger" if getattr(self, "notes", ()) else "") if self.privacy.private else ", NOT PRIVATE"
        return (
            f"{type(self).__name__}({size}, mechanism={self.mechanism!r}, "
            f"{self.privacy.budget}, neighbors={str(self.privacy.neighbors)!r}{flag})"
        )


def features_entry(schema: Schema, *, mean: bool) -> dict[str, Any]:
    """Return names of the features and their encoding, for readers in other languages."""
    # Value = offset + scale · encoded.
    encoding = schema.encoding(mean=mean)
    return {"names": list(schema.feature_names), "offset": encoding.offset.tolist(), "scale": encoding.scale.tolist()}


_MOST_UNEVEN = 4.0
"""Limit on the ratio of mean weights of some rows and of all, which noise may exceed."""
_BIAS_OF_CAP = 1.5
"""Largest measured bias of a mean, in SDs, over the share of the weight that a cap takes."""
_SINGULAR = 1e-6
"""A direction of less than this share of the largest variance has none."""


@dataclass(frozen=True, eq=False)
class Weighting:
    """Facts about the sampling weights of a release, from its noisy answers and public numbers."""

    column: str
    unit: str | None  # column of the privacy unit, whose total weight is bounded
    population: float | None  # public size of the population
    sum_of_weights: float
    effective_n: float
    clipped: float | None  # share of the population's weight that the cap takes; None if the population is not public
    # with `spread`: (d,) and (d, d), means, and covariance about the mean, if rows counted by their squared weights, less
    # those by their weights; of levels and Booleans, 0 for numbers, and if noise hides it
    shift: FloatArray
    spread: FloatArray
    # (d,), factors by which stated design effects change sampling variances beyond the effective number of rows
    stated: FloatArray

    def carried(self, weights: FloatArray) -> Weighting:
        """Return the facts for linear combinations of the features, shape (m, d)."""
        stated = np.where(weights != 0.0, self.stated, 0.0).max(axis=1, initial=0.0)
        return replace(self, shift=weights @ self.shift, spread=weights @ self.spread @ weights.T, stated=stated)

    def hidden_by_cap(self, deviations: FloatArray) -> FloatArray:
        """Return what the cap may hide of means, by the standard deviations."""
        return _BIAS_OF_CAP * (self.clipped or 0.0) * np.nan_to_num(deviations, nan=0.0)

    def of_means(self, shares: FloatArray) -> FloatArray:
        """Return factors of the sampling variances of means, shape (d,)."""
        ratios = 1.0 + np.diag(self.spread) / np.maximum(shares * (1.0 - shares), np.finfo(float).tiny)
        return self.stated * np.clip(ratios, 1.0 / _MOST_UNEVEN, _MOST_UNEVEN)

    def of_groups(self, weights: FloatArray, features: list[int], mean: FloatArray) -> FloatArray:
        """Return the rows of groups over their effective rows, both as shares of all, shape (k,).

        A group is 1 in ``weights`` @ (1, its features).
        """
        own = np.maximum(weights @ np.append(1.0, np.clip(mean[features], 0.0, 1.0)), np.finfo(float).tiny)
        ratios = 1.0 + weights[:, 1:] @ self.shift[features] / own
        return np.asarray(np.clip(ratios, 1.0 / _MOST_UNEVEN, _MOST_UNEVEN))

    def of_cells(
        self, cells: FloatArray, mean: FloatArray, covariance: FloatArray, features: IntegerArray
    ) -> FloatArray:
        """Return mean weights of rows with these values over that of all, by a linear model."""
        slopes = np.linalg.lstsq(covariance, self.shift[features], rcond=None)[0]
        return np.clip(1.0 + (cells - mean) @ slopes, 1.0 / _MOST_UNEVEN, _MOST_UNEVEN)

    @property
    def note(self) -> Message:
        """Statement under every answer."""
        facts = {"column": self.column, "total": self.sum_of_weights, "effective": self.effective_n}
        stated = {"unit": self.unit, "clipped": self.clipped}
        return Message("weighted-rows", **facts, **{name: fact for name, fact in stated.items() if fact is not None})


def by_squared_weights(spread: FloatArray, change: FloatArray) -> FloatArray:
    """Return ``spread + change``, no variance in which is below 1/4 or above 4 times its own."""
    values, vectors = np.linalg.eigh(spread)
    kept = values > _SINGULAR * values.max(initial=0.0)
    root, vectors = np.sqrt(values[kept]), vectors[:, kept]
    ratios, turned = np.linalg.eigh((vectors / root).T @ change @ (vectors / root))
    carried = (vectors * root) @ turned
    return np.asarray((carried * np.clip(1.0 + ratios, 1.0 / _MOST_UNEVEN, _MOST_UNEVEN)) @ carried.T)


_ROUNDING = 256.0 * float(np.finfo(float).eps)
"""Share of a second moment up to which a variance is 0: the rounding error of a difference."""


@dataclass(frozen=True, eq=False)
class Moments(Release):
    """The noisy moments of a release, and the repaired estimates of the table's moments."""

    # noise model stored in the file; None if the moments are biased on purpose. `release.noise` is its distribution.
    noise_model: NoiseModel | None
    details: Mapping[str, Any]  # parameters of the mechanism's plan
    repair: Repair  # the post-processing that the properties below apply to the noisy moments
    noisy_count: float | None
    noisy_sum: FloatArray | None  # (d,) or None
    noisy_gram: FloatArray  # (d, d), noisy (unrepaired) moments in encoded units; sum and Gram matrix about `center`
    # (d,) or None, private estimate of the mean: a covariance would lose precision next to the square of a distant
    # mean. None is the origin.
    center: FloatArray | None = None
    weighting: Weighting | None = None  # what sampling weights do to the moments; None without weights

    def __post_init__(self) -> None:
        if self.center is not None and self.noisy_sum is None:
            raise InputValueError("moments about a center need the sum about it, else their mean is not known")
        if self.noisy_sum is not None and self.noisy_count is None:
            raise InputValueError("a sum of rows without their number makes no mean: release both, or neither")
        super().__post_init__()
        for array in (self.noisy_sum, self.noisy_gram, self.center):
            if array is not None:
                array.setflags(write=False)

    @property
    def encoding(self) -> Encoding:
        """The affine map between the table's units and the unit ball."""
        return self.schema.encoding(mean=self.noisy_sum is not None)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Name of the column of each feature."""
        return tuple(column.name for column in self.schema.columns for _ in column.feature_names)

    @property
    def feature_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of the features in original units, each of shape (d,)."""
        return self.schema.feature_bounds

    @property
    def zero_of_units(self) -> FloatArray:
        """Offset of value/scale from encoded rows about ``center``, shape (d,)."""
        encoding = self.encoding
        zero = encoding.offset / encoding.scale
        return zero if self.center is None else zero + self.center

    @property
    def n_rows(self) -> int:
        """Number of kept rows: exact if it is public, else noisy and rounded.

        A noisy count is at least 1, and at least the SD of its noise.

        Raises
        ------
        ValueError
            If no count was released.
        """
        return self.sample_size

    @property
    def rows_noise(self) -> float | None:
        """Noise SD of the number of rows, 0 if it is exact; None if unknown."""
        if self.count_is_public:
            return 0.0
        if self.noisy_count is None or self.noise is None:
            return None
        return math.sqrt(self.noise.count_variance)

    @property
    def sample_size(self) -> int:
        """Number of rows that analyses divide by: of weighted ones the effective number.

        Raises
        ------
        ValueError
            If no count was released.
        """
        if self.noisy_count is None:
            refused = (
                "no count was released: under add_remove the number of rows is private, and nothing was spent on it. "
                "release.gram needs none; a release made "
            )
            advice = ", or with a public number of rows, has one"
            raise InputValueError(f"{refused}with mean=True{advice}", shell=f"{refused}without --no-mean{advice}")
        return round(floored_count(self.noisy_count, None if self.count_is_public else self.noise))

    @property
    def count_is_public(self) -> bool:
        """True if the row count was released without noise.

        Requires ``replace_one`` and a schema that drops no rows, or ``add_remove`` and a second moment released with a count
        that is public from elsewhere. A mean is divided by a count that was released with it.
        """
        return self.noisy_count is not None and (
            (self.privacy.neighbors.count_is_public(self.schema.drops_rows) and self.schema.sampling_weight is None)
            or (self.noisy_sum is None and not self.privacy.neighbors.table_size_is_public)
        )

    @property
    def available(self) -> AvailableCases | None:
        """Moments of the rows whose values are present; None if no value can be missing."""
        return None

    @property
    def present(self) -> FloatArray | None:
        """Share of the rows that have a value, shape (d,); None if no value can be missing."""
        return None if self.available is None else self.available.shares

    @property
    def both_present(self) -> FloatArray | None:
        """Share of the rows that have two values, shape (d, d); None if no value can be missing."""
        return None if self.available is None else self.available.both

    @property
    def rows_moved(self) -> bool:
        """True if whole rows were clipped about a private center, levels with them."""
        return any(part.center is not None and not part._in_coordinates for part in self.drawn_parts)

    @property
    def _in_coordinates(self) -> bool:
        return self.noise_model is not None and self.noise_model.in_coordinates

    @property
    def as_drawn(self) -> Moments:
        """Moments of the drawn features, indicators of missing values among them."""
        return self

    @property
    def drawn_parts(self) -> tuple[Moments, ...]:
        """The moments as drawn, one of each release that was pooled."""
        return (self.as_drawn,)

    @cached_property
    def noise(self) -> NoiseLaw | None:
        """Noise distribution of Σ z zᵀ, z = (1, x) about ``center``, in encoded units.

        None for biased moments. It covers the rounding of rows to the integer lattice.

        Exact for additive noise on each entry, for pooled releases, for additive Wishart noise of any scale, and, given the
        rows as the last step clipped them, for coinpress and private-preconditioning. **Linearized about the release** for draws
        around the moments (johnson-lindenstrauss, inverse-wishart), noise on their inverse, and eigenvectors: ``caveats`` list
        these cases (``docs/evidence/derivations/noise-of-runs.md``).
        """
        if self.noise_model is None:
            return None
        try:
            law = self.noise_model.law(self)
        except (ValueError, FloatingPointError):
            return None  # a file whose numbers are those of no run
        bits = self.details.get("lattice_bits")
        if law is None or self.rows_moved or self.noisy_count is None or not is_finite_number(bits):
            return law

        # noise that covers the rounding of rows
        unit = 2.0 ** -float(bits)
        total = np.zeros(len(self.noisy_gram)) if self.noisy_sum is None else self.noisy_sum
        steps = np.full(len(total), unit / 2.0) * self.noise_model.units
        if self._in_coordinates or unit * LATTICE <= 1.0:
            for block in Constraints.of(self.schema, mean=self.noisy_sum is not None).blocks:
                steps[block.features] = 0.0  # on the lattice
        rounding = Rounding.of(steps, bordered(max(self.noisy_count, 1.0), total, self.noisy_gram))
        return law if rounding.is_negligible(law.cell_variances()) else replace(law, rounding=rounding)

    @cached_property
    @in_floating_point
    def _repaired(self) -> tuple[FloatArray | None, FloatArray]:
        """Mean and Gram matrix in the unit ball after the repair, about ``center``."""
        constraints = Constraints.of(self.schema, mean=self.noisy_sum is not None)
        count, law = None if self.noisy_count is None else self.sample_size, exact_law(self.noise)
        mean, gram = repair_moments(count, self.noisy_sum, self.noisy_gram, law, self.repair, constraints, self.center)
        for array in (mean, gram):
            if array is not None:
                if not np.isfinite(array).all():  # products of matrices overflow in silence
                    raise OverflowError
                array.setflags(write=False)  # kept, and handed out
        return mean, gram

    def with_repair(self, repair: Repair | str) -> Self:
        """Return this release with another repair: post-processing, free of privacy cost."""
        result = replace(self, repair=Repair.of(repair))
        result.__dict__["noise"] = self.noise  # what is cached of the numbers before any repair
        return result

    @property
    @in_floating_point
    def unit_ball_mean(self) -> FloatArray:
        """E[x] of the encoded rows, repaired, shape (d,)."""
        mean = self._repaired[0]
        if mean is None:
            raise _without_mean("")
        return mean if self.center is None else self.center + mean

    @property
    @in_floating_point
    def unit_ball_gram(self) -> FloatArray:
        """Σ x xᵀ of the encoded rows, repaired, shape (d, d)."""
        mean, gram = self._repaired
        if self.center is None or mean is None:
            return gram
        cross = np.outer(self.center, mean)
        return gram + self.sample_size * (cross + cross.T + np.outer(self.center, self.center))

    @property
    @in_floating_point
    def unit_ball_covariance(self) -> FloatArray:
        """Cov(x) of the encoded rows, repaired, shape (d, d)."""
        mean, gram = self._repaired
        if mean is None:
            raise _without_mean("")
        square = gram / self.sample_size
        result = square - np.outer(mean, mean)
        size = np.sqrt(np.abs(np.diag(square)))
        result[np.abs(result) <= _ROUNDING * np.outer(size, size)] = 0.0
        without = np.diag(result) == 0.0
        result[without], result[:, without] = 0.0, 0.0
        return result

    @property
    @in_floating_point
    def mean(self) -> FloatArray:
        """E[value], shape (d,), in the table's units."""
        return self.encoding.decode_mean(self.unit_ball_mean)

    @property
    @in_floating_point
    def second_moment(self) -> FloatArray:
        """E[value valueᵀ], not centered, shape (d, d), in the table's units."""
        mean = None if self.noisy_sum is None else self.unit_ball_mean
        return self.encoding.decode_second_moment(self.unit_ball_gram / self.sample_size, mean)

    @property
    @in_floating_point
    def gram(self) -> FloatArray:
        """Σ value valueᵀ, shape (d, d), in the table's units."""
        if self.encoding.offset.any():
            return self.second_moment * self.sample_size
        return self.encoding.decode_covariance(self.unit_ball_gram)

    @property
    @in_floating_point
    def covariance(self) -> FloatArray:
        """Cov(value), centered, shape (d, d), in the table's units."""
        return self.encoding.decode_covariance(self.unit_ball_covariance)

    @property
    @in_floating_point
    def correlation(self) -> FloatArray:
        """Corr(value), shape (d, d), NaN where a variance is not positive.

        :meth:`correlations` says how sure it is.
        """
        return correlation_of(self.unit_ball_covariance)

    def covariance_frame(self) -> pd.DataFrame:
        """Return :attr:`covariance` as a pandas frame, rows and columns labeled by feature."""
        return self._labeled(self.covariance)

    def correlation_frame(self) -> pd.DataFrame:
        """Return :attr:`correlation` as a pandas frame, rows and columns labeled by feature."""
        return self._labeled(self.correlation)

    def _labeled(self, matrix: FloatArray) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(matrix, index=list(self.feature_names), columns=list(self.feature_names))


def correlation_of(covariance: FloatArray) -> FloatArray:
    """Return the correlation matrix of a covariance, NaN if a variance is not positive.

    >>> correlation_of(np.array([[4.0, 1.0], [1.0, 1.0]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    variances = np.diag(covariance)
    deviations = np.sqrt(np.where(variances > 0.0, variances, np.nan))
    correlation = np.clip(covariance / np.outer(deviations, deviations), -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)


def needs_mean(analysis: str = "") -> InputValueError:
    """Return the error of an analysis of deviations from a mean that was not released."""
    of_analysis = f"{analysis}: " if analysis else ""
    return _without_mean(f"{of_analysis}it is made of deviations from the mean, and ")


def _without_mean(before: str) -> InputValueError:
    refused = f"{before}no mean was released: a release made "
    return InputValueError(f"{refused}with mean=True has one", shell=f"{refused}without --no-mean has one")


def feature_index(release: Release, name: str) -> int:
    """Return the index of a feature; a column of one feature has its name."""
    names = release.feature_names
    if name in names:
        return names.index(name)
    for column in release.schema.columns:
        if column.name == name:
            raise InputValueError(
                f"'{name}' is categorical, and one feature is needed. Name one of its features: "
                f"{listed(column.feature_names)}."
            )
    known = dict.fromkeys([*(column.name for column in release.schema.columns), *names])
    raise unknown_feature(name, tuple(known), len(names))


def unknown_feature(name: object, known: Sequence[str], n_features: int) -> InputValueError:
    """Return the error of a name that a release with ``n_features`` features does not have."""
    unknown = f"Unknown feature '{name}'.{meant(name, known)}"
    return InputValueError(
        f"{unknown} release.feature_names lists all {n_features:,}.",
        shell=f"{unknown} 'dpmoments show' and 'dpmoments forecast' list all {n_features:,}.",
    )


def indices_of(known: Sequence[str], names: str | Sequence[str]) -> list[int]:
    """Return the positions of one name or several; raise KeyError for a name that is not known.

    >>> indices_of(["age", "income"], "income"), indices_of(["age", "income"], ["income", "age"])
    ([1], [1, 0])
    """
    result = []
    for name in [names] if isinstance(names, str) else names:
        if name not in known:
            given = name if isinstance(name, str) else shown(name)
            raise InputKeyError(f"There is no '{given}' in this answer.{meant(given, known)}")
        result.append(list(known).index(name))
    return result


def chosen_features(release: Moments, columns: Sequence[str] | None) -> list[int]:
    """Return indices of features named by feature or column, in the release's order."""
    # Default all. A complete column of two levels is one feature, the first: the other only by its own name.
    every = range(release.schema.n_features) if columns is None else named_features(release, columns, word="columns")
    seconds = {first + 1 for first, _ in pairs_of_levels(release) if first in every}
    named = {} if columns is None else dict.fromkeys(columns)
    return [index for index in sorted(every) if index not in seconds or release.feature_names[index] in named]


_OFF_THE_SUM = 0.5
"""Largest distance from 1 of what a center has of two levels together.

Moved rows lack a part of it, less than moving takes.
"""


def pairs_of_levels(release: Moments) -> Iterator[tuple[int, bool]]:
    """Return first levels of columns of two, and whether both nearly add up to one."""
    if release.noisy_sum is None:  # about zero neither is a function of the other
        return
    center = release.encoding.decode_mean(np.asarray(release.center)) if release.rows_moved else None
    for block in Constraints.of(release.schema, mean=True).blocks:
        if block.complete and block.size == 2:
            off = 0.0 if center is None else abs(float(center[block.features].sum()) - 1.0)
            yield block.start, off <= _OFF_THE_SUM


def named_features(release: Release, names: Sequence[str], *, word: str) -> list[int]:
    """Return indices of features named by feature, by column or by list of items."""
    # `word` is the argument's name in errors.
    lists = release.schema.item_lists
    if isinstance(names, str) and names not in lists:
        known = f", or the name of a list of items: {listed(lists)}" if lists else ""
        raise InputTypeError(f"{word} are a list of names, not one string{known}")
    of_columns = {column.name: list(indices) for column, indices in columns_with_indices(release)}
    of_lists = {name: [index for item in items for index in of_columns[item]] for name, items in lists.items()}
    result: list[int] = []
    for name in [names] if isinstance(names, str) else names:
        found = of_columns.get(name) or of_lists.get(name)
        result += [feature_index(release, name)] if found is None else found
    if not result:
        raise InputValueError(f"no {word}: name at least one")
    if len(set(result)) < len(result):
        raise InputValueError("a feature is named twice")
    return result


def columns_with_indices(release: Release) -> list[tuple[SchemaColumn, range]]:
    """Yield the schema's columns, each with the indices of its features."""
    every = range(release.schema.n_features)
    return [(column, every[features]) for column, features in release.schema.columns_with_slices]


def dates_in(schema: Schema) -> dict[str, Date]:
    """Return the columns of dates by name."""
    return {column.name: column for column in schema.columns if isinstance(column, Date)}


def unrelated(release: Release, features: Sequence[int]) -> BoolArray:
    """Return a mask of pairs of features made of different columns of the table, shape (k, k)."""
    # Levels of one column, and a power or product and its factors, are related by construction.
    sources = [
        set(column.stated.factors) if isinstance(column, DerivedColumn) else {column.name}
        for column in release.schema.columns
        for _ in column.feature_names
    ]
    chosen = [sources[feature] for feature in features]
    names = sorted(set().union(*chosen))
    made_of = np.array([[name in each for name in names] for each in chosen], dtype=float).reshape(len(chosen), -1)
    return np.asarray(made_of @ made_of.T == 0.0)


def _weighting_note(release: Moments) -> Message | None:
    return None if release.weighting is None else release.weighting.note


def cautions(release: Moments) -> tuple[Message, ...]:
    """Return all warnings about a release that an analyst must know."""
    few = few_rows_message(release.noisy_count, release.noise)
    said = (few, _weighting_note(release), dependent_rows(release), *conditions(release), *release.warnings)
    return tuple(dict.fromkeys(message for message in said if message is not None))


def cautions_in_full(release: Moments) -> str:
    """Return all warnings about a release in words, a line each; empty without any."""
    weighted = _weighting_note(release)
    return "\n".join(("" if said == weighted else "Warning: ") + said.text() for said in cautions(release))


def cautions_by_code(release: Moments) -> str:
    """Return the codes of all warnings about a release in a line; empty without any."""
    weighted = _weighting_note(release)
    warned = [message for message in cautions(release) if message != weighted]
    codes = dict.fromkeys(visible(" of ".join((each.code, *each.facts.get(PART, ())))) for each in warned)
    said = f"Warnings about this release, explained by describe: {', '.join(codes)}." if codes else ""
    return said if weighted is None else "\n".join(filter(None, (f"{weighted.text()}", said)))


def conditions(release: Moments) -> tuple[Message, ...]:
    """Return the caveats of the noise; they name columns of which a tail may be unseen."""
    names = [rule.facts["column"] for rule in release.privacy.rules if rule.code == "scale-range"]
    share: Any = release.diagnostics.get("share_unseen")
    said = caveats(release.noise)
    if (
        not names
        or not is_finite_number(share)
        or any(message.code == "rows-unseen-tail" for message in release.warnings)
    ):
        return said
    tail = Message("tail-not-excluded", share=min(max(float(share), 0.0), 1.0), names=names)
    return tuple(tail if message.code == "clipped-in-last-step" else message for message in said)


def caveats(law: NoiseLaw | None) -> tuple[Message, ...]:
    """Return what the noise distribution is conditional on."""
    return () if law is None else tuple(map(Message, law.caveats))


def rows_per_independent(release: Moments, feature: int) -> float:
    """Return the ratio of sampling variances of a feature to the ones of independent rows."""
    stated = 1.0 if release.weighting is None else float(release.weighting.stated[feature])
    return release.privacy.rows_per_unit * stated


def complete_share(release: Moments, features: Sequence[int]) -> tuple[float, bool]:
    """Return the share of rows with values of all features, and True if it is an upper bound."""
    if release.both_present is None:
        return 1.0, False
    both = release.both_present[np.ix_(features, features)]
    i, j = np.unravel_index(np.argmin(both), both.shape)
    # no upper bound if the other values are missing in no row but those of i or j
    follows = np.isclose(np.diag(both), 1.0)
    for each in (i, j):
        follows |= np.isclose(both[each], both[each, each]) & np.isclose(both[each], np.diag(both))
    return float(both[i, j]), not follows.all()


def dependent_rows(release: Release) -> Message | None:
    """Warn that several rows of one unit may be similar; None if each unit has one row."""
    unit = release.privacy.privacy_unit
    if unit is None or unit.rows_per_unit == 1:
        return None
    return Message("dependent-rows", column=unit.column, max_rows=unit.max_rows)
