"""Values that a client takes at all: a wrong one keeps it from starting, whatever else is right."""

from __future__ import annotations

from typing import Final

from rules.posture.client_config import finding
from rules.posture.client_config.clients import Library, Role
from rules.posture.client_config.finding import Judging
from rules.posture.client_config.reasons import Why
from rules.posture.line import PostureCheck

FLAGS: Final = ("true", "false")
JAVA_ACKS: Final = ("all", "-1", "0", "1")
_NUMBERS: Final = {
    "retries": finding.RETRIES,
    "max.in.flight.requests.per.connection": finding.IN_FLIGHT,
    "max.in.flight": finding.IN_FLIGHT,
    "delivery.timeout.ms": finding.DELIVERY,
    "message.timeout.ms": finding.DELIVERY,
    "request.timeout.ms": finding.DELIVERY,
    "linger.ms": finding.DELIVERY,
    "transaction.timeout.ms": finding.TIMEOUT,
}
_CHOICES: Final = {
    "enable.idempotence": (finding.IDEMPOTENCE, FLAGS),
    "enable.auto.commit": (finding.AUTO_COMMIT, FLAGS),
    "enable.auto.offset.store": (finding.AUTO_COMMIT, FLAGS),
    "isolation.level": (finding.ISOLATION, ("read_committed", "read_uncommitted")),
}
_OF: Final = {
    Role.PRODUCER: frozenset({*_NUMBERS, "enable.idempotence"}),
    Role.CONSUMER: frozenset({"enable.auto.commit", "enable.auto.offset.store", "isolation.level"}),
}


def reject_bad_values(judging: Judging) -> frozenset[str]:
    """Add lines for values that are none of their settings, and return the names that need no more judging."""
    bad = {name for name in _OF.get(judging.client.role, ()) if _reject(judging, name)}
    if judging.client.role is Role.PRODUCER:
        bad |= {name for name in ("acks", "request.required.acks") if _reject_acks(judging, name)}
    return frozenset(bad)


def _reject(judging: Judging, name: str) -> bool:
    value = judging.client.value(name)
    if value is None:
        return False
    check, choices = _CHOICES.get(name) or (_NUMBERS[name], ())
    if judging.is_hidden(name):
        judging.add(check, Why.VALUE_NOT_SHOWN, setting=name, right=f"compare {name}")
        return True
    is_right = _is_choice(value, choices) if choices else _is_number(value, judging.client.library)
    if not is_right:
        form = " or ".join(choices) if choices else "a number"
        _add(judging, check, name, f"{name} has to be {form}.", f"{name}={choices[0] if choices else 'NUMBER'}")  # fmt: skip
    return not is_right


def _is_choice(value: str, choices: tuple[str, ...]) -> bool:
    return value.lower().replace("-", "_") in choices


def _is_number(value: str, library: Library | None) -> bool:
    text = value if library is Library.JAVA else value.removeprefix("+")
    return text.removeprefix("-").isdecimal()


def _reject_acks(judging: Judging, name: str) -> bool:
    value = judging.client.value(name)
    if value is None:
        return False
    if judging.is_hidden(name):
        judging.add(finding.ACKS, Why.VALUE_NOT_SHOWN, setting=name, right="acks=all")
        return True
    is_number = value.removeprefix("-").isdecimal() and -1 <= int(value) <= 1000
    is_right = value in JAVA_ACKS or (judging.client.library is Library.LIBRDKAFKA and is_number)
    if not is_right:
        _add(judging, finding.ACKS, name, "acks has to be all, -1, 0 or 1.", "acks=all")
    return not is_right


def _add(judging: Judging, check: PostureCheck, name: str, detail: str, right: str) -> None:
    judging.add(check, Why.DOES_NOT_START, setting=name, detail=detail, right=right)
