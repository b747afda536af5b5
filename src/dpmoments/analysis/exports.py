"""A release for programs that fit means and covariances: R with lavaan, Stata, SPSS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from dpmoments.analysis.answers import in_floating_point
from dpmoments.analysis.estimate import MomentErrors
from dpmoments.analysis.functionals import WHY_NOISE_UNKNOWN, independent_features, semidefinite
from dpmoments.analysis.released import Moments
from dpmoments.base.checks import check_one_of, is_whole
from dpmoments.base.errors import InputValueError, out_of_range
from dpmoments.base.values import FloatArray

PROGRAMS = ("lavaan", "stata", "spss")


def _gradients(k: int) -> tuple[FloatArray, FloatArray]:
    """Return the gradients of means and of covariances, in the order of lavaan."""
    column, row = np.triu_indices(k)  # of the lower triangle, column by column
    at = np.arange(k, k + len(row))
    of_covariance = np.zeros((k + len(row), k, k))
    of_covariance[at, row, column] += 0.5
    of_covariance[at, column, row] += 0.5
    return np.eye(k + len(row), k), of_covariance


@in_floating_point
def nacov(release: Moments, columns: Sequence[str] | None = None) -> FloatArray:
    """Compute n times the covariance of means and covariances, for lavaan: free of privacy cost.

    Parameters
    ----------
    release : Moments
    columns : sequence of str, optional
        Columns or features; default: all. Of all levels of a column the most frequent is left out.

    Returns
    -------
    ndarray of shape (p, p)
        For the k means and the lower triangle of the covariances column by column, in original units: ``NACOV=`` of lavaan. Of
        noise and sampling together, for normal rows.

    Raises
    ------
    ValueError
        If a name is unknown, the noise is unknown, or no mean was released.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> table = np.random.default_rng(0).normal(0, 0.2, (50_000, 2))
    >>> dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0).nacov().shape
    (5, 5)
    """
    errors = MomentErrors.of(release, independent_features(release, columns))
    if errors.moments.law is None:
        raise InputValueError(f"{WHY_NOISE_UNKNOWN}; so the covariance of errors cannot be exported")
    privacy, sampling = errors.errors(*_gradients(len(errors.features)))
    return errors.moments.n_rows * (privacy + sampling)


@in_floating_point
def covariance_draws(
    release: Moments, n_draws: int, columns: Sequence[str] | None = None, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Draw means and covariances that the noise could have hidden: free of privacy cost.

    Parameters
    ----------
    release : Moments
    n_draws : int
    columns : sequence of str, optional
        Columns or features; default: all. Of all levels of a column the most frequent is left out.
    seed : int
        Seed of the draws, which is public.

    Returns
    -------
    ndarray of shape (m, k)
        Means.
    ndarray of shape (m, k, k)
        Covariances, positive semi-definite.

    Raises
    ------
    ValueError
        If a name is unknown, the noise is unknown, or no mean was released.

    Notes
    -----
    For a program that takes no ``NACOV``: fit the model to each; the variance of a parameter is the mean of the squared standard
    errors plus the variance between the draws. Draws are normal, with the covariance of the noise.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> table = np.random.default_rng(0).normal(0, 0.2, (50_000, 2))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0)
    >>> released.covariance_draws(12)[1].shape
    (12, 2, 2)
    """
    if not is_whole(n_draws) or n_draws < 1:
        raise out_of_range("n_draws", n_draws, "a positive whole number")
    errors = MomentErrors.of(release, independent_features(release, columns))
    if errors.moments.law is None:
        raise InputValueError(f"{WHY_NOISE_UNKNOWN}; so noise cannot be drawn")
    k = len(errors.features)
    values, vectors = np.linalg.eigh(errors.privacy(*_gradients(k)))
    rng = np.random.default_rng([seed, 2])
    changes = rng.standard_normal((n_draws, len(values))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    means, covariances = errors.mean + changes[:, :k], np.zeros((n_draws, k, k))
    column, row = np.triu_indices(k)
    covariances[:, row, column] = covariances[:, column, row] = errors.covariance[row, column] + changes[:, k:]
    for draw in range(n_draws):
        covariances[draw] = semidefinite(covariances[draw])
    return means, covariances


@in_floating_point
def export(release: Moments, program: Literal["lavaan", "stata", "spss"], columns: Sequence[str] | None = None) -> str:
    """Write means and covariances as a script of another program: free of privacy cost.

    Parameters
    ----------
    release : Moments
    program : {"lavaan", "stata", "spss"}
        R with lavaan, with ``NACOV``, so that errors and tests hold the noise; Stata's ``ssd``; or SPSS's matrix data. The latter
        two know no noise: their errors are too small.
    columns : sequence of str, optional
        Columns or features; default: all. Of all levels of a column the most frequent is left out.

    Returns
    -------
    str
        A script that runs as it is.

    Raises
    ------
    ValueError
        If a name or the program is unknown, or no mean was released.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> table = np.random.default_rng(0).normal(0, 0.2, (50_000, 2))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0)
    >>> print(released.export("stata").splitlines()[2])
    ssd init x0 x1
    """
    check_one_of("program", program, PROGRAMS)
    chosen = independent_features(release, columns)
    names = [release.feature_names[index] for index in chosen]
    mean, covariance, n_rows = release.mean[chosen], release.covariance[np.ix_(chosen, chosen)], release.sample_size
    about = f"Moments of a private release ({release.mechanism}, {release.privacy.budget}), id {release.id}"
    if not release.privacy.private:
        about = f"NOT PRIVATE (made with an insecure seed). {about}"
    too_small = "Standard errors of this program hold sampling and no privacy noise: they are too small."
    if program == "lavaan":
        return _for_lavaan(about, names, mean, covariance, n_rows, nacov(release, columns))
    short = _short_names(names, 32 if program == "stata" else 64)
    said = [f"{new} is {old}" for new, old in zip(short, names, strict=True) if new != old]
    means = " ".join(f"{each:.17g}" for each in mean)
    rows = [" ".join(f"{cell:.17g}" for cell in covariance[at, : at + 1]) for at in range(len(names))]
    if program == "stata":
        head = [f"* {line}" for line in (about, too_small, *said)]
        between = " \\ ".join(rows)
        # a comment would end the line that a script must begin with
        return "\n".join(
            [
                *head[:2],
                f"ssd init {' '.join(short)}",
                f"ssd set observations {n_rows}",
                f"ssd set means {means}",
                f"ssd set covariances {between}",
                *head[2:],
                "",
            ]
        )
    return "\n".join(
        [
            *(f"* {line}." for line in (about, too_small.rstrip("."), *said)),
            f"MATRIX DATA VARIABLES=ROWTYPE_ {' '.join(short)}.",
            "BEGIN DATA",
            f"MEAN {means}",
            f"N {' '.join([str(n_rows)] * len(short))}",
            *(f"COV {row}" for row in rows),
            "END DATA.",
            "",
        ]
    )


def _short_names(names: Sequence[str], longest: int) -> list[str]:
    """Return names of letters, digits and underscores, all different."""
    result: list[str] = []
    for name in names:
        plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)
        plain = (plain if plain[:1].isalpha() else f"v{plain}")[:longest]
        number = 2
        unique = plain
        while unique.lower() in (other.lower() for other in result):
            unique = f"{plain[: longest - 1 - len(str(number))]}_{number}"
            number += 1
        result.append(unique)
    return result


