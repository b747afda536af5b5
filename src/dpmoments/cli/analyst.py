"""The commands of whoever holds a release: show, ridge, pca, verify. They cost no privacy."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

import dpmoments
from dpmoments.cli.options import AsJson, ReleaseFile
from dpmoments.cli.tables import complain, number, print_json, print_table, print_text
from dpmoments.moment_release import MomentRelease
from dpmoments.schema.columns import Boolean, Categorical, Column, Numeric
from dpmoments.verification import Check, checks

__all__ = ["pca", "ridge", "show", "verify"]


class Scaling(StrEnum):
    """What features are divided by before principal components are taken."""

    UNITS = "units"
    BOUNDS = "bounds"
    CORRELATION = "correlation"


def show(file: ReleaseFile, as_json: AsJson = False) -> None:
    """Show what a release guarantees and what it says, in the table's units.

    Example:

      dpmoments show people.json
    """
    released = dpmoments.load(file)
    spread, is_centered = _spread(released)
    if as_json:
        print_json(_as_dict(released, spread, is_centered))
        return
    print_text(released.privacy.in_words())
    print_text()
    options = ", ".join(f"{key}={value}" for key, value in released.mechanism_options.items())
    print_text(f"mechanism: {released.mechanism}{f' ({options})' if options else ''}; repair: {released.repair}")
    print_text(f"rows: {_rows(released)}")
    print_text()
    print_table(
        ("column", "kind", "public values", "missing"),
        ((column.name, column.kind, _public_values(column), column.missing) for column in released.schema.columns),
    )
    print_text()
    noise = _mean_noise(released)
    numbers = ("mean", "± noise", "standard deviation" if is_centered else "root mean square")
    means = released.mean if released.noisy_sum is not None else [None] * len(released.feature_names)
    print_table(
        ("feature", *numbers),
        (
            (name, number(mean), number(error), number(deviation))
            for name, mean, error, deviation in zip(released.feature_names, means, noise, spread, strict=True)
        ),
        numbers=numbers,
    )
    if any(error is not None for error in noise):
        print_text("± noise: standard deviation of the noise that privacy adds to the mean, before repair.")
    for text in released.warnings:
        print_text()
        print_text(f"WARNING: {text}.")


def ridge(
    file: ReleaseFile,
    target: Annotated[str, typer.Argument(help="The feature to predict, as 'show' names it.", show_default=False)],
    feature: Annotated[
        list[str] | None,
        typer.Option("--feature", help="A feature or column to use; may be repeated. Default: all of other columns."),
    ] = None,
    alpha: Annotated[float, typer.Option("--alpha", help="Penalty, for encoded rows of length 1 at most.")] = 0.0,
    intercept: Annotated[
        bool | None,
        typer.Option("--intercept/--no-intercept", help="Fit an intercept; default: where a mean was released."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ridge regression of one feature on others, from a release. Costs no privacy.

    Minimises |y - Xw|²/(2n) + alpha |w|² over encoded rows; the coefficients are
    shown in the table's units.

    Example:

      dpmoments ridge people.json income --feature age --alpha 0.001
    """
    fit = dpmoments.load(file).ridge(target, feature or None, alpha=alpha, intercept=intercept)
    if not as_json:
        print_text(fit.summary())
        return
    print_json(
        {
            "target": fit.target,
            "intercept": fit.intercept,
            "coefficients": dict(zip(fit.features, fit.coefficients.tolist(), strict=True)),
            "alpha": fit.alpha,
            "r_squared": fit.r_squared,
            "unit_ball_error_bound": fit.unit_ball_error_bound,
            "level": fit.level,
        }
    )


def pca(
    file: ReleaseFile,
    components: Annotated[
        int | None, typer.Option("-k", "--components", min=1, help="How many; default: all.", show_default=False)
    ] = None,
    scaling: Annotated[
        Scaling,
        typer.Option(
            "--scaling",
            help="units: as they are; bounds: divided by half the width of their bounds; correlation: divided by their "
            "standard deviation.",
        ),
    ] = Scaling.UNITS,
    as_json: AsJson = False,
) -> None:
    """Principal components, from a release. Costs no privacy.

    Example:

      dpmoments pca people.json -k 3 --scaling bounds
    """
    found = dpmoments.load(file).pca(components, scaling=str(scaling))
    if not as_json:
        print_text(found.summary())
        return
    print_json(
        {
            "feature_names": found.feature_names,
            "components": found.components,
            "explained_variance": found.explained_variance,
            "explained_variance_ratio": found.explained_variance_ratio,
            "mean": found.mean,
            "scale": found.scale,
        }
    )


