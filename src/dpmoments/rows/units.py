"""Units bounded: at most k rows of each by a keyed hash, or their total weight.

It does not depend on order or partitions of the table.

Rows that the schema's rules drop are not candidates. Of a unit's candidates, the k with the smallest hashes of (key,
unit, encoded row) are selected; equal rows are distinguished by a copy number, so that each copy is as likely as any
other row. So the selection is a function of the key and of the unit's own rows: see
``docs/evidence/derivations/privacy-units.md``.

Two rounds of summaries find it. The first counts candidates by a hash of their unit, in a fixed number of buckets:
units of a bucket with at most k candidates need nothing. The second collects the candidates of the other buckets, as
many buckets at a time as memory allows, and ranks them. Little is kept: for a unit over its limit the threshold hash;
for one that has equal rows, the rows themselves.

Where rows have sampling weights, sums have all rows, their weights reduced in proportion in a unit whose weights are more
than the cap; what counts rows by 1 has one row of each unit, by the same two rounds, which also add up the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any, ClassVar, Generic, Protocol

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import InputValueError
from dpmoments.base.table_libraries import pa, pc
from dpmoments.base.values import BoolArray, FloatArray, IntegerArray
from dpmoments.privacy.unit import PrivacyUnit, SelectionKey
from dpmoments.rows.level_sums import CodedBlock, LevelLayout, OfEncodedRows, counting_levels
from dpmoments.rows.summary import PrivateSums, Result, Running, Summary
from dpmoments.schema.cell_reading import unit_ids
from dpmoments.schema.columns import WEIGHT_BITS, WeightColumn
from dpmoments.schema.schema import Schema

# Summaries of rows with sampling weights: exact integer sums of each row times its weight.
#
# A weight w is a whole number t from 0 to T = 2^``WEIGHT_BITS``, the nearest to T·w/W, and T from
# the cap W on. The rows whose t has a binary digit are summed like a table of their own, one sum for each digit; twice the sum of
# the higher digits plus that of the next is Σ t·q, in integers, whatever q is. Each row's t depends on that row only.

_ONE = 1 << WEIGHT_BITS


@dataclass(frozen=True)
class WeightCells:
    """Cells of the sampling weights among those of encoded rows."""

    feature: int  # index of the weight among the features as rows are read
    offset: float  # with `scale`: t/T of an encoded weight x is offset + scale·x
    scale: float
    released: bool  # false: the weight is no feature of what is summed

    @classmethod
    def of(cls, schema: Schema) -> WeightCells:
        """Return the cells of rows that are read by this schema, with a mean."""
        column, features = next(pair for pair in schema.columns_with_slices if isinstance(pair[0], WeightColumn))
        assert isinstance(column, WeightColumn)
        cap, offset = column.bounds[1], float(column.offset(True)[0])
        scale = float(schema.encoding().scale[features.start])
        return cls(features.start, offset / cap, scale / cap, column.released)

    def whole(self, cells: FloatArray) -> IntegerArray:
        """Return t of encoded weights, 0 of dropped rows."""
        share = np.nan_to_num(self.offset + self.scale * cells, nan=0.0)
        whole: IntegerArray = np.rint(np.clip(share, 0.0, 1.0) * _ONE).astype(np.int64)
        return whole

    def within_units(self, rows: FloatArray, of_units: IntegerArray) -> FloatArray:
        """Return rows with t/T behind, reduced where the rows of a unit have more than 1.

        ``of_units`` are Σ t of each row's unit. The weight as a feature becomes the unit's: Σ t² is then Σ (Σ_unit t)², which
        sampling errors need.
        """
        own, together = self.whole(rows[:, self.feature]), np.minimum(of_units, _ONE)
        own = own * together // np.maximum(of_units, 1)
        if not self.released:
            return np.column_stack([np.delete(rows, self.feature, axis=1), own / _ONE])
        result = np.column_stack([rows, own / _ONE])
        result[:, self.feature] = (together / _ONE - self.offset) / self.scale
        return result


BEHIND = WeightCells(-1, 0.0, 1.0, False)
"""Cells of t/T behind the features."""


@dataclass(frozen=True, eq=False)
class Weighted(Summary[list[Running], tuple[Result, ...]], Generic[Running, Result]):
    """Summary of weighted rows: a result for each binary digit, the highest first.

    A summary that counts rows by 1, whatever their weight, has one result.
    """

    summary: Summary[Running, Result]
    cells: WeightCells

    takes_levels: ClassVar[bool] = True

    @property
    def rows_per_task(self) -> int:
        return self.summary.rows_per_task

    @property
    def is_weighted(self) -> bool:
        return self.summary.is_weighted

    @property
    def digits(self) -> range:
        return range(WEIGHT_BITS, -1, -1) if self.summary.is_weighted else range(1)

    def by_levels(self, schema: Schema, layout: LevelLayout) -> Weighted[Any, Any]:
        """Return the same summary of rows with level codes."""
        own, of_own = (schema, layout) if self.cells.released else (schema.without_weight, self._without_weight(layout))
        counting = counting_levels(self.summary, own, of_own)
        inner: Summary[Any, Any] = counting or (
            self.summary if self.summary.takes_levels else OfEncodedRows(self.summary)
        )
        return Weighted(inner, self.cells)

    def start(self) -> list[Running]:
        return [self.summary.start() for _ in self.digits]

    def add(self, running: list[Running], block: Any) -> None:
        weights = self._weights(block) if self.is_weighted else None
        if not self.cells.released:
            block = self._without(block)
        if weights is None:
            self.summary.add(running[0], block)
            return
        is_coded = isinstance(block, CodedBlock)
        for digit, part in zip(self.digits, running, strict=True):
            chosen = np.flatnonzero(weights >> digit & 1)
            if len(chosen):
                self.summary.add(part, block.chosen(chosen) if is_coded else block[chosen])

    def _weights(self, block: Any) -> IntegerArray:
        """Return t of each row."""
        if isinstance(block, CodedBlock):
            return self.cells.whole(block.numbers[:, self._index(block.layout)])
        return self.cells.whole(block[:, self.cells.feature])

    def _without(self, block: Any) -> Any:
        """Return the rows without the weight."""
        if not isinstance(block, CodedBlock):
            return np.delete(block, self.cells.feature, axis=1)
        numbers = np.asfortranarray(np.delete(block.numbers, self._index(block.layout), axis=1))
        return replace(block, layout=self._without_weight(block.layout), numbers=numbers)

    def _index(self, layout: LevelLayout) -> int:
        """Return the weight's index among the numbers."""
        return int(np.searchsorted(layout.numbers, self.cells.feature))

    def _without_weight(self, layout: LevelLayout) -> LevelLayout:
        kept = layout.numbers[:-1]  # it is the last column
        encoding, slices = layout.encoding.of_features(np.arange(len(kept))), dict([*layout.slices.items()][:-1])
        return replace(layout, n_features=layout.n_features - 1, numbers=kept, encoding=encoding, slices=slices)

    def finish(self, running: list[Running]) -> tuple[Result, ...]:
        return tuple(map(self.summary.finish, running))

    def merge(self, first: tuple[Result, ...], second: tuple[Result, ...]) -> tuple[Result, ...]:
        return tuple(self.summary.merge(*pair) for pair in zip(first, second, strict=True))

    def total(self, digits: tuple[Any, ...]) -> Any:
        """Return Σ t·q from its digits."""
        merge = self.summary.merge
        total, *rest = digits
        for digit in rest:
            total = merge(merge(total, total), digit)
        return total


