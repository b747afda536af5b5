"""Checks of a release file that need no table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from dpmoments.analysis.answers import in_floating_point
from dpmoments.audit.replay import run_on_no_rows
from dpmoments.base import __version__
from dpmoments.base.values import is_finite_number
from dpmoments.mechanisms.base import CalibratedPlan, ConfiguredMechanism, Plan
from dpmoments.mechanisms.counts import Counts, CountsPlan
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS, make_mean_mechanism, make_mechanism
from dpmoments.mechanisms.shape import LevelCoordinates, MomentShape, RowCoordinates
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.repair import Repair, exact_law
from dpmoments.privacy.accounting import budget_for_rows
from dpmoments.privacy.filter import PrivacyFilterError
from dpmoments.privacy.ledger import Check as Check
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.sensitivity import short_rows_frobenius, short_rows_nuclear
from dpmoments.releases.counts_release import CountsRelease, rules_of_counts
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.loading import AnyRelease
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.releases.pooling import PooledRelease, pool
from dpmoments.schema.columns import OTHER, Categorical
from dpmoments.schema.constraints import every_row_has_levels

_FALSE_ALARM = 1e-9
"""Maximum probability that a sound release fails a check because of its noise."""
_COUNT_SHARE = 0.5
"""Share of ``_FALSE_ALARM`` for bounds on the count's noise.

