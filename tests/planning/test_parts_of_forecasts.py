"""Parts of forecasts by themselves: texts of numbers, searches, comparisons and choices, on numbers made for them."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from dpmoments.planning.imagined_release import ForecastNoise, PossibleRun, ReleasePlan, TypicalRegression, _first_order
from matplotlib.figure import Figure

import dpmoments as dpm
from dpmoments.mechanisms.means.base import NormalRows
from dpmoments.mechanisms.registry import MECHANISMS, automatic_mean
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.synthetic_spectrum import Assumption
from dpmoments.messages.message import Message
from dpmoments.planning import changes, forecast_table, imagined_release, picture, ways
from dpmoments.planning import forecast as forecasting
from dpmoments.planning.changes import Change, Wanted
from dpmoments.planning.forecast_table import DerivedCost, Forecast, ForecastRow, short_refusal
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.planning.ways import Way, Ways
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors
from support.noise_models import gaussian
from support.said import refused

NAN, INF = math.nan, math.inf
PURE, RHO, BOTH = PrivacyBudget.pure(1.0), PrivacyBudget.zcdp(0.5), PrivacyBudget.approximate(2.0, 1e-6)
SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100), dpm.Numeric("pay", -50, 50), dpm.Categorical("g", ["a", "b", "c"]), dpm.Boolean("flag")
)


# --- texts of numbers ---------------------------------------------------------------------------------------------------------


def test_errors_are_written_with_their_marks() -> None:
    row = ForecastRow("gaussian", 0.12345, None, typical_noise=0.0456, assumed=True)
    assert (row.second_moment_shown, row.mean_shown, row.correlation_shown) == ("~0.12", "–", "0.046")
    row = ForecastRow("gaussian", 0.12345, 0.5, mean_assumed=True, typical_noise=0.5, typical_is_noise=True)
    assert (row.second_moment_shown, row.mean_shown, row.correlation_shown) == ("0.123", "~0.5", "0.5 (noise)")
    assert ForecastRow("gaussian").correlation_shown == "–"
    assert ForecastRow("gaussian", typical_noise=INF).correlation_shown == "noise"
    assert forecast_table._seen_from(NAN) == "–"
    assert forecast_table._seen_from(INF) == "none"
    assert forecast_table._seen_from(0.1234) == "0.12"
    plain = row.to_dict()
    assert plain["second_moment_error"] == 0.12345
    assert plain["mean_assumed"]
    assert not plain["assumed"]
    assert plain["typical_is_noise"]
    assert plain["clipped"] == 0.0
    assert plain["chosen_because"] is None


def test_costs_are_written_in_a_hundred() -> None:
    cost = DerivedCost(("age^2", "age:pay"), "laplace", 0.254, 0.117)
    assert str(cost) == (
        "derived features age^2, age:pay raise the noise on second moments of other features by up to 25%, "
        "on means by up to 12% (laplace)"
    )
    robust = replace(cost, mean=None, robust=True)
    assert str(robust).startswith("robust standard errors: the products age^2, age:pay raise")
    assert "means" not in str(robust)
    assert cost.to_dict() == {
        "names": ["age^2", "age:pay"],
        "mechanism": "laplace",
        "second_moment": 0.254,
        "mean": 0.117,
    }


def test_digits_are_significant() -> None:
    for value, words in (
        *((0.0, "0"), (INF, "inf"), (NAN, "nan"), (12.34, "12"), (1.234, "1.2"), (0.1234, "0.12"), (99.6, "100")),
        *((1234.0, "1,200"), (8.7e8, "870,000,000"), (1e9, "1e+09"), (1.26e-4, "0.00013"), (1.26e-5, "1.3e-05")),
        *((-0.0456, "-0.046"), (0.0994, "0.099")),
    ):
        assert picture._digits(value) == words, value
    assert picture._digits(1234.5, 3) == "1,230"
    assert picture._digits(1.2345, 3) == "1.23"
    assert picture._digits(1234.5, 4) == "1,234"


def test_refusals_in_a_few_words() -> None:
    def made(**facts: Any) -> Any:
        given = {"name": "one", "budget_kinds": frozenset({PURE.kind}), "most_features": None, "needs_row_norm": False}
        return SimpleNamespace(**given | facts)

    wide, unbounded = SimpleNamespace(n_features=2, row_norm=1.0), SimpleNamespace(n_features=2, row_norm=None)
    for mechanism, shape, budget, said, words in (
        (made(), wide, RHO, "", "needs ε alone"),
        (made(budget_kinds=frozenset({BOTH.kind, RHO.kind})), wide, PURE, "", "needs δ > 0 or ρ"),
        (made(budget_kinds=frozenset({BOTH.kind})), wide, PURE, "", "needs δ > 0"),
        (made(budget_kinds=frozenset({RHO.kind})), wide, PURE, "", "needs ρ"),
        (made(budget_kinds=frozenset({PURE.kind, BOTH.kind})), wide, RHO, "", "needs ε"),
        (made(budget_kinds=frozenset({PURE.kind, RHO.kind})), wide, BOTH, "", "needs ε alone or ρ"),
        (made(most_features=1), wide, PURE, "", "takes at most 1 feature"),
        (made(most_features=2), wide, PURE, "mechanism 'one' is slow: very", "is slow"),
        (made(needs_row_norm=True), unbounded, PURE, "", "needs bounds on every column"),
        (made(needs_row_norm=True), wide, PURE, "one cannot (since)", "cannot"),
        (made(), wide, PURE, "too few rows. Take more", "too few rows"),
        (made(), wide, PURE, "too few; more", "too few"),
    ):
        assert short_refusal(mechanism, shape, budget, said) == words  # type: ignore[arg-type]
    rows = [
        ForecastRow("a", refusal="long", short_refusal="short"),
        ForecastRow("b", 1.0),
        ForecastRow("c", refusal="other"),
        ForecastRow("d", refusal="longer", short_refusal="short"),
    ]
    assert forecast_table._refusals_in_a_line(rows) == "cannot run here: a, d (short); c (other)"
    assert forecast_table._refusals_in_a_line(rows[1:2]) == ""


# --- a forecast of rows made here ---------------------------------------------------------------------------------------------


def made(rows: list[ForecastRow], **facts: Any) -> Forecast:
    given: dict[str, Any] = dict(n_rows=1200, budget=PURE, neighbors=dpm.Neighbors.ADD_REMOVE, assumption=ASSUMPTION)
    return Forecast(tuple(rows), **given | facts)


ASSUMPTION = dpm.forecast(SCHEMA, n_rows=1200, epsilon=1.0, mechanism="laplace").assumption
CHOICE = Message("least-error", mechanism="isotropic", kind="pure", **PURE.facts)
ROWS = [
    ForecastRow("laplace", 0.2, 0.1, "exact-lattice", typical_noise=0.3),
    ForecastRow("auto", 0.1, None, "exact-lattice", typical_noise=0.2, chosen_because=CHOICE),
    ForecastRow("isotropic", 0.1, None, "exact-lattice", typical_noise=0.2),
    ForecastRow("slow", None, None, "idealized", clipped=0.123),
    ForecastRow("adaptive-ball", 0.3, None, "exact-lattice", guaranteed_error=0.456, assumed=True),
    ForecastRow("coinpress", refusal="needs more", short_refusal="needs ρ"),
]  # fmt: skip


def test_the_best_mechanism_has_the_least_noise_and_is_not_auto() -> None:
    forecast = made(ROWS)
    assert [row.mechanism for row in forecast.known] == ["isotropic", "auto", "laplace"]
    assert forecast.best == "isotropic"
    assert made([ROWS[3]]).best is None
    assert made([ROWS[3]]).asked_of is None
    assert forecast.asked_of == "isotropic"  # nothing is known in units: auto has no setting
    assert replace(forecast, mechanism="laplace").asked_of == "laplace"
    assert forecast["slow"] is ROWS[3]
    assert len(forecast) == 6
    assert list(forecast) == ROWS
    with pytest.raises(KeyError):
        forecast["gaussian"]
    assert (
        forecast.title == "Forecast for 1,200 rows, pure ε = 1, add_remove; no data read"
        or "1,200 rows" in forecast.title
    )
    assert forecast.units == ("unit-ball units" if ASSUMPTION.units is None else "in assumed standard deviations")


def test_what_is_said_of_the_best() -> None:
    forecast = made(ROWS)
    assert forecast._auto_takes_it
    assert forecast._why_best == ", which auto takes (the least noise on a typical mean; laplace has 1.5 × as much)"
    other = [replace(row, chosen_because=None) for row in ROWS]
    assert not made(other)._auto_takes_it
    assert made(other)._why_best == " (the least noise on a typical mean; laplace has 1.5 × as much)"
    near = [replace(ROWS[0], typical_noise=0.2 * 1.049), *other[1:]]
    assert "laplace has about as much" in made(near)._why_best
    near[0] = replace(ROWS[0], typical_noise=0.2 * 1.051)
    assert "laplace has 1.1 × as much" in made(near)._why_best
    assert made(other[1:3])._why_best == ""
    assert made([replace(row, typical_noise=0.0) for row in other[:3]])._why_best == ""
    noise: Any = SimpleNamespace(typical_correlation=lambda: 0.1)
    assert made(ROWS, noise=noise)._measure == " on a typical correlation"
    noise = SimpleNamespace(typical_correlation=lambda: NAN)
    assert made(ROWS, noise=noise)._measure == " on a typical mean"


def test_what_is_said_of_a_mechanism_that_was_asked_for() -> None:
    assert made(ROWS, mechanism="isotropic")._requested == "isotropic (the least noise on a typical mean)"
    assert made(ROWS, mechanism="auto")._requested == "auto, which takes isotropic (the least noise on a typical mean)"
    words = made(ROWS, mechanism="laplace")._requested
    assert words == "laplace (isotropic has the least noise on a typical mean, 0.67 × as much)"
    near = [replace(ROWS[0], typical_noise=0.2 * 1.049), *ROWS[1:]]
    assert made(near, mechanism="laplace")._requested == "laplace (the least noise on a typical mean)"
    infinite = [replace(row, typical_noise=INF) for row in ROWS[:3]]
    assert made(infinite, mechanism="laplace")._requested == "laplace (the least noise on a typical mean)"


def test_tables_and_remarks_of_mechanisms() -> None:
    forecast = made(ROWS, derived_cost=DerivedCost(("age^2",), "laplace", 0.5, None))
    table = forecast.mechanism_table()
    assert table[0] == ("mechanism", "second moment", "mean", "± corr.", "arithmetic")
    assert table[1] == ("laplace", "0.2", "0.1", "0.3", "exact-lattice")
    assert [line[0] for line in table[1:]] == ["laplace", "auto", "isotropic", "slow", "adaptive-ball"]
    remarks = forecast.mechanism_remarks
    assert remarks[0].startswith("derived features age^2")
    assert "adaptive-ball adapts to the table: its error is at most 0.456" in remarks[1]
    assert remarks[2] == "errors include the clipping of assumed rows: slow (0.12 of them)"
    assert remarks[3] == "not measured (too many features): the error of slow"
    assert remarks[4].startswith("auto: ")
    assert remarks[5] == "cannot run here: coinpress (needs ρ)"
    assert len(remarks) == 6
    assert forecast.mechanisms_text[1:] == (f"~ assumes: {ASSUMPTION.words}",)
    assert len(made(ROWS[:4]).mechanisms_text) == 1
    assert made(ROWS[:1]).mechanism_remarks == ()
    assert forecast.table() == table
    assert forecast.description == ()
    assert forecast.heading[0] == forecast.title
    plain = forecast.to_dict()
    assert (plain["best"], plain["in_units"], plain["changes"], plain["protected_unit"]) == (
        "isotropic",
        None,
        [],
        "row",
    )
    assert plain["derived_cost"]["second_moment"] == 0.5
    assert plain["robust_cost"] is None
    assert len(plain["mechanisms"]) == 6
    assert forecast.columns()["refusal"] == [None] * 5 + ["needs more"]
    with refused("forecast-without-plot"):
        forecast.plot()
    with refused("nothing-in-original-units"):
        forecast.noise_of("laplace")
    for budget, method in ((RHO, "epsilon_needed"), (PURE, "rho_needed"), (BOTH, "rho_needed")):
        with refused(("forecast-in-other-units-rho", "forecast-in-other-units-epsilon")):
            getattr(made(ROWS, budget=budget), method)(correlation=0.1)


# --- what is said of noise in units -------------------------------------------------------------------------------------------


def fake_noise(**facts: Any) -> Any:
    """Noise of a schema's features, with a description made for it."""
    typical = TypicalTable.of(SCHEMA)
    rows = [("feature", "mean", "± noise", "sd", "± noise")]
    rows += [(name, "1", "2", "3", "4") for name in SCHEMA.feature_names]
    said = SimpleNamespace(
        table=lambda: rows, noise_text="noise text", columns=lambda: {"mean_noise": [1.0], "mean": [2.0]}
    )
    given = dict(
        typical=typical, description=said, n_pairs=6, smallest_correlations=lambda: np.array([0.1, NAN, INF, 0.2, 0.3, 0.4]),
        typical_correlation=lambda: 0.05, typical_correlation_is_noise=False, worst_correlation=("pay", "age", 0.07, False),
        regression=None, coefficient=NAN, mean=np.ones(6),
    )  # fmt: skip
    return SimpleNamespace(**given | facts)


