"""The report of a release: what it says, to whom it refuses, and that no name out of a file does anything but stand there."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest
from markupsafe import Markup

import dpmoments as dpm
from dpmoments.analysis.resolvability import holds_among_all
from dpmoments.base.message import Message
from dpmoments.cli import main
from dpmoments.cli.options import column_and_feature
from dpmoments.moments.cells import GaussianCells
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.terms import NoiseTerm
from dpmoments.reporting import page as page_module
from dpmoments.reporting import sections as mean_sections
from dpmoments.reporting import sections as section_module
from dpmoments.reporting.page import Picture
from dpmoments.reporting.report import _Asked, _chapters, _describe_promise, _Findings, _page
from support.read_page import Page
from support.said import Said, refused

BREAKS_OUT = '</svg><img src="x" onerror="alert(3)">'
HOSTILE = (
    "<script>alert(1)</script>",
    "$x$ & \\frac{a}",
    '" onload="alert(2)',
    "שלום עולם",
    "x" * 200,
    "{{7*7}}{% raw %}",
    "]]>-->",
    "a\u202eb",
)
RNG = np.random.default_rng(0)


def released(n_rows: int = 4000, **options: Any) -> Any:
    """People of two regions, of whom those of the north earn more."""
    rng = np.random.default_rng(1)
    north = rng.random(n_rows) < 0.4
    age = rng.uniform(20, 80, n_rows)
    table = pa.table(
        {
            "age": age,
            "income": np.clip(20 + 0.5 * age + 20 * north + rng.normal(0, 5, n_rows), 0, 120),
            "region": np.where(north, "north", "south"),
        }
    )
    schema = dpm.Schema(
        dpm.Numeric("age", 0, 100), dpm.Numeric("income", 0, 120), dpm.Categorical("region", ["north", "south"])
    )
    return dpm.release(table, schema, **{"epsilon": 1.0, "insecure_seed": 3, "dataset": "people", **options})


@pytest.fixture(scope="module")
def hostile() -> dpm.MomentRelease:
    """A release whose names are as unkind to a page as names can be."""
    rng = np.random.default_rng(0)
    schema = dpm.Schema(
        *(dpm.Numeric(name, 0, 1) for name in HOSTILE), dpm.Categorical(BREAKS_OUT, ["<b>", "مرحبا", "z"])
    )
    table = {name: rng.random(3000) for name in HOSTILE} | {BREAKS_OUT: rng.choice(["<b>", "مرحبا", "z"], 3000)}
    return dpm.release(pa.table(table), schema, epsilon=2.0, insecure_seed=1, dataset="<i>data</i>")


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures take a second each, and have tests of their own."""

    def empty(name: str, *_: object, title: str, description: str) -> Picture:
        return Picture(Markup('<svg id="{}" aria-label="{}"></svg>').format(name, description), title)

    monkeypatch.setattr(section_module, "drawn", empty)


@pytest.fixture(scope="module")
def of_every_kind() -> dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]]:
    return kinds()


def _report_page(release: Any, **asked: Any) -> str:
    return _page(release, _Asked(**asked))


def asked_of_hostile(release: dpm.MomentRelease) -> str:
    return _report_page(release, regressions=["`שלום עולם` ~ `]]>-->`"], groups=[(BREAKS_OUT, HOSTILE[0])])


def unharmed(source: str) -> None:
    """Names stand in the page as text, and nowhere as anything else."""
    page = Page(source)
    assert page.faults() == []
    assert not page.tags.keys() & {"script", "img", "b", "i", "iframe", "link"}
    for name in (*HOSTILE, BREAKS_OUT, "مرحبا"):
        assert " ".join(name.replace("\u202e", "\\u202e").split()) in page.text
    assert "\u202e" not in source
    assert "<i>data</i>" in page.text


def test_names_out_of_a_file_do_nothing_but_stand_there(hostile: dpm.MomentRelease) -> None:
    unharmed(asked_of_hostile(hostile))


@pytest.mark.usefixtures("undrawn")
def test_a_page_that_escapes_nothing_is_found(hostile: dpm.MomentRelease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module._environment(page_module._PACKAGE), "autoescape", False)
    page_module._environment(page_module._PACKAGE).cache.clear()  # type: ignore[union-attr]
    try:
        with pytest.raises(AssertionError):
            unharmed(asked_of_hostile(hostile))
    finally:
        page_module._environment(page_module._PACKAGE).cache.clear()  # type: ignore[union-attr]


