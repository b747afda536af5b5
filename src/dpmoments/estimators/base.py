"""Common part of all estimators: one release from parameters and a table."""

from __future__ import annotations

import os
import secrets
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from threading import RLock
from types import MappingProxyType
from typing import Any, Self
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, _clone_parametrized
from sklearn.utils.validation import check_is_fitted, validate_data

from dpmoments.analysis.frames import feature_values
from dpmoments.base.errors import (
    BudgetExceededError,
    InputError,
    InputTypeError,
    InputValueError,
    listed,
    out_of_range,
    shown,
    wrong_type,
)
from dpmoments.base.table_libraries import nw, pa
from dpmoments.base.values import FloatArray
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.ledger import Ledger
from dpmoments.privacy.origin import check_dataset
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.schema.cells import ColumnTable, declared_array, declared_column, objects_of
from dpmoments.schema.columns import Categorical, Column, Coordinate, Numeric
from dpmoments.schema.schema import Schema
from dpmoments.spending.release import release
from dpmoments.spending.run import recorded_runs, require_whole_numbers


def public_schema(
    schema: object, bounds: object, row_norm: float | None, names: Sequence[str], target: Column | None = None
) -> Schema:
    """Return the schema that ``schema``, ``bounds`` or ``row_norm`` states for these names."""
    # It reads no value.
    given = [
        name for name, value in (("schema", schema), ("bounds", bounds), ("row_norm", row_norm)) if value is not None
    ]
    if not given:
        raise InputValueError(
            "no public bounds were given (schema, bounds and row_norm are None): noise must hide any possible "
            "row, and bounds read from the table would publish its extremes. Give "
            "schema=dpm.Schema(dpm.Numeric('age', 0, 100), …), or bounds=(low, high) of every column, known without "
            "looking at the table."
        )
    if len(given) > 1:
        raise InputValueError(
            f"{' and '.join(given)} were given, but each describes the columns completely: keep one (a Schema "
            "has its own row_norm)"
        )
    if schema is not None:
        if not isinstance(schema, Schema):
            raise wrong_type("schema", "a dpmoments.Schema", schema)
        return schema
    if row_norm is not None:
        return Schema(*(Coordinate(name) for name in names), row_norm=row_norm)
    numeric = [
        Numeric(name, low, high) for name, (low, high) in zip(names, pairs_of_bounds(bounds, len(names)), strict=True)
    ]
    return Schema(*numeric, *([] if target is None else [target]))


def pairs_of_bounds(bounds: Any, n_columns: int) -> list[tuple[float, float]]:
    """Return a lower and an upper bound for every column."""
    of_other_kind = isinstance(bounds, str | bytes | Mapping) or not hasattr(bounds, "__len__") or len(bounds) != 2
    if of_other_kind or any(np.asarray(end).dtype.kind not in "iuf" for end in bounds):
        raise out_of_range("bounds", bounds, "a pair (low, high), each a number or one number per column")
    of_two = n_columns == 2 and all(isinstance(end, list | tuple) for end in bounds)
    if of_two and (isinstance(bounds, list) or any(isinstance(end, tuple) for end in bounds)):
        raise InputValueError(
            f"bounds={shown(bounds)} can be read as a pair for each of the two columns and as lower and upper bounds: give a "
            "tuple of the lower and the upper ends, bounds=([low, low], [high, high]), or a schema"
        )
    ends = [np.asarray(end, dtype=np.float64) for end in bounds]
    if any(end.shape not in ((), (n_columns,)) for end in ends):
        shapes = " and ".join(str(end.shape) for end in ends)
        raise InputValueError(
            f"bounds have shapes {shapes}, and X has {n_columns} columns: give a number, or one per column"
        )
    low, high = (np.broadcast_to(end, n_columns).tolist() for end in ends)
    return list(zip(low, high, strict=True))