def test_columns_mark_what_is_assumed() -> None:
    noise = fake_noise()
    table = forecast_table.column_table(noise)
    assert table[0] == ("feature", "typical mean", "± noise", "typical sd", "± noise", "r seen from")
    assert table[1] == ("age", "~1", "2", "~3", "4", "0.1")
    assert table[2] == ("pay", "~1", "2", "~3", "4", "–")
    assert table[3] == ("g=a", "~1", "2", "~3", "–", "none")
    assert table[6][4] == "–"
    known = TypicalTable.of(SCHEMA, typical_sd={"age": 9.0}, typical_mean={"pay": 4.0, "flag": 0.3})
    table = forecast_table.column_table(fake_noise(typical=known, n_pairs=0))
    assert table[0][-1] == "± noise"
    assert [line[1][0] + line[3][0] for line in table[1:]] == ["~3", "1~", "~~", "~~", "~~", "13"]
    rows = [("feature",) * 5, *[(name, "noise", "2", "noise", "4") for name in SCHEMA.feature_names]]
    hidden = fake_noise(description=SimpleNamespace(table=lambda: rows))
    assert forecast_table.column_table(hidden)[1][1:4] == ("noise", "2", "noise")


def test_sentences_below_the_columns() -> None:
    lines = forecast_table._describe_correlations(fake_noise(), None, "laplace")
    assert lines[0] == "± on a correlation (the median of two columns that are not correlated): 0.05"
    assert "80% probability in a table of 6 pairs" in lines[1]
    assert len(lines) == 2
    worst = fake_noise(typical_correlation=lambda: 0.5, typical_correlation_is_noise=True)
    lines = forecast_table._describe_correlations(fake_noise(), worst, "ball")
    assert lines[0].endswith(": 0.05; 0.5 (noise) if rows fill their bounds and ball gains nothing")
    for largest, hidden, text in ((0.0751, False, "0.075"), (0.0751, True, "noise"), (0.075, False, "")):
        lines = forecast_table._describe_correlations(
            fake_noise(worst_correlation=("pay", "age", largest, hidden)), None, "laplace"
        )
        assert lines[2:] == ([f"± on the worst, pay ~ age: {text}"] if text else [])
    fit = SimpleNamespace(regressors=1, target="age")
    lines = forecast_table._describe_correlations(fake_noise(regression=fit, coefficient=0.0234), None, "laplace")
    assert lines[2] == (
        "± on a standardized coefficient (of age on one regressor that explains 50% of its variance): 0.023"
    )
    fit = SimpleNamespace(regressors=4, target="age")
    lines = forecast_table._describe_correlations(fake_noise(regression=fit, coefficient=INF), None, "laplace")
    assert lines[2].endswith("(of age on 4 regressors that explain 50% of its variance): noise")
    one = fake_noise(typical_correlation=lambda: NAN)
    assert forecast_table._describe_correlations(one, None, "laplace") == []
    said = forecast_table._describe_noise(one, fake_noise(mean=np.array([2.0, 3.0, 1.0, 1.0, 1.0, 1.0])), "ball")
    assert said[1] == "if rows fill their bounds and ball gains nothing, the noise is up to 3 × that"
    assert (said[0], len(said)) == ("noise text", 3)
    assert len(forecast_table._describe_noise(one, None, "ball")) == 2


