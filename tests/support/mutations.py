"""What is done to a file before a reader is given it: to its bytes, to its text, to any node of what it says.

Every change is drawn from a ``random.Random``, so that a seed and a number name one input for good.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

__all__ = ["code_ran", "mutated_bytes", "mutated_tree", "mutated_yaml", "spelled_oddly", "trips"]

_TRIPS: list[str] = []


def code_ran(*_: object) -> None:
    """What hostile files ask a reader to call."""
    _TRIPS.append("code in a file was run")


def trips() -> list[str]:
    """Whether any file was obeyed."""
    return _TRIPS


# Trees ----------------------------------------------------------------------------------------------------------------


def nested(depth: int, inside: Any = 0) -> Any:
    for _ in range(depth):
        inside = [inside]
    return inside


def array(kind: str, shape: Any, values: Any) -> Any:
    return {"$array": {"dtype": kind, "shape": shape, "values": values}}


NUMBERS: tuple[Any, ...] = (
    0, -0.0, 0.5, 1, -1, 2, 3, 1e-3, 53, 64, 1023, 1024, 2**31, 2**53 + 1, 2**63, 2**64, 10**15, 10**18, 10**300, 10**308,
    10**400, 10**4000, -(10**400), 5e-324, 1e-308, 2.0**-1022, 1e-160, 1e-100, 1e-20, 1e20, 1e100, 1e154, 1e155, 1e200,
    1.7976931348623157e308, -1.7976931348623157e308, math.nextafter(1.0, 0.0), math.nextafter(1.0, 2.0), 2.0**256, 2.0**-256,
)  # fmt: skip
NOT_FINITE = (math.nan, math.inf, -math.inf)
TEXTS: tuple[str, ...] = (
    "", "0", "1", "nan", "Infinity", "-0.0", "\0", "\ud800", "\udfff\ud800", "\ufeff", "\x1b[2J", "é", "x" * 3000, "%s%n",
    "{0.__class__}", "[bold]", "../../etc/passwd", "true", "null", "$float", "$tuple", "__class__",
)  # fmt: skip
WORDS: tuple[str, ...] = (
    "add_remove", "replace_one", "pure", "approximate", "zcdp", "epsilon", "rho", "gaussian-rho", "epsilon-delta", "gaussian",
    "laplace", "matrix-laplace", "isotropic", "wishart", "discrete-gaussian", "discrete-laplace", "eigenvalue-bound", "choice",
    "directions", "additive-wishart", "wishart-sampling", "coinpress", "auto", "inverse-gaussian", "kapralov-talwar", "clip",
    "none", "shift", "shrink", "rotation-invariant", "numeric", "categorical", "boolean", "coordinate", "error", "center",
    "drop", "zero", "exact-lattice", "idealized", "karwa-vadhan", "symq", "naive", "variance-aware", "count", "row_sum_l1",
    "gram_frobenius", "gram_nuclear", "inverse_gram_frobenius", "row_norm_square", "rank_score", "x0", "1", "row",
)  # fmt: skip
STRUCTURES: tuple[Any, ...] = (
    None, True, False, [], {}, [[]], [{}], {"": {}}, nested(60), [0] * 2000, [[0] * 50] * 50, ["a", "a"],
    {"$float": "nan"}, {"$float": "inf"}, {"$float": "-inf"}, {"$float": "1"}, {"$tuple": [1, 2]}, {"$tuple": [0.5] * 500},
    {"$tuple": 3}, {"$$": 1}, {"$": 1}, array("float64", [2], [1.0, 2.0]), array("int8", [-1], [300]),
    array("uint64", [1], [-1]), array("float32", [1], [1e300]), array("float64", [0, 2**62], []), array("float64", [0] * 70, []),
    array("float64", [2**70], [1]), array("float64", "2", [1, 2]), array("int64", [1], [10**400]), array("bool", [1], [2]),
    array("object", [1], [1]), array("float64", [], [math.pi]), array("float64", [1], [{"$float": "nan"}]), {"$array": {}},
    {"$array": {"dtype": "float64", "values": [1]}}, {"$array": {"dtype": ["float64"], "shape": [1], "values": [1]}},
)  # fmt: skip


def hostile(random: Random) -> Any:
    """A value that does not belong where it is put."""
    kind = random.random()
    if kind < 0.4:
        return random.choice(NUMBERS)
    if kind < 0.45:
        return random.choice(NOT_FINITE)
    if kind < 0.6:
        return random.choice(TEXTS)
    if kind < 0.75:
        return random.choice(WORDS)
    return nested(3000) if random.random() < 0.1 else copy.deepcopy(random.choice(STRUCTURES))


def places(tree: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every node under the root."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        keys: Iterator[Any] = iter(node) if isinstance(node, dict) else iter(range(len(node)))
        for key in keys:
            found.append((node, key))
            if isinstance(node[key], dict | list):
                waiting.append(node[key])
    return found


def renumbered(value: Any, random: Random) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return not value if isinstance(value, bool) else hostile(random)
    change: Callable[[Any], Any] = random.choice(
        [
            lambda x: x + 1,
            lambda x: x - 1,
            lambda x: -x,
            lambda x: float(x) * random.choice([0.5, 2.0, 1e-10, 1e10, 1e100, 1e-100, 1e300, 1e-300]),
            lambda x: math.nextafter(x, math.inf),
            lambda x: math.nextafter(x, -math.inf),
            lambda x: int(x) if math.isfinite(x) else 0,
            float,
            lambda _: random.choice(NUMBERS),
        ]
    )
    try:
        return change(value)
    except OverflowError:
        return -value


def retyped(value: Any, random: Random) -> Any:
    return random.choice(
        [
            str(value)[:200],
            [value],
            {"value": value},
            [value, value],
            None,
            {"$tuple": [value]},
            {"$float": str(value)[:20]},
        ]
    )


def reworded(value: Any, random: Random) -> Any:
    if not isinstance(value, str):
        return random.choice(WORDS)
    return random.choice([value + "x", value[:-1], value.upper(), value * 2, f" {value}", random.choice(WORDS)])


def _change(kind: str, node: Any, key: Any, tree: Any, random: Random) -> None:
    """Change one node of a document."""
    match kind:
        case "replace":
            node[key] = hostile(random)
        case "renumber":
            node[key] = renumbered(node[key], random)
        case "delete":
            del node[key]
        case "duplicate":
            value = copy.deepcopy(node[key])
            if isinstance(node, list):
                node[key:key] = [value] * random.choice([1, 1, 1, 30])
            else:
                node[random.choice([f"{key}2", f" {key}", random.choice(WORDS)])] = value
        case "add" if isinstance(node, list):
            node.insert(key, hostile(random))
        case "add":
            node[random.choice(TEXTS + WORDS)] = hostile(random)
        case "reword":
            node[key] = reworded(node[key], random)
        case "retype":
            node[key] = retyped(node[key], random)
        case "rename" if isinstance(node, dict):
            node[random.choice(TEXTS + WORDS)] = node.pop(key)
        case "rename":
            random.shuffle(node)
        case "transplant":  # another part of the document in this place
            other, there = random.choice(places(tree))
            node[key] = copy.deepcopy(other[there])


CHANGES = {
    "replace": 4, "renumber": 6, "delete": 2, "duplicate": 2, "add": 1, "reword": 2, "retype": 1, "rename": 1, "transplant": 2,
}  # fmt: skip
"""Kinds of changes, and how often each is made."""


def mutated_tree(tree: dict[str, Any], random: Random, *, most: int = 3) -> dict[str, Any]:
    """A copy of a parsed document with up to ``most`` nodes changed."""
    changed = copy.deepcopy(tree)
    for _ in range(random.choice([1, 1, *range(1, most + 1)])):
        found = places(changed)
        if not found:
            break
        # By depth first, so that a long list of numbers does not get all the changes.
        container = random.choice(list({id(node): node for node, _ in found}.values()))
        keys = list(container) if isinstance(container, dict) else range(len(container))
        with suppress(RecursionError):  # a copy of what is too deep
            kind = random.choices([*CHANGES], [*CHANGES.values()])[0]
            _change(kind, container, random.choice(keys), changed, random)
    return changed


# Bytes and text ---------------------------------------------------------------------------------------------------------

TOKENS = (
    b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"-0.0", b"0x10", b"01", b"1E+2", b"1_000", b"9" * 5000, b"9" * 300,
    b"null", b"true", b"{", b"}", b"[", b"]", b'"', b",", b":", b"[" * 100_000, b'{"a":' * 20_000, b"\\ud800", b"\\u0000",
    b"\xef\xbb\xbf", b"\xff\xfe", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\0", b"\r\n", b"\r", b"\x1a", b"\x85", b"\xe2\x80\xa8",
    b"[0," * 3000, b"//", b"#", b"'",
)  # fmt: skip


def mutated_bytes(content: bytes, random: Random, tokens: tuple[bytes, ...] = TOKENS) -> bytes:
    """A file damaged on its way."""
    data = bytearray(content)
    for _ in range(random.choice([1, 1, 2, 5])):
        place = random.randrange(len(data) + 1)
        kind = random.randrange(9)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << random.randrange(8)
        elif kind == 1 and place < len(data):
            data[place] = random.randrange(256)
        elif kind == 2:
            del data[place:]
        elif kind == 3:
            del data[place : place + random.choice([1, 2, 10, 100])]
        elif kind == 4:
            data[place:place] = random.choice(tokens)
        elif kind == 5:
            stop = min(len(data), place + random.choice([1, 10, 100]))
            data[place:place] = data[place:stop] * random.choice([1, 2, 50])
        elif kind == 6:
            data = bytearray(
                random.choice(
                    [
                        data.replace(b"\n", b"\r\n"),
                        data.replace(b"\n", b"\r"),
                        b"\xef\xbb\xbf" + data,
                        bytes(data).decode("utf-8", "replace").encode("utf-16"),
                        bytes(data).decode("utf-8", "replace").encode("utf-32"),
                        data + b"\0" * 9,
                        data * 2,
                        b"",
                    ]
                )
            )
        else:  # a token in the place of a number or a word
            start = place
            while start < len(data) and not chr(data[start]).isalnum():
                start += 1
            stop = start
            while stop < len(data) and (chr(data[stop]).isalnum() or data[stop : stop + 1] in (b".", b"-", b"+")):
                stop += 1
            data[start:stop] = random.choice(tokens)
    return bytes(data)


def spelled_oddly(text: str, random: Random) -> str:
    """The same JSON document in other spellings: all of them legal, none as the library writes it."""
    kind = random.randrange(5)
    if kind == 0:
        return text.replace(",", random.choice([", ", ",\n\n", ",\t"]))
    if kind == 1:
        return "\n" * 50 + text + " \n"
    if kind == 2:
        return text.replace("e", "\\u0065", random.randrange(9)) if '"' not in text[:1] else text
    if kind == 3:
        return text.replace("\n", "\r\n")
    return text


YAML_TAGS = (
    b"!!python/object/apply:mutations.code_ran []", b"!!python/name:mutations.code_ran ''",
    b"!!python/object/new:tuple [[1]]", b"!!python/object/apply:mutations.code_ran [1]", b"!!bool x", b"!!int ''",
    b"!!int 0b1", b"!!int 9:9:9", b"!!float x", b"!!float 1:2", b"!!timestamp x", b"!!timestamp 2001-01-01",
    b"!!binary x", b"!!binary aGk=", b"!!set {a, b}", b"!!omap [a: 1]", b"!!pairs [a: 1]", b"!!null x", b"!!str 1",
    b"!!map []", b"!!seq {}", b"!!int 0x" + b"f" * 5000, b"!!int " + b"9" * 5000, b"!!int " + b"9:" * 2000 + b"9",
    b"!!python/tuple [1, 2]", b"!!python/complex 1j", b"!!int +", b"!!float .", b"!local x",
    b"!<tag:yaml.org,2002:python/none> ''", b"!!merge <<: {a: 1}",
)  # fmt: skip
YAML_TOKENS = TOKENS + YAML_TAGS + (
    b"&a [*a]", b"&a {<<: *a}", b"&x [1]", b"*x", b"*none", b"<<: {a: 1}", b"? ", b"- ", b": ", b"|\n", b">\n",
    b"%YAML 1.1\n---\n",
    b"---\n", b"...\n", b"@", b"`", b".inf", b".nan", b".NaN", b"1e400", b"~", b"=", b"&" + b"a" * 3000 + b" x", b"- " * 3000,
    b"? " * 3000, b"a: &x {b: 1}\n", b"0o17", b"+.5", b"1.",
)  # fmt: skip


def mutated_yaml(text: str, random: Random) -> bytes:
    """A schema file with its bytes changed, or hostile YAML in a node's place."""
    if random.random() < 0.4:
        return hostile_yaml(random).encode("utf-8", "surrogatepass")
    return mutated_bytes(text.encode(), random, YAML_TOKENS)


