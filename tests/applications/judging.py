"""What a service may say of a healthy application whose instances are killed.

Nothing above info but two things that are true, and only where an instance has been killed:

- `producer_fenced` with the reason `coordinator_timeout`. A killed instance leaves its transaction open, and
  the coordinator aborts it when the timeout is over. A successor that takes the transactional id over before is
  a handover, which is info; nobody is a zombie, and no two instances fight.
- `read_committed_consumers_blocked` with the reason `overdue`. Nobody took the transactional id over
  before the timeout: who reads the output has waited for it a minute or longer, and waits until the
  coordinator observations the next time. Where a successor is there in time nothing is said.

Each subject may be named so once per kill.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

FENCED: Final = ("producer_fenced", "coordinator_timeout")
BLOCKED: Final = ("read_committed_consumers_blocked", "overdue")
# Of an event in the service's log, what is not of its subject.
NO_LABELS: Final = frozenset(
    {"time", "level", "event", "rule", "step", "verdict", "reason", "severity", "evidence"}
)
LOUD: Final = frozenset({"warning", "critical"})


@dataclass(frozen=True)
class Said:
    """What a service said of one subject."""

    rule: str
    severity: str
    reason: str
    subject: tuple[tuple[str, str], ...]


def said_of(events: Iterable[Mapping[str, Any]]) -> list[Said]:
    """Return every breach that was logged, also what was taken back later: it had been told."""
    return [
        Said(
            rule=one["rule"],
            severity=one["severity"],
            reason=one["reason"],
            subject=tuple(
                sorted((name, str(value)) for name, value in one.items() if name not in NO_LABELS)
            ),
        )
        for one in events
        if one.get("verdict") == "breach"
    ]


def false_alarms(said: Sequence[Said], *, kills: int) -> list[Said]:
    """Return what is above info and not true, whatever was killed so many times in all."""
    loud = [one for one in said if one.severity in LOUD]
    times = Counter((one.rule, one.subject) for one in loud)
    return [one for one in loud if not follows_a_kill(one) or times[one.rule, one.subject] > kills]


def follows_a_kill(one: Said) -> bool:
    """Whether it is what a killed instance leads to."""
    return (one.rule, one.reason) in (FENCED, BLOCKED)


def by_rule(said: Iterable[Said]) -> str:
    """Count what was said, the loudest first, as a cell of a table."""
    counts = Counter((one.severity, one.rule) for one in said)
    order = ["critical", "warning", "info"]
    ranked = sorted(counts.items(), key=lambda item: (order.index(item[0][0]), item[0][1]))
    return ", ".join(f"{count} {rule} ({severity})" for (severity, rule), count in ranked) or "none"
