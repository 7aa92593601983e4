"""Removes what is old again and again: transitions a few times a day, log lines more often."""

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

    def __init__(  # noqa: PLR0913 - what is removed, and when, each by its name
        self,
        remove: Callable[[datetime], int],
        *,
        what: str,
        keep: timedelta,
        utc_now: Callable[[], datetime],
        log: Log,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        """`what` is the word of the log for what is removed."""
        self._remove = remove
        self._what = what
        self._every_seconds = every_seconds
        self._keep = keep
        self._utc_now = utc_now
        self._log = log

    async def run(self) -> None:
        """Remove what is too old, again and again."""
        wait = FIRST_AFTER_SECONDS
        while True:
            await asyncio.sleep(wait)
            wait = self._every_seconds
            await self.remove_once()

    async def remove_once(self) -> None:
        """Remove what is too old; a database that is away is asked again next time."""
        before = self._utc_now() - self._keep
        try:
            removed = await in_thread(lambda: self._remove(before), name="retention")
        except StoreError as exc:
            self._log.warning(Event.RETENTION, what=self._what, removed=None, why=str(exc))
            return
        tell = self._log.info if removed else self._log.debug
        tell(Event.RETENTION, what=self._what, removed=removed, before=before.isoformat())