def laughs(levels: int, width: int, last: str) -> str:
    """Aliases of aliases: ``width`` to the power of ``levels`` copies of a word in a few lines."""
    lines = [f"a0: &a0 [{', '.join(['lol'] * width)}]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, levels)]
    return "\n".join([*lines, last.replace("LAST", f"*a{levels - 1}"), ""])


def hostile_yaml(random: Random) -> str:
    """Whole files made to cost more than they hold."""
    place = random.choice(
        [
            "columns: LAST",
            "columns: [{name: LAST, kind: numeric, lower: 0, upper: 1}]",
            "columns: [{name: a, kind: LAST, lower: 0, upper: 1}]",
            "columns: [{name: a, kind: categorical, levels: LAST}]",
            "columns: [{name: a, kind: numeric, lower: LAST, upper: 1}]",
            "columns: [{name: a, kind: numeric, scale: LAST}]",
            "columns: [{name: a, kind: numeric, lower: 0, upper: 1, missing: LAST}]",
            "columns: [{name: a, kind: numeric, lower: 0, upper: 1}]\nrow_norm: LAST",
            "columns: [{name: a, kind: numeric, lower: 0, upper: 1}]\nversion: LAST",
            "columns: [{name: a, kind: numeric, lower: 0, upper: 1}]\nformat: LAST",
            "columns: [{name: a, kind: numeric, lower: 0, upper: 1}]\nLAST: 1",
        ]
    )
    kind = random.randrange(9)
    if kind == 0:
        return laughs(random.choice([2, 9, 30]), random.choice([2, 10]), place)
    if kind == 1:  # many columns share one long list of levels
        many, long = random.choice([(2, 3), (300, 1000), (1000, 1000)])
        levels = ", ".join(f"l{i}" for i in range(long))
        columns = "".join(f"- {{name: c{i}, kind: categorical, levels: *a}}\n" for i in range(1, many))
        return f"columns:\n- {{name: c0, kind: categorical, levels: &a [{levels}]}}\n{columns}"
    if kind == 2:
        return place.replace("LAST", "[" * random.choice([50, 900, 30_000]))
    if kind == 3:
        return place.replace("LAST", random.choice(["&a [*a]", "&a {b: *a}", "&a [[*a], *a]"]))
    if kind == 4:
        merged = "\n".join(
            [f"m{i}: &m{i} {{!!merge <<: [*m{i - 1}, *m{i - 1}], k{i}: 1}}" for i in range(1, random.choice([3, 25]))]
        )
        return f"m0: &m0 {{k: 1}}\n{merged}\n{place.replace('LAST', '*m1')}"
    token = random.choice(YAML_TAGS if kind > 5 else YAML_TOKENS).decode("utf-8", "surrogateescape")
    return place.replace("LAST", token).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
