"""Adult, whole and in parts: all of them in the design half, for parts of one table do not judge each other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import dpmoments as dpm
from benchmarks.practice.tables.entry import Entry, Made
from dpmoments.datasets import Dataset

SMALL = 2_000


def adult() -> Made:
    """45,222 × 106: numbers, eight categories, a Boolean."""
    data = dpm.datasets.adult()
    return data.frame, data.schema


def numbers() -> Made:
    """45,222 × 7: numbers and the Boolean."""
    return part(dpm.datasets.adult(), dpm.Numeric, dpm.Boolean)


def levels() -> Made:
    """15,060 × 99: the eight categories of the test rows."""
    return part(dpm.datasets.adult("test"), dpm.Categorical)


def sample() -> Made:
    """2,000 × 106: rows drawn from the training rows at a fixed seed."""
    data = dpm.datasets.adult("train")
    drawn = np.random.default_rng(12).choice(data.frame.num_rows, SMALL, replace=False)
    return data.frame.take(pa.array(np.sort(drawn))), data.schema


def part(data: Dataset, *kinds: type) -> Made:
    """The columns of those kinds."""
    columns = [column for column in data.schema.columns if isinstance(column, kinds)]
    return data.frame.select([column.name for column in columns]), dpm.Schema(*columns)


TABLES = (
    Entry("adult", "design", "census", True, adult, "income"),
    Entry("adult-numbers", "design", "census", True, numbers, "income"),
    Entry("adult-categories", "design", "census", True, levels, None),
    Entry("adult-2000", "design", "census", True, sample, "income"),
)
