"""DeclaredColumn: a column as a codebook or a file declares it, in entries of a schema."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dpmoments.base.text_files import USUAL_NULLS

Code = str | int | float

_MISSING_LABELS = re.compile(
    r"(n/?a|dk|rf|missing|unknown|not known|un(certain|decided|specified)|refus(ed|al)|declined?|prefer not|"
    r"no (answer|response|data|info)|non-?response|inapplicable|do ?n.?t know|"
    r"not (answered|ascertained|available|applicable|reported|stated|recorded|asked)|"
    r"keine? (angabe|antwort)|wei(ß|ss) nicht|k\.? ?a\.?|sans r[ée]ponse|ne sait pas|no sabe|sin dato)\b",
    re.IGNORECASE,
)
"""Labels of codes that mean a missing value."""
_YES = ("yes", "true", "ja", "oui", "sí", "si", "y", "t", "checked", "selected")
_NO = ("no", "false", "nein", "non", "n", "f", "unchecked", "not selected")
_MAX_SPAN = 10
"""Distance of two or three codes from which they are ends of a range of numbers."""
_MAX_LABEL = 60
"""Length of a value label from which a level is its code."""


@dataclass(frozen=True, kw_only=True)
class DeclaredColumn:
    """Column as a codebook, or a file, declares it.

    ``names`` are those that it may have in a table, the likeliest first, and ``where`` says who declares it. ``labels`` are its
    values with their labels (None: without), ``missing`` its missing codes, ``rest`` other entries of a schema, such as
    ``format``. If ``by_label``, the table's cells are read as their labels. ``note`` is for the curator, and ``from_data`` says
    which declaration may have been written from the data.
    """

    names: tuple[str, ...]
    where: str
    kind: str | None = None
    description: str | None = None
    lower: Code | None = None
    upper: Code | None = None
    labels: Mapping[Code, str | None] = field(default_factory=dict)
    missing: tuple[Code, ...] = ()
    rest: Mapping[str, Any] = field(default_factory=dict)
    by_label: bool = False
    note: str = ""
    from_data: str = ""


class Entry(NamedTuple):
    """Value of an entry of a schema (None: blank), with a comment for the curator."""

    value: Any
    comment: str = ""


def plain_text(text: object, longest: int = 300) -> str | None:
    """Return a text on one line, without markup; None for nothing.

    >>> plain_text(" Age<br>in  years ")
    'Age in years'
    """
    if not isinstance(text, str):
        return None
    line = " ".join(html.unescape(re.sub(r"</?[a-zA-Z][^>]*>", " ", text)).split())
    line = "".join(letter for letter in line if letter.isprintable())
    return (line if len(line) <= longest else f"{line[: longest - 1]}…") or None


def as_codes(texts: Iterable[Code]) -> tuple[Code, ...]:
    """Return codes as integers if all of them are, else as they are.

    >>> as_codes(["1", "2"]), as_codes(["01", "2"]), as_codes([1.0, 2.0])
    ((1, 2), ('01', '2'), (1, 2))
    """
    codes = tuple(int(code) if isinstance(code, float) and code.is_integer() else code for code in texts)
    if all(isinstance(code, int) or re.fullmatch(r"0|-?[1-9]\d{0,14}", str(code)) for code in codes):
        return tuple(int(code) for code in codes)
    return codes if len({type(code) for code in codes}) < 2 else tuple(map(str, codes))


def number_in(text: object) -> float | int | None:
    """Return the number that a text holds; None for anything else."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        return text
    stated = text.strip() if isinstance(text, str) else ""
    if not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", stated):
        return None
    return int(stated) if re.fullmatch(r"[-+]?\d+", stated) else float(stated)


def is_missing_label(label: str | None) -> bool:
    """Return True if a label says that the value is missing.

    >>> is_missing_label("8. DK"), is_missing_label("No answer"), is_missing_label("No second reason")
    (True, True, False)
    """
    return label is not None and bool(_MISSING_LABELS.match(re.sub(r"^[\W\d]+", "", label)))


