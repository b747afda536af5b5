"""The report of a release: what it says, to whom it refuses, and that no name out of a file does anything but stand there."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest
from markupsafe import Markup

import dpmoments as dpm
from dpmoments.analysis.confidence import holds_among_all
from dpmoments.cli import main
from dpmoments.cli.options import column_and_feature
from dpmoments.moments.cells import GaussianCells
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.terms import NoiseTerm
from dpmoments.reporting import page as page_module
from dpmoments.reporting import sections as section_module
from dpmoments.reporting.page import Picture
from dpmoments.reporting.report import _Asked, _Content, _describe_promise, _of_moments, _page
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


@cache
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


@pytest.mark.long
def test_names_out_of_a_file_do_nothing_but_stand_there(hostile: dpm.MomentRelease) -> None:
    unharmed(asked_of_hostile(hostile))


@pytest.mark.long
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


@pytest.mark.long
def test_a_page_says_what_was_released_how_noisy_it_is_and_what_it_cost() -> None:
    before, seeded = dict(mpl.rcParams), released()
    release = replace(seeded, privacy=replace(seeded.privacy, private=True))  # digits follow the noise, which is fixed
    source = _report_page(release, regressions=["income ~ age + C(region)"], groups=[("region", "income")])
    assert dict(mpl.rcParams) == before
    page = Page(source)
    assert page.faults() == []
    for line in release.privacy.describe().split("\n"):
        assert line.removeprefix("- ") in page.text
    described, (low, high) = release.describe(), release.describe().conf_int().T
    assert f"age {described.table()[1][1]} {low[0]:.2f} to {high[0]:.2f}" in page.text
    assert f"{100 * described.mean[2]:.2f} % {100 * low[2]:.2f} to {100 * high[2]:.2f} %" in page.text
    fit = release.ols("income ~ age + C(region)")
    for row in fit.table()[2:]:
        assert f"{'+' if row[1][0] != '-' else '−'}{row[1].lstrip('-')}" in page.text
    for mean in release.group_means("region", of=["income"]).table()[1:]:
        assert mean[4] in page.text
    for what, law, sensitivity, loss in release.receipt.lines():
        assert f"{what} {law} {sensitivity} {loss}".replace("  ", " ") in page.text
    for level in release.auditor_statement().levels:
        assert all(" ".join(words.split())[1:].rstrip(";.") in page.text for words in level.asked)
    power = 100.0 * release.privacy_curve.attacker_power(0.05)
    assert f"at most {power:.3g} times in 100" in page.text
    assert "NOT PRIVATE" not in page.text
    assert "Impossible values were corrected by the repair 'auto'; noise and intervals precede it." in page.text
    assert (page.tags["style"], page.tags["metadata"]) == (1, 0)  # none of a picture, which would be the page's
    shown = [attributes for tag, attributes in page.elements if tag == "svg" and "aria-hidden" not in attributes]
    assert len(shown) == 1
    assert all(attributes["role"] == "img" and len(attributes["aria-label"]) > 25 for attributes in shown)


@pytest.mark.usefixtures("undrawn")
def test_a_seeded_release_says_that_it_protects_nobody() -> None:
    release = released()
    assert "This release protects nobody" in _describe_promise(release)[0]
    said = Page(_report_page(release)).text
    assert "NOT PRIVATE. Made with an insecure seed" in said
    # a pair without a relation would stay "not clear (too few rows)" with any number of rows
    assert "more rows would" not in said


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_a_hopeless_release_is_one_sentence_and_one_number() -> None:
    release = released(60, epsilon=0.1)
    for summary in (False, True):
        source = _report_page(release, regressions=["income ~ age"], groups=[("region", "income")], summary=summary)
        page = Page(source)
        said = re.search(r"Nothing in this release is clear: .*? about ([\d,]+) rows at this budget\.", page.text)
        assert said
        assert 'class="chart"' not in source
        assert "Quote no number of it." in page.text


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
                "that a certain person is in it",
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
        "mean alone": (dpm.release_mean(x, ball, rho=0.1, **seed), {}, ("Only a mean was released", "95 % interval")),
        "groups": (
            dpm.release_groups(table, people, by="flag", epsilon=1.0, **seed),
            {"regressions": ["age ~ x"]},
            ("flag = True", "Regression: age ~ x"),
        ),
        "pooled": (dpm.pool(parts), {"groups": [("flag", "age")]}, ("2 releases pooled", "Groups: age by flag")),
        "no law": (
            dpm.release(x, ball, epsilon=1.0, delta=1e-6, mechanism=biased, **seed),
            {},
            ("Dots: noise",),
        ),
        "one feature": (
            dpm.release(x[:, :1], dpm.Schema.unit_ball(1), epsilon=1.0, **seed),
            {},
            ("The guarantee, exactly",),
        ),
    }


@pytest.mark.long
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
    path = tmp_path / "report.html"
    mean, no_count, pooled = (of_every_kind[kind][0] for kind in ("mean alone", "no count", "pooled"))
    refusals: list[tuple[Any, dict[str, Any], Said]] = [
        (mean, {"regressions": ["x0 ~ x1"]}, Said("regressions and group means need count, mean and")),
        (no_count, {"regressions": ["x0 ~ x1"]}, Said("regressions and group means need a number of rows")),
        (pooled, {"regressions": ["nobody ~ age"]}, Said("is not a column or feature of this release", term="nobody")),
        (pooled, {"groups": [("age", "x")]}, Said("Bands of numbers must be made", kind="numeric", name="age")),
        (pooled, {"level": 0.05}, Said("statsmodels' alpha is 1", level=0.05)),
        (pooled, {"regressions": "age ~ x"}, Said("regressions is a list of R formulas: regressions=['income ~")),
        (pooled, {"groups": ["flag:age"]}, Said("groups is a list of pairs, a column of levels and a")),
        ("people.json", {}, Said("a report needs a release or a forecast, got", got="str")),
    ]
    for subject, asked, said in refusals:
        with refused(said, (ValueError, TypeError)):
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


@pytest.mark.long
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
@pytest.mark.usefixtures("undrawn")
def test_the_page_on_reports_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of ``read-a-report.md``, and the page that ``forecast.md`` shows."""
    from tools.documentation.screenshots import FORECAST_PAGE, write_pages

    monkeypatch.chdir(tmp_path)
    write_pages()
    dpm.report(write_pages(FORECAST_PAGE)["table"], "plan.html")
    for name in ("report.html", "again.html", "plan.html"):
        assert Page((tmp_path / name).read_text(encoding="utf-8")).faults() == []
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == (tmp_path / "report.html").read_text(
        encoding="utf-8"
    )


