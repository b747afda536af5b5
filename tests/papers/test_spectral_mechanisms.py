"""Iterative eigenvectors and Kapralov–Talwar: privacy of a draw, what a run spends, and the plain algorithm beside."""

import math

import numpy as np
import pytest
from benchmarks.papers.datasets import amin_synthetic
from numpy.testing import assert_allclose

import dpmoments as dpm
import dpmoments.privacy.sampling as sampling
from contracts.cases import run_plan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.laws import Directions
from dpmoments.papers.mechanisms.eigenvectors import temperature
from dpmoments.papers.sphere import sample_bingham
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.sensitivity import quadratic_form
from dpmoments.privacy.unit import Neighbors
from support.said import refused

pytestmark = pytest.mark.long(sets=None)

ADD_REMOVE, REPLACE_ONE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
BOTH = [ADD_REMOVE, REPLACE_ONE]
IterativeEigenvectors = dpm.mechanisms.IterativeEigenvectors
KapralovTalwar = dpm.mechanisms.KapralovTalwar


def rows_of(table, neighbors):
    return dpm.rows.Rows.of(table, dpm.Schema.unit_ball(table.shape[1]), neighbors=neighbors)


def make_plan(mechanism, table, budget, neighbors, *, mean=False):
    n_rows = len(table) if neighbors is REPLACE_ONE else None
    return mechanism.plan(MomentShape(table.shape[1], n_rows=n_rows, mean=mean), budget, neighbors)


BUDGETS = [PrivacyBudget.pure(0.7), PrivacyBudget.zcdp(0.3)]


@pytest.mark.parametrize("neighbors", BOTH)
def test_papers_calibration_is_looser(neighbors):
    """Half of the budget at most is spent by it, whatever the table (``tests/privacy/test_laws.py``); all of it by ours."""
    strength, tight = (temperature(PrivacyBudget.pure(1.0), neighbors, kind) for kind in ("paper", "tight"))
    assert_allclose(strength, 0.25, rtol=1e-15)
    for one, most, least in ((strength, 0.5, 0.249), (tight, 1.0, 0.999)):
        paid = Directions((one,), 2).loss(quadratic_form(neighbors), LossUnit.EPSILON)
        assert least <= float(paid.amount) <= most * (1 + 1e-12)


def plain_run(table, plan, generator):
    """Amin et al. (2019), Algorithm 1, in dense linear algebra: eigenvalues, then restrict, draw, map back, project."""
    d = table.shape[1]
    gram = table.T @ table
    noise = generator.laplace if plan.pure else generator.normal
    eigenvalues = np.sort(np.linalg.eigvalsh(gram) + noise(0.0, plan.eigenvalue_scale, d))[::-1]
    eigenvalues = np.clip(eigenvalues, 0.0, len(table) if plan.neighbors is REPLACE_ONE else math.inf)
    bound = math.log(2 * d / 0.05)
    floor = plan.eigenvalue_scale * (bound if plan.pure else math.sqrt(2 * bound))
    importance = {
        "uniform": np.ones(d),
        "adaptive": eigenvalues + floor,
        "gaps": np.array([(eigenvalues[i] - eigenvalues[i:]).sum() + floor for i in range(d)]),
    }[plan.mechanism.allocation]
    weights = importance[: d - 1] ** (0.5 if plan.pure else 2 / 3)
    whole = plan.direction_budget.epsilon if plan.pure else plan.direction_budget.rho
    width = 1.0 if plan.neighbors is ADD_REMOVE else 2.0
    complement, estimate = np.eye(d), np.zeros((d, d))
    for i in range(d):
        share = whole * weights[i] / weights.sum() if i < d - 1 else 0.0
        strength = (share if plan.pure else math.sqrt(8 * share)) / width
        direction = complement @ sample_bingham(strength * (complement.T @ gram @ complement), None, generator)
        estimate += eigenvalues[i] * np.outer(direction, direction)
        projected = complement - np.outer(direction, direction @ complement)
        complement = np.linalg.svd(projected).U[:, : d - i - 1]
    return estimate


@pytest.mark.long
class TestAgainstThePlainAlgorithm:
    TABLE = amin_synthetic(30, 3, np.random.default_rng(3))

    @staticmethod
    def check(first, second):
        first, second = (np.stack(runs).reshape(len(runs), -1) for runs in (first, second))
        for left, right in ((first, second), (first**2, second**2)):
            error = (left.mean(axis=0) - right.mean(axis=0)) / np.sqrt(
                left.var(axis=0) / len(left) + right.var(axis=0) / len(right)
            )
            assert np.abs(error).max() < 4.5, f"z-scores {np.abs(error).max():.2g}"

    def runs(self, plan, n_runs=400, run=run_plan):
        rows, generator = rows_of(self.TABLE, plan.neighbors), insecure_generator(5)
        return [run(plan, rows, generator).gram for _ in range(n_runs)]

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("allocation", "budget", "neighbors"),
        [
            ("gaps", PrivacyBudget.pure(2.0), REPLACE_ONE),
            ("gaps", PrivacyBudget.zcdp(0.2), ADD_REMOVE),
            ("adaptive", PrivacyBudget.pure(2.0), ADD_REMOVE),
            ("adaptive", PrivacyBudget.zcdp(0.2), REPLACE_ONE),
            ("uniform", PrivacyBudget.pure(2.0), REPLACE_ONE),
        ],
    )
    def test_same_law(self, allocation, budget, neighbors):
        plan = make_plan(IterativeEigenvectors(allocation=allocation), self.TABLE, budget, neighbors)
        generator = insecure_generator(6)
        self.check(self.runs(plan), [plain_run(self.TABLE, plan, generator) for _ in range(400)])


