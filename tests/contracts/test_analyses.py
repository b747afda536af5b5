"""Every analysis keeps one contract, and every check of it fails on an analysis with a planted fault."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import typer
import typer.main

import dpmoments as dpm
from contracts.analyses import FEATURES, OTHER_UNITS, UNLIMITED, AnalysisCase, Numbers, features_of, records, released
from contracts.comparison_cases import EVERY_ANALYSIS
from contracts.estimate_cases import ESTIMATES
from dpmoments.analysis.answers import Answer
from dpmoments.cli import main
from dpmoments.cli.analyses import analyses, command_of
from dpmoments.schema.columns import Numeric

ANALYSES = [*EVERY_ANALYSIS, *ESTIMATES]
Analysis = Callable[..., Any]
Check = Callable[[AnalysisCase, Analysis], None]

every_case = pytest.mark.parametrize("case", ANALYSES, ids=[case.id for case in ANALYSES])


@cache
def release_for(kind: str, products: tuple[tuple[str, str], ...] = ()) -> dpm.MomentRelease:
    options: dict[str, dict[str, Any]] = {
        "exact": {},
        "usual": dict(epsilon=1.0, repair="auto"),
        "no mean": dict(mean=False, neighbors="replace_one", mechanism="matrix-laplace"),
        "no count": dict(mean=False),
    }
    return released(products=products, **options[kind])


def real(case: AnalysisCase) -> Analysis:
    return analyses()[case.name]


def parameters_of(analysis: Analysis) -> list[inspect.Parameter]:
    return [*inspect.signature(analysis).parameters.values()][1:]


def names_taken(analysis: Analysis) -> list[str]:
    """The parameters that name features: text that is no choice between words."""

    def is_name(hint: Any) -> bool:
        return hint is str or (get_origin(hint) is not Literal and any(map(is_name, get_args(hint))))

    hints = get_type_hints(analysis)
    return [parameter.name for parameter in parameters_of(analysis) if is_name(hints[parameter.name])]


NAMING = [(case, parameter) for case in ANALYSES for parameter in names_taken(real(case))]


def assert_same_numbers(found: Numbers, expected: Numbers, tolerance: float) -> None:
    assert set(found) == set(expected)
    for key, value in expected.items():
        same = abs(found[key] - value) <= tolerance * max(1.0, abs(value))
        assert same or (np.isnan(value) and np.isnan(found[key])), (key, found[key], value)


# The checks -----------------------------------------------------------------------------------------------------------------


def check_labels(case: AnalysisCase, analysis: Analysis) -> None:
    """Features carry the release's names, in the release's order."""
    release = release_for("usual", case.products)
    labels = getattr(analysis(release, **case.arguments), case.labels)
    assert isinstance(labels, tuple)
    assert labels == tuple(name for name in release.feature_names if name in labels)


def check_exact(case: AnalysisCase, analysis: Analysis) -> None:
    """An unlimited budget gives the answer on the table itself."""
    answer = analysis(release_for("exact", case.products), **case.arguments)
    assert_same_numbers(case.numbers(answer), case.reference(features_of(records()), True), case.tolerance)


def check_units(case: AnalysisCase, analysis: Analysis) -> None:
    """Other units of a column, its public bounds with it, change the answer as they must: the same noise, in other units."""
    before = case.numbers(analysis(release_for("usual", case.products), **case.arguments))
    for units in map(OTHER_UNITS.__getitem__, case.other_units):
        after = case.numbers(analysis(released(units, case.products, epsilon=1.0, repair="auto"), **case.arguments))
        assert_same_numbers(after, case.in_units(before, units), 1e-5)


def check_unknown(case: AnalysisCase, analysis: Analysis, parameter: str) -> None:
    """A name that the release has not is refused, and named."""
    several = get_type_hints(real(case))[parameter] is not str
    with pytest.raises(ValueError, match="'height'"):
        analysis(
            release_for("usual", case.products), **(case.arguments | {parameter: ["height"] if several else "height"})
        )


def check_unchanged(case: AnalysisCase, analysis: Analysis) -> None:
    """Neither the release nor what was passed is changed."""
    release = released(products=case.products, epsilon=1.0, repair="auto")
    arguments = copy.deepcopy(case.arguments)

    def state() -> str:
        moments = [release.mean, release.covariance, release.unit_ball_mean, release.unit_ball_gram, release.noisy_gram]
        return json.dumps([release.to_dict(), [moment.tolist() for moment in moments]])

    before = state()
    analysis(release, **arguments)
    assert state() == before
    assert arguments == case.arguments


def check_without_a_mean(case: AnalysisCase, analysis: Analysis) -> None:
    """Moments about zero are analyzed as such, or refused for want of a mean; what needs a count asks for it."""
    if case.answers_without_a_mean:
        answer = analysis(release_for("no mean", case.products), **case.arguments)
        assert_same_numbers(case.numbers(answer), case.reference(features_of(records()), False), case.tolerance)
    else:
        assert "mean" in refusal(analysis, release_for("no mean", case.products), case)
    if words := refusal(analysis, release_for("no count", case.products), case, needed=False):
        assert "count" in words or "mean" in words


def refusal(analysis: Analysis, release: dpm.MomentRelease, case: AnalysisCase, *, needed: bool = True) -> str:
    """The words with which an analysis refuses; empty where it answers, and need not refuse."""
    try:
        analysis(release, **case.arguments)
    except ValueError as error:
        return str(error)
    assert not needed, "it answers, and nobody said how"
    return ""


def check_command(case: AnalysisCase, analysis: Analysis, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command of an analysis prints the library's answer, as text and as JSON."""
    release_for("usual", case.products).save(file, overwrite=True)
    expected = real(case)(dpm.load(file), **case.arguments)
    assert json.loads(printed(analysis, [file, *case.command, "--json"], capsys)) == expected.to_dict()
    assert printed(analysis, [file, *case.command], capsys).split() == expected.summary().split()
    assert str(expected) == expected.summary()