# Keyed hashes of units and of encoded rows, whole blocks at a time.

HashArray = npt.NDArray[np.uint64]

_HASH_BITS = 32
"""Bits of row hashes, so that a unit number and a hash fit in one sortable number."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
_WORD = 8


def unit_hashes(ids: Any, key: int) -> HashArray:
    """Hash the bytes of each unit with a 64-bit key, shape (n,)."""
    if len(ids) == 0:
        return np.zeros(0, np.uint64)
    _, offsets, data = ids.buffers()
    ends = np.frombuffer(offsets, np.int64)[ids.offset : ids.offset + len(ids) + 1]
    held = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data is not None else np.zeros(0, np.uint8)
    padded = np.concatenate([held, np.zeros(_WORD, np.uint8)])
    starts, lengths = ends[:-1] - ends[0], np.diff(ends)
    hashes = mixed(lengths.astype(np.uint64) ^ np.uint64(key))
    active = np.arange(len(ids))
    for done in range(0, int(lengths.max()), _WORD):
        active = active[lengths[active] > done]
        words = padded[(starts[active] + done)[:, None] + np.arange(_WORD)]
        words[np.arange(_WORD) >= (lengths[active] - done)[:, None]] = 0
        hashes[active] = mixed(hashes[active] ^ words.view("<u8")[:, 0])
    return hashes


def _row_hashes(rows: FloatArray, of_units: HashArray, key: int) -> HashArray:
    """Return the first ``_HASH_BITS`` bits of :func:`_candidate_hashes`, shape (n,)."""
    return _candidate_hashes(rows, of_units, key) >> np.uint64(64 - _HASH_BITS)


def _candidate_hashes(rows: FloatArray, of_units: HashArray, key: int) -> HashArray:
    """Hash unit and encoded row with a key, 64 bits, shape (n,)."""
    hashes = mixed(of_units ^ np.uint64(key))
    for column in rows.T:
        hashes ^= np.ascontiguousarray(column + 0.0).view(np.uint64)
        hashes *= _ODD
        hashes ^= hashes >> np.uint64(32)
    return mixed(hashes)


def _copy_hashes(hashes: HashArray, copies: npt.NDArray[np.int64]) -> HashArray:
    """Hash each copy of equal rows, from the row's hash and the copy's number, to 32 bits."""
    return mixed((hashes << np.uint64(_HASH_BITS)) + _ODD * copies.astype(np.uint64)) >> np.uint64(64 - _HASH_BITS)


def mixed(values: HashArray) -> HashArray:
    """Map 64-bit numbers by a bijection that mixes all bits."""
    # Source: the finalizer of splitmix64, Steele et al. 2014.
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


# Whether a table is the same at every pass: what its candidates add up to, pass by pass.


_BUCKET_BITS = 20


@dataclass(frozen=True, eq=False, repr=False)
class UnitTally(PrivateSums):
    """Tally of a pass over the candidates: private data.

    ``counts`` has 2^``_BUCKET_BITS`` counts of candidates by a hash of their unit; ``total``, uint64 of shape (1,), is
    the sum of the hashes of unit and row, modulo 2⁶⁴.
    """

    counts: npt.NDArray[np.int64]
    total: HashArray

    def fingerprint(self) -> bytes:
        buckets = np.flatnonzero(self.counts)  # few of a small table
        return blake2b(
            buckets.tobytes() + self.counts[buckets].tobytes() + self.total.tobytes(), digest_size=32
        ).digest()


@dataclass(frozen=True)
class Tallied(Summary[tuple[Running, UnitTally], tuple[Result, UnitTally]], Generic[Running, Result]):
    """Summary of :class:`~dpmoments.rows.units.UnitBlock` with the tally of the pass."""

    summary: Summary[Running, Result]
    key: SelectionKey

    takes_units: ClassVar[bool] = True

    @property
    def rows_per_task(self) -> int:
        return self.summary.rows_per_task

    def start(self) -> tuple[Running, UnitTally]:
        return self.summary.start(), UnitTally(np.zeros(1 << _BUCKET_BITS, np.int64), np.zeros(1, np.uint64))

    def add(self, running: tuple[Running, UnitTally], block: Any) -> None:
        inner, tally = running
        of_units = block.hashes(self.key[0])
        np.add.at(tally.counts, _buckets(of_units), 1)
        tally.total[:] += _candidate_hashes(block.rows, of_units, self.key[1]).sum(dtype=np.uint64)
        self.summary.add(inner, block)

    def finish(self, running: tuple[Running, UnitTally]) -> tuple[Result, UnitTally]:
        return self.summary.finish(running[0]), running[1]

    def merge(self, first: tuple[Result, UnitTally], second: tuple[Result, UnitTally]) -> tuple[Result, UnitTally]:
        return self.summary.merge(first[0], second[0]), first[1].merge(second[1])


def _buckets(of_units: HashArray) -> npt.NDArray[np.int64]:
    """Return each unit's bucket, from its hash."""
    return (of_units >> np.uint64(64 - _BUCKET_BITS)).astype(np.int64)