def test_numbers_that_are_no_larger_than_their_noise_are_not_told() -> None:
    """Sums of squares without a count, and means by themselves: noise a little below, and a little above, what counts."""
    squares: Any = SimpleNamespace(
        noisy_count=None,
        gram=np.diag([10.0, 10.0]),
        noise=NoiseLaw((NoiseTerm(GaussianCells(), np.ones((3, 3))),)),
        encoding=SimpleNamespace(scale=np.sqrt([9.0, 11.0])),
        feature_names=("a", "b"),
    )
    rows = section_module.columns_section(squares, "", 0.95).tables[0].rows
    assert [[cell.text for cell in row] for row in rows] == [["a", "10", "9"], ["b", "noise", "11"]]
    means: Any = SimpleNamespace(
        schema=SimpleNamespace(row_norm=1.0, feature_bounds=(np.zeros(2), np.full(2, np.sqrt(12.0)))),
        standard_errors=np.array([0.9, 1.1]),
    )
    assert section_module.lost_means(means) == [1]


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


def _parts(content: _Content) -> list[Any]:
    every = [part for _, sections in content.chapters for part in sections]
    return [*every, *(inner for part in every for inner in part.parts)]


@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
def test_findings_of_a_page_are_by_one_correction_over_all_its_tables() -> None:
    release, asked = released(), _Asked(["income ~ age"], [("region", "income")])
    alone = section_module.Comparisons.of(release, asked.regressions, asked.groups, 0.95)
    content = _of_moments([("", "", release)], asked)
    [findings] = [part for part in _parts(content) if part.title == "Findings"]
    holds = holds_among_all(*alone.comparisons, 0.95)
    assert 0 < holds.sum() < len(holds)
    fits, pairs = holds[:1], holds[1 : len(alone.correlations.comparisons[0]) + 1]
    assert len(findings.findings) == fits.sum() + holds[len(pairs) + 1 :].sum()
    assert len(findings.charts[0].lines) == pairs.sum()
    weak = alone.with_cutoff(-1.0)
    assert not weak.fits[0].holds_among_all.any()
    assert (weak.fits[0].verdict, weak.correlations.verdict) == (alone.fits[0].verdict, alone.correlations.verdict)
    assert section_module.coefficient_findings(release, weak.fits[0]) == []
    assert section_module.difference_findings(release, weak.means[0]) == []
    page = Page(_report_page(release, regressions=asked.regressions, groups=asked.groups)).text
    places = [page.index(words) for words in (*findings.findings, "Circle: together", "Privacy, to sign This release")]
    assert places == sorted(places)