def feature_columns(schema: Schema, target: str | None) -> tuple[Column, ...]:
    """Return the schema's table columns except y."""
    return tuple(column for column in schema.table_columns if column.name != target)


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """X as given, read only by its declared types."""

    # accepted by `dpmoments.release`: a frame with names, else an array of numbers or objects; None for a pandas frame
    # without names
    given: Any
    names: tuple[str, ...] | None  # column names, if any
    columns: tuple[Any, ...]  # in order
    n_rows: int

    @classmethod
    def of(cls, X: Any, *, n_columns: int | None = None) -> Features:
        """Read a frame or array in memory, or a sequence of rows as objects."""
        # An empty sequence has `n_columns`.
        if issparse(X):
            raise InputTypeError(
                "sparse input is not supported: every entry of the moments gets noise anyway. Pass X.toarray()"
            )
        frame = frame_of(X)
        of_dask = type(X).__module__.split(".")[0] == "dask"
        if isinstance(frame, nw.LazyFrame) or isinstance(X, str) or hasattr(X, "__fspath__") or of_dask:
            raise InputTypeError(
                f"fit takes arrays and frames in memory, got {type(X).__name__}. Release it with "
                "dpm.release(table, schema, …), which reads files and engines, then call fit_release(release), which "
                "spends nothing."
            )
        if not isinstance(frame, nw.DataFrame):
            array = (
                _rows_one_by_one(X, n_columns) if isinstance(X, list | tuple) else np.asarray(declared_array(X, "X"))
            )
            if array.ndim != 2:
                raise InputValueError(
                    f"Expected 2D array, got {array.ndim}D array instead: a table has rows and columns. Reshape your "
                    "data using X.reshape(-1, 1) for a single column, or X.reshape(1, -1) for a single row"
                )
            if array.dtype.kind == "c":
                raise InputValueError("Complex data not supported: X must hold numbers, or levels among objects")
            if array.dtype.names is not None or array.dtype.kind not in "biufO":
                raise InputTypeError(
                    f"X is an array of type {array.dtype.type.__name__}, not of numbers: pass a frame, or an array of "
                    "objects (dtype=object), whose cells are read one by one"
                )
            if array.shape[1] == 0:
                raise InputValueError("X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
            return cls(array, None, tuple(array.T), len(array))
        if all(isinstance(name, str) for name in frame.columns):
            columns = tuple(frame[name] for name in frame.columns)
            return cls(frame.to_native(), tuple(frame.columns), columns, len(frame))
        columns = tuple(declared_column(X.iloc[:, index], f"x{index}") for index in range(X.shape[1]))
        return cls(None, None, columns, len(frame))

    def own_names(self, unit: str | None) -> tuple[str, ...]:
        """Return the column names without the privacy unit's."""
        # Unnamed columns are `x0`, `x1` and so on.
        if self.names is None:
            return tuple(f"x{index}" for index in range(len(self.columns)))
        return tuple(name for name in self.names if name != unit)

    def beside(self, names: Sequence[str], target: str | None = None, y: Any = None) -> Any:
        """Return the table to release: columns by the schema's names, and the target."""
        # Nothing is copied.
        if target is None and self.given is not None:
            return self.given
        if target is not None and len(y) != self.n_rows:
            raise InputValueError("X and y have different numbers of rows: y must have one value for each row of X")
        columns = dict(zip(names if self.names is None else self.names, self.columns, strict=True))
        return ColumnTable(columns if target is None else columns | {target: y})


def frame_of(X: Any) -> Any:
    """Wrap a frame with narwhals, return anything else."""
    # Refuse duplicate names, which can be values of a record.
    if isinstance(X, pa.RecordBatch):
        X = pa.Table.from_batches([X])
    twice = hasattr(X, "iloc") and getattr(getattr(X, "columns", None), "has_duplicates", False)  # pandas
    if twice or (isinstance(X, pa.Table) and len(set(X.column_names)) < X.num_columns):
        raise InputValueError("two columns of the frame have the same name: rename one of them")
    return nw.from_native(X, pass_through=True)


def _rows_one_by_one(X: Sequence[Any], n_columns: int | None) -> npt.NDArray[Any]:
    """Convert a sequence of rows to an array of objects, values unchanged."""
    if not X and n_columns is not None:
        return np.empty((0, n_columns), dtype=object)
    rows = []
    for row in X:
        with suppress(TypeError):  # not a row
            cells = row if isinstance(row, list | tuple) else declared_array(row, "a row of X")
            if isinstance(cells, list | tuple) or cells.ndim == 1:
                rows.append(cells)
    if not rows or len(rows) < len(X):
        raise InputValueError(
            "Expected 2D array: X is a sequence, and not all of it are rows, sequences of cells. Reshape your "
            "data to [[1.5], …] for a single column, or [[1.5, …]] for a single row"
        )
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise InputValueError("the rows of X have different numbers of cells: each has one cell for every column")
    return objects_of((cell for row in rows for cell in row), width * len(rows)).reshape(len(rows), width)


_NOISE = "it compares two fits of one table, and each draws its own noise"
_EMPTY = (
    "it asks for an error on an empty table: under neighbors='add_remove' how many rows there are is private, and a table "
    "of none is released like any other (under 'replace_one' it passes)"
)
_PENALTY = (
    "it sets alpha=0.01, which is little in scikit-learn's units and much in those of the unit ball; with alpha='auto' the same "
    "data give the score it asks for"
)
_LABELS = "its labels are floating-point numbers: only their cells would tell that they are whole, and no cell decides"
_CLASSES = "it fits one instance to several lists of classes, and classes must be public: rows of others are dropped"


_TRANSFORMERS = ("DPPCA", "DPLinearDiscriminant")
_EMPTY_TABLE = "check_estimators_empty_data_messages"
_REASONS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        _EMPTY_TABLE: (_EMPTY, ("DPCovariance", "DPPCA", "DPRidge", "DPLinearDiscriminant")),
        "check_regressors_train": (_PENALTY, ("DPRidge",)),
        "check_estimators_nan_inf": (_LABELS, ("DPLinearDiscriminant",)),
        "check_classifiers_classes": (_CLASSES, ("DPLinearDiscriminant",)),
        "check_classifiers_train": (_CLASSES, ("DPLinearDiscriminant",)),
        "check_fit_idempotent": (_NOISE, ("DPPCA", "DPRidge", "DPLinearDiscriminant")),
        "check_supervised_y_2d": (_NOISE, ("DPRidge", "DPLinearDiscriminant")),
        "check_regressors_int": (_NOISE, ("DPRidge",)),
        "check_regressor_data_not_an_array": (_NOISE, ("DPRidge",)),
        "check_classifier_data_not_an_array": (_NOISE, ("DPLinearDiscriminant",)),
        "check_transformer_data_not_an_array": (_NOISE, _TRANSFORMERS),
        "check_transformer_general": (_NOISE, _TRANSFORMERS),
        "check_pipeline_consistency": (_NOISE, (*_TRANSFORMERS, "DPRidge")),
    }
)
"""Why each check of scikit-learn, by its name, is not passed, and by which estimators."""


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Return the argument of this name for ``check_estimator`` and ``parametrize_with_checks``.

    Parameters
    ----------
    estimator : DPCovariance, DPPCA, DPRidge or DPLinearDiscriminant

    Returns
    -------
    dict
        Reason by name of the check.

    Examples
    --------
    >>> from dpmoments.estimators import DPCovariance
    >>> sorted(expected_failed_checks(DPCovariance()))
    ['check_estimators_empty_data_messages']
    """
    names = {parent.__name__ for parent in type(estimator).__mro__}
    expected = {check: reason for check, (reason, estimators) in _REASONS.items() if names & set(estimators)}
    if Neighbors.of(estimator.neighbors).table_size_is_public:
        expected.pop(_EMPTY_TABLE, None)
    return expected


_FITTED_RELEASE = (
    "the release was made, and its budget is spent: other analyses of the estimator's release_ cost no budget"
)
_AS_SCIKIT_LEARN_SAYS = (
    "In scikit-learn's words: Input contains NaN or infinity, or the argument must be a table of strings and numbers"
)


_MAX_NOISE_AT_BOUND = 0.01
"""Largest noise, as a share of the bounds' width, at which a mean is seen to be at a bound."""