The rest is for the Gram matrix. The check of the count uses only its share, since lattice noise follows the quantiles
only approximately.
"""
_ROUNDING = 1e-9
"""Relative differences attributed to rounding."""

OneRelease = TypeVar("OneRelease", MomentRelease, MeanRelease, CountsRelease)


def checks(release: AnyRelease) -> tuple[Check, ...]:
    """Check everything that a release states about itself; reads nothing else.

    Parameters
    ----------
    release : MomentRelease, MeanRelease, CountsRelease or GroupReleases

    Returns
    -------
    tuple of Check
        For groups: those of each, after its name.
    """
    if isinstance(release, PooledRelease):
        parts = [(f"{index}. {part.origin.label}", part) for index, part in enumerate(release.parts, start=1)]
        of_moments = (_finite, _symmetric, _no_negative_eigenvalue, _count, _as_pooled_anew)
        return (*_checks_of_each(parts), *(_made(check, release) for check in of_moments))
    if isinstance(release, GroupReleases):
        groups = [(f"{release.by.name} = {level}", group) for level, group in release.items()]
        *_, (_, _, allowed, spent) = release.receipt.lines()
        parallel = Check(
            "receipts of all groups add up to the stated budget",
            release.receipt.total.within(release.receipt.allowance),
            f"{spent} {allowed} for the group that spent most: a row is in one of the {len(release)} groups at most",
        )
        return (*_checks_of_each(groups), parallel)
    if isinstance(release, MeanRelease):
        of_mean = (_finite_mean, _count_of_mean, _rules, _receipt, _estimator)
        return tuple(_made(check, release) for check in of_mean)
    if isinstance(release, CountsRelease):
        of_counts = (_possible_counts, _public_total, _rules, _receipt, _counted_as_planned)
        return tuple(_made(check, release) for check in of_counts)
    of_values = (_finite, _symmetric, _no_negative_eigenvalue)
    of_drawn = (_count, _within_reach, _receipt, _noise_as_calibrated)
    drawn = release.as_filed
    return (*(_made(check, release) for check in of_values), *(_made(check, drawn) for check in of_drawn))


def _checks_of_each(parts: Iterable[tuple[str, AnyRelease]]) -> list[Check]:
    return [replace(check, what=f"{name}: {check.what}") for name, part in parts for check in checks(part)]


def _as_pooled_anew(pooled: MomentRelease) -> Check:
    assert isinstance(pooled, PooledRelease)
    what, again = "sum of its releases", pool(pooled.parts, repair=pooled.repair)
    passed = again.to_dict() == pooled.to_dict() and MomentRelease.to_dict(again) == MomentRelease.to_dict(pooled)
    return Check(what, passed, f"{len(pooled.parts)} releases of disjoint tables, pooled again")


def _made(check: Callable[[OneRelease], Check], release: OneRelease) -> Check:
    """Run one check; it fails if it cannot be run."""
    try:
        return in_floating_point(check)(release)
    except ValueError as refusal:
        return Check(check.__name__.strip("_").replace("_", " "), False, str(refusal))


def _receipt(release: MomentRelease | MeanRelease | CountsRelease) -> Check:
    """Recompute every loss from the distribution and sensitivity on record, and add them up."""
    what = "receipt adds up to the stated budget"
    try:
        anew = Receipt.from_dict(release.receipt.to_dict())
        anew.require_for(release.privacy)
    except (ArithmeticError, KeyError, TypeError, ValueError) as refusal:
        return Check(what, False, str(refusal))
    if not anew.draws:
        return Check(what, False, "it has no noise draws, but the release is noisy")
    if wrong := _foreign_draw(anew, release):
        return Check(what, False, wrong)
    *_, (_, _, allowed, spent) = anew.lines()
    on_a_unit = "" if anew.on_a_unit_text is None else f" on one row; {anew.on_a_unit_text}"
    draws = "1 draw" if len(anew.draws) == 1 else f"{len(anew.draws)} draws"
    if anew.before is not None:
        draws = f"levels found at {anew.before.cost}; then {draws}"
    return Check(
        what,
        True,
        f"{draws}, {spent} {allowed}{on_a_unit}, recomputed from this file only. This shows that the file is "
        "consistent; it does not show that the draws took place",
    )


def _foreign_draw(receipt: Receipt, release: MomentRelease | MeanRelease | CountsRelease) -> str | None:
    """Return the fault of a draw that relies on something that this release does not have."""
    d, bound = len(release.feature_names), release.diagnostics.get("eigenvalue_bound", 0.0)
    bound = bound if is_finite_number(bound) else -math.inf
    levels = LevelCoordinates.of(release.schema)
    model = getattr(release, "noise_model", None)
    if model is None or not model.about_levels:
        levels = None  # rows about 0 may have norm 1
    # how long rows in coordinates are follows from the draws: `_run_again`
    of_coordinates = model is not None and model.in_coordinates
    for name, draw in receipt.found.items():
        most = draw.what.facts["max_levels"]
        column = next((column for column in release.schema.table_columns if column.name == name), None)
        if column is not None and not (
            isinstance(column, Categorical)
            and column.other == OTHER
            and isinstance(most, int)
            and len(column.levels) - 1 <= most
        ):
            return f"{draw.what} did not find the levels of the schema"
    for draw in receipt.draws:
        if of_coordinates and draw.what.code == "count-sum-gram":
            coordinates = RowCoordinates.of(release.schema) or RowCoordinates.of_numbers(d)
            if dict(draw.sensitivity.arguments).get("n_features") != coordinates.n_coordinates:
                return f"{draw.what} has the sensitivity of other coordinates than the schema's"
            continue
        features = dict(draw.sensitivity.arguments).get("n_features", d)
        # a mean of one coordinate, and sums beside a count, of a sensitivity that no number of features makes smaller
        if features != d and draw.sensitivity.name not in ("row_sum_l1", "sums_in_body"):
            return f"{draw.what} has the sensitivity of {features} features, and the rows have {d}"
        row_square = 1.0 if levels is None or draw.what.code != "count-sum-gram" else levels.row_square
        shorter = dict(draw.sensitivity.arguments).get("row_square", 1.0)
        if not isinstance(shorter, float | int) or shorter < row_square:
            return f"{draw.what} has the sensitivity of rows that are shorter than the schema's"
        if draw.law.eigenvalue_floor > max(bound - draw.sensitivity.value, 0.0):
            return f"{draw.what} relies on a smallest eigenvalue above the bound that was drawn"
    return None


def _finite_mean(release: MeanRelease) -> Check:
    arrays = (release.noisy_mean, release.mean, np.array(release.noisy_count))
    passed = all(np.isfinite(array).all() for array in arrays)
    return Check("finite", passed, f"the mean of {len(release.feature_names)} features and the number of rows")


def _count_of_mean(release: MeanRelease) -> Check:
    """Check the count (a noisy one is raised to 1 before a division)."""
    what, count = "number of rows", release.noisy_count
    if release.count_is_public:
        return _public_count(what, count)
    return Check(what, count >= 1, f"{count:,.1f}, noisy: 1 or more is expected")


def _public_count(what: str, count: float) -> Check:
    return Check(
        what, count >= 1 and count == round(count), f"{count:,.10g}, public: a whole number above 0 is expected"
    )


def _rules(release: MeanRelease | CountsRelease) -> Check:
    of_table = rules_of_counts(release.schema) if isinstance(release, CountsRelease) else release.schema.rules
    rules = (*of_table, *release.origin.rules)
    passed = release.privacy.rules == rules
    detail = "those of the schema" if passed else "not those of the schema"
    return Check("rules of the statement", passed, detail)


def _possible_counts(release: CountsRelease) -> Check:
    """Check that counts lie on the lattice of their noise."""
    steps = [table.noisy_counts / table.noise.step for table in release.tables]
    on_lattice = all(np.array_equal(np.rint(counts), counts) for counts in steps)
    cells = sum(table.counts.size for table in release.tables)
    return Check("counts", on_lattice, f"{cells:,} cells, whole numbers of the noise's steps")


def _public_total(release: CountsRelease) -> Check:
    what, rows = "number of rows", release.public_rows
    if rows is None:
        return Check(what, True, "private: each table has its noisy number of rows")
    may_be_public = release.privacy.neighbors.table_size_is_public and every_row_has_levels(release.schema)
    return Check(what, may_be_public and rows >= 1, f"{rows:,}, public")


def _counted_as_planned(release: CountsRelease) -> Check:
    """Check that the recorded noise is what the budget and its split call for."""

    def agrees(plan: CountsPlan, counted: CountsRelease) -> bool:
        pairs = zip(plan.noise, counted.tables, strict=True)
        same_noise = all(
            noise.law == table.noise.law and math.isclose(noise.scale, table.noise.scale, rel_tol=_ROUNDING)
            for noise, table in pairs
        )
        return same_noise and plan.mechanism.by == counted.by and _spends_alike(plan, counted)

    shapes = [MomentShape.of(release.schema, mean=True)]
    what = "noise as the stated budget calls for"
    return _calibrated(
        release, what, {Counts.registry_name(): Counts}, lambda _, **options: Counts(**options), shapes, agrees
    )


def _finite(release: MomentRelease) -> Check:
    arrays = [release.noisy_gram, release.unit_ball_gram]
    if release.noisy_sum is not None:
        arrays += [release.unit_ball_mean, release.mean, release.covariance]
    passed = all(np.isfinite(array).all() for array in arrays)  # a noise model refuses other numbers when it is made
    return Check("finite", passed, "every released number and every number of the noise model")


def _symmetric(release: MomentRelease) -> Check:
    d = len(release.feature_names)
    gram = release.unit_ball_gram
    asymmetry = float(np.abs(gram - gram.T).max())
    passed = gram.shape == (d, d) and asymmetry <= _ROUNDING * max(1.0, float(np.abs(gram).max()))
    return Check("symmetric", passed, f"the second moment of {d} features, after repair")


def _no_negative_eigenvalue(release: MomentRelease) -> Check:
    what = "no negative eigenvalue"
    matrix = release.unit_ball_covariance if release.noisy_sum is not None else release.unit_ball_gram
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if release.repair is Repair.NONE:
        return Check(what, None, f"the release is not repaired; the smallest is {smallest:.3g} in encoded units")
    # The square of a mean far from the center is taken off the second moment, which leaves rounding errors of its size.
    offset = 0.0
    if release.noisy_sum is not None:
        from_center = release.unit_ball_mean - (0.0 if release.center is None else release.center)
        offset = float(np.trace(matrix)) + float(from_center @ from_center)
    passed = smallest >= -_ROUNDING * max(1.0, float(np.trace(matrix))) - 2.0**-46 * offset
    return Check(what, passed, f"after repair {release.repair}" if passed else f"after repair one is {smallest:.3g}")


def _count(release: MomentRelease) -> Check:
    what = "number of rows" if release.schema.sampling_weight is None else "sum of the weights, over their cap"
    count, law = release.noisy_count, exact_law(release.noise)
    if count is None:
        passed = not release.privacy.neighbors.table_size_is_public and release.noisy_sum is None
        return Check(what, passed, "private, and not released")
    if release.count_is_public:
        return _public_count(what, count)
    if law is None:
        return Check(what, None, f"{count:,.1f}; noise distribution unknown")
    deviation = math.sqrt(law.count_variance)
    return Check(what, count >= _least_noise(law), f"{count:,.1f}, with noise of standard deviation {deviation:.3g}")


def _least_noise(law: NoiseLaw) -> float:
    """Return a lower bound on the noise of a released count, up to its share of false alarms."""
    return math.sqrt(law.count_variance) * law.quantile(_COUNT_SHARE * _FALSE_ALARM, of="count") - _ROUNDING


def _within_reach(release: MomentRelease) -> Check:
    """Check that eigenvalues are between 0 and n, up to the bound on the noise."""
    what, law, count = "within reach of a possible table", exact_law(release.noise), release.noisy_count
    if law is None or release.schema.row_norm is None:
        return Check(what, None, "noise distribution or row-norm bound unknown")
    reach = law.gram_bound((1.0 - _COUNT_SHARE) * _FALSE_ALARM)
    eigenvalues = np.linalg.eigvalsh(release.noisy_gram)
    highest = math.inf
    if count is not None and release.count_is_public:
        highest = count
    elif count is not None:
        highest = count - _least_noise(law)
    passed = float(eigenvalues[0]) >= -reach and float(eigenvalues[-1]) <= highest + reach
    return Check(what, passed, f"the noise is at most {reach:.3g} (except with probability {_FALSE_ALARM:g})")


def _noise_as_calibrated(release: MomentRelease) -> Check:
    """Check that the recorded noise is what the mechanism calibrates to the stated budget."""
    what = "noise as the stated budget calls for"
    # The file does not state if an add-remove count was public.
    counts = {None if release.noisy_count is None else release.n_rows}
    if not release.count_is_public:
        counts.add(None)
    with_mean = release.noisy_sum is not None
    shapes = [MomentShape.of(release.schema, mean=with_mean, n_rows=count) for count in counts]
    return _calibrated(release, what, MECHANISMS, make_mechanism, shapes, _agrees)


def _estimator(release: MeanRelease) -> Check:
    """Check that the mechanism can spend the stated budget, in the receipt's unit and amount."""
    what = "known mechanism that spends the stated budget"
    public_rows = release.n_rows if release.count_is_public else None
    shapes = [MomentShape.of(release.schema, mean=True, n_rows=public_rows)]
    return _calibrated(release, what, MEAN_MECHANISMS, make_mean_mechanism, shapes, _spends_alike)


