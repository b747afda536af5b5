"""Privacy loss of one draw from each noise distribution.

Both relations, every unit of loss, in one place.

A draw's class is its public description. It states the loss for a query of a given sensitivity, and refuses a unit in which its
loss does not add up. Draws that are private only by their own exact curve (Wishart draws) take a *claim*, the (ε, δ) that the
plan states for them, and check it on the curve: it is never trusted. Each has its derivation in ``docs/evidence/derivations``,
and ``tests/privacy/test_laws.py`` compares each loss with the exact distribution.
"""

from __future__ import annotations as annotations

from collections.abc import Mapping as Mapping
from types import MappingProxyType as MappingProxyType

from dpmoments.privacy.laws.additive import DiscreteGaussian as DiscreteGaussian
from dpmoments.privacy.laws.additive import DiscreteLaplace as DiscreteLaplace
from dpmoments.privacy.laws.additive import GaussianDraw as GaussianDraw
from dpmoments.privacy.laws.additive import IsotropicDraw as IsotropicDraw
from dpmoments.privacy.laws.additive import MatrixLaplaceDraw as MatrixLaplaceDraw
from dpmoments.privacy.laws.base import DrawLaw as DrawLaw
from dpmoments.privacy.laws.choices import Choice as Choice
from dpmoments.privacy.laws.choices import Directions as Directions
from dpmoments.privacy.laws.wishart import AdditiveWishartDraw as AdditiveWishartDraw
from dpmoments.privacy.laws.wishart import EigenvalueBound as EigenvalueBound
from dpmoments.privacy.laws.wishart import RaisedWishartSampling as RaisedWishartSampling
from dpmoments.privacy.laws.wishart import WishartSampling as WishartSampling

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
"""Every kind of draw by name."""
