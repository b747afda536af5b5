"""The figures of ``docs/choose-a-budget.md``, from the library alone.

``python -m benchmarks.practice.choose_a_budget`` writes them into the page, in seconds. All are computed, not drawn:
``tests/site/test_choose_a_budget.py`` compares them with the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import dpmoments as dpm
from benchmarks.pages import DOCS, head, write_part
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves import (
    PrivacyCurve,
    composed,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_noise_scale,
    laplace_delta,
    randomized_response_delta,
    zcdp_delta,
    zcdp_epsilon,
)
from dpmoments.releases.profile import Bound, RunCurve

PAGE = DOCS / "choose-a-budget.md"
EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
PRIORS = (0.5, 0.1, 0.01)
FALSE_POSITIVES = 0.05
DELTA = 1e-6
SIZES = (1_000, 10_000, 100_000, 1_000_000)
COLUMNS = 5
DEVIATIONS_IN_BOUNDS = 6.0
"""The assumed table: bounds six standard deviations apart."""

Lines = Iterator[str]


def forecast_errors(n_rows: int, n_columns: int, mechanism: str, **budget: float) -> tuple[float, float]:
    """Standard error of a mean in standard deviations of its column, and of a correlation, by ``dpm.forecast``."""
    schema = dpm.Schema(*(dpm.Numeric(f"x{place}", 0.0, 1.0) for place in range(n_columns)))
    spreads = dict.fromkeys(schema.feature_names, 1.0 / DEVIATIONS_IN_BOUNDS)
    options: dict[str, Any] = dict(typical_sd=spreads, typical_mean=dict.fromkeys(spreads, 0.5), neighbors="add_remove")
    row = dpm.forecast(schema, n_rows=n_rows, mechanism=mechanism, **options, **budget)[mechanism]
    assert row.mean_error is not None
    assert row.correlation_error is not None
    return row.mean_error, row.correlation_error


def curve(delta: Callable[[float], float], cost: PrivacyBudget) -> RunCurve:
    return RunCurve(((Bound("", delta),),), cost, None)


def odds() -> Lines:
    yield from head("ε | " + " | ".join(f"from {prior:.0%}" for prior in PRIORS), "l" + "l" * len(PRIORS))
    for epsilon in EPSILONS:
        factor = math.exp(epsilon)
        after = (prior * factor / (1.0 + prior * (factor - 1.0)) for prior in PRIORS)
        yield f"| {epsilon:g} | " + " | ".join(share(value) for value in after) + " |"


def share(value: float) -> str:
    """In percent, with more digits where it is all but certain: no table here says 100 %."""
    digits = 3 if value < 0.995 else 5
    return f"{100.0 * value:.{digits}g} %"


def power() -> Lines:
    yield from head(f"ε | any ε-private release | Laplace noise | Gaussian noise, δ = {DELTA:g}", "llll")
    for epsilon in EPSILONS:
        pure, approximate = PrivacyBudget.pure(epsilon), PrivacyBudget.approximate(epsilon, DELTA)
        scale = gaussian_noise_scale(epsilon, DELTA, 1.0)
        found = [
            curve(lambda at, loss=epsilon: randomized_response_delta(at, loss), pure),
            curve(lambda at, loss=epsilon: laplace_delta(at, loss), pure),
            curve(lambda at, noise=scale: gaussian_delta(at, 1.0, noise), approximate),
        ]
        yield f"| {epsilon:g} | " + " | ".join(share(one.attacker_power(FALSE_POSITIVES)) for one in found) + " |"


PRACTICE: tuple[tuple[str, str, PrivacyBudget, str], ...] = (
    ("Microsoft, broadband coverage, 2021", "one count of many", PrivacyBudget.pure(0.1), "broadband_coverage"),
    ("Wikimedia, current page views, 2023", "a device's day, ten pages at most", PrivacyBudget.zcdp(0.015),
     "wikimedia_current_usage_data"),
    ("Wikimedia, historical page views, 2023", "30 (before 2017: 300) page views a day", PrivacyBudget.pure(1.0),
     "wikimedia_historical_usage_data"),
    ("Google, community mobility, 2020", "a user's day", PrivacyBudget.pure(2.64), "google_mobility"),
    ("Apple, popular emojis, 2017", "one emoji typed; each phone adds noise itself", PrivacyBudget.pure(4.0),
     "apple_popular_emojis"),
    ("LinkedIn, hiring reports, 2020", "one hiring, a month", PrivacyBudget.approximate(4.8, 4e-10),
     "linkedin_hiring_reports"),
    ("Israel, live births of 2014, 2024", "a birth", PrivacyBudget.pure(9.98), "birth_dataset"),
    ("US Census, redistricting 2020, persons, 2021", "a person, replace-one", PrivacyBudget.zcdp(2.56),
     "census_redistricting_data"),
)  # fmt: skip
"""Curator and product, unit, budget, and the entry of the public registry of deployments that says so."""


def practice() -> Lines:
    yield from head(f"who | unit | stated | ε at δ = {DELTA:g} | power at 5 % | entry", "llllll")
    for who, unit, budget, entry in PRACTICE:
        epsilon = zcdp_epsilon(budget.rho, DELTA) if budget.rho else budget.epsilon

        def delta(at: float, stated: PrivacyBudget = budget) -> float:
            if stated.rho:
                return zcdp_delta(stated.rho, at)
            return stated.delta + randomized_response_delta(at, stated.epsilon)

        bound = curve(delta, budget).attacker_power(FALSE_POSITIVES)
        yield f"| {who} | {unit} | {budget} | {epsilon:.3g} | {share(bound)} | `{entry}` |"


def rows() -> Lines:
    yield "| rows | " + " | ".join(f"ε = {epsilon:g}" for epsilon in (0.1, 0.5, 1.0, 3.0, 10.0)) + " |"
    yield "| --- |" + " --- |" * 5
    for size in SIZES:
        cells = []
        for epsilon in (0.1, 0.5, 1.0, 3.0, 10.0):
            mean, correlation = forecast_errors(size, COLUMNS, "matrix-laplace", epsilon=epsilon)
            cells.append(f"{mean:.2g}, {correlation:.2g}" if correlation < 1.0 else f"{mean:.2g}, —")
        yield f"| {size:,} | " + " | ".join(cells) + " |"


def composition() -> Lines:
    yield f"| releases at ε = 1 | added up | Laplace noise, at δ = {DELTA:g} | Gaussian, (1, {DELTA:g}) each, at δ = {DELTA:g} |"
    yield "| --- | --- | --- | --- |"
    noise = gaussian_noise_scale(1.0, DELTA, 1.0)
    for times in (1, 2, 5, 10, 50):
        together = composed([PrivacyCurve(lambda at: laplace_delta(at, 1.0), 1.0)] * times)
        assert together is not None
        steps = np.linspace(0.0, times, 4_001)
        epsilon = next((float(at) for at in steps if together.delta(float(at)) <= DELTA), float(times))
        yield f"| {times} | {times} | {epsilon:.3g} | {gaussian_epsilon(DELTA, math.sqrt(times), noise):.3g} |"


COMPUTED: Mapping[str, Callable[[], Lines]] = {
    "odds": odds,
    "power": power,
    "practice": practice,
    "rows": rows,
    "composition": composition,
}
"""Parts of the page that are the same on every run."""


if __name__ == "__main__":
    for name, lines in COMPUTED.items():
        found = list(lines())
        print(f"\n{name}\n" + "\n".join(found), flush=True)
        write_part(PAGE, name, found)