def require_same_table(fingerprint: bytes, tally: UnitTally) -> None:
    """Raise unless a pass met the candidates of the first; called before its result is used."""
    if tally.fingerprint() != fingerprint:
        raise InputValueError(
            "the table changed between passes: rows were added, removed or changed, or a query draws rows at "
            "random (USING SAMPLE, random()). A unit could then have more rows than max_rows. Pass an "
            "unchanging table: a copy of the files, or the query's result written to a file or a table"
        )


_COLLECTED_BYTES = 1 << 29
"""Bytes that the second round collects at a time, unless a single bucket has more."""
_BYTES_BESIDE_ROW = 64
"""Bytes per collected candidate for its unit, its hash and its ranking."""
ROUNDS = 2
"""Rounds of the selection, each reported as one pass, however often the second passes."""


@dataclass(frozen=True, eq=False, repr=False)
class UnitBlock:
    """Candidates of a batch."""

    ids: Any  # length n, unit of each row; no nulls
    rows: FloatArray  # (n, d), encoded, finite
    known_hashes: dict[int, HashArray] = field(default_factory=dict)  # cached unit hashes by key

    @classmethod
    def of(cls, cells: Any, encoded: FloatArray, privacy_unit: PrivacyUnit) -> UnitBlock:
        """Return the kept rows of an encoded batch."""
        ids = unit_ids(cells, privacy_unit.column)
        belongs = ids.is_valid().to_numpy(zero_copy_only=False).astype(bool)
        if privacy_unit.missing == "error" and not belongs.all():
            raise InputValueError(
                f"a row has no '{privacy_unit.column}', which identifies privacy units, or one that two units may "
                "share, and the unit's rule is missing='error': choose missing='drop', complete the table, or "
                "convert the column to integers or text"
            )
        kept = belongs & np.isfinite(encoded).all(axis=1)
        if kept.all():
            return cls(ids, encoded)
        return cls(ids.filter(pa.array(kept)), encoded[kept])

    def __len__(self) -> int:
        return len(self.rows)

    def hashes(self, key: int) -> HashArray:
        """Return the unit hashes for a key, computed once."""
        if key not in self.known_hashes:
            self.known_hashes[key] = unit_hashes(self.ids, key)
        return self.known_hashes[key]


