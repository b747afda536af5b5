"""Tables of measurements that ship with the library and with scikit-learn, and Adult, whole and in parts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa

import dpmoments as dpm
from benchmarks.papers import datasets as papers_datasets
from benchmarks.practice.tables.entry import Entry, Made
from dpmoments.datasets import Dataset

# Measurements in physics, chemistry and medicine, as bundled with this library and scikit-learn; POPRES.

WIDEST_OF_NUCLEI = {
    "radius": (50, 5), "texture": (60, 10), "perimeter": (300, 50), "area": (5_000, 1_000), "smoothness": (0.5, 0.1),
    "compactness": (2, 0.5), "concavity": (2, 0.5), "concave points": (0.5, 0.1), "symmetry": (1, 0.2),
    "fractal dimension": (0.5, 0.1),
}  # fmt: skip
"""Upper bounds of a feature of cell nuclei (mean and worst) and of its standard error; all are positive."""


def bundled(load: Callable[..., Dataset], **options: bool) -> Callable[[], Made]:
    """A table of the library."""

    def make() -> Made:
        data = load(**options)
        return data.frame, data.schema

    return make


def diabetes() -> Made:
    """442 × 11: patients, blood serum, and how the disease went on a year later."""
    from sklearn import datasets

    frame = datasets.load_diabetes(as_frame=True, scaled=False).frame.astype(float)
    frame["sex"] = frame["sex"] == 2
    bounds = {
        "bmi": (10, 60), "bp": (40, 200), "s1": (50, 500), "s2": (0, 400), "s3": (0, 150), "s4": (0, 20), "s5": (2, 8),
        "s6": (40, 400), "target": (0, 400),
    }  # fmt: skip
    numbers = (dpm.Numeric(name, *public) for name, public in bounds.items())
    return frame, dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Boolean("sex"), *numbers)


def breast_cancer() -> Made:
    """569 × 31: ten features of the cell nuclei of an image, three figures each, and whether the tumour is benign."""
    from sklearn import datasets

    frame = datasets.load_breast_cancer(as_frame=True).frame.astype(float)
    frame["benign"] = frame.pop("target") == 1
    columns: list[dpm.Numeric | dpm.Boolean] = []
    for feature, (widest, error) in WIDEST_OF_NUCLEI.items():
        columns += [
            dpm.Numeric(f"mean {feature}", 0, widest),
            dpm.Numeric(f"{feature} error", 0, error),
            dpm.Numeric(f"worst {feature}", 0, widest),
        ]
    return frame, dpm.Schema(*columns, dpm.Boolean("benign"))


def iris() -> Made:
    """150 × 7: centimeters, and the species as a category."""
    from sklearn import datasets

    bunch = datasets.load_iris(as_frame=True)
    widest = {"sepal_length": 10, "sepal_width": 10, "petal_length": 10, "petal_width": 5}
    frame = bunch.data.set_axis(list(widest), axis=1)
    frame["species"] = [str(bunch.target_names[code]) for code in bunch.target]
    species = dpm.Categorical("species", ("setosa", "versicolor", "virginica"))
    return frame, dpm.Schema(*(dpm.Numeric(name, 0, most) for name, most in widest.items()), species)


def digits() -> Made:
    """1,797 × 64: pixels of written digits, 0 to 16; some never vary."""
    from sklearn import datasets

    frame = datasets.load_digits(as_frame=True).data
    return frame, dpm.Schema(*(dpm.Numeric(name, 0, 16) for name in frame.columns))


def pixels(image: str) -> Made:
    """273,280 × 5: place and color of every pixel of a photograph."""
    from sklearn import datasets

    colors = datasets.load_sample_image(image)
    down, right = np.indices(colors.shape[:2])
    names = ("down", "right", "red", "green", "blue")
    table = np.column_stack([down.ravel(), right.ravel(), colors.reshape(-1, 3)]).astype(float)
    bounds = (500, 1_000, 255, 255, 255)
    return pd.DataFrame(table, columns=list(names)), dpm.Schema(
        *(dpm.Numeric(name, 0, bound) for name, bound in zip(names, bounds, strict=True))
    )


def popres() -> Made:
    """1,387 × 20: genetic principal components; a column has norm 1, so that a cell of ten times its typical size is 0.25."""
    components = papers_datasets.popres().components
    names = [f"component{i}" for i in range(1, components.shape[1] + 1)]
    return pd.DataFrame(components, columns=names), dpm.Schema(*(dpm.Numeric(name, -0.25, 0.25) for name in names))


MEASUREMENTS = (
    Entry("wine", "design", "measurements", True, bundled(dpm.datasets.wine), "proline"),
    Entry("wine-cultivar", "design", "measurements", True, bundled(dpm.datasets.wine, cultivar=True), "proline"),
    Entry("airfoil", "design", "measurements", True, bundled(dpm.datasets.airfoil), "sound_pressure_level"),
    Entry("diabetes", "design", "measurements", True, diabetes, "target"),
    Entry("breast-cancer", "design", "measurements", True, breast_cancer, "benign"),
    Entry("china-pixels", "design", "measurements", True, lambda: pixels("china.jpg"), "blue"),
    Entry("iris", "judge", "measurements", True, iris, "petal_width"),
    Entry("digits", "judge", "measurements", True, digits, "pixel_4_4"),
    Entry("flower-pixels", "judge", "measurements", True, lambda: pixels("flower.jpg"), "blue"),
    Entry("popres", "judge", "measurements", True, popres, "component20"),
)


# Adult, whole and in parts: all of them in the design half, for parts of one table do not judge each other.


def numbers() -> Made:
    """45,222 × 7: numbers and the Boolean."""
    data = dpm.datasets.adult()
    columns = [column for column in data.schema.columns if isinstance(column, dpm.Numeric | dpm.Boolean)]
    return data.frame.select([column.name for column in columns]), dpm.Schema(*columns)


def sample() -> Made:
    """2,000 × 106: rows drawn from the training rows at a fixed seed."""
    data = dpm.datasets.adult("train")
    drawn = np.random.default_rng(12).choice(data.frame.num_rows, 2_000, replace=False)
    return data.frame.take(pa.array(np.sort(drawn))), data.schema


TABLES = (
    *MEASUREMENTS,
    Entry("adult", "design", "census", True, bundled(dpm.datasets.adult), "income"),
    Entry("adult-numbers", "design", "census", True, numbers, "income"),
    Entry("adult-2000", "design", "census", True, sample, "income"),
)
