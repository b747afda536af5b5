"""Public tables: bundled or fetched safely, cleaned correctly, described by public knowledge."""

import doctest
import hashlib
import http.client
import http.server
import os
import re
import threading
import tomllib
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from benchmarks.papers import datasets as papers_datasets
from scipy import stats
from tools import bundle_datasets

from dpmoments import datasets
from dpmoments import datasets as tables
from dpmoments.datasets import Dataset
from dpmoments.schema import Boolean, Categorical, Numeric, Schema
from support.said import refused

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
# The real files, where the machine has them: the folder named by the variable when the tests start.
REAL_FOLDER = os.environ.get(papers_datasets._FOLDER_VARIABLE, "")
URLOPEN = urllib.request.urlopen


def real(*names: str) -> pytest.MarkDecorator:
    present = bool(REAL_FOLDER) and all((Path(REAL_FOLDER) / name).is_file() for name in names)
    return pytest.mark.skipif(not present, reason=f"needs {names} in the folder {papers_datasets._FOLDER_VARIABLE}")


@pytest.fixture(autouse=True)
def _isolated(monkeypatch, tmp_path):
    """An empty cache, no chosen folder, and a network that no test reaches by accident."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(papers_datasets._FOLDER_VARIABLE, raising=False)

    def refuse(url, timeout):
        raise AssertionError(f"a test tried to reach {url} (timeout {timeout})")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)


@pytest.fixture
def real_files(monkeypatch):
    monkeypatch.setenv(papers_datasets._FOLDER_VARIABLE, REAL_FOLDER)


POPRES = (papers_datasets._COMPONENTS, papers_datasets._EIGENVALUES, papers_datasets._COLORS)


# ---- the tables ----


def check_described(data: Dataset) -> None:
    """Frame and schema agree, every cell is within the public bounds and levels, nothing needs stripping."""
    assert data.frame.column_names == [column.name for column in data.schema.columns]
    assert data.target is None or data.target in data.frame.column_names
    for column in data.schema.columns:
        cells = data.frame[column.name].drop_null()
        if isinstance(column, Numeric):
            low, high = pc.min_max(cells).as_py().values()
            assert column.lower <= low <= high <= column.upper, column.name
        elif isinstance(column, Categorical):
            assert set(cells.unique().to_pylist()) <= set(column.levels), column.name
            assert cells.to_pylist() == [cell.strip() for cell in cells.to_pylist()]
        else:
            assert isinstance(column, Boolean)
            assert cells.type == pa.bool_()


def test_wine():
    data = datasets.wine()
    assert data.frame.shape == (178, 13)
    assert data.target is None
    check_described(data)
    assert data.frame["alcohol"][0].as_py() == 14.23
    assert data.frame["proline"][177].as_py() == 560.0


def test_adult():
    data = datasets.adult("train")
    assert data.frame.shape == (30_162, 15)
    assert all(column.null_count == 0 for column in data.frame.columns)
    check_described(data)
    first = data.frame.slice(0, 1).to_pylist()[0]
    assert first == {
        "age": 39, "workclass": "State-gov", "fnlwgt": 77516, "education": "Bachelors", "education-num": 13,
        "marital-status": "Never-married", "occupation": "Adm-clerical", "relationship": "Not-in-family",
        "race": "White", "sex": "Male", "capital-gain": 2174, "capital-loss": 0, "hours-per-week": 40,
        "native-country": "United-States", "income": False,
    }  # fmt: skip
    assert pc.sum(data.frame["income"]).as_py() == 7_508  # complete training rows above 50K
    assert "CC BY 4.0" in data.source


def test_the_bundle_carries_its_attributions():
    text = (Path(datasets.__file__).parent / "rows" / "data" / "ATTRIBUTION.txt").read_text()
    notice = (ROOT / "NOTICE").read_text()
    for data in (datasets.adult(), datasets.airfoil()):
        (doi,) = re.findall(r"doi:(\S+),", data.source)
        assert "CC BY 4.0" in data.source
        for told in (text, notice):
            assert f"https://doi.org/{doi}" in told
            assert "(CC BY 4.0)" in told
    for checksum in bundle_datasets.PUBLISHED.values():
        assert checksum in text


TINY_TRAIN = (
    b"39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, "
    b"40, United-States, <=50K\n"
    b"54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, Male, 0, 0, "
    b"60, ?, >50K\n\n"
)
TINY_TEST = (
    b"|1x3 Cross validator\n"
    b"25, Private, 226802, 11th, 7, Never-married, Machine-op-inspct, Own-child, Black, Male, 0, 0, 40, "
    b"United-States, <=50K.\n"
    b"44, Private, 160323, Some-college, 10, Married-civ-spouse, Machine-op-inspct, Husband, Black, Male, "
    b"7688, 0, 40, Trinadad&Tobago, >50K.\n\n"
)


@pytest.fixture
def tiny_adult(monkeypatch):
    train, test = bundle_datasets.read_adult(TINY_TRAIN), bundle_datasets.read_adult(TINY_TEST)
    monkeypatch.setattr(tables, "_bundled", lambda *_: pa.concat_tables([train, test]))
    monkeypatch.setattr(tables, "_N_ADULT_TRAIN", train.num_rows)


@real(*bundle_datasets.PUBLISHED)
def test_the_bundle_equals_the_published_files(tmp_path):
    content = {name: bundle_datasets.published(Path(REAL_FOLDER), name) for name in bundle_datasets.PUBLISHED}
    rows = [bundle_datasets.read_adult(content[name]) for name in ("adult.data", "adult.test")]
    assert datasets.adult(complete=False).frame.equals(pa.concat_tables(rows))
    assert datasets.airfoil().frame.equals(bundle_datasets.read_airfoil(content["airfoil_self_noise.dat"]))
    (tmp_path / "adult.data").write_bytes(content["adult.data"].replace(b"39,", b"40,", 1))
    with pytest.raises(ValueError, match=r"not the published adult\.data"):
        bundle_datasets.published(tmp_path, "adult.data")


@pytest.mark.parametrize(
    ("subset", "complete", "n_rows"),
    [
        ("train", False, 32_561),
        ("test", True, 15_060),
        ("test", False, 16_281),
        ("all", True, 45_222),
        ("all", False, 48_842),
    ],
)
def test_adult_subsets(subset, complete, n_rows):
    data = datasets.adult(subset, complete=complete)
    assert data.frame.num_rows == n_rows
    check_described(data)
    missing = {name for name in data.frame.column_names if data.frame[name].null_count}
    assert missing == (set() if complete else {"workclass", "occupation", "native-country"})
    allowed = {column.name for column in data.schema.columns if getattr(column, "missing", None) == "zero"}
    assert missing <= allowed


def test_airfoil():
    data = datasets.airfoil()
    assert data.frame.shape == (1503, 6)
    check_described(data)
    assert data.frame.slice(0, 1).to_pylist()[0] == {
        "frequency": 800.0, "angle_of_attack": 0.0, "chord_length": 0.3048, "free_stream_velocity": 71.3,
        "suction_side_displacement_thickness": 0.00266337, "sound_pressure_level": 126.201,
    }  # fmt: skip
    assert papers_datasets.standardized_unit_rows(data).shape == (1503, 5)
    assert papers_datasets.standardized_unit_rows(data, include_target=True).shape == (1503, 6)


# ---- genetic components ----


class Publisher(http.server.BaseHTTPRequestHandler):
    """Serves ``answers``; under a name ending in "cut" half of what its header promises."""

    answers: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        cut = self.path.endswith("cut")
        content = self.answers.get(self.path.removesuffix("cut"))
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)

    def log_message(self, *_) -> None:
        """Say nothing."""


N_PEOPLE = 9


def made_up_people() -> dict[str, bytes]:
    """Random numbers in the form of the three files, the colors in another order than the components."""
    rng = np.random.default_rng(5)
    lines = ["           #eigvals " + " ".join(["1.000"] * 20)]
    for person, row in enumerate(rng.normal(size=(N_PEOPLE, 20))):
        lines.append(f"  {person} {person} " + " ".join(f"{cell:10.4f}" for cell in row) + "   Control")
    values = np.sort(rng.random(N_PEOPLE + 20))[::-1]
    return {
        "popres.eigs": "\n".join(lines).encode() + b"\n",
        "popres.eval": "\n".join(f"  {value:.6f}" for value in values).encode() + b"\n",
        "popres_color.txt": "\n".join(f"{person} shade{person}" for person in reversed(range(N_PEOPLE))).encode(),
    }


@pytest.fixture
def publisher(monkeypatch):
    """A server on this machine with made-up files, which the sources name; and the real urlopen."""
    Publisher.answers = {f"/{name}": content for name, content in made_up_people().items()}
    monkeypatch.setattr(urllib.request, "urlopen", URLOPEN)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Publisher) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for attribute, source in zip(("_COMPONENTS", "_EIGENVALUES", "_COLORS"), POPRES, strict=True):
            there = f"http://127.0.0.1:{server.server_port}/{source.name}"
            content = hashlib.md5(Publisher.answers[f"/{source.name}"]).hexdigest()
            monkeypatch.setattr(papers_datasets, attribute, replace(source, url=there, md5=content))
        yield monkeypatch
        server.shutdown()


@pytest.mark.usefixtures("publisher")
def test_genetic_components_are_fetched_once_and_kept_in_the_users_cache(tmp_path):
    people = papers_datasets.popres()
    expected = np.random.default_rng(5).normal(size=(N_PEOPLE, 20)).round(4)
    np.testing.assert_array_equal(people.components, expected)
    assert people.eigenvalues.shape == (20,)
    assert (np.diff(people.eigenvalues) < 0).all()
    assert people.colors == tuple(f"shade{person}" for person in range(N_PEOPLE))
    assert "shade" not in repr(people)
    folder = tmp_path / "cache" / "dpmoments"
    assert sorted(path.name for path in folder.iterdir()) == ["popres.eigs", "popres.eval", "popres_color.txt"]
    Publisher.answers = {}  # the publisher has gone
    np.testing.assert_array_equal(papers_datasets.popres().components, expected)
    (folder / "popres.eval").write_bytes(b"1.0\n")
    with refused("; remove it, or put the published file in its place"):
        papers_datasets.popres()


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ("gone", OSError, "by other means and save it as"),
        ("changed", ValueError, "; nothing was stored; try again later, or save the"),
        ("cut", OSError, "by other means and save it as"),
        ("closed", OSError, "by other means and save it as"),
    ],
)
def test_what_is_wrong_with_a_fetched_file_is_said(publisher, tmp_path, fault, error, words):
    source = papers_datasets._COMPONENTS
    if fault == "gone":
        Publisher.answers = {}
    elif fault == "changed":
        Publisher.answers["/popres.eigs"] += b"one line more\n"
    else:
        url = f"{source.url}cut" if fault == "cut" else "http://127.0.0.1:9/popres.eigs"  # nobody listens at port 9
        publisher.setattr(papers_datasets, "_COMPONENTS", replace(source, url=url))
    with refused(words, error):
        papers_datasets.popres()
    assert not (tmp_path / "cache").exists()


@real(*(source.name for source in POPRES))
@pytest.mark.usefixtures("real_files")
def test_genetic_components_of_1387_europeans():
    people = papers_datasets.popres()
    assert people.components.shape == (1387, 20)
    assert len(people.colors) == 1387
    # Four digits of each cell are printed, so that squared norms are 1 to a few parts in ten thousand.
    np.testing.assert_allclose((people.components**2).sum(axis=0), 1.0, atol=2e-4)
    products = people.components.T @ people.components
    np.testing.assert_allclose(products - np.diag(np.diag(products)), 0.0, atol=2e-4)
    assert (np.diff(people.eigenvalues) < 0).all()


BUNDLED = {"ATTRIBUTION.txt", "adult.parquet", "adult.yaml", "airfoil.parquet", "airfoil.yaml", "wine.yaml"}


def test_no_genetic_component_is_bundled():
    """No file of the tree, packed or not, holds a line of it; the wheel is src/dpmoments, where these files alone are data."""
    package = ROOT / "src" / "dpmoments"
    data = package / "rows" / "data"
    assert {path.name for path in data.iterdir()} == BUNDLED
    # Everyone who installs the library downloads them.
    assert sum(path.stat().st_size for path in data.iterdir()) < 400_000
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert build["targets"]["wheel"] == {"packages": ["src/dpmoments"]}
    checksums = {source.md5 for source in POPRES}
    for folder in ("src", "tests", "benchmarks", "docs", "examples", "tools"):
        for path in (ROOT / folder).rglob("*"):
            if not path.is_file() or path.suffix == ".pyc":
                continue
            content = path.read_bytes()
            assert hashlib.md5(content).hexdigest() not in checksums, path
            assert not LINE_OF_COMPONENTS.search(content), path


# A person, again, and twenty numbers of four decimals.
LINE_OF_COMPONENTS = re.compile(rb"(?m)^\s*(\d+)\s+\1(\s+-?\d\.\d{4}){20}")


# ---- preprocessing ----


def reference_unit_rows(data: Dataset, include_target: bool, unknown: bool = False) -> np.ndarray:
    """The same by pure Python loops over the rows: slow and obvious."""
    encoded = []
    for row in data.frame.to_pylist():
        features = []
        for column in data.schema.columns:
            if column.name == data.target and not include_target:
                continue
            if isinstance(column, Numeric):
                features.append(float(row[column.name]))
            else:
                levels = column.levels if isinstance(column, Categorical) else (False, True)
                levels = (*levels, None) if unknown else levels
                features += [1.0 if row[column.name] == level else 0.0 for level in levels]
        encoded.append(features)
    columns = []
    for values in zip(*encoded, strict=True):
        mean = sum(values) / len(values)
        deviation = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
        if min(values) < max(values):
            columns.append([(value - mean) / deviation for value in values])
    rows = []
    for values in zip(*columns, strict=True):
        norm = sum(value * value for value in values) ** 0.5
        rows.append([value / norm for value in values])
    return np.array(rows)


@pytest.mark.parametrize("include_target", [False, True])
def test_unit_rows_match_the_reference(include_target):
    people = datasets.adult()
    small = replace(people, frame=people.frame.slice(0, 300))
    rows = papers_datasets.standardized_unit_rows(small, include_target=include_target)
    np.testing.assert_allclose(rows, reference_unit_rows(small, include_target), rtol=0, atol=1e-12)


# Numeric features and levels of each column of Adult, "?" among the levels, as the 108 features of Amin et al. add up.
LEVELS_IN_THE_PAPER = {
    "workclass": 9, "education": 16, "marital-status": 7, "occupation": 15, "relationship": 6, "race": 5, "sex": 2,
    "native-country": 42,
}  # fmt: skip
NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")


def test_the_papers_108_features_are_the_codebooks_levels_and_unknown():
    schema, unknown = datasets.adult().schema, ("workclass", "occupation", "native-country")
    columns = [column for column in schema.columns if column.name != "income"]
    assert tuple(column.name for column in columns if isinstance(column, Numeric)) == NUMERIC
    levels = {column.name: len(column.levels) for column in columns if isinstance(column, Categorical)}
    assert levels == {name: count - (name in unknown) for name, count in LEVELS_IN_THE_PAPER.items()}
    assert len(NUMERIC) + sum(LEVELS_IN_THE_PAPER.values()) == 108


@pytest.mark.usefixtures("tiny_adult")
@pytest.mark.parametrize("include_target", [False, True])
def test_unknown_as_a_level_matches_the_reference(include_target):
    everything = datasets.adult("all", complete=False)
    rows = papers_datasets.standardized_unit_rows(everything, include_target=include_target, unknown_is_a_level=True)
    np.testing.assert_allclose(rows, reference_unit_rows(everything, include_target, unknown=True), rtol=0, atol=1e-12)
    # Six numeric columns less the losses, which are all 0; of the others the levels that occur, "?" among them; one sex.
    assert rows.shape[1] == 5 + (3 + 3 + 2 + 3 + 3 + 3 + 0 + 3) + 2 * include_target
    with refused("has missing values: load the complete rows, or pass", column="workclass"):
        papers_datasets.standardized_unit_rows(everything)


def test_adult_as_amin_et_al_have_it():
    people = datasets.adult(complete=False)
    rows = papers_datasets.standardized_unit_rows(people, unknown_is_a_level=True)
    assert rows.shape == (48_842, 108)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-12)
    assert papers_datasets.standardized_unit_rows(people, unknown_is_a_level=True, include_target=True).shape[1] == 110
    start = 0
    for column in people.schema.columns[:-1]:
        width = LEVELS_IN_THE_PAPER.get(column.name, 1)
        block, start = rows[:, start : start + width], start + width
        if isinstance(column, Categorical):  # an indicator lies above its mean where it is 1, and there alone
            assert ((block > 0).sum(axis=1) == 1).all()
            assert int((block[:, len(column.levels) :] > 0).sum()) == people.frame[column.name].null_count
    assert start == 108


def reference_replication_rows(data: Dataset, standardize: bool) -> np.ndarray:
    """pandas and scikit-learn, as the replication's program does it."""
    import pandas as pd
    from sklearn.preprocessing import StandardScaler

    columns = [column for column in data.schema.columns if column.name != data.target]
    frame = data.frame.to_pandas()[[column.name for column in columns]]
    numeric = [column.name for column in columns if isinstance(column, Numeric)]
    others = [column for column in columns if isinstance(column, Categorical)]
    for column in others:
        frame[column.name] = pd.Categorical(frame[column.name], categories=sorted(column.levels))
    numbers = frame[numeric].astype(float)
    if standardize:
        numbers[numeric] = StandardScaler().fit_transform(numbers)
    names = [column.name for column in others]
    dummies = pd.get_dummies(frame[names], drop_first=True) if others else pd.DataFrame(index=frame.index)
    rows = pd.concat([numbers, dummies], axis=1).to_numpy().astype(np.float64)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)


