"""The auditor's statement and the registry's entry: whole, true to the release, the same after a file, valid in form.

``FORM`` is this project's own reading of the registry's schema (github.com/opendp/deployments-registry-data,
``schemas/deployments-schema.yaml``), whose repository states no license: fields and words are listed, no text is copied.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import dpmoments as dpm
from dpmoments.cli.entry import main
from dpmoments.releases.statements import _BLANK, _CHOICES
from support.said import refused

SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100), dpm.Categorical("region", ["north", "south"], other="zero"), dpm.Boolean("smoker")
)
CURATOR = dict(
    name="Patients 2026",
    curator="A hospital",
    curator_type="Nonprofit",
    description="Moments of a table of patients.",
    intended_use="Planning",
    region="Nowhere",
    sector="Healthcare",
    publication_date="2026-03-01",
    data_domain="All patients of the year, one row each.",
    release_type="One release",
    data_source_type="Static",
    tuning="Nothing was looked at.",
    justification="A committee chose.",
    actors="The hospital; the public.",
    url="https://example.org/patients",
    authors=["Ada"],
)


def table(n_rows: int = 300) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    return {
        "age": rng.uniform(0, 100, n_rows),
        "region": rng.choice(["north", "south"], n_rows),
        "smoker": rng.random(n_rows) < 0.3,
        "person_id": np.arange(n_rows) // 5,  # no column of the schema
    }


def made(**options: Any) -> Any:
    return dpm.release(pd.DataFrame(table()), SCHEMA, **({"epsilon": 1.0} | options))


KINDS: dict[str, Callable[[], Any]] = {
    "approximate": lambda: made(delta=1e-6, mechanism="gaussian", neighbors="replace_one"),
    "zcdp": lambda: made(epsilon=None, rho=0.5),
    "groups": lambda: dpm.release_groups(pd.DataFrame(table()), SCHEMA, by="region", epsilon=1.0, mechanism="laplace"),
    "mean": lambda: dpm.release_mean(np.full((500, 2), 0.1), dpm.Schema.unit_ball(2), rho=0.5, neighbors="replace_one"),
    "pooled": lambda: dpm.pool([made(dataset="east"), made(dataset="west", epsilon=2.0)]),
}


@pytest.fixture(scope="module", params=KINDS)
def released(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]()


# The statement -------------------------------------------------------------------------------------------------------


def test_a_statement_has_every_level_and_is_the_same_after_a_file(released: Any, tmp_path: Path) -> None:
    stated = released.auditor_statement()
    assert len(stated.levels) == 7
    assert all(level.stated and level.asked for level in stated.levels)
    told = json.loads(json.dumps(stated.to_dict()))
    assert [level["name"] for level in told["levels"]] == [level.name for level in stated.levels]
    assert len(told["privacy_profile"]["points"]) == 5
    assert {point["mark"] for point in told["privacy_profile"]["points"]} <= {"exact", "bound"}
    assert "No ledger" in told["composition_so_far"]
    if isinstance(released, dpm.GroupReleases):
        return  # its file is a folder of one a group, or the whole
    released.save(tmp_path / "release.json")
    again = dpm.load(tmp_path / "release.json").auditor_statement()
    assert again.to_dict() == stated.to_dict()
    assert again.describe() == stated.describe()


def test_a_statement_names_what_an_auditor_asks_for() -> None:
    release = made(delta=1e-6, mechanism="gaussian", dataset="people-2026", neighbors="replace_one")
    words = release.auditor_statement().describe()
    for asked in (
        "people-2026",
        release.id,
        "μ-Gaussian",
        "one Gaussian mechanism of μ",
        "replace-one",
        "one row of the table",
        "number of rows of the table, which replace-one makes public",
        "age (numeric",
        "north",
        "exact",
        "how long the run took",
        "whether it stopped with an error",
        "SP 800-226",
        "Free of privacy cost",
        f"dpmoments {dpm.__version__}",
    ):
        assert asked in words, asked
    assert "number of rows of the table" not in made().auditor_statement().describe()


@pytest.mark.long
def test_a_statement_tells_what_the_ledger_adds_up_to(tmp_path: Path) -> None:
    ledger, other = dpm.Ledger(tmp_path / "budget.db"), dpm.Ledger(tmp_path / "other.db")
    for one in (ledger, other):
        one.grant("people-2026", epsilon=3.0)
    first, second = (made(dataset="people-2026", ledger=ledger) for _ in range(2))
    assert "entry 2 of the ledger" in first.auditor_statement().composition
    told = second.auditor_statement(ledger=ledger)
    assert "2 releases of 'people-2026' spent ε = 2 of the ε = 3 granted" in told.composition
    assert told.composition in told.describe()
    with refused("does not confirm this release"):
        first.auditor_statement(ledger=other)
    with refused("does not confirm this release"):
        made(dataset="people-2026").auditor_statement(ledger=ledger)
    first.save(tmp_path / "release.json")
    assert main(["show", "--audit", "--ledger", str(tmp_path / "budget.db"), str(tmp_path / "release.json")]) == 0
    assert main(["show", "--ledger", str(tmp_path / "budget.db"), str(tmp_path / "release.json")]) == 2


def test_a_statement_names_the_unit_that_is_protected() -> None:
    release = made(privacy_unit=dpm.PrivacyUnit("person_id", max_rows=3))
    stated = release.auditor_statement()
    assert stated.unit == "all rows with one value of person_id, of which 3 count at most"
    assert "one row of the table" not in stated.describe()
    entry = release.registry_entry().to_yaml()
    assert "by group privacy" in entry
    assert "All rows of one person_id" in entry
    assert "Row-level" not in entry
    assert "number_of_privacy_units" not in entry  # rows are known, people are not


def test_a_release_that_protects_nobody_says_so_first() -> None:
    release = made(insecure_seed=1)
    assert "NOT PRIVATE" in release.auditor_statement().describe().splitlines()[1]
    assert release.auditor_statement().to_dict()["private"] is False
    with refused("this release was made with an insecure seed and is not"):
        release.registry_entry()


def test_a_statement_of_several_tables_has_the_profile_of_the_worst_and_what_each_warned_of() -> None:
    pooled, groups = KINDS["pooled"](), KINDS["groups"]()
    curves = [part.privacy_curve for part in pooled.parts]
    for point in pooled.privacy_profile.points:
        assert point.delta == max(curve.at(point.epsilon).delta for curve in curves)
    assert pooled.privacy_profile.points[3].epsilon == 2.0
    assert groups.privacy_curve.at(0.5).delta == max(one.privacy_curve.at(0.5).delta for one in groups.values())
    empty = dpm.release(np.zeros((0, 2)), dpm.Schema.unit_ball(2), epsilon=1.0)
    assert empty.warnings
    assert all(str(text) in empty.auditor_statement().describe() for text in empty.warnings)


# The entry -----------------------------------------------------------------------------------------------------------


def text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def one_of(*words: str) -> Callable[[object], bool]:
    return lambda value: value in words


def number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def date(value: object) -> bool:
    return isinstance(value, str) and bool(datetime.date.fromisoformat(value))


def list_of(form: Any) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and bool(value) and not any(e for v in value for e in faults(v, form))


TEXTS = {
    "basic": "name description intended_use data_product_region",
    "dp_variant": "data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters_details",
    "deployment_model": (
        "trust_assumptions actors model_name_details? release_type_details? data_source_type_details? access_type_details?"
    ),
    "implementation": (
        "preprocessing_and_hyperparameter_tuning mechanisms composition post_processing justification utility? "
        "additional_information?"
    ),
    "administrative": "",
}
OTHERS: dict[str, dict[str, Any]] = {
    "basic": {
        "data_curators": list_of(
            {"data_curator_name": text, "data_curator_type": one_of("Government", "Industry", "Nonprofit")}
        ),
        "data_product_type": one_of("Summary statistics", "Machine learning model", "Dataset", "Synthetic data"),
        "data_product_sector?": one_of("Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
        "publication_date": date,
    },
    "dp_variant": {"variant_name": one_of("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom")},
    "privacy_loss": {
        "number_of_privacy_units?": lambda value: isinstance(value, int),
        "privacy_parameters": {"epsilon?": number, "delta?": number, "rho?": number},
    },
    "deployment_model": {
        "model_name": one_of("Local", "Central", "Shuffle", "Federated", "Varies"),
        "release_type": one_of("One release", "Many releases"),
        "data_source_type": one_of("Static", "Dynamic"),
        "access_type": one_of("Interactive", "Non-interactive"),
    },
    "administrative": {
        "status": one_of("Converted", "Draft", "Pending", "Changes Required", "Approved"),
        "registry_authors": list_of(text),
        "tier": one_of(1, 2, 3),  # type: ignore[arg-type]
    },
}
FORM: dict[str, Any] = {
    "url_slug": text,
    "deployment": {part: dict.fromkeys(TEXTS[part].split(), text) | OTHERS.get(part, {}) for part in TEXTS},
}
"""What the registry asks for at tier 3; ``?`` marks what may be left out. No other field is allowed."""


def faults(value: Any, form: Any, path: str = "") -> Iterator[str]:
    """Where a value is not of the form."""
    if not isinstance(form, dict):
        try:
            fits = form(value)
        except ValueError:
            fits = False
        if not fits:
            yield f"{path}: {value!r}"
        return
    if not isinstance(value, Mapping):
        yield f"{path} is no mapping"
        return
    known = {name.removesuffix("?"): name for name in form}
    yield from (f"{path}/{name} is unknown" for name in value if name not in known)
    for name, marked in known.items():
        if name in value:
            yield from faults(value[name], form[marked], f"{path}/{name}")
        elif not marked.endswith("?"):
            yield f"{path}/{name} is missing"


def test_an_entry_that_is_filled_in_is_valid(released: Any) -> None:
    entry = released.registry_entry(**CURATOR)
    read = yaml.safe_load(entry.to_yaml())
    assert read == entry.to_dict()
    assert list(faults(read, FORM)) == []
    assert entry.blanks == ()
    budget = released.privacy.budget
    parameters = read["deployment"]["privacy_loss"]["privacy_parameters"]
    assert parameters == {k: v for k, v in budget.to_dict().items() if k != "kind" and v}


def test_what_only_the_curator_knows_is_a_marked_blank(released: Any) -> None:
    entry = released.registry_entry()
    assert len(entry.blanks) >= 10
    assert len(entry.blanks) == entry.to_yaml().count(_BLANK)
    # Blanks where one of a few words is asked for are not valid, so that no draft is sent in by mistake.
    assert list(faults(entry.to_dict(), FORM))
    assert all(FORM["deployment"]["basic"]["data_product_sector?"](word) for word in _CHOICES["sector"])
    assert all(FORM["deployment"]["deployment_model"]["release_type"](word) for word in _CHOICES["release_type"])


def test_texts_of_several_lines_are_literal_blocks(tmp_path: Path) -> None:
    entry = made().registry_entry(**CURATOR)
    styles = {token.style for token in yaml.scan(entry.to_yaml()) if isinstance(token, yaml.ScalarToken)}
    assert "|" in styles
    assert styles <= {"|", '"', "'", None}  # the registry refuses folded blocks
    entry.save(tmp_path / "patients.yaml")
    assert yaml.safe_load((tmp_path / "patients.yaml").read_text(encoding="utf-8")) == entry.to_dict()
    with pytest.raises(FileExistsError):
        entry.save(tmp_path / "patients.yaml")


@pytest.mark.parametrize(
    ("known", "code"),
    [
        (dict(sector="Hospitals"), "is not a value of the registry: use one of"),
        (dict(publication_date="March"), "must be"),
        (dict(curator_type="Company"), "is not a value of the registry: use one of"),
        (dict(name=7), "must be"),
        (dict(authors="Ada"), "authors must be a list of names"),
        (dict(owner="Ada"), "is not a field of a registry entry"),
    ],
)
def test_fields_that_cannot_be_are_refused(known: dict[str, Any], code: str) -> None:
    with refused(code, (ValueError, TypeError)):
        made().registry_entry(**known)


def test_an_entry_tells_nothing_that_the_release_does_not() -> None:
    """Of two releases with one and the same noise budget, entries differ in the id and the noisy count alone."""
    same = {"dataset": "people", "mechanism": "matrix-laplace"}
    entries = [made(**same).registry_entry(**CURATOR).to_yaml() for _ in range(2)]
    changed = [
        (one, other) for one, other in zip(*(entry.splitlines() for entry in entries), strict=True) if one != other
    ]
    assert all("number_of_privacy_units" in one or "Release " in one for one, _ in changed)
    assert changed


# The command line ----------------------------------------------------------------------------------------------------


@pytest.fixture
def people_json(tmp_path: Path) -> str:
    path = tmp_path / "people.json"
    made(dataset="people-2026").save(path)
    return str(path)


def test_show_for_an_auditor(people_json: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--audit", people_json]) == 0
    assert "SP 800-226" in capsys.readouterr().out
    assert main(["show", people_json, "--audit", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dataset"] == "people-2026"
