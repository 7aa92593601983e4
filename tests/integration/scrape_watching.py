"""A watch of metrics endpoints, as the service runs it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from service.app.feeds import scrape_watch
from service.observe.scrape_watch import ScrapeWatch
from service.settings import ScrapeSettings
from tests.unit.service.runtime.recorded_log import RecordedLog


@contextmanager
def watching(**settings: object) -> Iterator[ScrapeWatch]:
    """Watch endpoints twice a second, in a thread with a loop of its own, as the service does."""
    told, stop = RecordedLog(), asyncio.Event()
    chosen = ScrapeSettings.model_validate({"interval_seconds": 0.5, **settings})
    watch = scrape_watch(chosen, stop, told.log)
    assert watch is not None
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(watch.run()))
    thread.start()
    try:
        yield watch
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