@pytest.mark.slow
def test_replication_rows_match_the_replications_program():
    people = datasets.adult()
    rows = papers_datasets.replication_rows(people, standardize=True)
    # 6 numeric; of the codebook's 8, 16, 7, 14, 6, 5, 2 and 41 levels all but the first.
    assert rows.shape == (45_222, 6 + 7 + 15 + 6 + 13 + 5 + 4 + 1 + 40) == (45_222, 97)
    np.testing.assert_allclose(rows, reference_replication_rows(people, True), rtol=0, atol=1e-12)
    never_worked = 6 + sorted(people.schema.columns[1].levels).index("Never-worked") - 1
    assert [j for j in range(97) if not rows[:, j].any()] == [never_worked]
    wine = papers_datasets.replication_rows(datasets.wine(), standardize=False)
    np.testing.assert_allclose(wine, reference_replication_rows(datasets.wine(), False), rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(wine, axis=1), 1.0, rtol=1e-12)


def test_replication_rows_leave_short_rows_as_they_are():
    schema = Schema(Numeric("value", -5, 5), Categorical("level", ["b", "a"]), Boolean("yes"))
    frame = pa.table({"value": [0.5, 3.0, 0.0], "level": ["a", "b", "a"], "yes": [False, True, False]})
    data = Dataset("three", frame, schema, "", "", target="yes")
    expected = [[0.5, 0.0], [3 / 10**0.5, 1 / 10**0.5], [0.0, 0.0]]
    np.testing.assert_allclose(papers_datasets.replication_rows(data, standardize=False), expected, rtol=1e-15)
    gap = replace(data, frame=frame.set_column(1, "level", pa.array(["a", None, "b"])))
    with refused("has missing values: load the complete rows, or pass", column="level"):
        papers_datasets.replication_rows(gap, standardize=False)


