"""What tests of several files share because it takes long to start, and which tests are in which suite."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis.internal.conjecture import providers

from support import network, scheduling

TESTS = Path(__file__).parent

collect_ignore = ["contracts/user_script.py"]  # checked by its types, never run

NOT_FAST = (
    # samples compared with an exact law
    *("moments/test_noise_law", "papers/test_sphere.py", "audit/test_audit.py"),
    *("audit/test_audit_units.py", "papers/test_a", "papers/test_wishart_sampling.py", "papers/test_p"),
    *(
        "papers/test_spectral",
        "papers/test_utility_bounds_regression.py",
        "privacy/test_laws.py",
        "privacy/test_curve_",
    ),
    *("papers/test_coinpress", "mechanisms/test_mean", "mechanisms/test_noise_of_runs.py"),
    *(
        "contracts/test_noise_contract.py",
        "moments/test_possible.py",
        "analysis/test_co",
        "analysis/test_regression_inf",
    ),
    # programs that are started: Spark, a browser, several processes
    *("rows/test_spark", "rows/test_dask.py", "rows/test_memory.py", "rows/test_compiled.py", "rows/test_sources.py"),
    *(
        "privacy/test_ledger_processes.py",
        "spending/test_stopping.py",
        "spending/test_full_disk.py",
        "estimators",
        "desk",
    ),
    *("contracts/test_fuzz.py", "contracts/test_interrupted_import.py", "contracts/test_nothing_on_disk.py"),
    "contracts/test_entrances.py",
    "contracts/test_one_cell.py",
    # planted faults, each of which makes many releases
    "contracts/test_contradictions.py",
    *("releases/test_available_release.py", "mechanisms/test_level_coordinates.py"),
    # pages, and what is read of published files
    *("site", "datasets"),
)
"""Folders and beginnings of file names that ``make test-fast`` does not open."""
LONG = (
    "analysis/test_naive_bayes.py::test_at_a_usual",
    "analysis/test_deviation_noise.py",
    "analysis/test_description.py::test_noise_on_the_mean_is_that_of_repeated",
    "analysis/test_present_rows.py::test_intervals_",
    "analysis/test_resolvability.py::test_forecast_correlations",
    "analysis/test_resolvability.py::test_groups_that_do_not",
    "analysis/test_ridge_parameter.py",
    "analysis/test_synthetic.py::test_a_seed_draws_the_same_rows",
    "audit/test_audit.py::test_no_shipped_mechanism_is_caught_in_a_short_audit",
    "audit/test_audit.py::test_planted_faults_are_found",
    "audit/test_audit.py::test_the_exact_loss_of_shipped_noise",
    "audit/test_audit.py::test_the_same_without_the_fault",
    "audit/test_audit_directions.py::test_a_direction_at_its_stated",
    "audit/test_audit_directions.py::test_the_bound_on_a_temperature",
    "audit/test_audit_units.py",
    "schema/test_unreadable_cells.py::test_a_cell_of_a_file_is_read_alike_whatever_the_route",
    "schema/test_unreadable_cells.py::test_a_cell_that_is_no_number",
    "cli/test_cli.py::test_a_reader_that_goes_away",
    "cli/test_cli.py::test_as_a_process",
    "cli/test_cli.py::test_derived_features_of",
    "cli/test_cli.py::test_forecast_in_units",
    "cli/test_cli.py::test_forecast_prints",
    "cli/test_cli.py::test_the_how_to_page",
    "contracts/test_bad_input.py::test_queries_that_fail_on_a_cell",
    "contracts/test_entrances.py::test_a_line_longer_than_a_block_is_refused_wherever_it_stands",
    "contracts/test_entrances.py::test_a_row_is_read_by_itself_on_spark",
    "contracts/test_entrances.py::test_the_rows_of_a_unit_depend_on_its_own_rows_on_",
    "contracts/test_entrances.py::test_what_is_refused_of_spark_is_refused_whatever_it_holds",
    "contracts/test_threat_model.py::test_a_command_shows_no_more_than_its_noisy_answers",
    "contracts/test_threat_model.py::test_every_test_that_a_page_names",
    "datasets",
    "estimators/test_estimators.py::test_cross_validation_spends",
    "estimators/test_estimators.py::test_scikit_learns",
    "planning/test_preflight.py::test_hostile_values_are_shown",
    "planning/test_preflight_units.py::test_counts_are_those_of_plain",
    "privacy/test_ledger_model.py",
    "mechanisms/test_bounded_sums.py::test_the_stated_noise",
    "papers/test_coinpress.py::test_a_step_with_the_mean",
    "papers/test_coinpress_schedule.py",
    "mechanisms/test_isotropic.py::test_quantiles_are",
    "papers/test_log_scale_histogram.py::test_noise_is_what",
    "mechanisms/test_low_bits.py::test_last_bits_of_a_direction",
    "papers/test_means_of_papers.py::test_the_variance_aware_mean_of_constant",
    "mechanisms/test_noise_of_runs.py::test_intervals_hold",
    "mechanisms/test_noise_of_runs.py::test_the_error_of_eigen",
    "moments/test_choice.py::test_a_choice_has_the_probabilities",
    "moments/test_noise_law.py::test_quantiles_are_those_of_the_draws",
    "moments/test_noise_laws.py",
    "papers/test_sphere.py::TestLaw",
    "papers/test_sphere.py::TestSecondMoments",
    "papers/test_additive_wishart.py",
    "papers/test_inverse_gaussian.py::test_sensitivity_holds_without",
    "papers/test_wishart_sampling.py",
    "papers/test_paper_claims.py",
    "papers/test_spectral_mechanisms.py::TestAccuracy",
    "papers/test_spectral_mechanisms.py::TestAgainstThePlainAlgorithm",
    "papers/test_spectral_mechanisms.py::TestOptions",
    "papers/test_utility_bounds_regression.py",
    "planning/test_forecast.py",
    "planning/test_forecast_mean.py::test_errors_for_rows",
    "planning/test_forecasts_and_releases.py",
    "planning/test_forecast_units.py",
    "planning/test_planner.py",
    "plots/test_plots.py::test_letters_that_no_font",
    "papers/test_curves.py::test_no_other_pair",
    "papers/test_curves.py::test_worst_pairs_by",
    "papers/test_curves.py::test_replace_one_against_many",
    "privacy/test_laws.py::test_composed",
    "privacy/test_laws.py::test_exact_draws",
    "privacy/test_laws.py::test_isotropic_in_two",
    "privacy/test_laws.py::test_what_is_drawn",
    "privacy/test_privacy_units.py::test_nothing_leaves_a_run_for_units",
    "privacy/test_privacy_units.py::test_replay_sees_a_selection",
    "releases/test_mean_noise.py::test_the_stated_law_is_that_of_the_noise",
    "releases/test_release_file.py::test_a_release_comes_back",
    "moments/test_repair.py::test_spectral_beats",
    "moments/test_repair.py::test_spectral_is_near_the_best_repair_everywhere",
    "moments/test_possible.py::test_a_repaired_release_shows",
    "reporting/test_report.py::test_names_out_of_a_file",
    "reporting/test_report.py::test_the_page_on_reports",
    "rows/test_compiled.py",
    "rows/test_dask.py::test_an_empty_id_never_merges_two_people",
    "rows/test_dropped_rows.py::test_the_error_expected",
    "rows/test_exact_moments.py::test_same_bits_on_other",
    "rows/test_rows.py::test_a_histogram_counts_every_row",
    "rows/test_sources.py::test_a_line_break_in_quotes",
    "rows/test_sources.py::test_an_interrupted_pass_can_be_begun_anew",
    "rows/test_sources.py::test_block_sizes_do_not_matter",
    "rows/test_sources.py::test_no_form_is_changed",
    "rows/test_spark_types.py::test_a_frame_of_declared_types_is_read",
    "rows/test_unit_selection.py::test_a_person_over_the_limit_whose_rows_all",
    "schema/test_derived.py::test_moments_are_the_same_from_every_source",
    "schema/test_derived.py::test_no_mechanism_lets_a_row_of_derived",
    "schema/test_rough_scale.py::test_the_command_line",
    "site/test_choose_a_budget.py::test_the_tables_are_current",
    "site/test_pages_in_a_browser.py::test_a_report_is_for_every_screen",
    "site/test_readme.py::test_the_table_of_errors",
    "spending/test_counts_release.py::test_intervals_hold_as_often",
    "spending/test_full_disk.py",
    "spending/test_release_groups.py::test_a_grouped_run_tells_nothing",
)
"""Tests, files and classes of a second and more: one set of parameters is run by default, none by ``test-fast``."""
FAST_SETS = 2
"""Sets of parameters of one test that ``make test-fast`` runs, at most."""
MAX_SETS = 4
"""Of a test of more sets of parameters, only a cover is run by default; ``make test-slow`` runs the others."""


network.forbid()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="the tests of make test-fast")


def pytest_configure(config: pytest.Config) -> None:
    """Keep Hypothesis from drawing constants of modules that happen to be loaded: a process would have examples of its own."""
    if config.getoption("--hypothesis-profile") == "ci":
        providers._get_local_constants = lambda: providers._local_constants  # which are none


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return scheduling.FilesTogether(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Twenty thousand tests stay to the end: nothing looks for garbage while they are made, nor among them afterwards."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("--fast") or not collection_path.is_relative_to(TESTS):
        return None
    return collection_path.relative_to(TESTS).as_posix().startswith(NOT_FAST) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    fast = config.getoption("--fast")
    items.sort(key=lambda item: place_of(item.nodeid.partition("::")[0]))
    tests: dict[str, list[Any]] = defaultdict(list)
    for item in items:
        if fast and is_long(item):
            item.add_marker("slow")
        if hasattr(item, "callspec") and item.get_closest_marker("slow") is None:
            tests[item.nodeid.partition("[")[0]].append(item)
    for sets in tests.values():
        kept = range(len(sets))
        if fast:
            kept = range(0, len(sets), -(-len(sets) // FAST_SETS))
        elif is_long(sets[0]):
            either = range(0, len(sets), max(2, -(-len(sets) // 2)))  # the first, or one in the middle
            kept = [either[crc32(sets[0].nodeid.encode()) % len(either)]]
        elif len(sets) > MAX_SETS:
            kept = cover([factors(item) for item in sets], order=[crc32(item.nodeid.encode()) for item in sets])
        for place in set(range(len(sets))).difference(kept):
            sets[place].add_marker("slow")


def place_of(file: str) -> int:
    return scheduling.FIRST.index(file) if file in scheduling.FIRST else len(scheduling.FIRST)


def is_long(item: pytest.Item) -> bool:
    return item.nodeid.removeprefix("tests/").startswith(LONG)


def factors(item: Any) -> tuple[Any, ...]:
    """What a set of parameters is made of: a value from each ``parametrize``, of a case its ``factors``."""
    given = dict(item.callspec.params)
    named = [mark.args[0] for mark in item.iter_markers("parametrize")]
    together = [[name.strip() for name in (names.split(",") if isinstance(names, str) else names)] for names in named]
    found: list[Any] = []
    for names in together:
        values = [given.pop(name) for name in names]
        found += [factor for value in values for factor in getattr(value, "factors", ())]
        found.append(tuple(id(value) for value in values if not hasattr(value, "factors")))
    return (*found, *(id(value) for value in given.values()))


def cover(sets: Sequence[tuple[Any, ...]], order: Sequence[int]) -> set[int]:
    """Places of sets in which each value of each factor is found and, of three factors or more, each pair of values.

    All of them where there is one factor alone.
    """
    columns = {tuple(map(column.index, column)) for column in zip(*sets, strict=False) if len(set(column)) > 1}
    if len(columns) < 2:
        return set(range(len(sets)))
    parts = [*combinations(sorted(columns), 2 if len(columns) > 2 else 1)]
    missing = [
        {(at, *(column[place] for column in part)) for at, part in enumerate(parts)} for place in range(len(sets))
    ]
    seen: set[Any] = set()
    kept: set[int] = set()
    places = sorted(range(len(sets)), key=order.__getitem__)
    for least in range(len(parts), 0, -1):
        for place in places:
            if place not in kept and len(missing[place] - seen) >= least:
                kept.add(place)
                seen |= missing[place]
    return kept


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session of two threads; for tests that are marked ``of_spark``."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'dpmoments[spark]'")
    from support.spark_session import start

    session = start("local[2,4]")  # a task may fail three times
    yield session
    session.stop()