def test_letters_of_every_script_are_left_to_the_browser() -> None:
    """The page's pictures hold the names themselves, also those letters in whose place others are laid out."""
    names = ("年齢と所得", "\u2801\u2802 ⠿", "😀🫠", "नमस्ते", "".join(map(chr, range(0x4E00, 0x4E14))))
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 1) for name in names))
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.random(500) for name in names})
    page = _report_page(dpm.release(table, schema, epsilon=5.0, insecure_seed=0))
    texts = {re.sub(r"<.*?>", "", text) for text in re.findall(r"<text.*?</text>", page)}
    assert set(names) <= texts
    assert not any("\\u" in text for text in texts)


def test_a_page_says_what_was_released_how_noisy_it_is_and_what_it_cost() -> None:
    before = dict(mpl.rcParams)
    release = released(insecure_seed=None)
    source = _report_page(release, regressions=["income ~ age + C(region)"], groups=[("region", "income")])
    assert dict(mpl.rcParams) == before
    page = Page(source)
    assert page.faults() == []
    assert page.tags["svg"] == 4
    for line in release.privacy.describe().split("\n"):
        assert line.removeprefix("- ") in page.text
    for answer in (
        release.describe(),
        release.ols("income ~ age + C(region)"),
        release.group_means("region", of=["income"]),
    ):
        for row in answer.table()[1:]:
            assert all(cell in page.text for cell in row)
    for what, law, sensitivity, loss in release.receipt.lines():
        assert f"{what} {law} {sensitivity} {loss}".replace("  ", " ") in page.text
    for level in release.auditor_statement().levels:
        assert all(" ".join(words.split()) in page.text for words in (*level.stated, *level.asked))
    power = 100.0 * release.privacy_curve.attacker_power(0.05)
    assert f"at most {power:.3g} %" in page.text
    assert "NOT PRIVATE" not in page.text
    pictures = [attributes for tag, attributes in page.elements if tag == "svg"]
    assert all(attributes["role"] == "img" and len(attributes["aria-label"]) > 40 for attributes in pictures)


@pytest.mark.usefixtures("undrawn")
def test_a_seeded_release_says_that_it_protects_nobody() -> None:
    release = released()
    assert "This release protects nobody" in _describe_promise(release, 0.5)[0]
    assert "NOT PRIVATE. Made with an insecure seed" in Page(_report_page(release)).text


@pytest.mark.usefixtures("undrawn")
def test_what_noise_decides_says_so_where_it_is_read() -> None:
    release = released(60, epsilon=0.1)
    source = _report_page(release, regressions=["income ~ age"], groups=[("region", "income")])
    page = Page(source)
    assert page.text.count(str(Message("too-few-rows", **release.warnings[0].facts))) == 1  # at the head
    assert page.text.count("warning at the head of this page applies") == 5
    assert "WHOLE FIT: NOT CLEAR (NOISE)" in page.text
    marked = re.findall(r'<td class="noise[^"]*">([^<]*)<', source)
    assert {"noise", "not clear (noise)", "lost in noise"} <= set(marked)
    cells = [
        cell
        for answer in (release.describe(), release.pca(scaling="bounds"))
        for row in answer.table()[1:]
        for cell in row[1:]
    ]
    assert 0 < cells.count("noise") == marked.count("noise")


