"""The terms of a judgement: three verdicts, the severity of a breach, and how long it has to last.

A rule answers per subject with OK, BREACH or UNKNOWN, always with a reason from a closed set.
Missing, partial or stale data is UNKNOWN: never OK, never BREACH.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum, StrEnum
from typing import Final


class Verdict(IntEnum):
    """What a rule says of one subject; columns store the numbers."""

    OK = 0
    UNKNOWN = 1
    BREACH = 2


class Severity(StrEnum):
    """What the reader of a breach has to do."""

    CRITICAL = "critical"  # act at once
    WARNING = "warning"  # act today
    INFO = "info"  # nothing to do now


class Kind(StrEnum):
    """How a breach ends."""

    STATE = "state"  # when the next verdict is OK
    EVENT = "event"  # it happened: when a person closes it, or after a day


SEVERITIES: Final = tuple(Severity)  # the worst first


class SubjectKind(StrEnum):
    """What a rule judges; it fixes the labels of its findings."""

    CLUSTER = "cluster"  # cluster
    TOPIC = "topic"  # cluster, topic
    PARTITION = "partition"  # cluster, topic, partition
    COMMIT = "commit"  # cluster, group, topic, partition
    GROUP = "group"  # cluster, group
    TRANSACTION = "transaction"  # cluster, transactional_id
    BROKER = "broker"  # cluster, broker
    CLIENT = "client"  # cluster, client, topic where its metrics have it
    CHECK = "check"  # cluster, check: of posture
    RULE = "rule"  # cluster, rule: self-monitoring


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleMeta:
    """What a rule declares about itself."""

    rule_id: str  # lasting, snake_case: equal in code, file, page, metric label and table
    subject: SubjectKind
    kind: Kind
    severity: Severity
    summary: str  # one sentence for a list of rules
    for_: timedelta = timedelta(0)  # how long a breach has to last before its alert fires
    is_critical: bool = False  # whether observation_stale fires while the rule stays UNKNOWN
    milder: tuple[tuple[str, Severity], ...] = ()  # (reason, severity): less bad than `severity`
    # Reasons of events that add to an earlier one: its evidence is kept beside theirs.
    sharpening: tuple[str, ...] = ()
    # Reasons of events that may replace a worse one: all others never lower the severity.
    lowering: tuple[str, ...] = ()
    # Whether each event has labels of its own: a repetition with the same labels is the same event.
    names_events: bool = False
    # Whether an event stays open although its subject is gone, such as a topic that was deleted.
    outlives_subject: bool = False
    # Whether it judges only what it remembers: a subject that is absent is forgotten, and not gone.
    forgets: bool = False
    # Reasons of UNKNOWN for which everything was observed and does not decide: they are no blindness.
    undecided: tuple[str, ...] = ()

    def severity_of(self, reason: str) -> Severity:
        """Return the severity of a breach for this reason."""
        return dict(self.milder).get(reason, self.severity)

    def may_lower(self, reason: str) -> bool:
        """Whether an event for this reason may replace a worse one."""
        return reason in self.sharpening or reason in self.lowering