def printed(analysis: Analysis, words: Sequence[str | Path], capsys: pytest.CaptureFixture[str]) -> str:
    app = typer.Typer()
    app.command()(command_of("planted", analysis))
    capsys.readouterr()
    typer.main.get_command(app).main(args=[str(word) for word in words], standalone_mode=False)
    return capsys.readouterr().out


# They hold for every analysis -----------------------------------------------------------------------------------------------


def test_every_analysis_is_in_the_table_with_every_parameter() -> None:
    assert {case.name for case in ANALYSES} == set(analyses())
    for name, analysis in analyses().items():
        given = {parameter for case in ANALYSES if case.name == name for parameter in case.arguments}
        assert given == {parameter.name for parameter in parameters_of(analysis)}
        assert getattr(dpm.MomentRelease, name) is analysis


@pytest.mark.long(sets=None)
@every_case
@pytest.mark.parametrize("check", [check_labels, check_exact, check_units, check_unchanged, check_without_a_mean])
def test_every_analysis_keeps_the_contract(case: AnalysisCase, check: Check) -> None:
    check(case, real(case))


@pytest.mark.long(sets=None)
@pytest.mark.parametrize(("case", "parameter"), NAMING, ids=[f"{case.id}-{name}" for case, name in NAMING])
def test_unknown_names_are_refused_by_name(case: AnalysisCase, parameter: str) -> None:
    check_unknown(case, real(case), parameter)