def test_plain_values_of_noise() -> None:
    plain = forecast_table._plain_noise(fake_noise(), None)
    assert plain["columns"]["smallest_correlation"] == [0.1, None, None, 0.2, 0.3, 0.4]
    assert plain["columns"]["mean_noise"] == [1.0]
    assert "mean" not in plain["columns"]
    assert plain["columns"]["typical_sd_assumed"] == [True] * 6
    assert (plain["correlation"], plain["correlation_is_noise"], plain["correlation_at_most"]) == (0.05, False, None)
    assert (plain["coefficient"], plain["coefficient_is_noise"]) == (None, False)
    assert (plain["regressors"], plain["target"]) == (None, None)
    fit = SimpleNamespace(regressors=4, target="age")
    plain = forecast_table._plain_noise(fake_noise(regression=fit, coefficient=INF), fake_noise())
    assert (plain["coefficient"], plain["coefficient_is_noise"]) == (None, True)
    assert (plain["regressors"], plain["target"], plain["correlation_at_most"]) == (4, "age", 0.05)


# --- typical tables -----------------------------------------------------------------------------------------------------------


def test_guesses_replace_defaults_one_by_one() -> None:
    typical = TypicalTable.of(SCHEMA)
    np.testing.assert_allclose(typical.means, [25.0, -25.0, 1 / 3, 1 / 3, 1 / 3, 0.25])
    of_level = math.sqrt(2 / (3 * 4))  # of shares that are equally likely: (k − 1)/(k(k + 1))
    np.testing.assert_allclose(typical.standard_deviations, [10.0, 10.0, *[of_level] * 3, math.sqrt(3) / 4])
    assert typical.assumed.all()
    assert typical.assumed_means.all()
    assert typical.shares.tolist() == [False, False, True, True, True, True]
    assert typical.spectrum == (1.0, 0.5)
    assert TypicalTable.of(SCHEMA, decay=2.0).spectrum == (1.0, 0.25)
    assert TypicalTable.of(SCHEMA, spectrum=[3, 2, 1]).spectrum == (3.0, 2.0, 1.0)
    assert TypicalTable.of(dpm.Schema(dpm.Boolean("flag"))).spectrum == (1.0,)
    given = TypicalTable.of(SCHEMA, typical_sd={"age": 7.0, "flag": 0.3}, typical_mean={"pay": 1.0, "g=a": 0.2})
    assert given.standard_deviations[0] == 7.0
    assert given.means[5] == pytest.approx((1 - math.sqrt(1 - 4 * 0.09)) / 2)
    assert given.means[5] * (1 - given.means[5]) == pytest.approx(0.09)
    assert given.means[1] == 1.0
    assert given.standard_deviations[2] == pytest.approx(math.sqrt(0.16))
    assert given.assumed.tolist() == [False, True, False, True, True, False]
    assert given.assumed_means.tolist() == [True, False, False, True, True, False]
    both = TypicalTable.of(SCHEMA, typical_sd={"flag": 0.3}, typical_mean={"flag": 0.8})
    assert (both.means[5], both.standard_deviations[5]) == (0.8, 0.3)
    ranged = TypicalTable.of(dpm.Schema(dpm.Numeric("age", 0, 100, typical=(20, 80)), dpm.Numeric("pay", 1, 3)))
    np.testing.assert_allclose(ranged.means, [50.0, 1.5])
    np.testing.assert_allclose(ranged.standard_deviations, [15.0, 0.2])
    assert ranged.assumed.tolist() == ranged.assumed_means.tolist() == [False, True]


