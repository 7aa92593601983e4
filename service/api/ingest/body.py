"""Turns the body of a request into log lines, stream by stream.

Parameters of the query hold for all lines; otherwise a record's own fields name its source.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from rules.facts.identity import BrokerId
from service.api.core.problems import ProblemError
from service.api.ingest.json_body import Records
from service.api.ingest.push import push_of
from service.api.ingest.query import MAX_BROKER_ID, IngestQuery, is_name
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
SOURCE_FIELDS: Final = ("source", "pod")  # before the host, which may be a node with many pods
HOST_FIELDS: Final = ("host", "instance")
STREAMS_OF_DOCKER: Final = frozenset({"stdout", "stderr"})  # which it names `source`
FILE_FIELDS: Final = ("file", "filename")
UNNAMED: Final = "http"

Lines = dict[Stream, list[bytes]]
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The parts of a request that its lines depend on."""

    body: bytes
    content_type: str
    content_encoding: str
    query: IngestQuery
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
        lines=read(body, sent.query),
        zone=sent.query.zone,
        digest=_digest(body, sent),
        key=sent.key,
    )


def _reader_of(sent: Sent) -> Callable[[bytes, IngestQuery], Lines]:
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
    digest = hashlib.sha256(f"{sent.media_type}\n{sent.query.model_dump_json()}\n".encode())
    digest.update(body)
    return digest.hexdigest()


def _of_text(body: bytes, query: IngestQuery) -> Lines:
    count = body.count(b"\n") + (not body.endswith(b"\n") and bool(body))
    if count > MAX_LINES:
        raise _too_many_lines()
    return {_stream(query, {}): _split(body)} if count else {}


def _of_json(body: bytes, query: IngestQuery) -> Lines:
    records, gathered = Records(body), _Gathered(query)
    for place, record in records:
        try:
            for fields, text in _texts(record):
                gathered.add(fields, text.encode("utf-8", "replace"))
        except ValueError as exc:
            raise records.bad(place, str(exc)) from exc
    return gathered.lines


def _of_push(body: bytes, query: IngestQuery) -> Lines:
    gathered = _Gathered(query)
    try:
        for labels, line in push_of(body):
            gathered.add(labels, line)
    except ValueError as exc:
        raise _no_push(str(exc)) from exc
    return gathered.lines


class _Gathered:
    """Lines of a request, stream by stream."""

    def __init__(self, query: IngestQuery) -> None:
        self._query = query
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
        self.lines.setdefault(_stream(self._query, fields), []).extend(split)
        if len(self.lines) > MAX_STREAMS:
            raise ValueError(f"a request may name {MAX_STREAMS} sources")


def _split(text: bytes) -> list[bytes]:
    """Return the physical lines of a text, which may hold several."""
    return text.removesuffix(b"\n").split(b"\n")


def _texts(record: Fields) -> Iterator[tuple[Fields, str]]:
    """Yield the texts of a record, each with its fields.

    Raises:
        ValueError: there is none; the message says what is wrong.
    """
    if "streams" in record:
        yield from _of_loki(record["streams"])
        return
    for name in LINE_FIELDS:
        if isinstance(record.get(name), str):
            yield record, record[name]
            return
    raise ValueError(f"the record has no text named {', '.join(LINE_FIELDS)}")


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


def _stream(query: IngestQuery, fields: Fields) -> Stream:
    broker_id = query.broker_id if query.broker_id is not None else _broker_id(fields)
    unnamed = UNNAMED if broker_id is None else f"broker-{broker_id}"
    return Stream(
        source=query.source or _source(fields) or unnamed,
        broker_id=None if broker_id is None else BrokerId(broker_id),
        file=_first(fields, FILE_FIELDS),
    )


def _source(fields: Fields) -> str | None:
    about_pod = fields.get("kubernetes")  # by Fluent Bit's filter and Vector's source
    pod = _first(about_pod, ("pod_name",)) if isinstance(about_pod, dict) else None
    return _first(fields, SOURCE_FIELDS) or pod or _first(fields, HOST_FIELDS)


def _broker_id(fields: Fields) -> int | None:
    value = fields.get("broker_id")
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
        value = int(value)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_BROKER_ID:
        raise ValueError("broker_id is not a valid broker id")
    return value


def _first(fields: Fields, names: Iterable[str]) -> str | None:
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
