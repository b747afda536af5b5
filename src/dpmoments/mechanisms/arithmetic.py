"""What the guarantee of a mechanism rests on, as it runs."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Arithmetic"]


class Arithmetic(StrEnum):
    """What the stated guarantee rests on.

    ``EXACT_LATTICE``: integer sums and exact discrete noise; the proof holds for the program as it runs.
    ``LATTICE_ROUNDED``: integer sums; the noise is drawn in floating point and rounded to the lattice.
    ``IDEALIZED``: the proof is for real numbers; the sampler works in floating point.
    """

    EXACT_LATTICE = "exact-lattice"
    LATTICE_ROUNDED = "lattice-rounded"
    IDEALIZED = "idealized"
