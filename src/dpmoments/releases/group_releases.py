"""Grouped release: one release for each of several disjoint groups of rows, made in one run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from dpmoments.analysis.answers import aligned
from dpmoments.analysis.classifiers import NaiveBayes, naive_bayes
from dpmoments.analysis.description import card, describe
from dpmoments.base.documents import DocumentKind, check_output
from dpmoments.base.errors import InputKeyError, InputValueError, listed, shown
from dpmoments.base.message import Message
from dpmoments.base.records import ReadBy, read_entries
from dpmoments.privacy.origin import GroupOfRows, group_label
from dpmoments.privacy.receipt import PrivacyStatement, Receipt
from dpmoments.privacy.unit import Neighbors
from dpmoments.releases.disclosed import Disclosed
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.constraints import Level, levels_of
from dpmoments.schema.derived import column_from_dict


@dataclass(frozen=True, eq=False, repr=False)
class GroupReleases(Disclosed, Mapping[Level, MomentRelease]):
    """Releases of the groups that a column's levels define, by level: ``groups["north"]``.

    Made by :func:`dpmoments.release_groups` or :func:`dpmoments.load`.

    Attributes
    ----------
    by : Categorical or Boolean
        The column.
    releases : tuple of MomentRelease
        One per level, in the schema's order.

    Raises
    ------
    ValueError
        If the releases are not those of the column's levels, of one run.
    """

    by: Categorical | Boolean
    releases: tuple[MomentRelease, ...]

    file_kind: ClassVar[DocumentKind] = DocumentKind("dpmoments-group-releases", 1, "release of groups")

    def __post_init__(self) -> None:
        levels, releases = levels_of(self.by), self.releases
        if len(releases) != len(levels):
            raise InputValueError(f"{self.by.name} has {len(levels)} levels, and there are {len(releases)} releases")
        first = releases[0]
        for level, release in zip(levels, releases, strict=True):
            group = release.origin.group
            if group is None or group != GroupOfRows(group.run, self.by.name, level, len(levels)):
                raise InputValueError(f"a release is not of the group {self.by.name} = {level}")
            if group.run != self.id or release.dataset != first.dataset or release.schema != first.schema:
                raise InputValueError("the releases are of groups of several runs")
            known, stated = release.privacy, first.privacy
            if replace(known, rules=()) != replace(stated, rules=()) or known.neighbors is not Neighbors.ADD_REMOVE:
                raise InputValueError("the releases of the groups do not state one budget under add_remove")
        self.receipt.require_within(self.privacy)

    @property
    def runs(self) -> tuple[MomentRelease, ...]:
        """Releases of the groups."""
        return self.releases

    @property
    def id(self) -> str:
        """Unique id of the run, 128 bits in hexadecimal digits."""
        group = self.releases[0].origin.group
        assert group is not None
        return group.run

    @property
    def dataset(self) -> str | None:
        """Curator's name of the dataset, or None."""
        return self.releases[0].dataset

    @property
    def privacy(self) -> PrivacyStatement:
        """Privacy statement for all groups together."""
        first = self.releases[0]
        rule = Message("parallel-groups", column=self.by.name, groups=len(self))
        of_all = first.schema.rules
        of_runs = [
            said.within(label)
            for label, release in self._by_label.items()
            for said in release.privacy.rules
            if said not in (*of_all, *release.origin.rules)
        ]
        return replace(first.privacy, rules=(*of_all, *of_runs, rule))

    @cached_property
    def receipt(self) -> Receipt:
        """List of all noise draws with their groups; of the groups' sums the largest counts."""
        draws = tuple(
            draw
            for level, release in self.items()
            for draw in release.receipt.labeled(group_label(self.by.name, level))
        )
        return replace(self.releases[0].receipt, draws=draws)

    @property
    def warnings(self) -> tuple[Message, ...]:
        """Reasons not to trust a group's release, each with the group's label."""
        return tuple(said.within(label) for label, release in self._by_label.items() for said in release.warnings)

    @property
    def _by_label(self) -> dict[str, MomentRelease]:
        return {group_label(self.by.name, level): release for level, release in self.items()}

    def __getitem__(self, level: Level) -> MomentRelease:
        for known, release in zip(levels_of(self.by), self.releases, strict=True):
            if type(known) is type(level) and known == level:
                return release
        raise InputKeyError(f"{shown(level)} is not a level of {self.by.name}: use one of {listed(self)}")

    def __iter__(self) -> Iterator[Level]:
        return iter(levels_of(self.by))

    def __len__(self) -> int:
        return len(self.releases)

    def naive_bayes(self, columns: Sequence[str] | None = None) -> NaiveBayes:
        """Fit naive Bayes, which predicts the group of a row: free of privacy cost.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns to predict by; default: all but derived features.

        Returns
        -------
        NaiveBayes
            With ``predict`` and ``predict_proba``.

        Raises
        ------
        ValueError
            If a name is unknown or of a derived feature, or no mean was released.

        Notes
        -----
        In each group numbers are assumed to be normal, with the group's own variance, and columns to be independent. Noise
        enters: the variance of the noise on a mean is added to the group's variance, and a share is kept at least its noise
        away from 0 and 1.

        Examples
        --------
        >>> import numpy as np, pyarrow as pa, dpmoments as dpm
        >>> rng = np.random.default_rng(0)
        >>> kind = rng.choice(["a", "b"], 20_000)
        >>> table = pa.table({"kind": kind, "size": rng.normal(np.where(kind == "a", 2.0, 6.0))})
        >>> schema = dpm.Schema(dpm.Categorical("kind", ["a", "b"]), dpm.Numeric("size", 0, 10))
        >>> groups = dpm.release_groups(table, schema, by="kind", epsilon=1.0, insecure_seed=0)
        >>> groups.naive_bayes().predict({"size": [1.0, 8.0]})
        array(['a', 'b'], dtype='<U1')
        """
        return naive_bayes(self.by.name, self, columns)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save all groups in one JSON file, or each in its own file of an existing folder.

        :func:`dpmoments.load` reads both. A file is written as a whole or not at all.

        Parameters
        ----------
        path : path
            A file, or a folder; its files are named after the levels, as in ``01-north.json``.
        overwrite : bool

        Raises
        ------
        FileExistsError
            If a file exists and ``overwrite`` is False; then none is written.
        OSError
            If a file cannot be written.
        """
        if not Path(path).is_dir():
            self.file_kind.write(self.to_dict(), path, overwrite=overwrite)
            return
        # Names that every file system accepts.
        plain = [re.sub(r"[^\w.]+", "-", str(level), flags=re.ASCII).strip("-.")[:40] for level in self]
        names = [f"{index:02d}-{level}" if level else f"{index:02d}" for index, level in enumerate(plain, start=1)]
        files = [Path(path) / f"{name}.json" for name in names]
        for file in files:
            check_output(file, overwrite=overwrite)
        for file, release in zip(files, self.releases, strict=True):
            release.save(file, overwrite=overwrite)

    def summary(self) -> str:
        """Return the releases as text: mechanism, rows of each group, warnings."""
        rows = [(str(level), describe(release).rows_text) for level, release in self.items()]
        lines = [
            f"mechanism: {self.releases[0].mechanism_text}",
            aligned([(self.by.name, "rows"), *rows], numbers=False),
        ]
        return "\n".join([*lines, *self._warned])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file, without loss of precision."""
        return {"by": self.by.to_dict(), "releases": [release.to_dict() for release in self.releases]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> GroupReleases:
        """Invert :meth:`to_dict`; raise KeyError, TypeError or ValueError if an entry is wrong."""
        given = read_entries(
            content, {"by": Annotated[Any, ReadBy(column_from_dict)], "releases": tuple[MomentRelease, ...]}
        )
        by = given["by"]
        if not isinstance(by, Categorical | Boolean):
            raise InputValueError(
                f"groups are the levels of a categorical or boolean column, and '{by.name}' is {by.kind}"
            )
        return cls(by, given["releases"])

    def _repr_html_(self) -> str:
        result = [describe(release) for release in self.releases]
        first = self.releases[0]
        return card(
            f"Releases of {len(self)} groups, the levels of {self.by.name}, by {first.mechanism}",
            [f"{len(first.feature_names):,} features each"],
            [(self.by.name, "rows"), *((str(level), each.rows_text) for level, each in zip(self, result, strict=True))],
            self.privacy,
            self._warned,
            [f"groups[{next(iter(self))!r}].plot.correlation()", 'save("groups.json")'],
        )

    def __repr__(self) -> str:
        levels = ", ".join(map(repr, list(self)[:8])) + (f", … {len(self) - 8} more" if len(self) > 8 else "")
        first = self.releases[0]
        flag = (", no ledger" if self.notes else "") if first.privacy.private else ", NOT PRIVATE"
        return (
            f"GroupReleases(by={self.by.name!r}, levels: {levels}; {len(first.feature_names)} features, "
            f"mechanism={first.mechanism!r}, {first.privacy.budget}{flag})"
        )