def test_words_name_what_is_assumed_alone() -> None:
    parts = {
        "standard deviations of a tenth of the range": [dpm.Numeric("age", 0, 100)],
        "Boolean columns true in a quarter of the rows": [dpm.Boolean("flag")],
        "all category shares equally likely": [dpm.Categorical("g", ["a", "b"])],
    }
    for words, columns in parts.items():
        said = TypicalTable.of(dpm.Schema(*columns)).words
        assert [other in said for other in parts] == [other == words for other in parts]
        assert said == f"~ assumes {words}: give typical_sd, a public guess, for others"
    ball = TypicalTable.of(dpm.Schema.unit_ball(3))
    assert (
        ball.words
        == "~ assumes coordinates spread evenly over the unit ball: give typical_sd, a public guess, for others"
    )
    np.testing.assert_allclose(ball.standard_deviations, 1 / math.sqrt(5))
    assert TypicalTable.of(dpm.Schema(dpm.Numeric("age", 0, 100)), typical_sd={"age": 3.0}).words == ""


def test_guesses_out_of_bounds_are_refused_and_those_at_the_ends_are_not() -> None:
    for what, feature, least, most in (("typical_mean", "age", 0.0, 100.0), ("typical_mean", "flag", 0.0, 1.0)):
        for value in (least, most):
            TypicalTable.of(SCHEMA, **{what: {feature: value}})
        for value in (least - 1e-9, most + 1e-9, NAN):
            with refused("not-between-bounds", parameter=what):
                TypicalTable.of(SCHEMA, **{what: {feature: value}})
    TypicalTable.of(SCHEMA, typical_sd={"age": 50.0})
    with refused("deviation-above-half-range", half=50.0):
        TypicalTable.of(SCHEMA, typical_sd={"age": 50.001})
    for value in (0.0, -1.0, NAN, INF):
        with refused("not-positive-of-feature"):
            TypicalTable.of(SCHEMA, typical_sd={"age": value})
    with refused("unknown-names-in", parameter="typical_sd"):
        TypicalTable.of(SCHEMA, typical_sd={"weight": 1.0})


# --- what an imagined noise averages ------------------------------------------------------------------------------------------


def test_noise_of_runs_is_averaged_by_their_probability() -> None:
    setting = dpm.forecast(SCHEMA, n_rows=2000, epsilon=1.0, mechanism="laplace").setting
    assert setting is not None
    law = gaussian(6, 2.0, 1.0, 3.0, 4.0).law()
    other = law.scaled(4.0)
    runs = (PossibleRun(0.2, law), PossibleRun(0.3, other), PossibleRun(0.5, law, centered=True))
    noise = ForecastNoise.of(setting.plan, setting.typical, 2000, runs)
    assert [entry[0] for entry in noise.releases] == [0.5, 0.5]
    assert [entry[1].centered for entry in noise.releases] == [True, False]
    mixed = noise.releases[1][1]
    np.testing.assert_allclose(mixed.noise.cell_variances(), (0.4 * 1 + 0.6 * 4) * law.cell_variances())
    assert mixed.tails is other
    parts = [release.describe() for _, release in noise.releases]
    expected = np.sqrt(sum(0.5 * np.square(part.mean_noise) for part in parts))
    np.testing.assert_allclose(noise.mean, expected)
    known = noise.typical.standard_deviations
    spread = np.sqrt(sum(0.5 * np.minimum(part.standard_deviation_noise, known) ** 2 for part in parts))
    lost = np.array(parts[0].standard_deviation_is_noise)
    np.testing.assert_allclose(noise.standard_deviation, np.where(lost, parts[0].standard_deviation_noise, spread))
    likelier = ForecastNoise.of(setting.plan, setting.typical, 2000, (*runs[:2], PossibleRun(0.6, law, centered=True)))
    assert likelier.release.centered
    assert not ForecastNoise.of(
        setting.plan, setting.typical, 2000, (*runs[:2], PossibleRun(0.4, law, centered=True))
    ).release.centered


def correlations_made(values: np.ndarray, **facts: Any) -> ForecastNoise:
    """Noise whose correlations are given."""
    forecast = dpm.forecast(SCHEMA, n_rows=2000, epsilon=1.0, mechanism="laplace").noise
    assert forecast is not None
    vars(forecast).update({"correlation": values} | facts)
    return forecast


def test_typical_and_worst_correlations_are_those_of_the_matrix() -> None:
    values = np.full((6, 6), NAN)
    for i in range(6):
        for j in range(6):
            if (i, j) != (j, i) and not (2 <= i <= 4 and 2 <= j <= 4):
                values[i, j] = 0.01 * (min(i, j) + 6 * max(i, j))
    hidden = np.zeros((6, 6), dtype=bool)
    noise = correlations_made(values, correlation_is_noise=hidden)
    assert noise.typical_correlation() == values[1, 0]
    assert noise.typical_correlation([0, 5]) == values[5, 0]
    assert noise.typical_correlation([0, 2, 5]) == np.median([values[2, 0], values[5, 0], values[5, 2]])
    assert math.isnan(noise.typical_correlation([2, 3]))
    assert math.isnan(noise.typical_correlation([0]))
    assert noise.worst_correlation == ("g=c", "flag", values[5, 4], False)
    assert not noise.typical_correlation_is_noise
    hidden[1, 0] = hidden[0, 1] = hidden[5, 4] = True
    assert correlations_made(values, correlation_is_noise=hidden).typical_correlation_is_noise
    assert correlations_made(values, correlation_is_noise=hidden).worst_correlation[3]
    assert noise.n_pairs == int(np.tril(noise.comparable, -1).sum())
    smallest = np.array([[NAN, 0.1, 0.2], [0.1, NAN, NAN], [NAN, NAN, NAN]])
    found = correlations_made(values, smallest_correlation=smallest).smallest_correlations()
    np.testing.assert_allclose(found, [0.15, 0.1, NAN])
    nothing = correlations_made(np.full((6, 6), NAN))
    assert nothing.worst_correlation[:2] == ("", "")
    visible: Any = SimpleNamespace(n_rows=5)
    assert _first_order(visible, np.ones((2, 2))).tolist() == [[1.0, 1.0], [1.0, 1.0]]


# --- changes and searches -----------------------------------------------------------------------------------------------------


