"""Tests that assert a sentence: only those of errors that this library did not word may."""

from __future__ import annotations

import ast
import re
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
    "datasets/test_datasets.py": "test_the_bundle_equals_the_published_files",
    "estimators/test_estimators.py": """
        test_what_spent_nothing_gives_the_fit_back
        test_an_error_after_the_release_spends_and_the_release_is_kept _cross_validate
        test_sample_weights_are_refused
    """,
    "ledger/test_ledger_file.py": "test_triggers_stop_mistakes",
    "mechanisms/test_level_coordinates.py": "test_a_level_between_0_and_its_step_is_a_defect",
    "mechanisms/test_means.py": "test_an_option_that_an_estimator_does_not_have_is_refused_by_name",
    "mechanisms/test_means_refusals.py": "test_a_private_number_of_rows_is_paid_for_and_then_divided_by",
    "mechanisms/test_noise_of_runs.py": "test_a_rotated_law_of_no_shape_is_refused",
    "mechanisms/test_registry.py": "test_what_names_nothing_is_refused",
    "mechanisms/test_reliability.py": "test_marked_names_are_those_of_the_marked_features",
    "papers/test_orthonormal_frame.py": """
        test_a_wrong_restriction_is_rejected test_a_wrong_restriction_is_told_from_the_plain_algorithm
        test_temperatures_out_of_step_are_rejected
    """,
    "papers/test_sphere.py": """
        test_almost_uniform test_directions_of_a_cube_are_rejected test_not_diagonal
        test_the_misprinted_formula_is_rejected
    """,
    "papers/test_spectral_mechanisms.py": "test_other_temperatures_are_rejected",
    "privacy/test_privacy_filter.py": "test_missing_and_extra_draws_are_noted",
    "privacy/test_sensitivity.py": "test_a_file_states_one_weight_at_least_and_no_more_than_the_largest_number",
    "releases/test_mean_noise.py": "test_the_law_comes_back_from_a_file",
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
"""Functions that look for words of NumPy, the operating system, Python, scikit-learn, or of tests and tools, by file.

A test of words of this library asserts their code, with ``support.said.refused`` or ``support.said.warned``.
"""


def matching(source: str) -> Iterator[str]:
    """Functions of a file that expect an error or a warning by its words."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef) and any(map(_asserts_words, ast.walk(function))):
            yield function.name


def _asserts_words(node: ast.AST) -> bool:
    """Whether a call has ``match=``, or a comparison looks for something in the text of an error that was caught."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).startswith("pytest.") and any(one.arg == "match" for one in node.keywords)
    return isinstance(node, ast.Compare) and any(
        isinstance(operator, ast.In) and re.fullmatch(r"str\(\w+\.value\)", ast.unparse(text))
        for operator, text in zip(node.ops, node.comparators, strict=True)
    )


def test_every_test_that_asserts_a_sentence_is_sorted() -> None:
    found = {
        (str(path.relative_to(TESTS)), name)
        for path in sorted(TESTS.rglob("*.py"))
        for name in matching(path.read_text(encoding="utf-8"))
    }
    sorted_ones = [(file, name) for file, names in OTHERS_WORDS.items() for name in names.split()]
    assert len(sorted_ones) == len(set(sorted_ones))
    assert found == set(sorted_ones)


@pytest.mark.parametrize(
    "step",
    [
        "with pytest.raises(ValueError, match='no rows'): pass",
        "with pytest.warns(UserWarning, match='no rows'): pass",
        "assert 'no rows' in str(caught.value)",
    ],
)
def test_a_sentence_that_is_asserted_is_found(step: str) -> None:
    assert [*matching(f"class TestIt:\n    def test_it():\n        {step}\n")] == ["test_it"]


def test_a_cell_that_is_looked_for_in_an_error_is_no_sentence() -> None:
    assert not [*matching("def test_it():\n    assert SECRET not in str(caught.value)\n")]