def test_the_strongest_finding_of_two_columns_is_the_first_line() -> None:
    """Also if it is far from having the most standard errors, and if pairs without a number are among the others."""
    release = released(20_000, epsilon=2.0)
    [findings] = [part for part in _parts(_of_moments([("", "", release)], _Asked())) if part.title == "Findings"]
    sizes = [abs(line.value) for line in findings.charts[0].lines]
    assert sizes == sorted(sizes, reverse=True)
    answer = release.correlations()
    held = np.where(answer.holds_among_all, np.abs(answer.correlation), 0.0)
    assert sizes[0] == held.max()


@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
def test_a_title_a_headline_and_descriptions_are_the_words_of_a_page(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    north = rng.random(5000) < 0.5
    table = pa.table({"h": 30.0 + 20.0 * north, "r": np.where(north, "n", "s"), "u": np.where(north, "y", "z")})
    schema = dpm.Schema(
        dpm.Numeric("h", 0, 99, description="hours a week"),
        dpm.Categorical("r", ["n", "s"], description="region"),
        dpm.Categorical("u", ["y", "z"]),
    )
    release = dpm.release(table, schema, epsilon=5.0, insecure_seed=0, dataset="people")
    dpm.report(
        release, tmp_path / "page.html", title="Hours <1994>", headline="The north works more", groups=[("r", "h")]
    )
    page = Page((tmp_path / "page.html").read_text()).text
    assert "Hours <1994>: what a release shows" in page
    assert "The north works more" in page
    assert "hours a week and region: n" in page
    assert "Mean of hours a week: region: n is higher than region: s" in page
    for wrong in (3, " "):
        with refused("must be", TypeError, parameter="headline"):
            dpm.report(release, tmp_path / "other.html", headline=wrong)  # type: ignore[arg-type]
    release.save(tmp_path / "people.json")
    given = ["--title", "Hours <1994>", "--headline", "The north works more", "--groups", "r:h"]
    assert main(["report", str(tmp_path / "people.json"), "-o", str(tmp_path / "again.html"), *given]) == 0
    assert (tmp_path / "again.html").read_text() == (tmp_path / "page.html").read_text()


@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
def test_a_summary_has_the_head_of_the_report_and_its_findings(tmp_path: Path) -> None:
    release = released()
    dpm.report(release, tmp_path / "all.html", groups=[("region", "income")])
    dpm.report(release, tmp_path / "summary.html", groups=[("region", "income")], summary=True)
    whole, summary = ((tmp_path / name).read_text() for name in ("all.html", "summary.html"))
    for anchor in ("findings", "limits"):
        assert f'id="{anchor}"' in whole
        assert f'id="{anchor}"' in summary
    assert summary.count('class="chart"') == 1
    assert "<figure" not in summary
    for anchor in ("privacy", "columns", "relations", "annex"):
        assert f'id="{anchor}"' in whole
        assert f'id="{anchor}"' not in summary
    head = [re.search(r'<ul class="findings">.*?</ul>', page, re.DOTALL) for page in (whole, summary)]
    assert head[0] is not None
    assert head[1] is not None
    assert head[0].group() == head[1].group()
    assert not set(re.findall(r'href="#([^"]+)"', summary)) - set(re.findall(r'id="([^"]+)"', summary))


@pytest.mark.slow
def test_adult_fits_its_pages() -> None:
    """A table of 15 columns: 2,600 words and 400 kB, and 350 words for those who decide."""
    people = dpm.datasets.adult()
    release = dpm.release(people.frame, people.schema, epsilon=1.0, neighbors="replace_one", insecure_seed=0)
    asked: dict[str, Any] = {
        "regressions": ["`hours-per-week` ~ age + `education-num` + C(sex) + income"],
        "groups": [("education", "hours-per-week"), ("sex", "hours-per-week")],
    }
    whole, summary = _report_page(release, **asked), _report_page(release, **asked, summary=True)
    assert len(whole) < 400_000
    assert len(Page(whole).text.split()) <= 2_600
    assert len(Page(summary).text.split()) <= 350


def test_shares_are_percent_and_rare_levels_are_named_below() -> None:
    rng = np.random.default_rng(0)
    kinds, places = [f"kind {i}" for i in range(24)], ["here", "there", "nowhere"]
    table = pa.table({"kind": rng.choice(kinds, 900), "place": rng.choice(places[:2], 900), "x": rng.random(900)})
    schema = dpm.Schema(dpm.Categorical("kind", kinds), dpm.Categorical("place", places), dpm.Numeric("x", 0, 1))
    release = dpm.release(table, schema, epsilon=1.0, insecure_seed=0)
    section = section_module.columns_section(release, "", 0.95)
    [shares, folded] = section.parts
    assert (folded.title, folded.folded) == ("kind: 24 levels", True)
    [chart] = shares.charts
    described = release.describe()
    for line in chart.lines:
        index = described.feature_names.index(f"place={line.name}")
        low, high = 100.0 * described.conf_int()[index]
        assert (line.value, line.lower, line.upper) == pytest.approx((100.0 * described.mean[index], low, high))
        assert float(line.number.rstrip(" %")) == pytest.approx(line.value, abs=0.06)
    assert {line.name for line in chart.lines} == {"here", "there"}
    assert chart.about[0].endswith(": nowhere.")
    below = float(re.match(r"Below ([\d.]+) %", chart.about[0])[1])  # type: ignore[index]
    assert below == pytest.approx(
        100.0 * described.conf_int()[described.feature_names.index("place=nowhere")][1], rel=0.06
    )


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
    assert 'id="annex"' not in page


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("level", [0.95, 0.99999])
def test_intervals_in_statements_have_the_signs_of_the_answers(level: float) -> None:
    """At a high level the interval of a clear finding can hold zero: its end on the other side is negative."""
    rng = np.random.default_rng(4)
    x = rng.uniform(0, 1, 2_000)
    table = pa.table({"x": x, "y": 0.5 - 0.085 * (x - 0.5) + rng.normal(0, 0.28, 2_000).clip(-0.5, 0.5)})
    schema = dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Numeric("y", 0, 1))
    release = dpm.release(table, schema, epsilon=50.0, insecure_seed=0)
    [fit] = section_module.Comparisons.of(release, ["y ~ x"], (), level).with_cutoff(1.0).fits
    [text] = section_module.coefficient_findings(release, fit)
    ends = re.search(r"interval (\S+) to (\S+)\)", text)
    assert ends
    low, high = (float(number.replace("−", "-")) for number in ends.groups())
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
    rows = [("feature", "sd", "of"), ("a", "1.0", "below"), ("b", "below 6,700", "x"), ("c", "~below 3", "y")]
    assert page_module.PageTable.of("sizes", rows).number_columns == (False, True, False)