def test_changes_are_listed_by_what_they_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    made_here = [
        *[Change("column", f"c{index}", "m", 1.0, after) for index, after in enumerate((0.8, 0.5, 0.7))],
        Change("rows", "none", "m", 0.0, 0.0),
    ]
    others = [
        Change("bounds", f"b{index}", "m", 2.0, 2.0 * ratio) for index, ratio in enumerate((0.92, 0.921, 0.9, 0.2))
    ]
    more = [Change("delta", f"d{index}", "m", 1.0, 0.1 * index) for index in range(1, 8)]
    monkeypatch.setattr(changes, "_without_one_column", lambda *_: iter(made_here))
    monkeypatch.setattr(changes, "_tighter_bounds", lambda *_: iter(others))
    for name in ("_without_half", "_of_complete_rows", "_of_size"):
        monkeypatch.setattr(changes, name, lambda *_: iter([made_here[3]]))
    monkeypatch.setattr(changes, "_with_delta", lambda *_: iter([]))
    setting: Any = SimpleNamespace(noise=1)
    assert [change.what for change in changes.changes(setting)] == ["b3", "c1", "b2", "b0"]
    monkeypatch.setattr(changes, "_with_delta", lambda *_: iter(more))
    assert [change.what for change in changes.changes(setting)] == ["d1", "d2", "b3", "d3", "d4", "c1"] or len(
        changes.changes(setting)
    ) == 6
    assert changes.changes(SimpleNamespace(noise=None)) == ()  # type: ignore[arg-type]
    change = Change("rows", "twice", "on a mean", 0.4, 0.1234)
    assert change.ratio == pytest.approx(0.3085)
    assert str(change) == "twice: ± 0.4 → 0.12 on a mean"
    assert change.to_dict()["ratio"] == change.ratio


def searched(needed: float, monkeypatch: pytest.MonkeyPatch, *, of_rows: bool) -> list[float]:
    asked: list[float] = []

    def holds(setting: Any, _: Any) -> bool:
        size = setting.n_rows if of_rows else setting.size_of_budget
        asked.append(size)
        return size >= needed

    monkeypatch.setattr(changes, "_holds", holds)
    return asked


def test_searches_end_at_the_least_that_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = dpm.forecast(SCHEMA, n_rows=2000, epsilon=1.0, mechanism="laplace").setting
    assert setting is not None
    wanted: Any = None
    for needed in (1, 2, 3, 4, 5, 17, 1000, 4**19, 10**12 - 10**9, 10**12, 10**12 + 1):
        asked = searched(needed, monkeypatch, of_rows=True)
        if needed > 10**12:
            with refused("not-within-rows", most=10**12):
                changes.rows_needed(setting, wanted)
            continue
        assert changes.rows_needed(setting, wanted) == needed
        assert len(asked) < 70
    for budgeted in (setting, replace(setting, budget=RHO), replace(setting, budget=BOTH)):
        for size in (2e-9, 0.37, 99.0):
            asked = searched(size, monkeypatch, of_rows=False)
            found = changes.budget_needed(budgeted, wanted)
            assert size <= found <= size * (1 + 1.1e-6)
            assert len(asked) < 60
        searched(101.0, monkeypatch, of_rows=False)
        symbol = "ρ" if budgeted.budget is RHO else "ε"
        with refused("not-within-budget", symbol=symbol, most=100.0):
            changes.budget_needed(budgeted, wanted)


def test_wanted_accuracies_hold_where_every_one_does() -> None:
    typical = TypicalTable.of(SCHEMA)
    hidden = np.array([False, True, False, False, False, False])
    said = SimpleNamespace(standard_deviation_is_noise=hidden)
    noise: Any = SimpleNamespace(
        typical=typical, typical_correlation=lambda: 0.1, typical_correlation_is_noise=False, coefficient=0.2,
        description=said, mean=np.array([1.0, 2.0, 0.1, 0.1, 0.1, 0.3]), standard_deviation=np.arange(1.0, 7.0),
    )  # fmt: skip
    for given, holds in (
        ({"correlation": 0.1}, True), ({"correlation": 0.099}, False), ({"coefficient": 0.2}, True),
        ({"coefficient": 0.19}, False), ({"mean": 2.0}, True), ({"mean": 1.9}, False), ({"mean": {"age": 1.0}}, True),
        ({"mean": {"age": 0.9}}, False), ({"share": 0.3}, True), ({"share": {"flag": 0.29}}, False),
        ({"sd": {"age": 1.0}}, True), ({"sd": {"age": 0.9}}, False),
        ({"sd": {"pay": 99.0}}, False), ({"sd": 99.0}, False), ({"share": 0.3, "mean": 1.0}, False),
    ):  # fmt: skip
        assert Wanted.of(typical, **given).holds(noise) is holds, given
    noise.typical_correlation_is_noise = True
    assert not Wanted.of(typical, correlation=0.1).holds(noise)
    noise.coefficient = NAN
    assert not Wanted.of(typical, coefficient=9.0).holds(noise)
    assert Wanted.of(typical, mean=2.0).mean == {"age": 2.0, "pay": 2.0}
    assert set(Wanted.of(typical, share=2.0).share) == {"g=a", "g=b", "g=c", "flag"}
    for given, code in (
        ({}, "accuracy-needed"), ({"mean": {"flag": 1.0}}, "accuracy-of-other-kind"),
        ({"share": {"age": 1.0}}, "accuracy-of-other-kind"),
        ({"sd": {"x": 1.0}}, "unknown-names-in"), ({"mean": 0.0}, "not-positive"), ({"correlation": INF}, "not-positive"),
    ):  # fmt: skip
        with refused(code):
            Wanted.of(typical, **given)
    one = TypicalTable.of(dpm.Schema(dpm.Boolean("flag")))
    for given, code in (({"mean": 1.0}, "accuracy-without-feature"), ({"correlation": 1.0}, "accuracy-of-two-columns")):
        with refused(code):
            Wanted.of(one, **given)


def test_noise_is_measured_on_correlations_else_on_means() -> None:
    typical = TypicalTable.of(SCHEMA)
    noise: Any = SimpleNamespace(
        typical=typical, typical_correlation=lambda _: 0.1, mean=np.array([1.0, 4.0, 9, 9, 9, 9])
    )
    assert changes._measured(noise, [0, 1]) == (0.1, "on a correlation")
    noise.typical_correlation = lambda _: NAN
    assert changes._measured(noise, [0, 1]) == (pytest.approx(0.25), "sd on a mean")
    noise.typical = replace(typical, standard_deviations=np.array([0.5, 0.5, *typical.standard_deviations[2:]]))
    assert changes._measured(noise, [0, 1])[0] == pytest.approx(5.0)
    noise.typical = replace(typical, standard_deviations=np.array([0.0, *typical.standard_deviations[1:]]))
    assert math.isnan(changes._measured(noise, [0, 1])[0])


# --- ways ---------------------------------------------------------------------------------------------------------------------


