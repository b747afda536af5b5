"""Public tables: fetched safely, cleaned correctly, described by public knowledge."""

import hashlib
import http.client
import io
import os
import urllib.error
import urllib.request
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

from dpmoments import datasets
from dpmoments.datasets import files, tables
from dpmoments.datasets.files import PublishedFile
from dpmoments.schema import Boolean, Categorical, Numeric, Schema

CONTENT = b"a file\nof two lines\n"
FILE = PublishedFile("small.data", "https://archive.invalid/small.data", hashlib.md5(CONTENT).hexdigest())

# The real files, where the machine has them: the folder named by the variable when the tests start.
REAL_FOLDER = os.environ.get(files.FOLDER_VARIABLE, "")


def real(*names: str) -> pytest.MarkDecorator:
    present = bool(REAL_FOLDER) and all((Path(REAL_FOLDER) / name).is_file() for name in names)
    return pytest.mark.skipif(not present, reason=f"needs {names} in the folder {files.FOLDER_VARIABLE}")


@pytest.fixture(autouse=True)
def _isolated(monkeypatch, tmp_path):
    """An empty cache, no chosen folder, and a network that no test reaches by accident."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(files.FOLDER_VARIABLE, raising=False)

    def refuse(url, timeout):
        raise AssertionError(f"a test tried to reach {url} (timeout {timeout})")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)


@pytest.fixture
def real_files(monkeypatch):
    monkeypatch.setenv(files.FOLDER_VARIABLE, REAL_FOLDER)


class Network:
    """A stand-in for urlopen that answers with fixed bytes or an error and remembers what it was asked."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def __call__(self, url, timeout=None):
        self.asked.append((url, timeout))
        if isinstance(self.answer, Exception):
            raise self.answer
        return io.BytesIO(self.answer)


@pytest.fixture
def network(monkeypatch):
    def install(answer):
        fake = Network(answer)
        monkeypatch.setattr(urllib.request, "urlopen", fake)
        return fake

    return install


# ---- files ----


def test_a_download_is_checked_cached_and_not_repeated(network, tmp_path):
    fake = network(CONTENT)
    assert files.load(FILE) == CONTENT
    assert files.load(FILE) == CONTENT
    assert len(fake.asked) == 1
    url, timeout = fake.asked[0]
    assert url == FILE.url
    assert timeout > 0
    stored = [path.name for path in (tmp_path / "cache" / "dpmoments").iterdir()]
    assert stored == ["small.data"]  # and no temporary file left over


def test_the_chosen_folder_comes_before_the_cache(network, monkeypatch, tmp_path):
    network(CONTENT)
    files.load(FILE)
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    monkeypatch.setenv(files.FOLDER_VARIABLE, str(chosen))
    assert files.find_local(FILE) == CONTENT  # the folder lacks it, so the cache answers
    (chosen / FILE.name).write_bytes(b"other")
    with pytest.raises(ValueError, match="chosen"):  # now the folder is asked first, and its file is wrong
        files.find_local(FILE)
    (chosen / FILE.name).write_bytes(CONTENT)
    (tmp_path / "cache" / "dpmoments" / FILE.name).write_bytes(b"other")
    assert files.load(FILE) == CONTENT


def test_a_wrong_download_is_refused_and_not_stored(network, tmp_path):
    network(CONTENT + b"x")
    with pytest.raises(ValueError, match=r"not the published small.data: its md5 is .* nothing was stored"):
        files.load(FILE)
    assert not (tmp_path / "cache").exists()


def test_an_endless_download_stops_at_the_limit(network, monkeypatch):
    monkeypatch.setattr(files, "_LARGEST_DOWNLOAD", len(CONTENT) - 1)
    fake = network(CONTENT * 1000)
    with pytest.raises(ValueError, match="md5"):
        files.load(FILE)
    assert len(fake.asked) == 1


def test_a_wrong_cached_file_is_refused_not_replaced(network, tmp_path):
    fake = network(CONTENT)
    path = tmp_path / "cache" / "dpmoments" / FILE.name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="remove it"):
        files.load(FILE)
    assert path.read_bytes() == b""
    assert fake.asked == []


