"""Judges files of clients' settings: each client by the rules of its library and framework, misspelt names, assumptions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from rules.facts.client_config import ClientProperty, PropertiesFile
from rules.posture.client_config import finding, names
from rules.posture.client_config.clients import (
    Client,
    Framework,
    Library,
    Parts,
    Role,
    clients_of,
    parts_of,
    with_transactions,
)
from rules.posture.client_config.consumer import judge_consumer
from rules.posture.client_config.finding import LATER, NEWEST, ConfigLine, Judging, Release, unite
from rules.posture.client_config.frameworks import is_exactly_once, judge_connect, judge_streams
from rules.posture.client_config.java_producer import judge_java_producer
from rules.posture.client_config.librdkafka_producer import judge_librdkafka_producer
from rules.posture.client_config.reasons import Why

MOST_NAMES: Final = 20
ALIKE: Final = 0.84
_NAME: Final = re.compile(r"[a-z][a-z0-9]{0,30}(?:[._-][a-z0-9]{1,30}){0,10}")
JUDGED: Final = frozenset({
    "acks", "enable.idempotence", "max.in.flight.requests.per.connection", "max.in.flight", "retries", "delivery.timeout.ms",
    "transaction.timeout.ms", "transactional.id", "isolation.level", "enable.auto.commit", "enable.auto.offset.store",
    "processing.guarantee", "exactly.once.source.support", "message.timeout.ms",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfigReport:
    """What files of settings say."""

    lines: tuple[ConfigLine, ...]
    assumptions: tuple[str, ...]
    problems: tuple[
        str, ...
    ]  # what could not be read or is not judged, each a sentence without values


def judge_files(
    files: Sequence[PropertiesFile],
    *,
    library: Library | None = None,
    release: Release | None = None,
) -> ClientConfigReport:
    """Judge all files together: a transactional producer in one shows what the consumer of another is for."""
    clients_by_file = [(file, _with_library(clients_of(file), library)) for file in files]
    every = [client for _, clients in clients_by_file for client in clients]
    is_meant = with_transactions(every)
    lines: list[ConfigLine] = []
    problems: list[str] = []
    for file, clients in clients_by_file:
        problems += file.problems
        lines += _judge_clients(clients, release or NEWEST, is_meant=is_meant)
        own_lines, own_problems = _judge_names(file, clients)
        lines += own_lines
        problems += own_problems
    return ClientConfigReport(
        lines=tuple(lines),
        assumptions=tuple(_assumptions(every, release, is_meant=is_meant)),
        problems=tuple(problems),
    )


def _with_library(clients: list[Client], library: Library | None) -> list[Client]:
    if library is None:
        return clients
    return [
        Client(source=c.source, role=c.role, library=library, framework=c.framework, settings=c.settings)
        for c in clients
    ]  # fmt: skip


def _judge_clients(
    clients: list[Client], release: Release, *, is_meant: bool
) -> Iterator[ConfigLine]:
    whole = next((client for client in clients if client.role in WHOLE), None)
    own = [client for client in clients if client is not whole]
    is_streams_once = whole is not None and whole.role is Role.STREAMS and is_exactly_once(whole)
    is_source_once = whole is not None and whole.value("exactly.once.source.support") == "enabled"
    if whole is not None:
        judging = Judging(client=whole, release=release, is_exactly_once_meant=is_meant)
        if whole.role is Role.STREAMS:
            judge_streams(judging, own)
        else:
            judge_connect(judging)
        yield from judging.lines
    for client in own:
        if is_streams_once and client.role is Role.CONSUMER:
            continue  # all that matters is set by Kafka Streams
        yield from _judge_client(
            client, release, is_meant=is_meant, is_made_idempotent=is_streams_once or is_source_once
        )


WHOLE: Final = (Role.STREAMS, Role.CONNECT)


def _judge_client(
    client: Client, release: Release, *, is_meant: bool, is_made_idempotent: bool
) -> Iterator[ConfigLine]:
    def lines(library: Library) -> list[ConfigLine]:
        judging = Judging(
            client=client, release=release, is_exactly_once_meant=is_meant, is_made_idempotent=is_made_idempotent
        )  # fmt: skip
        if client.role is Role.CONSUMER:
            judge_consumer(judging, library)
        elif library is Library.JAVA:
            judge_java_producer(judging)
        else:
            judge_librdkafka_producer(judging)
        return judging.lines

    if client.library is not None:
        yield from lines(client.library)
    else:
        yield from unite(lines(Library.JAVA), lines(Library.LIBRDKAFKA))


def _judge_names(
    file: PropertiesFile, clients: Sequence[Client]
) -> tuple[list[ConfigLine], list[str]]:
    """Return lines for names that were probably meant to be others, and sentences for those that are not known."""
    parts = parts_of(file)
    unknown = list(_unknown(parts))
    lines, problems, others = [], [], []
    for name, setting in unknown:
        meant = next(iter(get_close_matches(name, names.ALL, n=1, cutoff=ALIKE)), None)
        if meant is None or _NAME.fullmatch(name) is None:
            others.append((name, setting))
            continue
        lines.append(_misspelt(file, clients, name, setting, meant))
    if others and len(others) == len(file.properties):
        problems.append(f"{file.source}: none of its {len(others)} names is a setting of a Kafka client")  # fmt: skip
    elif others:
        problems += [_not_known(file.source, name, setting) for name, setting in others[:MOST_NAMES]]  # fmt: skip
        if len(others) > MOST_NAMES:
            problems.append(f"{file.source}: {len(others) - MOST_NAMES} more names are not known")
    if not file.properties and not file.problems:
        problems.append(f"{file.source}: it has no setting")
    return lines, problems


def _unknown(parts: Parts) -> Iterator[tuple[str, ClientProperty]]:
    for settings in parts.by_role.values():
        for name, setting in settings.items():
            plain = name.removeprefix("confluent.")
            if plain not in names.ALL and not (parts.is_springs and "." not in name):
                yield name, setting


def _misspelt(
    file: PropertiesFile, clients: Sequence[Client], name: str, setting: ClientProperty, meant: str
) -> ConfigLine:
    library = clients[0].library if clients else None
    does = {
        Library.JAVA: "a Java client ignores it, with a line in its log",
        Library.LIBRDKAFKA: "librdkafka does not start with it",
        None: "a Java client ignores it, librdkafka does not start with it",
    }[library]
    role = clients[0].role if clients else Role.PRODUCER
    client = Client(source=file.source, role=role, library=library, framework=None, settings={name: setting})  # fmt: skip
    judging = Judging(client=client)
    detail = f"{does}. {meant} was probably meant."
    judging.add(
        finding.NAMES, Why.NOT_A_SETTING, setting=name, detail=detail, right=f"{meant}=...",
        is_mild=meant not in JUDGED,
    )  # fmt: skip
    return judging.lines[0]


def _not_known(source: str, name: str, setting: ClientProperty) -> str:
    is_name = "." in name and setting.value and _NAME.fullmatch(name) is not None
    shown = name if is_name else "the line"  # which may be a part of a secret
    return f"{source}:{setting.line}: {shown} is no setting that is known, and was not judged"


def _assumptions(clients: Sequence[Client], release: Release | None, *, is_meant: bool) -> Iterator[str]:  # fmt: skip
    if any(client.library is not Library.LIBRDKAFKA for client in clients):
        shown = ".".join(str(part) for part in release or NEWEST if part != LATER)
        hint = " (--client-release names another)" if release is None else ""
        yield f"Java clients are taken for release {shown}{hint}: before 3.0 the defaults were acks=1 and no idempotence, and 3.0.0 and 3.1.0 left it off"
    if any(client.library is None for client in clients):
        yield "no setting says whether the client is Java's or librdkafka: --client java or --client librdkafka"
    if any(client.framework is Framework.SPRING for client in clients):
        yield "Spring for Apache Kafka: its listener containers set enable.auto.commit=false unless the file sets it"
    if any(client.framework is Framework.CONNECT for client in clients):
        yield "Kafka Connect gives its clients only what has producer., consumer. or admin. before it"
    if clients and not is_meant:
        yield "no setting shows that exactly-once is meant (transactional.id, processing.guarantee): what only matters then is information"
