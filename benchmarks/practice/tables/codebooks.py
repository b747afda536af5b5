"""A table and its schema from a codebook: what is public of every column."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

import dpmoments as dpm
from benchmarks.practice.tables.entry import Made

Codebook = Mapping[str, tuple[float, float] | tuple[str, ...] | tuple[int, ...] | str | None]
"""Bounds of a number; levels of a category (text, or more than two integers); of a Boolean the text that is true, None for 1."""


def described(codebook: Codebook, frame: pd.DataFrame) -> Made:
    """Return the codebook's columns of the rows that have all of them, and the schema."""
    frame = frame.loc[:, list(codebook)].dropna()
    columns: list[dpm.Numeric | dpm.Boolean | dpm.Categorical] = []
    for name, known in codebook.items():
        if known is None or isinstance(known, str):
            columns.append(dpm.Boolean(name))
            frame[name] = frame[name].astype(int) == 1 if known is None else frame[name] == known
        elif len(known) > 2:
            columns.append(dpm.Categorical(name, known))
            frame[name] = frame[name].astype(type(known[0]))
        else:
            columns.append(dpm.Numeric(name, *known))
            frame[name] = frame[name].astype(float)
    return frame, dpm.Schema(*columns)
