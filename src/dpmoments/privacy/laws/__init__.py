"""What one draw of each law costs: every law, both relations, every unit of loss, in one place.

A law is the public description of a draw. It says what it costs for a query of a given sensitivity, and refuses a unit in
which its loss does not add up. The laws of mechanisms that are private only by their own exact curve (Wishart draws) take a
*claim*, the (ε, δ) that the plan says they cost, and check it on the curve: it is never trusted. Each law has its derivation in
``docs/derivations``, and ``tests/privacy/test_laws.py`` compares each cost with the exact law.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpmoments.privacy.laws.additive import (
    DiscreteGaussian,
    DiscreteLaplace,
    GaussianDraw,
    IsotropicDraw,
    MatrixLaplaceDraw,
)
from dpmoments.privacy.laws.base import DrawLaw
from dpmoments.privacy.laws.choices import Choice, Directions
from dpmoments.privacy.laws.wishart import (
    AdditiveWishartDraw,
    EigenvalueBound,
    RaisedWishartSampling,
    WishartSampling,
)

__all__ = [
    "LAWS",
    "AdditiveWishartDraw",
    "Choice",
    "Directions",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DrawLaw",
    "EigenvalueBound",
    "GaussianDraw",
    "IsotropicDraw",
    "MatrixLaplaceDraw",
    "RaisedWishartSampling",
    "WishartSampling",
]

LAWS: Mapping[str, type[DrawLaw]] = MappingProxyType(
    {
        law.name: law
        for law in (
            AdditiveWishartDraw,
            Choice,
            Directions,
            DiscreteGaussian,
            DiscreteLaplace,
            EigenvalueBound,
            GaussianDraw,
            IsotropicDraw,
            MatrixLaplaceDraw,
            RaisedWishartSampling,
            WishartSampling,
        )
    }
)
"""Every law of a draw by name."""