def _calibrated(
    release: Any,
    what: str,
    known: Mapping[str, Any],
    make: Callable[..., ConfiguredMechanism[Any]],
    shapes: Iterable[MomentShape],
    agrees: Callable[[Any, Any], bool],
) -> Check:
    """Plan again for every possible shape and compare; versions may differ in calibration."""
    stated = f"{release.mechanism}, {release.privacy.budget}, {release.privacy.neighbors}"
    other_version = f"made by dpmoments {release.privacy.version}, and this is {__version__}"
    same_version = release.privacy.version == __version__
    if release.mechanism not in known:
        # A mechanism of the other kind made no such release; one from outside the library may have.
        elsewhere = release.mechanism in MECHANISMS or release.mechanism in MEAN_MECHANISMS
        words = f"this library has no mechanism {release.mechanism!r} for such a release"
        return Check(what, False if elsewhere else None, words if same_version else f"{words}; {other_version}")
    try:
        mechanism = make(release.mechanism, **release.mechanism_options)
        budget, neighbors = release.receipt.cost, release.privacy.neighbors
        # Calibration is for one row of a unit.
        budget = budget_for_rows(budget, mechanism.loss_units[budget.kind], release.privacy.privacy_unit)
        plans = [mechanism.plan(shape, budget, neighbors) for shape in shapes]
    except (ArithmeticError, TypeError, ValueError) as refusal:
        return Check(what, False if same_version else None, f"{stated}: {refusal}")
    if any(agrees(plan, release) for plan in plans):
        return Check(what, True, f"{stated}, recalibrated")
    # The bound of before on rows that are shorter than the constant.
    of_short_rows = {"gram_frobenius": short_rows_frobenius, "gram_nuclear": short_rows_nuclear}
    for bound in (draw.sensitivity for draw in release.receipt.draws):
        now, given = of_short_rows.get(bound.name), dict(bound.arguments)
        if now is not None and "row_square" in given and now(bound.neighbors, **given).name != bound.name:
            return Check(what, None, f"{stated}: its sensitivity has a smaller bound since")
    if same_version:
        return Check(what, False, f"{stated}: recalibration gives another result")
    return Check(what, None, f"{stated}: recalibration gives another result; {other_version}")


