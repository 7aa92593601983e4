"""Reads the offsets of the round that is nearest to a time, from the files that `offset_writer` writes.

What cannot be read is named, and is never taken for a time without rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from rules.errors import StoreError
from rules.facts.times import EPOCH
from service.history.ahead import FRAME
from service.history.days import MILLISECOND
from service.history.offset_format import (
    ROUND,
    Kind,
    Numbers,
    RoundOffsets,
    names_of,
    numbers_of,
)
from service.history.offset_writer import offset_files
from service.history.segments import PlacedRecord, record_at, records_in
from spark.damage import READ_ERRORS, first_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PastRound:
    """The round nearest to a time, and when the rounds around that time were."""

    before: datetime | None  # of the last readable round at or before the time; None: none
    after: datetime | None  # the first one after it
    offsets: RoundOffsets | None  # of the nearer one; None: neither is near enough
    unreadable: dict[str, str]  # files that cannot be read, or not whole, and why

    @property
    def at(self) -> datetime | None:
        """Return when the round of `offsets` read the ends of partitions."""
        return None if self.offsets is None else _time(self.offsets.at_ms)


class PastOffsets:
    """The offsets of past rounds; every call opens what it reads, from any thread."""

    def __init__(self, folder: Path, interval: timedelta) -> None:
        """`interval`: of rounds; a round further from a time than that says nothing of it."""
        self._folder = folder
        self.interval = interval

    def at(self, time: datetime) -> PastRound:
        """Return the round nearest to a time, if it is within one interval.

        Raises:
            StoreError: the folder cannot be listed.
        """
        try:
            files = offset_files(self._folder)
        except OSError as exc:
            raise StoreError(f"past offsets cannot be read: {exc}", retryable=True) from exc
        search, time_ms = _Search(), (time - EPOCH) // MILLISECOND
        earlier = [path for hour, path in files if hour <= time]
        later = [path for hour, path in files if hour > time]
        before = search.first(reversed(earlier), lambda at_ms: at_ms <= time_ms, last=True)
        after = search.first([*earlier[-1:], *later], lambda at_ms: at_ms > time_ms)
        around = [round_ for round_ in (before, after) if round_ is not None]
        nearest = min(around, key=lambda round_: abs(round_.at_ms - time_ms), default=None)
        is_near = nearest is not None and (
            abs(nearest.at_ms - time_ms) * MILLISECOND <= self.interval
        )
        return PastRound(
            before=None if before is None else _time(before.at_ms),
            after=None if after is None else _time(after.at_ms),
            offsets=search.read(nearest) if nearest is not None and is_near else None,
            unreadable=search.unreadable,
        )


@dataclass(frozen=True, slots=True)
class _PlacedRound:
    """A round whose offsets can be read."""

    at_ms: int
    path: Path
    place: int  # of its record in the file


class _Search:
    """Searches files for rounds; in `unreadable` is what could not be read, and why."""

    def __init__(self) -> None:
        self.unreadable: dict[str, str] = {}
        self._rounds: dict[Path, list[_PlacedRound]] = {}

    def first(
        self, paths: Iterable[Path], fits: Callable[[int], bool], *, last: bool = False
    ) -> _PlacedRound | None:
        """Return the first round, or the last one, whose time fits, of the first file that has one."""
        for path in paths:
            fitting = [round_ for round_ in self._of(path) if fits(round_.at_ms)]
            if fitting:
                return fitting[-1 if last else 0]
        return None

    def read(self, placed: _PlacedRound) -> RoundOffsets | None:
        """Return the offsets of a round; None if it cannot be read any more."""
        try:
            with placed.path.open("rb") as file:
                return _offsets_of(file, placed)
        except (*READ_ERRORS, LookupError) as exc:
            self.unreadable[placed.path.name] = first_line(exc)
            return None

    def _of(self, path: Path) -> list[_PlacedRound]:
        """Return the readable rounds of a file, by time."""
        if path not in self._rounds:
            rounds: list[_PlacedRound] = []
            try:
                with path.open("rb") as file:
                    rounds = sorted(self._scan(file, path), key=lambda round_: round_.at_ms)
            except FileNotFoundError:
                pass  # it was old enough to be removed
            except READ_ERRORS as exc:
                self.unreadable[path.name] = first_line(exc)
            self._rounds[path] = rounds
        return self._rounds[path]

    def _scan(self, file: BinaryIO, path: Path) -> Iterator[_PlacedRound]:
        """Yield the rounds for which everything is there that they need."""
        readable: set[int] = set()
        whole = end = 0
        for record in records_in(file):
            whole += FRAME.size + len(record.payload)
            end = record.place + len(record.payload)
            if record.kind == Kind.NAMES:
                readable.add(record.place)
            elif len(record.payload) >= ROUND.size:
                at_ms, before, names = ROUND.unpack_from(record.payload)
                if names in readable and (record.kind == Kind.FULL or before in readable):
                    readable.add(record.place)
                    yield _PlacedRound(at_ms, path, record.place)
        if end > whole:  # what follows the last whole record may be being written
            self.unreadable[path.name] = f"{end - whole:,} bytes are damaged"


def _offsets_of(file: BinaryIO, placed: _PlacedRound) -> RoundOffsets:
    """Add up the changes since the last full round."""
    records = [_record(file, placed.place)]
    while records[-1].kind == Kind.CHANGE:
        records.append(_record(file, ROUND.unpack_from(records[-1].payload)[1]))
    names = names_of(_record(file, ROUND.unpack_from(records[0].payload)[2]).payload)
    full, *changes = [numbers_of(record.payload, names) for record in reversed(records)]
    columns, masks = full.columns, full.masks
    for change in changes:
        columns, masks = columns + change.columns, masks ^ change.masks
    return RoundOffsets.from_numbers(placed.at_ms, names, Numbers(columns, masks))


def _record(file: BinaryIO, place: int) -> PlacedRecord:
    """Return the record whose content is at a place; LookupError if it is damaged."""
    record = record_at(file, place - FRAME.size)
    if record is None:
        raise LookupError(f"no whole record is at {place}")
    return record


def _time(at_ms: int) -> datetime:
    return EPOCH + at_ms * MILLISECOND
