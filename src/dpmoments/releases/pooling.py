"""Pooling: releases of disjoint tables become one release of all rows."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmoments.analysis.answers import in_floating_point
from dpmoments.analysis.released import Moments
from dpmoments.base import __version__
from dpmoments.base.documents import DocumentKind
from dpmoments.base.errors import InputTypeError, InputValueError, listed
from dpmoments.base.message import PART, Message
from dpmoments.base.records import read_entries
from dpmoments.base.values import FloatArray
from dpmoments.moments.models import PooledModel
from dpmoments.moments.repair import Repair, few_rows_message
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.origin import ReleaseOrigin
from dpmoments.privacy.receipt import ARITHMETICS, PooledReceipt, PrivacyStatement
from dpmoments.releases.counts_release import CountsRelease
from dpmoments.releases.disclosed import ReleaseWarning
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease

if TYPE_CHECKING:
    from dpmoments.releases.profile import RunCurve


@dataclass(frozen=True, eq=False, repr=False)
class PooledRelease(MomentRelease):
    """Release of all rows of several disjoint tables, made by :func:`dpmoments.pool`.

    It has everything that a release has, and the releases it was made of. Its file holds those, which are added up
    again when it is read.

    Attributes
    ----------
    parts : tuple of MomentRelease
    """

    parts: tuple[MomentRelease, ...] = ()

    file_kind = DocumentKind("dpmoments-pooled-release", 1, "pooled release")

    @property
    def runs(self) -> tuple[MomentRelease, ...]:
        """Releases that were pooled."""
        return self.parts

    @property
    def present(self) -> FloatArray | None:
        """Share of the rows that have a value, shape (d,); None if no value can be missing."""
        return _average(self.parts, [part.present for part in self.parts])

    @property
    def both_present(self) -> FloatArray | None:
        """Share of the rows that have two values, shape (d, d); None if no value can be missing."""
        return _average(self.parts, [part.both_present for part in self.parts])

    @property
    def drawn_parts(self) -> tuple[Moments, ...]:
        """The moments as drawn, one of each release that was pooled."""
        return tuple(drawn for part in self.parts for drawn in part.drawn_parts)

    @property
    def privacy_curve(self) -> RunCurve:
        """Largest of the parts' curves, since a row is in one of the tables."""
        from dpmoments.releases.profile import RunCurve

        return RunCurve.worst([part.privacy_curve for part in self.parts], self.privacy.budget)

    def to_dict(self) -> dict[str, Any]:
        """Return the pooled releases as plain values, without loss of precision."""
        return {"repair": str(self.repair), "releases": [part.to_dict() for part in self.parts]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> PooledRelease:
        """Pool the releases that :meth:`to_dict` wrote; raise KeyError, TypeError or ValueError."""
        given = read_entries(content, {"repair": Repair, "releases": tuple[MomentRelease, ...]})
        return _pooled(given["releases"], given["repair"])

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"({len(self.parts)} releases, ", 1)


_OF_COUNTS = "too-few-rows", "row-count-uncertain"
"""Codes of warnings of a part that a pool leaves out: its own count decides."""

_MANY_TIMES = 4.0
"""Warn of parts whose noise SD on a sum of squares is this multiple of √k times the least."""

_MAX_SHARE_OF_NOISY = 0.25
"""Warn only if the noisy parts have at most this share of the rows."""


def _average(parts: Sequence[MomentRelease], shares: Sequence[FloatArray | None]) -> FloatArray | None:
    """Return the shares of all rows; None if no value can be missing."""
    if any(share is None for share in shares):
        return None
    return np.asarray(np.average(np.array(shares), axis=0, weights=[part.n_rows for part in parts]))


