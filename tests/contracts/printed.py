"""Every number that is printed, read back from text, HTML and the shell, and compared with the API's.

`questions` lists the answers of a release, each with its command; `read_back` finds what in their texts is not in the API.
A number may be rounded: its last digit is the unit of comparison. What is not found is a contradiction.
"""

from __future__ import annotations

import html
import io
import json
import math
import re
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpmoments as dpm
from contracts.contradictions import Found, tables
from dpmoments.analysis.description import Description
from dpmoments.analysis.group_tests import AnalysisOfVariance
from dpmoments.base.errors import InputError
from dpmoments.cli.entry import main

_NUMBER = re.compile(
    r"\d{4}-\d{2}(?:-\d{2})?(?!\d)|(?<![\w.])[-−+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])"
)
_FIXED = (
    r"on 16 real tables, [^)]*",
    r"95 % intervals held in .*",
    r"\(\d+ SD, .*\)",
    r"\(95 % confidence\)",
    r"<\s?0\.0+1",
    r"counts \w+ since [\d-]+",
)
"""Sentences whose numbers are the library's, not a release's."""


@dataclass(frozen=True)
class Asked:
    """A table, and what is asked of its release."""

    table: pd.DataFrame
    target: str
    regressors: list[str]
    by: str = ""


def questions(asked: Asked, release: dpm.MomentRelease, level: float) -> list[tuple[str, Callable[[], Any], list[str]]]:
    """What an answer is called, the call, and the words of its command (none: no command)."""
    schema, target, regressors, by = release.schema, asked.target, asked.regressors, asked.by
    rows = {column: list(asked.table[column].dropna()[:3]) for column in schema.names if column in asked.table}
    features = [word for feature in regressors for word in ("--feature", feature)]
    at = ["--level", str(level)]
    kinds = [column.name for column in schema.columns if isinstance(column, dpm.Categorical | dpm.Boolean)]
    two = [kind for kind in kinds if len(release.group_means(kind, of=[target]).groups) == 2 and kind != target]

    def fit() -> Any:
        return release.ols(target, list(regressors), level=level)

    def means() -> Any:
        return release.group_means(by, of=[target], level=level)

    return [
        ("describe", release.describe, ["describe"]),
        ("correlations", lambda: release.correlations(level=level), ["correlations", *at]),
        ("ols", fit, ["ols", target, *features, *at]),
        ("predictions", lambda: fit().get_prediction(rows), []),
        ("contrast", lambda: fit().t_test(f"`{fit().params.index[1]}`"), []),
        ("Wald tests", lambda: fit().wald_test_terms(), []),
        ("ridge", lambda: release.ridge(target, list(regressors)), ["ridge", target, *features]),
        (
            "lasso",
            lambda: release.lasso(target, list(regressors), alpha=0.05),
            ["lasso", target, *features, "--alpha", "0.05"],
        ),
        ("components", lambda: release.pca(level=level), ["pca", *at]),
        ("partial correlations", lambda: release.partial_correlation(level=level), ["partial-correlation", *at]),
        ("distances", lambda: release.mahalanobis(rows), []),
        ("graph", release.graphical_lasso, ["graphical-lasso"]),
        *(
            [
                ("group means", means, ["group-means", by, "--of", target, *at]),
                ("differences", lambda: means().differences, []),
                ("analysis of variance", lambda: release.anova(target, by), ["anova", target, by]),
                ("discriminant", lambda: release.lda(by), ["lda", by]),
            ]
            if by
            else []
        ),
        *([("cross table", lambda: release.cross_table(*kinds[:2]), ["cross-table", *kinds[:2]])] if kinds[1:] else []),
        *(("t-test", partial(release.t_test, target, kind), ["t-test", target, kind]) for kind in two[:1]),
    ]


# What the API says ---------------------------------------------------------------------------------------------------------


