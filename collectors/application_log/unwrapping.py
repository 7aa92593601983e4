"""Take lines out of what a shipper put around them: JSON, a container's name, colours, the bytes of UTF-16.

Any bytes may come; what is no known form is returned as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

MOST_LINES: Final = 2_000  # of a stack trace in one JSON document
_COLOURS: Final = re.compile(rb"\x1b\[[0-9;?]{0,20}[A-Za-z]")
# What Docker Compose, kubectl --prefix, containerd and syslog put first.
_PREFIXES: Final = (
    re.compile(rb"(?P<name>[\w][\w.-]{0,80}?)\s{0,40}\| "),
    re.compile(rb"\[?pod/(?P<name>[\w.-]{1,253}(?:/[\w.-]{1,253})?)\]? "),
    re.compile(rb"(?:(?P<name>(?!))|\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d) std(?:out|err) [FP] )"),
    re.compile(
        rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,100} (?P<name>[\w./-]{1,100})(?:\[\d{1,10}\])?: "
    ),
)  # fmt: skip
_SPLIT: Final = re.compile(r"\r?\n|\\r?\\n(?=\\tat |\tat |\s+at |Caused by|org\.apache)|(?=\\tat )")
_ESCAPED: Final = (b"\\n\\tat ", b"\\tat ", b"\\n\tat ", b"\\nCaused by")

# Keys of documents, the flat ones of ECS with dots; the first one that has a text counts.
_MESSAGE: Final = (
    "message", "msg", "log", "short_message", "textPayload", "@message", "MESSAGE", "body", "event",
)  # fmt: skip
_TRACE: Final = (
    "stack_trace", "error.stack_trace", "full_message", "exception", "stackTrace", "stacktrace",
    "exc_info", "thrown.extendedStackTrace", "error.stack", "exception.stacktrace", "_exception",
    "err.stack", "stack", "throwable", "exception.stack_trace", "_stack_trace", "error_stack",
    "error", "err", "errorVerbose",
)  # fmt: skip
_TIME: Final = (
    "@timestamp",
    "timestamp",
    "time",
    "ts",
    "instant.epochSecond",
    "timeMillis",
    "datetime",
    "date",
)
_LEVEL: Final = ("log.level", "level", "severity", "levelname", "log_level")
_THREAD: Final = (
    "process.thread.name",
    "thread_name",
    "thread",
    "_thread",
    "threadName",
    "_thread_name",
)
_LOGGER: Final = ("log.logger", "logger_name", "logger", "loggerName", "_logger", "name", "caller")
_SERVICE: Final = (
    "service.name", "service", "app", "application", "kubernetes.pod_name", "kubernetes.pod.name",
    "kubernetes.container_name", "container_name", "container.name", "appname", "_app", "_service",
    "pod", "spring.application.name", "_HOSTNAME", "host.name", "host",
)  # fmt: skip
_INNER: Final = ("jsonPayload", "payload", "fields", "_source", "record")
_ERROR: Final = (("error.type", "error.message"), ("thrown.name", "thrown.message"), ("exception.type", "exception.message"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """Lines as their application wrote them."""

    lines: tuple[bytes, ...]
    application: str | None = None
    is_document: bool = False  # a whole record: the next line does not belong to it


def clean(line: bytes) -> bytes:
    """Return a line without colours, the end of a line of Windows, and the zero bytes of UTF-16."""
    if b"\x00" in line:
        line = line.replace(b"\x00", b"").removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff")
    if b"\x1b" in line:
        line = _COLOURS.sub(b"", line)
    return line.rstrip(b"\r\n").removeprefix(b"\xef\xbb\xbf")


def unwrap(line: bytes) -> Unwrapped:
    """Return the lines in a line, and the name of the application if a shipper put one there."""
    application: str | None = None
    if _may_have_prefix(line):
        line, application = _without_prefix(line)
    if line[:1] in b"{ " and line.lstrip().startswith(b"{"):
        document = _document(line)
        if document is not None:
            return _of_document(document, application)
    if b"\\" in line and any(words in line for words in _ESCAPED):
        text = line.decode(errors="replace")
        return Unwrapped(tuple(_lines_of(text)), application)
    return Unwrapped((line,), application)


def _may_have_prefix(line: bytes) -> bool:
    """Whether one of the prefixes may match: quickly, because nearly all lines have none."""
    head = line[:140]
    is_of_syslog = line[3:4] == b" " and line[6:7] == b" "
    return is_of_syslog or b" | " in head or head.startswith((b"[pod/", b"pod/")) or b" std" in head


def _without_prefix(line: bytes) -> tuple[bytes, str | None]:
    name: str | None = None
    for _ in range(2):  # a container's line within one of a pod
        match = next((m for prefix in _PREFIXES if (m := prefix.match(line)) is not None), None)
        if match is None:
            break
        own_name = match["name"]
        name = name or (None if own_name is None else own_name.decode(errors="replace"))
        line = line[match.end() :]
    return line, name


def _document(body: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _of_document(document: Mapping[str, Any], application: str | None) -> Unwrapped:
    for key in _INNER:
        inner = document.get(key)
        if isinstance(inner, dict):
            document = {**inner, **{k: v for k, v in document.items() if k != key}}
    raw = document.get("log")
    if isinstance(raw, str) and "stream" in document:  # docker's own: one line of the application
        inner_line = unwrap(raw.rstrip("\r\n").encode(errors="replace"))
        return Unwrapped(
            inner_line.lines, application or inner_line.application, inner_line.is_document
        )
    message, trace = _first(document, _MESSAGE), _first(document, _TRACE)
    if message is None and trace is None:
        return Unwrapped((json.dumps(document).encode(),), application, is_document=True)
    if trace is not None and _is_sentence(trace):
        message, trace = f"{message or ''} {trace}".strip(), None
    name = application or _first(document, _SERVICE)
    head = " ".join(part for part in (_time(document), _first(document, _LEVEL), _thread(document),
                                      _first(document, _LOGGER), "-", message or "") if part)  # fmt: skip
    lines = [*_lines_of(head), *(_lines_of(trace) if trace else _error(document))]
    return Unwrapped(tuple(lines[:MOST_LINES]), name, is_document=True)


def _is_sentence(trace: str) -> bool:
    """Whether the text of an error is no exception, as Go and JavaScript write it: it belongs to the message."""
    return not any(mark in trace for mark in ("\n", "xception", "Error", "\\n"))


def _lines_of(text: str) -> Iterator[bytes]:
    for part in _SPLIT.split(text):
        if part:
            yield part.replace("\\t", "\t").encode(errors="replace")


def _error(document: Mapping[str, Any]) -> Iterator[bytes]:
    for kind, message in _ERROR:
        name = _first(document, (kind,))
        if name is not None:
            yield f"{name}: {_first(document, (message,)) or ''}".encode(errors="replace")
            return


def _thread(document: Mapping[str, Any]) -> str | None:
    thread = _first(document, _THREAD)
    return None if thread is None else f"[{thread}]"


def _time(document: Mapping[str, Any]) -> str | None:
    for key in _TIME:
        value = _at(document, key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _iso(float(value))
    return None


def _iso(value: float) -> str | None:
    seconds = value / 1000 if value > 1e11 else value
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def _first(document: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    values = (_at(document, key) for key in keys)
    return next((value for value in values if isinstance(value, str) and value), None)


def _at(document: Mapping[str, Any], key: str) -> object:
    """Return the value of a key, flat or nested."""
    if key in document or "." not in key:
        return document.get(key)
    outer, _, rest = key.partition(".")
    inner = document.get(outer)
    return _at(inner, rest) if isinstance(inner, dict) else None
