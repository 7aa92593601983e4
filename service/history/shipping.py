"""Ships the segments of hours that are over to the folder of history.

While the folder is away they wait on the local disk, up to a limit; beyond it the oldest are dropped. A
segment is removed when its hour and the labels of its series are in the folder.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final

from rules.errors import StoreError
from service.history.ahead import segment_paths
from service.history.dictionary import Dictionary
from service.history.folder import ASIDE, Folder
from service.history.hours import packed_hour, write_hour
from service.history.segments import Segment, crc_of, read_segment, size_of
from service.history.stats import HistoryStats
from service.runtime.events import Event
from service.runtime.log import Log

# Three days of 10,000 partitions, 30,000 commits, a round in 15 s.
MOST_WAITING_BYTES: Final = 8 * 2**30


class Shipper:
    """Ships the segments of one folder on the local disk; one caller at a time."""

    def __init__(  # noqa: PLR0913 - each by its name
        self,
        ahead: Path,
        open_folder: Callable[[], Folder],
        *,
        current: Callable[[], Path | None],
        on_labels_lost: Callable[[], None],
        log: Log,
        most_waiting_bytes: int = MOST_WAITING_BYTES,
    ) -> None:
        """`current` returns the segment being written; `on_labels_lost` has labels written again."""
        self._ahead = ahead
        self._open = open_folder
        self._current = current
        self._on_labels_lost = on_labels_lost
        self._log = log
        self._most_bytes = most_waiting_bytes
        self._dictionary: Dictionary | None = None
        self._folder: Folder | None = None
        self._left_out: set[int] = set()  # series whose id another one has
        self._lock = threading.Lock()
        self._stats = HistoryStats()

    @property
    def stats(self) -> HistoryStats:
        """Return the stats of shipping."""
        with self._lock:
            return self._stats

    def ship(self) -> None:
        """Ship segments that are over; a failure is logged, and the segments wait."""
        try:
            waiting = self._waiting()
            for path in waiting:
                self._ship(path)
        except (StoreError, OSError) as exc:
            self._note_failure(exc)
            self._keep_within_limit()
        else:
            if waiting:
                self._note_back()
        self._count_waiting()

    def _waiting(self) -> list[Path]:
        there = segment_paths(self._ahead)
        # Read after the list: a segment is announced before its file is made.
        current = self._current()
        return [path for path in there if path != current]

    def _ship(self, path: Path) -> None:
        with path.open("rb") as file:
            segment = read_segment(file)
            if segment.rounds:
                self._store(segment, file)
            size = size_of(file)
        if not segment.rounds:
            self._set_unreadable_aside(path, size, segment)
            return
        if segment.lost_bytes:
            self._set_torn_aside(path, segment)
        path.unlink()

    def _store(self, segment: Segment, file: BinaryIO) -> None:
        folder, dictionary = self._open_both()
        series, segment.series = segment.series, {}
        added = dictionary.add(series, min(round_.at_ms for round_ in segment.rounds))
        series.clear()
        self._set_aside(dictionary.damaged)
        if new := set(added.collisions) - self._left_out:
            self._left_out |= new
            self._log.warning(Event.HISTORY_COLLISION, series=len(new))
        packed = packed_hour(segment, buckets=folder.buckets, left_out=self._left_out)
        if packed is not None:
            write_hour(folder, packed, crc_of(file))

    def _open_both(self) -> tuple[Folder, Dictionary]:
        if self._folder is None or self._dictionary is None:
            self._folder = self._open()
            self._dictionary = Dictionary(self._folder)
        return self._folder, self._dictionary

    def _set_unreadable_aside(self, path: Path, size: int, segment: Segment) -> None:
        """Set aside a segment without any readable round; one that was only begun is just removed."""
        if not segment.lost_bytes and not segment.lost_rounds:
            path.unlink()
            return
        aside = path.parent / ASIDE
        aside.mkdir(exist_ok=True)
        path.rename(aside / path.name)
        self._on_labels_lost()
        self._log.warning(Event.HISTORY_DAMAGED, file=str(aside / path.name), bytes=size)
        self._count(damaged=1, lost_rounds=segment.lost_rounds)

    def _set_torn_aside(self, path: Path, segment: Segment) -> None:
        self._on_labels_lost()
        self._log.warning(
            Event.HISTORY_DAMAGED,
            file=str(path),
            lost_bytes=segment.lost_bytes,
            lost_rounds=segment.lost_rounds,
            rounds=len(segment.rounds),
        )
        self._count(damaged=1, lost_rounds=segment.lost_rounds)

    def _set_aside(self, damaged: dict[str, str]) -> None:
        for file, why in damaged.items():
            self._log.warning(Event.HISTORY_DAMAGED, file=file, why=why)
        if damaged:
            self._on_labels_lost()
        self._count(damaged=len(damaged))
        damaged.clear()

    def _keep_within_limit(self) -> None:
        """Drop the oldest hours if too much waits."""
        try:
            sizes = [(path, path.stat().st_size) for path in self._waiting()]
            excess = sum(size for _, size in sizes) - self._most_bytes
            for path, size in sizes:
                if excess <= 0:
                    return
                with path.open("rb") as file:
                    lost = len(read_segment(file).rounds)
                path.unlink()
                excess -= size
                self._on_labels_lost()
                self._count(lost_rounds=lost)
                self._log.warning(
                    Event.HISTORY_AWAY, what="an hour that waited", file=str(path), lost_rounds=lost
                )
        except OSError:
            return  # the disk is away as well, which is logged

    def _note_failure(self, why: Exception) -> None:
        with self._lock:
            was_stored = self._stats.is_stored
            self._stats = replace(self._stats, is_stored=False)
        self._folder = self._dictionary = None  # what is known of it may be wrong by then
        if was_stored:
            self._log.warning(Event.HISTORY_AWAY, what="hours", why=str(why))

    def _note_back(self) -> None:
        with self._lock:
            was_stored = self._stats.is_stored
            self._stats = replace(self._stats, is_stored=True)
        if not was_stored:
            self._log.info(Event.HISTORY_BACK, what="hours")

    def _count(self, *, damaged: int = 0, lost_rounds: int = 0) -> None:
        with self._lock:
            self._stats = replace(
                self._stats,
                damaged=self._stats.damaged + damaged,
                lost_rounds=self._stats.lost_rounds + lost_rounds,
            )

    def _count_waiting(self) -> None:
        try:
            sizes = [path.stat().st_size for path in self._waiting()]
        except OSError:
            return
        with self._lock:
            self._stats = replace(self._stats, waiting_hours=len(sizes), waiting_bytes=sum(sizes))