@pytest.mark.parametrize(
    "failure",
    [
        urllib.error.URLError("no route"),
        urllib.error.HTTPError(FILE.url, 404, "Not Found", http.client.HTTPMessage(), io.BytesIO()),
        TimeoutError("timed out"),
        http.client.IncompleteRead(b"half"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_without_network_the_error_says_what_to_place_where(network, failure, tmp_path):
    network(failure)
    with pytest.raises(ConnectionError) as caught:
        files.load(FILE)
    message = str(caught.value)
    for part in (FILE.url, str(tmp_path / "cache" / "dpmoments" / "small.data"), files.FOLDER_VARIABLE):
        assert part in message


def test_a_chosen_folder_that_does_not_exist_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv(files.FOLDER_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(NotADirectoryError, match="nowhere"):
        files.find_local(FILE)
    with pytest.raises(NotADirectoryError):
        datasets.adult()


def test_a_cache_that_cannot_be_written_says_what_to_do(network, tmp_path):
    network(CONTENT)
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(OSError, match="XDG_CACHE_HOME"):
        files.load(FILE)


def test_a_failed_write_leaves_nothing_behind(network, monkeypatch, tmp_path):
    network(CONTENT)

    def fail(path, target):
        raise OSError(f"disk full: {path} to {target}")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        files.load(FILE)
    assert list((tmp_path / "cache" / "dpmoments").iterdir()) == []


def test_the_cache_follows_xdg(monkeypatch, tmp_path):
    assert files.cache_folder() == tmp_path / "cache" / "dpmoments"
    for unset in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert files.cache_folder() == Path.home() / ".cache" / "dpmoments"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert files.cache_folder() == Path.home() / ".cache" / "dpmoments"


def test_every_source_is_https_with_an_md5():
    for source in (tables.ADULT_TRAIN, tables.ADULT_TEST, tables.AIRFOIL):
        assert source.url.startswith("https://archive.ics.uci.edu/")
        assert source.url.endswith("/" + source.name)
        assert len(source.md5) == 32


# ---- the tables ----


def check_described(data: datasets.Dataset) -> None:
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


def test_a_dataset_is_frozen_and_has_a_short_repr():
    data = datasets.wine()
    with pytest.raises(FrozenInstanceError):
        data.name = "other"  # type: ignore[misc]
    assert len(repr(data)) < 300


def test_wine():
    data = datasets.wine()
    assert data.frame.shape == (178, 13)
    assert data.target is None
    check_described(data)
    assert data.frame["alcohol"][0].as_py() == 14.23
    assert data.frame["proline"][177].as_py() == 560.0


def test_the_bundled_adult_needs_no_file_and_no_network():
    assert datasets.adult().frame.shape == (45_222, 15)
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


def test_the_bundle_carries_its_attribution():
    text = (Path(datasets.__file__).parent / "data" / "ATTRIBUTION.txt").read_text()
    assert "CC BY 4.0" in text
    assert "doi.org/10.24432/C5XW20" in text


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
def tiny_adult(monkeypatch, tmp_path):
    folder = tmp_path / "tiny"
    folder.mkdir()
    for attribute, content in (("ADULT_TRAIN", TINY_TRAIN), ("ADULT_TEST", TINY_TEST)):
        source = replace(getattr(tables, attribute), md5=hashlib.md5(content).hexdigest())
        monkeypatch.setattr(tables, attribute, source)
        (folder / source.name).write_bytes(content)
    monkeypatch.setenv(files.FOLDER_VARIABLE, str(folder))


@pytest.mark.usefixtures("tiny_adult")
def test_adult_cleaning_on_files_small_enough_to_read():
    everything = datasets.adult("all", complete=False)
    check_described(everything)
    assert everything.frame["income"].to_pylist() == [False, True, False, True]
    assert everything.frame["workclass"].to_pylist() == ["State-gov", None, "Private", "Private"]
    assert everything.frame["occupation"].null_count == 1
    assert everything.frame["native-country"].to_pylist() == [
        "United-States", None, "United-States", "Trinadad&Tobago",
    ]  # fmt: skip
    assert everything.frame["capital-gain"].to_pylist() == [2174, 0, 0, 7688]
    assert datasets.adult("all").frame["age"].to_pylist() == [39, 25, 44]
    assert datasets.adult("test").frame["age"].to_pylist() == [25, 44]
    assert datasets.adult("train").frame["age"].to_pylist() == [39]  # the file in the folder comes before the bundle
    with pytest.raises(ValueError, match="missing cells"):
        datasets.standardized_unit_rows(everything)


def test_only_complete_rows_work_without_a_file(network):
    network(urllib.error.URLError("no route"))
    assert datasets.adult("test").frame.num_rows == 15_060
    for subset in ("train", "test", "all"):
        with pytest.raises(ConnectionError, match="DPMOMENTS_DATA"):
            datasets.adult(subset, complete=False)
    with pytest.raises(ConnectionError, match="airfoil_self_noise"):
        datasets.airfoil()


def test_an_unknown_subset_is_refused():
    with pytest.raises(ValueError, match="'validation'"):
        datasets.adult("validation")  # type: ignore[arg-type]


@real("adult.data", "adult.test")
@pytest.mark.usefixtures("real_files")
def test_the_bundle_equals_the_complete_rows_of_the_published_file(monkeypatch):
    published = datasets.adult()
    monkeypatch.delenv(files.FOLDER_VARIABLE)
    assert datasets.adult().frame.equals(published.frame)


@real("adult.data", "adult.test")
@pytest.mark.usefixtures("real_files")
@pytest.mark.parametrize(
    ("subset", "complete", "n_rows"),
    [("train", False, 32_561), ("test", True, 15_060), ("test", False, 16_281), ("all", True, 45_222)],
)
def test_adult_subsets(subset, complete, n_rows):
    data = datasets.adult(subset, complete=complete)
    assert data.frame.num_rows == n_rows
    check_described(data)
    missing = {name for name in data.frame.column_names if data.frame[name].null_count}
    assert missing == (set() if complete else {"workclass", "occupation", "native-country"})
    allowed = {column.name for column in data.schema.columns if getattr(column, "missing", None) == "zero"}
    assert missing <= allowed


@real("airfoil_self_noise.dat")
@pytest.mark.usefixtures("real_files")
def test_airfoil():
    data = datasets.airfoil()
    assert data.frame.shape == (1503, 6)
    check_described(data)
    assert data.frame.slice(0, 1).to_pylist()[0] == {
        "frequency": 800.0, "angle_of_attack": 0.0, "chord_length": 0.3048, "free_stream_velocity": 71.3,
        "suction_side_displacement_thickness": 0.00266337, "sound_pressure_level": 126.201,
    }  # fmt: skip
    assert datasets.standardized_unit_rows(data).shape == (1503, 5)
    assert datasets.standardized_unit_rows(data, include_target=True).shape == (1503, 6)


# ---- preprocessing ----


def reference_unit_rows(data: datasets.Dataset, include_target: bool) -> np.ndarray:
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
    rows = datasets.standardized_unit_rows(small, include_target=include_target)
    np.testing.assert_allclose(rows, reference_unit_rows(small, include_target), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("include_target", "n_features"), [(False, 104), (True, 106)])
def test_adult_features_are_those_of_its_occurring_levels(include_target, n_features):
    # 6 numeric; 7 (of the codebook's 8: who never worked has no occupation) + 16 + 7 + 14 + 6 + 5 + 2 + 41.
    people = datasets.adult("train")
    before = people.frame.slice(0, 100).to_pylist()
    rows = datasets.standardized_unit_rows(people, include_target=include_target)
    assert rows.shape == (30_162, n_features)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-12)
    assert people.frame.slice(0, 100).to_pylist() == before


def test_constant_columns_and_rows_at_the_mean():
    schema = Schema(Numeric("constant", 0, 1), Numeric("value", -5, 5))
    frame = pa.table({"constant": [0.1] * 3, "value": [-1.0, 0.0, 1.0]})
    data = datasets.Dataset("three", frame, schema, "", "")
    np.testing.assert_array_equal(datasets.standardized_unit_rows(data), [[-1.0], [0.0], [1.0]])
    with pytest.raises(ValueError, match="no column"):
        datasets.standardized_unit_rows(replace(data, frame=frame.slice(0, 1)))


# ---- the generator ----


def sphere_p_value(rows: np.ndarray, mixing: np.ndarray) -> float:
    """Test of the exact law: rows of ZU at norm 1, unmixed and scaled again, are uniform on the sphere.

    The square of the first coordinate of such a row is Beta(1/2, (d − 1)/2).
    """
    unmixed = rows @ np.linalg.inv(mixing)
    unmixed /= np.linalg.norm(unmixed, axis=1, keepdims=True)
    d = rows.shape[1]
    return float(stats.kstest(unmixed[:, 0] ** 2, stats.beta(0.5, (d - 1) / 2).cdf).pvalue)


def test_synthetic_rows_have_their_exact_law():
    n_rows, d = 20_000, 6
    rows = datasets.amin_synthetic(n_rows, d, np.random.default_rng(7), center=False)
    replay = np.random.default_rng(7)
    normals, mixing = replay.standard_normal((n_rows, d)), replay.random((d, d))
    assert sphere_p_value(rows, mixing) > 0.01
    planted = normals @ mixing.T  # mixed from the wrong side
    planted /= np.linalg.norm(planted, axis=1, keepdims=True)
    assert sphere_p_value(planted, mixing) < 1e-6


@pytest.mark.parametrize("scaling", ["unit", "largest"])
@pytest.mark.parametrize("center", [True, False])
def test_synthetic_rows_match_the_reference(center, scaling):
    n_rows, d = 50, 4
    rows = datasets.amin_synthetic(n_rows, d, np.random.default_rng(3), center=center, scaling=scaling)
    rng = np.random.default_rng(3)
    normals, mixing = rng.standard_normal((n_rows, d)), rng.random((d, d))
    expected = np.array([[sum(z[k] * mixing[k, j] for k in range(d)) for j in range(d)] for z in normals])
    if center:
        expected = expected - expected.sum(axis=0) / n_rows
    norms = [sum(value * value for value in row) ** 0.5 for row in expected]
    for row, norm in zip(expected, norms, strict=True):
        row /= norm if scaling == "unit" else max(norms)
    np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-12)
    assert np.linalg.norm(rows, axis=1).max() == pytest.approx(1.0, rel=1e-12)


def test_synthetic_edge_cases():
    np.testing.assert_array_equal(datasets.amin_synthetic(1, 3, np.random.default_rng(0)), np.zeros((1, 3)))
    assert set(datasets.amin_synthetic(9, 1, np.random.default_rng(0)).ravel()) == {-1.0, 1.0}
    for size in ((0, 3), (3, 0)):
        with pytest.raises(ValueError, match="at least 1"):
            datasets.amin_synthetic(*size, np.random.default_rng(0))
    with pytest.raises(ValueError, match="'other'"):
        datasets.amin_synthetic(3, 3, np.random.default_rng(0), scaling="other")  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------------------------
# rows of heavy tails

HEAVY = {
    "Laplace": (datasets.multivariate_laplace, stats.laplace(scale=0.5**0.5), 6.0),
    "Student": (
        lambda n, d, rng: datasets.multivariate_student(n, d, rng, degrees=9.0), stats.t(9, scale=(7 / 9) ** 0.5), 4.2,
    ),
    "Student of 3 degrees": (datasets.multivariate_student, stats.t(3, scale=(1 / 3) ** 0.5), None),
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


def test_rows_of_heavy_tails_need_sizes_and_a_covariance():
    rng = np.random.default_rng(0)
    for make in (datasets.multivariate_laplace, datasets.multivariate_student):
        for sizes in ((0, 1), (1, 0)):
            with pytest.raises(ValueError, match="must be at least 1"):
                make(*sizes, rng)
    for degrees in (2.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="must be above 2"):
            datasets.multivariate_student(3, 3, rng, degrees=degrees)
