"""Structured logs on stdout: JSON lines for programs, coloured lines for a terminal.

A line that cannot be written (a full disk) must not stop the watch: it is counted and shown as a
metric, and the next line is tried anew.

Names of topics and groups are untrusted: none of them can forge a line, or colour or clear a
terminal. Tracebacks have no values of variables, which may be passwords.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import traceback
from collections.abc import MutableMapping
from queue import Full, Queue
from typing import Any, Final, TextIO

import structlog
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import ExcInfo, FilteringBoundLogger, Processor

from service.runtime.events import Event

LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}

# Characters above ASCII at which some readers break a line, or that terminals interpret; and lone
# surrogates, which no file takes. JSON itself escapes what is below 0x20.
UNPRINTED: Final = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

Log = FilteringBoundLogger

QUEUED_LINES: Final = 10_000
CLOSE_SECONDS: Final = 2.0


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
                self._write(message + "\n")
                self._stream.flush()
            except (OSError, ValueError):  # full, or closed by who read it
                self.lost += 1

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
        except UnicodeEncodeError:  # a locale that is not UTF-8; nothing of the line is out yet
            self._stream.write("".join(c if c.isascii() else _escape(c) for c in text))

    debug = info = warning = error = critical = exception = msg


class QueuedWriter:
    """Hands lines to a thread that writes them, and drops those that find no space.

    A reader of our output that stalls (a full pipe, a stopped terminal) holds up that thread alone.
    """

    def __init__(self, writer: LineWriter, limit: int = QUEUED_LINES) -> None:
        self._writer = writer
        self._lines: Queue[str | None] = Queue(limit)
        self._dropped = 0
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Return how many lines could not be written, or found no space."""
        return self._writer.lost + self._dropped

    def msg(self, message: str) -> None:
        """Queue one line."""
        try:
            self._lines.put_nowait(message)
        except Full:
            self._dropped += 1

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Write what is queued, as far as that is possible in time."""
        try:
            self._lines.put(None, timeout=seconds)
        except Full:
            return
        self._thread.join(seconds)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            self._writer.msg(line)

    debug = info = warning = error = critical = exception = msg


def make_log(
    writer: LineWriter | QueuedWriter, *, as_json: bool, level: str, colors: bool = False
) -> Log:
    """Return a log of its own: nothing global is configured."""
    processors: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        _order_fields,
    ]
    if as_json:
        processors += [
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            structlog.processors.JSONRenderer(ensure_ascii=False),
            _on_one_line,
        ]
    else:
        console = structlog.dev.ConsoleRenderer(
            colors=colors,
            sort_keys=False,
            timestamp_key="time",
            exception_formatter=_write_traceback,
        )
        processors += [_printable_values, console]
    log: Log = structlog.wrap_logger(
        writer,
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        context_class=dict,
    )
    return log


def _order_fields(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Put time, level and event at the beginning of a line."""
    first = {name: str(event.pop(name)) for name in ("time", "level", "event")}
    return {**first, **event}


def _printable_values(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    for name, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[name] = "".join(map(_printable, value))
    return event


def _on_one_line(_logger: object, _method: str, rendered: Any) -> Any:
    return UNPRINTED.sub(lambda match: _escape(match[0]), rendered)


def _write_traceback(stream: TextIO, error: ExcInfo) -> None:
    """Write every line of it indented, so that no message in it resembles a line of the log."""
    lines = "".join(traceback.format_exception(*error)).splitlines()
    stream.writelines("\n    " + "".join(map(_printable, line)) for line in lines)


def _printable(char: str) -> str:
    return char if char.isprintable() else _escape(char)


def _escape(char: str) -> str:
    """Return a character as JSON writes it in ASCII."""
    return "\\u007f" if char == "\x7f" else json.dumps(char)[1:-1]


class LibraryHandler(logging.Handler):
    """Hands what libraries log to our log, so that there is one format on stdout."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record as an event."""
        trace = record.exc_info if record.exc_info and record.exc_info[0] else None
        # Libraries have levels of their own, which a log that filters does not know.
        log = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        log(
            Event.LIBRARY,
            library=record.name,
            message=_message(record),
            **({"exc_info": trace} if trace else {}),
        )


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):  # a placeholder too many: the library goes on
        return str(record.msg)
