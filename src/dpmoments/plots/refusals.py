"""What a picture says where it cannot be drawn: what was asked, why it cannot be, and what can."""

from __future__ import annotations

from dpmoments.analysis.functionals import NO_MEAN
from dpmoments.analysis.released import Released

__all__ = ["require_count", "require_mean"]

NO_COUNT = (
    "the release has no number of rows (mean=False under add_remove spends nothing on it), so that nothing can be divided by it: "
    "release with mean=True, or pass a public n_rows to release()"
)


def require_mean(release: Released, what: str) -> None:
    """Raise unless a mean was released.

    Raises
    ------
    ValueError
        If none was.
    """
    if release.noisy_sum is None:
        require_count(release, what)
        raise ValueError(f"no picture of {what}: {NO_MEAN}, or draw release.plot.spectrum(), which needs none")


def require_count(release: Released, what: str) -> None:
    """Raise unless a number of rows was released, or is public.

    Raises
    ------
    ValueError
        If there is none.
    """
    if release.noisy_count is None:
        raise ValueError(f"no picture of {what}: {NO_COUNT}")
