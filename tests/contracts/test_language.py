"""Plain English in docstrings, notes, messages, reader pages and the project's own pages: nothing that the style forbids.

    python tests/contracts/test_language.py          every place of every rule
    python tests/contracts/test_language.py told     every place of one rule

A sentence that is right as it stands says ``language: ok`` in a comment on its last line.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for folder in (".", "docs", "docs/api") for path in (ROOT / folder).glob("*.md"))

LONG = "long first line"
MAX_FIRST_LINE = 90
"""Characters in the first line of a docstring or note: reasons and formulas are below it."""

FIRST_LINES = {
    "clause": r"(Of|What|Whose|Which|How|Whether|That|Those|Its|Their|As|For|On|Where|Who|Whoever)\b",
    "pronoun": r"(The same|It|They|This|One sentence)\b",
}
"""What no first line of a docstring, and no note of a constant, begins with."""

PHRASES = {
    "out of the noise": r"\bout of the noise\b",
    "so many": r"\bso (many|much|few) (?!that|as)",
    "is none": r"\b(is|are|was|were) none\b",
    "is no x": (
        r"\b(is|are|was|were|be) no (?!longer|more|less|larger|smaller|better|worse|closer|way|reason|need|such|noise|file)[a-z]+"
    ),
    "whoever": r"\b[Ww]ho(so)?ever\b",
    "beside": r"\bbeside\b",
    "x alone": r"\b(?!let|stand)[a-z]+ alone\b",
    "told": r"\b(be|is|are|was|not) told\b|\btells? (nobody|nothing|of)\b",
    "that of": r"\b(is|are|be|was|were|has|have|and|as|than) (that|those) of\b",
    ", too": r", too\b",
    "archaic": r"\b(anew|for ever|farther|seldom|whither|thereof|therein|hereby|lest|the like|in the part of)\b",
    "taken for": r"\btaken (for|as)\b|\btaken to be\b",
    "one a row": (
        r"\b(one|two|numbers?|values?|line|sentence|sequence|feature|step|sum|entry|page|correlation) an? "
        r"(row|cell|feature|column|level|group|step|unit|partition|coordinate|side|pair|piece|line|place|mechanism|method|draw)\b"
    ),
    "as it stands": r"\bas (it|they) (stands?|was|were)\b",
    "say": r", say\b|\bsay, ",
    "law": r"\blaws?\b",
    "becomes of": r"\bbecomes? of\b",
    "turn round": r"\bturn(s|ed)? (it|them)? ?round\b",
    "moved into": r"\bmoved (in)?to (a|the|its|their|it)\b",
    "comes to": r"\bcomes? to\b",
    "words for nothing": r"\bwords? for nothing\b",
    "tell apart": r"\btell?s? .{0,12}apart\b|\btold apart\b",
    "label of a warning": r"\b(WARNING|CAUTION|Caution)[:.]",
    "where it is": r"^.{0,40}\bwhere (it|they|there|that) (is|are)\b",
}
"""What no docstring, message or reader page says."""

ANY_PHRASE = re.compile("|".join(f"(?:{pattern})" for pattern in PHRASES.values()))

VERBS = frozenset(
    """Add Adjust Allocate Allow Append Apply Ask Assert Audit Bound Build Calibrate Call Capitalize Cast Center
    Charge Check Choose Clip Close Collect Combine Commit Compare Compile Compose Compute Configure Convert Copy
    Correct Count Create Decide Decode Decrypt Derive Describe Detect Divide Download Draft Draw Drop Emit Empty
    Encode Encrypt Ensure Escape Estimate Evaluate Expand Export Fill Filter Find Finish Fit Flag Flush Forecast
    Format Generate Grant Group Hash Invert Iterate Join Limit List Load Log Make Map Mark Mask Measure Merge
    Move Multiply Normalize Open Parse Pick Plan Plot Pool Predict Prefix Prepare Print Process Project Quote
    Raise Rank Read Rebuild Recompute Record Reduce Refund Refuse Register Reject Release Remove Rename Render
    Repair Replace Replay Report Require Reserve Restrict Return Round Run Sample Save Scale Scan Search See
    Select Send Serialize Set Show Shrink Simulate Solve Sort Split Standardize Start Stop Store Sum Summarize
    Tabulate Test Track Transform Try Undo Update Use Validate Verify Warn Whiten Wrap Write Yield""".split()  # noqa: SIM905
)
"""First words of docstrings of functions that are no properties."""


@dataclass(frozen=True)
class Hit:
    """A place that breaks a rule."""

    rule: str
    where: str
    text: str


def hits_in_phrases(text: str, where: str) -> Iterator[Hit]:
    if not ANY_PHRASE.search(text):
        return
    for rule, pattern in PHRASES.items():
        for hit in re.finditer(pattern, text):
            yield Hit(rule, where, text[max(0, hit.start() - 40) : hit.end() + 40].replace("\n", " "))


def hits_in_source(source: str, name: str) -> Iterator[Hit]:
    nodes, lines = list(ast.walk(ast.parse(source))), source.split("\n")
    documented: set[int] = set()

    def excused(node: ast.expr) -> bool:
        return "language: ok" in lines[(node.end_lineno or node.lineno) - 1]

    for node in nodes:
        if isinstance(node, ast.FunctionDef) and (text := ast.get_docstring(node)):
            a_property = any("property" in ast.unparse(one) for one in node.decorator_list)
            if not a_property and text.split()[0].strip(".,:;") not in VERBS:
                yield Hit("no verb", f"{name}:{node.lineno}", text.splitlines()[0])
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                documented.add(id(value))
                text = value.value.strip()
                if len(text.split("\n")[0]) > MAX_FIRST_LINE:
                    yield Hit(LONG, f"{name}:{value.lineno}", text.split("\n")[0])
                if excused(value):
                    continue
                for rule, opening in FIRST_LINES.items():
                    if re.match(opening, text):
                        yield Hit(rule, f"{name}:{value.lineno}", text.splitlines()[0])
                prose = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith((">>> ", "... ")))
                yield from hits_in_phrases(prose, f"{name}:{value.lineno}")
    inner = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented | inner:
            text = node.value
        else:
            continue
        if len(text.split()) >= 3 and not excused(node):
            yield from hits_in_phrases(text, f"{name}:{node.lineno}")


def hits_in_page(page: str, name: str) -> Iterator[Hit]:
    prose = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), page, flags=re.S)
    prose = re.sub(r"`[^`\n]*`", "``", prose)
    for number, line in enumerate(prose.split("\n"), 1):
        if "language: ok" not in line:
            yield from hits_in_phrases(line, f"{name}:{number}")


def all_hits() -> list[Hit]:
    hits: list[Hit] = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        hits += hits_in_source(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
    for path in PAGES:
        hits += hits_in_page(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
    return hits


@pytest.mark.long
def test_nothing_forbidden_is_said() -> None:
    hits = all_hits()
    assert not hits, "\n".join(map(str, hits))


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ('def f():\n    """What it gives."""\n', "clause"),
        ('def f():\n    """Those of it."""\n', "no verb"),
        ('A = 1\n"""It is one."""\n', "pronoun"),
        ('raise ValueError("there are so many rows")\n', "so many"),
        ('print("Caution. Few rows were read.")\n', "label of a warning"),
        ('raise ValueError(f"{x} is no column of the table")\n', "is no x"),
        ('class A:\n    """Rows.\n\n    Nobody is told of them.\n    """\n', "told"),
    ],
)
def test_a_planted_sentence_is_found(source: str, rule: str) -> None:
    assert rule in {hit.rule for hit in hits_in_source(source, "x.py")}
    excused = source.replace('"""\n', '"""  # language: ok\n').replace('")\n', '")  # language: ok\n')
    assert rule == "no verb" or rule not in {hit.rule for hit in hits_in_source(excused, "x.py")}


@pytest.mark.parametrize("length", [MAX_FIRST_LINE, MAX_FIRST_LINE + 1])
def test_a_first_line_ends_in_time(length: int) -> None:
    line = "Return" + "." * (length - 6)
    source = f'def f():\n    """{line}\n\n    {"x" * 100}\n    """\nA = 1\n"""{line}"""\n'
    rules = [hit.rule for hit in hits_in_source(source, "x.py")]
    assert rules == [LONG] * 2 * (length > MAX_FIRST_LINE)


def test_code_of_a_page_is_no_prose() -> None:
    page = "We are told.\n```python\nis_told  # is told\n```\nAll is told in `is told`.\n"
    assert [hit.where for hit in hits_in_page(page, "p")] == ["p:1", "p:5"]


if __name__ == "__main__":
    for hit in all_hits():
        if hit.rule in sys.argv[1:] or not sys.argv[1:]:
            print(f"{hit.where}: {hit.rule}: {hit.text}")
