"""Readers of releases, mean releases and schemas, each given one changed file after another.

A file is refused, in words of this library, or it is a valid object: all that can be asked of it answers with numbers, or
refuses in such words.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import dpmoments as dpm
from dpmoments.audit.verification import checks
from dpmoments.base.errors import InputError
from dpmoments.cli import main
from dpmoments.moments.repair import Repair
from dpmoments.releases.counts_release import CountsRelease
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.schema import Schema
from support import mutations
from support.forged_files import signed, with_true_losses

__all__ = ["Fault", "fuzz_counts_release", "fuzz_mean_release", "fuzz_release", "fuzz_schema", "fuzz_several"]

REFUSALS = (ValueError, TypeError, OSError)


class Fault(AssertionError):  # noqa: N818 - no error of the program, but what was found
    """A reader that did what no reader may."""


def refused(error: Exception, during: str, kinds: tuple[type[Exception], ...] = REFUSALS) -> None:
    """Raise Fault unless an error is one that says what is wrong."""
    if not isinstance(error, kinds):
        raise Fault(f"{during}: {type(error).__name__}: {str(error)[:300]}") from error
    if not isinstance(error, InputError) and not isinstance(error, KeyError):  # of an entry that is absent
        raise Fault(f"{during}: not in words of its own: {type(error).__name__}: {str(error)[:300]}") from error
    if len(str(error)) > 200_000:
        raise Fault(f"{during}: a message of {len(str(error))} characters")


def attempt(step: Callable[[], Any], during: str, kinds: tuple[type[Exception], ...] = REFUSALS) -> Any:
    """What a step returns; None where it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = step()
        except Exception as error:
            refused(error, during, kinds)
            return None
    if mutations.trips():
        mutations.trips().clear()
        raise Fault(f"{during}: code in the file was run")
    return found


def numbers(*arrays: Any, during: str) -> None:
    """Raise Fault where an answer has an entry that is no number."""
    for array in arrays:
        if array is not None and not np.isfinite(array).all():
            raise Fault(f"{during}: an answer that is not finite")


# Releases -------------------------------------------------------------------------------------------------------------

RELEASED: tuple[dict[str, Any], ...] = (
    dict(epsilon=1.0),
    dict(rho=0.5, mechanism="gaussian", neighbors="replace_one"),
    dict(epsilon=1.0, delta=1e-6, mechanism="gaussian"),
    dict(epsilon=1.0, mechanism="laplace", mean=False),
    dict(epsilon=1.0, mechanism="isotropic", neighbors="replace_one"),
    dict(epsilon=1.0, delta=1e-6, mechanism="additive-wishart"),
    dict(epsilon=1.0, delta=1e-6, mechanism=dpm.mechanisms.JohnsonLindenstrauss(adaptive=True), mean=False),
    dict(epsilon=1.0, delta=1e-6, mechanism="inverse-wishart", neighbors="replace_one"),
    dict(epsilon=2.0, delta=1e-6, mechanism=dpm.mechanisms.InverseGaussian(1.05), mean=False),
    dict(epsilon=1.0, mechanism="iterative-eigenvectors"),
    dict(epsilon=1.0, mechanism="kapralov-talwar", mean=False, neighbors="replace_one"),
    dict(rho=0.5, mechanism="coinpress"),
    dict(epsilon=1.0, mechanism="matrix-laplace", mean=False),
)
RELEASED_MEANS: tuple[dict[str, Any], ...] = (
    dict(rho=0.5),
    dict(rho=0.5, neighbors="replace_one", mechanism="naive"),
    dict(epsilon=1.0, neighbors="replace_one", mechanism="symq"),
    dict(epsilon=1.0, delta=1e-6, neighbors="replace_one", mechanism="karwa-vadhan"),
    dict(rho=0.5, mechanism="variance-aware", neighbors="replace_one"),
)
RELEASED_COUNTS: tuple[dict[str, Any], ...] = (
    dict(epsilon=1.0, by=[["region"], ["member", "region"]], split=[1, 2]),
    dict(rho=0.5, by=["member"], neighbors="replace_one"),
    dict(epsilon=0.01, delta=1e-4, by=["region", "member"]),
)
SCHEMA = Schema(
    dpm.Numeric("age", 0, 100),
    dpm.Boolean("member", missing="center"),
    dpm.Categorical("region", ["n", "s"]),
    dpm.Power("age", 2),
    dpm.Product("age", "region"),
)
ROUGH = Schema(dpm.Numeric("age", scale=(1, 1e3)), dpm.Numeric("income", scale=(1, 1e4), center=100, radius=1000))


