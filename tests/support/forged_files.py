"""Release files as a forger would edit them: the checksum is mended, so that what is written itself must be found wrong."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpmoments.base.values import from_plain, rounded_up
from dpmoments.privacy.accounting import LossUnit, allowance
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.laws import LAWS
from dpmoments.privacy.sensitivity import sensitivity_from_dict

Content = dict[str, Any]
Edit = Callable[[Content], object]


def signed(document: Content) -> str:
    """The text of a file with the checksum that goes with its content."""
    canonical = json.dumps(document["content"], sort_keys=True, separators=(",", ":"))
    return json.dumps(document | {"sha256": hashlib.sha256(canonical.encode()).hexdigest()})


def forge(path: Path, edit: Edit) -> None:
    """Edit the content of a file, and mend its checksum."""
    document = copy.deepcopy(json.loads(path.read_text()))
    edit(document["content"])
    path.write_text(signed(document))


def with_true_losses(content: Content) -> None:
    """State of every draw what its law and sensitivity come to, and of the receipt what its cost allows."""
    receipt = content["receipt"]
    counted = allowance(PrivacyBudget.from_dict(receipt["cost"]), LossUnit(receipt["loss_unit"]))
    receipt["allowance"] = rounded_up(counted.amount)
    for draw in receipt["draws"]:
        law = dict(from_plain(draw["law"]))
        sensitivity = sensitivity_from_dict(from_plain(draw["sensitivity"]))
        draw["sensitivity"]["value"] = sensitivity.value
        loss = LAWS[law.pop("name")](**law).loss(sensitivity, counted.unit)
        draw["loss"], draw["delta"] = rounded_up(loss.amount), rounded_up(loss.delta)


def more_noise(content: Content, factor: float) -> None:
    """Let the receipt state so many times the noise there is; below 1 it is less."""
    for draw in content["receipt"]["draws"]:
        law = draw["law"]
        for key, power in (("scale", 1), ("off_diagonal_scale", 1), ("rate", -1), ("epsilon", -1)):
            if law.get(key) is not None:
                law[key] *= factor**power
    with_true_losses(content)


def times(budget: Content, factor: float) -> None:
    """Another amount of a budget of the same kind."""
    key = "rho" if budget["kind"] == "zcdp" else "epsilon"
    budget[key] *= factor


def smaller_budget_everywhere(content: Content) -> None:
    """A receipt that adds up, of noise that was never drawn."""
    for budget in (content["privacy"]["budget"], content["receipt"]["cost"]):
        times(budget, 0.1)
    more_noise(content, 10.0)
