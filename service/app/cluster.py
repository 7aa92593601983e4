"""Builds the reader of a cluster: all that a read-only command needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from collectors.leader_log import connect
from collectors.session import Limits, Session
from collectors.wire.connection import Address
from collectors.wire.pool import Pool
from rules.errors import SettingsError
from service.observe.cluster_checks import ClusterChecker
from service.observe.cluster_reader import ClusterReader, Target
from service.runtime.clock import utc_now
from service.settings import KafkaSettings

MAX_PORT: Final = 65535


def cluster_reader(settings: KafkaSettings) -> ClusterReader:
    """Build the reader of one cluster; nothing is connected yet.

    Raises:
        SettingsError: addresses or security settings cannot be used.
    """
    return ClusterReader(
        _target(settings), Pool(settings.security()), limits=_limits(settings), utc_now=utc_now
    )


def cluster_checker(settings: KafkaSettings) -> ClusterChecker:
    """Build what checks the permissions, requests and clocks of one cluster; nothing is connected yet.

    Raises:
        SettingsError: addresses or security settings cannot be used.
    """
    return ClusterChecker(
        _target(settings), Pool(settings.security()), limits=_limits(settings), utc_now=utc_now
    )


@contextmanager
def leader_session(settings: KafkaSettings) -> Iterator[Session]:
    """Connect to a cluster whose logs are read at their leaders, however long that takes.

    Raises:
        SettingsError: addresses or security settings cannot be used.
        UnreachableError: no bootstrap address gave a usable answer.
        AuthenticationError: the cluster rejected our credentials.
    """
    pool = Pool(settings.security())
    try:
        yield connect(pool, _limits(settings), _target(settings).bootstrap)
    finally:
        pool.close()


def _target(settings: KafkaSettings) -> Target:
    return Target(
        name=settings.name,
        bootstrap=tuple(bootstrap_addresses(settings.bootstrap_servers)),
        sees_all_transactional_ids=settings.sees_all_transactional_ids,
    )


def _limits(settings: KafkaSettings) -> Limits:
    return Limits(
        request_seconds=settings.request_timeout_seconds,
        round_seconds=settings.round_timeout_seconds,
    )


def bootstrap_addresses(text: str) -> list[Address]:
    """Read comma-separated host:port pairs; IPv6 hosts stand in brackets.

    Raises:
        SettingsError: naming the pair that is not one.
    """
    pairs = [pair.strip() for pair in text.split(",") if pair.strip()]
    if not pairs:
        raise SettingsError(
            "no bootstrap servers: give --bootstrap-servers host:port[,host:port] "
            "or TIDEMARK_KAFKA__BOOTSTRAP_SERVERS"
        )
    return [_address(pair) for pair in pairs]


def _address(pair: str) -> Address:
    host, _, port = pair.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    is_number = port.isascii() and port.isdigit()
    if not host or (":" in host and not bracketed) or not is_number:
        raise SettingsError(f"bootstrap server {pair!r} is not host:port")
    if not 0 < int(port) <= MAX_PORT:
        raise SettingsError(f"bootstrap server {pair!r}: port must be between 1 and {MAX_PORT}")
    return Address(host, int(port))
