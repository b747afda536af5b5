"""Tests that assert a sentence: those of errors that this library did not word, and those that are left to assert codes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
OTHERS_WORDS: Mapping[str, str] = {
    "analysis/test_regression_inference.py": "test_an_estimate_that_contradicts_itself_is_refused",
    "cells/test_estimator_cells.py": """
        test_no_words_of_an_error_give_a_spent_fit_back test_a_note_of_the_caller_decides_nothing
    """,
    "cli/test_option_words.py": "test_a_new_parameter_without_words_is_found",
    "contracts/test_analyses.py": """
        check_unknown test_a_refusal_without_a_mean_or_a_count_must_say_so
        test_unknown_names_passed_over_are_found test_a_parameter_that_no_option_can_be_is_refused
    """,
    "contracts/test_bad_input.py": """
        test_the_checks_find_noise_that_was_drawn test_the_checks_find_a_leak test_the_checks_find_spent_noise
    """,
    "contracts/test_contract.py": "test_an_option_that_a_mechanism_does_not_have_is_refused_by_name",
    "contracts/test_import.py": "test_what_waits_is_there test_table_libraries_are_themselves",
    "contracts/test_wheel_requirements.py": "test_a_bound_that_cannot_be_pinned_is_refused",
    "estimators/test_estimators.py": """
        test_what_spent_nothing_gives_the_fit_back
        test_an_error_after_the_release_spends_and_the_release_is_kept _cross_validate
        test_sample_weights_are_refused
    """,
    "ledger/test_ledger_file.py": "test_triggers_stop_mistakes",
    "mechanisms/test_ball_of_numbers.py": "test_a_limit_that_no_row_can_keep_is_a_defect",
    "mechanisms/test_level_coordinates.py": "test_a_level_between_0_and_its_step_is_a_defect",
    "mechanisms/test_means.py": "test_an_option_that_an_estimator_does_not_have_is_refused_by_name",
    "mechanisms/test_means_refusals.py": "test_a_private_number_of_rows_is_paid_for_and_then_divided_by",
    "mechanisms/test_noise_of_runs.py": "test_a_rotated_law_of_no_shape_is_refused",
    "mechanisms/test_reliability.py": "test_marked_names_are_those_of_the_marked_features",
    "planning/test_forecast.py": "test_a_forecast_that_takes_a_private_number_of_rows_for_public_is_found",
    "privacy/test_privacy_filter.py": "test_missing_and_extra_draws_are_noted",
    "privacy/test_sensitivity.py": "test_a_file_states_one_weight_at_least_and_no_more_than_the_largest_number",
    "releases/test_mean_noise.py": "test_the_law_comes_back_from_a_file",
    "releases/test_release_file.py": "test_repaired_moments_cannot_be_changed_through_what_is_handed_out",
    "rows/test_dask.py": "test_columns_that_are_not_in_the_schema_are_not_read",
    "rows/test_exact_moments.py": "test_moments_are_immutable_and_show_no_value test_errors_reach_the_caller",
    "rows/test_kernel.py": "test_rows_without_an_exact_norm_are_never_let_through",
    "schema/test_schema.py": "test_a_schema_cannot_be_changed_after_it_was_made",
    "site/test_mechanism_pages.py": "test_a_docstring_becomes_a_page test_a_grid_of_other_cells_is_refused",
    "spending/test_mean_release.py": """
        test_a_mean_that_cannot_be_written_is_not_lost
        test_a_receipt_for_another_statement_is_refused_by_the_class_itself
    """,
    "spending/test_release.py": """
        test_the_output_is_checked_before_a_row_is_read test_a_release_that_cannot_be_saved_is_not_lost
    """,
}
"""Functions that look for words of NumPy, the operating system, Python, scikit-learn, or of tests and tools, by file."""
OURS: Mapping[str, str] = {
    "datasets/test_datasets.py": "test_the_bundle_equals_the_published_files",
    "analysis/test_comparisons.py": "test_the_noise_on_the_mean_of_two_levels_is_that_of_releases",
    "cells/test_cell_rules.py": "test_a_refusal_names_a_type_without_what_may_be_read_off_cells",
    "cells/test_estimator_cells.py": "test_what_ends_before_a_run_gives_the_fit_back",
    "cells/test_unreadable_cells.py": """
        test_other_types_are_refused_whatever_their_cells
        test_a_cell_that_is_no_number_changes_no_other_row_wherever_it_stands
    """,
    "cli/test_cli.py": "test_init_writes_names_and_kinds_and_blanks",
    "contracts/test_bad_input.py": "test_queries_that_fail_on_a_cell test_a_busy_connection",
    "contracts/test_contract.py": "test_one_feature",
    "estimators/test_estimators.py": "test_what_cannot_be_is_refused_in_words",
    "inspection/test_preflight.py": """
        test_a_file_that_is_not_utf8_is_told_by_its_column test_a_damaged_page_is_told_with_what_was_read_before
        test_a_line_with_too_many_cells_is_told
    """,
    "ledger/test_ledger.py": "test_what_is_no_grant",
    "ledger/test_ledger_file.py": "test_what_is_read_only_can_be_shown_and_not_spent",
    "mechanisms/test_log_scale_histogram.py": "test_auto_takes_it_for_one_column_without_bounds",
    "mechanisms/test_mean_robustness.py": "test_a_warning_is_issued_and_kept",
    "mechanisms/test_means.py": "test_impossible_options_are_refused test_what_must_be_public_is_asked_for",
    "mechanisms/test_means_refusals.py": "test_options_of_the_balls_are_checked_and_a_split_adds_up",
    "mechanisms/test_registry.py": "test_what_names_nothing_is_refused",
    "planning/test_forecast.py": "test_an_impossible_assumption_is_refused",
    "planning/test_forecast_mean.py": "test_every_estimator_has_a_row_or_a_refusal",
    "planning/test_forecast_units.py": """
        test_what_cannot_be_needed_is_refused test_impossible_guesses_are_refused
        test_a_unit_that_a_release_refuses_is_refused
    """,
    "planning/test_ways.py": "test_mistakes_are_refused",
    "plots/test_plots.py": """
        test_every_picture_of_every_release_is_drawn_or_refused_in_words
        test_a_picture_without_axes_makes_one_figure_and_changes_no_setting
    """,
    "privacy/test_budget.py": "test_a_budget_has_the_losses_of_its_kind_alone",
    "privacy/test_privacy_filter.py": "test_a_draw_that_cannot_be_is_refused",
    "privacy/test_privacy_units.py": "test_a_forged_unit_is_refused",
    "releases/test_moments_about_a_center.py": "test_a_center_without_a_sum_is_refused",
    "releases/test_pooling.py": "test_what_cannot_be_pooled_is_refused_with_the_reason",
    "releases/test_release_file.py": """
        test_a_forged_receipt_is_refused test_what_stands_beside_the_content_is_checked test_deep_values
    """,
    "reporting/test_report.py": """
        test_what_a_release_cannot_answer_is_refused_and_nothing_written
        test_a_page_is_written_whole_and_never_over_another_unless_told
    """,
    "rows/test_dask.py": """
        test_a_frame_whose_types_were_not_declared_is_refused test_no_cell_is_in_any_error
        test_partitions_that_are_not_as_declared_are_refused test_a_cluster_whose_workers_all_die_spends_nothing
        test_plans_that_store_rows_are_refused_on_a_cluster_that_may_spill
        test_plans_that_store_rows_are_read_on_a_cluster_that_never_spills
        test_shuffles_by_way_of_a_disk_are_refused_wherever_they_run test_no_log_of_a_worker_quotes_a_cell
        test_an_engine_that_is_not_installed_names_its_extra
    """,
    "rows/test_guessed_types.py": "test_a_table_whose_types_are_guessed_is_refused",
    "rows/test_kernel.py": "test_arguments_are_refused test_blocks_are_refused",
    "rows/test_numbers_in_machine_code.py": "test_a_refused_cell_stops_the_pass_in_the_same_words",
    "rows/test_office_files.py": "test_damaged_files_are_refused_without_their_content",
    "rows/test_spark.py": """
        test_large_results_come_in_several_jobs test_frames_that_cannot_serve_are_refused
        test_a_frame_that_hides_its_chance_is_found_at_the_second_pass test_no_cell_is_in_any_error
    """,
    "rows/test_spark_types.py": "test_a_frame_of_types_that_may_be_inferred_is_refused",
    "rows/test_text_format.py": "test_only_text_files_have_a_text_format test_what_is_wrong_is_told_and_no_cell",
    "rows/test_threads.py": "test_what_is_no_number_of_threads_is_refused_before_anything_is_reserved",
    "rows/test_unit_selection.py": """
        test_a_table_that_changes_between_two_passes_is_refused
        test_a_person_over_the_limit_whose_rows_all_become_ones_that_count_is_refused
        test_a_query_that_samples_anew_is_refused test_nothing_is_drawn_of_what_was_found_in_another_table
    """,
    "schema/test_derived.py": "test_what_cannot_be_derived_is_refused_with_the_reason",
    "schema/test_rough_scale.py": "test_bad_input_is_refused test_a_schema_comes_back_from_yaml",
    "schema/test_schema_mistakes.py": "test_a_mistake_is_named_where_it_is test_descriptions_that_cannot_be",
    "schema/test_typical_ranges.py": """
        test_a_range_that_cannot_be_is_refused test_an_end_that_is_no_number_is_refused
    """,
    "schema/test_weights.py": "test_what_is_no_weight_is_refused",
    "spending/test_counts_release.py": """
        test_mistakes_are_refused_before_a_row_is_read test_the_level_of_a_bound_is_a_probability
    """,
    "spending/test_mean_release.py": "test_a_mean_release_is_no_other_kind test_a_forged_receipt_is_refused",
    "spending/test_refused_before_noise.py": "test_means_read_all_rows_before_their_first_draw",
    "spending/test_release.py": "test_wrong_types_are_named",
}
"""Functions that look for words of ours, most of them with one part of a sentence for each set of parameters.

None may be added: assert the code with ``support.said.refused``.
"""


def matching(source: str) -> Iterator[str]:
    """Functions of a file that expect an error or a warning by its words."""
    for function in ast.parse(source).body:
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and any(
                    keyword.arg == "match" and ast.unparse(node.func).startswith("pytest.") for keyword in node.keywords
                ):
                    yield function.name
                    break


def test_every_test_that_asserts_a_sentence_is_sorted() -> None:
    found = {
        (str(path.relative_to(TESTS)), name)
        for path in sorted(TESTS.rglob("*.py"))
        for name in matching(path.read_text(encoding="utf-8"))
    }
    sorted_ones = [(file, name) for of in (OTHERS_WORDS, OURS) for file, names in of.items() for name in names.split()]
    assert len(sorted_ones) == len(set(sorted_ones))
    assert found == set(sorted_ones)


@pytest.mark.parametrize("kind", ["raises", "warns"])
def test_a_sentence_that_is_asserted_is_found(kind: str) -> None:
    assert [*matching(f"def test_it():\n    with pytest.{kind}(ValueError, match='no rows'):\n        pass\n")] == [
        "test_it"
    ]