def pool(releases: Iterable[MomentRelease], *, repair: Repair | str = "auto") -> PooledRelease:
    """Pool releases of disjoint tables with one schema into one release of all rows.

    Counts, sums and Gram matrices are added, and so is their noise. Post-processing: nothing is spent, and no table is
    needed.

    Parameters
    ----------
    releases : iterable of MomentRelease
        Releases of tables that share no row (hospitals, years, groups of :func:`dpmoments.release_groups`), with the
        same schema, ``mean=`` and neighbors. Mechanisms may differ, and some may be pooled already.
    repair : str
        Repair of the sums, as in :func:`dpmoments.release`.

    Returns
    -------
    PooledRelease

    Raises
    ------
    ValueError
        If a release is given twice, two are of one ``dataset``, or schemas, ``mean=``, neighbors or the units of
        privacy loss differ.
    TypeError
        If one has no second moment.

    Warns
    -----
    ReleaseWarning
        If a release names no ``dataset`` and is not a group of the same run: nothing then shows that two are not of one
        table. If the tables have too few rows, or some with few rows most of the noise. Also in ``release.warnings``.

    Notes
    -----
    **Privacy.** A row is in one table. By parallel composition its privacy loss is the loss of its table's release, and
    so the pooled release satisfies the largest of their budgets; ``release.privacy`` states this. That the tables are
    disjoint is taken on trust: no release can show it. Under ``replace_one`` neighbors differ in one row's values
    within its table, and each table's number of rows is public.

    **Noise** is added up. The default finds scales in each table: in a small one noise makes them too large, and noise on
    sums of squares grows with their square. Leave such a table out, or release it with another or by ``matrix-laplace``.
    Moments about different centers (of ``standardized``, ``coinpress``) are moved to one, the mean of the
    centers weighted by row counts: with T z = (1, x − c), Σ z zᵀ becomes T (Σ z zᵀ) Tᵀ and its noise T N Tᵀ
    (:class:`dpmoments.moments.models.PooledModel`). The noise distribution is exact for a fixed c, and to first order if
    c uses noisy row counts. It is conditional on everything that the releases' noise is conditional on. If one of them
    is biased on purpose, the noise of the pooled release is unknown.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> sites = [rng.normal(mean, 0.1, (4000, 2)) for mean in (-0.2, 0.3)]
    >>> schema = dpm.Schema.unit_ball(2)
    >>> made = [
    ...     dpm.release(site, schema, epsilon=1.0, dataset=f"site {seed}", insecure_seed=seed)
    ...     for seed, site in enumerate(sites)
    ... ]
    >>> pooled = dpm.pool(made)
    >>> pooled.mean.round(2), pooled.noise_model.name, pooled.privacy.budget
    (array([0.05, 0.05]), 'pooled', PrivacyBudget.pure(epsilon=1.0))
    """
    wanted, parts = Repair.of(repair), list[MomentRelease]()
    for release in releases:
        if isinstance(release, MeanRelease):
            raise InputTypeError(
                "a mean-only release has no second moment to add: pool releases made by dpmoments.release"
            )
        if isinstance(release, CountsRelease):
            raise InputTypeError("a release of counts has no moments to add: pool releases made by dpmoments.release")
        if not isinstance(release, MomentRelease):
            advice = "; of a GroupReleases pass groups.values()" if isinstance(release, str | int) else ""
            raise InputTypeError(f"a list of releases is pooled, got {type(release).__name__} in it{advice}")
        parts += release.parts if isinstance(release, PooledRelease) else (release,)
    pooled = _pooled(tuple(parts), wanted)
    for message in pooled.warnings:
        if PART not in message.facts:
            warnings.warn(ReleaseWarning(message, pooled), stacklevel=2)
    return pooled