def _for_lavaan(
    about: str, names: Sequence[str], mean: FloatArray, covariance: FloatArray, n_rows: int, gamma: FloatArray
) -> str:
    """Return a script of R that defines S, M, n and NACOV, and shows how to fit a model."""

    def numbers(values: FloatArray) -> str:
        return "c(" + ", ".join(f"{value:.17g}" for value in np.ravel(values)) + ")"

    short, k = _short_names(names, 64), len(names)
    said = [f"# {new} is {old!r}" for new, old in zip(short, names, strict=True) if new != old]
    quoted = ", ".join(f'"{name}"' for name in short)
    return "\n".join(
        [
            f"# {about}",
            "# NACOV holds privacy noise and sampling: errors and tests of lavaan are then right.",
            *said,
            f"names <- c({quoted})",
            f"M <- setNames({numbers(mean)}, names)",
            f"S <- matrix({numbers(covariance)}, {k}, dimnames = list(names, names))",
            f"n <- {n_rows}",
            f"G <- matrix({numbers(gamma)}, {len(gamma)})",
            "",
            "# library(lavaan)",
            f"# fit <- cfa('f =~ {' + '.join(short)}', sample.cov = S, sample.mean = M, sample.nobs = n, NACOV = G,",
            "#            meanstructure = TRUE, se = 'robust.sem', test = 'satorra.bentler', sample.cov.rescale = FALSE)",
            "# summary(fit)",
            "",
        ]
    )
