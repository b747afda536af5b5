"""Estimates and sampling errors of R's `survey` for weighted rows without clusters, kept in a file.

The tests need neither R nor `survey`. To write ``tests/golden/survey.json`` again: install both, then
``python tests/references/survey.py`` with ``PYTHONPATH=src:tests``.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from support.kept_answers import KeptAnswers

KEPT = KeptAnswers(Path(__file__).parent.parent / "golden" / "survey.json", tolerance=0.01)
N_ROWS, CAP = 6_000, 8.0
_SCRIPT = """
suppressMessages(library(survey))
data <- read.csv("rows.csv", stringsAsFactors = TRUE)
design <- svydesign(ids = ~1, weights = ~weight, data = data)
show <- function(name, value, se) cat(sprintf("%s;%.10g;%.10g\\n", name, value, se))
mean_of <- function(name, formula) { found <- svymean(formula, design); show(name, coef(found)[1], SE(found)[1]) }
for (name in c("pay", "age", "heavy", "smoker", "ill")) mean_of(name, as.formula(paste("~", name)))
for (level in levels(data$region)) mean_of(paste0("region=", level), as.formula(sprintf("~I(0 + (region == '%s'))", level)))
regions <- svymean(~region, design)
between <- svycontrast(regions, list(a = c(-1, 0, 1)))
show("region=south - region=east", coef(between), SE(between))
ratio <- svyglm(ill ~ smoker, design, family = quasibinomial())
show("log odds ratio of ill by smoker", coef(ratio)[2], SE(ratio)[2])
for (by in c("smoker", "ill")) {
  fit <- svyglm(as.formula(paste("pay ~", by)), design)
  show(paste("pay by", by), coef(fit)[2], SE(fit)[2])
}
fit <- svyglm(pay ~ region, design)
show("pay by region: north - east", coef(fit)[2], SE(fit)[2])
show("pay by region: south - east", coef(fit)[3], SE(fit)[3])
fit <- svyglm(pay ~ age + smoker + region, design)
for (i in 2:5) show(paste("pay ~", names(coef(fit))[i]), coef(fit)[i], SE(fit)[i])
"""


def rows() -> pd.DataFrame:
    """Return people whose weights are larger in the south and for smokers, and rise with one column."""
    rng = np.random.default_rng(11)
    age, region = rng.integers(20, 80, N_ROWS), rng.choice(["east", "north", "south"], N_ROWS, p=[0.2, 0.5, 0.3])
    smoker = rng.random(N_ROWS) < np.where(region == "south", 0.45, 0.2)
    ill = rng.random(N_ROWS) < np.where(smoker, 0.3, 0.15)
    pay = np.clip(20 + 0.3 * age - 5 * smoker + 4 * (region == "north") + rng.normal(0, 9, N_ROWS), 0, 100)
    size = rng.gamma(4.0, 0.25, N_ROWS)
    weight = size * np.where(region == "south", 1.8, 0.7) * np.where(smoker, 1.3, 1.0)
    heavy = np.clip(30 + 12 * size + rng.normal(0, 5, N_ROWS), 0, 100)
    weight = np.minimum(np.maximum(np.round(512 * weight), 1.0) / 512, CAP)  # on the lattice
    columns = {"pay": pay, "age": age, "heavy": heavy, "smoker": smoker, "ill": ill, "region": region}
    numbers = {name: np.round(8 * columns[name]) / 8 for name in ("pay", "age", "heavy")}
    return pd.DataFrame(columns | numbers | {"weight": weight})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        table = rows()
        table.assign(smoker=table["smoker"].astype(int), ill=table["ill"].astype(int)).to_csv(
            Path(folder) / "rows.csv", index=False
        )
        (Path(folder) / "script.R").write_text(_SCRIPT, encoding="utf-8")
        command = ["Rscript", "--vanilla", "script.R"]
        printed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    answers = (line.split(";") for line in printed.splitlines())
    KEPT.write({name: [float(value), float(error)] for name, value, error in answers})