@in_floating_point
def _pooled(parts: tuple[MomentRelease, ...], repair: Repair) -> PooledRelease:
    """Add up the releases; warnings are stored, not shown."""
    _check(parts)
    if weighted := [part.id for part in parts if part.schema.sampling_weight is not None]:
        raise InputValueError(
            f"release {weighted[0]} has sampling weights, and weighted releases cannot be pooled: make one release of all tables"
        )
    first = parts[0]

    # The mean of the centers, weighted by row counts; None if no release has one.
    centered = [part for part in parts if part.center is not None]
    center = None
    if centered:
        rows = [float(part.n_rows) for part in centered]
        center = np.asarray(np.average(np.array([part.center for part in centered]), axis=0, weights=rows))

    totals, grams, shifts = zip(*(_carried(part, center) for part in parts), strict=True)
    noise = [
        (part.noise_model, part.noise, shift)
        for part, shift in zip(parts, shifts, strict=True)
        if part.noise is not None
    ]
    model = PooledModel(n_features=first.schema.n_features, parts=tuple(noise)) if len(noise) == len(parts) else None
    names = {part.id: f"{index}:{part.origin.label}" for index, part in enumerate(parts, start=1)}
    privacy = _statement(parts, names)
    counts = [part.noisy_count for part in parts]
    sums = [total for total in totals if total is not None]
    count = None if None in counts else float(sum(filter(None, counts)))
    few = few_rows_message(count, None if model is None else model.law())
    noisy = None if model is None or count is None else _noisy(parts, model)
    cautions = [message for message in (_unchecked(parts), few, noisy) if message is not None]
    cautions += [said.within(names[part.id]) for part in parts for said in part.warnings if said.code not in _OF_COUNTS]
    return PooledRelease(
        schema=first.schema,
        privacy=privacy,
        receipt=PooledReceipt.of({names[part.id]: part.receipt for part in parts}, privacy.budget),
        noise_model=model,
        mechanism="pooled",
        mechanism_options={},
        details={"mechanisms": [part.mechanism for part in parts]},
        repair=repair,
        noisy_count=count,
        noisy_sum=np.sum(sums, axis=0) if sums else None,
        noisy_gram=np.sum(grams, axis=0),
        center=center,
        diagnostics={"warnings": tuple(cautions)} if cautions else {},
        origin=ReleaseOrigin.of_parts(tuple(part.origin for part in parts)),
        parts=parts,
    )


def _carried(part: MomentRelease, center: FloatArray | None) -> tuple[FloatArray | None, FloatArray, FloatArray]:
    """Return sum and Gram matrix of one table about the common center, and the shift."""
    own = np.zeros(len(part.noisy_gram)) if part.center is None else part.center
    shift = np.zeros_like(own) if center is None else own - center
    if part.noisy_sum is None or part.noisy_count is None or not shift.any():
        return part.noisy_sum, part.noisy_gram, shift
    cross = np.outer(part.noisy_sum, shift)
    gram = part.noisy_gram + cross + cross.T + part.noisy_count * np.outer(shift, shift)
    return part.noisy_sum + part.noisy_count * shift, gram, shift


def _check(parts: tuple[MomentRelease, ...]) -> None:
    """Raise for releases that cannot be added up."""
    if not parts:
        raise InputValueError("no releases to pool: pass a list, [release_a, release_b]")
    first = parts[0]
    for part in parts:
        if part.receipt.before is not None:
            raise InputValueError(
                f"{part.origin.label} found the levels of {listed(part.receipt.found)} in its own table: release all tables "
                "with one schema that lists the levels"
            )
    for one, other in itertools.combinations(parts, 2):
        words = f"{one.origin.label} and {other.origin.label}"
        if one.id == other.id:
            raise InputValueError(
                f"the release {one.id} is given twice, perhaps inside one that was pooled before: its rows would "
                "count twice. Pass it once (releases with one insecure seed have one id, since they share their "
                "noise)"
            )
        if one.dataset is not None and one.dataset == other.dataset and not _of_one_run(one, other):
            raise InputValueError(
                f"two releases are of the dataset '{one.dataset}' ({words}): their rows would count twice, and both "
                "budgets add up. Pass one of them"
            )
    for part in parts[1:]:
        words = f"{first.origin.label} and {part.origin.label}"
        one_schema, other_schema = first.schema.without_cleaning, part.schema.without_cleaning
        if one_schema != other_schema:
            columns = zip(one_schema.columns, other_schema.columns, strict=False)
            difference = next((f"column {one.name!r}" for one, other in columns if one != other), "row_norm")
            if one_schema.names != other_schema.names:
                difference = "other columns, or in another order"
            raise InputValueError(
                f"{words} have different schemas ({difference}), so that their numbers are in different units: release all "
                "tables with one schema file"
            )
        if (part.noisy_sum is None) != (first.noisy_sum is None):
            raise InputValueError(
                f"one of {words} was released with the mean and the other without, which encode rows differently: release all "
                "tables alike"
            )
        if part.privacy.neighbors is not first.privacy.neighbors:
            raise InputValueError(
                f"{words} hide different things ({first.privacy.neighbors} and {part.privacy.neighbors}): release "
                "all tables for the same neighbors"
            )
        if part.privacy.privacy_unit != first.privacy.privacy_unit:
            raise InputValueError(
                f"{words} protect different units ({_describe_unit(first)}; {_describe_unit(part)}), so that no one "
                "guarantee covers both: release all tables with the same unit"
            )
        kinds = [(str(one.privacy.budget.kind), str(one.receipt.unit)) for one in (first, part)]
        if kinds[0] != kinds[1]:
            raise InputValueError(
                f"the losses of {words} are counted in different ways ({kinds[0][0]} in {kinds[0][1]}, {kinds[1][0]}"
                f" in {kinds[1][1]}), so that no one budget covers both: release all tables by one mechanism under "
                "one kind of budget"
            )