class UnitSource(Protocol):
    """Interface of a source that the selection reads."""

    def summarize(
        self, summary: Summary[Any, Any], *, threads: int | None = None, on_block: Callable[[int], None] | None = None
    ) -> Any:
        """Map a summary of :class:`UnitBlock` over the table's partitions and merge the results."""


@dataclass(frozen=True, eq=False)
class _Candidates(Summary[list[UnitBlock], tuple[UnitBlock, ...]]):
    """Candidates of some buckets; their order depends on the partitions, but not the results."""

    key: int
    wanted: BoolArray = field(repr=False)

    takes_units: ClassVar[bool] = True

    def start(self) -> list[UnitBlock]:
        return []

    def add(self, running: list[UnitBlock], block: Any) -> None:
        result = self.wanted[_buckets(block.hashes(self.key))]
        if result.any():
            running.append(UnitBlock(block.ids.filter(pa.array(result)), block.rows[result]))

    def finish(self, running: list[UnitBlock]) -> tuple[UnitBlock, ...]:
        return tuple(running)

    def merge(self, first: tuple[UnitBlock, ...], second: tuple[UnitBlock, ...]) -> tuple[UnitBlock, ...]:
        return first + second


@dataclass(frozen=True, eq=False, repr=False)
class UnitSelection:
    """Selected rows of a table: private data."""

    privacy_unit: PrivacyUnit
    key: SelectionKey
    ids: Any  # units over their limit, in the order of their hashes
    of_units: HashArray  # their hashes
    thresholds: HashArray  # rows of such a unit with a smaller hash are selected, its others not
    repeated: FloatArray  # (n, d), encoded selected rows of units with threshold 0, since they have equal rows
    totals: IntegerArray  # sums of the weights t of these units, where rows have them
    weights: WeightCells | None
    fingerprint: bytes  # fingerprint of the table's candidates, which every later pass must match

    def kept(self, block: UnitBlock) -> FloatArray:
        """Return the selected rows of a batch, except ``repeated`` ones."""
        over, unit = self._over(block)
        if not len(over):
            return block.rows
        ranked = _row_hashes(block.rows[over], block.hashes(self.key[0])[over], self.key[1])
        kept = np.ones(len(block), dtype=bool)
        kept[over] = ranked < self.thresholds[unit]
        return block.rows[kept]

    def weighed(self, block: UnitBlock) -> FloatArray:
        """Return all rows of a batch with their bounded weights behind."""
        assert self.weights is not None
        over, unit = self._over(block)
        of_units = self.weights.whole(block.rows[:, self.weights.feature])
        of_units[over] = self.totals[unit]
        return self.weights.within_units(block.rows, of_units)

    def _over(self, block: UnitBlock) -> tuple[IntegerArray, IntegerArray]:
        """Return rows of units over their limit, and the indices of these units."""
        hashes = block.hashes(self.key[0])
        index = np.empty(len(block), np.int64)
        order = np.argsort(hashes)  # in order they are found many times faster
        index[order] = np.searchsorted(self.of_units, hashes[order])
        over, unit = np.zeros(0, np.int64), np.zeros(0, np.int64)
        waiting = np.arange(len(block))
        while len(waiting):  # once, unless two units over their limit have one hash
            within = index[waiting] < len(self.of_units)
            waiting = waiting[within]
            waiting = waiting[self.of_units[index[waiting]] == hashes[waiting]]
            equal = pc.equal(self.ids.take(pa.array(index[waiting])), block.ids.take(pa.array(waiting)))
            same = equal.to_numpy(zero_copy_only=False).astype(bool)
            over, unit = np.append(over, waiting[same]), np.append(unit, index[waiting[same]])
            waiting = waiting[~same]
            index[waiting] += 1
        return over, unit


