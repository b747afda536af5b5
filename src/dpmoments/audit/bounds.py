"""Lower bounds on ε that hold with stated confidence, from how often an event was seen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.foundation.arrays import FloatArray

__all__ = ["epsilon_lower_bound", "probability_above", "probability_below"]


def probability_above(successes: npt.ArrayLike, trials: int, failure: float) -> FloatArray:
    """Clopper–Pearson lower bounds: the probability is at least this, with confidence 1 − failure each.

    Parameters
    ----------
    successes : array_like of int, any shape
    trials : int
    failure : float
        Probability that the bound is wrong.

    Examples
    --------
    >>> probability_above([0, 10], 10, 0.05).round(3).tolist()
    [0.0, 0.741]
    """
    count = np.asarray(successes, dtype=np.float64)
    return np.where(count > 0, scipy.special.betaincinv(np.maximum(count, 1.0), trials - count + 1.0, failure), 0.0)


def probability_below(successes: npt.ArrayLike, trials: int, failure: float) -> FloatArray:
    """Clopper–Pearson upper bounds; parameters as in :func:`probability_above`.

    Examples
    --------
    >>> probability_below([0, 10], 10, 0.05).round(3).tolist()
    [0.259, 1.0]
    """
    return 1.0 - probability_above(trials - np.asarray(successes), trials, failure)


def epsilon_lower_bound(
    hits: npt.ArrayLike, other_hits: npt.ArrayLike, trials: int, delta: float, failure: float
) -> FloatArray:
    """The least ε that (ε, δ)-differential privacy can still have, given how often an event was seen on two neighbours.

    ε ≥ log((p − δ)/q) for every event, p and q its probabilities on the two tables; p is taken at its lower and q at its upper
    Clopper–Pearson bound.

    Parameters
    ----------
    hits, other_hits : array_like of int, of one shape
        Times the event was seen on one table and on its neighbour. The event must have been fixed without these draws.
    trials : int
        Draws on each table.
    delta : float
    failure : float
        Probability that a bound is wrong, half of it for each of p and q.

    Returns
    -------
    ndarray
        0 where nothing can be said.

    Examples
    --------
    >>> float(epsilon_lower_bound(5000, 1800, 10_000, 0.0, 0.001).round(3))
    0.919
    """
    p = probability_above(hits, trials, failure / 2.0) - delta
    q = probability_below(other_hits, trials, failure / 2.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > q, np.log(np.maximum(p, 0.0) / q), 0.0)
