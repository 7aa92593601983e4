"""History of one cluster in the service: takes rounds, writes them ahead, ships hours to the folder."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Final

from service.history.extraction import JudgedRound
from service.history.recorder import Recorder
from service.history.shipping import Shipper
from service.history.stats import HistoryStats
from service.observe.watch import WatchedRound
from service.runtime.clock import set_within
from service.runtime.threads import in_thread

SHIPPING_SECONDS: Final = 30.0  # between observations whether an hour is over


class History:
    """Keeps history without delaying a round: slow work is done in threads of its own."""

    def __init__(
        self,
        recorder: Recorder,
        shipper: Shipper,
        *,
        stop: asyncio.Event,
        shipping_seconds: float = SHIPPING_SECONDS,
    ) -> None:
        self._recorder = recorder
        self._shipper = shipper
        self._stop = stop
        self._shipping_seconds = shipping_seconds
        self._loop: asyncio.AbstractEventLoop | None = None  # set when writing begins
        self._wake = asyncio.Event()

    def take(self, watched: WatchedRound) -> None:
        """Take a judged round; one without a snapshot leaves gaps."""
        if watched.snapshot is None or watched.view is None:
            return
        self._recorder.take(
            JudgedRound(
                snapshot=watched.snapshot,
                before=watched.view.before,
                time_lags=watched.time_lags,
                clock_step=watched.clock_step,
            )
        )
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop was closed: `close` writes what waits
                self._loop.call_soon_threadsafe(self._wake.set)

    def stats(self) -> HistoryStats:
        """Return the stats of writing and shipping."""
        written, shipped = self._recorder.stats, self._shipper.stats
        return replace(
            written,
            is_stored=shipped.is_stored,
            lost_rounds=written.lost_rounds + shipped.lost_rounds,
            waiting_hours=shipped.waiting_hours,
            waiting_bytes=shipped.waiting_bytes,
            damaged=shipped.damaged,
        )

    async def write(self) -> None:
        """Write rounds until the service stops; `close` writes the rest."""
        self._loop = asyncio.get_running_loop()
        while not self._stop.is_set():
            self._wake.clear()
            if self._recorder.has_waiting:
                await in_thread(self._recorder.write_waiting, name="history")
            await self._woken()

    async def ship(self) -> None:
        """Ship hours until the service stops."""
        while not self._stop.is_set():
            await in_thread(self._shipper.ship, name="history_hours")
            await set_within(self._stop, self._shipping_seconds)

    def close(self) -> None:
        """Write waiting rounds; blocks no longer than the local disk does."""
        self._recorder.close()

    async def _woken(self) -> None:
        """Wait until a round was taken, or the service stops."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self._wake, self._stop)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
