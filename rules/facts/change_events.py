"""What changed in a cluster: one event for the same change of one round, with the state before and after.

An event says what brokers answered in two rounds, and never why. It happened at some time between the last
round that saw the state before and the first one that saw the state after, both by our own clock, in
microseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from rules.facts.times import change_if_set

SUBJECTS_SHOWN: Final = 20  # of one event, each with its own state before and after


class ChangeEventKind(StrEnum):
    """The kinds of changes."""

    TOPIC_CREATED = "topic_created"
    # Listed for the first time; whether it is new is not known: it may have been hidden by a permission.
    TOPIC_APPEARED = "topic_appeared"
    TOPIC_DELETED = "topic_deleted"  # every broker that was asked for it by its name has none
    TOPIC_RECREATED = "topic_recreated"  # the same name with another topic id
    TOPIC_HIDDEN = "topic_hidden"  # a permission was lost; whether the topic exists is not known
    PARTITIONS_ADDED = "partitions_added"
    REASSIGNMENT_BEGAN = "reassignment_began"
    REASSIGNMENT_CANCELLED = "reassignment_cancelled"
    REPLICAS_REASSIGNED = "replicas_reassigned"
    BROKER_JOINED = "broker_joined"
    BROKER_LEFT = "broker_left"
    BROKER_MOVED = "broker_moved"  # the same broker id advertises another address or rack
    BROKER_RESTARTED = "broker_restarted"
    CONTROLLER_MOVED = "controller_moved"
    SETTING_CHANGED = "setting_changed"
    FEATURE_LEVEL_RAISED = "feature_level_raised"
    FEATURE_LEVEL_LOWERED = "feature_level_lowered"


class ChangeEvidence(StrEnum):
    """What proves a change, beside the answers of two rounds."""

    LOG_LINE = "log_line"  # of the broker itself


class SubjectKind(StrEnum):
    """What changed."""

    CLUSTER = "cluster"
    BROKER = "broker"
    TOPIC = "topic"
    PARTITION = "partition"
    FEATURE = "feature"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSubject:
    """One subject, and its state before and after as Kafka writes it; None: there was or is none."""

    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    setting: str | None = None
    feature: str | None = None
    before: str | None = None
    after: str | None = None
    before_source: str | None = None  # of a setting: where its value comes from
    after_source: str | None = None

    @property
    def kind(self) -> SubjectKind:
        """Return what it is."""
        if self.partition is not None:
            return SubjectKind.PARTITION
        if self.topic is not None:
            return SubjectKind.TOPIC
        if self.broker is not None:
            return SubjectKind.BROKER
        return SubjectKind.CLUSTER if self.feature is None else SubjectKind.FEATURE


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEvent:
    """The same change of one or many subjects within one round."""

    id: str  # lasting: the same change of the same round has the same one
    kind: ChangeEventKind
    seen_us: int  # the first round that saw the state after
    since_us: int | None  # the last round that saw the state before; None: not known
    count: int  # subjects
    subjects: tuple[ChangedSubject, ...]  # the first ones in their order
    topics: tuple[str, ...] = ()  # of all subjects
    brokers: tuple[int, ...] = ()  # likewise
    evidence: ChangeEvidence | None = None  # None: the answers of two rounds alone

    def with_times(self, change: Callable[[int], int]) -> ChangeEvent:
        """Return the event with its times changed."""
        return replace(
            self,
            seen_us=change(self.seen_us),
            since_us=change_if_set(self.since_us, change),
        )
