"""Slow, obvious reference of the data plane: one row at a time, Python floats and unbounded integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def reference_lattice_row(
    cells: Sequence[float],
    *,
    bits: int,
    radius: float,
    center: Sequence[float] | None = None,
    linear: Sequence[Sequence[float]] | None = None,
    missing: str = "error",
) -> tuple[list[int], bool]:
    """Lattice row of one row of cells, and whether it was dropped (docs/evidence/derivations/exact-sums.md, section 3)."""
    values = [cell - shift for cell, shift in zip(cells, center or [0.0] * len(cells), strict=True)]
    dropped = False
    if not all(math.isfinite(value) for value in values):
        if missing == "error":
            raise ValueError("missing")
        dropped = missing == "drop"
        values = [0.0 if dropped or not math.isfinite(value) else value for value in values]
    exponent = 0
    if linear is not None:
        values, exponent = reference_image(values, linear)
    n_features = len(values)
    limit = 2**bits
    units = 2.0**bits / radius
    units = units if exponent == 0 else _ldexp(units, exponent)
    scaled = [value * units for value in values]
    dimension_bits = (n_features - 1).bit_length()
    target = 2.0**bits - math.sqrt(n_features) / 2.0 - 2.0**-6
    if all(math.isfinite(value) for value in scaled) and sum(round(value) ** 2 for value in scaled) < 2**53:
        integers = [round(value) for value in scaled]
        squares = sum(integer**2 for integer in integers)
        if squares <= limit**2:
            return integers, dropped
    else:
        peak = math.frexp(max(abs(value) for value in values))[1]
        shift = (53 - dimension_bits) // 2 - peak
        integers = [round(value * math.ldexp(1.0, shift)) for value in values]
        squares = sum(integer**2 for integer in integers)
        assert squares <= 2**53
    factor = target / math.sqrt(squares)
    clipped = [round(integer * factor) for integer in integers]
    assert sum(integer**2 for integer in clipped) <= limit**2  # lemma 3: the fallback is never needed
    return clipped, dropped


def reference_image(values: Sequence[float], linear: Sequence[Sequence[float]]) -> tuple[list[float], int]:
    """Image of one row by the sliced product, with exact rationals in place of exact float products."""
    n_inner = len(values)
    p = (53 - (n_inner - 1).bit_length()) // 2
    exponent = max(math.frexp(max(abs(value) for value in values))[1], -900)
    first, second = _slices(values, p, exponent)
    image = []
    for entries in linear:
        g = max(math.frexp(max(abs(entry) for entry in entries))[1], -400)
        b_first, b_second = _slices(entries, p, g)
        unit, fine_unit = Fraction(2) ** (g - p), Fraction(2) ** (g - 2 * p - 1)
        leading = float(unit * sum(a * b for a, b in zip(first, b_first, strict=True)))
        finer = float(fine_unit * sum(a * b for a, b in zip(first, b_second, strict=True)))
        trailing = float(fine_unit * sum(a * b for a, b in zip(second, b_first, strict=True)))
        image.append((trailing + finer) + leading)
    return image, exponent - p


def _slices(values: Sequence[float], p: int, exponent: int) -> tuple[list[int], list[int]]:
    scaled = [value * math.ldexp(1.0, p - exponent) for value in values]
    first = [round(value) for value in scaled]
    second = [round((value - high) * 2.0 ** (p + 1)) for value, high in zip(scaled, first, strict=True)]
    return first, second


def _ldexp(value: float, exponent: int) -> float:
    return math.ldexp(value, min(exponent, 1000 - math.frexp(value)[1]))


def reference_sums(lattice_rows: Sequence[Sequence[int]], n_features: int) -> tuple[list[int], list[list[int]]]:
    """Σz and Σzzᵀ of integer rows."""
    total = [sum(row[j] for row in lattice_rows) for j in range(n_features)]
    gram = [[sum(row[j] * row[k] for row in lattice_rows) for k in range(n_features)] for j in range(n_features)]
    return total, gram