def kinds() -> dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]]:
    """Releases of every kind, what is asked of them, and what their pages say."""
    x = RNG.uniform(-0.5, 0.5, (2000, 3))
    ball, seed = dpm.Schema.unit_ball(3), {"insecure_seed": 0}
    public = {"neighbors": "replace_one", "mean": False}
    people = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Boolean("flag"), dpm.Numeric("x", 0, 1))
    table = pa.table({"age": RNG.uniform(0, 100, 3000), "flag": RNG.random(3000) < 0.3, "x": RNG.random(3000)})
    parts = [
        dpm.release(table, people, epsilon=1.0, dataset=name, **seed | {"insecure_seed": place})
        for place, name in enumerate("ab")
    ]
    ids = np.repeat(np.arange(1500), 2).astype(str)
    unit = {"privacy_unit": dpm.PrivacyUnit("person", max_rows=2)}
    biased = dpm.mechanisms.JohnsonLindenstrauss(subtract_padding=False)
    return {
        "people": (
            dpm.release(table.append_column("person", pa.array(ids)), people, epsilon=1.0, **unit),
            {},
            (
                "whether the table has rows of a certain person",
                "The privacy unit is all rows with one value of person",
                "on a unit of 2 rows",
            ),
        ),
        "no count": (
            dpm.release(x, ball, epsilon=1.0, mean=False, **seed),
            {},
            ("No row count was released", "sum of squares ± noise"),
        ),
        "no mean": (
            dpm.release(x, ball, epsilon=1.0, **public, **seed),
            {"regressions": ["x0 ~ x1"]},
            ("No mean was released", "root mean square"),
        ),
        "mean alone": (dpm.release_mean(x, ball, rho=0.1, **seed), {}, ("Only a mean was released", "95% interval")),
        "groups": (
            dpm.release_groups(table, people, by="flag", epsilon=1.0, **seed),
            {"regressions": ["age ~ x"]},
            ("flag = True", "Regression: age ~ x"),
        ),
        "pooled": (dpm.pool(parts), {"groups": [("flag", "age")]}, ("2 releases pooled", "Groups: age by flag")),
        "no law": (
            dpm.release(x, ball, epsilon=1.0, delta=1e-6, mechanism=biased, **seed),
            {},
            ("noise unknown",),
        ),
        "one feature": (
            dpm.release(x[:, :1], dpm.Schema.unit_ball(1), epsilon=1.0, **seed),
            {},
            ("Spectrum against the noise floor",),
        ),
    }


@pytest.mark.usefixtures("undrawn")
def test_releases_of_every_kind_have_a_page(
    of_every_kind: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]],
) -> None:
    for name, (release, asked, said) in of_every_kind.items():
        page = Page(_report_page(release, **asked))
        assert page.faults() == [], name
        assert all(words in page.text for words in said), name


@pytest.mark.usefixtures("undrawn")
def test_what_a_release_cannot_answer_is_refused_and_nothing_written(
    tmp_path: Path, of_every_kind: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]]
) -> None:
    found = of_every_kind
    path = tmp_path / "report.html"
    refusals: list[tuple[Any, dict[str, Any], type[Exception], Said]] = [
        (
            found["mean alone"][0],
            {"regressions": ["x0 ~ x1"]},
            ValueError,
            Said("regressions and group means need count, mean and"),
        ),
        (
            found["no count"][0],
            {"regressions": ["x0 ~ x1"]},
            ValueError,
            Said("regressions and group means need a number of rows, which was not released"),
        ),
        (
            found["pooled"][0],
            {"regressions": ["nobody ~ age"]},
            ValueError,
            Said("is not a column or feature of this release", term="nobody"),
        ),
        (
            found["pooled"][0],
            {"groups": [("age", "x")]},
            ValueError,
            Said("Bands of numbers must be made", kind="numeric", name="age"),
        ),
        (
            found["pooled"][0],
            {"level": 0.05},
            ValueError,
            Said("statsmodels' alpha is 1", level=0.05),
        ),
        (
            found["pooled"][0],
            {"regressions": "age ~ x"},
            TypeError,
            Said("regressions is a list of R formulas: regressions=['income ~"),
        ),
        (
            found["pooled"][0],
            {"groups": ["flag:age"]},
            TypeError,
            Said("groups is a list of pairs, a column of levels and a"),
        ),
        ("people.json", {}, TypeError, Said("a report needs a release or a forecast, got", got="str")),
    ]
    for subject, asked, kind, said in refusals:
        with refused(said, kind):
            dpm.report(subject, path, **asked)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("undrawn")
def test_a_page_is_written_whole_and_never_over_another_unless_told(tmp_path: Path) -> None:
    release, path = released(400), tmp_path / "report.html"
    path.write_text("mine")
    with refused("exists already", FileExistsError, advice=Said("choose another name, or pass overwrite=True")):
        dpm.report(release, path)
    assert path.read_text() == "mine"
    dpm.report(release, path, overwrite=True)
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("undrawn")
def test_the_command_writes_what_the_function_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, path = tmp_path / "people.json", tmp_path / "report.html"
    release = released(insecure_seed=None)
    release.save(file)
    asked = ["--regression", "income ~ age", "--groups", "region:income", "--level", "0.9"]
    assert main(["report", str(file), "-o", str(path), *asked]) == 0
    page = _report_page(release, regressions=["income ~ age"], groups=[("region", "income")], level=0.9)
    assert path.read_text(encoding="utf-8") == page
    assert main(["report", str(file), "-o", str(path), *asked]) == 1
    assert "choose another name, or pass --overwrite" in " ".join(capsys.readouterr().err.split())
    assert main(["report", str(file), "-o", str(path), "--overwrite"]) == 0
    assert main(["report", str(file), "-o", str(path), "--overwrite", "--groups", "region"]) == 1
    assert "write COLUMN:OF" in capsys.readouterr().err