def _table(schema: Schema) -> pa.Table:
    rng = np.random.default_rng(5)
    if schema is ROUGH:
        return pa.table({"age": rng.normal(50, 20, 200), "income": rng.normal(100, 500, 200)})
    return pa.table(
        {"age": rng.uniform(0, 100, 200), "member": rng.random(200) < 0.5, "region": rng.choice(["n", "s"], 200)}
    )


def _made(kind: str) -> list[Any]:
    """Sound releases of a kind: of moments with every kind of law and receipt."""
    table, rough = _table(SCHEMA), _table(ROUGH)
    if kind == "release":
        ball = np.random.default_rng(1).normal(0, 0.3, (100, 4))
        return [
            *(dpm.release(table, SCHEMA, insecure_seed=1, **options) for options in RELEASED),
            dpm.release(rough, ROUGH, rho=0.5, mechanism="coinpress", insecure_seed=1),
            dpm.release(ball, Schema.unit_ball(4), epsilon=1.0, neighbors="replace_one", insecure_seed=1),
        ]
    if kind == "mean release":
        means = [dpm.release_mean(table, SCHEMA, insecure_seed=1, **options) for options in RELEASED_MEANS]
        return [*means, dpm.release_mean(rough, ROUGH, rho=0.5, insecure_seed=1)]
    if kind == "counts release":
        return [dpm.release_counts(table, SCHEMA, insecure_seed=1, **options) for options in RELEASED_COUNTS]
    groups = dpm.release_groups(table, SCHEMA, by="region", epsilon=1.0, dataset="people", insecure_seed=1)
    standardized: dict[str, Any] = dict(rho=9.0, mechanism="standardized")
    sites = [dpm.release(table, SCHEMA, insecure_seed=seed, dataset=f"{seed}", **standardized) for seed in (1, 2)]
    return [groups, dpm.pool(sites), dpm.pool(groups.values())]