def selection_of_units(
    source: UnitSource,
    privacy_unit: PrivacyUnit,
    n_features: int,
    key: SelectionKey,
    *,
    weights: WeightCells | None = None,
    threads: int | None = None,
    on_block: Callable[[int], None] | None = None,
) -> UnitSelection:
    """Select rows in two rounds of passes; ``key`` is 128 random bits."""
    limit = privacy_unit.rows_per_unit
    # The second round reports progress as one pass: how often it passes over the data depends on the number of rows.
    no_bucket = np.zeros(1 << _BUCKET_BITS, dtype=bool)  # the first round needs only the tally
    nothing = Tallied(_Candidates(key[0], no_bucket), key)
    _, tally = source.summarize(nothing, threads=threads, on_block=on_block)
    fingerprint = tally.fingerprint()
    most_rows = _COLLECTED_BYTES // (8 * n_features + _BYTES_BESIDE_ROW)
    shares = list(_bucket_shares(tally.counts, limit, most_rows))
    reported = None if on_block is None else _PartOfAPass(on_block, len(shares))
    result = []
    for wanted in shares:
        candidates = Tallied(_Candidates(key[0], wanted), key)
        collected, tally = source.summarize(candidates, threads=threads, on_block=reported)
        require_same_table(fingerprint, tally)
        result.append(_ranked(collected, limit, n_features, key, weights))
    names, hashes, thresholds, repeated, totals = zip(*result, strict=True)
    ids, of_units = pa.concat_arrays([pa.array([], pa.large_binary()), *names]), np.concatenate(hashes)
    order = np.argsort(of_units, kind="stable")
    return UnitSelection(
        privacy_unit,
        key,
        ids.take(pa.array(order)),
        of_units[order],
        np.concatenate(thresholds)[order],
        np.concatenate(repeated),
        np.concatenate(totals)[order],
        weights,
        fingerprint,
    )