class UnreadableTableError(InputError, ValueError, TypeError):
    """Value of X or y that stopped the release; of both types that scikit-learn's users expect.

    Nothing was spent.
    """


class _OneFit:
    """Record of whether the single fit of an estimator and its copies was made, in one process."""

    def __init__(self, process: int | None) -> None:
        self.identity = secrets.token_hex(16)
        self._process = process
        self._taken = False

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Reserve the fit for a block; refund it if the block fails and no run spent its budget."""
        with _LOCK:
            if self._process != os.getpid():
                raise BudgetExceededError(
                    "this estimator is a copy from another process (joblib, pickle), and without a ledger the fits of "
                    "its other copies are not counted: nothing was spent. Give it ledger= and dataset=, so that every "
                    "fit is charged, and refused beyond the grant; or make a new estimator in this process to spend "
                    "the budget once more"
                )
            if self._taken:
                raise BudgetExceededError(
                    "without a ledger the budget of an estimator is for one fit, and this one, or a copy of it, was "
                    "fitted before: fitting again, as cross-validation does with copies, would spend the budget again. "
                    "Now nothing was spent. Give it ledger= and dataset=, so that every fit is charged, and refused "
                    "beyond the grant; or make a new estimator to spend the budget once more"
                )
            self._taken = True
        with recorded_runs() as runs:
            try:
                yield
            except BaseException:
                with _LOCK:
                    self._taken = any(run.privacy_filter.spent for run in runs)
                raise


_LOCK = RLock()
_HELD: WeakKeyDictionary[Any, _OneFit] = WeakKeyDictionary()
"""Fits by estimator: setting, copying or clearing attributes does not lose them."""
_KNOWN: WeakValueDictionary[str, _OneFit] = WeakValueDictionary()


def _hold(estimator: Any, one_fit: _OneFit) -> None:
    with _LOCK:
        _HELD[estimator] = one_fit
        _KNOWN[one_fit.identity] = one_fit


_OF_RELEASE = (
    *("epsilon", "delta", "rho", "neighbors", "privacy_unit"),
    *("mechanism", "ledger", "dataset", "insecure_seed"),
)
"""Parameters that every release has."""


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateEstimator(BaseEstimator):
    """Base of all estimators: parameters, and bookkeeping of fits.

    Parameters
    ----------
    schema : Schema
        Public bounds, levels and rules of the columns of X, in their order, and of y.
    bounds : pair of float or of array-like of shape (d,)
        In place of a schema, for numbers only: (low, high) of every column.
    row_norm : float
        In place of a schema, without y: bound on the Euclidean norm of rows; longer rows are scaled down.
    epsilon, delta, rho, neighbors, mechanism, privacy_unit
        As for :func:`dpmoments.release`; for one fit.
    ledger : Ledger or path
        Ledger charged for every fit of this estimator and its copies. Without one, all of them have one fit together.
    dataset : str
        Name of the table in the ledger.
    insecure_seed : int
        For tests: repeats the noise, and marks the release as not private. Fits are then not counted, since they
        protect nobody.

    Attributes
    ----------
    release_ : MomentRelease
        Published by the fit; everything else is computed from it.
    answer_ : object
        Analysis of the release that gives the attributes, with errors: ``print(model.answer_)``.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X was a frame.
    """

    schema: Schema | None = None
    bounds: Any = None
    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
    neighbors: Neighbors | str = "add_remove"
    mechanism: Mechanism | str = "auto"
    privacy_unit: PrivacyUnit | None = None
    ledger: Ledger | Any = None
    dataset: str | None = None
    insecure_seed: int | None = None

    release_: MomentRelease = field(init=False)
    answer_: Any = field(init=False)
    n_features_in_: int = field(init=False)

    def __new__(cls, *_: Any, **__: Any) -> Self:
        made: Self = super().__new__(cls)
        _hold(made, _OneFit(os.getpid()))
        return made

    def __sklearn_clone__(self) -> Self:
        copied: Self = _clone_parametrized(self)
        _hold(copied, _HELD[self])
        return copied

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__()) | {"one_fit": _HELD[self].identity}
        if "release_" in state:
            state["release_"] = self.release_.to_dict()
        state.pop("answer_", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        identity = state.pop("one_fit", None)
        known = _KNOWN.get(identity) if isinstance(identity, str) else None
        _hold(self, _OneFit(process=None) if known is None else known)  # a fit that this process does not know is used
        content = state.pop("release_", None)
        super().__setstate__(state)
        if content is not None:
            self._take(MomentRelease.from_dict(content))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "answer_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.insecure_seed is None
        if isinstance(self.schema, Schema):
            columns = feature_columns(self.schema, self._name_of_target(self.schema))
            tags.input_tags.allow_nan = all(column.missing != "error" for column in columns)
            tags.input_tags.categorical = any(isinstance(column, Categorical) for column in columns)
            tags.input_tags.string = tags.input_tags.categorical
        return tags

    _with_mean = True
    """True if the release has a mean."""

    @abstractmethod
    def _schema_for(self, names: tuple[str, ...], y: Any) -> tuple[Schema, str | None]:
        """Return the public schema for columns of these names, and the name of y's column."""

    def _check_analysis(self, schema: Schema) -> None:
        """Reject parameters that the analysis would refuse, before anything is spent."""

    @abstractmethod
    def _read(self) -> None:
        """Set ``answer_`` and the attributes from ``release_`` and parameters."""

    def _name_of_target(self, schema: Schema) -> str | None:
        """Return the name of y's column, if any; it may not be in the schema."""
        return None

    def _target_of(self, schema: Schema) -> str | None:
        """Return y's column of a schema, if any; raise ValueError if it cannot be y."""
        return self._name_of_target(schema)

    def _fit(self, X: Any, y: Any = None) -> Self:
        """Release the table, charged once, and set the attributes."""
        self._check_parameters()
        table, schema, shaped = self._table(X, y)
        validate_data(self, shaped, y="no_validation", skip_check_array=True)
        # A ledger counts fits itself, and an insecure seed makes counting pointless.
        is_counted = self.ledger is None and self.insecure_seed is None
        with _HELD[self].taken() if is_counted else nullcontext(), recorded_runs() as runs:
            try:
                stated: dict[str, Any] = {name: getattr(self, name) for name in _OF_RELEASE}
                released = release(table, schema, mean=self._with_mean, **stated)
            except (ValueError, TypeError) as error:
                if (
                    not runs
                    or any(run.privacy_filter.spent for run in runs)
                    or type(error) not in (InputValueError, InputTypeError)
                ):
                    raise
                refused = UnreadableTableError(f"{error}. {_AS_SCIKIT_LEARN_SAYS}")
                for note in getattr(error, "__notes__", ()):
                    refused.add_note(note)
                raise refused from None
        return self._take(released)

    def _table(self, X: Any, y: Any) -> tuple[Any, Schema, Any]:
        """Return the table to release, its schema, and a stand-in for scikit-learn's checks."""
        # They check columns.
        unit = self.privacy_unit.column if isinstance(self.privacy_unit, PrivacyUnit) else None
        stated = self.schema if isinstance(self.schema, Schema) else None
        n_columns = None if stated is None else len(feature_columns(stated, self._name_of_target(stated)))
        features = Features.of(X, n_columns=n_columns)
        own = features.own_names(unit)
        schema, target = self._schema_for(own, y)
        expected = tuple(column.name for column in feature_columns(schema, target))
        self._require_columns(own, expected, named=features.names is not None)
        self._check_analysis(schema)
        return features.beside(expected, target, y), schema.by_own_names, _shaped(X, features, own)

    def _check_parameters(self) -> None:
        """Reject what a release would refuse, before the one fit is used."""
        PrivacyBudget.of(epsilon=self.epsilon, delta=self.delta, rho=self.rho)
        Neighbors.of(self.neighbors)
        make_mechanism(self.mechanism)
        check_dataset(self.dataset)
        require_whole_numbers(insecure_seed=self.insecure_seed)

    def fit_release(self, release: MomentRelease) -> Self:
        """Fit from an existing release: post-processing, without privacy cost.

        Use it for tables in files and engines, for releases of others, and to try another parameter on the release of a
        fit.

        Parameters
        ----------
        release : MomentRelease
            Its own schema, budget and mechanism apply; those of the estimator are ignored.
        """
        if not isinstance(release, MomentRelease):
            raise InputTypeError(
                f"fit_release takes a dpmoments release, got {type(release).__name__}. Make one with dpm.release(…), or "
                "read its file: dpm.load('people.json')."
            )
        columns = tuple(column.name for column in feature_columns(release.schema, self._target_of(release.schema)))
        self.feature_names_in_ = np.array(columns, dtype=object)
        self.n_features_in_ = len(columns)
        return self._take(release)

    def _take(self, released: MomentRelease) -> Self:
        self.release_ = released
        if hasattr(self, "answer_"):
            del self.answer_
        try:
            self._read()
        except Exception as error:
            error.add_note(_FITTED_RELEASE)
            raise

        if released.noisy_sum is None or released.noise is None:
            return self
        described = released.describe()
        (lower, upper), mean, noise = described.bounds, released.mean, described.mean_noise
        # Noise that leaves the mean unknown shows nothing.
        near = (np.minimum(mean - lower, upper - mean) <= 2.0 * noise) & (noise < _MAX_NOISE_AT_BOUND * (upper - lower))
        numeric = [column.name for column in released.schema.table_columns if isinstance(column, Numeric)]
        names = [name for name, found in zip(released.feature_names, near, strict=True) if found and name in numeric]
        if names:
            warnings.warn(
                f"noise does not distinguish the mean of {listed(names)} from its bound: nearly all values are at or beyond "
                "it, and counted as the bound. Check the units of the data and of the bounds",
                stacklevel=4,
            )
        return self

    @staticmethod
    def _require_columns(own: tuple[str, ...], expected: tuple[str, ...], *, named: bool) -> None:
        """Raise ValueError unless the columns of X are the schema's, in order."""
        # Result arrays use that order.
        if len(own) != len(expected) and not named:
            raise InputValueError(
                f"X has {len(own)} columns, and the schema has {len(expected)} without y ({listed(expected)}): "
                "the columns of an array are the schema's, in order"
            )
        if named and own != expected:
            absent = [name for name in expected if name not in own]
            more = [name for name in own if name not in expected]
            why = f"has {listed(more)}, which the schema lacks" if more else "has them in another order"
            raise InputValueError(
                "the columns of X must be the schema's, in its order, so that results are in the order of X, and X "
                f"{f'lacks {listed(absent)}' if absent else why}: pass X[{shown(list(expected))}]"
            )

    def _rows(self, X: Any) -> ColumnTable:
        """Return rows to apply the fit to, named as in the release and read as in a fit."""
        check_is_fitted(self)
        schema, privacy_unit = self.release_.schema, self.release_.privacy.privacy_unit
        columns, unit = feature_columns(schema, self._name_of_target(schema)), getattr(privacy_unit, "column", None)
        features = Features.of(X, n_columns=len(columns))
        own = features.own_names(unit)
        validate_data(self, _shaped(X, features, own), y="no_validation", reset=False, skip_check_array=True)
        if not features.n_rows:
            raise InputValueError("Found array with 0 sample(s) while a minimum of 1 is required: X has no rows")
        own_columns = [
            column
            for index, column in enumerate(features.columns)
            if features.names is None or features.names[index] != unit
        ]
        table = ColumnTable(dict(zip([column.name for column in columns], own_columns, strict=True)))
        slices = {column.name: index for column, index in schema.columns_with_slices}
        strict = [
            index
            for column in columns
            if column.missing == "error"
            for index in range(schema.n_features)[slices[column.name]]
        ]
        if not np.isfinite(feature_values(schema, table, strict)[:, strict]).all():
            raise InputValueError(
                "Input X contains NaN, infinity or a missing value in a column with the rule missing='error': fill "
                "these values, leave their rows out, or use another rule"
            )
        return table

    @property
    def feature_names_released_(self) -> FloatArray:
        """Names of the encoded features, in array order; a categorical with k levels has k."""
        return np.array(self.release_.feature_names, dtype=object)


def _shaped(X: Any, features: Features, own: tuple[str, ...]) -> Any:
    """Return an object with the columns and names of X, for scikit-learn's checks."""
    if features.names is not None:
        return pa.table({name: pa.array([], pa.null()) for name in own})  # every scikit-learn version reads its names
    return X if features.given is None else features.given
