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
from support.said import Said

Content = dict[str, Any]
Edit = Callable[[Content], object]
OTHER = {"add_remove": "replace_one", "replace_one": "add_remove"}


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


def larger_cost(content: Content) -> None:
    times(content["receipt"]["cost"], 2.0)
    with_true_losses(content)


def smaller_budget_everywhere(content: Content) -> None:
    """A receipt that adds up, of noise that was never drawn."""
    for budget in (content["privacy"]["budget"], content["receipt"]["cost"]):
        times(budget, 0.1)
    more_noise(content, 10.0)


def other_relation(content: Content) -> None:
    receipt = content["receipt"]
    receipt["neighbors"] = OTHER[receipt["neighbors"]]
    for draw in receipt["draws"]:
        # a value that is stated too large is not refused: the sensitivity is computed anew
        draw["sensitivity"].update(neighbors=receipt["neighbors"], value=10 * draw["sensitivity"]["value"])
    more_noise(content, 10.0)


def draw_of_other_relation(content: Content) -> None:
    sensitivity = content["receipt"]["draws"][0]["sensitivity"]
    sensitivity.update(neighbors=OTHER[sensitivity["neighbors"]], value=10 * sensitivity["value"])
    with_true_losses(content)


def draw(name: str, value: Any, *inside: str) -> Edit:
    """Set an entry of the first draw, or of a mapping in it."""

    def edit(content: Content) -> None:
        target = content["receipt"]["draws"][0]
        for part in inside:
            target = target[part]
        target[name] = value(target[name]) if callable(value) else value

    return edit


def receipt(name: str, value: Any) -> Edit:
    """Set an entry of the receipt."""

    def edit(content: Content) -> None:
        target = content["receipt"]
        target[name] = value(target.get(name)) if callable(value) else value

    return edit


NOT_FOR_IT = Said("the receipt is not for the stated budget and relation")
FORGED_RECEIPTS: dict[str, tuple[Edit, Said]] = {
    "absent": (lambda content: content.pop("receipt"), Said("it has no entry", name="receipt")),
    "null": (
        lambda content: content.update(receipt=None),
        Said("receipt must be a mapping"),
    ),
    "empty": (lambda content: content.update(receipt={}), Said("it has no entry", name="protected_unit")),
    "without draws": (lambda content: content["receipt"].pop("draws"), Said("it has no entry", name="draws")),
    "draws of text": (receipt("draws", "none"), Said("receipt.draws must be a list")),
    "a draw twice": (
        receipt("draws", lambda draws: [*draws, draws[0]]),
        Said("the draws of this receipt add up to more than the stated"),
    ),
    "less noise than is paid for": (
        lambda content: more_noise(content, 0.5),
        Said("the draws of this receipt add up to more than the stated"),
    ),
    "a loss stated as less": (
        draw("loss", lambda loss: loss / 2),
        Said("is not the loss of its distribution at its sensitivity"),
    ),
    "a delta stated as more": (draw("delta", 0.5), Said("is not the loss of its distribution at its sensitivity")),
    "less noise at the same loss": (
        draw(
            "law", lambda law: law | {"scale": law["scale"] / 2} if "scale" in law else law | {"rate": 2 * law["rate"]}
        ),
        Said("is not the loss of its distribution at its sensitivity"),
    ),
    "a sensitivity stated as less": (
        draw("value", lambda value: value / 2, "sensitivity"),
        Said("is stated as less than it is"),
    ),
    "a negative sensitivity": (
        draw("value", -1.0, "sensitivity"),
        Said("sensitivity.value must be a finite number, 0 or above"),
    ),
    "units of text": (draw("units", "1", "sensitivity"), Said("sensitivity.units must be a finite number")),
    "a sensitivity of another norm": (
        draw("sensitivity", lambda known: known | {"name": "rank_score", "arguments": {}}),
        Said("noise needs a sensitivity in", given="score"),
    ),
    "an unknown sensitivity": (draw("name", "magic", "sensitivity"), Said("unknown sensitivity", name="magic")),
    "an unknown law": (draw("name", "magic", "law"), Said("unknown noise distribution", name="magic")),
    "an unknown parameter of a law": (draw("law", lambda law: law | {"magic": 1}), Said("and the file has others")),
    "a size that is no number": (draw("size", 0.5), Said("receipt.draws.size must be a whole number")),
    "a draw of another relation": (
        draw_of_other_relation,
        Said("a draw of the receipt has the sensitivity of another"),
    ),
    "a whole receipt of another relation": (other_relation, NOT_FOR_IT),
    "a receipt of a larger cost": (larger_cost, NOT_FOR_IT),
    "a statement of a smaller budget": (lambda content: times(content["privacy"]["budget"], 0.1), NOT_FOR_IT),
    "a statement of another relation": (
        lambda content: content["privacy"].update(neighbors=OTHER[content["privacy"]["neighbors"]]),
        NOT_FOR_IT,
    ),
    "a wrong allowance": (
        receipt("allowance", lambda known: 2 * known),
        Said("the receipt's allowance does not equal its cost"),
    ),
    "a cost of no kind": (receipt("cost", None), Said("must be a mapping", name="receipt.cost")),
    "an unknown unit": (
        receipt("loss_unit", "magic"),
        Said("receipt.loss_unit must be one of"),
    ),
    "a unit of another kind of cost": (
        receipt("loss_unit", lambda unit: "rho" if unit == "epsilon" else "epsilon"),
        Said("do not add up to a cost of"),
    ),
    "an unknown relation": (
        receipt("neighbors", "none"),
        Said("receipt.neighbors must be one of"),
    ),
    "an unknown entry": (
        lambda content: content["receipt"].update(paid=True),
        Said("has unknown entries", name="receipt", names=("'paid'",)),
    ),
}
"""What is done to the receipt of any release of pure ε or ρ, and what loading refuses it with."""
