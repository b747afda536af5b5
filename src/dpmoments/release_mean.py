"""Means alone: from a private table to a noisy mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dpmoments.array_types import FloatArray
from dpmoments.mechanisms.base import MomentShape, noise_generator
from dpmoments.mechanisms.means.base import MeanMechanism
from dpmoments.mechanisms.registry import make_mean_mechanism
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.statement import PrivacyStatement
from dpmoments.progress import watched
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema
from dpmoments.version import __version__

__all__ = ["MeanRelease", "release_mean"]


@dataclass(frozen=True, eq=False)
class MeanRelease:
    """A mean released under differential privacy.

    Attributes
    ----------
    mean : ndarray of shape (d,)
        In the table's units.
    n_rows : int
        Exact where it is public, else noisy, rounded, at least 1.
    feature_names : tuple of str
        The names of the entries of ``mean``.
    privacy : PrivacyStatement
        What was spent.
    mechanism : str
    mechanism_options : mapping
    diagnostics : mapping
        What else was learned privately: every step's ball, warnings. In the units in which rows are encoded.
    """

    mean: FloatArray
    n_rows: int
    feature_names: tuple[str, ...]
    privacy: PrivacyStatement
    mechanism: str
    mechanism_options: Mapping[str, Any]
    diagnostics: Mapping[str, Any]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the diagnostics warn of."""
        return tuple(self.diagnostics.get("warnings", ()))

    def __repr__(self) -> str:
        flag = "" if self.privacy.private else ", NOT PRIVATE"
        return (
            f"MeanRelease({len(self.mean)} features, n_rows={self.n_rows}, mechanism={self.mechanism!r}, "
            f"{self.privacy.budget}, neighbors={str(self.privacy.neighbors)!r}{flag})"
        )


def release_mean(
    data: Any,
    schema: Schema,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors | str = "add_remove",
    mechanism: MeanMechanism | str = "variance-aware",
    threads: int | None = None,
    progress: bool | Callable[[float | None], None] = False,
    insecure_seed: int | None = None,
    **options: Any,
) -> MeanRelease:
    """Release the mean of a table, with or without bounds on its rows.

    Parameters
    ----------
    data, schema
        As for :func:`dpmoments.release`; ``Schema.unbounded(d)`` for rows without bounds.
    epsilon, delta, rho : float
        Budget, as for :func:`dpmoments.release`.
    neighbors : {"add_remove", "replace_one"}
        As for :func:`dpmoments.release`. ``naive``, ``karwa-vadhan`` and ``symq`` divide by a public number of rows and are
        defined for ``"replace_one"`` alone.
    mechanism : str or MeanMechanism
        ``"variance-aware"`` (no radius, no scale), ``"coinpress"``, ``"naive"``, ``"karwa-vadhan"``, ``"symq"``.
    threads, progress, insecure_seed
        As for :func:`dpmoments.release`.
    **options
        Of the mechanism named: ``radius``, ``scale``, ….

    Returns
    -------
    MeanRelease

    Raises
    ------
    ValueError, TypeError
        Before any row is read, for a budget, schema or options that cannot work.

    Notes
    -----
    **Privacy.** The release satisfies the stated budget for the stated neighbours, one row being the protected unit.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.random.default_rng(0).normal([1e5, -3.0], [100.0, 0.1], (5000, 2))
    >>> released = release_mean(table, Schema.unbounded(2), rho=0.5, insecure_seed=0)
    >>> bool(abs(released.mean[0] - 1e5) < 10), bool(abs(released.mean[1] + 3.0) < 0.01)
    (True, True)
    """
    if not isinstance(schema, Schema):
        raise TypeError(f"schema must be a dpmoments.Schema, got {type(schema).__name__}")
    budget = PrivacyBudget.of(epsilon=epsilon, delta=delta, rho=rho)
    neighbors = Neighbors.of(neighbors)
    chosen = make_mean_mechanism(mechanism, **options)
    with watched(progress) as on_block:
        rows = Rows.of(data, schema, neighbors=neighbors, threads=threads, on_block=on_block)
        n_rows = rows.count() if neighbors.count_is_public else None
        if n_rows == 0:
            raise ValueError(
                "the table has no rows: under replace_one its number of rows is public, and it has no mean"
            )
        row_norm = None if schema.row_norm is None else 1.0
        plan = chosen.plan(MomentShape(schema.n_features, n_rows=n_rows, row_norm=row_norm), budget, neighbors)
        on_block.expect(rows.source.n_rows)
        noisy = plan.run(rows, noise_generator(insecure_seed))
    return MeanRelease(
        mean=schema.encoding(mean=True).decode_mean(noisy.mean),
        n_rows=max(1, round(noisy.count)),
        feature_names=schema.feature_names,
        privacy=PrivacyStatement(
            budget=plan.cost,
            neighbors=neighbors,
            arithmetic=str(plan.arithmetic),
            private=insecure_seed is None,
            rules=schema.rules_in_words(),
            version=__version__,
        ),
        mechanism=chosen.name,
        mechanism_options=chosen.options,
        diagnostics=noisy.diagnostics,
    )