def _bucket_shares(counts: npt.NDArray[np.int64], limit: int, most_rows: int) -> Iterator[BoolArray]:
    """Split the buckets in which a unit may be over its limit into one or more shares."""
    # Each has at most ``most_rows`` candidates.
    over = np.flatnonzero(counts > limit)
    share = (np.cumsum(counts[over]) - 1) // max(most_rows, 1)
    starts = np.flatnonzero(np.diff(share, prepend=-1, append=-1)) if len(over) else np.array([0, 0])
    for start, stop in pairwise(starts.tolist()):
        wanted = np.zeros(len(counts), dtype=bool)
        wanted[over[start:stop]] = True
        yield wanted


def _ranked(
    collected: tuple[UnitBlock, ...], k: int, n_features: int, key: SelectionKey, weights: WeightCells | None
) -> tuple[Any, HashArray, HashArray, FloatArray, IntegerArray]:
    """Return unordered parts of a :class:`UnitSelection`.

    They are the units over their limit among some candidates, their hashes and thresholds, the selected rows of units with
    equal rows, and the sums of weights of the units.
    """
    nothing = UnitBlock(pa.array([], pa.large_binary()), np.zeros((0, n_features)))
    ids = pa.concat_arrays([block.ids for block in (nothing, *collected)])
    units = ids.dictionary_encode()  # exact: bytes are compared
    codes = units.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    over = np.bincount(codes, minlength=len(units.dictionary)) > k
    wanted = over[codes]
    rows = np.concatenate([block.rows for block in (nothing, *collected)])[wanted]
    codes = (np.cumsum(over) - 1)[codes[wanted]]
    names = units.dictionary.filter(pa.array(over))
    totals = np.zeros(len(names), np.int64)
    if weights is not None:
        np.add.at(totals, codes, weights.whole(rows[:, weights.feature]))
    of_units = unit_hashes(names, key[0])
    hashes = _row_hashes(rows, of_units[codes], key[1])
    order = np.argsort(_ranking(codes, hashes))
    codes, hashes = codes[order], hashes[order]
    starts = np.searchsorted(codes, np.arange(len(names)))
    thresholds = hashes[starts + k - 1] + np.uint64(1) if len(names) else hashes
    alike = (codes[1:] == codes[:-1]) & (hashes[1:] == hashes[:-1])
    repeats = np.zeros(len(names), dtype=bool)
    repeats[codes[1:][alike]] = True
    thresholds[repeats] = 0
    of_repeats = repeats[codes]
    repeated = _cut_with_copies(rows[order[of_repeats]], codes[of_repeats], hashes[of_repeats], k)
    return names, of_units, thresholds, repeated, totals


def _cut_with_copies(rows: FloatArray, codes: npt.NDArray[np.int64], hashes: HashArray, k: int) -> FloatArray:
    """Return the k selected rows of units with equal hashes."""
    # Copies are numbered and ranked by their own hash.
    bits = (rows + 0.0).view(np.uint64) if len(rows) else np.zeros(rows.shape, np.uint64)
    same = (codes[1:] == codes[:-1]) & (hashes[1:] == hashes[:-1])
    if np.any(same & (bits[1:] != bits[:-1]).any(axis=1)):  # two different rows of one hash: by what they hold
        order = np.lexsort((*bits.T, hashes, codes))
        rows, codes, hashes = rows[order], codes[order], hashes[order]
    index = np.arange(len(rows))
    first = np.maximum.accumulate(np.where(np.append(True, ~same)[: len(rows)], index, 0))
    copies = index - first
    ranking = _ranking(codes, _copy_hashes(hashes, copies))
    order = np.argsort(ranking)
    if np.any(
        ranking[order[1:]] == ranking[order[:-1]]
    ):  # two copies of one hash: by the hash of the row, and the copy
        order = np.lexsort((copies, hashes, ranking))
    rank = index - np.searchsorted(codes, codes)
    return rows[order[rank < k]]