@cache
def contents_of(kind: str) -> tuple[dict[str, Any], ...]:
    """Contents of sound files of a kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(json.loads(json.dumps(made.to_dict())) for made in _made(kind))


FORMATS = {
    "release": "dpmoments-release",
    "mean release": "dpmoments-mean-release",
    "counts release": "dpmoments-counts-release",
    "groups": "dpmoments-group-releases",
    "pooled": "dpmoments-pooled-release",
}


def _changed_content(contents: tuple[dict[str, Any], ...], random: Random) -> dict[str, Any]:
    content = random.choice(contents)
    if random.random() < 0.5:  # in one part alone, so that the others let it through
        part = random.choice([key for key, value in content.items() if isinstance(value, dict | list) and value])
        changed = copy.deepcopy(content) | {part: mutations.mutated_tree({"_": content[part]}, random)}
        changed[part] = changed[part].get("_", mutations.hostile(random))
    else:
        changed = mutations.mutated_tree(content, random)
    if random.random() < 0.06:  # and nothing else, so that it is read at all
        changed = copy.deepcopy(content)
        changed[random.choice(["mechanism_options", "diagnostics"])]["deep"] = mutations.nested(
            random.choice([60, 440, 3000])
        )
    if random.random() < 0.25:
        with contextlib.suppress(RecursionError, IndexError):
            _rescale(changed, random)
    if random.random() < 0.4:
        with contextlib.suppress(Exception):
            with_true_losses(changed)
    return changed


def _rescale(content: dict[str, Any], random: Random) -> None:
    """All numbers of a part many orders of magnitude away, as far as floating point goes; or one that is not finite."""

    def moved(value: Any) -> Any:
        if isinstance(value, list):
            return [moved(entry) for entry in value]
        return value * factor if type(value) is float and abs(value) < 1e300 / max(factor, 1.0) else value

    tables = content["tables"] if isinstance(content.get("tables"), list) else []
    for part in (content, *(table for table in tables if isinstance(table, dict))):
        for key in ("noisy_gram_upper_triangle", "noisy_sum", "noisy_count", "noisy_mean", "noisy_counts"):
            if key in part and random.random() < 0.5:
                factor = 10.0 ** random.uniform(-320, 305)
                part[key] = moved(part[key])
    if isinstance(content.get("noise"), dict) and random.random() < 0.5:
        factor = 10.0 ** random.uniform(-320, 305)
        content["noise"] = {key: moved(value) for key, value in content["noise"].items()}  # of moments, or of a mean
    noisy = [key for key in content if key.startswith("noisy") and content[key] is not None]
    if noisy and random.random() < 0.3:
        numbers = content[random.choice(noisy)]
        if isinstance(numbers, list) and numbers:
            numbers[random.randrange(len(numbers))] = random.choice(mutations.NOT_FINITE)
    if random.random() < 0.3:
        content["repair"] = random.choice(list(map(str, Repair)))


def _text(content: Any, kind: str) -> str:
    document = {"format": FORMATS[kind], "version": 1, "sha256": "", "content": content}
    try:
        return signed(document)
    except (RecursionError, ValueError, TypeError):
        return '{"format": "' + FORMATS[kind] + '"}'


def _fuzz_file(kind: str, read: Any, random: Random, folder: Path) -> Any:
    """One changed file, or the content of one handed over as it is; what was read of it, and the file."""
    contents, path, way = contents_of(kind), folder / "release.json", random.random()
    if way < 0.4:
        content = _changed_content(contents, random)
        return attempt(lambda: read(content), "from_dict", (ValueError, TypeError, KeyError)), None
    if way < 0.85:
        text = _text(_changed_content(contents, random), kind)
        path.write_text(mutations.spelled_oddly(text, random))
    elif way < 0.9:
        document = json.loads(_text(random.choice(contents), kind))
        with contextlib.suppress(RecursionError):
            path.write_text(json.dumps(mutations.mutated_tree(document, random)))
    else:
        path.write_bytes(mutations.mutated_bytes(_text(random.choice(contents), kind).encode(), random))
    return attempt(lambda: dpm.load(path), "load", (ValueError,)), path


def fuzz_release(random: Random, folder: Path) -> bool:
    """One changed release; whether it was accepted."""
    found, path = _fuzz_file("release", MomentRelease.from_dict, random, folder)
    if found is None:
        return False
    ask_release(found, random)
    return ask_command_line(path, random)


def fuzz_several(random: Random, folder: Path) -> bool:
    """One changed file of several releases, mostly in one of them; whether it was accepted."""
    place, sound = random.choice([*enumerate(contents_of("several"))])
    kind, content, path = "pooled" if place else "groups", copy.deepcopy(sound), folder / "release.json"
    if random.random() < 0.8:
        place = random.randrange(len(content["releases"]))
        content["releases"][place] = _changed_content((content["releases"][place],), random)
    else:
        content = mutations.mutated_tree(content, random)
    if random.random() < 0.3:
        with contextlib.suppress(Exception):  # the same law for all
            for release in content["releases"]:
                _rescale(release, random)
    path.write_text(_text(content, kind))
    found = attempt(lambda: dpm.load(path), "load", (ValueError,))
    if found is None:
        return False
    if isinstance(found, MomentRelease):
        ask_release(found, random)
    else:
        attempt(lambda: (repr(found), found.privacy.describe(), found.receipt.lines(), found.warnings), "groups", ())
        ask_release(random.choice(found.releases), random)
    return ask_command_line(path, random)


def fuzz_mean_release(random: Random, folder: Path) -> bool:
    """One changed mean release; whether it was accepted."""
    found, path = _fuzz_file("mean release", MeanRelease.from_dict, random, folder)
    if found is None:
        return False
    ask_common(found, random)
    numbers(attempt(lambda: found.mean, "mean"), during="mean")
    attempt(found.summary, "summary", (ValueError,))
    if found.noise is not None:
        numbers(attempt(lambda: found.standard_errors, "standard_errors", (ValueError,)), during="standard_errors")
        level = random.choice([0.5, 0.95, 1.0 - 1e-12])
        numbers(attempt(lambda: found.conf_int(level), "conf_int", (ValueError,)), during="conf_int")
    return ask_command_line(path, random)


def fuzz_counts_release(random: Random, folder: Path) -> bool:
    """One changed release of counts; whether it was accepted."""
    if random.random() < 0.35:  # nothing but its counts, so that it is read at all
        content = copy.deepcopy(random.choice(contents_of("counts release")))
        _rescale(content, random)
        found, path = attempt(lambda: CountsRelease.from_dict(content), "from_dict", (ValueError, TypeError)), None
    else:
        found, path = _fuzz_file("counts release", CountsRelease.from_dict, random, folder)
    if found is None:
        return False
    ask_common(found, random)
    attempt(found.summary, "summary", (ValueError,))
    for table in found.tables:
        level = random.choice([0.5, 0.95, 1.0 - 1e-12])
        numbers(attempt(lambda one=table, given=level: one.conf_int(given), "conf_int"), during="conf_int")
        if table.counts.min() < 0 or table.counts.sum() != table.n_rows:
            raise Fault("counts: not possible")
        attempt(lambda one=table: json.dumps(one.to_dict(), allow_nan=False), "table", ())
    names = found.by[0]
    if len(names) > 1:
        tested = attempt(lambda: found.cross_table(names[0], names[1]), "cross_table", (ValueError,))
        if tested is not None:
            attempt(lambda: json.dumps(tested.to_dict(), allow_nan=False) + tested.summary(), "cross table", ())
    return ask_command_line(path, random)


def ask_common(found: Any, random: Random) -> None:
    for name, step in {
        "repr": lambda: repr(found),
        "description": lambda: found.privacy.describe(),
        "receipt": lambda: found.receipt.lines(),
        "warnings": lambda: found.warnings,
        "n_rows": lambda: found.n_rows,
    }.items():
        attempt(step, name, (ValueError,))
    if random.random() < 0.25:  # it makes the plan anew
        attempt(lambda: checks(found), "checks", ())
    again = attempt(lambda: json.dumps(found.to_dict(), allow_nan=False), "to_dict", ())
    other = attempt(lambda: type(found).from_dict(json.loads(again)), "from_dict again", ())
    if json.dumps(other.to_dict(), allow_nan=False) != again:
        raise Fault("from_dict again: another object")


def ask_release(found: MomentRelease, random: Random) -> None:
    """Every property, analysis and check of a release that was accepted."""
    ask_common(found, random)
    for repair in {str(found.repair), random.choice(list(map(str, Repair)))}:
        release = found.with_repair(repair)
        for name in ("mean", "gram", "second_moment", "covariance", "unit_ball_gram", "unit_ball_covariance"):
            numbers(attempt(partial(getattr, release, name), name, (ValueError,)), during=f"{name}, {repair}")
        ask_analyses(release, random)


def ask_analyses(release: MomentRelease, random: Random) -> None:
    description = attempt(release.describe, "describe", (ValueError,))
    if description is not None:
        attempt(lambda: json.dumps(description.to_dict(), allow_nan=False) + description.summary(), "description", ())
        numbers(description.mean, during="describe")
    scaling = random.choice(["units", "bounds", "correlation"])
    components = attempt(lambda: release.pca(1, scaling=scaling), f"pca {scaling}", (ValueError,))
    if components is not None:
        attempt(lambda: json.dumps(components.to_dict(), allow_nan=False) + components.summary(), "pca", ())
        numbers(components.components, components.explained_variance, during=f"pca {scaling}")
    target, alpha = random.choice(release.feature_names), random.choice([0.0, 0.01, 1.0])
    fit = attempt(lambda: release.ridge(target, alpha=alpha), "ridge", (ValueError,))
    if fit is not None:
        attempt(lambda: json.dumps(fit.to_dict(), allow_nan=False) + fit.summary(), "fit", ())
        numbers(fit.coefficients, fit.intercept, during="ridge")
        if fit.r_squared_text.startswith("R² ="):  # else "at least 0.9" or "not estimable", and NaN on purpose
            numbers(fit.r_squared, during="ridge")
        if fit.unit_ball_error_bound is not None and math.isnan(fit.unit_ball_error_bound):
            raise Fault("ridge: a bound that is no number")


def ask_command_line(path: Path | None, random: Random) -> bool:
    """Of some files, a command of an analyst: done, or a line that says why not."""
    if path is None or random.random() >= 0.2:
        return True
    command = random.choice(
        [["show"], ["show", "--json"], ["verify"], ["describe"], ["ridge", "age", "--alpha", "0.1"], ["pca", "-k", "1"]]
    )
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main([command[0], str(path), *command[1:]])
    if code not in (0, 1) or "stopped by an unexpected" in said.getvalue() or "Traceback" in said.getvalue():
        raise Fault(f"{command[0]}: {said.getvalue()[-300:]}")
    if "\x1b" in said.getvalue():
        raise Fault(f"{command[0]}: a file speaks to the terminal")
    return True


# Schemas --------------------------------------------------------------------------------------------------------------

SCHEMAS: tuple[str, ...] = (
    """format: dpmoments-schema
