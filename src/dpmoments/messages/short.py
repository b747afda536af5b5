"""Short words, for cells of tables and captions: the queries of a receipt."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpmoments.messages.codes import Fact
from dpmoments.messages.wording import Words


def _of_step(query: str) -> Words:
    """Return words that begin with the step of a run that a query belongs to."""

    def words(facts: Mapping[str, Fact]) -> str:
        if facts.get("last"):
            return f"last step: {query}"
        for name in ("step", "round"):
            if name in facts:
                return f"{name} {facts[name]}: {query}"
        return query

    return words


SHORT: Mapping[str, Words] = MappingProxyType(
    {
        "query": "{name}",
        "count": "count",
        "sum": _of_step("sum"),
        "sum-and-count": "sum and count",
        "gram": _of_step("Gram matrix"),
        "sum-and-gram": _of_step("sum and Gram matrix"),
        "squares": _of_step("squares"),
        "count-sum-gram": "count, sum and Gram matrix",
        "sum-and-squares": "sum and sum of squares",
        "mapped-rows": "sums of mapped rows",
        "eigenvalues": "eigenvalues",
        "directions": "directions",
        "direction": "direction {direction}",
        "inverse-gram": "inverse of the Gram matrix",
        "padded-gram": "padded Gram matrix",
        "eigenvalue-bound": "bound on the smallest eigenvalue",
        "norm-histogram": lambda facts: f"histogram of norms {facts.get('histogram', '')}".rstrip(),
        "outlying-rows": "count of outlying rows",
        "ball-center": "sum of rows, for the center",
        "ball-screening": "count of rows outside the screening radius",
        "ball-radius": lambda facts: (
            f"clipping radius: comparison {facts['comparison']}" if "comparison" in facts else "clipping radius"
        ),
        "ball-outside": "count of rows outside the clipping ball",
        "ball-excess": "clipped excess",
        "coordinate-mean": "mean of feature {feature}",
        "coordinate-scale": "scale of feature {feature}",
        "coordinate-bin": "bin of feature {feature}, level {level}",
        "coordinate-quantile": "quantile {quantile:g} of feature {feature}, level {level}",
        "clamped-values": "clamped values of feature {feature}",
        "values-beyond-noise": "values of feature {feature} above the noise",
        "median": "median of feature {feature}, level {level}",
        "rows-far-from-median": "rows far from the median of feature {feature}, level {level}",
        "log-scale-histogram": "log-scale histogram of feature {feature}",
        "clipped-rows-of-feature": "clipped rows of feature {feature}",
        "cell-counts": "counts by {names:all}",
        "residual-products": "clipped residual products of {target}, step {step}",
    }
)
"""Words by code."""
