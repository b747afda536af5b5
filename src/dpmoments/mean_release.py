"""MeanRelease: a mean alone, as it leaves the curator's hands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dpmoments.analysis.answers import in_floating_point
from dpmoments.array_types import FloatArray
from dpmoments.documents import DocumentKind
from dpmoments.plain_values import (
    finite_numbers,
    is_finite_number,
    plain_mapping,
    require_kinds,
    require_known,
    to_plain,
)
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.statement import PrivacyStatement
from dpmoments.schema.schema import Schema

__all__ = ["MEAN_RELEASE_FILE", "MeanRelease"]

MEAN_RELEASE_FILE = DocumentKind("dpmoments-mean-release", 1, "mean release")


@dataclass(frozen=True, eq=False)
class MeanRelease:
    """A mean released under differential privacy.

    Made by :func:`dpmoments.release_mean` or :func:`dpmoments.load`.

    Attributes
    ----------
    schema : Schema
    privacy : PrivacyStatement
        What was spent; ``print(release.privacy.in_words())``.
    receipt : Receipt
        Every draw of noise, and what it cost.
    mechanism : str
    mechanism_options : mapping
    noisy_mean : ndarray of shape (d,)
        In the units in which rows are encoded.
    noisy_count : float
        Exact where the number of rows is public.
    diagnostics : mapping
        What else was learned privately: every step's ball, warnings. In the units in which rows are encoded.
    """

    schema: Schema
    privacy: PrivacyStatement
    receipt: Receipt
    mechanism: str
    mechanism_options: Mapping[str, Any]
    noisy_mean: FloatArray
    noisy_count: float
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.receipt.require_for(self.privacy)
        self.noisy_mean.setflags(write=False)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the entries of ``mean``."""
        return self.schema.feature_names

    @property
    @in_floating_point
    def mean(self) -> FloatArray:
        """E[value], shape (d,), in the table's units."""
        return self.schema.encoding(mean=True).decode_mean(self.noisy_mean)

    @property
    def n_rows(self) -> int:
        """The number of rows that count (dropped ones do not): exact where it is public, else noisy, rounded, at least 1."""
        return max(1, round(self.noisy_count))

    @property
    def count_is_public(self) -> bool:
        """Whether the number of rows carries no noise."""
        return self.privacy.neighbors.count_is_public(self.schema.drops_rows)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the mechanism found, privately, that speaks against trusting the release; mostly nothing."""
        found = self.diagnostics.get("warnings", ())
        return tuple(map(str, found)) if isinstance(found, list | tuple) else ()

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release as JSON, all of it or nothing; :func:`dpmoments.load` reads it.

        Raises
        ------
        FileExistsError
            If there is a file already and ``overwrite`` is False.
        OSError
            If the file cannot be written.
        """
        MEAN_RELEASE_FILE.write(self.to_dict(), path, overwrite=overwrite)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file; no bit is lost."""
        return {
            "schema": self.schema.to_dict(),
            "privacy": self.privacy.to_dict(),
            "receipt": self.receipt.to_dict(),
            "mechanism": self.mechanism,
            "mechanism_options": to_plain(self.mechanism_options),
            "noisy_mean": self.noisy_mean.tolist(),
            "noisy_count": self.noisy_count,
            "diagnostics": to_plain(self.diagnostics),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> MeanRelease:
        """The inverse of :meth:`to_dict`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If an entry is absent, unknown, or not what it must be.
        """
        require_known(content, (entry.name for entry in fields(cls)), "it")
        require_kinds(content, mechanism=str, mechanism_options=dict, diagnostics=dict, privacy=dict, receipt=dict)
        schema = Schema.from_dict(content["schema"])
        if not is_finite_number(content["noisy_count"]):
            raise ValueError("noisy_count is not a finite number")
        return cls(
            schema=schema,
            privacy=PrivacyStatement.from_dict(content["privacy"]),
            receipt=Receipt.from_dict(content["receipt"]),
            mechanism=content["mechanism"],
            mechanism_options=plain_mapping(content, "mechanism_options"),
            noisy_mean=finite_numbers(content["noisy_mean"], schema.n_features, "noisy_mean"),
            noisy_count=float(content["noisy_count"]),
            diagnostics=plain_mapping(content, "diagnostics"),
        )

    def __repr__(self) -> str:
        flag = "" if self.privacy.private else ", NOT PRIVATE"
        return (
            f"MeanRelease({len(self.feature_names)} features, n_rows={self.n_rows}, mechanism={self.mechanism!r}, "
            f"{self.privacy.budget}, neighbors={str(self.privacy.neighbors)!r}{flag})"
        )
