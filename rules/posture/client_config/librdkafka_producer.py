"""A producer of librdkafka: idempotence is off unless it is set, and what does not go with it is rejected.

Settings that are not set are adjusted silently to what idempotence needs. Tried on librdkafka 2.16.
"""

from __future__ import annotations

from typing import Final

from rules.posture.client_config import finding
from rules.posture.client_config.finding import Judging
from rules.posture.client_config.java_producer import (
    ALL,
    FEW_RETRIES,
    judge_transaction_timeout,
)
from rules.posture.client_config.reasons import Why
from rules.posture.client_config.values import reject_bad_values
from rules.posture.setting_values import MESSAGE_TIMEOUT_MS, MOST_IN_FLIGHT, TRANSACTION_TIMEOUT_MS

ACKS: Final = ("acks", "request.required.acks")
IN_FLIGHT: Final = ("max.in.flight", "max.in.flight.requests.per.connection")
RETRIES: Final = ("retries", "message.send.max.retries")
MESSAGE_TIMEOUT: Final = ("message.timeout.ms", "delivery.timeout.ms")
SOCKET_EXTRA_MS: Final = 100  # by which `socket.timeout.ms` may exceed the transaction's


def judge_librdkafka_producer(judging: Judging) -> None:
    """Add the lines of a producer."""
    bad = reject_bad_values(judging)
    is_idempotent = bool(judging.flag("enable.idempotence") or judging.client.value("transactional.id"))  # fmt: skip
    if "enable.idempotence" not in bad:
        _judge_idempotence(judging)
    if not bad & {*ACKS}:
        _judge_acks(judging, is_idempotent=is_idempotent)
    if not bad & {*IN_FLIGHT}:
        _judge_in_flight(judging, is_idempotent=is_idempotent)
    if not bad & {*RETRIES}:
        _judge_retries(judging, is_idempotent=is_idempotent)
    if is_idempotent and judging.client.value("queuing.strategy") == "lifo":
        judging.add(finding.IDEMPOTENCE, Why.DOES_NOT_START, setting="queuing.strategy", detail="idempotence needs queuing.strategy=fifo.", right="remove queuing.strategy")  # fmt: skip
    if not bad & {*MESSAGE_TIMEOUT, "transaction.timeout.ms"}:
        _judge_timeouts(judging)
        judge_transaction_timeout(judging)


def _alias(judging: Judging, names: tuple[str, ...]) -> str:
    """Return the name that the file uses; the first one if it uses none."""
    return next((name for name in names if judging.client.value(name) is not None), names[0])


def _judge_idempotence(judging: Judging) -> None:
    explicit, id_ = judging.flag("enable.idempotence"), judging.client.value("transactional.id")
    if explicit is False and id_:
        judging.add(finding.IDEMPOTENCE, Why.DOES_NOT_START, detail="a transactional.id needs idempotence.", right="remove enable.idempotence")  # fmt: skip
    elif explicit is False:
        judging.add(finding.IDEMPOTENCE, Why.IDEMPOTENCE_OFF, is_mild=True)
    elif explicit or id_:
        name = "enable.idempotence" if explicit else "transactional.id"
        judging.add(finding.IDEMPOTENCE if explicit else finding.TRANSACTIONAL_ID, Why.RIGHT, setting=name)  # fmt: skip
    else:
        judging.add(finding.IDEMPOTENCE, Why.IDEMPOTENCE_OFF_BY_DEFAULT, detail="in librdkafka", is_mild=True)  # fmt: skip


def _judge_acks(judging: Judging, *, is_idempotent: bool) -> None:
    name = _alias(judging, ACKS)
    acks = judging.client.value(name)
    if acks is None:
        return
    if acks in ALL:
        judging.add(finding.ACKS, Why.RIGHT, setting=name)
    elif is_idempotent:
        judging.add(finding.ACKS, Why.DOES_NOT_START, setting=name, detail="idempotence needs acks=all.", right="acks=all")  # fmt: skip
    else:
        when = "before any broker has it" if acks == "0" else "when its leader has it"
        judging.add(finding.ACKS, Why.NOT_REPLICATED, setting=name, detail=when)


def _judge_in_flight(judging: Judging, *, is_idempotent: bool) -> None:
    name = _alias(judging, IN_FLIGHT)
    if judging.client.value(name) is None:
        return
    in_flight = judging.number(name, 1)
    if is_idempotent and in_flight > MOST_IN_FLIGHT:
        judging.add(finding.IN_FLIGHT, Why.DOES_NOT_START, setting=name, detail=f"idempotence needs at most {MOST_IN_FLIGHT}.", right=f"{name}={MOST_IN_FLIGHT}")  # fmt: skip
        return
    is_ordered = is_idempotent or in_flight == 1
    judging.add(finding.IN_FLIGHT, Why.RIGHT if is_ordered else Why.REORDERS, setting=name, is_mild=True)  # fmt: skip


def _judge_retries(judging: Judging, *, is_idempotent: bool) -> None:
    name = _alias(judging, RETRIES)
    if judging.client.value(name) is None:
        return
    retries = judging.number(name, 1)
    if is_idempotent and retries == 0:
        judging.add(finding.RETRIES, Why.DOES_NOT_START, setting=name, detail="idempotence needs retries.", right=f"remove {name}")  # fmt: skip
    elif retries < FEW_RETRIES:
        after = (
            "after its first error"
            if retries == 0
            else f"after {retries} retries, however little time has passed"
        )
        judging.add(finding.RETRIES, Why.GIVES_UP, setting=name, detail=after, right=f"remove {name}; message.timeout.ms limits them", is_mild=True)  # fmt: skip
    else:
        judging.add(finding.RETRIES, Why.RIGHT, setting=name)


def _judge_timeouts(judging: Judging) -> None:
    name = _alias(judging, MESSAGE_TIMEOUT)
    own = judging.client.value(name)
    limit = judging.number(name, MESSAGE_TIMEOUT_MS)
    timeout = judging.number("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
    if own is not None and 0 < limit <= judging.number("linger.ms", 5):
        judging.add(finding.DELIVERY, Why.DOES_NOT_START, setting=name, detail=f"{name} has to be greater than linger.ms.", right=f"{name}={MESSAGE_TIMEOUT_MS}")  # fmt: skip
    elif own is not None and judging.client.value("transactional.id") and (limit > timeout or limit == 0):  # fmt: skip
        judging.add(finding.DELIVERY, Why.DOES_NOT_START, setting=name, detail=f"{name} may not exceed transaction.timeout.ms, {timeout}.", right=f"{name}={timeout}")  # fmt: skip
    elif own is not None:
        judging.add(finding.DELIVERY, Why.RIGHT, setting=name)
    socket = judging.number("socket.timeout.ms", 0)
    if judging.client.value("transactional.id") and socket > timeout + SOCKET_EXTRA_MS:
        judging.add(finding.TIMEOUT, Why.DOES_NOT_START, setting="socket.timeout.ms", detail=f"socket.timeout.ms may not exceed transaction.timeout.ms + {SOCKET_EXTRA_MS}.", right=f"socket.timeout.ms={timeout}")  # fmt: skip