def test_the_best_way_has_the_least_error_with_its_share() -> None:
    def way(one: float, share: float) -> Way:
        return Way("q", "u", "own(…)", one, 0.1, share)

    assert way(1.05, 1.0).best == "release(…)"
    assert way(1.051, 1.0).best == "own(…)"
    assert way(1.0, NAN).best == "release(…)"
    assert way(INF, 1.0).best == "own(…)"
    assert Ways((way(INF, 1.0),), "t").best == "own(…)"
    assert Ways((way(1.0, 1.0),) * 2, "t").best == "release(…)"
    assert Ways((way(2.0, 1.0),) * 2, "t").best == "a release for each question"
    assert Ways((way(2.0, 1.0), way(1.0, 1.0)), "t").best == "depends on the question"
    several = Ways((way(2.0, 1.0), way(INF, NAN)), "t")
    table = several.table()
    assert [len(line) for line in table] == [6, 6, 6]
    assert "noise" in table[2]
    assert "with 1/2 of the budget" in table[0]
    assert "1/2" in several.remarks[1]
    assert len(Ways((way(2.0, 1.0),), "t").table()[0]) == 5
    assert ways._root_mean_square(np.array([3.0, -4.0])) == pytest.approx(math.sqrt(12.5))
    typical: Any = SimpleNamespace(standard_deviations=np.array([2.0, 0.0]))
    np.testing.assert_array_equal(ways._deviations(typical), [2.0, 1.0])


def test_assumptions_are_of_a_kind() -> None:
    assert isinstance(ASSUMPTION, Assumption)


def planned(
    schema: dpm.Schema, mechanism: str, budget: PrivacyBudget, n_rows: int = 2000, **guesses: Any
) -> ReleasePlan:
    typical = TypicalTable.of(schema, **guesses)
    return ReleasePlan(typical, n_rows, budget, dpm.Neighbors.ADD_REMOVE, MECHANISMS[mechanism]())


def test_noise_hides_the_typical_correlation_where_it_hides_more_than_half() -> None:
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 1) for name in "abcd"))
    for hidden, expected in ((2, False), (3, False), (4, True)):
        noise = planned(schema, "laplace", PURE).noise
        assert noise is not None
        mask, (first, second) = np.zeros((4, 4), dtype=bool), np.tril_indices(4, -1)
        mask[first[:hidden], second[:hidden]] = True
        vars(noise)["correlation_is_noise"] = mask
        assert noise.typical_correlation_is_noise is expected
    one = planned(dpm.Schema(dpm.Numeric("a", 0, 1)), "laplace", PURE).noise
    assert one is not None
    assert not one.typical_correlation_is_noise
    assert one.correlation_is_noise.tolist() == [[False]]
    assert np.isnan(one.correlation).all()
    assert one.regression is None
    assert math.isnan(one.coefficient)


def test_a_regression_over_several_runs_has_their_root_mean_square(monkeypatch: pytest.MonkeyPatch) -> None:
    law = gaussian(6, 2.0, 1.0, 3.0, 4.0).law()
    setting = planned(SCHEMA, "laplace", PURE)
    noise = ForecastNoise.of(
        setting.plan, setting.typical, 2000, (PossibleRun(0.6, law), PossibleRun(0.4, law, centered=True))
    )
    (_, centered), (_, likeliest) = noise.releases
    assert noise.release is likeliest
    asked: list[tuple[bool, bool]] = []
    said: dict[tuple[bool, bool], TypicalRegression | None] = {}

    def fitted(release: Any, target: int, *, first_order: bool = False) -> TypicalRegression | None:
        assert target == 0
        asked.append((release is centered, first_order))
        return said[release is centered, first_order]

    def fit(noise: float) -> TypicalRegression:
        return TypicalRegression("age", 5, noise)

    monkeypatch.setattr(imagined_release, "typical_regression", fitted)
    for other, at_first_order, counted in (
        (fit(0.5), None, 0.5),
        (fit(7.0), None, 1.0),
        (fit(INF), fit(0.3), 0.3),
        (fit(INF), fit(2.0), 1.0),
        (None, fit(0.3), 0.3),
        (None, None, 1.0),
    ):
        said = {(False, False): fit(0.2), (True, False): other, (True, True): at_first_order}
        vars(noise).pop("regression", None)
        assert noise.regression == TypicalRegression("age", 5, pytest.approx(math.sqrt(0.6 * 0.04 + 0.4 * counted**2)))  # type: ignore[arg-type]
    for lost in (fit(INF), None):
        said, asked[:] = {(False, False): lost}, []
        vars(noise).pop("regression", None)
        assert noise.regression == lost
        assert asked == [(False, False)]


def test_an_imagined_release_about_its_mean_is_the_same_table() -> None:
    spreads = {"age": 2.0, "pay": 2.0}
    setting = planned(SCHEMA, "adaptive-ball", RHO, 9000, typical_sd=spreads, typical_mean={"flag": 0.01})
    law = gaussian(6, 2.0, 1.0, 3.0, 4.0).law()
    about, plain = (
        ForecastNoise.of(setting.plan, setting.typical, 9000, (PossibleRun(1.0, law, centered=centered),)).release
        for centered in (True, False)
    )
    for release in (about, plain):
        assert (release.mechanism, release.mechanism_options) == ("adaptive-ball", setting.mechanism.options)
        assert release.details == setting.plan.details
        assert release.diagnostics == {}
        assert release.warnings == ()
        assert release.feature_names == SCHEMA.feature_names
        assert release.noisy_count == 9000.0
        assert release.as_drawn is release.with_repair("none") is release
        assert release.drawn_parts == (release,)
        assert release.count_is_public is setting.plan.count_is_public is False
        assert not release.privacy.private
        assert (release.privacy.budget, release.privacy.rules) == (setting.plan.cost, ())
        assert (release.present, release.both_present, release.available, release.numbers_alone) == (
            None,
            None,
            None,
            False,
        )
    n, mean = 9000, about.unit_ball_mean
    np.testing.assert_array_equal(about.center, mean)
    assert plain.center is None
    np.testing.assert_array_equal(about.noisy_sum, np.zeros(6))
    np.testing.assert_allclose(about.noisy_gram, n * about.unit_ball_covariance)
    np.testing.assert_allclose(plain.noisy_gram, n * (plain.unit_ball_covariance + np.outer(mean, mean)))
    np.testing.assert_allclose(about.zero_of_units - mean, plain.zero_of_units)
    for name in ("mean", "covariance", "second_moment", "correlation", "unit_ball_gram"):
        np.testing.assert_array_equal(getattr(about, name), getattr(plain, name))
    np.testing.assert_allclose(about.correlation[2:5, 2:5], 1.5 * np.eye(3) - 0.5)


