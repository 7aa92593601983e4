"""Removes old transitions a few times a day."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from rules.errors import StoreError
from service.events import Event
from service.log import Log
from service.threads import in_thread

EVERY_SECONDS: Final = 6 * 3600.0
FIRST_AFTER_SECONDS: Final = 60.0  # a start has more urgent things to do


class Retention:
    """A task for the supervisor; it ends only with the service."""

    def __init__(
        self,
        remove: Callable[[datetime], int],
        *,
        keep: timedelta,
        utc_now: Callable[[], datetime],
        log: Log,
    ) -> None:
        self._remove = remove
        self._keep = keep
        self._utc_now = utc_now
        self._log = log

    async def run(self) -> None:
        """Remove what is too old, again and again."""
        wait = FIRST_AFTER_SECONDS
        while True:
            await asyncio.sleep(wait)
            wait = EVERY_SECONDS
            await self.remove_once()

    async def remove_once(self) -> None:
        """Remove what is too old; a database that is away is asked again next time."""
        before = self._utc_now() - self._keep
        try:
            removed = await in_thread(lambda: self._remove(before), name="retention")
        except StoreError as exc:
            self._log.warning(Event.RETENTION, removed=None, why=str(exc))
            return
        self._log.info(Event.RETENTION, removed=removed, before=before.isoformat())
