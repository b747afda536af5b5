"""Formulas of R and of patsy, whose terms are affine functions of released features."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from keyword import iskeyword
from typing import Any

import numpy as np

from dpmoments.analysis.available_cases import AvailableCases
from dpmoments.analysis.released import Moments, columns_with_indices, needs_mean
from dpmoments.base.errors import InputValueError, listed, meant, shown
from dpmoments.base.values import FloatArray, IntegerArray, first_largest
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.repair import Repair
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.derived import DerivedColumn, Power, Product, SchemaColumn
from dpmoments.schema.encoding import Encoding
from dpmoments.schema.schema import Schema

Monomial = frozenset[tuple[str, int]]
"""Features of columns with their exponents: every feature is such a product."""


@dataclass(frozen=True)
class Products:
    """Products of features, by what they are made of."""

    monomials: Sequence[Monomial]
    zero_one: frozenset[str]  # features of columns that are 0 or 1
    column_of: dict[str, str]  # the categorical column of each level
    index: dict[Monomial, int]

    @classmethod
    def of(cls, schema: Schema) -> Products:
        """Return the products of a schema's features."""
        monomials: list[Monomial] = []
        for column in schema.columns:
            if not isinstance(column, DerivedColumn):
                monomials += [frozenset({(feature, 1)}) for feature in column.feature_names]
            elif isinstance(column.stated, Power):
                monomials.append(frozenset({(column.stated.column, column.stated.exponent)}))
            else:
                first, second = (factor.feature_names for factor in column.factors)
                monomials += [frozenset({(one, 1), (other, 1)}) for one in first for other in second]
        levels = {
            level: column.name
            for column in schema.table_columns
            if isinstance(column, Categorical)
            for level in column.feature_names
        }
        flags = {column.name for column in schema.table_columns if isinstance(column, Boolean) and column.is_flag}
        index = {monomial: i for i, monomial in reversed(list(enumerate(monomials)))}
        return cls(monomials, frozenset(flags | set(levels)), levels, index)

    def product(self, first: int, second: int) -> Monomial | None:
        """Return the product of two features; None if it is 0 in every row."""
        exponents: Counter[str] = Counter()
        for index in (first, second):
            exponents.update(dict(self.monomials[index]))
        columns = [self.column_of[name] for name in exponents if name in self.column_of]
        if len(set(columns)) < len(columns):
            return None
        return frozenset((name, 1 if name in self.zero_one else power) for name, power in exponents.items())

    def released(self, monomial: Monomial) -> int:
        """Return the index of a product of features."""
        if monomial in self.index:
            return self.index[monomial]
        powers = {self.column_of.get(name, name): power for name, power in sorted(monomial)}
        names, levels = list(powers), set(self.column_of.values())
        what = monomial_name(monomial) if len(names) == 1 else f"the product of {' and '.join(map(repr, names))}"
        if len(names) == 1 and max(powers.values()) <= 4:
            kind, needed = "power", f"dpm.Power({names[0]!r}, {powers[names[0]]})"
        elif len(names) == 2 and max(powers.values()) == 1 and not set(names) <= levels:
            kind, needed = "product", f"dpm.Product({', '.join(map(repr, names))})"
        else:
            pairs = " with a level for each pair of levels" if set(names) <= levels else ""
            raise InputValueError(
                f"{what} was not released, and no schema can declare it: before the next release add it to the table as a "
                f"column of its own{pairs}"
            )
        raise InputValueError(
            f"{what} was not released: it needs {needed} in the schema of the release",
            shell=f"{what} was not released: it must be a column 'kind: {kind}' of the schema of the release",
        )


def monomial_name(monomial: Monomial) -> str:
    """Return the name of a product as a formula writes it."""
    return ":".join(name if power == 1 else f"{name}^{power}" for name, power in sorted(monomial))


