"""Structured logs on stdout: JSON lines for programs, coloured lines for a terminal.

A line that cannot be written (a full disk) must not stop the watch: it is counted and shown as a
metric, and the next line is tried anew.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import MutableMapping
from typing import Any, Final, TextIO

import structlog
from structlog.typing import FilteringBoundLogger, Processor

from service.events import Event

LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}

Log = FilteringBoundLogger


class LineWriter:
    """Writes whole lines to a stream, and counts those that could not be written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self.lost = 0

    def msg(self, message: str) -> None:
        """Write one line."""
        with self._lock:
            try:
                self._stream.write(message + "\n")
                self._stream.flush()
            except (OSError, ValueError):  # full, or closed by who read it
                self.lost += 1

    debug = info = warning = error = critical = exception = msg


def make_log(writer: LineWriter, *, as_json: bool, level: str, colors: bool = False) -> Log:
    """Return a log of its own: nothing global is configured."""
    processors: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        _most_telling_first,
    ]
    if as_json:
        processors += [
            structlog.processors.dict_tracebacks,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ]
    else:
        processors.append(
            structlog.dev.ConsoleRenderer(colors=colors, sort_keys=False, timestamp_key="time")
        )
    log: Log = structlog.wrap_logger(
        writer,
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        context_class=dict,
    )
    return log


def _most_telling_first(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Put time, level and event at the beginning of a line."""
    first = {name: str(event.pop(name)) for name in ("time", "level", "event")}
    return {**first, **event}


class LibraryHandler(logging.Handler):
    """Hands what libraries log to our log, so that there is one format on stdout."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record as an event."""
        trace = record.exc_info if record.exc_info and record.exc_info[0] else None
        self._log.log(
            record.levelno,
            Event.LIBRARY,
            library=record.name,
            message=record.getMessage(),
            **({"exc_info": trace} if trace else {}),
        )