@pytest.mark.long(sets=2)
@every_case
def test_every_analysis_has_its_command(case: AnalysisCase, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "people.json"
    check_command(case, real(case), file, capsys)
    name = case.name.replace("_", "-")
    assert main([name, str(file), *case.command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == real(case)(dpm.load(file), **case.arguments).to_dict()


@pytest.mark.long(sets=15)
@pytest.mark.parametrize("name", analyses())
def test_every_command_says_what_it_does_and_what_its_options_are(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name.replace("_", "-"), "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert " ".join((analyses()[name].__doc__ or "").split("\n\n")[0].split()) in shown
    app = typer.Typer()
    app.command()(command_of(name, analyses()[name]))
    assert all(getattr(option, "help", None) for option in typer.main.get_command(app).params)


# And fail on faults ----------------------------------------------------------------------------------------------------------


def planted(
    case: AnalysisCase, before: Callable[..., Any] | None = None, after: Callable[..., Any] | None = None
) -> Analysis:
    """The analysis with something done to the release and arguments before it, or to the answer after it."""
    original = real(case)

    def analysis(release: Any, **arguments: Any) -> Any:
        given, options = (release, arguments) if before is None else before(release, arguments)
        answer = original(given, **options)
        return answer if after is None else after(release, arguments, answer)

    analysis.__signature__ = inspect.signature(original, eval_str=True)  # type: ignore[attr-defined]
    analysis.__annotations__ = get_type_hints(original)
    analysis.__doc__ = original.__doc__
    return analysis


def mislabeled(case: AnalysisCase) -> Analysis:
    """The labels one place on."""

    def moved(_: Any, __: Any, answer: Any) -> Any:
        labels = getattr(answer, case.labels)
        return replace(answer, **{case.labels: (*labels[1:], labels[0])})

    return planted(case, after=moved)


def without_units(case: AnalysisCase) -> Analysis:
    """Every numeric column read as though its bounds were −1 and 1."""

    def unbounded(release: Any, arguments: Any) -> Any:
        columns = [
            Numeric(column.name, -1.0, 1.0) if isinstance(column, Numeric) else column
            for column in release.schema.columns
        ]
        return replace(release, schema=dpm.Schema(*columns)), arguments

    return planted(case, unbounded)


def forgiving(case: AnalysisCase) -> Analysis:
    """Names that are none are left out."""

    def left_out(release: Any, arguments: Any) -> Any:
        known = {key: value for key, value in arguments.items() if value not in ("height", ["height"])}
        return release, case.arguments | known

    return planted(case, left_out)


def always_refusing(case: AnalysisCase) -> Analysis:
    """It refuses moments about zero without saying why."""

    def refused(release: Any, arguments: Any) -> Any:
        if release.noisy_sum is None:
            raise ValueError("this cannot be done")
        return release, arguments

    return planted(case, refused)


def writing(case: AnalysisCase) -> Analysis:
    """It works in place."""

    def changed(release: Any, _: Any, answer: Any) -> Any:
        release.noisy_gram.setflags(write=True)
        release.noisy_gram[0, 0] += 1.0
        return answer

    return planted(case, after=changed)


def sorting(case: AnalysisCase) -> Analysis:
    """It orders the caller's list."""

    def ordered(_: Any, arguments: Any, answer: Any) -> Any:
        for value in arguments.values():
            if isinstance(value, list):
                value.sort(reverse=True)
        return answer

    return planted(case, after=ordered)


FAULTS: list[tuple[Check, Callable[[AnalysisCase], Analysis], tuple[str, ...]]] = [
    (check_labels, mislabeled, ("ols", "lda")),
    (check_exact, mislabeled, ("describe", "group_means")),
    (check_exact, without_units, ("ridge", "anova")),
    (check_units, without_units, ("pca", "t_test")),
    (check_unchanged, writing, ("correlations",)),
    (check_unchanged, sorting, ("group_means",)),
    (check_without_a_mean, mislabeled, ("describe", "ridge")),
    (check_without_a_mean, always_refusing, ("describe", "t_test")),
]


@pytest.mark.parametrize(("check", "fault", "names"), FAULTS)
def test_a_planted_fault_is_found(
    check: Check, fault: Callable[[AnalysisCase], Analysis], names: tuple[str, ...]
) -> None:
    for name in names:
        case = next(case for case in ANALYSES if case.name == name)
        with pytest.raises((AssertionError, ValueError)):
            check(case, fault(case))


def test_unknown_names_passed_over_are_found() -> None:
    case, parameter = NAMING[0]
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        check_unknown(case, forgiving(case), parameter)


def deaf(case: AnalysisCase, parameter: str) -> Analysis:
    """It does not hear one option."""

    def unheard(release: Any, arguments: Any) -> Any:
        return release, {key: value for key, value in arguments.items() if key != parameter}

    return planted(case, unheard)


OPTIONS = [
    (name, option.name)
    for name, analysis in analyses().items()
    for option in parameters_of(analysis)
    if option.default is not option.empty and option.name != "cov_type"  # decides nothing in a release without products
]


@pytest.mark.long(sets=5)
@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_an_option_that_does_not_arrive_is_found(
    name: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By one of the rows at least: a row may ask for what is the default."""
    found = 0
    for case in ANALYSES:
        if case.name == name and option in case.arguments:
            try:
                check_command(case, deaf(case, option), tmp_path / "people.json", capsys)
            except (AssertionError, ValueError):  # another answer, or none without the option
                found += 1
    assert found


def test_the_option_for_standard_errors_arrives_where_the_release_has_products(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = dpm.Schema(dpm.Numeric("age", 10, 90), dpm.Boolean("employed")).with_products(["age", "employed"])
    release = dpm.release(records().select(["age", "employed"]), schema, insecure_seed=3, **UNLIMITED)
    release.save(tmp_path / "people.json")
    printed = []
    for option in ("HC1", "nonrobust"):
        assert main(["ols", str(tmp_path / "people.json"), "age", "--cov-type", option, "--json"]) == 0
        printed.append(json.loads(capsys.readouterr().out))
        assert printed[-1] == release.ols("age", cov_type=option).to_dict()
    assert printed[0]["sampling_errors"] != printed[1]["sampling_errors"]


def test_a_new_analysis_is_found_and_missed_in_the_table() -> None:
    def medians(release: Any) -> Answer:
        return release  # type: ignore[no-any-return]

    medians.__module__ = "dpmoments.analysis.medians"
    larger = type("Larger", (), dict(vars(dpm.MomentRelease)) | {"medians": medians})
    assert set(analyses(larger)) - {case.name for case in ANALYSES} == {"medians"}


# Commands from signatures ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Echo:
    given: dict[str, Any]

    def summary(self) -> str:
        return str(self.given)

    def to_dict(self) -> dict[str, Any]:
        return self.given


def echo(
    release: Any,
    by: str,
    of: Sequence[str],
    *,
    penalty: float | Literal["auto"] = "auto",
    columns: Sequence[str] = ("a",),
    n_draws: int = 3,
    center: bool = True,
    kinds: Sequence[Literal["x", "y"]] | None = None,
) -> Echo:
    """Give back what was given: [for tests].

    Parameters
    ----------
    release : Moments
    by : str
        First ``name``,
        on two lines.
    of, columns : sequence of str
        Names of a :class:`~dpmoments.Schema`.
    penalty : float or "auto"
        How much, in [0, 1].
    n_draws : int
        How many.
    center : bool
        Whether.
    kinds : sequence of {"x", "y"}, optional
        Which.

    Returns
    -------
    Echo
        Not a parameter.
    """
    del release
    return Echo(dict(by=by, of=of, penalty=penalty, columns=columns, n_draws=n_draws, center=center, kinds=kinds))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {}),
        (["--penalty", "0.5"], dict(penalty=0.5)),
        (["--penalty", "auto"], dict(penalty="auto")),
        (["--column", "b", "--column", "c"], dict(columns=["b", "c"])),
        (["--n-draws", "7", "--no-center"], dict(n_draws=7, center=False)),
        (["--kind", "x", "--kind", "y"], dict(kinds=["x", "y"])),
    ],
)
def test_options_follow_from_the_signature(
    words: list[str], expected: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release_for("usual").save(file := tmp_path / "people.json")
    defaults = dict(
        by="region", of=["age", "income"], penalty="auto", columns=["a"], n_draws=3, center=True, kinds=None
    )
    found = json.loads(printed(echo, [file, "region", "age", "income", *words, "--json"], capsys))
    assert found == defaults | expected


@pytest.mark.parametrize(
    "words", [["--penalty", "much"], ["--kind", "z"], ["--n-draws", "0"], ["--center", "--columns", "b"]]
)
def test_what_the_signature_forbids_is_a_mistake_in_the_command(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release_for("usual").save(file := tmp_path / "people.json")
    with pytest.raises(Exception) as caught:  # typer keeps its kinds of error in different packages
        printed(echo, [file, "region", "age", *words], capsys)
    error: Any = caught.value
    assert error.exit_code == 2
    assert words[-2] in error.format_message()


def test_the_words_of_options_are_those_of_the_docstring() -> None:
    app = typer.Typer()
    app.command()(command_of("echo", echo))
    words = {option.name: getattr(option, "help", "") for option in typer.main.get_command(app).params}
    assert words["by"] == "First name, on two lines."
    assert words["of"] == words["columns"] == "Names of a dpmoments.Schema. May be repeated."
    assert words["penalty"] == r"How much, in [0, 1]."
    assert words["n_draws"] == "How many."


@pytest.mark.parametrize("kind", [dict[str, int], bytes, int | str, Literal[1, 2], Sequence[Sequence[str]]])
def test_a_parameter_that_no_option_can_be_is_refused(kind: Any) -> None:
    def analysis(release: Any, odd: Any = None) -> Any:
        return release, odd

    analysis.__annotations__ = {"release": Any, "odd": kind}
    with pytest.raises(AssertionError, match="parameter 'odd' is of type"):
        command_of("odd", analysis)


def test_the_features_of_the_table_are_the_releases() -> None:
    assert release_for("exact").feature_names == FEATURES
    np.testing.assert_allclose(release_for("exact").mean, features_of(records()).mean(axis=0), rtol=1e-6)