def verify(file: ReleaseFile) -> None:
    """Check that a release is whole and agrees with itself. Exit code 1 if not.

    The checksum finds accidents and careless edits; it is not a signature.

    Example:

      dpmoments verify people.json
    """
    released = dpmoments.load(file)
    print_text("ok        a release of a known version, whole, as it was written (checksum)")
    outcomes = checks(released)
    for check in outcomes:
        print_text(f"{_mark(check)}{check.what}: {check.detail}")
    if not released.privacy.private:
        complain("WARNING: NOT PRIVATE: this release was made with an insecure seed and protects nobody.")
    failed = [check for check in outcomes if check.passed is False]
    if failed:
        complain(f"dpmoments: {file} does not agree with itself: {'; '.join(check.what for check in failed)}")
        raise typer.Exit(1)


def _mark(check: Check) -> str:
    return "unknown   " if check.passed is None else "ok        " if check.passed else "FAILED    "


def _rows(released: MomentRelease) -> str:
    if released.noisy_count is None:
        return "not released (the number of rows is private and nothing was spent on it)"
    if released.count_is_public:
        return f"{released.n_rows:,} (public, exact)"
    law = released.noise
    deviation = ""
    if law is not None and law.count_variance is not None:
        deviation = f", standard deviation {number(math.sqrt(law.count_variance))}"
    return f"{released.n_rows:,} (noisy{deviation})"


def _spread(released: MomentRelease) -> tuple[list[float | None], bool]:
    """Standard deviations; without a mean root mean squares; without a count nothing can be said."""
    if released.noisy_count is None:
        return [None] * len(released.feature_names), released.noisy_sum is not None
    variance = np.diag(released.covariance if released.noisy_sum is not None else released.second_moment)
    # Without repair a variance can come out negative: it has no root.
    return [math.sqrt(value) if value >= 0 else None for value in variance], released.noisy_sum is not None


def _mean_noise(released: MomentRelease) -> list[float | None]:
    """First-order standard deviation of the noise on the mean, (noise of the sum − mean · noise of the count)/n."""
    law = released.noise
    if released.noisy_sum is None or law is None or law.sum_variance is None or law.count_variance is None:
        return [None] * len(released.feature_names)
    variance: npt.NDArray[np.float64] = law.sum_variance + released.unit_ball_mean**2 * law.count_variance
    deviations: list[float | None] = [*(np.sqrt(variance) / released.n_rows * released.encoding.scale).tolist()]
    return deviations


def _public_values(column: Column) -> str:
    if isinstance(column, Numeric):
        return column.public_values_in_words
    if isinstance(column, Categorical):
        shown = ", ".join(map(str, column.levels[:4]))
        return f"{shown}, … ({len(column.levels)} levels)" if len(column.levels) > 4 else shown
    return "true or false" if isinstance(column, Boolean) else "row clipped in length"


def _as_dict(released: MomentRelease, spread: list[float | None], is_centered: bool) -> dict[str, Any]:
    counted = released.noisy_count is not None
    return {
        "privacy": released.privacy.to_dict() | {"in_words": released.privacy.in_words()},
        "mechanism": released.mechanism,
        "mechanism_options": dict(released.mechanism_options),
        "repair": str(released.repair),
        "warnings": list(released.warnings),
        "noise": None if released.noise is None else released.noise.to_dict(),
        "schema": released.schema.to_dict(),
        "n_rows": released.n_rows if counted else None,
        "feature_names": released.feature_names,
        "mean": released.mean if released.noisy_sum is not None else None,
        "mean_noise": _mean_noise(released),
        "standard_deviation" if is_centered else "root_mean_square": spread,
        "covariance": released.covariance if is_centered else None,
        "second_moment": released.second_moment if counted else None,
        "gram": released.gram,
    }
