"""The figures of the papers: all declared, every method of each runs, a run that was broken off goes on, judgements can fail."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.pages import part_of
from benchmarks.papers.reproduce import runner
from benchmarks.papers.reproduce.claims import never_above, slopes_near, spread_of, together, within_factor
from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Method, Outcome, Panel, Verdict
from benchmarks.papers.reproduce.experiments.covariances import released_covariance
from benchmarks.papers.reproduce.experiments.means import released_mean
from benchmarks.papers.reproduce.experiments.ridge import ridge_of_every_target
from benchmarks.papers.reproduce.experiments.second_moments import SIDES, taken
from benchmarks.papers.reproduce.experiments.tables import summed
from benchmarks.papers.reproduce.figures import BESIDE, FIGURES, named
from benchmarks.papers.reproduce.figures.amin import AD, LAPLACE, NOTHING
from benchmarks.papers.reproduce.figures.beside_amin import ROWS
from benchmarks.papers.reproduce.figures.coinpress import RHOS
from benchmarks.papers.reproduce.page import IMAGES, PAGES, Page, counted, factor_of, heading, read_results, write
from benchmarks.papers.reproduce.plotter import labelled
from benchmarks.papers.reproduce.results import FACTS, Results
from benchmarks.papers.reproduce.runner import Store, Task, carried_out, tasks

from support.network import NetworkReachedError

OF_THE_PAPERS = {
    "amin": ("1a", "1b", "2a", "2b", "3", "4", "5"),
    "replication": ("1", "2", "3"),
    "sheffet": ("1", "2", "3", "4", "5", "6"),
    "coinpress": ("1", "3", "4", "5", "6", "7", "8"),
}


ALL = (*FIGURES, *BESIDE)


def test_every_figure_is_declared() -> None:
    assert [figure.name for figure in FIGURES] == [
        f"{paper}-{number}" for paper, numbers in OF_THE_PAPERS.items() for number in numbers
    ]
    assert all(figure.name.startswith("beside-") and not figure.number for figure in BESIDE)
    by_name = {figure.name: figure for figure in ALL}
    assert len(by_name) == len(ALL)
    for figure in ALL:
        assert figure.claims, figure.name
        assert figure.methods or figure.borrowed, figure.name
        assert len({panel.title for panel in figure.panels}) == len(figure.panels)
        own, panels = [method.label for method in figure.methods], {panel.title for panel in figure.panels}
        borrowed = [label for labels in figure.borrowed.values() for label in labels]
        labels = own + borrowed
        assert len(set(own)) == len(own), figure.name
        assert len(set(borrowed)) == len(borrowed), figure.name
        for name, wanted in figure.borrowed.items():
            lender = by_name[name]
            lent = {panel.title for panel in lender.panels}
            assert set(wanted) <= {method.label for method in lender.methods}, figure.name
            # Drawn beside its own methods, or compared with its own panels: no curve comes from two figures.
            assert (panels <= lent and not set(wanted) & set(own)) or not panels & lent, figure.name
        for instead in figure.instead:
            assert {instead.of, instead.use} <= set(labels), figure.name
        assert all(panel.quick for panel in figure.panels), figure.name
    assert (len(by_name["coinpress-4"].panels[1].points), by_name["coinpress-4"].panels[1].settings["d"]) == (5, 500)


def smallest(figure: Figure) -> list[Task]:
    """One trial of the cheapest point of two kinds of panel, none of them with a hundred features or more."""
    chosen = []
    for panel in figure.panels:
        settings = panel.settings
        if (
            settings.get("d", 0) >= 100
            or settings.get("table", "").startswith("adult")
            or settings.get("n", 0) > 10_000
        ):
            continue
        if settings.get("varies") == "d":
            panel = replace(panel, points=(2.0,), quick=())
        x = min(panel.points)
        chosen.append((panel, max(panel.points) if figure.axis == "ε" else x))
    kinds = {json.dumps({**panel.settings, "table": ""}, sort_keys=True): (panel, x) for panel, x in chosen[::-1]}
    tiny = replace(
        figure, trials=1, quick_trials=1, methods=tuple(replace(method, most_trials=1) for method in figure.methods)
    )
    small = tuple(replace(panel, points=(x,), quick=(x,)) for panel, x in list(kinds.values())[:2])
    return tasks([replace(tiny, panels=small)], set(), quick=True)


@contextmanager
def skipped_without_popres() -> Iterator[None]:
    """Skip the test if it needs POPRES, the one table that cannot be bundled, and this machine lacks it."""
    try:
        yield
    except NetworkReachedError as error:
        if "raw.githubusercontent.com" not in str(error):
            raise
        pytest.skip(
            "the files of POPRES are in no folder named by DPMOMENTS_DATA, and may not be part of this repository"
        )


@pytest.mark.long(sets=6)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("figure", [figure for figure in ALL if figure.methods], ids=lambda figure: figure.name)
def test_every_method_of_a_figure_runs(figure: Figure) -> None:
    small = dict(figure.panels[0].settings) | {"table": "airfoil, replication"}  # where all tables are large
    asked = smallest(figure) or smallest(replace(figure, panels=(replace(figure.panels[0], settings=small),)))
    assert asked
    for task in asked:
        with skipped_without_popres():
            rows = carried_out(task)
        assert {row["method"] for row in rows} == {method.label for method in figure.methods}
        assert all(np.isfinite(row["value"]) for row in rows)
        assert len({(row["method"], row["metric"]) for row in rows}) == len(rows)


TINY = Figure(
    name="tiny",
    number="0",
    title="for tests",
    experiment="second_moments",
    axis="ε",
    error="error",
    panels=(Panel("one", {"table": "algorithm 3", "n": 60, "d": 3}, (0.5, 1.0, 2.0), (0.5, 2.0)),),
    methods=(
        Method("L", {"mechanism": "laplace", "options": {"calibration": "paper"}}),
        Method("matrix", {"mechanism": "matrix-laplace"}, most_trials=4),
    ),
    trials=7,
    quick_trials=2,
    block=3,
)


def measured(store: Store) -> list[tuple[Any, ...]]:
    """All but circumstances."""
    names = ["panel", "method", "metric", "x", "trial", "seed", "value"]
    table = store.read(TINY).sort_values(names)
    assert set(FACTS) <= set(table)
    return list(table[names].itertuples(index=False, name=None))


def test_a_run_that_was_killed_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, broken = Store(tmp_path / "whole"), Store(tmp_path / "broken")
    count = runner.run([TINY], whole, quick=False, workers=1)
    expected = measured(whole)
    assert len(expected) == 3 * (7 + 4)
    assert len({seed for *_, seed, _ in expected}) == len(expected)
    assert runner.run([TINY], whole, quick=False, workers=1) == 0

    done = 0

    def killed(task: Task) -> list[dict[str, Any]]:
        nonlocal done
        if done == 4:
            raise KeyboardInterrupt
        done += 1
        return carried_out(task)

    monkeypatch.setattr(runner, "carried_out", killed)
    with pytest.raises(KeyboardInterrupt):
        runner.run([TINY], broken, quick=False, workers=1)
    (broken.parts(TINY) / ".half.1").write_bytes(b"half a file")
    monkeypatch.undo()
    assert runner.run([TINY], broken, quick=False, workers=1) == count - 4
    assert measured(broken) == expected


def of_a_part(
    figure: Figure, xs: Mapping[str, Sequence[float]], trials: int, methods: Sequence[Method] = ()
) -> Results:
    """Some points of some panels, run here."""
    panels = tuple(
        replace(panel, points=xs[panel.title], quick=xs[panel.title]) for panel in figure.panels if panel.title in xs
    )
    part = replace(
        figure,
        panels=panels,
        trials=trials,
        quick_trials=trials,
        borrowed={},
        methods=tuple(replace(method, most_trials=None) for method in (*figure.methods, *methods)),
    )
    values: dict[tuple[str, str, str], dict[float, list[float]]] = {}
    for task in tasks([part], set(), quick=True):
        for row in carried_out(task):
            key = row["panel"], row["method"], row["metric"]
            values.setdefault(key, {}).setdefault(row["x"], []).append(row["value"])
    arrays = {key: {x: np.array(found) for x, found in points.items()} for key, points in values.items()}
    return Results(part, arrays, {})


@pytest.mark.long(sets=2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("figure", "xs", "trials", "methods", "verdicts"),
    [
        ("amin-1a", {"Airfoil": (0.1, 0.5, 1.0, 4.0)}, 5, (), {0: Verdict.CHANGED}),
        ("amin-1b", {"Airfoil": (0.1, 0.5, 1.0, 4.0)}, 5, (AD, NOTHING), {0: Verdict.INCOMPARABLE}),
        ("amin-2a", {"d = 10, n = 1,000": (0.1, 1.0), "d = 10, n = 50,000": (0.1, 1.0)}, 4, (), {0: Verdict.CHANGED}),
        ("amin-3", {"d = 10, n = 1,000": (0.1, 4.0)}, 5, (), {1: Verdict.REPRODUCED}),
        ("amin-4", {"d = 10, n = 10,000": (0.1, 4.0)}, 5, (), {0: Verdict.REPRODUCED}),
        ("amin-5", {"Airfoil": (0.1, 4.0)}, 5, (), {1: Verdict.REPRODUCED}),
        ("coinpress-1", {"n = 160, ρ = 0.1": (160.0,)}, 20, (), {0: Verdict.REPRODUCED}),
        ("replication-3", {"Airfoil": (0.1, 0.5, 4.0)}, 5, (), {0: Verdict.FAILS, 1: Verdict.REPRODUCED}),
        (
            "coinpress-6",
            {"isotropic, over n": (3000.0,), "skewed, over n": (3000.0,)},
            4,
            (),
            {1: Verdict.REPRODUCED, 2: Verdict.REPRODUCED, 3: Verdict.REPRODUCED, 4: Verdict.REPRODUCED},
        ),
        ("coinpress-7", {"isotropic": (RHOS[3], RHOS[-1])}, 4, (), {1: Verdict.REPRODUCED}),
        pytest.param(
            *("sheffet-5", {"k = 9": (2.0**14, 2.0**16)}, 3, ()),
            {8: Verdict.REPRODUCED, 9: Verdict.REPRODUCED},
            marks=pytest.mark.slow,  # tables of 2¹⁶ rows
        ),
        ("beside-amin-calibrations", {"Airfoil": (0.1, 1.0, 4.0)}, 6, (AD, LAPLACE, NOTHING), {2: Verdict.REPRODUCED}),
        ("beside-amin-rates", {"ε = 1": ROWS[3:6]}, 10, (), {0: Verdict.REPRODUCED, 1: Verdict.REPRODUCED}),
        (
            "beside-amin-dimensions",
            {"ε = 0.1": (5.0, 10.0, 20.0), "ε = 1": (5.0, 10.0, 20.0)},
            4,
            (),
            {0: Verdict.REPRODUCED},
        ),
        (
            "beside-amin-regimes",
            {"Airfoil, δ = 1e-10": (0.01, 0.1, 1.0)},
            6,
            (),
            {2: Verdict.REPRODUCED, 4: Verdict.FAILS},
        ),
        ("beside-sheffet-collinear", {"ten features, ε = 0.5": (2.0**14, 2.0**16)}, 9, (), {6: Verdict.REPRODUCED}),
    ],
)
def test_parts_of_figures_show_what_the_page_says(
    figure: str,
    xs: Mapping[str, Sequence[float]],
    trials: int,
    methods: Sequence[Method],
    verdicts: Mapping[int, Verdict],
) -> None:
    chosen = named(figure)
    with skipped_without_popres():
        found = of_a_part(chosen, xs, trials, methods)
    for place, verdict in verdicts.items():
        outcome = chosen.claims[place].judge(found)
        assert outcome is not None
        assert outcome.verdict is verdict, (chosen.claims[place].says, outcome.found)


def results(**errors: float) -> Results:
    """Ten trials of each method about the given error, at three points."""
    rng = np.random.default_rng(0)
    figure = replace(TINY, methods=tuple(Method(name) for name in errors), trials=10)
    values = {
        ("one", name, "error"): {x: error * rng.uniform(0.95, 1.05, 10) for x in (0.5, 1.0, 2.0)}
        for name, error in errors.items()
    }
    return Results(figure, values, {})


def test_judgements_find_a_planted_reversal() -> None:
    for ours, verdict in ((0.5, Verdict.REPRODUCED), (1.0, Verdict.REPRODUCED), (1.5, Verdict.FAILS)):
        assert never_above("A", "B")(results(A=ours, B=1.0)).verdict is verdict
    assert (
        never_above("A", "B", except_for=[("one", x) for x in (0.5, 1.0)])(results(A=2.0, B=1.0)).verdict
        is Verdict.FAILS
    )
    for ours, verdict in ((1.3, Verdict.REPRODUCED), (1.8, Verdict.CHANGED), (2.5, Verdict.FAILS)):
        assert within_factor("A", "B", 1.5, changed=2.0)(results(A=ours, B=1.0)).verdict is verdict
    for ours, verdict in ((1.0, Verdict.REPRODUCED), (1.2, Verdict.CHANGED), (2.0, Verdict.FAILS)):
        assert spread_of(["A", "B"], panels=["one"], limit=1.15, changed=1.5)(results(A=ours, B=1.0)).verdict is verdict
    for power, verdict in ((0.0, Verdict.REPRODUCED), (0.3, Verdict.CHANGED), (1.0, Verdict.FAILS)):
        assert slopes_near(power, ("A",), within=0.1, changed=0.5)(results(A=1.0)).verdict is verdict
    better, worse = never_above("A", "B"), never_above("B", "A")
    assert together(better, better)(results(A=0.5, B=1.0)).verdict is Verdict.REPRODUCED
    assert together(better, worse)(results(A=0.5, B=1.0)).verdict is Verdict.FAILS
    one_cell = results(A=0.5, B=1.0, C=1.0, D=1.0, E=1.0)
    one_cell.points["one", "E", "error"][1.0] *= 0.2
    assert never_above("A", "D", "E")(one_cell).verdict is Verdict.CHANGED  # 1 of 6
    one_cell.points["one", "E", "error"][0.5] *= 0.2
    assert never_above("A", "E")(one_cell).verdict is Verdict.FAILS  # 2 of 3
    assert never_above("A", "D", "E")(one_cell).verdict is Verdict.CHANGED  # 2 of 6
    one_cell.points["one", "E", "error"][2.0] *= 0.2
    assert never_above("A", "D", "E")(one_cell).verdict is Verdict.FAILS  # 3 of 6
    with pytest.raises(ValueError, match="nothing measured"):
        never_above("A", "Z")(results(A=1.0))
    assert factor_of(Instead("A", "B", ""), results(A=3.0, B=1.0)).startswith(("3 ", "2.9", "3.1"))


def test_a_refutation_needs_the_papers_settings_and_a_word_on_what_was_tried() -> None:
    against, for_it = results(A=2.0, B=1.0), results(A=0.5, B=1.0)
    plain = Claim("A is ahead", never_above("A", "B"))
    tried = replace(plain, needs="It would need another B. Tried: that.")
    lost = replace(plain, unknown="The settings are lost.")
    for claim in (plain, tried, lost):
        assert judged(claim, for_it).verdict is Verdict.REPRODUCED
    assert judged(plain, against).verdict is judged(tried, against).verdict is Verdict.FAILS
    assert judged(tried, against).found.endswith(". It would need another B. Tried: that.")
    assert judged(lost, against) == Outcome(
        Verdict.INCOMPARABLE, f"{judged(plain, against).found}. The settings are lost."
    )
    of_the_figure = Results(replace(against.figure, unknown="Lost."), against.points, {})
    assert judged(plain, of_the_figure).verdict is Verdict.INCOMPARABLE
    question = judged(replace(plain, ours=True), of_the_figure)
    assert (question.verdict, question.verdict.answer) == (Verdict.FAILS, "no")


def judged(claim: Claim, found: Results) -> Outcome:
    outcome = claim.judge(found)
    assert outcome is not None
    return outcome


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.stem)
def test_the_page_judges_by_the_declarations(page: Page) -> None:
    """Claims in their order, questions apart, no refutation without a word on what was tried or with settings that are lost."""
    text = page.path.read_text(encoding="utf-8")
    with page.findings.open(encoding="utf-8", newline="") as stream:
        findings = {(row["figure"], row["claim"]): (row["verdict"], row["found"]) for row in csv.DictReader(stream)}
    assert len(findings) == sum(len(figure.claims) for figure in page.figures)
    for figure in page.figures:
        assert (IMAGES / f"{figure.name}.png").is_file()
        assert f"### {heading(figure)}\n\n![Errors of {figure.name}]" in text
        section = part_of(page.path, figure.name)
        asked = [findings[figure.name, claim.says][0] for claim in figure.claims if claim.ours]
        assert not asked or counted("Our questions", asked) in section
        claimed = {claim.says: findings[figure.name, claim.says][0] for claim in figure.claims if not claim.ours}
        assert not claimed or counted("The paper's claims", [*claimed.values()]) in section
        for claim in figure.claims:
            judged_as, numbers = findings[figure.name, claim.says]
            words = ("yes", "in part", "no") if claim.ours else tuple(Verdict)
            assert judged_as in (*words, "not compared"), claim.says
            against = re.match(r"(\d+) of (\d+) cells against it", numbers)
            if against and judged_as != "not compared" and numbers.count("cells against it") == 1:
                by_the_rule = Outcome.by_share(int(against[1]), int(against[2]), "").verdict
                assert judged_as in (by_the_rule, by_the_rule.answer, Verdict.INCOMPARABLE), claim.says
            if judged_as == Verdict.FAILS:
                assert claim.needs, claim.says
                assert numbers.endswith(claim.needs), claim.says
                assert not claim.unknown, claim.says
                assert not figure.unknown, claim.says


def test_no_two_curves_of_a_picture_look_alike() -> None:
    for figure in ALL:
        methods = labelled(Results(figure, {}, {})) if figure.drawing != "balls" else ()
        styles = [(method.style.get("color"), method.style.get("ls", "-")) for method in methods]
        assert len(set(styles)) == len(styles), figure.name


def test_only_a_full_run_changes_a_page(tmp_path: Path) -> None:
    other = replace(TINY, name="other")
    page, store = Page(tmp_path / "page.md", (TINY, other)), Store(tmp_path)
    (tmp_path / "tables").mkdir()
    empty = "".join(
        f"<!-- {name}: begin -->\n<!-- {name}: end -->\n" for name in ("measured", "claims", "tiny", "other")
    )
    page.path.write_text(empty, encoding="utf-8")

    def written() -> str:
        write(page, {figure.name: read_results(figure, store) for figure in page.figures})
        return "".join(part_of(page.path, name) for name in ("measured", "tiny", "other"))

    runner.run([TINY], store, quick=True, workers=1)
    assert not written()
    runner.run([TINY], store, quick=False, workers=1)
    assert re.fullmatch(r"Mean of 4 to 7 trials a point. Measured 2.*, commit .*\.", written())
    runner.run([other], store, quick=False, workers=1)
    assert written().startswith("**A full run**")
    assert page.findings.read_text(encoding="utf-8") == "figure,claim,verdict,found\n"
    page.findings.write_text("figure,claim,verdict,found\ntiny,a,reproduced,b\n", encoding="utf-8")
    write(page, {figure.name: Results(figure, {}, {}) for figure in page.figures})
    assert part_of(page.path, "claims") == "**Claims**: 1 reproduced."


def test_the_rule_of_regimes_has_the_very_error_of_the_side_it_takes() -> None:
    figure = named("beside-amin-regimes")
    panel = next(panel for panel in figure.panels if panel.title == "d = 10, n = 1,000, δ = 1e-10")
    for x in (0.001, 4.0):
        (task,) = tasks(
            [replace(figure, panels=(replace(panel, points=(x,), quick=(x,)),), quick_trials=1)], set(), quick=True
        )
        found = {row["method"]: row["value"] for row in carried_out(task)}
        side = taken(summed("algorithm 3", 1000, 10), "largest eigenvalue", x, 1e-10)
        assert side is SIDES["iterative-eigenvectors" if x < 1.0 else "gaussian"]
        assert found["the rule, λ₁ of the table (not private)"] == found[side.label]
        assert len(set(found.values())) == len(found) - 2


def test_ridge_weights_of_every_target_from_one_inverse() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(50, 6))
    gram, alpha = table.T @ table, 3.0
    weights = ridge_of_every_target(gram, alpha)
    for target in range(6):
        others = [column for column in range(6) if column != target]
        block = gram[np.ix_(others, others)] + alpha * np.eye(5)
        np.testing.assert_allclose(weights[others, target], np.linalg.solve(block, gram[others, target]))


def test_the_released_programs_have_the_errors_that_are_told_of_them() -> None:
    """Five steps at n = 3,000, K = 10√10: both are right where Σ = I; where it is skewed and turned, the mended one alone."""
    rng, spread = np.random.default_rng(2), 10.0 * np.sqrt(10.0)
    q, _ = np.linalg.qr(rng.normal(size=(10, 10)))
    root = (q * np.sqrt(np.repeat([spread, 1.0], 5))) @ q.T
    rows = rng.normal(size=(3000, 10))

    def off(root: np.ndarray, *, mended: bool) -> float:
        found = released_covariance(rows @ root, spread, 0.5, 5, np.random.default_rng(3), mended=mended)
        back = np.linalg.inv(root)
        return float(np.linalg.norm(back @ found @ back - np.eye(10)))

    assert max(off(np.eye(10), mended=mended) for mended in (False, True)) < 0.6
    assert off(root, mended=True) < 0.4
    assert off(root, mended=False) > 1.0
    mean = released_mean(rows + 2.0, 100.0, 0.5, 4, np.random.default_rng(4))
    assert np.linalg.norm(mean - 2.0) < 0.15
