"""Surveys and statistics of people, firms and places, as bundled with statsmodels."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from benchmarks.practice.tables.codebooks import Codebook, described
from benchmarks.practice.tables.entry import Entry, Half, Made

ANES96: Codebook = {
    "popul": (0, 10_000),
    "TVnews": (0, 7),
    "selfLR": (1, 7),
    "ClinLR": (1, 7),
    "DoleLR": (1, 7),
    "PID": (0, 6),
    "age": (17, 100),
    "educ": tuple(range(1, 8)),
    "income": (1, 24),
    "vote": None,
}
RANDHIE: Codebook = {
    "mdvis": (0, 100),
    "lncoins": (0, 5),
    "idp": None,
    "lpi": (0, 10),
    "fmde": (0, 10),
    "physlm": (0, 1),  # imputed in some rows, so that it is no Boolean
    "disea": (0, 60),
    "hlthg": None,
    "hlthf": None,
    "hlthp": None,
}
MACRODATA: Codebook = {
    "year": (1950, 2010),
    "realgdp": (0, 20_000),
    "realcons": (0, 20_000),
    "realinv": (0, 5_000),
    "realgovt": (0, 2_000),
    "realdpi": (0, 20_000),
    "cpi": (0, 300),
    "m1": (0, 2_000),
    "tbilrate": (0, 20),
    "unemp": (0, 20),
    "pop": (100, 400),
    "infl": (-20, 20),
}
HEART: Codebook = {"survival": (0, 5_000), "censors": None, "age": (0, 100)}
SPECTOR: Codebook = {"GPA": (0, 4), "TUCE": (0, 30), "PSI": None, "GRADE": None}
DANISH: Codebook = {"lrm": (10, 15), "lry": (5, 10), "lpy": (-1, 1), "ibo": (0, 0.3), "ide": (0, 0.3)}
FAIR: Codebook = {
    "rate_marriage": (1, 5),
    "age": (15, 60),
    "yrs_married": (0, 30),
    "children": (0, 10),
    "religious": (1, 4),
    "educ": (9, 20),
    "occupation": (1, 2, 3, 4, 5, 6),
    "occupation_husb": (1, 2, 3, 4, 5, 6),
    "affairs": (0, 100),
}
STAR98: Codebook = {
    "LOWINC": (0, 100),
    "PERASIAN": (0, 100),
    "PERBLACK": (0, 100),
    "PERHISP": (0, 100),
    "PERMINTE": (0, 100),
    "AVYRSEXP": (0, 40),
    "AVSALK": (20, 120),
    "PERSPENK": (0, 20),
    "PTRATIO": (5, 50),
    "PCTAF": (0, 100),
    "PCTCHRT": (0, 100),
    "PCTYRRND": (0, 100),
}
STATECRIME: Codebook = {
    "violent": (0, 2_000),
    "murder": (0, 50),
    "hs_grad": (50, 100),
    "poverty": (0, 50),
    "single": (0, 100),
    "white": (0, 100),
    "urban": (0, 100),
}
MODECHOICE: Codebook = {
    "mode": (1, 2, 3, 4),
    "choice": None,
    "ttme": (0, 120),
    "invc": (0, 500),
    "invt": (0, 2_000),
    "gc": (0, 500),
    "hinc": (0, 100),
    "psize": (1, 10),
}
GRUNFELD: Codebook = {
    "invest": (0, 5_000),
    "value": (0, 10_000),
    "capital": (0, 5_000),
    "firm": (
        "General Motors", "US Steel", "General Electric", "Chrysler", "Atlantic Refining", "IBM", "Union Oil",
        "Westinghouse", "Goodyear", "Diamond Match", "American Steel",
    ),
}  # fmt: skip
CCARD: Codebook = {"AVGEXP": (0, 5_000), "AGE": (18, 100), "INCOME": (0, 20), "OWNRENT": None}
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
ELNINO: Codebook = dict.fromkeys(MONTHS, (15, 35))
SCOTLAND: Codebook = {
    "YES": (0, 100),
    "COUTAX": (0, 2_000),
    "UNEMPF": (0, 100),
    "MOR": (50, 200),
    "ACT": (50, 100),
    "GDP": (0, 20_000),
    "AGE": (0, 30),
}
FERTILITY: Codebook = {str(year): (0, 10) for year in range(1960, 2011, 10)}
ENGEL: Codebook = {"income": (0, 10_000), "foodexp": (0, 5_000)}


def bundled(codebook: Codebook, folder: str, file: str = "") -> Callable[[], Made]:
    """The columns of the codebook, of rows that have all of them."""

    def make() -> Made:
        found = importlib.util.find_spec("statsmodels")
        if found is None or not found.submodule_search_locations:
            raise FileNotFoundError("it ships with statsmodels: pip install --group benchmarks")
        path = Path(next(iter(found.submodule_search_locations))) / "datasets" / folder / f"{file or folder}.csv"
        # Commas, semicolons, tabs or blanks, by the table.
        read = pd.read_csv(path, sep=None, engine="python", skipinitialspace=True, encoding="utf-8-sig")
        return described(codebook, read.rename(columns=lambda name: name.strip("' \"")))

    return make


def entry(name: str, half: Half, codebook: Codebook, target: str, file: str = "", folder: str = "") -> Entry:
    return Entry(name, half, "surveys", True, bundled(codebook, folder or name, file), target)


TABLES = (
    entry("anes96", "design", ANES96, "vote"),
    entry("randhie", "design", RANDHIE, "mdvis"),
    entry("macrodata", "design", MACRODATA, "unemp"),
    entry("heart", "design", HEART, "survival"),
    entry("spector", "design", SPECTOR, "GRADE"),
    entry("danish-money", "design", DANISH, "lrm", "data", "danish_data"),
    entry("fair", "judge", FAIR, "affairs"),
    entry("star98", "judge", STAR98, "PCTAF"),
    entry("statecrime", "judge", STATECRIME, "violent"),
    entry("modechoice", "judge", MODECHOICE, "gc"),
    entry("grunfeld", "judge", GRUNFELD, "invest"),
    entry("ccard", "judge", CCARD, "AVGEXP"),
    entry("elnino", "judge", ELNINO, "DEC"),
    entry("scotland", "judge", SCOTLAND, "YES", "scotvote"),
    entry("fertility", "judge", FERTILITY, "2010"),
    entry("engel", "judge", ENGEL, "foodexp"),
)