def numbers_of(value: Any) -> Iterator[float]:
    """Every number within a plain value, and how many entries its lists have."""
    if isinstance(value, np.ndarray | pd.Series):
        value = value.tolist()
    if isinstance(value, bool):
        return
    if isinstance(value, int | float | np.number):
        yield float(value)
    elif isinstance(value, dict):
        for each in value.values():
            yield from numbers_of(each)
    elif isinstance(value, list | tuple):
        yield float(len(value))
        yield float(sum(each is True for each in value))
        for each in value:
            yield from numbers_of(each)


def api_of(answer: Any, release: dpm.MomentRelease) -> np.ndarray:
    """Numbers of an answer's frame, JSON and attributes, and of the release's rows."""
    frame, described = answer.to_pandas(), release.describe()
    said = [*numbers_of(answer.to_dict()), *numbers_of([described.n_rows, described.count_noise, len(frame)])]
    for name in dir(answer):
        if name.startswith("_"):
            continue
        try:
            value = getattr(answer, name)
        except InputError:  # such as odds of a table that is not two by two
            continue
        if isinstance(value, int | float | np.ndarray | pd.Series | tuple | list):
            said += numbers_of(value)
    said += [float(value) for value in frame.select_dtypes("number").to_numpy(dtype=float).ravel()]
    said += [float(frame[column].sum()) for column in frame.select_dtypes(bool)]
    said += [float(index) for index in frame.index if isinstance(index, int)]
    if isinstance(answer, AnalysisOfVariance):
        squares, degrees = np.array(answer.sum_of_squares), np.array(answer.degrees)
        said += [*squares / degrees, squares.sum(), degrees.sum(), answer.test.statistic]
    if hasattr(answer, "df_model"):  # of a noisy fit a chi-square is printed, which is as many times F
        said.append(answer.fvalue * answer.df_model)
        said += [] if answer.equations is None else [answer.equations.residual_deviation(0.975)]
    if hasattr(answer, "feature_names"):
        said.append(math.comb(len(answer.feature_names), 2))
    values = np.array(said)
    return values[np.isfinite(values)]


# What is printed ------------------------------------------------------------------------------------------------------------


def step_of(token: str) -> float:
    """The unit of a number's last digit; zeros at the end of a whole number may be no digits."""
    digits, _, power = token.lstrip("+-−").replace(",", "").partition("e")
    whole, _, decimals = digits.partition(".")
    zeros = len(whole) - len(whole.rstrip("0")) if not decimals and not power else 0
    return float(10.0 ** (int(power or 0) - len(decimals) + (zeros if whole.strip("0") else 0)))


def is_among(token: str, values: np.ndarray, dates: Iterable[dpm.Date]) -> bool:
    """True if a printed number is one of the API's, rounded; a date if it is cut to the printed year, month or day."""
    for date in dates:
        within = values[(values >= date.bounds[0] - 4e4) & (values <= date.bounds[1] + 4e4)]
        unit = {4: "Y", 7: "M", 10: "D"}.get(len(token))
        if unit and token in date.datetimes(within).astype(f"datetime64[{unit}]").astype(str):
            return True
    if re.fullmatch(r"\d{4}-.*", token):
        return False
    shown = float(token.replace("−", "-").replace(",", ""))
    near = 0.5001 * step_of(token)
    if shown == 0.0 and "." not in token:  # of what is smaller than a twentieth of its error
        near = max(near, 0.05 * float(np.abs(values[np.isfinite(values)]).max(initial=0.0)))
    return bool((np.abs(shown - values) <= near + 1e-9 * abs(shown)).any())


def tokens(text: str, names: Iterable[str]) -> list[str]:
    """The numbers in a text that are not part of a name or of a sentence about the library."""
    for sentence in _FIXED:
        text = re.sub(sentence, " ", text)
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w)(?<!\d[,.]){re.escape(name)}(?!\w|[,.]\d)", " ", text)
    return _NUMBER.findall(text)


def names_of(release: dpm.MomentRelease) -> set[str]:
    names = {*release.feature_names, *release.schema.names}
    return names | {f"{name}" for column in release.schema.columns for name in getattr(column, "levels", None) or ()}


