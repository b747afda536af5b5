"""Goals: how precise the answers from a release should be, as analysts write them.

``mean(income) ± 500 at 0.9`` asks that half of the 90 % interval of that mean is 500 or less.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from dpmoments.base.errors import InputTypeError, InputValueError, closest, listed, shown
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.derived import DerivedColumn, SchemaColumn

_KINDS = ("mean", "share", "difference", "correlation", "coefficient")
_GOAL = re.compile(
    r"\s*(?P<kind>\w+)\s*\((?P<of>.*)\)\s*(?:±|\+/?-)\s*(?P<margin>[\d.]+(?:[eE][+-]?\d+)?)\s*(?P<relative>%?)"
    r"\s*(?:at\s+(?P<level>[\d.]+)\s*(?P<percent>%?)\s*)?",
    re.DOTALL,
)
_WRITTEN = (
    "write it as mean(income) ± 500, share(smoker) ± 0.01 at 0.9, mean(income, by=region) ± 5 %, "
    "difference(income, by=sex) ± 800, correlation(*) ± 0.03 or coefficient(income ~ age + educ, age) ± 50"
)
_MAX_GOALS, _LONGEST = 100, 1000
"""Max number of goals, and characters of one: a file may be hostile."""
_TOKEN = re.compile(r"`([^`]+)`|([^\W\d][\w.]*)(?!\w*\s*\()")


@dataclass(frozen=True)
class Goal:
    """Precision that is asked for: half of an interval is to be at most ``margin``."""

    kind: str  # `mean`, `share`, `difference`, `correlation` or `coefficient`
    names: tuple[str, ...]  # columns, features or patterns; of a coefficient, the formula and the coefficient
    margin: float  # in the units of the answer, or a fraction of its size
    by: str | None = None  # column of the groups
    relative: bool = False
    level: float = 0.95

    @property
    def question(self) -> str:
        """The question, without the precision."""
        names = [name if self.kind == "coefficient" or "," not in name else f"`{name}`" for name in self.names]
        return f"{self.kind}({', '.join([*names, *([f'by={self.by}'] if self.by else [])])})"

    @property
    def asked(self) -> str:
        """The precision, and the level if it is not 95 %."""
        size = f"{100.0 * self.margin:.10g} %" if self.relative else f"{self.margin:.10g}"
        return f"± {size}{'' if self.level == 0.95 else f' at {self.level:.10g}'}"

    def __str__(self) -> str:
        return f"{self.question} {self.asked}"

    def features(self, columns: Sequence[SchemaColumn]) -> tuple[tuple[str, ...], ...]:
        """Return the features that each name stands for, in the schema's order."""
        names = (
            [quoted or plain for quoted, plain in _TOKEN.findall(self.names[0])]
            if self.kind == "coefficient"
            else self.names
        )
        return tuple(_named(name, self.kind, columns) for name in names)

    def columns(self, columns: Sequence[SchemaColumn]) -> frozenset[str]:
        """Return the names of the columns that the answer needs."""
        of_feature = {feature: column.name for column in columns for feature in column.feature_names}
        needed = {of_feature[feature] for features in self.features(columns) for feature in features}
        return frozenset(needed | ({self.by} if self.by else set()))

    def fits(self, columns: Sequence[SchemaColumn]) -> bool:
        """Return True if these columns have what the goal names."""
        try:
            _check(self, columns)
        except InputValueError:
            return False
        return True


def checked_goals(given: object, columns: Sequence[SchemaColumn]) -> tuple[Goal, ...]:
    """Return goals, given as texts or as a mapping of questions to margins, or raise ValueError."""
    if isinstance(given, Mapping):
        given = [f"{question} ± {margin}" for question, margin in given.items()]
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputTypeError(f"goals are a list of texts, ['mean(income) ± 500'], got {shown(given)}")
    if len(given) > _MAX_GOALS:
        raise InputValueError(
            f"{len(given):,} goals are too many: state {_MAX_GOALS} at most, by patterns such as income*"
        )
    goals = [goal if isinstance(goal, Goal) else _read(goal) for goal in given]
    for goal in goals:
        try:
            _check(goal, columns)
        except InputValueError as error:
            raise error.preceded_by(f"goal {shown(str(goal))}: ") from None
    if repeated := [goal for index, goal in enumerate(goals) if goal in goals[:index]]:
        raise InputValueError(f"goal {shown(str(repeated[0]))} is given twice")
    return tuple(goals)


