"""Configuration of the Kafka clients, and how their errors are classified.

Source of the traps: confluent-kafka 2.16 on real brokers. After a fatal error poll() and flush()
raise KafkaException themselves; when a Python callback runs in that same call, CPython reports
`SystemError: ... returned a result with an exception set` instead and that callback is lost.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from collectors.security import Security
from rules.errors import SandboxError
from service.runtime.clock import monotonic
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.workloads.counts import Counts, Tally

CLIENT_ERRORS = (KafkaException, SystemError)  # SystemError: see above
CONNECTION_ERRORS = frozenset(
    {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE}  # noqa: SLF001 - their public names
)
PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})  # noqa: SLF001 - same
POLL_SECONDS = 0.1
PURGE_SECONDS = 2.0
ANSWER_SECONDS = 45.0  # a busy machine
QUIET = 2  # librdkafka's lines about lost connections belong into counts, not on the terminal


def client_config(
    bootstrap_servers: str, security: Security, tally: Tally, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what every client needs; `settings` win."""
    return {
        "bootstrap.servers": bootstrap_servers,
        "log_level": QUIET,
        "error_cb": lambda error: _note(error, tally),
        **security.confluent_config(),
        **settings,
    }


def _note(error: Any, tally: Tally) -> None:
    text = describe(error)
    if error.code() in CONNECTION_ERRORS:
        tally.add(Counts(last_connection_error=text))
    else:
        tally.note(text)


def kafka_error(error: Exception) -> KafkaError | None:
    """Return Kafka's error inside an exception; None for the SystemError that hid a fatal one."""
    inner = error.args[0] if isinstance(error, KafkaException) and error.args else None
    return inner if isinstance(inner, KafkaError) else None


def is_fatal(error: Exception) -> bool:
    """Return whether the client is unusable and has to be made anew."""
    inner = kafka_error(error)
    return inner is None or bool(inner.fatal()) or inner.code() == KafkaError._FATAL  # noqa: SLF001 - its public name


def is_retriable(error: Exception) -> bool:
    """Return whether the same call may be made again."""
    inner = kafka_error(error)
    return inner is not None and bool(inner.retriable())


def describe(error: Any) -> str:
    """Return the name and the message of a KafkaError."""
    return f"{error.name()}: {error.str()}"


def text_of(error: Exception) -> str:
    """Return Kafka's own words for an exception."""
    inner = kafka_error(error)
    return str(error) if inner is None else describe(inner)


@contextlib.contextmanager
def clear_errors(attempt: str) -> Iterator[None]:
    """Raise SandboxError, which names what was attempted, for the errors of a client."""
    try:
        yield
    except CLIENT_ERRORS as exc:
        raise SandboxError(f"{attempt}: {text_of(exc)}") from exc


def ensure_topics(bootstrap_servers: str, *names: str, partitions: int) -> None:
    """Create the topics that are missing, with 3 replicas; those that exist stay as they are."""
    client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": QUIET})
    with clear_errors("the brokers do not answer"):
        existing = client.list_topics(timeout=ANSWER_SECONDS).topics
    for name in names:
        if name not in existing:
            SandboxAdmin(bootstrap_servers).create_topic(name, partitions=partitions)


def count_delivery(tally: Tally, error: Any) -> None:
    """Count one delivery report."""
    if error is None:
        tally.add(Counts(acknowledged=1))
    elif error.code() in PURGED:  # dropped by us: the error that led to it was noted before
        tally.add(Counts(failed=1))
    else:
        tally.add(Counts(failed=1, last_error=describe(error)))


def drain(producer: Any, *, seconds: float) -> None:
    """Serve delivery reports until none is awaited or the time is over.

    A fatal error comes back in every call and is known by then: it must not end the draining.
    """
    deadline = monotonic() + seconds
    while len(producer) and monotonic() < deadline:
        with contextlib.suppress(*CLIENT_ERRORS):
            producer.poll(POLL_SECONDS)


def give_up(producer: Any, tally: Tally, *, seconds: float) -> None:
    """Wait for outstanding reports, then drop what is left; every record is accounted for."""
    drain(producer, seconds=seconds)
    if len(producer):
        if seconds:
            tally.note(f"{len(producer)} records were given up after {seconds:.0f} s")
        producer.purge()
        drain(producer, seconds=PURGE_SECONDS)
    if tally.read().unreported:  # their callbacks were lost beside a fatal error, see above
        tally.add(Counts(failed=tally.read().unreported))