@dataclass(frozen=True, eq=False, kw_only=True)
class WithTerms(Moments):
    """Moments of a release's features, and of terms that are affine functions of them."""

    base: Moments
    # by term and name of its columns: (d + 1,), weights of the constant and of the features, in original units
    terms: Mapping[str, Mapping[str, FloatArray]]
    # linear map from encoded features to these and the encoded columns of terms, which have weights of norm 1
    carried: FloatArray

    @classmethod
    def of(cls, base: Moments, terms: Mapping[str, Mapping[str, FloatArray]]) -> WithTerms:
        """Return a release with terms."""
        linear = np.array([weights[1:] for term in terms.values() for weights in term.values()])
        of_terms, features = linear * base.encoding.scale, np.eye(linear.shape[1])
        carried = np.vstack([features, of_terms / np.linalg.norm(of_terms, axis=1)[:, None]])
        values = {entry.name: getattr(base, entry.name) for entry in fields(Moments)} | {
            "noise_model": None,
            "noisy_gram": carried @ base.noisy_gram @ carried.T,
            "noisy_sum": None if base.noisy_sum is None else carried @ base.noisy_sum,
            "center": None if base.center is None else carried @ base.center,
            "weighting": None if base.weighting is None else base.weighting.carried(np.vstack([features, linear])),
        }
        return cls(**values, base=base, terms=terms, carried=carried)

    @property
    def weights(self) -> FloatArray:
        """Weights of the constant and the release's features in all columns, (d + m, d + 1)."""
        d = len(self.base.feature_names)
        return np.vstack([np.eye(d, d + 1, 1), *(row for term in self.terms.values() for row in term.values())])

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, and of the columns of terms."""
        return (*self.base.feature_names, *(name for term in self.terms.values() for name in term))

    @property
    def column_names(self) -> tuple[str, ...]:
        """Name of the table's column behind each; of several ones, its own name."""
        own, used = np.array(self.base.column_names), self.weights[:, 1:] != 0.0
        behind = [set(own[each].tolist()) for each in used]
        return tuple(
            each.pop() if len(each) == 1 else name for each, name in zip(behind, self.feature_names, strict=True)
        )

    @cached_property
    def encoding(self) -> Encoding:
        """The affine map of features and terms."""
        weights, own = self.weights, self.base.encoding
        return Encoding(
            weights[:, 0] + weights[:, 1:] @ own.offset, np.linalg.norm(weights[:, 1:] * own.scale, axis=1), 1.0
        )

    @property
    def feature_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Bounds that follow from those of the features."""
        lower, upper = self.base.feature_bounds
        weights = self.weights[:, 1:]
        with np.errstate(invalid="ignore"):
            ends = np.nan_to_num(weights * lower), np.nan_to_num(weights * upper)
        least, most = np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)
        return least + self.weights[:, 0], most + self.weights[:, 0]

    @cached_property
    def noise(self) -> NoiseLaw | None:
        """Noise distribution of Σ z zᵀ of features and terms."""
        with_constant = np.pad(self.carried, ((1, 0), (1, 0)))
        with_constant[0, 0] = 1.0
        return None if self.base.noise is None else self.base.noise.carried(with_constant)

    @property
    def _repaired(self) -> tuple[FloatArray | None, FloatArray]:
        mean, gram = self.base._repaired
        return None if mean is None else self.carried @ mean, self.carried @ gram @ self.carried.T

    def with_repair(self, repair: Repair | str) -> WithTerms:
        """Return the release with another repair."""
        return WithTerms.of(self.base.with_repair(repair), self.terms)

    @property
    def as_drawn(self) -> Moments:
        """Moments of the drawn features."""
        return self.base.as_drawn

    @property
    def available(self) -> AvailableCases | None:
        """Moments of the rows whose values are present."""
        return self.base.available

    @property
    def _first(self) -> IntegerArray:
        return np.asarray(np.argmax(self.weights[:, 1:] != 0.0, axis=1))

    @property
    def present(self) -> FloatArray | None:
        """Share of the rows that have a value; a term is of features that are missing together."""
        return None if self.base.present is None else self.base.present[self._first]

    @property
    def both_present(self) -> FloatArray | None:
        """Share of the rows that have two values."""
        return None if self.base.both_present is None else self.base.both_present[np.ix_(self._first, self._first)]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values of the release without terms."""
        return self.base.to_dict()