def _ranking(codes: npt.NDArray[np.int64], hashes: HashArray) -> HashArray:
    """Return numbers that sort by unit and then by hash."""
    return (codes.astype(np.uint64) << np.uint64(_HASH_BITS)) | hashes


class _PartOfAPass:
    """Progress of several passes reported as one."""

    def __init__(self, on_block: Callable[[int], None], n_passes: int) -> None:
        self._on_block, self._n_passes = on_block, n_passes
        self._seen = self._told = 0

    def __call__(self, n_rows: int) -> None:
        self._seen += n_rows
        due = self._seen // self._n_passes - self._told
        self._told += due
        self._on_block(due)


# How many units there are, how many have more rows than count, and how many rows that leaves out: exact, and private.

_KEY = 0
"""Key of the bucket hash for counting units; no selection depends on it."""


@dataclass(frozen=True, repr=False)
class UnitCounts:
    """Candidates by unit."""

    units: int  # with `rows`: units that have a candidate, and candidates
    rows: int
    # units with more candidates, or weight, than the limit, and their candidates
    units_over: int
    rows_of_units_over: int
    beyond: int  # candidates above the limit, summed over these units
    # sums over units of their weights up to the cap, and of the squares of these; 0 without weights
    capped_weights: float
    squared_weights: float


def counts_of_units(
    source: UnitSource,
    limit: int | float,
    *,
    weighted: bool = False,
    threads: int | None = None,
    on_block: Callable[[int], None] | None = None,
) -> UnitCounts:
    """Count the units of a table, and those above a limit."""
    # It takes two rounds of passes. The limit is of candidates, or of their weights, which are then their only cells.
    nothing = Tallied(_Candidates(_KEY, np.zeros(1 << _BUCKET_BITS, dtype=bool)), (_KEY, _KEY))
    _, tally = source.summarize(nothing, threads=threads, on_block=on_block)
    buckets, known = tally.counts, 0 if weighted else 1  # candidates of a bucket that need not be collected
    units, over = known * int(np.count_nonzero(buckets == 1)), np.zeros(0, np.int64)
    capped = squared = 0.0
    shares = list(_bucket_shares(buckets, known, _COLLECTED_BYTES // _BYTES_BESIDE_ROW))
    reported = None if on_block is None else _PartOfAPass(on_block, len(shares))
    for wanted in shares:
        collected = source.summarize(_Candidates(_KEY, wanted), threads=threads, on_block=reported)
        ids = pa.concat_arrays([pa.array([], pa.large_binary()), *(block.ids for block in collected)])
        distinct = ids.dictionary_encode()  # exact: bytes are compared
        codes = distinct.indices.to_numpy(zero_copy_only=False)
        of_units = np.bincount(codes, minlength=len(distinct.dictionary))
        units += len(of_units)
        bounded = of_units
        if weighted:
            weights = np.concatenate([np.zeros(0), *(block.rows[:, 0] for block in collected)])
            bounded = np.bincount(codes, weights=weights, minlength=len(of_units))
            cells = WeightCells(0, 0.0, 1.0 / limit, released=True)
            whole = cells.whole(weights)
            totals = np.bincount(codes, weights=whole, minlength=len(of_units)).astype(np.int64)
            together, own = cells.within_units(weights[:, None], totals[codes]).T
            capped += limit * float(own.sum())
            squared += limit * float(own @ together)
        over = np.append(over, of_units[bounded > limit])
    rows_of_over = int(over.sum())
    beyond = 0 if weighted else rows_of_over - int(limit) * len(over)
    return UnitCounts(units, int(buckets.sum()), len(over), rows_of_over, beyond, capped, squared)