def _run_again(plan: Plan, release: MomentRelease) -> bool:
    """Return True if a run on no rows with the answers of a file gives everything else in it."""
    count = release.n_rows if plan.count_is_public and release.n_rows is not None else 0
    try:
        result, receipt = run_on_no_rows(plan, release.schema.with_indicators, count, release.diagnostics["answers"])
    except PrivacyFilterError:
        return False
    names = ("noisy_sum", "noisy_gram", "center")
    pairs = [(np.asarray(getattr(release, name)), getattr(result, name.removeprefix("noisy_"))) for name in names]
    draws = [
        [part for draw in made.draws for part in (draw.law.to_dict(), dict(draw.sensitivity.arguments))]
        for made in (release.receipt, receipt)
    ]
    capped = plan.neighbors.table_size_is_public and not plan.count_is_public  # at the size of the table
    same_count = math.isclose(float(release.noisy_count or 0.0), float(result.count or 0.0), rel_tol=_ROUNDING)
    return (
        (same_count or (capped and 0.0 <= float(release.noisy_count or 0.0) < float(result.count or 0.0)))
        and all(np.allclose(a, b, rtol=0.0, atol=_ROUNDING * float(np.abs(b).max())) for a, b in pairs)
        and result.model is not None
        and release.noise_model is not None
        and _equal(result.model.to_dict(), release.noise_model.to_dict())
        and len(draws[0]) == len(draws[1])
        and all(map(_equal, *draws))
        and _equal(result.diagnostics, {name: release.diagnostics.get(name) for name in result.diagnostics})
    )