def test_a_plan_of_another_budget_keeps_its_kind() -> None:
    setting = planned(SCHEMA, "laplace", PURE)
    for budget, size, other in (
        (PURE, 1.0, PrivacyBudget.pure(3.0)),
        (RHO, 0.5, PrivacyBudget.zcdp(3.0)),
        (BOTH, 2.0, PrivacyBudget.approximate(3.0, 1e-6)),
    ):
        assert replace(setting, budget=budget).size_of_budget == size
        assert replace(setting, budget=budget).with_budget(3.0) == replace(setting, budget=other) or (
            replace(setting, budget=budget).with_budget(3.0).budget == other
        )


def test_what_derived_features_cost_is_compared_by_the_first_mechanism_with_both_plans() -> None:
    schema = dpm.Schema(dpm.Numeric("a", 0, 10), dpm.Numeric("b", -5, 5), dpm.Power("a", 2))
    shape = MomentShape.of(schema, mean=True)

    def cost(*mechanisms: str, **facts: Any) -> DerivedCost | None:
        given = {"schema": schema, "less": schema.without_derived, "shape": shape} | facts
        less, neighbors = given["less"], dpm.Neighbors.ADD_REMOVE
        return forecasting._derived_cost(given["schema"], less, given["shape"], PURE, neighbors, None, mechanisms)

    found = cost("laplace", "isotropic")
    assert found is not None
    assert (found.names, found.mechanism, found.robust) == (("a^2",), "laplace", False)
    # a plan that is refused, and one whose noise is not known before a run, are passed over
    assert cost("gaussian", "iterative-eigenvectors", "laplace") == found
    assert cost("gaussian", "iterative-eigenvectors") is None
    assert cost() is None
    assert cost("laplace", less=schema) is None
    laws = [
        MECHANISMS["laplace"]()
        .plan(MomentShape.of(one, mean=True), PURE, "add_remove")
        .model.fixed_law.cell_variances()
        for one in (schema, schema.without_derived)
    ]
    units = schema.encoding(mean=True).scale[:2] / schema.without_derived.encoding(mean=True).scale
    gram = np.sqrt(laws[0][1:3, 1:3] / laws[1][1:, 1:]) * np.outer(units, units)
    assert found.second_moment == pytest.approx(gram.max() - 1.0)
    assert found.mean == pytest.approx((np.sqrt(laws[0][0, 1:3] / laws[1][0, 1:]) * units).max() - 1.0)
    without = cost("laplace", shape=MomentShape.of(schema, mean=False))
    assert without is not None
    assert without.mean is None
    some = forecasting._largest_ratio(np.array([9.0, 4.0, 1.0]), np.array([1.0, 0.0, 4.0]), np.array([2.0, 50.0, 5.0]))
    assert some == 6.0


def test_two_columns_have_a_correlation_and_one_has_none() -> None:
    two = TypicalTable.of(dpm.Schema(dpm.Numeric("a", 0, 1), dpm.Boolean("b")))
    assert Wanted.of(two, correlation=0.1, coefficient=0.2).coefficient == 0.2
    levels = TypicalTable.of(dpm.Schema(dpm.Categorical("g", ["x", "y", "z"])))
    for name in ("correlation", "coefficient"):
        with refused("accuracy-of-two-columns", parameter=name):
            Wanted.of(levels, **{name: 0.1})


def test_what_is_needed_is_asked_of_the_mechanism_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for budget, mechanism in ((PURE, "matrix-laplace"), (BOTH, "gaussian"), (RHO, "gaussian")):
        asked: list[tuple[str, Any]] = []

        def needed(plan: Any, wanted: Any, asked: list[tuple[str, Any]] = asked) -> float:
            asked.append((plan.mechanism.name, wanted.correlation))
            return 7.0

        monkeypatch.setattr(forecast_table, "rows_needed", needed)
        monkeypatch.setattr(forecast_table, "budget_needed", needed)
        setting = planned(SCHEMA, mechanism, budget)
        forecast = made(ROWS, budget=budget, setting=setting, noise=setting.noise)
        assert forecast.asked_of == "auto"
        of_budget = forecast.rho_needed if budget is RHO else forecast.epsilon_needed
        for method in (forecast.rows_needed, of_budget):
            assert method(correlation=0.1) == method(correlation=0.2, mechanism=mechanism) == 7.0
        assert asked == [("auto", 0.1), (mechanism, 0.2)] * 2
        asked.clear()
        own = replace(forecast, mechanism=mechanism)
        assert own.rows_needed(correlation=0.3) == 7.0
        assert asked == [(mechanism, 0.3)]
        refusing = [replace(row, refusal="no") if row.mechanism == "auto" else row for row in ROWS]
        assert replace(forecast, rows=tuple(refusing)).asked_of == "isotropic"
        assert forecast.noise_of(mechanism).release.mechanism == mechanism
        with refused("original-units-unknown", mechanism="coinpress"):
            made(ROWS, budget=RHO, setting=replace(setting, budget=RHO)).noise_of("coinpress")


def test_text_and_tables_of_a_forecast_in_units() -> None:
    setting = planned(SCHEMA, "matrix-laplace", PURE)
    forecast = made(ROWS, setting=setting, noise=setting.noise)
    change = Change("rows", "twice", "on a mean", 0.4, 0.1234)
    assert forecast.description[-1] != f"  {change}"
    helped = replace(forecast, changes=(change,))
    assert helped.description[-2:] == ("what would help:", f"  {change}")
    assert helped.description[:-2] == forecast.description
    assert forecast.remarks == (*forecast.description, *forecast.mechanisms_text, *forecast.mechanism_remarks)
    assert made(ROWS).remarks == made(ROWS).mechanism_remarks
    lines = forecast.text().split("\n")
    heads = len(forecast.heading)
    assert tuple(lines[:heads]) == forecast.heading
    assert len(forecast.heading) == 3
    assert lines[heads].split()[0] == "feature"
    middle = heads + 7 + len(forecast.description)
    assert tuple(lines[heads + 7 : middle]) == forecast.description
    assert lines[middle] == ""
    assert tuple(lines[middle + 1 : middle + 3]) == forecast.mechanisms_text
    assert forecast.heading[1].startswith("best: isotropic")
    assert replace(forecast, mechanism="laplace").heading[1].startswith("mechanism: laplace")
    assert len(forecast.columns()["feature"]) == 6
    assert forecast.to_dict()["in_units"]["target"] == forecast.noise.regression.target  # type: ignore[union-attr]
    html = forecast._repr_html_()
    assert html.count("<table") == 2
    assert made(ROWS)._repr_html_().count("<table") == 1
    plain = made(ROWS).text().split("\n")
    assert tuple(plain[:2]) == made(ROWS).heading
    unit = dpm.PrivacyUnit("person", 3)
    assert replace(forecast, privacy_unit=unit).rows_text == unit.rows_text
    assert replace(forecast, privacy_unit=unit).to_dict()["protected_unit"] == unit.to_dict()
    part = forecast_table._Part(("head",), [("a", "b"), ("1", "2"), ("3", "4")], ("remark",))
    assert part.to_dict() == {"a": ["1", "3"], "b": ["2", "4"]}
    assert (part.heading, part.remarks, part.table()[1]) == (("head",), ("remark",), ("1", "2"))


