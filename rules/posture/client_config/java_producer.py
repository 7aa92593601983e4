"""A producer of Java's client: what it makes of its settings without a word, and what it rejects.

From 3.0 on `acks=all` and idempotence are the defaults. A setting that does not go with idempotence is rejected if the file
sets `enable.idempotence=true` or a `transactional.id`; otherwise idempotence is switched off with one line in the log.
Tried on Kafka 3.3, 3.9, 4.1 and 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rules.posture.client_config import finding
from rules.posture.client_config.clients import Framework
from rules.posture.client_config.finding import (
    IDEMPOTENT_BY_DEFAULT,
    KAFKA_4_0,
    WITH_DEFAULT_LOST,
    Judging,
)
from rules.posture.client_config.reasons import Why
from rules.posture.client_config.values import reject_bad_values
from rules.posture.setting_values import (
    DELIVERY_TIMEOUT_MS,
    LINGER_MS,
    MOST_IN_FLIGHT,
    REQUEST_TIMEOUT_MS,
    TRANSACTION_MAX_TIMEOUT_MS,
    TRANSACTION_TIMEOUT_MS,
)

IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
ALL: Final = frozenset({"all", "-1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A setting that does not go with idempotence."""

    setting: str
    detail: str
    right: str
    is_always_rejected: bool = False


def judge_java_producer(judging: Judging) -> None:
    """Add the lines of a producer."""
    bad = reject_bad_values(judging)
    conflicts = [each for each in _conflicts(judging) if each.setting not in bad]
    if not bad & {"enable.idempotence", "acks"}:
        _judge_idempotence(judging, conflicts)
    if "acks" not in bad:
        _judge_acks(judging, conflicts)
    _judge_in_flight(judging, conflicts, bad)
    _judge_retries(judging, conflicts, bad)
    if not bad & {"delivery.timeout.ms", "request.timeout.ms", "linger.ms"}:
        _judge_delivery(judging)
    if "transaction.timeout.ms" not in bad:
        judge_transaction_timeout(judging)


def _conflicts(judging: Judging) -> list[Conflict]:
    acks = judging.client.value("acks")
    conflicts = []
    if acks is not None and acks not in ALL:
        conflicts.append(Conflict(setting="acks", detail=f"acks={acks} does not go with idempotence.", right="acks=all"))  # fmt: skip
    if judging.number("retries", 1) == 0:
        conflicts.append(Conflict(setting="retries", detail="retries=0 does not go with idempotence.", right="remove retries"))  # fmt: skip
    in_flight = judging.number(IN_FLIGHT, MOST_IN_FLIGHT)
    if in_flight > MOST_IN_FLIGHT:
        may_be_always = judging.flag("enable.idempotence") is not False
        detail = f"more than {MOST_IN_FLIGHT} batches in flight do not go with idempotence."
        conflicts.append(
            Conflict(
                setting=IN_FLIGHT, detail=detail, right=f"{IN_FLIGHT}={MOST_IN_FLIGHT}",
                is_always_rejected=may_be_always and judging.release >= KAFKA_4_0,
            )
        )  # fmt: skip
    return conflicts


def _judge_idempotence(judging: Judging, conflicts: list[Conflict]) -> None:
    explicit, id_ = judging.flag("enable.idempotence"), judging.client.value("transactional.id")
    if id_ is not None and not id_:
        judging.add(finding.TRANSACTIONAL_ID, Why.DOES_NOT_START, detail="transactional.id may not be empty.", right="remove transactional.id, or name it")  # fmt: skip
        return
    if judging.is_made_idempotent:
        _judge_conflicts(judging, conflicts, is_rejected=True)
        return
    if explicit is False:
        why = Why.DOES_NOT_START if id_ else Why.IDEMPOTENCE_OFF
        judging.add(finding.IDEMPOTENCE, why, detail="a transactional.id needs idempotence.", right="remove enable.idempotence", is_mild=not id_)  # fmt: skip
        return
    by_default = _off_by_default(judging)
    if by_default is not None:
        is_mild = judging.client.framework is Framework.CONNECT
        judging.add(finding.IDEMPOTENCE, Why.IDEMPOTENCE_OFF_BY_DEFAULT, detail=by_default, is_mild=is_mild)  # fmt: skip
        return
    _judge_conflicts(judging, conflicts, is_rejected=bool(explicit or id_))
    if not conflicts and explicit:
        judging.add(finding.IDEMPOTENCE, Why.RIGHT)
    if not conflicts and id_:
        judging.add(finding.TRANSACTIONAL_ID, Why.RIGHT)


def _off_by_default(judging: Judging) -> str | None:
    """Return where idempotence is off because nothing sets it; None: it is on, or set."""
    if judging.flag("enable.idempotence") is not None or judging.client.value("transactional.id"):
        return None
    if judging.client.framework is Framework.CONNECT:
        return "in the producers of Kafka Connect"
    if judging.release in WITH_DEFAULT_LOST:
        return "in Kafka 3.0.0 and 3.1.0, whose default of true has no effect"
    return "before Kafka 3.0" if judging.release < IDEMPOTENT_BY_DEFAULT else None


