"""Stores the remembered end offsets over a restart: one file in the data directory, replaced as a whole.

It is written every few minutes and when the service stops. After a kill the observations since then are
missing, so that time lags over that time are less exact, and marked so. A file that cannot be read at the start stays
as it is: it is not written over, so that the next start has it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pyarrow.fs import LocalFileSystem

from rules.time_lag import EndHistory
from rules.time_lag.ends import DEFAULT
from service.history.ends_format import read_ends, write_ends
from service.runtime.events import Event
from service.runtime.log import Log
from service.runtime.threads import in_thread
from spark.damage import DamagedError, read_proven

FILE: Final = "time-lag.npz"  # in the data directory
SAVING_SECONDS: Final = 300.0


class KeptEnds:
    """The file of remembered ends, and its latest content."""

    def __init__(self, path: Path, *, stop: asyncio.Event, log: Log) -> None:
        self._path = path
        self._stop = stop
        self._log = log
        self._saved: EndHistory | None = None
        self._is_failing = False
        self._is_unread = False
        self.current: Callable[[], EndHistory | None] = lambda: None

    def load(self) -> EndHistory | None:
        """Return the stored ends of an earlier process; a damaged file is logged and set aside."""
        try:
            self._saved = read_proven(
                LocalFileSystem(), str(self._path), lambda file: read_ends(file, DEFAULT)
            )
        except FileNotFoundError:
            return None
        except DamagedError as exc:
            self._log.warning(Event.HISTORY_DAMAGED, file=str(self._path), why=str(exc))
            self._set_aside()
        except OSError as exc:
            self._is_unread = True
            why = f"{exc}: it is left as it is, and no ends are saved until a start can read it"
            self._log.warning(Event.HISTORY_AWAY, file=str(self._path), why=why)
        return self._saved

    def save(self) -> None:
        """Write the current ends, if they changed; a failure is logged once."""
        current = self.current()
        if current is None or current is self._saved or self._is_unread:
            return
        part = self._path.with_suffix(".part")
        try:
            with part.open("wb") as file:
                write_ends(current, file)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._path)
        except OSError as exc:
            if not self._is_failing:
                self._log.warning(Event.HISTORY_AWAY, file=str(self._path), why=str(exc))
            self._is_failing = True
            return
        self._saved, self._is_failing = current, False

    async def run(self) -> None:
        """Save again and again until the service stops; the caller saves the last state by `save`."""
        while not self._stop.is_set():
            try:
                async with asyncio.timeout(SAVING_SECONDS):
                    await self._stop.wait()
            except TimeoutError:
                await in_thread(self.save, name="time_lag")

    def _set_aside(self) -> None:
        try:
            self._path.replace(self._path.with_suffix(".damaged"))
        except OSError as exc:
            self._log.warning(Event.HISTORY_DAMAGED, file=str(self._path), why=str(exc))