def _agrees(plan: Plan, release: MomentRelease) -> bool:
    rules = (
        *release.receipt.rules(release.schema.rules),
        *plan.rules_of_run(release.diagnostics),
        *release.origin.rules,
    )
    if not (release.privacy.rules == rules and _equal(plan.details, release.details) and _spends_alike(plan, release)):
        return False
    if "answers" in release.diagnostics:
        return _run_again(plan, release)
    model = None if release.noise_model is None else release.noise_model.to_dict()
    entries = plan.model_entries(release.diagnostics, release.receipt)
    return entries is model is None or (
        entries is not None and model is not None and _equal(entries, {key: model.get(key) for key in entries})
    )


def _spends_alike(plan: CalibratedPlan[Any], release: MomentRelease | MeanRelease | CountsRelease) -> bool:
    """Return True if unit, arithmetic and total match the plan."""
    receipt = release.receipt
    same_arithmetic = release.privacy.arithmetic == str(plan.arithmetic)
    return same_arithmetic and receipt.unit is plan.loss_unit and (receipt.exhausts or plan.unspent_reason is not None)


def _equal(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Compare keys and values, numbers up to rounding."""

    def same(a: Any, b: Any) -> bool:
        if isinstance(a, float | int) and isinstance(b, float | int):
            return a == b or (is_finite_number(a) and is_finite_number(b) and math.isclose(a, b, rel_tol=_ROUNDING))
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(map(same, a, b))
        return bool(np.array_equal(a, b))

    return set(first) == set(second) and all(same(value, second[key]) for key, value in first.items())
