"""Tables and options of exact sums, as Hypothesis draws them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

cells = st.one_of(
    st.floats(-1, 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, np.nan, np.inf, 1e300, 5e-324, 2.0**33, 1.0]),
)


def drawn_table(data: st.DataObject) -> tuple[list[list[float]], int, dict[str, Any]]:
    """Up to 12 rows of cells, how many in each, and how they are rounded."""
    n_features = data.draw(st.integers(1, 4))
    table = data.draw(st.lists(st.lists(cells, min_size=n_features, max_size=n_features), max_size=12))
    options = {
        "missing": data.draw(st.sampled_from(["center", "drop"])),
        "bits": data.draw(st.integers(2, 24)),
        "radius": data.draw(st.sampled_from([1.0, 2.5])),
        "center": data.draw(st.sampled_from([None, [0.5] * n_features])),
    }
    return table, n_features, options