def test_airfoil_as_the_replication_has_it():
    rows = papers_datasets.replication_rows(datasets.airfoil(), standardize=False)
    assert rows.shape == (1503, 5)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-12)


# ---- the generator ----


def sphere_p_value(rows: np.ndarray, mixing: np.ndarray) -> float:
    """Test of the exact law: rows of ZU at norm 1, unmixed and scaled again, are uniform on the sphere.

    The square of the first coordinate of such a row is Beta(1/2, (d − 1)/2).
    """
    unmixed = rows @ np.linalg.inv(mixing)
    unmixed /= np.linalg.norm(unmixed, axis=1, keepdims=True)
    d = rows.shape[1]
    return float(stats.kstest(unmixed[:, 0] ** 2, stats.beta(0.5, (d - 1) / 2).cdf).pvalue)


def test_algorithm_3_has_its_exact_law_variance_1_included():
    """Standardized by the exact standard deviations of its features, ‖U_j‖, a row is ZU/‖U_j‖ on the sphere."""
    n_rows, d = 20_000, 6
    rows = papers_datasets.amin_synthetic(n_rows, d, np.random.default_rng(7))
    replay = np.random.default_rng(7)
    replay.standard_normal((n_rows, d))
    mixing = replay.random((d, d))
    assert sphere_p_value(rows, mixing / np.linalg.norm(mixing, axis=0)) > 0.01
    without_variance = papers_datasets.amin_synthetic(n_rows, d, np.random.default_rng(7), columns="centered")
    assert sphere_p_value(without_variance, mixing / np.linalg.norm(mixing, axis=0)) < 1e-6