def test_a_colon_in_a_name_is_no_trouble() -> None:
    schema = dpm.Schema(dpm.Boolean("a"), dpm.Boolean("a:b"), dpm.Numeric("b:c", 0, 1), dpm.Numeric("d", 0, 1))
    assert column_and_feature("a:b:d", schema) == ("a:b", "d")
    assert column_and_feature("a:b:c", schema) == ("a", "b:c")
    with refused("does not name one column of levels and one feature: write"):
        column_and_feature("d", schema)


@pytest.mark.slow
def test_many_features_make_a_page_of_moderate_size() -> None:
    levels = [str(place) for place in range(52)]
    schema = dpm.Schema(
        *(dpm.Categorical(name, levels) for name in ("a", "b")), dpm.Numeric("x", 0, 1), dpm.Numeric("y", 0, 1)
    )
    table = pa.table(
        {name: RNG.choice(levels, 3000) for name in ("a", "b")} | {name: RNG.random(3000) for name in ("x", "y")}
    )
    release = dpm.release(table, schema, epsilon=1.0, insecure_seed=0)
    assert len(release.feature_names) == 106
    sections = section_module.moment_sections(release, "", [], [], 0.95)
    drawings = [len(section.picture.svg) for section in sections if section.picture]
    assert len(drawings) == 2
    assert sum(drawings) < 600_000


