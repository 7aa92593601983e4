"""Kafka Streams and Kafka Connect: what they promise, and which settings of their clients they set themselves.

Source: `StreamsConfig` of Kafka 2.5 to 4.4, `DistributedConfig` of 3.3 and later.
"""

from __future__ import annotations

from typing import Final

from rules.posture.client_config import finding
from rules.posture.client_config.clients import Client
from rules.posture.client_config.finding import KAFKA_4_0, Judging
from rules.posture.client_config.reasons import Why
from rules.posture.setting_values import STREAMS_COMMIT_INTERVAL_MS, STREAMS_TRANSACTION_TIMEOUT_MS

V2: Final = "exactly_once_v2"
REMOVED: Final = ("exactly_once", "exactly_once_beta")
# What Kafka Streams sets with exactly-once, whatever the file says.
SET_BY_STREAMS: Final = (
    ("enable.idempotence", finding.IDEMPOTENCE),
    ("transactional.id", finding.TRANSACTIONAL_ID),
    ("isolation.level", finding.ISOLATION),
    ("enable.auto.commit", finding.AUTO_COMMIT),
)


def is_exactly_once(client: Client) -> bool:
    """Whether Kafka Streams is to write once."""
    return (client.value("processing.guarantee") or "").startswith("exactly_once")


def judge_streams(judging: Judging, clients: list[Client]) -> None:
    """Add the lines of an application; `clients` are those with a prefix."""
    guarantee = judging.client.value("processing.guarantee")
    if guarantee is None or guarantee == "at_least_once":
        detail = "It is not set: at_least_once is the default." if guarantee is None else ""
        judging.add(finding.GUARANTEE, Why.AT_LEAST_ONCE, detail=detail, is_mild=True)
        return
    if judging.is_hidden("processing.guarantee"):
        judging.add(finding.GUARANTEE, Why.VALUE_NOT_SHOWN, right=f"processing.guarantee={V2}")
        return
    _judge_guarantee(judging, guarantee)
    for client in clients:
        _judge_own_settings(judging, client)
    _judge_interval(judging, clients)


def _judge_guarantee(judging: Judging, guarantee: str) -> None:
    if guarantee == V2:
        judging.add(finding.GUARANTEE, Why.RIGHT)
    elif guarantee in REMOVED and judging.release < KAFKA_4_0:
        judging.add(finding.GUARANTEE, Why.REMOVED_VALUE)
    else:
        detail = "processing.guarantee has to be at_least_once or exactly_once_v2."
        judging.add(finding.GUARANTEE, Why.DOES_NOT_START, detail=detail, right=f"processing.guarantee={V2}")  # fmt: skip


def _judge_own_settings(judging: Judging, client: Client) -> None:
    own = Judging(client=client, release=judging.release, is_exactly_once_meant=True)
    for name, check in SET_BY_STREAMS:
        if client.value(name) is not None:
            own.add(check, Why.OVERRIDDEN, setting=name, detail="Kafka Streams sets it itself with exactly-once.")  # fmt: skip
    judging.lines += own.lines


def _judge_interval(judging: Judging, clients: list[Client]) -> None:
    timeouts = [client.value("transaction.timeout.ms") for client in clients]
    own = next((value for value in timeouts if value is not None and value.isdecimal()), None)
    timeout = STREAMS_TRANSACTION_TIMEOUT_MS if own is None else int(own)
    interval = judging.number("commit.interval.ms", STREAMS_COMMIT_INTERVAL_MS)
    if interval > timeout:
        detail = f"commit.interval.ms {interval} may not exceed transaction.timeout.ms of its producers, {timeout}."
        judging.add(finding.TIMEOUT, Why.DOES_NOT_START, setting="commit.interval.ms", detail=detail, right=f"commit.interval.ms={STREAMS_COMMIT_INTERVAL_MS}")  # fmt: skip


def judge_connect(judging: Judging) -> None:
    """Add the line of a worker; a file of one connector says nothing of it."""
    if judging.client.value("connector.class") is not None:
        return
    support = judging.client.value("exactly.once.source.support")
    if support == "enabled":
        judging.add(finding.SOURCE_SUPPORT, Why.RIGHT)
    elif support == "preparing":
        detail = "preparing is a step of enabling it: it has no effect on records yet."
        judging.add(finding.SOURCE_SUPPORT, Why.DEPENDS_ON_RELEASE, detail=detail, right="exactly.once.source.support=enabled, once all workers have preparing")  # fmt: skip
    elif support is None or support == "disabled":
        detail = "It is not set: disabled is the default." if support is None else ""
        judging.add(finding.SOURCE_SUPPORT, Why.SOURCE_NOT_TRANSACTIONAL, detail=detail, is_mild=True)  # fmt: skip
    else:
        judging.add(finding.SOURCE_SUPPORT, Why.DOES_NOT_START, detail="exactly.once.source.support has to be disabled, preparing or enabled.", right="exactly.once.source.support=enabled")  # fmt: skip
