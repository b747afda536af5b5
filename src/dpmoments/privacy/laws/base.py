"""Contract of every kind of draw.

A name, the norm of its query's sensitivity, the privacy loss.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields
from enum import Enum
from fractions import Fraction
from typing import Any, ClassVar

from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.values import is_finite_number
from dpmoments.messages.message import Message
from dpmoments.privacy.accounting import Loss, LossUnit
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves.composed import PrivacyCurve
from dpmoments.privacy.curves.zcdp import pure_to_zcdp
from dpmoments.privacy.distances import Norm, Sensitivity


class Answer(Enum):
    """Kind of query that a draw adds noise to, or chooses from."""

    NUMBER = "a number"
    VECTOR = "a vector"
    MATRIX = "a symmetric matrix"
    EITHER = "a vector or a symmetric matrix"


@dataclass(frozen=True)
class DrawLaw(ABC):
    """Description of one draw: frozen, plain parameters, registered by name."""

    name: ClassVar[str]
    norm: ClassVar[Norm]
    """Norm in which the query's sensitivity must be stated."""

    on_lattice: ClassVar[bool] = False
    """True if its noise is of integers, for integer queries only."""
    claims: ClassVar[bool] = False
    """True if its cost is a claim that is checked on an exact curve, instead of a formula."""
    is_gaussian: ClassVar[bool] = False
    """True if losses of its draws add up like those of normal noise, before becoming a curve."""
    delta_is_of_bound: ClassVar[bool] = False
    """True if δ is the failure probability of a bound that later draws rely on."""
    attained_alone: ClassVar[bool] = False
    """True if its loss is attained by tables without other rows only."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            _check_parameter(self.name, entry.name, entry.type, getattr(self, entry.name))

    def loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget | None = None) -> Loss:
        """Return the privacy loss of a draw, exactly or rounded up.

        ``claim`` is the (ε, δ) that the plan states for the draw, if it has an exact curve instead of a formula.
        """
        if sensitivity.norm is not self.norm:
            raise InputValueError(
                Message("distribution-of-other-norm", distribution=self.name, norm=self.norm, given=sensitivity.norm)
            )
        if claim is not None and not self.claims:
            raise InputValueError(Message("distribution-takes-no-claim", distribution=self.name))
        return self._loss(sensitivity, unit, claim)

    @abstractmethod
    def _loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget | None) -> Loss: ...

    @abstractmethod
    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        """Return privacy curves of the parts of a draw, one after another.

        None if no more than its price is known.

        Gaussian draws have none: its losses add up before they become a curve (``docs/evidence/derivations/privacy-profile.md``).
        """

    @property
    def lattice_scales(self) -> tuple[float, ...]:
        """Scales of discrete normal noise, in lattice units; empty for other noise."""
        return ()

    @abstractmethod
    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        """Return True if two neighboring tables attain all the loss of a draw of ``size`` numbers."""

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise ValueError if its noise, and so its loss, is not for a query of that shape."""
        vector, square = len(shape) == 1, len(shape) == 2 and shape[0] == shape[1]
        fits = {
            Answer.NUMBER: shape == (),
            Answer.VECTOR: vector,
            Answer.MATRIX: square,
            Answer.EITHER: vector or square,
        }
        if not fits[self.answers] or 0 in shape:
            raise InputValueError(Message("distribution-of-other-shape", distribution=self.name, shape=shape))
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name in _SIZES and value != shape[0]:
                raise InputValueError(
                    Message("distribution-of-other-rows", distribution=self.name, value=value, shape=shape)
                )
            if isinstance(value, tuple) and not 0 < len(value) <= shape[0]:
                raise InputValueError(
                    Message(
                        "distribution-of-other-length",
                        distribution=self.name,
                        n_value=len(value),
                        entry=entry.name,
                        shape=shape,
                    )
                )

    @property
    @abstractmethod
    def answers(self) -> Answer:
        """Kind of query it is for."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {"name": self.name} | asdict(self)

    def refused(self, unit: LossUnit) -> ValueError:
        """Return the error for a unit in which its loss does not add up."""
        return InputValueError(Message("loss-not-in-unit", distribution=self.name, unit=unit))


def pure_loss(law: DrawLaw, epsilon: Fraction, unit: LossUnit) -> Loss:
    """Return the loss of a draw whose log-ratio is at most ``epsilon``, in any unit."""
    if unit in (LossUnit.EPSILON, LossUnit.EPSILON_DELTA):
        return Loss(unit, epsilon)
    if unit is LossUnit.RHO:
        return Loss(unit, Fraction(pure_to_zcdp(math.nextafter(float(epsilon), math.inf))))
    raise law.refused(unit)


_ATTAINED = ("count", "count_l1", "gram_frobenius", "gram_nuclear")
"""Sensitivities that some two neighbors attain.

``tests/privacy/test_sensitivity.py`` has them.
"""


def attains(sensitivity: Sensitivity) -> bool:
    """Return True if some two neighboring tables attain the sensitivity."""
    return sensitivity.name in _ATTAINED


_MAX_BITS = 64
_POSITIVE = ("scale", "scales", "off_diagonal_scale", "rate")
_SIGNED = ("temperatures",)
_SIZES = ("dimension", "n_features")
"""Parameters that are the number of rows of the query."""


def _check_parameter(law: str, name: str, kind: Any, value: Any) -> None:
    """Raise TypeError or ValueError if a file or mechanism gives an invalid parameter."""
    words = f"{name} of a {law} draw"
    if value is None and kind == "float | None":
        return
    if kind == "bool":
        if not isinstance(value, bool):
            raise InputTypeError(Message("distribution-flag", parameter=words))
    elif kind == "int":
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputTypeError(Message("distribution-whole-number", parameter=words))
        if value < (0 if name == "bits" else 1) or (name == "bits" and value > _MAX_BITS):
            raise InputValueError(Message("distribution-out-of-range", parameter=words))
    else:
        several = isinstance(kind, str) and kind.startswith("tuple")
        if several and not isinstance(value, tuple):
            raise InputTypeError(Message("distribution-tuple", parameter=words))
        values, numbers = (value, "finite numbers") if several else ((value,), "a finite number")
        if not all(map(is_finite_number, values)):
            raise InputValueError(Message("distribution-numbers", parameter=words, expected=numbers))
        if name not in _SIGNED and any(each < 0.0 or (name in _POSITIVE and each == 0.0) for each in values):
            raise InputValueError(
                Message(
                    "distribution-sign",
                    parameter=words,
                    expected="above-zero" if name in _POSITIVE else "zero-or-above",
                )
            )