version: 1
row_norm: 1.5
columns:
- kind: numeric
  name: age
  lower: 0.0
  upper: 100.0
  missing: error
- kind: categorical
  name: region
  levels: ["north", south, '010']
  missing: zero
  other: drop
- {kind: boolean, name: "member", missing: center}  # a comment
""",
    """columns:
  - {name: income, kind: numeric, scale: [1, 1.0e+6], center: 0, radius: 1e7}
  - {name: code, kind: categorical, levels: [1, 2, 30], other: zero}
""",
    """row_norm: default
columns:
  - {name: age, kind: numeric, lower: 0, upper: 120, typical: [20, 75]}
  - {name: member, kind: boolean}
""",
    'columns: [{name: x0, kind: coordinate}, {name: "x1", kind: coordinate, missing: drop}]\nrow_norm: 1.0\n',
    """columns:
- &one {name: a, kind: categorical, levels: &likert [1, 2, 3]}
- {name: b, kind: categorical, levels: *likert}
""",
)


@cache
def _schema_trees() -> tuple[dict[str, Any], ...]:
    from dpmoments.schema.document import parse_yaml

    return tuple(map(parse_yaml, SCHEMAS))


def fuzz_schema(random: Random, folder: Path) -> bool:
    """One changed schema; whether it was accepted."""
    path = folder / "schema.yaml"
    way = random.random()
    if way < 0.3:
        values = mutations.mutated_tree(random.choice(_schema_trees()), random)
        schema = attempt(lambda: Schema.from_dict(values), "from_dict", (ValueError, TypeError))
    else:
        if way < 0.5:
            tree = mutations.mutated_tree(random.choice(_schema_trees()), random)
            text = "{}"
            with contextlib.suppress(RecursionError):
                text = json.dumps(tree, ensure_ascii=random.random() < 0.5)  # JSON is YAML, but for a few spellings
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
        else:
            path.write_bytes(mutations.mutated_yaml(random.choice(SCHEMAS), random))
        schema = attempt(lambda: Schema.load(path), "load", (ValueError,))
    if schema is None:
        return False
    ask_schema(schema, folder)
    return True


def ask_schema(schema: Schema, folder: Path) -> None:
    for mean in (True, False):
        encoding = attempt(lambda mean=mean: schema.encoding(mean=mean), "encoding", ())
        numbers(encoding.offset, encoding.unit, encoding.scale, encoding.scale**2, during="encoding")
        attempt(lambda mean=mean: schema.rough_scale(mean=mean), "rough_scale", ())
    attempt(lambda: (repr(schema), schema.rules, schema.feature_bounds), "in words", ())
    if schema.n_features > 2000:
        return
    attempt(lambda: schema.save(folder / "again.yaml"), "save", ())
    if attempt(lambda: Schema.load(folder / "again.yaml"), "load again", ()) != schema:
        raise Fault("load again: another schema")
