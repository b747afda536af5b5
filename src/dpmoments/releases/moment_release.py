"""Release of moments, as it is saved; analyses read what it shares with others."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, overload

import numpy as np

from dpmoments.analysis.answers import in_floating_point
from dpmoments.analysis.available_cases import AvailableCases
from dpmoments.analysis.classifiers import lda
from dpmoments.analysis.components import graphical_lasso, mahalanobis, pca
from dpmoments.analysis.correlations import correlations, partial_correlation
from dpmoments.analysis.cross_table import cross_table
from dpmoments.analysis.description import describe, release_card
from dpmoments.analysis.effects import mediation, oaxaca, odds_ratio, vif
from dpmoments.analysis.estimate import estimate
from dpmoments.analysis.exports import covariance_draws, export, nacov
from dpmoments.analysis.goals import Goals, goal_results
from dpmoments.analysis.group_means import group_means
from dpmoments.analysis.group_tests import anova, t_test
from dpmoments.analysis.instruments import iv
from dpmoments.analysis.regression import lasso, ols, ridge
from dpmoments.analysis.released import Moments, Weighting
from dpmoments.analysis.scales import cancorr, cronbach_alpha, factor_analysis, mcdonald_omega, tetrachoric
from dpmoments.analysis.synthetic import synthetic_rows
from dpmoments.base.documents import DocumentKind
from dpmoments.base.errors import InputAttributeError, InputValueError, meant
from dpmoments.base.message import Message
from dpmoments.base.records import ReadBy
from dpmoments.base.values import BoolArray, FloatArray, is_finite_number, to_plain
from dpmoments.base.wordings import REASONS
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.models import NoiseModel
from dpmoments.moments.repair import Repair, floored_count
from dpmoments.privacy.laws import DiscreteGaussian, DiscreteLaplace
from dpmoments.privacy.receipt import Receipt
from dpmoments.releases.disclosed import Disclosed
from dpmoments.schema.constraints import Constraints
from dpmoments.schema.schema import Schema

if TYPE_CHECKING:
    import pandas

    from dpmoments.plots.accessor import ReleasePlots

_CUT = "before a release the column can be cut into ranges: a Categorical has the share of each"
NOT_IN_MOMENTS = MappingProxyType(
    {
        **dict.fromkeys(
            ("median", "quantile", "quantiles", "percentile", "percentiles", "min", "max", "mode"),
            "quantiles need the order of the values, and a release holds count, mean and covariance; describe() has the mean "
            f"and the standard deviation, and {_CUT}",
        ),
        **dict.fromkeys(
            ("hist", "histogram", "boxplot", "kde", "value_counts"),
            "it holds count, mean and covariance, and no distribution of values; describe() has the share of each level, and "
            f"{_CUT}",
        ),
        **dict.fromkeys(
            ("logit", "logistic", "probit", "glm", "poisson", "mnlogit"),
            "a logistic or other generalized linear model needs every row; ols(...) of a Boolean column is the linear "
            "probability model, and lda(...) separates groups by the same moments",
        ),
        **dict.fromkeys(
            ("corr", "cov", "crosstab", "std", "var"),
            "correlations() has correlations, covariance_frame() variances and covariances, describe() standard deviations, "
            "cross_table(by, other) counts, t_test(target, by) a test",
        ),
        **dict.fromkeys(
            ("iv_gmm", "ivgmm", "gmm", "liml", "iv_liml", "iv2sls", "IV2SLS", "IVLIML", "IVGMM"),
            "iv(formula) is two-stage least squares, with a test of over-identification and an Anderson–Rubin set that is right "
            "for weak instruments; weights by the residuals of rows need the rows",
        ),
        **dict.fromkeys(
            ("mixedlm", "lmer", "panel_ols", "PanelOLS", "fixed_effects", "gee"),
            "effects of groups of rows need the rows; C(column) in ols(...) is a coefficient for each level",
        ),
        **dict.fromkeys(
            ("spearman", "kendall", "mannwhitney", "kruskal", "wilcoxon"),
            "ranks need the order of the values; a column can be replaced by its ranks before a release; t_test(...) and "
            "anova(...) compare means",
        ),
        **dict.fromkeys(
            ("kmeans", "cluster", "random_forest", "svm", "knn", "tree", "tsne"),
            "it needs distances between rows; synthetic(n) has rows with the same moments, and no other structure",
        ),
        **{
            name: f"its name here is {own}"
            for own, names in {
                "ols(formula)": "lm regress reg OLS linear_regression",
                "iv(formula)": "tsls ivreg two_stage",
                "t_test(target, by)": "ttest_ind ttest_rel compute_effsize cohen_d",
                "cross_table(by, other)": "chi2 chisq_test chi2_independence crosstab_test",
                "correlations(columns)": "pairwise_corr rcorr pearsonr",
                "partial_correlation(columns)": "pcorr partial_corr",
                "cronbach_alpha(columns)": "alpha",
                "mcdonald_omega(columns)": "omega",
                "factor_analysis(n_factors, columns)": "efa fa factanal FactorAnalyzer",
                'export("lavaan", columns)': "sem cfa lavaan semopy",
            }.items()
            for name in names.split()
        },
        **dict.fromkeys(
            ("wls", "gls", "rlm", "quantreg"),
            "weights of rows, and losses other than squares, need every row; ols(...) is least squares, weighted if the schema "
            "has a sampling weight, with robust errors by cov_type='HC1'",
        ),
        "undo": (
            "what was drawn counts as spent even if its file is deleted, because nobody can prove that nobody has read it; "
            "keep the release: it is paid for, and every analysis of it is free"
        ),
        **dict.fromkeys(
            ("filter", "query", "head", "sample", "loc", "iloc"),
            "rows cannot be chosen after a release; group_means(...) compares groups, and dpm.release_groups(...) makes one "
            "release for each group",
        ),
        "groupby": (
            "group_means(by), anova(target, by) and t_test(target, by) compare groups; dpm.release_groups(...) makes one "
            "release for each group"
        ),
    }
)
"""Methods and commands that moments do not determine: why, and what to use."""


_ENTRIES = {
    "noise": NoiseModel | None,
    "noisy_count": float | None,
    "noisy_sum": FloatArray | None,
    "noisy_gram_upper_triangle": FloatArray,
    "center": FloatArray | None,
    "details": dict,
    "repair": Repair,
    "chosen_because": Annotated[Message, ReadBy(lambda value: Message.from_dict(value, REASONS))] | None,
}
"""Entries of a file besides those of every release, and their kinds."""


@dataclass(frozen=True, eq=False)
class MomentRelease(Moments, Disclosed):
    """Count, mean and second moment of a table, released under differential privacy.

    Made by :func:`dpmoments.release` or :func:`dpmoments.load`. Analyses of it cost no further privacy.

    Attributes
    ----------
    chosen_because : Message or None
        Why ``auto`` chose the mechanism, and what it would take to do better; None where it was named.

    It also has the attributes of :class:`Release` and :class:`Moments`: ``schema``, ``privacy``, ``receipt``,
    ``noise``, ``repair``, ….
    """

    chosen_because: Message | None = None

    file_kind = DocumentKind("dpmoments-release", 1, "release")

    # One line an analysis, a function of a release; the command line has a command for each.
    describe = describe
    ols = ols
    ridge = ridge
    lasso = lasso
    pca = pca
    correlations = correlations
    group_means = group_means
    anova = anova
    t_test = t_test
    cross_table = cross_table
    partial_correlation = partial_correlation
    mahalanobis = mahalanobis
    lda = lda
    graphical_lasso = graphical_lasso
    estimate = estimate
    iv = iv
    odds_ratio = odds_ratio
    vif = vif
    mediation = mediation
    oaxaca = oaxaca
    cronbach_alpha = cronbach_alpha
    mcdonald_omega = mcdonald_omega
    factor_analysis = factor_analysis
    cancorr = cancorr
    tetrachoric = tetrachoric
    nacov = nacov
    covariance_draws = covariance_draws
    export = export
    _repr_html_ = release_card

    if not TYPE_CHECKING:  # type checkers know which names there are

        def __getattr__(self, name: str) -> Any:
            """Raise an error with the reason and the alternative if a release has no such method."""
            if name in NOT_IN_MOMENTS:
                raise InputAttributeError(f"a release has no {name}: {NOT_IN_MOMENTS[name]}")
            near = "" if name.startswith("_") else meant(name, [each for each in dir(type(self)) if each[0] != "_"])
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}.{near}")

    @property
    def goals(self) -> Goals | None:
        """Precision of the release against the goals of its schema: free of privacy cost.

        None without goals, or if no count or mean was released.
        """
        known = self.schema.goals and self.noisy_count is not None and self.noisy_sum is not None
        return Goals(goal_results(self, self.schema.goals)) if known else None

    @property
    def plot(self) -> ReleasePlots:
        """Plots: ``release.plot.correlation()``; the first plot imports matplotlib."""
        from dpmoments.plots.accessor import ReleasePlots

        return ReleasePlots(self)

    @overload
    def synthetic(
        self, n_rows: int, seed: int = 0, *, format: Literal["pandas"] = "pandas", exact: bool = False
    ) -> pandas.DataFrame: ...
    @overload
    def synthetic(self, n_rows: int, seed: int = 0, *, format: Literal["arrow"], exact: bool = False) -> Any: ...
    def synthetic(
        self, n_rows: int, seed: int = 0, *, format: Literal["pandas", "arrow"] = "pandas", exact: bool = False
    ) -> Any:
        """Draw synthetic rows: :func:`dpmoments.analysis.synthetic.synthetic_rows`."""
        return synthetic_rows(self, n_rows, seed, format=format, exact=exact)

    @property
    def sum_of_weights(self) -> float:
        """Noisy sum of the sampling weights, up to their cap; the number of rows without weights."""
        return float(self.n_rows) if self.weighting is None else self.weighting.sum_of_weights

    @property
    def effective_n(self) -> float:
        """Effective number of rows: Kish's by weights, or ``n_rows`` over the stated design effect."""
        return float(self.n_rows) if self.weighting is None else self.weighting.effective_n

    @property
    def weight_clipped(self) -> float | None:
        """Noisy share of the weight that the cap takes; None without a population."""
        return None if self.weighting is None else self.weighting.clipped

    @property
    def as_filed(self) -> MomentRelease:
        """Moments as a file holds them, with hidden features."""
        return self

    def summary(self) -> str:
        """Return the release as text: mechanism, features with their noise, goals, warnings."""
        chosen = "" if self.chosen_because is None else f"\nChosen: {self.chosen_because.text()}"
        described = describe(self).text()  # it has some of the warnings
        warned = [f"Warning: {text}" for message in self.warnings if (text := message.text()) not in described]
        goals = () if self.goals is None else (self.goals.text(),)
        return "\n".join(
            [f"mechanism: {self.mechanism_text}; repair: {self.repair}{chosen}", described, *goals, *warned]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file, without loss of precision."""
        total, center = self.noisy_sum, self.center
        return {
            "noise": None if self.noise_model is None else self.noise_model.to_dict(),
            "noisy_count": self.noisy_count,
            "noisy_sum": None if total is None else total.tolist(),
            "noisy_gram_upper_triangle": self.noisy_gram[np.triu_indices(len(self.noisy_gram))].tolist(),
            "center": None if center is None else center.tolist(),
            **self._statements(),
            "details": to_plain(self.details),
            "repair": str(self.repair),
            "chosen_because": None if self.chosen_because is None else self.chosen_because.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> MomentRelease:
        """Invert :meth:`to_dict`; raise KeyError, TypeError or ValueError if an entry is wrong."""
        given = cls._read(content, _ENTRIES)
        model, upper, d = given.pop("noise"), given.pop("noisy_gram_upper_triangle"), given["schema"].n_features
        if model is not None and model.n_features != d:
            raise InputValueError(f"the noise model is for {model.n_features} features and the schema has {d}")
        for name, numbers in (("noisy_sum", given["noisy_sum"]), ("center", given["center"])):
            if numbers is not None and len(numbers) != d:
                raise InputValueError(f"{name} must hold {d} finite numbers")
        if len(upper) != d * (d + 1) // 2:
            raise InputValueError(f"noisy_gram_upper_triangle must hold {d * (d + 1) // 2} finite numbers")
        gram = np.empty((d, d))
        gram[np.triu_indices(d)] = upper
        gram.T[np.triu_indices(d)] = upper
        release = cls(**given, noisy_gram=gram, noise_model=model)
        return of_present_values(release)

    def __repr__(self) -> str:
        count = "" if self.noisy_count is None else f", n_rows={self.n_rows}"
        return self._described(f"{len(self.feature_names)} features{count}")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ComputedRelease(MomentRelease):
    """Release computed from what was drawn, which the file holds."""

    drawn: MomentRelease

    @classmethod
    @abstractmethod
    def of(cls, drawn: MomentRelease) -> Self:
        """Return the release of what was drawn."""

    @property
    def as_filed(self) -> MomentRelease:
        return self.drawn.as_filed

    def with_repair(self, repair: Repair | str) -> Self:
        """Return this release with another repair: post-processing, free of privacy cost."""
        return self.of(self.drawn.with_repair(repair))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file, without loss of precision."""
        return self.drawn.to_dict()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AvailableRelease(ComputedRelease):
    """Release of the rows whose values are present, pair by pair.

    A mean is of the rows that have the value, a covariance of the rows that have both; sums and Gram matrix are of all rows
    with these means and covariances. They are computed from ``drawn``, the noisy moments of the columns, with stand-ins for
    missing values, and of the indicators of missing values; so is their noise, to first order.
    """

    @classmethod
    def of(cls, drawn: MomentRelease) -> Self:
        cases = _available_cases(drawn)
        values = {entry.name: getattr(drawn, entry.name) for entry in fields(MomentRelease)} | {
            "schema": drawn.schema.without_indicators,
            "noisy_sum": cases.total,
            "noisy_gram": cases.gram,
            "center": cases.center,
            "noise_model": None,
        }
        if (weighting := drawn.weighting) is not None:
            d = values["schema"].n_features
            values["weighting"] = weighting.carried(np.eye(d, len(weighting.shift)))
        return cls(**values, drawn=drawn)

    @property
    def as_drawn(self) -> MomentRelease:
        """Moments as noise was drawn on them, with the indicators of missing values."""
        return self.drawn

    @property
    def n_rows(self) -> int:
        return self.drawn.n_rows

    @property
    def rows_noise(self) -> float | None:
        return self.drawn.rows_noise

    @cached_property
    def available(self) -> AvailableCases:
        """Moments of the rows whose values are present."""
        return _available_cases(self.drawn)

    @cached_property
    @in_floating_point
    def noise(self) -> NoiseLaw | None:
        """Noise distribution of Σ z zᵀ, z = (1, x) about ``center``, to first order."""
        drawn = self.drawn.noise
        return None if drawn is None else self.available.law(drawn)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WeightedRelease(ComputedRelease):
    """Release of rows with sampling weights: moments of the effective number of rows.

    ``drawn`` has Σ t·(1, x)(1, x)ᵀ, t the weight over its cap, and the weight itself as the last feature unless a design effect
    takes its place. All is multiplied by one number, so that the count is the effective number of rows: analyses divide by
    it, and sampling errors follow from it.
    """

    rows: float

    @classmethod
    def of(cls, drawn: MomentRelease) -> Self:
        weight, rows = drawn.schema.sampling_weight, drawn.diagnostics.get("n_rows")
        if weight is None or drawn.noisy_sum is None or drawn.noisy_count is None or not is_finite_number(rows):
            raise InputValueError(
                "a weighted release has sums and the number of rows, and this has not: the file was changed"
            )
        error = noise_of_rows(drawn.receipt)
        schema = drawn.schema.without_weight
        d, cap, rows = schema.n_features, weight.bounds[1], max(float(rows), error, 1.0)
        count = floored_count(drawn.noisy_count, drawn.noise)
        mean = np.append(drawn.mean, np.zeros(0 if weight.is_released else 1))[d] / cap  # Σt²/Σt
        mean = min(max(mean, count / max(rows, count)), 1.0)
        effective = count / mean if weight.is_released else rows / float(weight.design_effect)  # type: ignore[arg-type]
        effective = max(min(effective, rows), 1.0)
        clipped = None if weight.population is None else max(1.0 - count * cap / weight.population, 0.0)
        unit = drawn.privacy.privacy_unit
        times, stated = _times(drawn, effective), _stated(schema, effective / rows)
        units = (drawn.encoding.scale[:d] / schema.encoding().scale) * math.sqrt(times)
        values = {entry.name: getattr(drawn, entry.name) for entry in fields(MomentRelease)} | {
            "schema": schema,
            "noisy_count": drawn.noisy_count * times,
            "noisy_sum": drawn.noisy_sum[:d] * units * math.sqrt(times),
            "noisy_gram": drawn.noisy_gram[:d, :d] * np.outer(units, units),
            "center": None if drawn.center is None else drawn.center[:d] * units / math.sqrt(times),
            "noise_model": None,
            "weighting": Weighting(
                weight.name,
                None if unit is None else unit.column,
                weight.population,
                count * cap,
                effective,
                clipped,
                *_by_squared_weights(drawn, mean * cap, stated == 1.0),
                stated,
            ),
        }
        return cls(**values, drawn=drawn, rows=rows)

    @property
    def n_rows(self) -> int:
        """Number of kept rows, whatever their weights; one of each unit of bounded weight."""
        return max(1, round(self.rows))

    @property
    def rows_noise(self) -> float | None:
        """Noise SD of the number of rows, 0 if it is exact."""
        return noise_of_rows(self.receipt)

    @property
    def _in_coordinates(self) -> bool:
        return self.drawn._in_coordinates

    @cached_property
    @in_floating_point
    def noise(self) -> NoiseLaw | None:
        """Noise distribution of Σ z zᵀ, z = (1, x) about ``center``, of as many rows."""
        drawn, d = self.drawn.noise, self.schema.n_features
        if drawn is None:
            return None
        times = _times(self.drawn, self.effective_n)
        units = np.append(1.0, self.drawn.encoding.scale[:d] / self.encoding.scale)
        return drawn.carried(math.sqrt(times) * units[:, None] * np.eye(d + 1, self.drawn.schema.n_features + 1))


def _times(drawn: MomentRelease, effective: float) -> float:
    """Return what sums of weights are multiplied by: analyses divide by a whole number of rows."""
    return max(round(effective), 1) / floored_count(drawn.noisy_count or 0.0, drawn.noise)


def noise_of_rows(receipt: Receipt) -> float:
    """Return the noise SD of a weighted table's number of rows; 0 if none was drawn."""
    law = next((draw.law for draw in receipt.draws if draw.what.code == "count"), None)
    if not isinstance(law, DiscreteLaplace | DiscreteGaussian | None):
        raise InputValueError("the number of rows has noise that no mechanism draws: the file was changed")
    if law is None:
        return 0.0
    return law.scale * math.sqrt(2.0) if isinstance(law, DiscreteLaplace) else law.scale


_CLEAR = 2.0
"""Noise SDs from which the mean weight of a level differs from that of all rows."""


def _by_squared_weights(drawn: MomentRelease, mean_weight: float, chosen: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return by what means and covariances of shares change if rows count by squared weights."""
    d = len(chosen)
    shift, spread = np.zeros(d), np.zeros((d, d))
    if drawn.schema.n_features == d or drawn.noise is None:
        return shift, spread
    mean, covariance, unit = drawn.mean, drawn.covariance[:d, d], drawn.encoding.scale
    noise = np.sqrt(drawn.noise.cell_variances()[1 : d + 1, d + 1]) / drawn.sample_size * unit[:d] * unit[d]
    constraints = Constraints.of(drawn.schema, mean=True)
    blocks = [np.arange(d)[block.features] for block in constraints.blocks]
    for block in [*blocks, *(np.array([flag]) for flag in constraints.flags if flag < d)]:
        p = np.clip(mean[block], 0.0, 1.0)
        clear = np.abs(covariance[block]) > _CLEAR * noise[block]
        moved = np.where(clear, covariance[block] / mean_weight, 0.0)
        shift[block] = np.maximum(moved, -p)
        change = -np.outer(p, shift[block])
        change += change.T
        spread[np.ix_(block, block)] = change + np.diag(shift[block])
    spread[~chosen], spread[:, ~chosen] = 0.0, 0.0
    return shift, spread


def _stated(schema: Schema, effective_share: float) -> FloatArray:
    """Return what stated design effects of columns add to that of the effective number of rows."""
    effects = schema.sampling_weight and schema.sampling_weight.design_effect
    stated = effects if isinstance(effects, Mapping) else {}
    factors = [stated[column.name] * effective_share if column.name in stated else 1.0 for column in schema.columns]
    return np.repeat(factors, [len(column.feature_names) for column in schema.columns])


@in_floating_point
def _available_cases(drawn: MomentRelease) -> AvailableCases:
    if drawn.noisy_sum is None or drawn.noisy_count is None:
        raise InputValueError(
            "the rule 'available' for missing values needs sums, and the release has none: the file was changed"
        )
    count = floored_count(drawn.noisy_count, None if drawn.count_is_public else drawn.noise)
    return AvailableCases.of(drawn.schema, count, drawn.noisy_sum, drawn.noisy_gram, drawn.center, drawn.noise)


def of_present_values(release: MomentRelease) -> MomentRelease:
    """Return the release of present values, weighted if rows are."""
    if release.schema.sampling_weight is not None and not isinstance(release, WeightedRelease):
        release = WeightedRelease.of(release)
    return AvailableRelease.of(release) if release.schema.has_available else release
