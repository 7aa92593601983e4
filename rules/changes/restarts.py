"""Which brokers restarted: only what a log line of the broker itself proves.

A broker that left the list of registered brokers and joined it again, or whose connections broke, may have been
fenced, frozen or cut off for a while. Without its log nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rules.changes.grouping import Change
from rules.facts.broker_log import BrokerStarted, LogEvent
from rules.facts.change_events import ChangedSubject, ChangeEventKind, ChangeEvidence
from rules.facts.change_memory import KnownState
from rules.facts.last_observation import microseconds
from rules.facts.times import CLOCKS_AGREE_US


def advance_starts(
    events: Iterable[LogEvent], old: KnownState, changes: list[Change]
) -> Mapping[int, int]:
    """Return when each broker began to start last, by its own clock; add those that started again.

    A start from before the cluster was first observed is no change, and a line without a time says nothing.
    """
    starts = dict(old.starts_us)
    for event in events:
        if not isinstance(event, BrokerStarted) or event.origin.at is None:
            continue
        broker, at_us = int(event.broker_id), microseconds(event.origin.at)
        if at_us <= starts.get(broker, 0):
            continue
        starts[broker] = at_us
        if old.begun_us and at_us > old.begun_us and broker in (old.brokers or {}):
            is_recent = at_us >= old.brokers_us - CLOCKS_AGREE_US
            subject = ChangedSubject(
                broker=broker, after=f"started {event.origin.at.isoformat(timespec='seconds')}"
            )
            changes.append(
                Change(
                    kind=ChangeEventKind.BROKER_RESTARTED,
                    subject=subject,
                    since_us=old.brokers_us if is_recent else None,
                    evidence=ChangeEvidence.LOG_LINE,
                )
            )
    return starts