@pytest.mark.usefixtures("undrawn")
def test_the_page_on_reports_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of ``read-a-report.md``."""
    from tools.documentation.screenshots import write_pages

    monkeypatch.chdir(tmp_path)
    write_pages()
    for name in ("report.html", "again.html", "plan.html"):
        assert Page((tmp_path / name).read_text(encoding="utf-8")).faults() == []
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == (tmp_path / "report.html").read_text(
        encoding="utf-8"
    )


def test_numbers_that_are_no_larger_than_their_noise_are_not_told() -> None:
    """Sums of squares without a count, and means by themselves: noise a little below, and a little above, what counts."""
    squares: Any = SimpleNamespace(
        gram=np.diag([10.0, 10.0]),
        noise=NoiseLaw((NoiseTerm(GaussianCells(), np.ones((3, 3))),)),
        encoding=SimpleNamespace(scale=np.sqrt([9.0, 11.0])),
        feature_names=("a", "b"),
    )
    rows = section_module._sums_of_squares(squares).rows
    assert [[cell.text for cell in row] for row in rows] == [["a", "10", "9"], ["b", "noise", "11"]]
    means: Any = SimpleNamespace(
        schema=SimpleNamespace(row_norm=1.0, feature_bounds=(np.zeros(2), np.full(2, np.sqrt(12.0)))),
        standard_errors=np.array([0.9, 1.1]),
    )
    assert mean_sections._lost(means) == [1]


def test_a_page_of_too_many_groups_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"by": ["a", "b"] * 100, "x": np.linspace(0.0, 1.0, 200)})
    schema = dpm.Schema(dpm.Categorical("by", ["a", "b"]), dpm.Numeric("x", 0, 1))
    groups = dpm.release_groups(table, schema, by="by", epsilon=5.0, mechanism="laplace", insecure_seed=0)
    limits = _page.__globals__  # the name of the module is that of the function in it
    monkeypatch.setitem(limits, "_MAX_GROUPS", 2)
    assert "by = b" in _report_page(groups)
    monkeypatch.setitem(limits, "_MAX_GROUPS", 1)
    with refused("write the report of one, groups['level'], or save each in", column="by"):
        _report_page(groups)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("features", "caption"), [(11, "All pairs"), (12, "The clearest pairs")])
def test_a_table_of_pairs_says_whether_it_has_all(features: int, caption: str) -> None:
    rows = RNG.uniform(-0.3, 0.3, (2000, features))
    page = _page(dpm.release(rows, dpm.Schema.unit_ball(features), epsilon=1.0, insecure_seed=0), _Asked())
    assert f"{caption}: each with its noise, interval and sign" in page


def test_verdicts_of_a_page_are_by_one_correction_over_all_its_tables() -> None:
    release, asked = released(), _Asked(["income ~ age"], [("region", "income")])
    alone = section_module.Comparisons.of(release, asked.regressions, asked.groups, 0.95)
    [(_, sections)] = _chapters([("", "", release)], asked)
    clear = [statement.clear for part in sections for statement in part.statements]
    assert len(clear) == len(alone.comparisons[0])
    assert 0 < sum(clear) == int(holds_among_all(*alone.comparisons, 0.95).sum()) < len(clear)
    weak = alone.with_cutoff(-1.0)
    assert not weak.fits[0].holds_among_all.any()
    assert (weak.fits[0].verdict, weak.correlations.verdict) == (alone.fits[0].verdict, alone.correlations.verdict)
    found = _Findings.of([("", sections)], 0.95)
    assert len(found.stated) == min(sum(clear), 5)
    assert found.stated[0] in {statement.text for part in sections for statement in part.statements if statement.clear}
    page = Page(_report_page(release, regressions=asked.regressions, groups=asked.groups)).text
    places = [page.index(words) for words in (*found.stated, *found.unresolved, "What is protected")]
    assert places == sorted(places)


@pytest.mark.usefixtures("undrawn")
def test_a_summary_has_the_head_of_the_report_and_its_first_numbers(tmp_path: Path) -> None:
    release = released()
    dpm.report(release, tmp_path / "all.html", groups=[("region", "income")])
    dpm.report(release, tmp_path / "summary.html", groups=[("region", "income")], summary=True)
    whole, summary = ((tmp_path / name).read_text() for name in ("all.html", "summary.html"))
    for anchor in ("findings", "facts", "released", "groups-1", "limits"):
        assert f'id="{anchor}"' in whole
        assert f'id="{anchor}"' in summary
    assert "Mean of income by region</caption>" in summary
    assert "<figure" not in summary
    for anchor in ("privacy", "correlations", "appendix"):
        assert f'id="{anchor}"' in whole
        assert f'id="{anchor}"' not in summary
    head = [re.search(r'<ol class="findings">.*?</ol>', page, re.DOTALL) for page in (whole, summary)]
    assert head[0] is not None
    assert head[1] is not None
    assert head[0].group() == head[1].group()
    assert not set(re.findall(r'href="#([^"]+)"', summary)) - set(re.findall(r'id="([^"]+)"', summary))


@pytest.mark.usefixtures("undrawn")
def test_a_summary_of_many_features_says_how_many_it_leaves_out() -> None:
    rows = np.random.default_rng(0).uniform(-0.2, 0.2, (500, 20))
    release = dpm.release(rows, dpm.Schema.unit_ball(20), epsilon=1.0, insecure_seed=0)
    page = _page(release, _Asked(summary=True))
    assert page.count('<th scope="row">') == 12
    assert "12 of 20 rows" in page


@pytest.mark.usefixtures("undrawn")
def test_a_summary_shows_the_features_that_its_findings_name() -> None:
    rows = np.random.default_rng(0).uniform(-0.2, 0.2, (5000, 20))
    rows[:, 19] = rows[:, 18]
    page = _page(dpm.release(rows, dpm.Schema.unit_ball(20), epsilon=10.0, insecure_seed=0), _Asked(summary=True))
    assert page.count('<th scope="row">') == 12
    for name in ("x18", "x19"):
        assert f"<bdi>{name}</bdi></th>" in page


@pytest.mark.usefixtures("undrawn")
@pytest.mark.usefixtures("undrawn")
def test_levels_share_a_line_and_come_after_numbers() -> None:
    """Pairs of levels that do not hold are one line for two columns; a summary has numbers before levels."""
    rng = np.random.default_rng(0)
    kinds, places = [f"kind {i}" for i in range(14)], [f"place {i}" for i in range(5)]
    table = pa.table(
        {"kind": rng.choice(kinds, 900), "place": rng.choice(places, 900), "x": rng.random(900), "y": rng.random(900)}
    )
    schema = dpm.Schema(
        dpm.Categorical("kind", kinds), dpm.Categorical("place", places), dpm.Numeric("x", 0, 1), dpm.Numeric("y", 0, 1)
    )
    release = dpm.release(table, schema, epsilon=1.0, insecure_seed=0)
    page = Page(_report_page(release)).text
    assert "kind ~ place, 70 pairs of levels" in page
    assert "x ~ kind" in page or "kind ~ x, 14 pairs of levels" in page
    assert "more pairs are in the release file" not in page
    summary = _report_page(release, summary=True)
    assert all(f'<th scope="row"><bdi>{name}</bdi></th>' in summary for name in ("x", "y"))
    assert "<bdi>kind=kind 13</bdi>" not in summary


@pytest.mark.parametrize("kind", ["mean", "counts", "groups"])
def test_every_kind_of_release_has_a_summary(kind: str) -> None:
    table = {"x": [0.1, 0.4] * 500, "flag": [True, False] * 500}
    schema = dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Boolean("flag"))
    options: dict[str, Any] = {"epsilon": 1.0, "insecure_seed": 0}
    makers: dict[str, Any] = {
        "mean": lambda: dpm.release_mean(pa.table(table), schema, **options),
        "counts": lambda: dpm.release_counts(pa.table(table), schema, by=["flag"], **options),
        "groups": lambda: dpm.release_groups(pa.table(table), schema, by="flag", **options),
    }
    page = _page(makers[kind](), _Asked(summary=True))
    assert 'id="limits"' in page
    assert 'id="appendix"' not in page


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("level", [0.95, 0.99999])
def test_intervals_in_statements_have_the_signs_of_the_answers(level: float) -> None:
    """At a high level the interval of a clear finding can hold zero: its end on the other side is negative."""
    rng = np.random.default_rng(4)
    x = rng.uniform(0, 1, 2_000)
    table = pa.table({"x": x, "y": 0.5 - 0.085 * (x - 0.5) + rng.normal(0, 0.28, 2_000).clip(-0.5, 0.5)})
    schema = dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Numeric("y", 0, 1))
    release = dpm.release(table, schema, epsilon=50.0, insecure_seed=0)
    [fit] = [release.ols("y ~ x", level=level)]
    [(_, sections)] = _chapters([("", "", release)], _Asked(["y ~ x"], (), level))
    [text] = [each.text for part in sections for each in part.statements if each.text.startswith("y is lower")]
    low, high = (float(number) for number in re.search(r"interval (\S+) to (\S+)\)", text).groups())  # type: ignore[union-attr]
    estimate = fit.estimates[1]
    assert (low, high) == pytest.approx((-estimate.upper, -estimate.lower), abs=0.006)
    assert (low < 0.0) is (level > 0.95)


def test_dates_and_durations_are_aligned_as_numbers() -> None:
    table = page_module.PageTable.of(
        "", [("feature", "mean", "± noise"), ("age", "44.0", "0.27"), ("day", "2019-12-24", "0.026 years")]
    )
    assert table.number_columns == (False, True, True)
    words = page_module.PageTable.of("", [("feature", "mean"), ("age", "44.0"), ("day", "12 months later")])
    assert words.number_columns == (False, False)


@pytest.mark.usefixtures("undrawn")
def test_no_page_says_that_more_rows_would_show_a_relation() -> None:
    """A pair without a relation would stay "not clear (too few rows)" with any number of rows."""
    said = " ".join(_report_page(released()).split())
    assert "would help most" not in said
    assert "cannot show the sign, if there is one" in said


def test_numbers_with_an_upper_limit_only_are_counted() -> None:
    people = dpm.datasets.adult().frame.slice(0, 1000)
    columns = [dpm.Numeric("age", 17, 90), dpm.Numeric("capital-gain", 0, 99_999), dpm.Boolean("income")]
    answer = dpm.release(people, dpm.Schema(*columns), epsilon=0.5, insecure_seed=0).describe()
    limits = [cell for row in answer.table()[1:] for cell in row[1:] if cell.startswith("below")]
    assert limits
    assert f"{len(limits)} of 6 means and standard deviations" in section_module._kept(answer)
    without = replace(answer, deviation_below=np.zeros(3), standard_deviation_noise=np.full(3, 1e-9))
    assert "of 6 means and standard deviations" not in section_module._kept(without)


def test_upper_limits_stand_in_columns_of_numbers() -> None:
    rows = [("feature", "sd", "of"), ("a", "1.0", "below"), ("b", "below 6,700", "x"), ("c", "~below 3", "y")]
    assert page_module.PageTable.of("sizes", rows).number_columns == (False, True, False)
