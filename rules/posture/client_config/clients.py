"""Which clients a file configures: by prefixes of names, by names that only one library has, by the file's own name.

A file may be of a plain producer or consumer, of Kafka Streams or Kafka Connect with `producer.` and `consumer.` before
names, or of Spring Boot, whose own names differ. What the file does not say is assumed, and said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rules.facts.client_config import ClientProperty, PropertiesFile
from rules.posture.client_config import names


class Library(StrEnum):
    """Whose defaults hold."""

    JAVA = "java"
    LIBRDKAFKA = "librdkafka"


class Role(StrEnum):
    """What a part of a file configures."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    STREAMS = "streams"
    CONNECT = "connect"


class Framework(StrEnum):
    """What makes the client, with defaults of its own."""

    STREAMS = "streams"
    CONNECT = "connect"
    SPRING = "spring"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One client, with the settings that hold for it by their plain names."""

    source: str
    role: Role
    library: Library | None  # None: no setting says which
    framework: Framework | None
    settings: Mapping[str, ClientProperty] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What a line about it is about."""
        return f"{self.source}: {self.role}"

    def value(self, name: str) -> str | None:
        """Return a value, without white space around it; None: it is not set."""
        setting = self.settings.get(name)
        return None if setting is None else setting.value.strip()


Settings = dict[str, ClientProperty]
COMMON: Final = ""  # of no role
_PREFIX: Final = re.compile(
    r"(?:(?:main|restore|global)\.(?=consumer\.))?(?P<role>producer|consumer|admin|streams)\.(?:override\.)?(?P<name>.+)"
)
_SPRING: Final = re.compile(
    r"spring\.kafka\.(?:(?P<role>producer|consumer|streams|admin)\.)?(?P<properties>properties\.)?(?P<name>.+)"
)
# Of Spring Boot, and of nothing that a client gets: listeners, templates, and so on.
_SPRINGS_OWN: Final = re.compile(
    r"(?:listener|template|retry|jaas|security|ssl|bootstrap-servers|client-id|cleanup)\b"
)
_SPRING_NAMES: Final = {"transaction-id-prefix": "transactional.id", "retries": "retries"}
PRODUCERS_TOO: Final = frozenset({"retries"})  # which the admin client has as well
STREAMS_MARKS: Final = frozenset({"application.id", "processing.guarantee", "num.stream.threads"})
CONNECT_MARKS: Final = frozenset({
    "config.storage.topic", "offset.storage.topic", "status.storage.topic", "exactly.once.source.support", "connector.class",
})  # fmt: skip


@dataclass(slots=True)
class Parts:
    """The settings of a file by the role that their prefix names."""

    by_role: dict[str, Settings] = field(default_factory=dict)
    is_springs: bool = False

    def add(self, role: str, name: str, setting: ClientProperty) -> None:
        """Add a setting."""
        self.by_role.setdefault(role, {})[name] = setting

    def of(self, role: str) -> Settings:
        """Return the settings of a role alone."""
        return self.by_role.get(role, {})


def parts_of(file: PropertiesFile) -> Parts:
    """Return the settings of a file by role, under their plain names."""
    parts = Parts()
    for setting in file.properties:
        spring = _SPRING.fullmatch(setting.name)
        if spring is not None:
            parts.is_springs = True
            _add_spring(parts, spring, setting)
        elif (match := _PREFIX.fullmatch(setting.name)) is not None:
            parts.add(match["role"], match["name"], setting)
        else:
            parts.add(COMMON, setting.name, setting)
    return parts


def _add_spring(parts: Parts, match: re.Match[str], setting: ClientProperty) -> None:
    name = match["name"]
    if match["properties"] is None:
        if _SPRINGS_OWN.match(name):
            return
        name = _SPRING_NAMES.get(name, name.replace("-", "."))
    parts.add(match["role"] or COMMON, name, setting)


def clients_of(file: PropertiesFile) -> list[Client]:
    """Return the clients that a file configures."""
    parts = parts_of(file)
    common = parts.of(COMMON)
    framework = _framework(parts)
    library = Library.JAVA if framework is not None else _library(parts)
    clients = [
        Client(
            source=file.source,
            role=role,
            library=library,
            framework=framework,
            settings=_settings(parts, role, framework),
        )
        for role in _roles(parts, framework, file.source)
    ]
    whole = {Framework.STREAMS: Role.STREAMS, Framework.CONNECT: Role.CONNECT}.get(framework) if framework else None  # fmt: skip
    if whole is not None:
        own = {**common, **parts.of(whole)}
        clients.insert(0, Client(source=file.source, role=whole, library=library, framework=framework, settings=own))  # fmt: skip
    return clients


def _framework(parts: Parts) -> Framework | None:
    every = {*parts.of(COMMON), *parts.of("streams")}
    if STREAMS_MARKS & every:
        return Framework.STREAMS
    if CONNECT_MARKS & every:
        return Framework.CONNECT
    return Framework.SPRING if parts.is_springs else None


def _library(parts: Parts) -> Library | None:
    every = {name for settings in parts.by_role.values() for name in settings}
    is_librdkafka, is_java = bool(every & names.LIBRDKAFKA_ONLY), bool(every & names.JAVA_ONLY)
    if is_java == is_librdkafka:
        return None
    return Library.JAVA if is_java else Library.LIBRDKAFKA


def _settings(parts: Parts, role: Role, framework: Framework | None) -> Settings:
    """Return the settings of a client: a worker's and an application's own hold for its clients only with a prefix."""
    common = {} if framework is Framework.CONNECT else parts.of(COMMON)
    return {**common, **parts.of(role)}


def _roles(parts: Parts, framework: Framework | None, source: str) -> Iterator[Role]:
    common = set(parts.of(COMMON))
    of_producer = common & (names.JAVA_PRODUCER | names.LIBRDKAFKA_PRODUCER | PRODUCERS_TOO)
    of_consumer = common & (names.JAVA_CONSUMER | names.LIBRDKAFKA_CONSUMER)
    is_plain = framework in (None, Framework.SPRING)
    has_producer = bool(parts.of("producer")) or (is_plain and bool(of_producer))
    has_consumer = bool(parts.of("consumer")) or (is_plain and bool(of_consumer))
    if is_plain and not (has_producer or has_consumer) and _has_known(common):
        file_name = re.split(r"[/\\]", source)[-1].lower()
        has_producer, has_consumer = "producer" in file_name, "consumer" in file_name
    if has_producer:
        yield Role.PRODUCER
    if has_consumer:
        yield Role.CONSUMER


def _has_known(settings: set[str]) -> bool:
    return bool(settings & names.ALL)


def with_transactions(clients: Sequence[Client]) -> bool:
    """Whether the clients show that exactly-once is meant."""
    return any(_is_transactional(client) for client in clients)


def _is_transactional(client: Client) -> bool:
    guarantee = client.value("processing.guarantee") or ""
    support = client.value("exactly.once.source.support")
    return bool(client.value("transactional.id")) or guarantee.startswith("exactly_once") or support == "enabled"  # fmt: skip