def entries_of(column: DeclaredColumn) -> dict[str, Entry]:
    """Return the entries of a schema that follow from a declaration, without a name."""
    labels, missing, named = _without_missing(column)
    entries: dict[str, Any] = {"kind": column.kind}
    comments: dict[str, str] = {}
    description = plain_text(column.description)
    codes = as_codes(labels)
    words = [plain_text(label) for label in labels.values()]

    whole = [code for code in codes if isinstance(code, int)]
    if 1 < len(whole) == len(codes) < 4 and max(whole) - min(whole) > _MAX_SPAN:  # ends of a range that have labels
        entries |= {"kind": "numeric", "lower": column.lower, "upper": column.upper}
        comments["kind"] = "labels of " + ", ".join(f"{code}: {word}" for code, word in zip(codes, words, strict=True))
    elif len(codes) == 2 and (
        column.kind == "boolean"
        or all(words)
        or any(_means(place, codes, words, _YES) and _means(1 - place, codes, words, _NO) for place in (0, 1))
    ):
        entries["kind"] = "boolean"
        true, false = (0, 1) if _means(0, codes, words, _YES) or _means(1, codes, words, _NO) else (1, 0)
        if (codes[false], codes[true]) != (0, 1):
            entries |= {"true_values": [codes[true]], "false_values": [codes[false]]}
        if all(words):
            description = plain_text(f"{description or column.names[0]} (true: {words[true]}, false: {words[false]})")
    elif len(codes) > 1 or (codes and column.kind == "categorical"):
        entries["kind"] = "categorical"
        short = all(word and len(word) <= _MAX_LABEL for word in words) and len(set(words)) == len(words)
        entries["levels"] = words if column.by_label and short else list(codes)
        if entries["levels"] != words and any(words):
            comments["levels"] = ", ".join(f"{code}: {word}" for code, word in zip(codes, words, strict=True))
        if len(whole) == len(codes) > 3 and max(whole) - min(whole) == len(whole) - 1:
            comments["kind"] = f"a scale? Then kind: numeric, lower: {min(whole)}, upper: {max(whole)}, without levels"
    elif entries["kind"] in ("numeric", "date"):
        entries |= {"lower": column.lower, "upper": column.upper}
    elif entries["kind"] == "categorical":
        entries["levels"] = None

    if column.from_data:
        entries["confirmed"], comments["confirmed"] = None, column.from_data
    if missing:
        their_labels = [label for label in named.values() if label] if column.by_label else []
        entries["missing_values"] = [*missing, *(their_labels if entries["kind"] == "categorical" else [])]
        declared = set(as_codes(column.missing))
        proposed = ", ".join(
            f"{code}: {plain_text(label, 40)}" for code, label in named.items() if code not in declared
        )
        comments["missing_values"] = f"proposed by label, {proposed}" if proposed else ""
    if entries["kind"] is None:
        comments["kind"] = column.note
    elif column.note:
        comments["kind"] = "; ".join(filter(None, [column.note, comments.get("kind")]))
    if entries["kind"] is not None:
        entries |= {key: value for key, value in column.rest.items() if key not in entries}
        entries["missing"] = "available" if missing else "error"
    if description is not None:
        entries = {"description": description, **entries}
    own = {key: comments.get(key, "") for key in entries}
    return {
        key: Entry(
            value, "; ".join(filter(None, ["" if value is None or key == "missing" else column.where, own[key]]))
        )
        for key, value in entries.items()
    }


def _without_missing(column: DeclaredColumn) -> tuple[dict[Code, str | None], tuple[Code, ...], dict[Code, str | None]]:
    """Divide values into levels and missing codes, with the labels of these."""
    codes = dict(zip(as_codes(column.labels), column.labels.values(), strict=True))
    missing = [code for code in as_codes(column.missing) if code not in USUAL_NULLS]
    missing = [code for code in missing if column.kind != "numeric" or number_in(code) is not None or codes]
    named = {code: codes.pop(code) for code in missing if code in codes}
    # Those whose label says so, at an end of the list: the codes of a range are inside.
    while codes and is_missing_label(codes[last := next(reversed(codes))]):
        named[last] = codes.pop(last)
    while codes and is_missing_label(codes[first := next(iter(codes))]):
        named[first] = codes.pop(first)
    every = dict.fromkeys([*missing, *named])
    is_text = column.kind == "categorical" and codes and not all(isinstance(code, int) for code in codes)
    written: list[Code] = []
    for code in every:
        number = None if is_text else number_in(code)
        written.append(code if number is None else number)
    texts = sorted(code for code in written if isinstance(code, str))
    return codes, (*sorted(code for code in written if not isinstance(code, str)), *texts), named


def _means(index: int, codes: Sequence[Code], words: Sequence[str | None], known: Sequence[str]) -> bool:
    return str(words[index] or codes[index]).casefold() in known


def merged(declared: Sequence[dict[str, Entry]]) -> dict[str, Entry]:
    """Merge the entries of several declarations; a conflict is blank, and says what each has."""
    complete = [entries for entries in declared if not any(entry.value is None for entry in entries.values())]
    kinds = {entries["kind"].value: entries["kind"] for entries in complete or declared if entries["kind"].value}
    if len(kinds) > 1:
        said = " or ".join(f"{kind} ({entry.comment})" for kind, entry in kinds.items())
        return {"kind": Entry(None, f"conflict: {said}")}
    result: dict[str, Entry] = {}
    alike = [entries for entries in declared if entries["kind"].value in (*kinds, *([] if kinds else [None]))]
    for key in dict.fromkeys(key for entries in [*complete, *alike] for key in entries):
        stated = [entry for entries in [*complete, *alike] if (entry := entries.get(key)) and entry.value is not None]
        values = {repr(entry.value): entry for entry in stated}
        if len(values) < 2 or key == "description":
            result[key] = stated[0] if stated else next(entries[key] for entries in alike if key in entries)
        elif key == "missing":
            result[key] = Entry("available")
        else:
            result[key] = Entry(
                None, "conflict: " + " or ".join(f"{entry.value} ({entry.comment})" for entry in values.values())
            )
    return result
