"""The page on choosing a budget: its figures are current."""

from __future__ import annotations

import re

import pytest
from benchmarks.practice.choose_a_budget import COMPUTED, PAGE, PRACTICE, forecast_errors


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPUTED)
def test_the_tables_are_current(name: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (written,) = re.findall(f"<!-- {name}: begin -->\n\n(.*?)\n\n<!-- {name}: end -->", text, re.S)
    assert written.splitlines() == list(COMPUTED[name]()), "run python -m benchmarks.practice.choose_a_budget"


@pytest.mark.long
def test_what_a_delta_buys_is_what_a_forecast_says() -> None:
    for columns, words in ((5, "are {:.2g} and {:.2g}, for twenty"), (20, "for twenty columns {:.2g} and {:.2g}.")):
        pure = forecast_errors(10_000, columns, "matrix-laplace", epsilon=1.0)[1]
        gaussian = forecast_errors(10_000, columns, "gaussian", epsilon=1.0, delta=1e-6)[1]
        assert words.format(pure, gaussian) in PAGE.read_text(encoding="utf-8")


def test_values_of_others_name_their_entries() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"`{entry}`" in text for *_, entry in PRACTICE)
