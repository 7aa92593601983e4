"""Turns the body of a request into log lines, stream by stream.

Whose lines they are, and where a JSON record has its line, depends on the endpoint: its `Reading` says that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from service.api.core.problems import ProblemError
from service.api.ingest.json_body import Records
from service.api.ingest.push import push_of
from service.api.ingest.query import TimeZoneQuery, is_name
from service.api.ingest.unpacking import MAX_UNPACKED, SnappyError, too_large, unpack, unsnap
from service.observe.log_submissions import Delivery, Stream

MAX_LINES: Final = 200_000  # of one request: two seconds
MAX_STREAMS: Final = 100  # of one request
TEXT: Final = "text/plain"
PUSH: Final = "application/x-protobuf"
SNAPPY: Final = frozenset({"", "snappy"})
JSON: Final = frozenset({"application/json", "application/x-ndjson", "application/ndjson"})
ASCII_LIKE: Final = frozenset({"", "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1"})
LINE_FIELDS: Final = ("message", "log", "line")  # Vector's, Fluent Bit's, and a plain word
STREAMS_OF_DOCKER: Final = frozenset({"stdout", "stderr"})  # which it names `source`
FILE_FIELDS: Final = ("file", "filename")
UNNAMED: Final = "http"

Lines = dict[Stream, list[bytes]]
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """How an endpoint reads a request with one query."""

    query: TimeZoneQuery
    # The stream that a record's fields name, or the labels of a stream of Loki; ValueError: they cannot be used.
    stream: Callable[[Fields], Stream]
    # The line of a JSON record; ValueError: it has none.
    text: Callable[[Fields], str]
    max_streams: int = MAX_STREAMS


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The parts of a request that its lines depend on."""

    body: bytes
    content_type: str
    content_encoding: str
    reading: Reading
    key: str | None

    @property
    def media_type(self) -> str:
        """Return the content type without its parameters."""
        return self.content_type.partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """Return the charset that the content type names, empty for none."""
        _, _, after = self.content_type.lower().partition("charset=")
        return after.partition(";")[0].strip().strip('"')


def delivery_of(sent: Sent) -> Delivery:
    """Return the lines of a request.

    Raises:
        ProblemError: the body has an unknown type, is damaged or too large.
    """
    read = _reader_of(sent)
    body = _unpack(sent)
    return Delivery(
        lines=read(body, sent.reading),
        zone=sent.reading.query.zone,
        digest=_digest(body, sent),
        key=sent.key,
    )


def _reader_of(sent: Sent) -> Callable[[bytes, Reading], Lines]:
    if sent.media_type in JSON:
        return _of_json
    if sent.media_type == PUSH:
        return _of_push
    if sent.media_type == TEXT and sent.charset in ASCII_LIKE:
        return _of_text
    detail = (
        "log lines come as text/plain in UTF-8, as JSON records with Content-Type "
        "application/x-ndjson or application/json, or as Loki's push"
    )
    raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)


def _unpack(sent: Sent) -> bytes:
    """Return the decompressed body; Loki's push is always compressed, also without Content-Encoding."""
    if sent.media_type != PUSH:
        return unpack(sent.body, sent.content_encoding)
    if sent.content_encoding.strip().lower() not in SNAPPY:
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Loki's push is compressed with Snappy"
        )
    try:
        return unsnap(sent.body, MAX_UNPACKED) if sent.body else b""
    except OverflowError as exc:
        raise too_large() from exc
    except SnappyError as exc:
        raise _no_push(f"its Snappy block {exc}") from exc


def _digest(body: bytes, sent: Sent) -> str:
    """Return a digest of the request, which the same text for another broker does not share."""
    digest = hashlib.sha256(f"{sent.media_type}\n{sent.reading.query.model_dump_json()}\n".encode())
    digest.update(body)
    return digest.hexdigest()


def _of_text(body: bytes, reading: Reading) -> Lines:
    count = body.count(b"\n") + (not body.endswith(b"\n") and bool(body))
    if count > MAX_LINES:
        raise _too_many_lines()
    return {reading.stream({}): _split(body)} if count else {}


def _of_json(body: bytes, reading: Reading) -> Lines:
    records, gathered = Records(body), _Gathered(reading)
    for place, record in records:
        try:
            for fields, text in _texts(record, reading):
                gathered.add(fields, text.encode("utf-8", "replace"))
        except ValueError as exc:
            raise records.bad(place, str(exc)) from exc
    return gathered.lines


def _of_push(body: bytes, reading: Reading) -> Lines:
    gathered = _Gathered(reading)
    try:
        for labels, line in push_of(body):
            gathered.add(labels, line)
    except ValueError as exc:
        raise _no_push(str(exc)) from exc
    return gathered.lines


class _Gathered:
    """Lines of a request, stream by stream."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._left = MAX_LINES
        self.lines: Lines = {}

    def add(self, fields: Fields, text: bytes) -> None:
        """Add the lines of a text to the stream that its fields name.

        Raises:
            ValueError: a field cannot be used, or names one stream too many.
            ProblemError: there are too many lines.
        """
        split = _split(text)
        self._left -= len(split)
        if self._left < 0:
            raise _too_many_lines()
        self.lines.setdefault(self._reading.stream(fields), []).extend(split)
        most = self._reading.max_streams
        if len(self.lines) > most:
            raise ValueError(f"a request may name {most} sources")


def _split(text: bytes) -> list[bytes]:
    """Return the physical lines of a text, which may hold several."""
    return text.removesuffix(b"\n").split(b"\n")


def _texts(record: Fields, reading: Reading) -> Iterator[tuple[Fields, str]]:
    """Yield the texts of a record, each with its fields.

    Raises:
        ValueError: there is none; the message says what is wrong.
    """
    if "streams" in record:
        yield from _of_loki(record["streams"])
    else:
        yield record, reading.text(record)


def line_of(record: Fields) -> str:
    """Return the line in a record.

    Raises:
        ValueError: it has none.
    """
    text = next((record[name] for name in LINE_FIELDS if isinstance(record.get(name), str)), None)
    if text is None:
        raise ValueError(f"the record has no text named {', '.join(LINE_FIELDS)}")
    return str(text)


def _of_loki(streams: object) -> Iterator[tuple[Fields, str]]:
    """Yield the labels and lines of a push in Loki's JSON."""
    for stream in _listed(streams):
        labels = stream.get("stream") if isinstance(stream, dict) else None
        if not isinstance(stream, dict) or not isinstance(labels, dict):
            raise ValueError("an element of `streams` has no labels named `stream`")  # noqa: TRY004 - reported as a bad record
        for pair in _listed(stream.get("values")):
            if not isinstance(pair, list) or len(pair) < 2 or not isinstance(pair[1], str):
                raise ValueError("an element of `values` is no pair of time and line")
            yield labels, pair[1]


def _listed(value: object) -> Iterable[object]:
    if not isinstance(value, list):
        raise ValueError("`streams` and `values` are lists")  # noqa: TRY004 - reported as a bad record
    return value


def first_name(fields: Fields, names: Iterable[str]) -> str | None:
    """Return the first of some fields that can name a source."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and is_name(value) and value not in STREAMS_OF_DOCKER:
            return value
    return None


def _no_push(why: str) -> ProblemError:
    return ProblemError(HTTPStatus.BAD_REQUEST, f"the body is no push of Loki: {why}")


def _too_many_lines() -> ProblemError:
    detail = f"a request may have up to {MAX_LINES} lines"
    return ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)