_ADVICE = (
    "A formula may use columns, features, C(column) and I(column**2); put names such as `hours-per-week` in backticks."
)


@dataclass(frozen=True, eq=False)
class _Factor:
    """One factor of a term."""

    plain: str | None  # the column or feature that it is, without a coding of its own
    columns: Mapping[str, FloatArray]  # of a column of levels: each level's
    coded: Mapping[str, FloatArray] | None = None  # of a column of levels, beside a constant


def read_formula(
    release: Moments, formula: str, references: Mapping[str, str]
) -> tuple[Moments, str, list[str], bool, dict[str, str]]:
    """Read a formula of R or patsy.

    Return the release with the formula's terms, target, features, intercept, and levels to compare with.
    """
    import formulaic
    from formulaic.errors import FormulaicError

    base = release.base if isinstance(release, WithTerms) else release
    names = dict.fromkeys([*re.findall(r"`([^`]*)`", formula), *(column.name for column in base.schema.table_columns)])
    quoted = {
        name: name if name.isidentifier() and not iskeyword(name) else f"quoted_{at}_" for at, name in enumerate(names)
    }
    text = re.sub(r"`([^`]*)`", lambda match: quoted[match[1]], formula)
    text = re.sub(r"\b(as\.factor|factor)\(", "C(", text)
    for found in re.finditer(r"(?:C\()?([^\W\d][\w.]*)\)?\[(?:T\.)?([^\]\[~]+)\]", text):  # a level: region[T.north]
        name = f"{next((each for each, code in quoted.items() if code == found[1]), found[1])}={found[2]}"
        if name in base.feature_names:
            text = text.replace(found[0], quoted.setdefault(name, f"quoted_{len(quoted)}_"))
    left, _, outside = text.partition("~")
    if not left.strip():
        raise InputValueError(f"the formula {shown(formula)} has no target: write it as 'target ~ feature + feature'")
    while (without := re.sub(r"\b[\w.]+\([^()]*\)", "", outside)) != outside:
        outside = without
    written = {placeholder: name for name, placeholder in quoted.items()}
    for match in re.finditer(r"([A-Za-z_.][\w.]*)\s*(?:\*\*|\^)\s*(\d+)", outside):
        column, power = written.get(match[1], match[1]), int(match[2])
        refused = (
            f"In a formula, '{column}**{power}' crosses {column} with itself, so {column} would be fitted without its power. "
            f"Write I({match[1] if column == match[1] else f'`{column}`'}**{power})."
        )
        raise InputValueError(
            f"{refused} The release needs dpm.Power({column!r}, {power}) in its schema.",
            shell=f"{refused} It must be a column 'kind: power' of the schema of the release.",
        )
    if "|" in outside:
        raise InputValueError(
            f"the formula {shown(formula)} has '|', which means groups or absorbed effects in other programs: write C(column) "
            "for a coefficient of each level; dpm.release_groups makes a release for each group"
        )
    targets = {written.get(name, name).partition("=")[0] for name in re.findall(r"[\w.]+", left)}
    others = [quoted[column.name] for column in base.schema.table_columns if column.name not in targets]
    try:
        read: Any = formulaic.Formula(text, _context={"__formulaic_variables_available__": others})
        sides = [[[str(each.expr) for each in term.factors] for term in side] for side in (read.lhs, read.rhs)]
    except (FormulaicError, AttributeError, TypeError, ValueError, SyntaxError) as error:
        raise InputValueError(
            f"the formula {shown(formula)} cannot be read ({type(error).__name__}): write it as 'target ~ "
            "feature + feature', names with other signs in backticks: `hours-per-week`"
        ) from None
    if len(sides[0]) != 1:
        raise InputValueError(f"the formula {shown(formula)} has {len(sides[0])} targets: a regression has one")
    terms = [[factor for factor in term if factor != "1"] for term in sides[1]]
    if terms == [[]]:
        raise InputValueError(f"the formula {shown(formula)} has no feature: describe() has the mean of a column")
    reader = _Reader(base, written, dict(references), dict(release.terms) if isinstance(release, WithTerms) else {})
    features = [name for term in terms if term for name in reader.term(term, terms)]
    target = reader.term(sides[0][0], [[]])
    if len(target) > 1:
        raise InputValueError(f"the target of {shown(formula)} has {len(target)} columns: a regression has one target")
    given = WithTerms.of(base, reader.terms) if reader.terms else base
    return given, target[0], list(dict.fromkeys(features)), [] in terms, reader.stated


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reader of one term after the other; it gathers those that are not features."""

    release: Moments
    written: Mapping[str, str]  # names by what stands for them in the code
    stated: dict[str, str]
    terms: dict[str, Mapping[str, FloatArray]]

    @cached_property
    def products(self) -> Products:
        return Products.of(self.release.schema)

    @cached_property
    def columns(self) -> dict[str, tuple[SchemaColumn, range]]:
        return {column.name: (column, indices) for column, indices in columns_with_indices(self.release)}

    def term(self, factors: list[str], every: list[list[str]]) -> list[str]:
        """Return names of a term: of columns or features of the release, or of columns in ``terms``."""
        read = [self.factor(factor) for factor in factors]
        plain = [each.plain for each in read]
        if len(plain) == 1 and plain[0] is not None:
            return [plain[0]]
        if None not in plain:
            for column in self.release.schema.derived_columns:
                if isinstance(column.stated, Product) and sorted(column.stated.factors) == sorted(map(str, plain)):
                    return [column.name]

        columns = {"": self.constant(1.0)}
        for at, each in enumerate(read):
            # as in patsy: beside the same term without it, a column of levels has one coefficient less
            beside = any({*factors[:at], *factors[at + 1 :]} == set(other) for other in every)
            own = each.coded if beside and each.coded is not None else each.columns
            columns = {
                f"{before}:{name}".lstrip(":"): self.product(weights, others)
                for before, weights in columns.items()
                for name, others in own.items()
            }
        result: list[str] = []
        gathered: dict[str, FloatArray] = {}
        for name, weights in columns.items():
            if not weights.any():  # of two levels of one column
                continue
            if not weights[1:].any():
                raise InputValueError(f"'{name}' is the same number in every row: leave it out")
            if weights[0] and self.release.noisy_sum is None:
                raise needs_mean(f"'{name}'")
            both, used = self.release.both_present, np.flatnonzero(weights[1:])
            if both is not None and not np.allclose(both[np.ix_(used, used)], both[used[0], used[0]], rtol=1e-9):
                raise InputValueError(
                    f"'{name}' is made of {listed([self.release.feature_names[index] for index in used])}, whose values are "
                    "missing in different rows: before the next release add it to the table as a column of its own"
                )
            feature = self.feature(weights)
            result.append(feature or name)
            if feature is None:
                gathered[name] = weights
        if gathered:
            self.terms[":".join(map(self.as_written, factors))] = gathered
        return result

    def constant(self, value: float) -> FloatArray:
        return np.append(value, np.zeros(len(self.release.feature_names)))

    def unit(self, feature: int) -> FloatArray:
        return np.asarray(np.eye(1, len(self.release.feature_names) + 1, feature + 1)[0])

    def feature(self, weights: FloatArray) -> str | None:
        """Return the feature that is a column; None for others."""
        (used,) = np.nonzero(weights)
        alone = len(used) == 1 and used[0] > 0 and weights[used[0]] == 1.0
        return self.release.feature_names[used[0] - 1] if alone else None

    # Factors.

    def as_written(self, text: str) -> str:
        """Return a text with the names that stood in backticks."""
        return re.sub(r"quoted_\d+_", lambda match: f"`{self.written[match[0]]}`", text)

    def factor(self, code: str) -> _Factor:
        text = self.as_written(code)
        try:
            node = ast.parse(code, mode="eval").body
        except SyntaxError:  # a name that Python has for itself, such as class
            return self.column(text, text)
        if (name := self.name(node)) is not None:
            return self.column(name, name)
        function = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and function == "C":
            return self.coded(node, text)
        if isinstance(node, ast.Call) and function == "poly":
            return _Factor(None, self.polynomials(node, text))
        weights = self.value(node)
        return _Factor(self.feature(weights), {text: weights})

    def column(self, name: str, text: str) -> _Factor:
        """Return a column or a feature as it is."""
        if name not in self.columns:
            return _Factor(name, {text: self.unit(self.index(name))})
        column, indices = self.columns[name]
        if not isinstance(column, Categorical):
            return _Factor(name, {column.feature_names[at]: self.unit(index) for at, index in enumerate(indices)})
        reference = self.stated.get(name) or self.release.feature_names[most_frequent(self.release, indices)]
        levels = self.levels(name)
        coded = {f"{text}[T.{level}]": weights for level, weights in levels.items() if f"{name}={level}" != reference}
        return _Factor(name, {f"{text}[{level}]": weights for level, weights in levels.items()}, coded)

    def index(self, name: str) -> int:
        if name not in self.release.feature_names:
            known = [*self.columns, *self.release.feature_names]
            weight = self.release.schema.sampling_weight
            if weight is not None and name == weight.name:
                raise InputValueError(
                    f"'{name}' is the sampling weight: answers are weighted by it already. Leave it out of the formula"
                )
            raise InputValueError(f"'{name}' is not a column or feature of this release.{meant(name, known, _ADVICE)}")
        return self.release.feature_names.index(name)

    def levels(self, name: str) -> dict[str, FloatArray]:
        """Return the share of each level of a column, False and True of a Boolean."""
        column, indices = self.columns.get(name, (None, range(0)))
        if isinstance(column, Categorical):
            return {
                feature.removeprefix(f"{name}="): self.unit(index)
                for feature, index in zip(column.feature_names, indices, strict=True)
            }
        if isinstance(column, Boolean):
            true = self.unit(indices[0])
            return {"False": self.constant(1.0) - true, "True": true}
        self.index(name)
        refused = (
            f"'{name}' is not a categorical column of the release: numbers cannot be cut into levels afterwards. Before the "
            "next release declare it"
        )
        raise InputValueError(
            f"{refused} as dpm.Categorical({name!r}, [...]), or a question about it as dpm.Boolean.",
            shell=f"{refused} as a column 'kind: categorical', or a question about it as 'kind: boolean'.",
        )

    def level(self, name: str, level: object) -> FloatArray:
        levels = self.levels(name)
        wanted = str(bool(level)) if "True" in levels and level in (0, 1) else str(level)
        if wanted not in levels:
            raise InputValueError(
                f"'{wanted}' is not a level of '{name}'.{meant(wanted, levels, f'Levels: {listed(levels)}.')}"
            )
        return levels[wanted]

    def coded(self, node: ast.Call, text: str) -> _Factor:
        """Return ``C(column)``, or ``C(column, coding)``."""
        name = self.name(node.args[0]) if node.args else None
        given = [*node.args[1:], *(word.value for word in node.keywords if word.arg in ("contrasts", "contrast"))]
        if name is None or len(given) + 1 < len(node.args) + len(node.keywords) or len(given) > 1:
            raise InputValueError(
                f"'{text}': C() takes the name of one column, and a coding such as Sum or Treatment('level')"
            )
        levels = self.levels(name)
        if not given:
            return self.column(name, text)
        coding = given[0].func if isinstance(given[0], ast.Call) else given[0]
        stated = [*given[0].args, *(word.value for word in given[0].keywords)] if isinstance(given[0], ast.Call) else []
        kind = ast.unparse(coding).strip("'").removeprefix("contr.").capitalize()
        if kind not in (codings := ("Treatment", "Sum", "Helmert", "Diff", "Poly")):
            raise InputValueError(f"'{text}' has an unknown coding: use {listed(codings)}")
        if kind != "Treatment":
            matrix, names = _contrasts(kind, list(levels))
            weights = matrix.T @ np.array(list(levels.values()))
            every = {f"{text}[{level}]": own for level, own in levels.items()}
            return _Factor(None, every, {text + each: own for each, own in zip(names, weights, strict=True)})
        if not stated:
            return self.column(name, text)
        value = ast.literal_eval(stated[0])
        if str(value) not in levels and isinstance(value, int) and not isinstance(value, bool):
            first = 1 if "contr." in text else 0  # R counts from 1
            value = list(levels)[value - first] if first <= value < len(levels) + first else value
        reference = self.level(name, value)
        feature = self.feature(reference)
        if "True" in levels or feature is None:
            [other] = [own for own in levels.values() if not np.array_equal(own, reference)]
            label = name if self.feature(other) else f"{text}[T.False]"
            return _Factor(self.feature(other), {label: other})
        if self.stated.setdefault(name, feature) != feature:
            raise InputValueError(f"'{text}' compares with another level than reference= does: leave one of them out")
        return self.column(name, text)

    def polynomials(self, node: ast.Call, text: str) -> dict[str, FloatArray]:
        """Return ``poly(x, degree)``: orthogonal powers with a sum of squares of 1, or raw ones."""
        options = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
        degree = options.get("degree", ast.literal_eval(node.args[1]) if len(node.args) > 1 else 1)
        powers = [self.value(node.args[0])]
        for _ in range(int(degree) - 1):
            powers.append(self.product(powers[-1], powers[0]))
        every = np.array(powers)
        if not options.get("raw"):
            try:
                root = np.linalg.cholesky(every[:, 1:] @ self.release.covariance @ every[:, 1:].T)
            except np.linalg.LinAlgError:
                raise InputValueError(
                    f"noise leaves no variance of '{text}': write I(x**2), which needs none"
                ) from None
            every[:, 0] -= self.mean(every)
            every = np.linalg.solve(root, every) / np.sqrt(self.release.n_rows)
        return {f"{text}{at}": weights for at, weights in enumerate(every, start=1)}

    def mean(self, weights: FloatArray) -> FloatArray:
        return weights[..., 0] + weights[..., 1:] @ self.release.mean

    # Arithmetic.

    def name(self, node: ast.expr) -> str | None:
        """Return the name of a column; None for what is not a name."""
        match node:
            case ast.Name(id=name):
                return self.written.get(name, name)
            case ast.Attribute():  # R's names have dots
                return ast.unparse(node)
            case ast.Call(func=ast.Name(id="Q"), args=[ast.Constant(value=str(name))]):
                return name
        return None

    def value(self, node: ast.expr) -> FloatArray:
        """Return what an expression is of the constant and the features."""
        if (name := self.name(node)) is not None:
            if name in self.columns and isinstance(self.columns[name][0], Categorical):
                raise InputValueError(f"'{name}' has levels and is not a number: write I({name} == 'level')")
            return self.unit(self.index(name))
        match node:
            case ast.Constant(value=int() | float() as number):
                return self.constant(float(number))
            case ast.UnaryOp(op=ast.USub()):
                return -self.value(node.operand)
            case ast.BinOp(op=ast.Add()):
                return self.value(node.left) + self.value(node.right)
            case ast.BinOp(op=ast.Sub()):
                return self.value(node.left) - self.value(node.right)
            case ast.BinOp(op=ast.Mult()):
                return self.product(self.value(node.left), self.value(node.right))
            case ast.BinOp(op=ast.Div(), right=ast.Constant(value=int() | float() as divisor)) if divisor:
                return self.value(node.left) / divisor
            case ast.BinOp(op=ast.Pow() | ast.BitXor(), right=ast.Constant(value=int(exponent))) if exponent > 0:
                return self.power(node.left, exponent)
            case ast.Compare(ops=[ast.Eq() | ast.NotEq() as sign], comparators=[ast.Constant(value=level)]):
                equal = self.level(self.name(node.left) or ast.unparse(node.left), level)
                return equal if isinstance(sign, ast.Eq) else self.constant(1.0) - equal
            case ast.Call(func=function, args=[argument], keywords=[]):
                match ast.unparse(function).removeprefix("np."):
                    case "I":
                        return self.value(argument)
                    case "square":
                        return self.power(argument, 2)
                    case "center" | "scale" | "standardize" as how:
                        return self.standardized(self.value(argument), argument, divided=how != "center")
            case ast.Call(func=function, args=[argument, ast.Constant(value=int(exponent))]) if exponent > 0:
                if ast.unparse(function) in ("np.power", "power"):
                    return self.power(argument, exponent)
        refused = (
            f"A release holds means and covariances of its features, and '{self.as_written(ast.unparse(node))}' of each row is "
            "not a function of them. Before the next release add it to the table as a column"
        )
        raise InputValueError(
            f"{refused}; dpm.Power and dpm.Product compute powers and products.",
            shell=f"{refused}; columns 'kind: power' and 'kind: product' of the schema compute powers and products.",
        )

    def standardized(self, weights: FloatArray, node: ast.expr, *, divided: bool) -> FloatArray:
        """Return a number less its released mean, over its released standard deviation."""
        result = weights.copy()
        result[0] -= self.mean(weights)
        if not divided:
            return result
        variance = float(weights[1:] @ self.release.covariance @ weights[1:])
        if not variance > 0.0:
            raise InputValueError(
                f"noise leaves no variance of '{self.as_written(ast.unparse(node))}' to divide by: write center() or I()"
            )
        return np.asarray(result / np.sqrt(variance))

    def power(self, node: ast.expr, exponent: int) -> FloatArray:
        weights = self.value(node)
        (used,) = np.nonzero(weights)
        if len(used) == 1 and used[0] > 0 and exponent > 1:  # by name: its lower powers need not be there
            power = Counter(dict(self.products.monomials[used[0] - 1]))
            of_feature = frozenset(
                (name, 1 if name in self.products.zero_one else times * exponent) for name, times in power.items()
            )
            return np.asarray(weights[used[0]] ** exponent * self.unit(self.products.released(of_feature)))
        result = weights
        for _ in range(exponent - 1):
            result = self.product(result, weights)
        return result

    def product(self, one: FloatArray, other: FloatArray) -> FloatArray:
        """Return the product of two affine functions, by the released products of features."""
        result = one[0] * other + other[0] * one
        result[0] -= one[0] * other[0]
        for first in np.flatnonzero(one[1:]):
            for second in np.flatnonzero(other[1:]):
                monomial = self.products.product(int(first), int(second))
                if monomial is not None:
                    result[self.products.released(monomial) + 1] += one[first + 1] * other[second + 1]
        return np.asarray(result)


def _contrasts(kind: str, levels: Sequence[str]) -> tuple[FloatArray, list[str]]:
    """Return patsy's coding of k levels, (k, k − 1), and the ends of its names."""
    k = len(levels)
    at = np.arange(k)
    if kind == "Sum":
        return np.vstack([np.eye(k - 1), -np.ones(k - 1)]), [f"[S.{level}]" for level in levels[:-1]]
    if kind == "Helmert":
        steps = np.where(at[:, None] <= at[None, :-1], -1.0, 0.0)
        steps[at[1:], at[:-1]] = at[1:]
        return steps, [f"[H.{level}]" for level in levels[1:]]
    if kind == "Diff":
        after = at[:, None] > at[None, :-1]
        return after - (k - 1.0 - at[None, :-1]) / k, [f"[D.{level}]" for level in levels[:-1]]
    orthogonal, triangle = np.linalg.qr(np.vander(at - at.mean(), k, increasing=True))
    names = [".Linear", ".Quadratic", ".Cubic", *(f"^{power}" for power in range(4, k))][: k - 1]
    return (orthogonal * np.sign(np.diag(triangle)))[:, 1:], names


def most_frequent(release: Moments, levels: range) -> int:
    """Return the level of the largest released share (the largest square without a mean)."""
    shares = release.mean if release.noisy_sum is not None else np.diag(release.second_moment)
    return levels[int(first_largest(shares[levels.start : levels.stop]))]