def _read(text: Any) -> Goal:
    """Read one goal, whose names are checked by the schema later.

    >>> print(_read("mean(income,by=region)+-5%"), "|", _read("coefficient(pay ~ age, age) ± 5e1 at 90 %"))
    mean(income, by=region) ± 5 % | coefficient(pay ~ age, age) ± 50 at 0.9
    """
    read = _GOAL.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    if read is None or read["kind"] not in _KINDS:
        raise InputValueError(f"goal {shown(text)} cannot be read: {_WRITTEN}")
    parts = [part.strip() for part in re.split(r",(?=(?:[^`]*`[^`]*`)*[^`]*$)", read["of"])]
    by = parts.pop()[3:].strip(" `") if len(parts) > 1 and parts[-1].startswith("by=") else None
    if read["kind"] != "coefficient":
        parts = [part.strip("`") for part in parts]
    try:
        margin, level = float(read["margin"]), float(read["level"] or 0.95)
    except ValueError:
        raise InputValueError(f"goal {shown(text)} cannot be read: {_WRITTEN}") from None
    margin, level = (margin / 100.0 if read["relative"] else margin), (level / 100.0 if read["percent"] else level)
    level = float(f"{level:.10g}")  # as it is written
    if not 0.0 < margin < math.inf:
        raise InputValueError(f"goal {shown(text)}: ± must be followed by a number above 0")
    if not 0.5 <= level < 1.0:
        raise InputValueError(f"goal {shown(text)}: the level must be at least 0.5 and below 1")
    return Goal(read["kind"], tuple(parts), margin, by, bool(read["relative"]), level)


def _check(goal: Goal, columns: Sequence[SchemaColumn]) -> None:
    """Raise ValueError unless the schema has what the goal names."""
    if goal.relative and goal.kind != "mean":
        raise InputValueError(
            f"only a mean can have a relative error (%): write the ± of a {goal.kind} in its own units"
        )
    if goal.by is None if goal.kind == "difference" else goal.by and goal.kind not in ("mean", "share"):
        raise InputValueError("by=COLUMN goes with a mean or a share, and with every difference")
    groups = [column.name for column in columns if isinstance(column, Categorical | Boolean)]
    if goal.by is not None and goal.by not in groups:
        raise InputValueError(
            f"by={goal.by} must name a categorical or Boolean column: {listed(groups) or 'none here'}"
        )
    if goal.kind == "coefficient":
        if len(goal.names) != 2 or "~" not in goal.names[0]:
            raise InputValueError("it needs a formula and a coefficient: coefficient(income ~ age + educ, age)")
        asked = _named(goal.names[1].strip("`"), goal.kind, columns)
        left, _, right = goal.names[0].partition("~")
        target, regressors = (replace(goal, names=(side,)).features(columns) for side in (left, right))
        if len(target) != 1 or len(target[0]) != 1:
            raise InputValueError("the left side of its formula must be one number, Boolean or level")
        if not {*asked} & {feature for each in regressors for feature in each} and "." not in right.split():
            raise InputValueError(f"its formula has no coefficient of '{goal.names[1]}'")
        return
    if len(goal.names) > (2 if goal.kind == "correlation" else 1):
        raise InputValueError("it names too many columns: state one goal for each, or a pattern such as income*")
    if goal.by is not None and any(goal.by in (name, name.partition("=")[0]) for name in goal.names):
        raise InputValueError(f"'{goal.by}' makes the groups: name another column")
    if len(goal.columns(columns)) < (2 if goal.kind == "correlation" else 1):
        raise InputValueError("a correlation is of two columns: correlation(age, income) or correlation(*)")


def _named(name: str, kind: str, columns: Sequence[SchemaColumn]) -> tuple[str, ...]:
    """Return the features that a name or pattern stands for."""
    shares, numbers = list[str](), list[str]()
    for column in columns:
        is_share = isinstance(column, Categorical) or (isinstance(column, Boolean | DerivedColumn) and column.is_flag)
        (shares if is_share else numbers).extend(column.feature_names)
    known: dict[str, tuple[str, ...]] = {feature: (feature,) for column in columns for feature in column.feature_names}
    known |= {column.name: tuple(column.feature_names) for column in columns}
    if name in known:
        found = known[name]
        wrong = shares if kind == "mean" else numbers if kind == "share" else []
        if found[0] in wrong:
            raise InputValueError(
                f"'{name}' has {'a share' if kind == 'mean' else 'a mean'}: ask for "
                f"{'share' if kind == 'mean' else 'mean'}({name})"
            )
        return found
    alike = shares if kind == "share" else numbers
    if kind == "correlation" and len(numbers) < 2:  # as of yes/no values
        alike = [*numbers, *shares]
    found = tuple(feature for feature in alike if fnmatchcase(feature, name))
    if not found:
        close = closest(name, known)
        raise InputValueError(f"the schema has no column '{name}'{f': did you mean {close!r}?' if close else ''}")
    return found