class TestEigenvalues:
    """Where noisy eigenvalues are cut: at a number of rows that is public or paid for, never at a private one."""

    TABLE = np.tile(np.eye(3), (4, 1))

    @staticmethod
    def lift_noise(monkeypatch, amount):
        """Replace all noise by one large positive number (in unit-ball units of the eigenvalues)."""
        for name in ("discrete_laplace", "discrete_gaussian"):
            monkeypatch.setattr(sampling, name, lambda _scale, size, _generator: np.full(size, amount, dtype=np.int64))

    @pytest.mark.parametrize("mechanism", [IterativeEigenvectors(), KapralovTalwar()])
    @pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "zcdp"])
    def test_cut(self, monkeypatch, mechanism, budget):
        self.lift_noise(monkeypatch, 1000 * 4**20)
        public = run_plan(
            make_plan(mechanism, self.TABLE, budget, REPLACE_ONE),
            rows_of(self.TABLE, REPLACE_ONE),
            insecure_generator(0),
        )
        assert_allclose(public.diagnostics["eigenvalues"], 12.0)
        private = run_plan(
            make_plan(mechanism, self.TABLE, budget, ADD_REMOVE), rows_of(self.TABLE, ADD_REMOVE), insecure_generator(0)
        )
        assert_allclose(private.diagnostics["eigenvalues"], 1004.0)
        self.lift_noise(monkeypatch, 20 * 2**20)
        paid = make_plan(mechanism, self.TABLE, budget, ADD_REMOVE, mean=True)
        noisy = run_plan(paid, rows_of(self.TABLE, ADD_REMOVE), insecure_generator(0))
        assert noisy.count == 32.0
        assert max(noisy.diagnostics["eigenvalues"]) <= 32.0

    def test_never_negative_and_in_order(self):
        plan = make_plan(IterativeEigenvectors(), self.TABLE, PrivacyBudget.pure(0.01), ADD_REMOVE)
        for seed in range(20):
            noisy = run_plan(plan, rows_of(self.TABLE, ADD_REMOVE), insecure_generator(seed))
            eigenvalues = np.array(noisy.diagnostics["eigenvalues"])
            assert (eigenvalues >= 0).all()
            assert (np.diff(eigenvalues) <= 0).all()


class TestKapralovTalwar:
    def test_terms_are_subtracted_with_their_noisy_eigenvalues(self, monkeypatch):
        table = amin_synthetic(40, 4, np.random.default_rng(1))
        plan = make_plan(KapralovTalwar(), table, PrivacyBudget.pure(3.0), REPLACE_ONE)
        seen = []

        def spy(matrix, size, rng):
            seen.append((matrix, sample_bingham(matrix, size, rng)))
            return seen[-1][1]

        monkeypatch.setattr("dpmoments.papers.sampling.sample_bingham", spy)
        noisy = run_plan(plan, rows_of(table, REPLACE_ONE), insecure_generator(2))
        eigenvalues, remaining = noisy.diagnostics["eigenvalues"], table.T @ table
        assert len(seen) == 4
        strengths = noisy.diagnostics["temperatures"]
        for (matrix, direction), eigenvalue, strength in zip(seen, eigenvalues, strengths, strict=True):
            assert_allclose(matrix, strength * remaining, atol=1e-4)
            remaining = remaining - eigenvalue * np.outer(direction, direction)
        assert_allclose(noisy.gram, table.T @ table - remaining, atol=1e-4)


@pytest.mark.long
class TestAccuracy:
    """Mean error over fixed seeds: what the options are for."""

    TABLE = amin_synthetic(3000, 12, np.random.default_rng(8))

    def error(self, mechanism, budget, neighbors=REPLACE_ONE):
        plan = make_plan(mechanism, self.TABLE, budget, neighbors)
        gram, rows = self.TABLE.T @ self.TABLE, rows_of(self.TABLE, neighbors)
        errors = [np.linalg.norm(run_plan(plan, rows, insecure_generator(seed)).gram - gram) for seed in range(40)]
        return np.mean(errors) / len(self.TABLE)

    @pytest.mark.slow
    @pytest.mark.parametrize("budget", [PrivacyBudget.pure(1.0), PrivacyBudget.zcdp(0.05)], ids=["pure", "zcdp"])
    def test_allocations_in_order(self, budget):
        uniform, adaptive, gaps = (
            self.error(IterativeEigenvectors(allocation=name), budget) for name in ("uniform", "adaptive", "gaps")
        )
        assert adaptive < 0.95 * uniform
        assert gaps < 0.99 * adaptive

    @pytest.mark.slow
    def test_tight_is_better_than_the_paper_and_projection_than_subtraction(self):
        budget = PrivacyBudget.pure(1.0)
        best = self.error(IterativeEigenvectors(), budget)
        assert best < 0.85 * self.error(IterativeEigenvectors(calibration="paper"), budget)
        assert best < 0.9 * self.error(KapralovTalwar(), budget)
        assert self.error(IterativeEigenvectors(), budget, ADD_REMOVE) < 0.85 * best