def _unchecked(parts: tuple[MomentRelease, ...]) -> Message | None:
    """Return a warning if nothing shows that the tables are disjoint, else None."""
    doubtful = {
        part.id
        for one, other in itertools.combinations(parts, 2)
        if not _of_one_run(one, other)
        for part in (one, other)
        if part.dataset is None
    }
    if not doubtful:
        return None
    return Message("tables-not-checked", names=[part.origin.label for part in parts if part.id in doubtful])


def _noisy(parts: Sequence[MomentRelease], model: PooledModel) -> Message | None:
    """Warn of parts of few rows with most of the noise on sums of squares; None without any."""
    squares = np.array([law.about(shift).cell_variances().diagonal()[1:] for _, law, shift in model.parts])
    squares = squares[:, squares.min(axis=0) > 0.0]
    noisy = (squares > _MANY_TIMES**2 * len(parts) * squares.min(axis=0, initial=math.inf)).any(axis=1)
    rows = np.array([float(part.n_rows) for part in parts])
    if not noisy.any() or rows[noisy].sum() > _MAX_SHARE_OF_NOISY * rows.sum():
        return None
    times = math.sqrt(float((squares.sum(axis=0) / squares[~noisy].sum(axis=0)).max()))
    names = [part.origin.label for part, is_noisy in zip(parts, noisy, strict=True) if is_noisy]
    return Message("tables-noisy", names=names, times=times)


def _describe_unit(part: MomentRelease) -> str:
    unit = part.privacy.privacy_unit
    return "one row" if unit is None else unit.description


def _of_one_run(one: MomentRelease, other: MomentRelease) -> bool:
    """Return True if they are two groups of one run, which share no row."""
    groups = one.origin.group, other.origin.group
    return groups[0] is not None and groups[1] is not None and groups[0].run == groups[1].run


def _statement(parts: tuple[MomentRelease, ...], names: Mapping[str, str]) -> PrivacyStatement:
    """Return the largest budget as a statement, and why it covers all tables together."""
    of_all = parts[0].schema.rules
    neighbors = parts[0].privacy.neighbors
    unit = parts[0].privacy.privacy_unit
    of_unit = {} if unit is None else {"unit": unit.column}
    rule = Message("pooled-tables", tables=len(parts), neighbors=str(neighbors), **of_unit)
    spent = [
        Message("pooled-part", mechanism=part.mechanism, **part.privacy.budget.facts).within(names[part.id])
        for part in parts
    ]
    of_runs = [said.within(names[part.id]) for part in parts for said in part.privacy.rules if said not in of_all]

    # The smallest budget of their kind that covers all of them.
    budgets = [part.privacy.budget for part in parts]
    sizes = {name: max(getattr(budget, name) for budget in budgets) for name in ("epsilon", "delta", "rho")}
    return PrivacyStatement(
        budget=PrivacyBudget(budgets[0].kind, **sizes),
        neighbors=neighbors,
        arithmetic=max((part.privacy.arithmetic for part in parts), key=ARITHMETICS.index),
        private=all(part.privacy.private for part in parts),
        rules=(*of_all, rule, *spent, *of_runs),
        version=__version__,
        privacy_unit=unit,
    )
