"""Kafka's message classes: the only file that knows the codec library (kio).

kio holds one frozen dataclass per message and version, generated from Kafka's own message
definitions, and reads them natively. Request bodies are built here from plain keyword values, so
that no other file depends on the names of its modules.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final, get_args, get_type_hints

from collectors.wire import lengths
from collectors.wire.api import API_VERSIONS, Api
from collectors.wire.cursor import Cursor


@contextmanager
def _without(name: str) -> Iterator[None]:
    """Import as if the package `name` were not installed, unless it is imported already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment] # how Python itself marks an absent module
    try:
        yield
    finally:
        del sys.modules[name]


# kio registers strategies with Hypothesis wherever that is installed, which takes time at every
# start and leaves a `.hypothesis` folder behind.
with _without("hypothesis"):
    from kio.schema.errors import ErrorCode
    from kio.serial import entity_reader, entity_writer
    from kio.serial.errors import SerialError

CLIENT_ID: Final = b"tidemark"
_HEADER: Final = struct.Struct(">hhih")  # api key, version, correlation id, client id length
_CORRELATION_ID: Final = 4  # bytes

NO_ERROR: Final = int(ErrorCode.none)
# The last two are of times that Python's types cannot hold.
_UNREADABLE: Final = (
    SerialError,
    ValueError,
    LookupError,
    OverflowError,
    OSError,
)


class UnreadableError(Exception):
    """An answer that is not what its version promises; caught where gaps are made."""


def error_name(code: int) -> str:
    """Return Kafka's name of an error code, such as NOT_LEADER_OR_FOLLOWER."""
    try:
        return ErrorCode(code).name.upper()
    except ValueError:
        return f"error {code}"


@cache
def _module(api: Api, version: int, kind: str) -> Any:
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", api.name).lower()
    return import_module(f"kio.schema.{name}.v{version}.{kind}")


def message(api: Api, version: int, name: str) -> Any:
    """Return the class `name` of a request: the request itself or one of its parts."""
    return getattr(_module(api, version, "request"), name)


class _Buffer:
    """The two methods that kio's writers call, over a list of bytes."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self.parts.append(bytes(data))
        return len(data)


def encode(request: Any) -> bytes:
    """Return the bytes of a request body, without its header."""
    buffer = _Buffer()
    entity_writer(type(request))(buffer, request)  # type: ignore[arg-type]
    return b"".join(buffer.parts)


def encode_request(api: Api, version: int, fields: Mapping[str, Any]) -> bytes:
    """Return the bytes of a request; its parts are mappings of their own fields, and lists of these."""
    return encode(_entity(message(api, version, f"{api.name}Request"), fields))


def _entity(kind: Any, fields: Mapping[str, Any]) -> Any:
    parts = _parts(kind)
    return kind(**{n: _of_parts(parts[n], v) if n in parts else v for n, v in fields.items()})


def _of_parts(kind: Any, value: Any) -> Any:
    if value is None or isinstance(value, Mapping):
        return None if value is None else _entity(kind, value)
    return tuple(_entity(kind, fields) for fields in value)


@cache
def _parts(kind: Any) -> dict[str, Any]:
    """Return the classes of those fields of a message that are messages themselves."""
    parts = {name: _part_of(hint) for name, hint in get_type_hints(kind).items()}
    return {name: part for name, part in parts.items() if part is not None}


def _part_of(hint: Any) -> Any:
    if is_dataclass(hint):
        return hint
    return next(filter(None, map(_part_of, get_args(hint))), None)


def decode(api: Api, version: int, body: bytes | bytearray) -> Any:
    """Return the response entity that a body holds.

    Raises:
        UnreadableError: the bytes do not follow the message definition of this version.
    """
    content = without_newer(api, version, body)
    try:
        entity, _ = entity_reader(_response(api, version))(content, 0)
    except _UNREADABLE as exc:
        raise _unreadable(api, version, exc) from exc
    return entity


def without_newer(api: Api, version: int, body: bytes | bytearray) -> bytes:
    """Return a body without what only newer brokers know: tagged fields (KIP-482) and error codes.

    Raises:
        UnreadableError: a length in it cannot be true.
    """
    try:
        return lengths.prepare(_response(api, version), bytes(body))
    except lengths.LengthError as exc:
        raise _unreadable(api, version, exc) from exc


def _response(api: Api, version: int) -> Any:
    return getattr(_module(api, version, "response"), f"{api.name}Response")


def _unreadable(api: Api, version: int, why: Exception) -> UnreadableError:
    return UnreadableError(f"{api.name} v{version} answer cannot be read: {why}")


@cache
def is_flexible(api: Api, version: int) -> bool:
    """Whether the request of this version uses compact types and tagged fields (KIP-482)."""
    return bool(getattr(_module(api, version, "request"), f"{api.name}Request").__flexible__)


def frame(api: Api, version: int, correlation_id: int, body: bytes) -> bytes:
    """Return the bytes to send: length, request header, body."""
    header = _HEADER.pack(api.key, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID
    if is_flexible(api, version):
        header += b"\x00"
    return struct.pack(">i", len(header) + len(body)) + header + body


def body_position(api: Api, version: int, answer: bytes | bytearray) -> int:
    """Return where the body of an answer begins, behind its header (that of ApiVersions has no tagged fields).

    Raises:
        UnreadableError: the header is longer than the answer.
    """
    if api is API_VERSIONS or not is_flexible(api, version):
        return _CORRELATION_ID
    cursor = Cursor(answer, _CORRELATION_ID, UnreadableError)
    cursor.skip_tags()
    return cursor.position