def test_a_correlation_that_is_not_known_at_the_worst_is_none() -> None:
    for value, kept in ((NAN, None), (INF, None), (0.5, 0.5)):
        plain = forecast_table._plain_noise(fake_noise(), fake_noise(typical_correlation=lambda value=value: value))
        assert plain["correlation_at_most"] == kept
        assert forecast_table._plain_noise(fake_noise(typical_correlation=lambda value=value: value), None)[
            "correlation"
        ] == kept  # fmt: skip


def test_marks_of_a_forecast_are_of_positive_numbers() -> None:
    ax = Figure().subplots()
    values = np.array([0.5, 0.0, NAN, INF, 2.0, -1.0, 0.0, 3.0])
    lost = np.array([False, False, False, False, True, False, True, False])
    picture._marks(ax, values, lost, np.arange(8), "o", "red", "words")
    full, hollow = ax.lines
    assert full.get_xydata().tolist() == [[0.5, 0.0], [3.0, 7.0]]
    assert hollow.get_xydata().tolist() == [[2.0, 4.0]]
    assert (full.get_label(), full.get_color()) == ("words", "red")
    assert hollow.get_markerfacecolor() == "white"


def test_noise_of_one_column_is_in_its_standard_deviations() -> None:
    """As of a mechanism's row, and as the picture against the budget has it."""
    flag = planned(dpm.Schema(dpm.Boolean("flag")), "laplace", PURE, typical_mean={"flag": 0.1})
    age = planned(dpm.Schema(dpm.Numeric("age", 0, 120)), "laplace", PURE, typical_sd={"age": 18.0})
    for setting in (flag, age):
        noise = setting.noise
        assert noise is not None
        relative = float(noise.mean[0] / setting.typical.standard_deviations[0])
        assert forecasting._typical_noise(setting.plan, setting.typical, 2000) == (pytest.approx(relative), False)
        assert picture._noise_of(setting, one_column=True) == (pytest.approx(relative), False)
        assert math.isnan(picture._noise_of(setting)[0])
    few = replace(age, n_rows=1)
    assert forecasting._typical_noise(few.plan, few.typical, 1)[1]
    constant = replace(flag, typical=replace(flag.typical, standard_deviations=np.zeros(1)))
    assert forecasting._typical_noise(constant.plan, constant.typical, 2000) == (None, False)
    unknown = replace(age, mechanism=MECHANISMS["iterative-eigenvectors"]())
    assert forecasting._typical_noise(unknown.plan, age.typical, 2000) == (None, False)
    assert math.isnan(picture._noise_of(unknown)[0])
    nothing = picture._noise_at(age, MECHANISMS["gaussian"](), 1.0, one_column=True)
    assert math.isnan(nothing[0])
    assert not nothing[1]


def test_a_regression_of_some_columns_is_of_a_release_of_these(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def noted(noise: Any, columns: Any) -> float:
        asked.append((noise.typical, list(columns)))
        return 0.5

    setting = planned(SCHEMA, "gaussian", RHO, typical_sd={"pay": 7.0}, typical_mean={"flag": 0.1, "age": 30.0})
    monkeypatch.setattr(ways, "_of_regression", noted)
    assert ways._of_columns(setting, ["pay", "flag", "g"], BOTH) == 0.5
    ((few, columns),) = asked
    assert columns == ["pay", "flag", "g"]
    assert few.schema.names == ("pay", "g", "flag")
    kept = [setting.typical.schema.feature_names.index(name) for name in few.schema.feature_names]
    np.testing.assert_allclose(few.standard_deviations[[0, -1]], setting.typical.standard_deviations[kept][[0, -1]])
    np.testing.assert_array_equal(few.means, setting.typical.means[kept])


def test_a_table_of_a_release_has_the_noise_of_its_levels() -> None:
    noise = planned(SCHEMA, "gaussian", RHO).noise
    assert noise is not None
    levels = noise.mean[2:5] * 2000.0
    assert ways._of_table(noise, ["g"]) == pytest.approx(math.sqrt(np.mean(levels**2)))
    assert math.isnan(ways._of_table(noise, ["g", "flag", "g"]))


def test_a_forecast_is_drawn_if_its_noise_is_known() -> None:
    setting = planned(SCHEMA, "matrix-laplace", PURE)
    forecast = made(ROWS, setting=setting, noise=setting.noise)
    ax = forecast.plot(n_features=3, ax=Figure().subplots())
    assert len(ax.get_yticks()) == 3
    assert ax.get_title(loc="left").replace("\n", " ") == f"{forecast.title}: matrix-laplace"
    assert forecast.plot("budget", ax=Figure().subplots()).get_xlabel() == "budget, ε"
    for facts in ({"setting": None}, {"noise": None}):
        with refused("forecast-without-plot"):
            replace(forecast, **facts).plot()
    with refused("not-one-of", parameter="against"):
        forecast.plot("rows")  # type: ignore[arg-type]


def test_rows_at_the_edge_of_a_ball_are_in_it() -> None:
    distances = imagined_release._Distances(0.25, 0.0, 40, 1.0)
    assert distances.rows_beyond(np.array([0.49, 0.5, 0.51])).tolist() == [40.0, 0.0, 0.0]
    constant = fake_noise(typical_correlation=lambda: NAN, mean=np.array([0.0, 1.0, 1.0, 1.0, 1.0, 0.0]))
    worst = fake_noise(mean=np.array([0.0, 3.0, 1.0, 1.0, 1.0, 2.0]))
    assert "up to 3 ×" in forecast_table._describe_noise(constant, worst, "ball")[1]


def test_error_of_means_allows_for_noise_on_the_count_only_where_the_count_is_not_public() -> None:
    schema = dpm.Schema(dpm.Numeric("a", 0, 10), dpm.Numeric("b", 0, 10))
    for neighbors, n_rows in ((Neighbors.ADD_REMOVE, None), (Neighbors.REPLACE_ONE, 2000)):
        setting = replace(planned(schema, "gaussian", RHO), neighbors=neighbors)
        plan = automatic_mean(schema, RHO).plan(MomentShape.of(schema, mean=True, n_rows=n_rows), RHO, neighbors)
        deviations = setting.typical.standard_deviations
        scale = schema.encoding(mean=True).scale
        errors = plan.expected_errors(NormalRows(2000, deviations / scale)) * scale / deviations
        assert ways._of_means(setting, RHO) == pytest.approx(math.sqrt(np.mean(errors**2)), rel=1e-9)
