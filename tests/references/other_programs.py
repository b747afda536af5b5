"""Statistics of statsmodels, linearmodels, pingouin, factor_analyzer, semopy and lavaan, kept in a file.

The tests need none of these programs. To write ``tests/golden/other_programs.json`` again: ``pip install statsmodels linearmodels
pingouin factor_analyzer semopy`` into another environment, R with lavaan, then ``python tests/references/other_programs.py``
with ``PYTHONPATH=src:tests``.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from support.kept_answers import KeptAnswers

KEPT = KeptAnswers(Path(__file__).parent.parent / "golden" / "other_programs.json", tolerance=1e-6)
EXPORTED = KEPT.file.with_name("exported.R")
"""A script of ``release.export("lavaan")``, as the test has it."""
N_ROWS = 3_000
ITEMS = [f"i{number}" for number in range(1, 7)]
NUMBERS = ["x", "a", "b", "y", "z1", "z2", "d", "w", *ITEMS]
LEVELS = {"g": ["u", "v", "w"], "sex": ["Female", "Male"]}
BOOLEANS = ["s", "ill"]
FORMULAS = (
    *(
        'y ~ C(g, Treatment(reference="v"))',
        'y ~ C(g, Treatment("w")) + x',
        "y ~ C(g, Treatment(1)) + x",
        "y ~ C(g, Sum) + a",
    ),
    *("y ~ C(g, Helmert) + a", "y ~ C(g, Diff)", "y ~ C(g, Poly)", 'y ~ Q("x") + a', "y ~ scale(x) + center(a)"),
    *("y ~ standardize(a) + b", "y ~ I(x/10) + I(x**2)", "y ~ I(x - 40) + s", "y ~ I(a + b)", "y ~ I(2*a - b) + x"),
    *("I(y/40) ~ x + a", "y ~ C(s) + x", 'y ~ I(sex == "Male") + x', "y ~ x + np.power(x, 2)", "y ~ np.square(x) + x"),
    *("y ~ x*C(sex, Sum)", "y ~ I((x - 40)**2) + I(a*b)", 'y ~ I(x/10)*C(sex, Treatment("Female"))'),
)


def table() -> pd.DataFrame:
    """Return rows on the grid of eighths, which rounding to the lattice leaves as they are."""
    rng = np.random.default_rng(17)
    g, sex = (
        rng.choice(levels, N_ROWS, p=share)
        for levels, share in zip(LEVELS.values(), ([0.5, 0.3, 0.2], [0.4, 0.6]), strict=True)
    )
    x, a, b = rng.integers(10, 70, N_ROWS), rng.integers(0, 64, N_ROWS) / 8, rng.integers(0, 64, N_ROWS) / 8
    s = rng.random(N_ROWS) < 0.4
    y = 2 + 0.03 * x + 0.0004 * x**2 + 0.3 * a - 0.2 * b + 0.5 * s + 0.4 * (g == "v") + 0.3 * (sex == "Male") * x / 40
    u, z1, z2 = rng.normal(0, 1, (3, N_ROWS))
    d = 0.6 * z1 + 0.4 * z2 + 0.6 * u + rng.normal(0, 1, N_ROWS)
    factors = rng.normal(0, 1, (N_ROWS, 2))
    items = factors[:, [0, 0, 0, 1, 1, 1]] * [0.8, 0.7, 0.6, 0.9, 0.7, 0.5] + 0.2 * factors[:, ::-1].repeat(3, axis=1)
    items += rng.normal(0, 0.6, items.shape)
    numbers = {"x": x, "a": a, "b": b, "y": y + rng.normal(0, 1, N_ROWS), "z1": z1, "z2": z2, "d": d}
    numbers |= {"w": 0.5 * d + 0.2 * a - u + rng.normal(0, 1, N_ROWS)} | dict(zip(ITEMS, items.T, strict=True))
    rounded = {name: np.round(8 * np.asarray(values, dtype=float)) / 8 for name, values in numbers.items()}
    return pd.DataFrame(rounded | {"g": g, "sex": sex, "s": s, "ill": rng.random(N_ROWS) < np.where(s, 0.3, 0.15)})


def of_statsmodels(data: pd.DataFrame) -> dict[str, Any]:
    import statsmodels.formula.api as smf
    from statsmodels.multivariate.cancorr import CanCorr
    from statsmodels.stats.contingency_tables import Table2x2
    from statsmodels.stats.oaxaca import OaxacaBlinder
    from statsmodels.stats.outliers_influence import variance_inflation_factor

    found: dict[str, Any] = {}
    for formula in FORMULAS:
        fit = smf.ols(formula, data).fit()
        found[formula] = [*fit.params, *fit.bse, fit.rsquared, *fit.predict(data.iloc[:3])]
    fit = smf.ols("y ~ x + a", data).fit()
    found["condition_number"] = [fit.condition_number]
    design = np.column_stack([np.ones(N_ROWS), data[["x", "z1", "d"]]])
    found["vif"] = [variance_inflation_factor(design, column) for column in (1, 2, 3)]
    two = Table2x2(pd.crosstab(~data.s, ~data.ill).to_numpy())  # those with the exposure and the outcome first
    found["ratios"] = [two.oddsratio, two.riskratio, *two.oddsratio_confint(), *two.riskratio_confint()]
    found["cancorr"] = [*CanCorr(data[ITEMS[3:]], data[ITEMS[:3]]).cancorr[:2]]
    groups = OaxacaBlinder(
        data["y"], pd.DataFrame({"const": 1.0, "x": data.x, "s": data.s.astype(float)}), "s", hasconst=True
    )
    found["oaxaca"] = [*groups.three_fold().params]
    return found


def of_linearmodels(data: pd.DataFrame) -> dict[str, Any]:
    from linearmodels.iv import IV2SLS

    fit = IV2SLS.from_formula("w ~ 1 + a + [d ~ z1 + z2]", data).fit(cov_type="unadjusted")
    return {
        "iv": [*fit.params, *fit.std_errors],
        "partial_r2": [float(fit.first_stage.diagnostics["partial.rsquared"].iloc[0])],
        "sargan": [fit.sargan.stat],
        "wu_hausman": [fit.wu_hausman().stat],
    }


def of_psychometrics(data: pd.DataFrame) -> dict[str, Any]:
    import pingouin
    from factor_analyzer import FactorAnalyzer

    found: dict[str, Any] = {"alpha": [pingouin.cronbach_alpha(data[ITEMS[:3]])[0]]}
    mediation = pingouin.mediation_analysis(data, x="a", m="y", y="w", covar=["b"], n_boot=10, seed=0)
    found["mediation"] = [*mediation["coef"].iloc[[0, 2, 3, 4]]]  # its y ~ m leaves x out, ours does not
    for method in ("ml", "minres"):
        fit = FactorAnalyzer(2, rotation=None, method=method).fit(data[ITEMS])
        found[f"uniquenesses {method}"] = [*fit.get_uniquenesses()]
        found[f"communalities {method}"] = [*fit.get_communalities()]
    return found


def of_semopy(data: pd.DataFrame) -> dict[str, Any]:
    import semopy

    model = semopy.Model(f"f =~ {' + '.join(ITEMS[:4])}")
    model.fit(data[ITEMS[:4]])
    standardized = model.inspect(std_est=True)
    return {"semopy": [float(value) for value in standardized["Est. Std"][:4]]}


def run_in_r(lines: list[str]) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.R"
        file.write_text("\n".join(lines), encoding="utf-8")
        printed = subprocess.run(["Rscript", "--vanilla", str(file)], capture_output=True, text=True, check=True).stdout
    return [float(line) for line in printed.split("---")[-1].split()]


def of_r(data: pd.DataFrame) -> dict[str, Any]:
    """Unique variances by maximum likelihood, and the loadings of one factor, which other programs find to fewer digits."""
    numbers = ", ".join(map(repr, data[ITEMS].corr().to_numpy().ravel().tolist()))
    found = run_in_r(
        [
            f"R <- matrix(c({numbers}), 6)",
            "two <- factanal(covmat = R, n.obs = 3000, factors = 2, control = list(lower = 0.005, opt = list(factr = 1)))",
            "one <- factanal(covmat = R[1:4, 1:4], n.obs = 3000, factors = 1, control = list(opt = list(factr = 1)))",
            "cat('---', format(c(two$uniquenesses, abs(one$loadings)), digits = 12))",
        ]
    )
    return {"factanal": found[:6], "one factor": found[6:]}


def of_lavaan(script: str) -> list[float]:
    """Return standardized loadings and their errors of the model that an exported script shows."""
    shown, _, model = script.partition("# library(lavaan)\n")
    lines = [line.removeprefix("#") for line in model.splitlines() if "summary" not in line]
    last = [
        "p <- standardizedSolution(fit)",
        "p <- p[p$op == '=~', ]",
        "cat('---', format(c(p$est.std, p$se), digits = 12))",
    ]
    return run_in_r(["library(lavaan)", shown, *lines, *last])


if __name__ == "__main__":
    rows = table()
    found = of_statsmodels(rows) | of_linearmodels(rows) | of_psychometrics(rows) | of_semopy(rows) | of_r(rows)
    KEPT.write(found | {"lavaan": of_lavaan(EXPORTED.read_text(encoding="utf-8"))})
