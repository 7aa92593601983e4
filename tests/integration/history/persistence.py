"""A recorder and a shipper of history on a folder of a test."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from rules.facts.memory import Memory, advance
from service.history.days import DayReader, days_of
from service.history.extraction import Extraction, JudgedRound
from service.history.folder import Described, Folder, open_folder
from service.history.folding import Folded, fold_due
from service.history.recorder import Recorder
from service.history.shipping import MOST_WAITING_BYTES, Shipper
from tests.factories import at, offsets, snapshot
from tests.packed import samples_of
from tests.unit.service.runtime.recorded_log import RecordedLog

INTERVAL = 15.0
FAR = date(2100, 1, 1)


class Kept:
    """History of one cluster as the service keeps it, without its loops."""

    def __init__(
        self,
        path: Path,
        *,
        folder: Callable[[], Folder] | None = None,
        most_waiting_bytes: int = MOST_WAITING_BYTES,
        time_zone: str = "UTC",
    ) -> None:
        self.ahead, self.url, self.reported = path / "ahead", str(path / "history"), RecordedLog()
        described = Described(cluster="c", buckets=4, time_zone=time_zone)
        self.open = folder or (lambda: open_folder(self.url, described))
        self.recorder = Recorder(
            self.ahead,
            Extraction("c", interval_seconds=INTERVAL),
            interval_seconds=INTERVAL,
            monotonic=lambda: 0.0,
            log=self.reported.log,
        )
        self.shipper = Shipper(
            self.ahead,
            self.open,
            current=lambda: self.recorder.current,
            on_labels_lost=self.recorder.write_labels_again,
            log=self.reported.log,
            most_waiting_bytes=most_waiting_bytes,
        )
        self.memory: Memory | None = None

    def round(self, seconds: float, step: timedelta | None = None, **observations: Any) -> None:
        """Make and write a round so many seconds after noon; its log ends tell its number."""
        number = round(seconds / INTERVAL)
        seen = snapshot(
            **{
                "taken_at": at(seconds),
                "offsets": offsets(log_end_offset=[100 + number] * 3),
                **observations,
            }
        )
        self.recorder.take(JudgedRound(snapshot=seen, before=self.memory, clock_step=step))
        self.recorder.write_waiting()
        self.memory = advance(seen, self.memory)

    def fold(self, before: date = FAR) -> Folded:
        return fold_due(self.open(), before=before, lock=self.ahead / "fold.lock")

    def days(self) -> dict[date, dict[int, dict[int, float]]]:
        """Return all samples by day, series and time in ms."""
        folder = self.open()
        found = {}
        for day in days_of(folder):
            reader = DayReader(folder, day)
            rows = [one for bucket in reader.buckets() for one in reader.blocks(bucket)]
            assert not reader.damaged
            found[day] = samples_of(rows)
        return found
