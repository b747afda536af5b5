"""``make test-oldest`` installs the oldest versions that the project declares, and ``make test-newest`` the same libraries."""

import tomllib

from support.wheel_requirements import PROJECT, REQUIREMENT, pinned, unpinned


def test_every_library_is_pinned_to_what_is_declared() -> None:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    pins = pinned(project)
    declared = project["project"]["dependencies"]
    assert pins[: len(declared)] == [one.replace(">=", "==") for one in declared]
    assert {"pandas", "polars", "duckdb", "numba", "pytest"} <= {pin.split("==")[0] for pin in pins}
    assert [pin.split("==")[0] for pin in pins] == unpinned(project)
    assert not any(pin.startswith(("ruff", "mypy", "dask", "pyspark")) for pin in pins)


def test_extras_and_tests_declare_the_same_bounds() -> None:
    """What a user installs by an extra is what was tested."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    tested = {REQUIREMENT.match(one)["name"]: one for one in project["dependency-groups"]["test"]}
    for name in ("dask", "spark", "duckdb", "fast", "database", "excel", "statistics", "desk"):
        for requirement in project["project"]["optional-dependencies"][name]:
            assert tested[REQUIREMENT.match(requirement)["name"]] == requirement