def _judge_conflicts(judging: Judging, conflicts: list[Conflict], *, is_rejected: bool) -> None:
    always = [each for each in conflicts if each.is_always_rejected]
    for each in always or conflicts:
        why = Why.DOES_NOT_START if is_rejected or always else Why.IDEMPOTENCE_SWITCHED_OFF
        by = "a transactional.id needs idempotence, and " if judging.client.value("transactional.id") else ""  # fmt: skip
        detail = f"{by}{each.detail}"
        judging.add(finding.IDEMPOTENCE, why, setting=each.setting, detail=detail, right=each.right)


def _is_idempotent(judging: Judging, conflicts: list[Conflict]) -> bool:
    explicit = judging.flag("enable.idempotence")
    if judging.is_made_idempotent or explicit or judging.client.value("transactional.id"):
        return True
    return explicit is None and _off_by_default(judging) is None and not conflicts


def _is_rejected(judging: Judging, setting: str, conflicts: list[Conflict]) -> bool:
    """Whether the client does not start because of a setting: what else it would mean does not matter then."""
    is_certain = _is_idempotent(judging, conflicts)
    return any(
        each.setting == setting and (is_certain or each.is_always_rejected) for each in conflicts
    )


def _judge_acks(judging: Judging, conflicts: list[Conflict]) -> None:
    acks = judging.client.value("acks")
    if acks is None:
        is_old = (
            judging.release < IDEMPOTENT_BY_DEFAULT
            and judging.client.framework is not Framework.CONNECT
        )
        is_weak = is_old and not _is_idempotent(judging, conflicts)
        if is_weak:
            judging.add(finding.ACKS, Why.NOT_REPLICATED, detail="when its leader has it, the default of acks=1 before Kafka 3.0")  # fmt: skip
        return
    if acks in ALL:
        judging.add(finding.ACKS, Why.RIGHT)
        return
    if _is_rejected(judging, "acks", conflicts):
        return
    when = "when its leader has it" if acks == "1" else "before any broker has it"
    judging.add(finding.ACKS, Why.NOT_REPLICATED, detail=when)


def _judge_in_flight(judging: Judging, conflicts: list[Conflict], bad: frozenset[str]) -> None:
    value = judging.client.value(IN_FLIGHT)
    if value is None or IN_FLIGHT in bad:
        return
    is_said = any(each.setting == IN_FLIGHT for each in conflicts)
    if is_said and (_is_idempotent(judging, []) or _is_rejected(judging, IN_FLIGHT, conflicts)):
        return
    is_ordered = judging.number(IN_FLIGHT, MOST_IN_FLIGHT) == 1 or _is_idempotent(
        judging, conflicts
    )
    judging.add(finding.IN_FLIGHT, Why.RIGHT if is_ordered else Why.REORDERS, is_mild=True)


def _judge_retries(judging: Judging, conflicts: list[Conflict], bad: frozenset[str]) -> None:
    value = judging.client.value("retries")
    if value is None or "retries" in bad or _is_rejected(judging, "retries", conflicts):
        return
    retries = judging.number("retries", 1)
    if retries >= FEW_RETRIES:
        judging.add(finding.RETRIES, Why.RIGHT)
        return
    after = (
        "after its first error"
        if retries == 0
        else f"after {retries} retries, however little time has passed"
    )
    judging.add(finding.RETRIES, Why.GIVES_UP, detail=after, right="remove retries; delivery.timeout.ms limits them", is_mild=True)  # fmt: skip


FEW_RETRIES: Final = (
    1_000  # fewer are used up within a change of leaders: retry.backoff.ms is 100 to 1000
)


def _judge_delivery(judging: Judging) -> None:
    if judging.client.value("delivery.timeout.ms") is None:
        return
    limit = judging.number("delivery.timeout.ms", DELIVERY_TIMEOUT_MS)
    linger = judging.number("linger.ms", LINGER_MS if judging.release >= KAFKA_4_0 else 0)
    least = linger + judging.number("request.timeout.ms", REQUEST_TIMEOUT_MS)
    if limit < least:
        detail = f"it has to be at least linger.ms + request.timeout.ms, {least}."
        judging.add(finding.DELIVERY, Why.DOES_NOT_START, detail=detail, right=f"delivery.timeout.ms={max(least, DELIVERY_TIMEOUT_MS)}")  # fmt: skip
        return
    _judge_against_transaction(judging, limit)


def _judge_against_transaction(judging: Judging, limit: int) -> None:
    timeout = judging.number("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
    if judging.client.value("transactional.id") and limit > timeout:
        detail = f"delivery.timeout.ms {limit}, transaction.timeout.ms {timeout}"
        judging.add(finding.DELIVERY, Why.OUTLIVES_TRANSACTION, detail=detail, is_mild=True)
        return
    judging.add(finding.DELIVERY, Why.RIGHT)


def judge_transaction_timeout(judging: Judging) -> None:
    """Add the line of a transaction's timeout; which one brokers take is not in the file."""
    if judging.client.value("transaction.timeout.ms") is None:
        return
    is_long = judging.number("transaction.timeout.ms", 0) > TRANSACTION_MAX_TIMEOUT_MS
    judging.add(finding.TIMEOUT, Why.REJECTED_BY_BROKER if is_long else Why.RIGHT)
