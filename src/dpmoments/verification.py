"""Whether a release agrees with itself: what can be checked of a file without the table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.mechanisms.base import MomentShape, Plan
from dpmoments.mechanisms.registry import MECHANISMS, make_mechanism
from dpmoments.moment_release import MomentRelease
from dpmoments.noise_law import NoiseLaw
from dpmoments.repair.repair import Repair
from dpmoments.version import __version__

__all__ = ["Check", "checks"]

FALSE_ALARM = 1e-9
"""Most that the probability may be that noise alone makes a sound release fail a check."""
COUNT_SHARE = 0.5
"""Of it that the noise on the count may take; the rest is for that on the Gram matrix, or for what rounding to a lattice adds."""
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes
    ----------
    what : str
    passed : bool or None
        None where it cannot be told; ``detail`` says why.
    detail : str
    """

    what: str
    passed: bool | None
    detail: str


def checks(release: MomentRelease) -> tuple[Check, ...]:
    """Everything a release can be asked about itself; reads nothing else.

    Returns
    -------
    tuple of Check
    """
    return (
        _finite(release),
        _symmetric(release),
        _possible(release),
        _count(release),
        _reach(release),
        _promise(release),
    )


def _finite(release: MomentRelease) -> Check:
    arrays = [release.noisy_gram, release.unit_ball_gram]
    if release.noisy_sum is not None:
        arrays += [release.unit_ball_mean, release.mean, release.covariance]
    law = [value for value in _law(release).values() if isinstance(value, int | float)]
    passed = all(np.isfinite(array).all() for array in arrays) and all(map(math.isfinite, law))
    return Check("finite", passed, "every released number and every number of the noise law")


def _symmetric(release: MomentRelease) -> Check:
    d = len(release.feature_names)
    gram = release.unit_ball_gram
    asymmetry = float(np.abs(gram - gram.T).max())
    passed = gram.shape == (d, d) and asymmetry <= ROUNDING * max(1.0, float(np.abs(gram).max()))
    return Check("symmetric", passed, f"the second moment of {d} features, after repair")


def _possible(release: MomentRelease) -> Check:
    """A covariance has no negative eigenvalue."""
    what = "no negative eigenvalue"
    matrix = release.unit_ball_covariance if release.noisy_sum is not None else release.unit_ball_gram
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if release.repair is Repair.NONE:
        return Check(what, None, f"the release is not repaired; the smallest is {smallest:.3g} in encoded units")
    passed = smallest >= -ROUNDING * max(1.0, float(np.trace(matrix)))
    return Check(what, passed, f"after repair {release.repair}" if passed else f"after repair one is {smallest:.3g}")


def _count(release: MomentRelease) -> Check:
    what, count, law = "number of rows", release.noisy_count, release.noise
    if count is None:
        passed = not release.privacy.neighbors.count_is_public and release.noisy_sum is None
        return Check(what, passed, "private, and not released")
    if release.count_is_public:
        return Check(
            what, count >= 1 and count == round(count), f"{count:,.10g}, public: a whole number above 0 is expected"
        )
    if law is None or law.count_variance is None:
        return Check(what, None, f"{count:,.1f}; the law of its noise is not known")
    deviation = math.sqrt(law.count_variance)
    return Check(what, count >= _least_noise(law), f"{count:,.1f}, with noise of standard deviation {deviation:.3g}")


def _least_noise(law: NoiseLaw) -> float:
    """What the noise on a released count stays above, but for its share of false alarms."""
    return law.count_quantile(COUNT_SHARE * FALSE_ALARM) - ROUNDING


def _reach(release: MomentRelease) -> Check:
    """Rows of norm 1 at most have a Gram matrix between 0 and n; noise moves it by a known amount at most."""
    what, law, count = "within reach of a possible table", release.noise, release.noisy_count
    if law is None or release.schema.row_norm is None:
        return Check(what, None, "the law of the noise or the bound on a row is not known")
    reach = law.operator_norm_bound((1.0 - COUNT_SHARE) * FALSE_ALARM)
    eigenvalues = np.linalg.eigvalsh(release.noisy_gram)
    highest = math.inf
    if count is not None and release.count_is_public:
        highest = count
    elif count is not None and law.count_variance is not None:
        highest = count - _least_noise(law)
    passed = float(eigenvalues[0]) >= -reach and float(eigenvalues[-1]) <= highest + reach
    return Check(what, passed, f"the noise reaches {reach:.3g} at most (but with probability {FALSE_ALARM:g})")


def _promise(release: MomentRelease) -> Check:
    """The recorded noise is the one that the mechanism calibrates to the stated budget."""
    what = "noise as the stated budget calls for"
    stated = f"{release.mechanism}, {release.privacy.budget}, {release.privacy.neighbors}"
    other_version = f"made by dpmoments {release.privacy.version}, and this is {__version__}"
    same_version = release.privacy.version == __version__
    if release.mechanism not in MECHANISMS:
        return Check(
            what, False if same_version else None, f"there is no mechanism {release.mechanism!r} here; {other_version}"
        )
    options = {key: _frozen(value) for key, value in release.mechanism_options.items()}
    try:
        mechanism = make_mechanism(release.mechanism, **options)
        budget, neighbors = release.privacy.budget, release.privacy.neighbors
        plans = [mechanism.plan(shape, budget, neighbors) for shape in _shapes(release)]
    except (TypeError, ValueError) as refusal:
        return Check(what, False if same_version else None, f"{stated}: {refusal}")
    if any(_agrees(plan, release) for plan in plans):
        return Check(what, True, f"{stated}, calibrated anew")
    if same_version:
        return Check(what, False, f"{stated}: calibrated anew it is another noise")
    return Check(what, None, f"{stated}: calibrated anew it differs; {other_version}")


def _frozen(value: Any) -> Any:
    """Options are tuples, and lists in a file."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _shapes(release: MomentRelease) -> list[MomentShape]:
    """What the plan may have been made for: the file does not say whether a count under add-remove was public."""
    counts = {None if release.noisy_count is None else release.n_rows}
    if not release.privacy.neighbors.count_is_public:
        counts.add(None)
    return [MomentShape.of(release.schema, mean=release.noisy_sum is not None, n_rows=count) for count in counts]


def _agrees(plan: Plan, release: MomentRelease) -> bool:
    law = {} if plan.noise is None else plan.noise.to_dict()
    same_rules = release.privacy.rules == release.schema.rules_in_words()
    same_arithmetic = release.privacy.arithmetic == str(plan.arithmetic)
    return same_rules and same_arithmetic and _equal(law, _law(release)) and _equal(plan.details, release.details)


def _law(release: MomentRelease) -> Mapping[str, Any]:
    return {} if release.noise is None else release.noise.to_dict()


def _equal(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Equal keys and values, numbers to rounding."""

    def same(a: Any, b: Any) -> bool:
        if isinstance(a, float | int) and isinstance(b, float | int):
            return math.isclose(a, b, rel_tol=ROUNDING)
        return bool(np.array_equal(a, b))

    return set(first) == set(second) and all(same(value, second[key]) for key, value in first.items())
