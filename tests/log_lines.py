"""Lines as brokers write them, for tests: their default log4j pattern, `[%d] %p %m (%c)%n`.

Texts of messages stand where they are tested, word for word; here is only what goes around them.
"""

from __future__ import annotations

from datetime import UTC, datetime

from collectors.broker_log.parser import LineParser
from rules.facts.broker_log import LogEvent, Origin
from rules.facts.identity import BrokerId

SOURCE = "broker-1"
TIME = "2026-11-21 11:56:40,159"
AT = datetime(2026, 11, 21, 11, 56, 40, 159_000, tzinfo=UTC)
ERRORS = "org.apache.kafka.common.errors"


def origin(at: datetime | None = AT, broker_id: int | None = 1) -> Origin:
    """Return where lines of these tests are read."""
    return Origin(
        source=SOURCE, broker_id=None if broker_id is None else BrokerId(broker_id), at=at
    )


def stamped(
    message: str, *, level: str = "INFO", logger: str = "kafka.Any", time: str = TIME
) -> str:
    """Return a line of a log."""
    return f"[{time}] {level} {message} ({logger})"


def append_failed(target: str, broker_id: int = 1, time: str = TIME) -> str:
    """Return the line before an exception."""
    message = f"[ReplicaManager broker={broker_id}] Error processing append operation on partition {target}"
    return stamped(message, level="ERROR", logger="kafka.server.ReplicaManager", time=time)


def thrown(message: str, exception: str = "OutOfOrderSequenceException") -> str:
    """Return the second line of an exception that was logged."""
    return f"{ERRORS}.{exception}: {message}"


def parser(broker_id: int | None = None) -> LineParser:
    """Return a parser of a source in UTC."""
    return LineParser(SOURCE, None if broker_id is None else BrokerId(broker_id), UTC)


def events_of(*lines: str, broker_id: int | None = None) -> list[LogEvent]:
    """Return what lines tell of; none of them may be unreadable."""
    made = parser(broker_id)
    events = made.feed(line.encode() for line in lines)
    assert made.unreadable == ()
    return events
