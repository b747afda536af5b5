"""Coefficients by name as pandas holds them; this file is imported when they are asked for."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpmoments.analysis.contrasts import INTERCEPT, INTERCEPTS


class Coefficients(pd.Series):
    """Series whose constant also has the names of other programs, such as ``Intercept``."""

    _constructor = pd.Series

    def __getitem__(self, key: Any) -> Any:
        """Return a coefficient by name."""
        of_constant = isinstance(key, str) and key in INTERCEPTS and key not in self.index
        return super().__getitem__(INTERCEPT if of_constant else key)
