"""Regressions of hospitals, statistics offices and companies, on which no method was tuned: for judging one, by name or half."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import dpmoments as dpm
from benchmarks.practice.tables.entry import Entry, Made
from benchmarks.practice.tables.synthetic import FloatArray, correlated_normals

IntArray = npt.NDArray[np.int64]
Rng = np.random.Generator
Public = tuple[float, float] | tuple[str, ...] | None
"""Bounds of a number, levels of a category, None for a Boolean."""
Columns = dict[str, tuple[npt.NDArray[Any], Public]]
"""Cells, and what is public of them; the last column is the target."""

PANEL = {
    "hemoglobin": (14.2, 1.4, -0.15, 0, 30), "leukocytes": (7.0, 1.8, 0.0, 0, 100), "platelets": (250, 60, -5, 0, 2_000),
    "sodium": (140, 2.6, 0.1, 100, 200), "potassium": (4.2, 0.4, 0.02, 1, 10), "creatinine": (0.9, 0.2, 0.05, 0, 5),
    "glucose": (98, 18, 4, 20, 500), "albumin": (4.3, 0.35, -0.05, 0, 10), "cholesterol": (195, 38, 6, 0, 600),
    "triglycerides": (140, 45, 5, 0, 1_000), "uric acid": (5.4, 1.3, 0.1, 0, 20),
}  # fmt: skip
"""Mean, standard deviation, change in ten years of age, and public bounds of blood values."""


def evenly(rng: Rng, n: int, k: int) -> IntArray:
    """Codes 0 to k − 1 of as many rows each."""
    return rng.permutation(np.arange(n, dtype=np.int64) % k)


def named(word: str, codes: IntArray, k: int) -> tuple[npt.NDArray[Any], Public]:
    levels = tuple(f"{word}{i}" for i in range(k))
    return np.array(levels)[codes], levels


def likely(rng: Rng, logits: FloatArray) -> npt.NDArray[np.bool_]:
    """True with the probability of those log-odds."""
    return rng.random(len(logits)) < 1.0 / (1.0 + np.exp(-logits))


def trial(rng: Rng, n: int) -> Columns:
    """A depression score after treatment in one of three arms."""
    arm, before = evenly(rng, n, 3), np.clip(np.round(rng.normal(24, 5, n)), 0, 52)
    after = 0.7 * before - np.array([2, 6, 9])[arm] + rng.normal(4, 4.2, n)
    return {"arm": named("arm", arm, 3), "before": (before, (0, 52)), "age": (np.clip(rng.normal(47, 13, n), 18, 95), (18, 110)),
            "woman": (rng.random(n) < 0.6, None), "after": (np.clip(np.round(after), 0, 52), (0, 52))}  # fmt: skip


def factorial(rng: Rng, n: int) -> Columns:
    """Strength of a product at low, middle and high settings of a machine."""
    settings = rng.integers(-1, 2, (n, 6)).astype(float)
    strength = 60 + settings @ [6, -4, 3, 2, 0, 1] + 2 * settings[:, 0] * settings[:, 1] + rng.normal(0, 3, n)
    return {f"setting{j}": (settings[:, j], (-1, 1)) for j in range(6)} | {"strength": (strength, (0, 100))}


def intensive_care(rng: Rng, n: int) -> Columns:
    """Death in hospital by vital signs, some of them log-normal."""
    z, age = correlated_normals(rng, n, 6, 0.25), np.clip(rng.normal(63, 16, n), 18, 105)
    died = likely(rng, 0.6 * z[:, 0] + 0.7 * z[:, 2] + 0.6 * z[:, 4] + 0.5 * (age - 63) / 16 - 1.4)
    return {"age": (age, (0, 110)), "heart rate": (90 + 19 * z[:, 0], (0, 300)), "pressure": (80 - 14 * z[:, 1], (0, 200)),
            "lactate": (1.8 * np.exp(0.6 * z[:, 2]), (0, 30)), "temperature": (37 + 0.8 * z[:, 3], (25, 45)),
            "creatinine": (np.exp(0.5 * z[:, 4]), (0, 20)), "coma": (np.clip(np.round(14 - 3 * abs(z[:, 5])), 3, 15), (3, 15)),
            "died": (died, None)}  # fmt: skip


def bodies(rng: Rng, n: int) -> Columns:
    """Body fat by height as measured and as reported, which hardly differ."""
    woman, z = rng.random(n) < 0.5, correlated_normals(rng, n, 2, 0.8)
    height = 177 - 13 * woman + rng.normal(0, 7, n)
    weight, waist = 78 - 12 * woman + 0.5 * (height - 170) + 13 * z[:, 0], 93 - 9 * woman + 12 * z[:, 1]
    fat = 22 + 11 * woman + 0.42 * (waist - 90) - 0.1 * (height - 170) + rng.normal(0, 4.4, n)
    reported = np.round(height + rng.normal(1, 0.8, n))
    return {"height": (height, (100, 250)), "reported": (reported, (100, 250)), "weight": (weight, (20, 300)),
            "waist": (waist, (40, 250)), "woman": (woman, None), "fat": (fat, (0, 70))}  # fmt: skip


def harvest(rng: Rng, n: int) -> Columns:
    """Tons from a hectare, which too little and too much of nitrogen and rain reduce."""
    nitrogen, rain, acidity = rng.uniform(0, 250, n), rng.gamma(9, 80, n), rng.normal(6.5, 0.7, n)
    tons = 8 - 4 * ((nitrogen - 145) / 100) ** 2 - 1.5 * np.abs(rain - 700) / 250 + rng.normal(0, 1.2, n)
    return {"nitrogen": (nitrogen, (0, 300)), "rain": (rain, (0, 2_000)), "acidity": (acidity, (0, 14)),
            "soil": named("soil", evenly(rng, n, 3), 3), "tons": (np.maximum(tons, 0), (0, 20))}  # fmt: skip


def blood(rng: Rng, n: int) -> Columns:
    """Blood pressure by blood values that change with age."""
    age, z = np.clip(rng.gamma(9, 5.6, n), 18, 105), correlated_normals(rng, n, len(PANEL), 0.2)
    values = {name: (mean + sd * z[:, j] + slope * (age - 50) / 10, (low, high))
              for j, (name, (mean, sd, slope, low, high)) in enumerate(PANEL.items())}  # fmt: skip
    pressure = 128 + 0.45 * (age - 50) + 4 * z[:, 6] + 3 * z[:, 8] + 2 * z[:, 3] + rng.normal(0, 13, n)
    return {"age": (age, (0, 110)), **values, "pressure": (pressure, (50, 300))}


def deliveries(rng: Rng, n: int) -> Columns:
    """Minutes of a tour by distance, load and four categories of even sizes."""
    day, hour, zone, van = (evenly(rng, n, k) for k in (7, 12, 8, 4))
    km, kilos, stops = rng.gamma(3, 5, n), 20 * np.exp(0.7 * rng.standard_normal(n)), 1 + rng.poisson(6, n)
    rush = 9 * np.cos(hour * np.pi / 3) + 3 * (day < 5) + rng.normal(0, 6, 8)[zone]
    minutes = 10 + 1.4 * km + 3 * stops + rush + rng.normal(0, 12, n)
    return {"day": named("day", day, 7), "hour": named("hour", hour, 12), "zone": named("zone", zone, 8),
            "van": named("van", van, 4), "km": (km, (0, 100)), "kilos": (kilos, (0, 200)), "stops": (stops, (0, 50)),
            "minutes": (np.maximum(minutes, 5), (0, 240))}  # fmt: skip


def likert(rng: Rng, n: int) -> Columns:
    """Answers from 1 to 5 that share three attitudes."""
    loadings = rng.uniform(0.2, 0.75, (3, 23)) * (np.arange(23) % 3 == np.arange(3)[:, None])
    loadings[:, -1] = 0.7, 0.45, 0.2
    shared, own = rng.standard_normal((n, 3)) @ loadings, rng.standard_normal((n, 23))
    score = shared + np.sqrt(1 - (loadings**2).sum(axis=0)) * own
    answers = np.clip(np.round(rng.uniform(2.4, 4, 23) + 1.1 * score), 1, 5)
    return {f"item{j}" if j < 22 else "satisfied": (answers[:, j], (1.0, 5.0)) for j in range(23)}


def pupils(rng: Rng, n: int) -> Columns:
    """Test scores of pupils of 70 schools, which no column names."""
    school, effects = rng.integers(0, 70, n), correlated_normals(rng, 70, 2, 0.6)
    status, migrant = 0.5 * effects[school, 0] + rng.normal(0, 0.8, n), rng.random(n) < 0.2
    shelf = np.argsort(np.argsort(status + rng.normal(0, 0.8, n))) * 6 // n
    grade = np.clip(np.round(3 - 0.5 * status + rng.normal(0, 0.8, n)), 1, 6)
    score = 500 + 45 * effects[school, 1] + 28 * status - 22 * grade + 6 * shelf - 15 * migrant + rng.normal(65, 55, n)
    return {"status": (status, (-5, 5)), "homework": (rng.gamma(2, 2.5, n), (0, 50)), "grade": (grade, (1, 6)),
            "migrant": (migrant, None), "books": named("books", shelf, 6), "score": (score, (0, 1_000))}  # fmt: skip


def plant(rng: Rng, n: int) -> Columns:
    """Output of a machine whose gauges have two modes, not always together."""
    high = (rng.random((n, 4)) < 0.8) == (rng.random((n, 1)) < 0.45)
    gauges = np.where(high, [80, 6, 420, 30], [35, 2, 250, 18]) + rng.standard_normal((n, 4)) * [6, 0.5, 20, 3]
    output = 100 + gauges @ [1.1, 9, -0.1, 1.5] + rng.normal(0, 9, n)
    return {"turns": (gauges[:, 0], (0, 150)), "bar": (gauges[:, 1], (0, 50)), "degrees": (gauges[:, 2], (0, 1_000)),
            "flow": (gauges[:, 3], (0, 50)), "output": (output, (0, 500))}  # fmt: skip


def claims(rng: Rng, n: int) -> Columns:
    """Cost of claims in a year: none in most rows, else of a gamma law."""
    age, car, km, town = rng.uniform(18, 85, n), rng.gamma(2, 4, n), rng.gamma(4, 3.5, n), rng.random(n) < 0.4
    often = np.clip(0.05 + 0.018 * km + 0.15 * town + 0.2 * (age < 26), 0, 0.95)
    cost = (rng.random(n) < often) * rng.gamma(2, 900 * np.exp(0.3 * town - 0.03 * car), n)
    return {"age": (age, (16, 110)), "car age": (car, (0, 50)), "1000 km": (km, (0, 100)), "town": (town, None),
            "region": named("region", evenly(rng, n, 6), 6), "cost": (cost, (0, 20_000))}  # fmt: skip


def energy(rng: Rng, n: int) -> Columns:
    """Load of a grid by the hour, with waves of a year and a day."""
    hours = np.arange(n)
    waves = {f"{name} {period}": wave(2 * np.pi * hours / period) for period in (24, 8_760) for name, wave in
             (("sine", np.sin), ("cosine", np.cos))}  # fmt: skip
    warm = 10 - 9 * waves["cosine 8760"] - 3 * waves["cosine 24"] + rng.normal(0, 3, n)
    free = hours // 24 % 7 >= 5
    day = 8 * waves["cosine 24"] + 5 * waves["sine 24"] + 9 * free
    load = 60 - day + 0.5 * np.abs(warm - 17) + rng.normal(0, 3.5, n)
    return {name: (wave, (-1.0, 1.0)) for name, wave in waves.items()} | {
            "warm": (warm, (-40, 50)), "free": (free, None), "load": (load, (0, 200))}  # fmt: skip


def visits(rng: Rng, n: int) -> Columns:
    """Visits to a physician in the insured part of a year, a Poisson count."""
    age, years, ill = np.clip(rng.normal(45, 19, n), 0, 105), rng.uniform(0.1, 1, n), rng.poisson(0.8, n)
    woman, copay = rng.random(n) < 0.5, rng.choice([0.0, 25.0, 50.0, 95.0], n)
    rate = np.exp(0.9 + 0.01 * (age - 45) + 0.25 * ill + 0.2 * woman - 0.006 * copay + rng.normal(0, 0.4, n))
    return {"age": (age, (0, 110)), "years": (years, (0, 1)), "illnesses": (ill, (0, 20)), "woman": (woman, None),
            "copay": (copay, (0, 100)), "visits": (rng.poisson(years * rate), (0, 60))}  # fmt: skip


def returns(rng: Rng, n: int) -> Columns:
    """Daily returns in percent, of 5 degrees of freedom, cut where trade stops."""
    own, market = rng.standard_t(5, (n, 10)), rng.standard_t(5, (n, 1))
    rows = np.clip(own + market * rng.uniform(0.7, 1.6, 10), -20, 20)
    return {f"share{j}" if j < 9 else "fund": (rows[:, j], (-20, 20)) for j in range(10)}


def wages(rng: Rng, n: int) -> Columns:
    """Log-normal hourly wages by schooling, experience and its square."""
    school, woman, trade = np.clip(np.round(rng.normal(12.5, 2.8, n)), 0, 25), rng.random(n) < 0.48, evenly(rng, n, 5)
    worked = np.clip(rng.uniform(0, 48, n) - 0.8 * (school - 12), 0, 60)
    log = 1.3 + 0.09 * school + 0.04 * worked - 0.0006 * worked**2 - 0.15 * woman + 0.06 * trade
    return {"school": (school, (0, 25)), "worked": (worked, (0, 60)), "worked squared": (worked**2, (0, 3_600)),
            "woman": (woman, None), "trade": named("trade", trade, 5),
            "wage": (np.exp(log + rng.normal(0, 0.42, n)), (0, 200))}  # fmt: skip


def days(rng: Rng, n: int) -> Columns:
    """Contentment from 0 to 10 by the hours of a day, which add up to 24 with those left out."""
    hours, age = 24 * rng.dirichlet([16, 9, 4, 3, 3, 2, 2, 1.5, 1, 1, 6], n), rng.uniform(15, 90, n)
    content = 7.2 + hours[:, [1, 3, 7]] @ [-0.16, 0.2, 0.3] - 0.01 * (age - 50) + rng.normal(0, 1.6, n)
    return {f"hours{j}": (hours[:, j], (0, 24)) for j in range(10)} | {
            "age": (age, (10, 110)), "content": (np.clip(np.round(content), 0, 10), (0, 10))}  # fmt: skip


def housing(rng: Rng, n: int) -> Columns:
    """Prices of homes by size, rooms, year and one of 14 districts."""
    size, district = np.clip(95 * np.exp(0.38 * rng.standard_normal(n)), 15, 600), evenly(rng, n, 14)
    rooms, built = np.clip(np.round(size / 26 + rng.normal(0, 0.8, n)), 1, 20), rng.uniform(1890, 2024, n)
    meter = 2_600 + 420 * rng.standard_normal(14)[district] + 5 * (built - 1960) + rng.normal(0, 480, n)
    return {"size": (size, (0, 1_000)), "rooms": (rooms, (1, 30)), "built": (built, (1800, 2030)),
            "district": named("district", district, 14), "garden": (rng.random(n) < size / 200, None),
            "price": (size * np.maximum(meter, 500), (0, 2_000_000))}  # fmt: skip


def credit(rng: Rng, n: int) -> Columns:
    """Loans that were not paid back, by log-odds that are linear in numbers."""
    z, age, late = correlated_normals(rng, n, 3, 0.3), np.clip(rng.normal(44, 14, n), 18, 100), rng.poisson(0.4, n)
    unpaid = likely(rng, 0.7 * z[:, 0] - 0.6 * z[:, 1] + 0.9 * late - 0.03 * (age - 44) - 2)
    return {"age": (age, (18, 110)), "late": (late, (0, 20)), "debt": (np.clip(35 + 14 * z[:, 0], 0, 100), (0, 100)),
            "income": (3_000 * np.exp(0.5 * z[:, 1]), (0, 25_000)), "loan": (12_000 * np.exp(0.4 * z[:, 2]), (0, 100_000)),
            "unpaid": (unpaid, None)}  # fmt: skip


def spending(rng: Rng, n: int) -> Columns:
    """Spending of households, the less alike the larger the income."""
    persons, income = 1 + rng.binomial(5, 0.27, n), 38_000 * np.exp(0.45 * rng.standard_normal(n))
    spent = 4_000 + 2_500 * persons + income * np.clip(rng.normal(0.5, 0.24, n), 0, None)
    return {"persons": (persons, (1, 15)), "income": (income, (0, 500_000)), "spent": (spent, (0, 250_000))}


def sensors(rng: Rng, n: int) -> Columns:
    """A temperature and the six before it, autoregressive, and the humidity."""
    noise = rng.normal(0, 1.4, n + 6)
    series = 20 + np.fromiter(accumulate(noise, lambda last, new: 0.95 * last + new), dtype=np.float64)
    humid = 50 - 1.2 * (series[6:] - 20) + rng.normal(0, 12, n)
    lags: Columns = {f"before{j}": (series[6 - j : len(series) - j], (-50, 100)) for j in range(1, 7)}
    return lags | {"humid": (humid, (0, 100)), "now": (series[6:], (-50, 100))}


def stated(name: str, public: Public) -> dpm.Numeric | dpm.Boolean | dpm.Categorical:
    if public is None:
        return dpm.Boolean(name)
    if isinstance(public[0], str):
        return dpm.Categorical(name, tuple(map(str, public)))
    return dpm.Numeric(name, float(public[0]), float(public[1]))


def entry(law: Callable[[Rng, int], Columns], n: int, seed: int, target: str) -> Entry:
    """A synthetic table that older judges do not run."""

    def make() -> Made:
        columns = law(np.random.default_rng(seed), n)
        schema = dpm.Schema(*(stated(name, public) for name, (_, public) in columns.items()))
        return pd.DataFrame({name: cells for name, (cells, _) in columns.items()}), schema

    return Entry(law.__name__.replace("_", "-"), "regression", "fresh regressions", False, make, target)


TABLES = (
    entry(trial, 400, 901, "after"),
    entry(factorial, 530, 902, "strength"),
    entry(intensive_care, 700, 903, "died"),
    entry(bodies, 920, 904, "fat"),
    entry(harvest, 1_220, 905, "tons"),
    entry(blood, 1_610, 906, "pressure"),
    entry(deliveries, 2_130, 907, "minutes"),
    entry(likert, 2_820, 908, "satisfied"),
    entry(pupils, 3_720, 909, "score"),
    entry(plant, 4_920, 910, "output"),
    entry(claims, 6_500, 911, "cost"),
    entry(energy, 8_760, 912, "load"),
    entry(visits, 11_350, 913, "visits"),
    entry(returns, 15_000, 914, "fund"),
    entry(wages, 19_800, 915, "wage"),
    entry(days, 26_200, 916, "content"),
    entry(housing, 34_600, 917, "price"),
    entry(credit, 45_800, 918, "unpaid"),
    entry(spending, 60_500, 919, "spent"),
    entry(sensors, 80_000, 920, "now"),
)