def read_back(what: str, answer: Any, release: dpm.MomentRelease, found: Found) -> None:
    """Text and HTML of an answer against its frame and its JSON."""
    names, values = names_of(release), api_of(answer, release)
    values = np.concatenate([values, 100.0 * values, 100.0 * (1.0 - values)])  # shares, and chances of an error
    dates = [column for column in release.schema.columns if isinstance(column, dpm.Date)]
    head, *rows = answer.table()
    frame, order = answer.to_pandas(), answer._shown_rows
    of_rows = len(frame) == len(rows) or order is not None
    for index, row in enumerate(rows):
        own = values
        if of_rows:
            place = index if order is None else order[index]
            numbers = frame.select_dtypes("number").iloc[place].to_numpy(dtype=float)
            statistics = np.ravel(getattr(answer, "tvalues", np.full(len(frame), np.nan)))[[place]]
            limits = statistics
            if isinstance(answer, Description):
                limits = np.append(answer.conf_int()[place], answer.deviation_below[place])
            own = np.concatenate([numbers, 100.0 * numbers, statistics, limits, [place]])
        for name, cell in zip(head, row, strict=True):
            found.rows += 1
            for token in tokens(cell, names) if name or row[0] != cell else []:
                found.unless(
                    is_among(token, own, dates), f"{what}, {row[0]}, {name}: {token} of {cell}, not in the API"
                )
    advice = getattr(answer, "help", "")
    for sentence in (each.replace(advice, "") for each in (*answer.heading, *answer.remarks)):
        for token in tokens(sentence, names):
            found.rows += 1
            found.unless(is_among(token, values, dates), f"{what}: {token} of {sentence!r}, not in the API")
    in_html(what, answer, found)


def in_html(what: str, answer: Any, found: Found) -> None:
    """HTML has the cells and lines of the text, and no other number."""
    page = answer._repr_html_()
    cells = [html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", page)]
    lines = [html.unescape(line) for line in re.findall(r"<(?:p|pre)\b[^>]*>(.*?)</(?:p|pre)>", page, re.S)]
    found.unless(cells == [cell for row in answer.table() for cell in row], f"{what}: HTML has other cells")
    found.unless(lines == [line for line in (*answer.heading, *answer.remarks) if line], f"{what}: HTML, other lines")
    text = " ".join(answer.text().split())
    for line in (*lines, *(" ".join(row) for row in answer.table())):
        found.unless(" ".join(line.split()) in text, f"{what}: {line!r} is not in the text")


def at_the_shell(what: str, answer: Any, file: Path, words: list[str], found: Found) -> None:
    """The command prints the text, and its JSON."""
    for option, expected in (([], answer.text()), (["--json"], json.dumps(answer.to_dict(), indent=1))):
        with redirect_stdout(io.StringIO()) as printed:
            status = main([words[0], str(file), *words[1:], *option])
        found.unless(status == 0, f"{shlex.join(words)}: exit code {status}")
        found.unless(printed.getvalue().split() == expected.split(), f"{what}: the command prints another answer")


def read_answers(asked: Asked, file: Path, level: float, chosen: slice = slice(None)) -> Found:
    """What the texts of answers say and the API does not, of the release in a file; all answers, or some."""
    found, release = Found(), dpm.load(file)
    assert isinstance(release, dpm.MomentRelease)
    for what, ask, words in questions(asked, release, level)[chosen]:
        try:
            answer = ask()
        except dpm.InputError:
            continue
        read_back(what, answer, release, found)
        if words:
            at_the_shell(what, answer, file, words, found)
    return found


def contradictions_of(name: str, epsilon: float, seed: int, folder: Path, parts: int = 1) -> Found:
    """What is printed of a release of a table; of every so many answers, beginning with the seed's."""
    table, schema, target, regressors, by = tables()[name]
    file = folder / f"{name}.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dpm.release(table, schema, epsilon=epsilon, insecure_seed=seed).save(file, overwrite=True)
        asked = Asked(table, target, list(regressors), by)
        return read_answers(asked, file, (0.8, 0.9, 0.95, 0.99)[seed % 4], slice(seed % parts, None, parts))