@pytest.mark.parametrize("scaling", ["unit", "largest"])
@pytest.mark.parametrize("columns", ["standardized", "centered", "drawn"])
def test_synthetic_rows_match_the_reference(columns, scaling):
    n_rows, d = 50, 4
    rows = papers_datasets.amin_synthetic(n_rows, d, np.random.default_rng(3), columns=columns, scaling=scaling)
    rng = np.random.default_rng(3)
    normals, mixing = rng.standard_normal((n_rows, d)), rng.random((d, d))
    expected = np.array([[sum(z[k] * mixing[k, j] for k in range(d)) for j in range(d)] for z in normals])
    if columns != "drawn":
        expected = expected - expected.sum(axis=0) / n_rows
    if columns == "standardized":
        expected = expected / np.array([(sum(cell**2 for cell in column) / n_rows) ** 0.5 for column in expected.T])
        np.testing.assert_allclose(expected.var(axis=0), 1.0, rtol=1e-12)
        np.testing.assert_allclose(expected.mean(axis=0), 0.0, atol=1e-12)
    norms = [sum(value * value for value in row) ** 0.5 for row in expected]
    for row, norm in zip(expected, norms, strict=True):
        row /= norm if scaling == "unit" else max(norms)
    np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-12)
    assert np.linalg.norm(rows, axis=1).max() == pytest.approx(1.0, rel=1e-12)


