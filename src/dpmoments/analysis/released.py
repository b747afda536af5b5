"""What an analysis may ask of a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.law import MomentPivot
from dpmoments.noise.law import NoiseLaw as AdditiveLaw
from dpmoments.noise.terms import NoiseLaw
from dpmoments.privacy.statement import PrivacyStatement
from dpmoments.repair.repair import Repair, few_rows_message
from dpmoments.schema.derived import SchemaColumn, feature_slices
from dpmoments.schema.encoding import Encoding
from dpmoments.schema.schema import Schema


class Stated(Protocol):
    """What every release says of itself, of moments or of a mean alone."""

    @property
    def schema(self) -> Schema:
        """The public description of the table."""

    @property
    def mechanism(self) -> str:
        """Name of the mechanism that ran."""

    @property
    def diagnostics(self) -> Mapping[str, Any]:
        """What else the mechanism learned privately."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of every array."""


class Released(Stated, Protocol):
    """Released moments as analyses see them; :class:`dpmoments.MomentRelease` describes each member.

    Every analysis takes one of these as its first argument, which makes it a method of ``MomentRelease`` as it stands.
    """

    @property
    def privacy(self) -> PrivacyStatement:
        """What was spent."""

    @property
    def repair(self) -> Repair:
        """How the moments are made those of a possible table."""

    @property
    def noise(self) -> AdditiveLaw | None:
        """The law of the noise that repairs go by, if it was added cell by cell."""

    @property
    def noise_law(self) -> NoiseLaw | None:
        """The law of the noise, which gives variances of functionals; None if the moments are biased on purpose."""

    @property
    def pivot(self) -> MomentPivot | None:
        """The law of the run, where the noise is not added cell by cell."""

    @property
    def mechanism_options(self) -> Mapping[str, Any]:
        """Its options."""

    @property
    def details(self) -> Mapping[str, Any]:
        """The numbers that its plan settled on."""

    @property
    def encoding(self) -> Encoding:
        """The affine map between the table's units and the unit ball."""

    @property
    def noisy_count(self) -> float | None:
        """The number of rows as released; None where it was not."""

    @property
    def noisy_sum(self) -> FloatArray | None:
        """The sum of encoded rows before repair; None where no mean was released."""

    @property
    def noisy_gram(self) -> FloatArray:
        """The Gram matrix of encoded rows before repair, about the release's centre."""

    @property
    def zero_of_units(self) -> FloatArray:
        """What is added to x about the release's centre to give value/scale, shape (d,)."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the mechanism found, privately, that speaks against trusting the release."""

    @property
    def center(self) -> FloatArray | None:
        """What sum and Gram matrix are about; None for 0."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""

    @property
    def count_is_public(self) -> bool:
        """Whether the number of rows is here and carries no noise."""

    @property
    def unit_ball_mean(self) -> FloatArray:
        """E[x] of the encoded rows, shape (d,)."""

    @property
    def unit_ball_gram(self) -> FloatArray:
        """Σ x xᵀ of the encoded rows, shape (d, d)."""

    @property
    def unit_ball_covariance(self) -> FloatArray:
        """Cov(x) of the encoded rows, shape (d, d)."""

    @property
    def mean(self) -> FloatArray:
        """E[value], shape (d,)."""

    @property
    def second_moment(self) -> FloatArray:
        """E[value valueᵀ], shape (d, d)."""

    @property
    def covariance(self) -> FloatArray:
        """Cov(value), shape (d, d)."""

    @property
    def correlation(self) -> FloatArray:
        """Corr(value), shape (d, d)."""

    def with_repair(self, repair: str) -> Released:
        """The same release read with another repair."""


# Features by name, as analyses are asked for them.

_SHOWN_NAMES = 8
"""Messages name so many at most."""
_SHOWN_FEATURES = 4
"""Of a categorical column they name so many features."""


def feature_place(release: Stated, name: str) -> int:
    """The place of a feature; a column of one feature has its name.

    Raises
    ------
    ValueError
        If there is no such feature.
    """
    names = release.feature_names
    if name in names:
        return names.index(name)
    for column in release.schema.columns:
        if column.name == name:
            such_as = "such as " if len(column.feature_names) > _SHOWN_FEATURES else ""
            listed = ", ".join(map(repr, column.feature_names[:_SHOWN_FEATURES]))
            raise ValueError(
                f"{name!r} is categorical, and one feature is wanted: name one of its features, {such_as}{listed}"
            )
    raise ValueError(f"the release has no feature {name!r}; its features are {shown_names(names)}")


def chosen_features(release: Released, columns: Sequence[str] | None) -> list[int]:
    """Places of features named by feature or by column, in the release's order; all where none are named.

    Raises
    ------
    TypeError
        If it is one string.
    ValueError
        If a name is neither, or there is none, or a feature is named twice.
    """
    if columns is None:
        return list(range(len(release.feature_names)))
    return sorted(named_features(release, columns, word="columns"))


def named_features(release: Stated, names: Sequence[str], *, word: str) -> list[int]:
    """Places of features named by feature or by column, in the order in which they are named.

    Parameters
    ----------
    release : Released
    names : sequence of str
    word : str
        What they are called where they are asked for, for the messages.

    Raises
    ------
    TypeError
        If it is one string.
    ValueError
        If a name is neither, or there is none, or a feature is named twice.
    """
    if isinstance(names, str):
        raise TypeError(f"{word} are a list of names, not one string")
    of_columns = {column.name: indices for column, indices in columns_with_places(release)}
    result: list[int] = []
    for name in names:
        result += of_columns[name] if name in of_columns else [feature_place(release, name)]
    if not result:
        raise ValueError(f"no {word}: name at least one")
    if len(set(result)) < len(result):
        raise ValueError("a feature is named twice")
    return result


def columns_with_places(release: Stated) -> list[tuple[SchemaColumn, range]]:
    """The columns of the schema, each with the places of its features."""
    columns = release.schema.columns
    every = range(release.schema.n_features)
    return [(column, every[index]) for column, index in zip(columns, feature_slices(columns), strict=True)]


def columns_of(release: Stated, features: Sequence[int]) -> tuple[str, ...]:
    """The name of the column that each feature belongs to."""
    every = [column.name for column in release.schema.columns for _ in column.feature_names]
    return tuple(every[feature] for feature in features)


def shown_names(names: Sequence[str]) -> str:
    """Names as a message lists them.

    Examples
    --------
    >>> shown_names(["a", "b"])
    "'a', 'b'"
    """
    more = f", … ({len(names)} in all)" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(map(repr, names[:_SHOWN_NAMES])) + more


# What speaks against reading an answer as that of the table, said below every answer.


def cautions(release: Released) -> str:
    """Too few rows for the budget, and what the mechanism learned that speaks against its answer; mostly empty.

    Intervals hold noise and sampling. What moving rows into a ball did to the moments is in none of them: the mechanism's own
    warning stands here.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> table = np.zeros((20, 2))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=0.1, insecure_seed=0)
    >>> cautions(released)[:32]
    'too few rows for this budget: th'
    """
    few = few_rows_message(release.noisy_count, release.noise)
    said = (few, describe_contribution(release), describe_caveats(release.noise_law), *release.warnings)
    return ". ".join(dict.fromkeys(words.rstrip(".") for words in said if words))


def additive_cell_variance(release: Released) -> float | None:
    """Of a cell off the diagonal, if noise was added cell by cell; else None."""
    return None if release.noise is None else release.noise.off_diagonal_variance


_CAVEATS = MappingProxyType(
    {
        "linearized": "The law of the noise is linearized about the release: it holds where noise is small beside the moments",
        "clipped-in-last-step": (
            "The noise is known about the rows as the last step clipped them: what clipping took away comes on top"
        ),
        "asserted-smallest-eigenvalue": (
            "The law of the noise holds where no eigenvalue is below the stated smallest_eigenvalue"
        ),
    }
)


def describe_caveats(law: NoiseLaw | None) -> str:
    """What the law of the noise is conditional on, in sentences; empty if it holds as it is."""
    return ". ".join(_CAVEATS[code] for code in law.caveats) if law is not None else ""


def describe_contribution(release: Released) -> str:
    """That rows of one unit may be alike, where several of them count and intervals take rows as independent; else empty."""
    unit = release.privacy.privacy_unit
    if unit is None or unit.max_rows == 1:
        return ""
    return (
        f"Up to {unit.max_rows:,} rows of one {unit.column} count, and what is said of sampling takes rows as independent: where "
        "rows of one are alike, intervals are too short and tests reject too often"
    )
