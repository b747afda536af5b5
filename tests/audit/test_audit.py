"""The audit: its bounds against exact coverage, its exact losses against references, and every planted fault found."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

import dpmoments as dpm
from contracts.faulty_mechanisms import (
    CONTROLS,
    FAULTS,
    EigenvaluesTwice,
    Fault,
    HalfGaussian,
    HotDirections,
    TellingError,
    UnclippedRows,
    misprinted_actual,
)
from dpmoments.audit import AuditEffort, audit, bingham_epsilon, neighboring_pairs, noise_epsilon
from dpmoments.audit.events import (
    Event,
    _numbers_of,
    _probability_above,
    best_events,
    epsilon_lower_bound,
    learn_scores,
    rarer_events,
    raw_statistics,
    record_names,
    repeated_rows,
    run_repeatedly,
)
from dpmoments.audit.exact import _bingham_log_normalizer
from dpmoments.audit.procedure import MeasuredLaw, audit_generator, audit_plan, configuration
from dpmoments.cli import main
from dpmoments.mechanisms import IterativeEigenvectors
from dpmoments.mechanisms.registry import MECHANISMS
from dpmoments.mechanisms.shape import RunResult
from dpmoments.moments.models import AdditiveModel
from dpmoments.papers.laws import GaussianDraw
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves import gaussian_epsilon
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator, secure_generator
from dpmoments.privacy.sensitivity import count, gram_entrywise_l1, gram_frobenius, gram_nuclear
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from references.exact_bingham import second_moments
from support.noise_models import additive, gaussian, laplace
from support.said import refused

pytestmark = pytest.mark.long(sets=None)

ADD_REMOVE, REPLACE_ONE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
PURE = PrivacyBudget.pure(1.0)


# Bounds on probabilities and on ε ---------------------------------------------------------------------------------------


def test_clopper_pearson_bounds_are_scipys() -> None:
    for trials, failure in ((1, 0.05), (30, 0.001), (2000, 1e-5)):
        for hits in sorted({0, 1, trials // 3, trials - 1, trials}):
            exact = stats.binomtest(hits, trials, alternative="greater").proportion_ci(1 - failure, method="exact")
            assert_allclose(_probability_above(hits, trials, failure), exact.low, rtol=1e-6, atol=1e-12)


def failure_probability(
    bound: Callable[[np.ndarray, np.ndarray, int], np.ndarray], epsilon: float, p: float, q: float, trials: int
) -> float:
    """P(bound > ε) over two binomials, summed exactly."""
    hits = np.arange(trials + 1)
    bounds = bound(hits[:, None], hits[None, :], trials)
    weights = np.outer(stats.binom(trials, p).pmf(hits), stats.binom(trials, q).pmf(hits))
    return float(weights[bounds > epsilon].sum())


@pytest.mark.parametrize(
    ("epsilon", "delta", "q"), [(1.0, 0.0, 0.2), (1.0, 0.0, 0.01), (3.0, 0.0, 0.04), (1.0, 0.3, 0.05), (0.3, 0.2, 0.02)]
)
def test_the_bound_on_epsilon_holds_with_its_confidence(epsilon: float, delta: float, q: float) -> None:
    """At p = δ + e^ε q, the most that (ε, δ) allows."""
    p, trials, failure = delta + math.exp(epsilon) * q, 300, 0.01
    assert p < 1

    def right(hits: np.ndarray, others: np.ndarray, n: int) -> np.ndarray:
        return epsilon_lower_bound(hits, others, n, delta, failure)

    def frequencies(hits: np.ndarray, others: np.ndarray, n: int) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log((hits / n - delta) / (others / n))

    def without_delta(hits: np.ndarray, others: np.ndarray, n: int) -> np.ndarray:
        return epsilon_lower_bound(hits, others, n, 0.0, failure)

    assert failure_probability(right, epsilon, p, q, trials) <= failure
    # planted faults: plain frequencies; δ forgotten
    assert failure_probability(frequencies, epsilon, p, q, trials) > 10 * failure
    if delta:
        assert failure_probability(without_delta, epsilon, p, q, trials) > 10 * failure


def test_the_bound_is_sharp_with_many_draws() -> None:
    bound = epsilon_lower_bound(10**6 // 2, int(10**6 / (2 * math.e)), 10**6, 0.0, 0.001)
    assert 0.98 < bound < 1.0


# Choosing events --------------------------------------------------------------------------------------------------------


def test_the_best_event_of_a_laplace_shift() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2, 4000))
    first, second = rng.laplace(0.0, 1.0, 4000), rng.laplace(1.0, 1.0, 4000)
    below, above = best_events(
        np.column_stack([noise[0], first]), np.column_stack([noise[1], second]), ("noise", "shifted"), 0.0
    )
    assert (below.statistic, below.above, below.likelier_on_second) == ("shifted", False, False)
    assert (above.statistic, above.above, above.likelier_on_second) == ("shifted", True, True)
    # The ratio is e beyond both locations, and smaller between them.
    assert below.threshold < 0.3
    assert above.threshold > 0.7
    assert 0.6 < above.promise < 1.0


def test_rarer_events_are_tails_of_the_chosen_one() -> None:
    values = np.arange(1000.0)[:, None]
    above = Event("x", 0, 600.0, above=True, likelier_on_second=True, promise=0.1)
    assert [event.threshold for event in rarer_events(above, -values, values)] == [600.0, 800.0, 900.0, 950.0]
    below = replace(above, threshold=79.0, above=False, likelier_on_second=False)
    assert [event.threshold for event in rarer_events(below, values, -values)] == [79.0, 39.0, 19.0, 9.0]
    # Fewer than ten occurrences fix no threshold; ties give no new one.
    assert len(rarer_events(replace(above, threshold=990.0), values, values)) == 1
    assert len(rarer_events(replace(above, threshold=1.0), values, np.ones((1000, 1)))) == 1


# Pairs ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", Neighbors)
@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_pairs_are_neighbors(neighbors: Neighbors, d: int) -> None:
    pairs = neighboring_pairs(d, neighbors)
    assert len({pair.name for pair in pairs}) == len(pairs)
    for pair in pairs:
        first, second = pair.first, pair.second
        assert first.shape[1] == second.shape[1] == pair.n_features == d
        if neighbors is ADD_REMOVE:
            assert len(second) == len(first) + 1
            np.testing.assert_array_equal(first, second[:-1])
        else:
            assert len(second) == len(first) >= 1
            np.testing.assert_array_equal(first[:-1], second[:-1])
            assert not np.array_equal(first[-1], second[-1])


@pytest.mark.parametrize("neighbors", Neighbors)
def test_pairs_attain_the_sensitivities(neighbors: Neighbors) -> None:
    shifts = []
    for pair in neighboring_pairs(2, neighbors):
        first, second = (repeated_rows(table, neighbors).moments() for table in (pair.first, pair.second))
        shifts.append((second.gram - first.gram).astype(float) * first.scale**2)
    assert max(np.linalg.norm(shift) for shift in shifts) == pytest.approx(gram_frobenius(neighbors, 2).value, rel=1e-5)
    assert max(np.abs(np.linalg.eigvalsh(s)).sum() for s in shifts) == pytest.approx(
        gram_nuclear(neighbors, 2).value, rel=1e-5
    )
    entrywise = max(np.abs(shift[np.triu_indices(2)]).sum() for shift in shifts)
    assert entrywise == pytest.approx(gram_entrywise_l1(neighbors, 2).value, rel=1e-5)


def test_impossible_pairs_are_refused() -> None:
    with refused("must be a whole number", parameter="n_features"):
        neighboring_pairs(0, ADD_REMOVE)
    with refused("is not a neighboring relation: use 'add_remove' (the number"):
        neighboring_pairs(2, "swap")


# Outcomes ---------------------------------------------------------------------------------------------------------------


def test_repeated_rows_give_the_moments_of_plain_rows() -> None:
    table = np.random.default_rng(3).normal(0.0, 0.4, (20, 2))
    table[3] = np.nan
    rows = repeated_rows(table, REPLACE_ONE)
    plain = Rows.of(table, dpm.Schema.unit_ball(2, missing="drop"), neighbors=REPLACE_ONE)
    for bits in (20, 12):
        assert rows.moments(bits=bits) == plain.moments(bits=bits) == rows.moments(bits=bits)
    assert rows.passes == [0]
    linear = np.array([[2.0, 0.0], [0.5, 1.0]])
    assert rows.moments(np.ones(2), linear, 3.0) == plain.moments(np.ones(2), linear, 3.0)
    assert rows.moments(linear=linear) != rows.moments(linear=2.0 * linear)
    assert rows.passes == [3]
    assert repeated_rows(table, ADD_REMOVE).moments().count == 19


def test_every_run_is_the_plans_own() -> None:
    seen = []

    class Counting:
        cost, neighbors, loss_unit = PrivacyBudget.zcdp(0.5), ADD_REMOVE, LossUnit.RHO
        privacy_unit = None

        def run(self, rows: Any, privacy_filter: PrivacyFilter) -> RunResult:
            seen.append(rows)
            if len(seen) % 2:
                raise KeyError("private")
            noise = privacy_filter.draw("nothing", GaussianDraw(2.0), np.zeros(1), count(ADD_REMOVE))
            return RunResult(None, None, np.full((1, 1), noise[0]))

    records, failure = run_repeatedly(Counting(), "the rows", 6, insecure_generator(0))  # type: ignore[arg-type]
    assert seen == ["the rows"] * 6
    assert [record["failed"] for record in records] == [1.0, 0.0] * 3
    assert failure is None
    assert len({record["gram[0,0]"] for record in records[1::2]}) == 3


def test_a_plan_that_always_fails_is_an_error_and_not_a_pass() -> None:
    with refused("every run failed on both tables of", RuntimeError):
        audit(AlwaysFails(), PURE, ADD_REMOVE, insecure_generator(0), effort=AuditEffort(20, 20))


@dataclass(frozen=True)
class AlwaysFails(UnclippedRows):
    def calibrate(self, shape: Any, budget: Any, neighbors: Any) -> Any:
        return replace(super().calibrate(shape, budget, neighbors), bits=99)


def test_numbers_of_an_output() -> None:
    diagnostics = {"flag": True, "nested": [{"a": np.float64(2.0)}, np.array([1, 2])], "words": "x", "none": None}
    record = _numbers_of(RunResult(4.0, np.array([1.0, 2.0]), np.array([[5.0, 6.0], [6.0, 7.0]]), diagnostics))
    words = record.pop("words")
    assert record == {
        "failed": 0.0,
        "gram[0,0]": 5.0,
        "gram[0,1]": 6.0,
        "gram[1,1]": 7.0,
        "sum[0]": 1.0,
        "sum[1]": 2.0,
        "count": 4.0,
        "flag": 1.0,
        "nested.length": 2.0,
        "nested.0.a": 2.0,
        "nested.1.length": 2.0,
        "nested.1.0": 1.0,
        "nested.1.1": 2.0,
    }
    assert words != _numbers_of(RunResult(None, None, np.eye(1), {"words": "y"}))["words"]
    with refused("the audit reads plain values and arrays", TypeError, name="odd"):
        _numbers_of(RunResult(None, None, np.eye(1), {"odd": object()}))


# Statistics -------------------------------------------------------------------------------------------------------------


def test_statistics_of_a_noisy_matrix_one_by_one() -> None:
    rng = np.random.default_rng(4)
    grams = rng.normal(size=(5, 3, 3))
    grams += grams.transpose(0, 2, 1)
    x, y = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.6, 0.8])
    first = np.diag([3.0, 1.0, 2.0])
    second = first + np.outer(x, x) - np.outer(y, y)
    upper = np.argwhere(np.triu(np.ones((3, 3))))
    records = [{f"gram[{i},{j}]": float(gram[i, j]) for i, j in upper} for gram in grams]
    statistics, names = raw_statistics(records, (), first, second)
    found = dict(zip(names, statistics.T, strict=True))
    for index, gram in enumerate(grams):
        values, vectors = np.linalg.eigh(gram)
        expected = {
            "eigenvalue 0 of Ĝ": values[0],
            "tr Ĝ": np.trace(gram),
            "log |det Ĝ|": math.log(abs(np.linalg.det(gram))),
            "⟨Ĝ, difference⟩": np.sum(gram * (second - first)),
            "uᵀĜu": y @ gram @ y,  # eigenvalue −1 comes first
            "vᵀĜv": x @ gram @ x,
            "uᵀĜ⁻¹u": y @ np.linalg.solve(gram, y),
            "overlap of v and the leading eigenvector": (x @ vectors[:, -1]) ** 2,
            "overlap of v and the last eigenvector": (x @ vectors[:, 0]) ** 2,
            "smallest eigenvalue of Ĝ − G₂": np.linalg.eigvalsh(gram - second)[0],
            "largest eigenvalue of Ĝ − G₁": np.linalg.eigvalsh(gram - first)[-1],
        }
        for name, value in expected.items():
            assert found[name][index] == pytest.approx(value), name


def test_statistics_hold_no_nan_whatever_the_output() -> None:
    odd = [np.zeros((2, 2)), np.full((2, 2), np.nan), np.full((2, 2), np.inf), np.diag([1e308, -1e308]), np.eye(2)]
    records = [_numbers_of(RunResult(None, None, gram)) for gram in odd] + [{"failed": 1.0}]
    statistics, names = raw_statistics(records, record_names(records), np.zeros((2, 2)), np.eye(2))
    assert statistics.shape == (6, len(names))
    assert np.isfinite(statistics).all()
    scores = learn_scores(statistics[:3], statistics[3:])
    assert np.isfinite(scores(statistics)).all()


def test_learned_scores_come_near_the_likelihood_ratio() -> None:
    """Five Laplace shifts: the log-ratio is a sum of clipped lines, which one line cannot follow."""
    rng = np.random.default_rng(5)
    learning, fresh = ([rng.laplace(shift, 1.0, (4000, 5)) for shift in (0.0, 1.0)] for _ in range(2))
    scores = learn_scores(*learning)
    truth = [np.sum(np.abs(part) - np.abs(part - 1.0), axis=1) for part in fresh]
    area = {
        name: stats.mannwhitneyu(second, first).statistic / 4000**2
        for name, (first, second) in {
            "truth": truth,
            **{name: [scores(part)[:, i] for part in fresh] for i, name in enumerate(scores.names)},
        }.items()
    }
    assert area["truth"] - area["additive log-ratio score"] < 0.01
    assert area["additive log-ratio score"] > area["linear discriminant"] + 0.005


# Exact losses -----------------------------------------------------------------------------------------------------------


def exact_loss(model: AdditiveModel, first: np.ndarray, second: np.ndarray, delta: float = 0.0) -> float | None:
    rows = [repeated_rows(np.asarray(table, dtype=float), ADD_REMOVE).moments() for table in (first, second)]
    return noise_epsilon(model, *rows, delta)


def test_exact_loss_of_gaussian_and_laplace_noise_cell_by_cell() -> None:
    empty, row = np.zeros((0, 2)), np.array([[0.6, -0.8]])
    normal = gaussian(2, 4.0, 2.0, 3.0, 5.0)
    distance = math.sqrt((0.6**4 + 0.8**4) / 4.0 + (0.6 * 0.8) ** 2 / 2.0 + 1.0 / 3.0 + 1.0 / 5.0)
    assert exact_loss(normal, empty, row, 1e-3) == pytest.approx(gaussian_epsilon(1e-3, distance, 1.0), rel=1e-5)
    doubly_exponential = laplace(2, 8.0, 8.0, 2.0, None)
    assert exact_loss(doubly_exponential, empty, row) == pytest.approx((0.36 + 0.64 + 0.48) / 2.0 + 1.4, rel=1e-5)
    # a cell that moves without noise
    assert exact_loss(laplace(2, 8.0, 8.0, 2.0, 0.0), empty, row) == math.inf
    assert exact_loss(additive("wishart", 2, 8.0, 4.0, None, None, 1.0), empty, row) is None
    assert exact_loss(additive("wishart", 2, 0.0, 0.0, None, None, 1.0), empty, row) == math.inf


def test_exact_loss_of_matrix_laplace_noise_in_one_dimension_is_that_of_its_density() -> None:
    rate, shift = 0.8, 0.7
    law = additive("matrix-laplace", 1, 2.0 / rate**2, 1.0 / rate**2, None, None, rate)
    noise = np.linspace(-4.0, 4.0, 401)
    density = stats.laplace(scale=1.0 / rate)
    reference = np.abs(density.logpdf(noise) - density.logpdf(noise - shift**2)).max()
    assert exact_loss(law, np.zeros((0, 1)), np.array([[shift]])) == pytest.approx(reference, rel=1e-5)


def test_an_exact_loss_above_the_stated_one_is_reported() -> None:
    found = audit("gaussian", PrivacyBudget.zcdp(0.5), ADD_REMOVE, insecure_generator(0), effort=AuditEffort(20, 20))
    assert found.exact is not None
    assert not found.exceeded
    assert replace(found, exact=found.stated_epsilon * 1.00001).exceeded
    assert replace(found, lower_bound=found.stated_epsilon * 1.00001).exceeded
    assert replace(found, measured=MeasuredLaw("temperature", "", 1.0, 2.0, found.stated_epsilon * 1.00001)).exceeded
    wrong = next(fault for fault in FAULTS if fault.mechanism.name == "wrong-neighbor-gaussian")
    found = wrong.audit(insecure_generator(0), AuditEffort(20, 20, 1))
    assert found.lower_bound < found.stated_epsilon
    assert found.exceeded  # by the stated law of the noise alone
    assert found.exact == pytest.approx(wrong.actual, rel=1e-5)


SPECTRA = [[3.0, 0.0], [-2.0, 5.0, 5.0], [40.0, 20.0, 10.0, 5.0, 0.0], [1.0] * 4, [700.0, *[0.0] * 30]]


def test_the_bingham_constant_in_two_and_three_dimensions() -> None:
    for gap in (0.0, 0.4, 9.0, 300.0):
        angle = np.linspace(0.0, np.pi, 200_001)
        mean = integrate.simpson(np.exp(gap * (np.cos(angle) ** 2 - 1.0)), x=angle) / np.pi
        assert _bingham_log_normalizer([gap, 0.0]) == pytest.approx(gap + math.log(mean), abs=1e-9)
        height = np.linspace(-1.0, 1.0, 200_001)
        mean = integrate.simpson(np.exp(gap * (height**2 - 1.0)), x=height) / 2.0
        assert _bingham_log_normalizer([gap, 0.0, 0.0]) == pytest.approx(gap + math.log(mean), abs=1e-9)
    assert _bingham_log_normalizer([7.0]) == 7.0


@pytest.mark.long(sets=1)
@pytest.mark.parametrize("eigenvalues", SPECTRA, ids=str)
def test_the_bingham_constant_has_the_right_derivatives(eigenvalues: list[float]) -> None:
    """∂ log Z/∂λ_i = E[u_i²], which an independent high-precision integral gives."""
    step = 1e-4
    for index, moment in enumerate(second_moments(eigenvalues)):
        ends = [list(eigenvalues), list(eigenvalues)]
        ends[0][index] -= step
        ends[1][index] += step
        slope = (_bingham_log_normalizer(ends[1]) - _bingham_log_normalizer(ends[0])) / (2 * step)
        assert slope == pytest.approx(moment, abs=1e-6)


def test_the_bingham_loss_is_the_largest_log_ratio() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 3))
    first = np.diag([4.0, 2.0, 0.0])
    second = first + np.outer(x, x) - 0.3 * np.outer(y, y)
    u = rng.normal(size=(200_000, 3))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    logs = [np.einsum("ni,ij,nj->n", u, matrix, u) for matrix in (first, second)]
    constants = [math.log(np.exp(log).mean()) for log in logs]
    ratio = np.abs(logs[0] - constants[0] - logs[1] + constants[1]).max()
    assert bingham_epsilon(first, second) == pytest.approx(ratio, rel=0.01)
    assert bingham_epsilon(first, first) == pytest.approx(0.0, abs=1e-12)


# The misprinted sampler -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "epsilon", "times"), [(5, 1.0, 1.35), (10, 4.0, 2.3), (50, 4.0, 6.6)])
def test_the_misprinted_acceptance_by_its_density(d: int, epsilon: float, times: float) -> None:
    """It draws ∝ e^{−s}(1 + 2s/b)^{−d}. Swapping two axes changes neither b nor the constant."""
    assert misprinted_actual(epsilon, d, 50) == pytest.approx(times * epsilon, rel=0.02)


# Faults are found, and nothing else ---------------------------------------------------------------------------------------


def check_fault(fault: Fault) -> None:
    found = fault.audit(insecure_generator(1))
    assert found.exceeded
    measured = 0.0 if found.measured is None else found.measured.epsilon
    shown = {"events": found.lower_bound, "measured": measured, "stated laws": found.exact or 0.0}[fault.seen_by]
    assert shown > found.stated_epsilon, f"{shown} by {found.pair}: {found.event}"
    if fault.actual is not None:  # a bound says no more than what is spent
        assert max(found.lower_bound, measured) <= fault.actual


def is_heavy(fault: Fault) -> bool:
    """Of the faults in the shipped eigenvectors, which take seconds each, a few are enough for every day."""
    if isinstance(fault.mechanism, HotDirections):
        return (fault.budget, fault.neighbors) not in ((PURE, ADD_REMOVE), (PrivacyBudget.pure(4.0), REPLACE_ONE))
    return fault.effort.final > (2000 if isinstance(fault.mechanism, IterativeEigenvectors) else 10_000)


@pytest.mark.long
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if not is_heavy(fault)], ids=lambda fault: fault.id)
def test_planted_faults_are_found(fault: Fault) -> None:
    check_fault(fault)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if is_heavy(fault)], ids=lambda fault: fault.id)
def test_planted_faults_that_need_many_draws_are_found(fault: Fault) -> None:
    check_fault(fault)


@pytest.mark.slow
@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.id)
def test_the_same_without_the_fault_is_not_accused(control: Fault) -> None:
    found = control.audit(insecure_generator(2))
    assert not found.exceeded
    assert control.actual is not None
    assert 0.0 < found.lower_bound <= control.actual < found.stated_epsilon + 1e-9


def test_eigenvalues_drawn_twice_spend_more_than_stated_by_their_exact_law() -> None:
    twice, once = EigenvaluesTwice(), CONTROLS[1].mechanism
    zero, one = np.zeros((2, 2)), np.diag([1.0, 0.0])
    for epsilon in (0.1, 1.0, 3.0):
        cost = PrivacyBudget.pure(epsilon)
        assert twice.exact_epsilon(cost, zero, one) > 1.2 * epsilon
        assert once.exact_epsilon(cost, zero, one) <= epsilon


def small(name: str) -> list[Any]:
    """One setting of each budget kind and relation, without the mean where that is planned for."""
    mechanism = configuration(name)
    settings = audit_plan([mechanism])[0]
    return [one for one in settings if not one.mean] or [*settings]


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_no_shipped_mechanism_is_caught_in_a_short_audit(name: str) -> None:
    """Three pairs; relations and kinds of budget in turn."""
    wanted = ("no row | one row", "lone row | zero row", "canary", "swapped", "equal leading")
    for index, setting in enumerate(small(name)):
        if index % 4 in (1, 2):
            continue
        d = min(2, setting.mechanism.most_features or 2)
        pairs = [pair for pair in neighboring_pairs(d, setting.neighbors) if any(word in pair.name for word in wanted)]
        effort = AuditEffort(100, 400, 1)
        if name in ("coinpress", "log-scale-histogram", "private-preconditioning"):
            effort = AuditEffort(20, 40, 1)
        elif name in ("standardized", "iterative-eigenvectors", "kapralov-talwar"):
            effort = AuditEffort(40, 150, 1)
        found = audit(
            setting.mechanism,
            setting.budget,
            setting.neighbors,
            insecure_generator(index),
            mean=setting.mean,
            pairs=pairs[:3],
            effort=effort,
        )
        assert not found.exceeded, (found.neighbors, found.cost, found.lower_bound, found.pair, found.event)


def test_every_mechanism_has_settings_for_all_it_supports() -> None:
    found = {(s.mechanism.name, s.budget.kind, s.neighbors) for s in audit_plan()[0]}
    for name, mechanism in MECHANISMS.items():
        for kind, neighbors in itertools.product(mechanism.budget_kinds, mechanism.supported_neighbors):
            assert (name, kind, neighbors) in found


def test_a_plan_of_audits_is_repeated_by_its_seed_alone() -> None:
    first, again, other = (audit_generator(index, seed=5).random() for index in (3, 3, 4))
    assert first == again != other
    assert first == insecure_generator(8).random()
    assert audit_generator(3).random() != audit_generator(3).random()
    assert isinstance(audit_generator(0, exact_noise=True), type(secure_generator()))
    with refused("seed=5: exact noise comes from the operating system"):
        audit_generator(0, seed=5, exact_noise=True)


def test_the_plan_without_names_audits_every_mechanism_in_its_configuration() -> None:
    settings, refusals = audit_plan()
    assert not refusals
    assert {s.mechanism for s in settings} == {configuration(name) for name in MECHANISMS}
    assert {s.mean for s in settings if s.mechanism.name == "auto"} == {True}
    with refused("nothing to audit: no budget and relation given here is", names=("gaussian",)):
        audit_plan([dpm.mechanisms.Gaussian()], budgets=[PURE])


def test_what_cannot_be_audited_says_so() -> None:
    with refused("inverse-gaussian needs a public lower bound on the smallest"):
        audit("inverse-gaussian", PrivacyBudget.zcdp(0.5), ADD_REMOVE, insecure_generator(0))
    with refused("inverse-gaussian needs a public lower bound on the smallest"):
        audit_plan([dpm.mechanisms.InverseGaussian()])
    with refused("no pair of tables to audit"):
        audit("laplace", PURE, ADD_REMOVE, insecure_generator(0), pairs=[])
    with refused("must be", parameter="level"):
        audit("laplace", PURE, ADD_REMOVE, insecure_generator(0), level=1.0)
    with refused("an audit needs at least 20 pilot and 20 final draws, and"):
        AuditEffort(pilot=3)


def test_slow_mechanisms_get_less_effort_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmoments.audit.procedure.audit", lambda *_, effort, **__: effort)
    efforts = {s.mechanism.name: s.run(insecure_generator(0)) for s in audit_plan()[0]}
    slow = {name for name, effort in efforts.items() if effort is not None}
    assert slow == {"iterative-eigenvectors", "kapralov-talwar", "log-scale-histogram"}
    assert all(efforts[name].final < AuditEffort().final for name in slow)
    told = AuditEffort.of_draws(500)
    assert (told.pilot, told.final) == (50, 500)
    assert {s.run(insecure_generator(0), effort=told) for s in audit_plan()[0]} == {told}


# Command line -----------------------------------------------------------------------------------------------------------


def test_the_command_ends_with_1_where_more_is_spent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpmoments.cli import mechanisms as command

    monkeypatch.setattr(command, "mechanism_of", lambda *_: TellingError())
    command_line = "audit laplace --draws 60 --features 1 --seed 2 --neighbors replace_one"
    assert main(command_line.split()) == 1
    printed = capsys.readouterr()
    assert "EXCEEDED" in printed.out
    assert "privacy loss above the stated one: telling-error" in printed.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["magic"], "Unknown mechanism 'magic'"),
        (["--delta", "0.1"], "--delta: it goes with --epsilon"),
        (["laplace", "--seed", "1", "--exact-noise"], "has no seed"),
        (["--option", "calibration=paper"], "name one"),
        (["laplace", "--draws", "3"], "20"),
    ],
)
def test_mistakes_in_the_command(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_half_the_noise_is_found_with_the_noise_of_releases() -> None:
    options: dict[str, Any] = dict(
        mean=False,
        pairs=[pair for pair in neighboring_pairs(2, ADD_REMOVE) if pair.name == "no row | one row"],
        effort=AuditEffort(200, 2000, 1),
        level=0.9,
    )
    budget = PrivacyBudget.approximate(1.0, 0.01)
    for mechanism, exceeded in ((HalfGaussian(), True), ("gaussian", False)):
        found = audit(mechanism, budget, ADD_REMOVE, secure_generator(), **options)
        assert (found.lower_bound > 1.0) is exceeded
        assert found.lower_bound > 0.1
