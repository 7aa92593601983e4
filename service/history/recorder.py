"""Writes rounds ahead, in order, in a thread of its own: no round waits for a disk.

A round that cannot be written (the disk is full, or read-only) is lost, logged and counted; the next one is
tried again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from service.history.ahead import (
    HOUR_MS,
    Record,
    SegmentWriter,
    index,
    labels,
    next_path,
    round_record,
)
from service.history.extraction import Extraction, JudgedRound, RoundSamples
from service.history.stats import HistoryStats
from service.runtime.events import Event
from service.runtime.log import Log

MOST_WAITING: Final = 8  # rounds: more than a slow disk is behind, and few enough for the memory


OnSamples = Callable[[JudgedRound, RoundSamples], None]


def ignore_samples(_judged: JudgedRound, _samples: RoundSamples) -> None:
    """Do nothing with the samples of a round."""


class Recorder:
    """Writes the rounds of one cluster; `take` may be called by any thread, the rest by one at a time."""

    def __init__(  # noqa: PLR0913 - each by its name
        self,
        folder: Path,
        extraction: Extraction,
        *,
        interval_seconds: float,
        monotonic: Callable[[], float],
        log: Log,
        on_samples: OnSamples = ignore_samples,
    ) -> None:
        """`folder` holds the segments; it is made with the first round.

        `on_samples` is called with the samples of every round, in order, after they were tried to be written.
        """
        self._folder = folder
        self._extraction = extraction
        self._step_ms = round(interval_seconds * 1000)
        self._monotonic = monotonic
        self._log = log
        self._on_samples = on_samples
        self._waiting: deque[JudgedRound] = deque()
        self._lock = threading.Lock()  # of the queue and the stats
        self._turn = threading.Lock()  # of writing
        self._segment: SegmentWriter | None = None
        self._path: Path | None = None  # set before the file is made, and reset when it is closed
        self._version = -1  # of the series that the segment knows
        self._labels: dict[int, bytes] = {}  # texts of series that are in no segment yet
        self._tells_anew = False
        self._stats = HistoryStats()

    @property
    def stats(self) -> HistoryStats:
        """Return the stats of writing."""
        with self._lock:
            return self._stats

    @property
    def current(self) -> Path | None:
        """Return the segment being written."""
        return self._path

    @property
    def has_waiting(self) -> bool:
        """Whether a round waits."""
        return bool(self._waiting)

    def take(self, judged: JudgedRound) -> None:
        """Take a round; if too many wait, the oldest is lost."""
        with self._lock:
            self._waiting.append(judged)
            if len(self._waiting) > MOST_WAITING:
                self._waiting.popleft()
                self._stats = replace(self._stats, lost_rounds=self._stats.lost_rounds + 1)

    def write_labels_again(self) -> None:
        """Write the labels of all series again with the next round: a segment that held them is lost."""
        self._tells_anew = True

    def write_waiting(self) -> None:
        """Write waiting rounds; a failure is logged, and raises nothing."""
        with self._turn:
            while self.has_waiting:
                with self._lock:
                    judged = self._waiting.popleft()
                self._write(judged)

    def close(self) -> None:
        """Write waiting rounds, and close the segment."""
        self.write_waiting()
        with self._turn:
            self._close_segment()

    def _write(self, judged: JudgedRound) -> None:
        began = self._monotonic()
        samples = self._samples(judged)
        try:
            self._append(samples)
        except OSError as exc:
            self._close_segment()
            self._note_failure(exc, samples)
        else:
            self._note_written(judged, samples, self._monotonic() - began)
        self._on_samples(judged, samples)

    def _samples(self, judged: JudgedRound) -> RoundSamples:
        if self._tells_anew:
            self._extraction.ids.make_anew()
            self._tells_anew = False
        samples = self._extraction.samples(judged)
        self._labels.update(self._extraction.take_new_labels())
        return samples

    def _append(self, samples: RoundSamples) -> None:
        segment = self._segment_for(samples.at_ms)
        records: list[Record] = []
        if self._version != samples.version:
            records.append(index(samples.version, samples.ids, samples.metric))
        records.extend(labels(self._labels))
        records.append(round_record(samples.at_ms, samples.version, samples.values))
        segment.append(records)
        self._version, self._labels = samples.version, {}

    def _segment_for(self, at_ms: int) -> SegmentWriter:
        hour = at_ms // HOUR_MS
        if self._segment is None or self._segment.hour != hour:
            self._close_segment()
            self._folder.mkdir(parents=True, exist_ok=True)
            self._path = next_path(self._folder)
            self._segment = SegmentWriter(self._path, hour=hour, step_ms=self._step_ms)
        return self._segment

    def _close_segment(self) -> None:
        if self._segment is not None:
            self._segment.close()
        self._segment, self._path, self._version = None, None, -1

    def _note_failure(self, why: OSError, samples: RoundSamples) -> None:
        with self._lock:
            before = self._stats
            self._stats = replace(
                before,
                is_written=False,
                lost_rounds=before.lost_rounds + 1,
                went_back=before.went_back + samples.went_back,
            )
        if before.is_written:
            self._log.warning(
                Event.HISTORY_AWAY, what="rounds", folder=str(self._folder), why=str(why)
            )

    def _note_written(self, judged: JudgedRound, samples: RoundSamples, took: float) -> None:
        with self._lock:
            before = self._stats
            self._stats = replace(
                before,
                is_written=True,
                series=len(samples),
                rounds=before.rounds + 1,
                went_back=before.went_back + samples.went_back,
                left_out=samples.collided,
                written_at=judged.snapshot.taken_at,
                took_seconds=took,
            )
        if not before.is_written:
            self._log.info(Event.HISTORY_BACK, what="rounds", lost_rounds=before.lost_rounds)
        if samples.collided > before.left_out:
            self._log.warning(Event.HISTORY_COLLISION, series=samples.collided)
