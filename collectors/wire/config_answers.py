"""DescribeConfigs bodies, written and read by hand: thousands of topics mostly have the same settings.

The settings of a resource are an array that says itself where it ends, so that bytes which were read
once are recognized by comparison, and only settings that are new are read one by one.
Source: DescribeConfigsRequest.json and -Response.json v4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from collectors.wire.codec import UnreadableError
from collectors.wire.cursor import Cursor, encode_uvarint
from rules.facts.configs import Config, ConfigEntry, ConfigSource

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
_THROTTLE_BYTES: Final = 4
_NO_SYNONYMS_NO_TEXTS_NO_TAGS: Final = b"\x00\x00\x00"
_NO_TAGS: Final = b"\x00"
_SOURCES: Final = {
    1: ConfigSource.TOPIC,
    2: ConfigSource.DYNAMIC_BROKER,
    3: ConfigSource.DYNAMIC_DEFAULT_BROKER,
    4: ConfigSource.STATIC_BROKER,
    5: ConfigSource.DEFAULT,
}

# A kind of resource, with its names and the settings that are queried of each.
Resources = tuple[int, Sequence[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class DescribedConfig:
    """One resource of the answer; without settings where `error` is not 0."""

    error: int
    resource: int
    name: str
    config: Config


def configs_body(*requested: Resources) -> bytes:
    """Return the body of a DescribeConfigs request of version 4."""
    items = [item for resources in requested for item in _resources(*resources)]
    return encode_uvarint(len(items) + 1) + b"".join(items) + _NO_SYNONYMS_NO_TEXTS_NO_TAGS


def _resources(resource: int, names: Sequence[str], keys: Sequence[str]) -> Iterable[bytes]:
    begin = bytes([resource])
    end = encode_uvarint(len(keys) + 1) + b"".join(map(_text, keys)) + _NO_TAGS
    return (begin + _text(name) + end for name in names)


def _text(text: str) -> bytes:
    content = text.encode()
    return encode_uvarint(len(content) + 1) + content


@dataclass(slots=True)
class ConfigAnswerReader:
    """Reads answers, and remembers the sets of settings of the last ones as they came."""

    _known: dict[bytes, Config] = field(default_factory=dict)
    _sizes: dict[int, None] = field(default_factory=dict)  # in bytes, of what is known
    _interned: dict[Config, Config] = field(default_factory=dict)

    def read(self, body: bytes | bytearray) -> tuple[DescribedConfig, ...]:
        """Read an answer of version 4; equal settings are the same object.

        Raises:
            UnreadableError: the bytes do not follow the message definition.
        """
        content = bytes(body)
        cursor = Cursor(content, _THROTTLE_BYTES, UnreadableError)
        results = cursor.array(lambda: self._result(content, cursor))
        cursor.skip_tags()
        return results

    def keep(self, configs: Iterable[Config]) -> None:
        """Forget the settings that no resource has any more."""
        ids = set(map(id, configs))
        self._known = {part: c for part, c in self._known.items() if id(c) in ids}
        self._sizes = dict.fromkeys(map(len, self._known))
        self._interned = {config: config for config in self._known.values()}

    def _result(self, content: bytes, cursor: Cursor) -> DescribedConfig:
        error = cursor.int16()
        cursor.text()  # the broker's message: the code tells as much
        [resource] = cursor.take(1)
        name = cursor.text()
        return DescribedConfig(error, resource, name, self._config(content, cursor))

    def _config(self, content: bytes, cursor: Cursor) -> Config:
        begin = cursor.position
        for size in self._sizes:
            config = self._known.get(content[begin : begin + size])
            if config is not None:
                cursor.take(size)
                return config
        entries = cursor.array(lambda: _entry(cursor))
        cursor.skip_tags()
        read = Config(tuple(sorted(entries, key=lambda entry: entry.name)))
        config = self._interned.setdefault(read, read)
        part = content[begin : cursor.position]
        self._known[part] = config
        self._sizes[len(part)] = None
        return config


def _entry(cursor: Cursor) -> ConfigEntry:
    name, value = cursor.text(), _nullable_text(cursor)
    cursor.take(1)  # whether it is read only
    [source] = cursor.take(1)
    cursor.take(1)  # whether it is sensitive: its value is then absent
    cursor.array(lambda: _skip_synonym(cursor))
    cursor.take(1)  # its type
    cursor.text()  # its documentation
    cursor.skip_tags()
    return ConfigEntry(name, value, _SOURCES.get(source, ConfigSource.UNKNOWN))


def _nullable_text(cursor: Cursor) -> str | None:
    length = cursor.uvarint()
    if not length:
        return None
    try:
        return str(cursor.take(length - 1), "utf-8")
    except UnicodeDecodeError as exc:
        raise UnreadableError("the answer has a value that is no text") from exc


def _skip_synonym(cursor: Cursor) -> None:
    cursor.text()
    cursor.text()
    cursor.take(1)
    cursor.skip_tags()
