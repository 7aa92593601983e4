"""History of one cluster as the service runs it: takes rounds, writes them ahead, ships hours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from service.history.extraction import JudgedRound
from service.history.figures import HistoryFigures
from service.history.recorder import Recorder
from service.history.shipping import Shipper
from service.threads import in_thread
from service.watch import WatchedRound

WRITING_SECONDS: Final = 1.0  # between looks whether a round waits
SHIPPING_SECONDS: Final = 30.0  # between looks whether an hour is over


class History:
    """Never delays a round: whatever may wait is done in threads of its own."""

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

    def take(self, watched: WatchedRound) -> None:
        """Take a judged round; one that saw nothing leaves gaps."""
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

    def figures(self) -> HistoryFigures:
        """Return how it goes."""
        written, shipped = self._recorder.figures, self._shipper.figures
        return replace(
            written,
            is_stored=shipped.is_stored,
            lost_rounds=written.lost_rounds + shipped.lost_rounds,
            waiting_hours=shipped.waiting_hours,
            waiting_bytes=shipped.waiting_bytes,
            damaged=shipped.damaged,
        )

    async def write(self) -> None:
        """Write rounds until the service stops; what comes after that is written by `close`."""
        await self._repeat(self._write_waiting, WRITING_SECONDS)

    async def ship(self) -> None:
        """Ship hours until the service stops."""
        await self._repeat(self._ship, self._shipping_seconds)

    def close(self) -> None:
        """Write what waits; blocks no longer than the local disk does."""
        self._recorder.close()

    async def _write_waiting(self) -> None:
        if self._recorder.has_waiting:
            await in_thread(self._recorder.write_waiting, name="history")

    async def _ship(self) -> None:
        await in_thread(self._shipper.ship, name="history_hours")

    async def _repeat(self, work: Callable[[], Awaitable[None]], seconds: float) -> None:
        while not self._stop.is_set():
            await work()
            try:
                async with asyncio.timeout(seconds):
                    await self._stop.wait()
            except TimeoutError:
                continue