@pytest.mark.long
class TestOptions:
    def test_rank(self):
        table = amin_synthetic(60, 5, np.random.default_rng(2))
        for mechanism in (IterativeEigenvectors(rank=2), KapralovTalwar(rank=2)):
            plan = make_plan(mechanism, table, PrivacyBudget.pure(1.0), ADD_REMOVE)
            assert (
                np.linalg.matrix_rank(run_plan(plan, rows_of(table, ADD_REMOVE), insecure_generator(0)).gram, tol=1e-5)
                <= 2
            )
            with refused("is more than the table's"):
                mechanism.plan(MomentShape(1), PrivacyBudget.pure(1.0), "add_remove")

    @pytest.mark.parametrize(
        ("options", "code"),
        [
            (dict(rank=0), "must be"),
            (dict(rank=True), "must be"),
            (dict(calibration="loose"), ": use '"),
            *(({name: share}, "must be") for name in ("sum_share", "eigenvalue_share") for share in (-0.5, 0.0, 1.0)),
        ],
    )
    def test_bad_options(self, options, code):
        for mechanism in (IterativeEigenvectors, KapralovTalwar):
            with refused(code, parameter=next(iter(options))):
                mechanism(**options)

        with refused(": use '", parameter="allocation", value="greedy"):
            IterativeEigenvectors(allocation="greedy")

    def test_shares_are_what_was_asked(self):
        mechanism = IterativeEigenvectors(sum_share=0.25, eigenvalue_share=0.4)
        plan = mechanism.plan(MomentShape(6), PrivacyBudget.pure(2.0), "add_remove")
        budgets = plan.details["budgets"]
        assert_allclose([budgets["sum"], budgets["eigenvalues"], budgets["directions"]], [0.5, 0.6, 0.9], rtol=1e-12)

    def test_default_shares_grow_where_noise_is_large_against_public_n(self):
        small, large, unknown = (
            IterativeEigenvectors()
            .plan(MomentShape(20, n_rows=n_rows), PrivacyBudget.pure(1.0), neighbors)
            .details["budgets"]
            for n_rows, neighbors in ((100, REPLACE_ONE), (10**7, REPLACE_ONE), (None, ADD_REMOVE))
        )
        assert_allclose(small["sum"], 0.3)
        assert_allclose(small["eigenvalues"], 0.35)
        for budgets in (large, unknown):
            assert_allclose(budgets["sum"], 0.1)
            assert_allclose(budgets["eigenvalues"], 0.18)

    def test_a_sum_that_would_leave_the_lattice_is_refused_when_planning(self):
        mechanism = IterativeEigenvectors(sum_share=1e-12, eigenvalue_share=0.9)
        with refused("is too small to release anything: raise sum_share"):
            mechanism.plan(MomentShape(4), PrivacyBudget.pure(1e-3), "add_remove")

    def test_one_dimension_spends_all_on_the_eigenvalue(self):
        for mechanism in (IterativeEigenvectors(), KapralovTalwar()):
            budgets = mechanism.plan(MomentShape(1, mean=False), PrivacyBudget.pure(2.0), "add_remove").details[
                "budgets"
            ]
            assert budgets == {"eigenvalues": 2.0}


@pytest.mark.parametrize("allocation", ["gaps", "adaptive", "uniform"])
@pytest.mark.parametrize("budget", [PrivacyBudget.pure(0.8), PrivacyBudget.zcdp(0.3)])
@pytest.mark.parametrize("failure", [0.05, 0.4])
def test_weights_of_directions_minimize_the_loss_that_is_expected(allocation, budget, failure):
    """Weights ∝ importance^(1/2) under ε and importance^(2/3) under ρ, importance raised by the largest noise to be expected."""
    mechanism = IterativeEigenvectors(allocation=allocation, failure=failure)
    plan = mechanism.plan(MomentShape(4, mean=False), budget, ADD_REMOVE)
    eigenvalues, tail = np.array([900.0, 400.0, 390.0, 10.0]), math.log(8.0 / failure)
    noise = plan.eigenvalue_scale * (tail if plan.pure else math.sqrt(2.0 * tail))
    if allocation == "gaps":
        loss = [sum(above - below for below in eigenvalues[place + 1 :]) for place, above in enumerate(eigenvalues)]
    else:
        loss = eigenvalues
    power = 1 / 2 if plan.pure else 2 / 3
    expected = np.ones(4) if allocation == "uniform" else (np.array(loss) + noise) ** power
    assert_allclose(plan.weights(eigenvalues), expected, rtol=1e-12)