def test_the_benchmarks_tables_are_algorithm_3():
    rows = papers_datasets.algorithm_3(300, 7)
    np.testing.assert_array_equal(rows, papers_datasets.amin_synthetic(300, 7, np.random.default_rng([300, 7])))


# ---------------------------------------------------------------------------------------------------------------------
# rows of heavy tails

HEAVY = {
    "Laplace": (papers_datasets.multivariate_laplace, stats.laplace(scale=0.5**0.5), 6.0),
    "Student": (
        lambda n, d, rng: papers_datasets.multivariate_student(n, d, rng, degrees=9.0), stats.t(9, scale=(7 / 9) ** 0.5), 4.2,
    ),
    "Student of 3 degrees": (papers_datasets.multivariate_student, stats.t(3, scale=(1 / 3) ** 0.5), None),
}  # fmt: skip
"""How rows are drawn; the law of a coordinate; its fourth moment, 3 + the excess kurtosis, where there is one."""


def norms_law(name, d):
    """The law of ‖x‖² by its definition: d·F(d, ν)·(ν − 2)/ν for t; of W·χ²_d by numerical integration over W."""
    if name != "Laplace":
        degrees = 9.0 if name == "Student" else 3.0
        return lambda squares: stats.f.cdf(squares / d * degrees / (degrees - 2.0), d, degrees)
    weights = -np.log(1.0 - (np.arange(2000) + 0.5) / 2000)  # midpoints of the exponential law's quantiles
    grid = np.geomspace(1e-5, 1e4, 500)
    below = stats.chi2.cdf(grid[:, None] / weights, d).mean(axis=1)
    return lambda squares: np.interp(squares, grid, below)


