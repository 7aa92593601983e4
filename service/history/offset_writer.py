"""Writes the exact offsets of every round to the local disk: a file per hour, readable at once.

History has lags and spans as float32, in which offsets beyond 16 million have no place; and what it was at one time
is there in as many files as there are series. Here a round is one record. A crash loses at most the round that
was being written; a loss of power may lose what the system had not yet written, some seconds, and the rounds
around it are read.
"""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from rules.errors import StoreError
from rules.facts.last_observation import microseconds
from rules.facts.snapshot import Snapshot
from rules.facts.times import EPOCH
from service.history.ahead import FRAME, HOUR_MS, Record
from service.history.offset_format import (
    Names,
    Numbers,
    RoundOffsets,
    change_record,
    names_record,
    round_record,
)
from service.runtime.events import Event
from service.runtime.log import Log

FULL_EVERY: Final = 40  # rounds: a reader adds up as many, some milliseconds
US_PER_MS: Final = 1000
SUFFIX: Final = ".offsets"
NAME: Final = f"%Y-%m-%dT%H{SUFFIX}"


class OffsetWriter:
    """Appends rounds to the file of their hour; one caller at a time."""

    def __init__(self, folder: Path, log: Log) -> None:
        """`folder` is made with the first round."""
        self._folder = folder
        self._log = log
        self._file: _HourFile | None = None
        self._is_failing = False

    def append(self, snapshot: Snapshot) -> None:
        """Append the offsets of a round; a failure is logged once, and the next round tries again."""
        read_at = snapshot.taken_at + snapshot.ends_read_after
        round_offsets = RoundOffsets.of(snapshot, microseconds(read_at) // US_PER_MS)
        hour = round_offsets.at_ms // HOUR_MS
        try:
            if self._file is None or self._file.hour != hour:
                self.close()
                self._folder.mkdir(parents=True, exist_ok=True)
                self._file = _HourFile(self._folder / file_name(hour), hour)
            self._file.append(round_offsets)
        except OSError as exc:
            self.close()
            if not self._is_failing:
                what, folder = "offsets", str(self._folder)
                self._log.warning(Event.HISTORY_AWAY, what=what, folder=folder, why=str(exc))
            self._is_failing = True
        else:
            self._is_failing = False

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class _HourFile:
    """The file of an hour; its first round here is a full one, whatever was in it before."""

    def __init__(self, path: Path, hour: int) -> None:
        self.hour = hour
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o640)
        self._end = os.fstat(self._file).st_size
        self._names: Names | None = None
        self._place_of_names = 0
        self._before: Numbers | None = None
        self._place_before = 0
        self._changes = 0  # since the last full round

    def append(self, round_offsets: RoundOffsets) -> None:
        """Append a round, and the names before it if they are others; OSError."""
        if self._names is None or not self._names.is_same(round_offsets.names):
            self._place_of_names = self._write(names_record(round_offsets.names))
            self._names, self._before = round_offsets.names, None
        numbers = round_offsets.numbers()
        if self._before is None or self._changes >= FULL_EVERY:
            record = round_record(round_offsets.at_ms, numbers, self._place_of_names)
            self._changes = 0
        else:
            record = change_record(
                round_offsets.at_ms,
                numbers,
                self._before,
                self._place_before,
                self._place_of_names,
            )
            self._changes += 1
        self._place_before, self._before = self._write(record), numbers

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _write(self, record: Record) -> int:
        """Write a record and return the place of its content; one that was cut is skipped by readers."""
        left = memoryview(record.framed())
        place = self._end + FRAME.size
        while left:
            count = os.pwrite(self._file, left, self._end)
            left, self._end = left[count:], self._end + count
        return place


def file_name(hour: int) -> str:
    """Return the name of the file of an hour, given in hours since 1970-01-01 UTC."""
    return f"{EPOCH + timedelta(hours=hour):{NAME}}"


def offset_files(folder: Path) -> list[tuple[datetime, Path]]:
    """Return the files by their hours, in order; none if there is no folder. Raises OSError."""
    if not folder.exists():
        return []
    dated = ((_hour_of(path.name), path) for path in folder.iterdir())
    return sorted((hour, path) for hour, path in dated if hour is not None)


def _hour_of(name: str) -> datetime | None:
    try:
        return datetime.strptime(name, NAME).replace(tzinfo=UTC)
    except ValueError:
        return None


def remove_old_offsets(folder: Path, first_day: date) -> int:
    """Remove the files of days (UTC) before a day, and return how many.

    Raises:
        StoreError: the disk is away.
    """
    try:
        old = [path for hour, path in offset_files(folder) if hour.date() < first_day]
        for path in old:
            path.unlink(missing_ok=True)
    except OSError as exc:
        raise StoreError(f"past offsets cannot be removed: {exc}", retryable=True) from exc
    return len(old)
