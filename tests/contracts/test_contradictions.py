"""Nothing printed contradicts anything printed: a search over releases of tables, in texts and in objects.

`test_the_search_finds_planted_contradictions` plants some.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dpmoments as dpm
from contracts.contradictions import (
    KINDS,
    Found,
    counted,
    forecasted,
    grouped,
    of_any_budget,
    of_few_rows_contradict,
    one_estimate,
    others_contradict,
    search,
    tables,
)
from dpmoments.analysis import (
    answers,
    classifiers,
    components,
    contrasts,
    group_means,
    group_tests,
    normal_equations,
    regression_results,
)
from dpmoments.analysis import correlations as correlation_module
from dpmoments.analysis import description as description_module
from dpmoments.analysis.cross_table import CountTable
from dpmoments.planning import forecast_noise
from support.drawn_releases import planted

pytestmark = pytest.mark.long(sets=None)


def test_answers_do_not_contradict_each_other(tmp_path: Path) -> None:
    rows, contradictions = search(400, 0, tmp_path, KINDS)
    assert rows >= 400
    assert contradictions == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "epsilon"), [("made", 0.3), ("adult", 1.0), ("made", 4.0)])
def test_a_quantity_has_one_estimate_at_every_level(name: str, epsilon: float) -> None:
    found = Found()
    one_estimate(name, epsilon, 0, found)
    assert found.rows >= 100
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        (
            correlation_module.correlations,
            "1.0), result, np.nan",
            "1.0), np.clip(result, *errors.interval(level)), np.nan",
        ),
        (group_means.means_by, "unknown, np.nan, result", "unknown, np.nan, (lower + upper) / 2.0"),
        (normal_equations.NormalEquations.of, "repaired=repaired", "repaired=None"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_planted_second_estimates_are_found(function: Any, before: str, after: str) -> None:
    found = Found()
    with planted(function, before, after):
        one_estimate("made", 1.0, 0, found, levels=(0.5, 0.95))
    assert found


def test_a_forecast_of_limits_of_deviations_does_not_contradict_itself() -> None:
    found, columns = Found(), (dpm.Numeric("x", 0, 100), dpm.Numeric("y", -2, 2), dpm.Boolean("flag"))
    table = dpm.forecast(dpm.Schema(*columns), n_rows=250, epsilon=0.5)
    forecasted(table, found)
    assert "~below" in table.text()
    assert found == []


def test_answers_of_few_rows_do_not_contradict_each_other() -> None:
    assert of_few_rows_contradict() == []


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0])
def test_what_nothing_is_known_of_has_no_number(epsilon: float) -> None:
    assert of_any_budget(epsilon, int(10 * epsilon)) == []


@pytest.mark.slow
def test_numbers_that_are_not_there_are_found() -> None:
    of_ends = planted(answers.rounded_end, "if shown_as_zero", "if False")
    with planted(answers.step_errors, "np.fmin(stated, half)", "stated"), of_ends:
        assert of_any_budget(0.1, 1)


@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        (correlation_module.correlations, "[of_opposites & usable &", "[of_opposites &"),
        (components.pca, "np.maximum(eigenvalues, 0.0)", "eigenvalues"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_planted_contradictions_of_few_rows_are_found(function: Any, before: str, after: str) -> None:
    with planted(function, before, after):
        assert of_few_rows_contradict()


@pytest.mark.slow
def test_ten_thousand_rows_do_not_contradict_each_other(tmp_path: Path) -> None:
    rows, contradictions = search(10_000, 1, tmp_path, KINDS)
    assert rows >= 10_000
    assert contradictions == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        (correlation_module.correlations, "1.0), result, np.nan", "1.0), result + 0.2, np.nan"),
        (correlation_module._Errors.p_values, "far, privacy", "0.9 * far, privacy"),
        (correlation_module.Correlations._verdicts, "+ self.upper[pairs]", "- 2.0 * self.upper[pairs]"),
        (description_module.described, "np.sqrt(np.where(", "1.01 * np.sqrt(np.where("),
        (description_module._describe_values, "cell for cell", "f'{cell}123' if '.' in cell else cell for cell"),
        (contrasts.estimate_columns, "names[1], errors=step", "names[1], errors=1e-3 * step"),
        (regression_results.FittedLine.predict, "+ self.intercept", "+ 1.01 * self.intercept"),
        (group_means.means_by, "levels.row_counts(release)", "np.round(levels.row_counts(release) + 0.6)"),
        (regression_results.FittedLine.r_squared, " if self._r_squared_is_known else math.nan", ""),
        (group_tests.AnalysisOfVariance.table, "rounded(*pair)", "rounded(pair[0], 1e-3 * pair[1])"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_the_search_finds_planted_contradictions(function: Any, before: str, after: str, tmp_path: Path) -> None:
    with planted(function, before, after):
        _, contradictions = search(150, 0, tmp_path, to_the_end=False)
    assert contradictions


@pytest.mark.parametrize(
    "name", ["made", *(pytest.param(name, marks=pytest.mark.slow) for name in ("adult", "airfoil", "survey"))]
)
def test_groups_counts_and_forecasts_do_not_contradict_themselves(name: str) -> None:
    assert others_contradict(0, name) == []


@pytest.mark.slow
def test_many_groups_counts_and_forecasts_do_not_contradict_themselves() -> None:
    assert [each for seed in range(1, 16) for name in tables() for each in others_contradict(seed, name)] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reader", "function", "before", "after"),
    [
        (grouped, classifiers.NaiveBayes.table, "rounded(mean, noise)", "rounded(mean, 1e-3 * noise)"),
        (grouped, classifiers.NaiveBayes.table, "if hidden", "if False"),
        (grouped, classifiers.naive_bayes, "priors / priors.sum()", "priors / counts.sum()"),
        (counted, CountTable.conf_int, "np.floor(upper)", "np.floor(upper) - 30.0"),
        (counted, CountTable._columns, 'f"{share:.1%}"', 'f"{share * 1.01:.1%}"'),
        (forecasted, forecast_noise.clear_from, "{smallest:.2g}", "{1.1 * smallest:.2g}"),
        (forecasted, forecast_noise.ForecastNoise._columns, "typical.means, ", "-typical.means, "),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_planted_contradictions_of_groups_counts_and_forecasts_are_found(
    reader: Any, function: Any, before: str, after: str
) -> None:
    with planted(function, before, after):
        assert others_contradict(0, "made", [reader])