@pytest.mark.parametrize("name", HEAVY)
def test_rows_of_heavy_tails_have_their_exact_law(name):
    make, coordinate, fourth = HEAVY[name]
    n, d = 20_000, 5
    rows = make(n, d, np.random.default_rng(0))
    assert rows.shape == (n, d)
    # spherically symmetric: norms by their law, and directions uniform, so that every projection has a coordinate's law
    squares = (rows**2).sum(axis=1)
    law = norms_law(name, d)
    assert stats.kstest(squares, law).pvalue > 1e-3
    assert stats.kstest(1.1 * squares, law).pvalue < 1e-6  # planted fault: the scale a twentieth too large
    unit = np.random.default_rng(2).normal(size=(2, d))
    for direction in (np.eye(d)[0], *(unit / np.linalg.norm(unit, axis=1, keepdims=True))):
        assert stats.kstest(rows @ direction, coordinate.cdf).pvalue > 1e-3
        of_directions = (rows / np.sqrt(squares)[:, None]) @ direction
        assert stats.kstest((of_directions + 1.0) / 2.0, stats.beta((d - 1) / 2, (d - 1) / 2).cdf).pvalue > 1e-3
    # coordinates of the same law that are independent, as the paper's code draws them, have other norms
    independent = coordinate.rvs((n, d), random_state=3)
    assert stats.kstest((independent**2).sum(axis=1), law).pvalue < 1e-6
    if fourth is not None:
        many = make(400_000, 2, np.random.default_rng(4))
        assert np.cov(many.T) == pytest.approx(np.eye(2), abs=0.01)
        assert (many**4).mean() == pytest.approx(fourth, rel=0.05)
        # E[x²y²] = E[x⁴]/3 for spherical symmetry; 1 for independent coordinates
        assert (many[:, 0] ** 2 * many[:, 1] ** 2).mean() == pytest.approx(fourth / 3.0, rel=0.05)


def test_every_source_is_https_with_an_md5():
    for source in POPRES:
        assert source.url.startswith("https://raw.githubusercontent.com/NovembreLab/Novembre_etal_2008_misc/")
        assert len(source.md5) == 32


def test_the_examples_of_the_papers_tables_are_true():
    assert doctest.testmod(papers_datasets).attempted > 5
    assert doctest.testmod(papers_datasets, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
