"""The log of the service: its form, and what libraries write to it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from service.runtime.log import LibraryHandler, Log, QueuedWriter, make_log
from service.settings import LogFormat
from service.settings.groups import ServiceSettings


def service_log(settings: ServiceSettings, writer: QueuedWriter, *, is_screen: bool) -> Log:
    """Build the log; on a screen it is in colors, unless the settings say JSON."""
    chosen = settings.log_format
    as_json = chosen is LogFormat.JSON or (chosen is LogFormat.AUTO and not is_screen)
    return make_log(writer, as_json=as_json, level=settings.log_level, colors=is_screen)


@contextmanager
def library_messages(log: Log) -> Iterator[None]:
    """Bring what libraries log to our log while the service runs."""
    handler, root = LibraryHandler(log), logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
