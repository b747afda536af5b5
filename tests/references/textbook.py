"""Statistics of statsmodels, SciPy and scikit-learn on two tables, kept in a file: ``tests/golden/textbook.json``.

The tests need no statsmodels. To write the file again: ``pip install --no-deps --target /tmp/extra statsmodels patsy``, then
``PYTHONPATH=/tmp/extra:src:tests python tests/references/textbook.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from support.kept_answers import KeptAnswers

KEPT = KeptAnswers(Path(__file__).parent.parent / "golden" / "textbook.json", tolerance=1e-6)
ROWS = {"many": 3_000, "few": 14}
NUMBERS = ["age", "height", "income", "nearly"]
REGIONS = ["east", "north", "south"]
FORMULAS = {
    "levels": "income ~ age + height + C(region) + smoker",
    "no intercept": "income ~ age + height - 1",
    "near 1": "nearly ~ age + income",
    "one": "height ~ age",
}


def table(name: str) -> pd.DataFrame:
    """Return numbers, levels and Booleans: ``nearly`` is nearly a line of others, ``income`` has unequal variances."""
    rows, rng = ROWS[name], np.random.default_rng(11)
    region = rng.choice(REGIONS, rows, p=[0.5, 0.3, 0.2])
    smoker = rng.random(rows) < 0.4
    age = rng.normal(5, 15, rows)
    income = 4 + 0.3 * age + 4 * (region == "south") - 5 * smoker + rng.normal(0, 8 + 4 * smoker)
    height = 0.4 * income + rng.normal(0, 9, rows)
    nearly = 0.8 * income + 0.2 * age + rng.normal(0, 0.5, rows)
    numbers = {"age": age, "height": height, "income": income, "nearly": nearly}
    clipped = {column: np.clip(np.round(values, 2), -64, 64) for column, values in numbers.items()}
    return pd.DataFrame(clipped | {"region": region, "smoker": smoker})


def named(word: str, names: Iterable[Any], values: Any) -> dict[str, float]:
    return {f"{word}[{name}]": float(value) for name, value in zip(names, np.ravel(values), strict=True)}


def theirs(data: pd.DataFrame) -> dict[str, float]:
    """Return every statistic by name, as the other programs compute it."""
    import statsmodels.api as sm
    import statsmodels.formula.api as smf
    from scipy import stats
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import Lasso, Ridge
    from statsmodels.multivariate.manova import MANOVA

    found: dict[str, float] = {"rows": len(data)}
    ends = ("lower", "upper")

    numbers = data[NUMBERS]
    found |= named("describe mean", NUMBERS, numbers.mean()) | named("describe sd", NUMBERS, numbers.std(ddof=0))
    for name in NUMBERS:
        interval = stats.t.interval(0.95, len(data) - 1, numbers[name].mean(), stats.sem(numbers[name]))
        found |= named(f"describe {name}", ends, interval)

    for label, formula in FORMULAS.items():
        fit = smf.ols(formula, data).fit()
        names = [_ours(name) for name in fit.params.index]
        for word in ("params", "bse", "tvalues", "pvalues"):
            found |= named(f"ols {label} {word}", names, getattr(fit, word))
        for word in ("rsquared", "rsquared_adj", "fvalue", "f_pvalue", "df_resid", "df_model", "nobs"):
            found[f"ols {label} {word}"] = float(getattr(fit, word))
        found |= named(f"ols {label} lower", names, fit.conf_int()[0]) | named(
            f"ols {label} upper", names, fit.conf_int()[1]
        )
        found[f"ols {label} residual sd"] = float(np.sqrt(fit.mse_resid))
        covariance = fit.cov_params().to_numpy()
        pairs = list(combinations(range(len(names)), 2))
        found |= named(
            f"ols {label} cov", [f"{names[i]}, {names[j]}" for i, j in pairs], [covariance[pair] for pair in pairs]
        )
        predicted = fit.get_prediction(data.iloc[:3])
        for word, values in (
            ("mean", predicted.predicted_mean),
            ("se", predicted.se_mean),
            ("ends", predicted.conf_int()),
            ("new ends", predicted.conf_int(obs=True)),
        ):
            found |= named(f"prediction {label} {word}", range(np.size(values)), values)
    fit = smf.ols(FORMULAS["levels"], data).fit()
    contrast = fit.t_test("age = height")
    found |= {"contrast t": float(contrast.tvalue.item()), "contrast p": float(contrast.pvalue)}
    found |= named("contrast", ends, contrast.conf_int())
    joint = fit.f_test("age = 0.1, height = 0.2")
    found |= {"joint F": float(joint.fvalue), "joint p": float(joint.pvalue)}
    terms = sm.stats.anova_lm(fit, typ=3)
    for term, ours in (("C(region)", "region"), ("smoker", "smoker"), ("age", "age")):
        found |= {f"term F[{ours}]": float(terms.loc[term, "F"]), f"term p[{ours}]": float(terms.loc[term, "PR(>F)"])}
    robust = smf.ols("income ~ age + smoker", data).fit(cov_type="HC1", use_t=True)
    names = [_ours(name) for name in robust.params.index]
    for word in ("bse", "tvalues", "pvalues"):
        found |= named(f"HC1 {word}", names, getattr(robust, word))
    found |= {"HC1 fvalue": float(robust.fvalue), "HC1 f_pvalue": float(robust.f_pvalue)}

    for word, target, equal in (("pooled", "height", True), ("Welch", "income", False)):
        groups = data[target][~data["smoker"]], data[target][data["smoker"]]
        test = stats.ttest_ind(*groups, equal_var=equal)
        found |= {f"t-test {word} t": test.statistic, f"t-test {word} df": test.df, f"t-test {word} p": test.pvalue}
        found |= named(f"t-test {word}", ends, test.confidence_interval())
    for by in ("region", "smoker"):
        fit = smf.ols(f"height ~ C({by})", data).fit()
        one_way = sm.stats.anova_lm(fit)
        found |= named(f"anova {by} sums", ("between", "within"), one_way["sum_sq"])
        found |= named(f"anova {by} df", ("between", "within"), one_way["df"])
        found |= {f"anova {by} F": float(one_way["F"].iloc[0]), f"anova {by} p": float(one_way["PR(>F)"].iloc[0])}
        found[f"anova {by} eta"] = float(fit.rsquared)
    pooled = smf.ols("height ~ C(region) - 1", data).fit()
    found |= named("group mean", REGIONS, pooled.params) | named("group se", REGIONS, pooled.bse)
    found |= named("group lower", REGIONS, pooled.conf_int()[0]) | named("group upper", REGIONS, pooled.conf_int()[1])
    for one, other in combinations(REGIONS, 2):
        test = pooled.t_test(f"C(region)[{one}] = C(region)[{other}]")
        found[f"group p[{one}, {other}]"] = float(test.pvalue)
        found |= named(f"group difference [{one}, {other}]", ends, test.conf_int())

    for one, other in combinations(["age", "height", "nearly"], 2):
        pair = stats.pearsonr(data[one], data[other])
        found |= {f"r[{one}, {other}]": pair.statistic, f"r p[{one}, {other}]": pair.pvalue}
        found |= named(f"r [{one}, {other}]", ends, pair.confidence_interval())
    inverse = np.linalg.inv(numbers.cov())
    degrees = len(data) - len(NUMBERS)
    for i, j in combinations(range(len(NUMBERS)), 2):
        r = -inverse[i, j] / np.sqrt(inverse[i, i] * inverse[j, j])
        reach = stats.norm.ppf(0.975) / np.sqrt(degrees - 1)
        key = f"[{NUMBERS[i]}, {NUMBERS[j]}]"
        found |= {
            f"partial{key}": r,
            f"partial p{key}": 2 * stats.t.sf(abs(r) * np.sqrt(degrees / (1 - r**2)), degrees),
        }
        found |= named(f"partial {key}", ends, np.tanh(np.arctanh(r) + reach * np.array([-1, 1])))

    crossed = stats.chi2_contingency(pd.crosstab(data["region"], data["smoker"]), correction=False)
    found |= {"chi2": crossed.statistic, "chi2 df": crossed.dof, "chi2 p": crossed.pvalue}
    manova = MANOVA.from_formula("age + height ~ C(region)", data).mv_test().results["C(region)"]["stat"]
    found |= {"Wilks": float(manova.iloc[0, 0]), "Wilks p": float(manova.iloc[0, 4])}
    manova = MANOVA.from_formula("age + height + nearly ~ smoker", data).mv_test().results["smoker"]["stat"]
    found |= {"Wilks of two": float(manova.iloc[0, 0]), "Wilks of two p": float(manova.iloc[0, 4])}
    discriminant = LinearDiscriminantAnalysis(solver="lsqr").fit(data[["age", "height"]], data["region"])
    # beside the first class: ours are about the mean of all rows
    found |= named("lda coef", range(6), discriminant.coef_ - discriminant.coef_[0])
    found |= named("lda intercept", REGIONS, discriminant.intercept_ - discriminant.intercept_[0])

    components = PCA().fit(numbers)
    # over n, as ours: scikit-learn's are over n − 1
    found |= named("pca variance", range(4), components.explained_variance_ * (1.0 - 1.0 / len(data)))
    found |= named("pca share", range(4), components.explained_variance_ratio_)
    signs = np.sign(components.components_[range(4), np.abs(components.components_).argmax(axis=1)])
    found |= named("pca component", range(16), components.components_ * signs[:, None])
    encoded = numbers.to_numpy() / 100.0
    about = encoded - encoded.mean(axis=0)
    for word, model in (("ridge", Ridge(2 * 0.01 * len(data))), ("lasso", Lasso(0.002, tol=1e-14, max_iter=100_000))):
        fitted = model.fit(about[:, [0, 1, 3]], about[:, 2])
        found |= named(f"{word} coef", ("age", "height", "nearly"), fitted.coef_)
    return found


def _ours(name: str) -> str:
    """Return our name of a coefficient of statsmodels."""
    if name == "Intercept":
        return "(intercept)"
    return name.replace("C(region)[T.", "region=").replace("smoker[T.True", "smoker").rstrip("]")


if __name__ == "__main__":
    KEPT.write({name: theirs(table(name)) for name in ROWS})
