"""Compares a round with what was known before it: the change events of the round, and what is known after it.

Only a difference of two answers is a change. What this round could not read stays as it was known, and the first
round of a cluster changes nothing. Cheap where nothing changed: the list of topics is the same object then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.changes.brokers import addresses_of, compare_brokers, compare_controllers
from rules.changes.grouping import Change, events_of
from rules.changes.replicas import advance_reassignments
from rules.changes.restarts import advance_starts
from rules.changes.settings import advance_settings, observed_settings
from rules.changes.topics import (
    ListedTopics,
    advance_missing,
    compare_topics,
    is_behind,
)
from rules.facts.change_events import ChangeEvent
from rules.facts.change_events import ChangeEventKind as Kind
from rules.facts.change_memory import ChangeMemory, KnownController, KnownState, MissingTopic
from rules.facts.column import Int64s
from rules.facts.identity import TopicId
from rules.facts.last_observation import microseconds
from rules.facts.matching import matching_rows
from rules.facts.snapshot import Absence, Snapshot
from rules.facts.times import MICROSECOND
from rules.view import View

MISSING_FORGOTTEN_AFTER: Final = timedelta(days=7)
LISTED_FIRST: Final = (Kind.TOPIC_CREATED, Kind.TOPIC_APPEARED)
# After which an older list is taken for what it is: a controller that was restored from an older state.
BEHIND_AT_MOST: Final = timedelta(minutes=10)


def with_changes(view: View) -> View:
    """Return the view with the change events of its round, and the memory that goes with them."""
    now_us = microseconds(view.now)
    events, changes = advance_changes(view.snapshot, now_us, view.memory.changes)
    return replace(view, memory=replace(view.memory, changes=changes), change_events=events)


def advance_changes(
    snapshot: Snapshot, now_us: int, old: ChangeMemory
) -> tuple[tuple[ChangeEvent, ...], ChangeMemory]:
    """Return the change events of a round, and the memory one round later."""
    events: tuple[ChangeEvent, ...] = ()
    before, first = old.state, old.first
    if old.stored is not None and first is not None:
        since_stored, changes = _advance(first, old.stored, {})
        events = events_of(changes, first.latest_us)
        before = replace(before, missing=_also_missing(before, since_stored))
        first = None
    elif first is not None or before.latest_us == 0:
        first = _filled(first, _observed(snapshot, now_us))
    state, changes = _advance(_observed(snapshot, now_us), before, snapshot.absences)
    state = replace(
        state,
        begun_us=before.begun_us or now_us,
        starts_us=advance_starts(snapshot.broker_log.events, before, changes),
    )
    return events + events_of(changes, now_us), ChangeMemory(state=state, first=first)


def _observed(snapshot: Snapshot, now_us: int) -> KnownState:
    """Return what a round saw; None of what it could not read."""
    quorum = snapshot.quorum
    controller = None
    if quorum.leader is not None and quorum.leader_epoch is not None:
        controller = KnownController(leader=int(quorum.leader), leader_epoch=quorum.leader_epoch)
    return KnownState(
        partitions=snapshot.partitions if snapshot.placement_read else None,
        partitions_us=now_us if snapshot.placement_read else 0,
        is_complete=snapshot.placement_complete,
        topic_pattern=snapshot.topic_pattern,
        brokers=addresses_of(snapshot.brokers) or None,
        brokers_us=now_us if snapshot.brokers else 0,
        controller=controller,
        controller_us=0 if controller is None else now_us,
        settings=observed_settings(
            snapshot.configs, snapshot.partitions if snapshot.placement_read else None, now_us
        ),
    )


def _filled(first: KnownState | None, seen: KnownState) -> KnownState:
    """Return the first known state of each part."""
    if first is None:
        return seen
    if first.partitions is None:
        first = replace(
            first,
            partitions=seen.partitions,
            partitions_us=seen.partitions_us,
            is_complete=seen.is_complete,
            topic_pattern=seen.topic_pattern,
        )
    if first.brokers is None:
        first = replace(first, brokers=seen.brokers, brokers_us=seen.brokers_us)
    if first.controller is None:
        first = replace(first, controller=seen.controller, controller_us=seen.controller_us)
    if seen.settings.topics.distinct and not first.settings.topics.distinct:
        first = replace(first, settings=seen.settings)
    return first


def _also_missing(state: KnownState, stored: KnownState) -> dict[str, MissingTopic]:
    """Return what is missing, with the topics that an earlier process knew and no round has listed since."""
    listed = () if state.partitions is None else state.partitions.index.position_of_topic
    left = {topic: entry for topic, entry in stored.missing.items() if topic not in listed}
    return {**left, **state.missing}


def _advance(
    new: KnownState, old: KnownState, absences: Mapping[str, Absence]
) -> tuple[KnownState, list[Change]]:
    """Return the known state after an observation, and what changed."""
    changes: list[Change] = []
    state = _advance_topics(new, old, absences, changes)
    if new.brokers is not None:
        if old.brokers is not None:
            changes += compare_brokers(new.brokers, old.brokers, old.brokers_us)
        state = replace(state, brokers=new.brokers, brokers_us=new.brokers_us)
    if new.controller is not None:
        if old.controller is not None:
            changes += compare_controllers(new.controller, old.controller, old.controller_us)
        state = replace(state, controller=new.controller, controller_us=new.controller_us)
    return replace(state, settings=advance_settings(new.settings, old.settings, changes)), changes


def _advance_topics(
    new: KnownState, old: KnownState, absences: Mapping[str, Absence], changes: list[Change]
) -> KnownState:
    """Return the known state with the topics of an observation; add what changed of them."""
    if new.partitions is None:
        return old
    state = replace(
        old,
        partitions=new.partitions,
        partitions_us=new.partitions_us,
        is_complete=new.is_complete,
        topic_pattern=new.topic_pattern,
    )
    if old.partitions is None:
        return state
    if new.partitions is old.partitions and not old.missing:
        return state
    rows = matching_rows(new.partitions, old.partitions, needs_id=False)
    if is_behind(new.partitions, old.partitions, rows, old.former_ids):
        is_short = new.partitions_us - old.partitions_us <= BEHIND_AT_MOST // MICROSECOND
        return old if is_short else replace(state, missing={}, reassigned_from={}, former_ids={})
    return _with_topics(state, old, rows, absences, changes)


def _with_topics(
    state: KnownState,
    old: KnownState,
    rows: Int64s,
    absences: Mapping[str, Absence],
    changes: list[Change],
) -> KnownState:
    if state.partitions is None or old.partitions is None:
        return state
    seen = ListedTopics(state.partitions, state.is_complete, state.partitions_us)
    before = ListedTopics(old.partitions, old.is_complete, old.partitions_us)
    listed = list(compare_topics(seen, before, old.missing))
    if state.topic_pattern != old.topic_pattern:  # other topics are observed than before
        listed = [change for change in listed if change.kind not in LISTED_FIRST]
    oldest = seen.read_us - MISSING_FORGOTTEN_AFTER // MICROSECOND
    missing, gone = advance_missing(seen, before, old.missing, absences, oldest)
    reassigned, moved = advance_reassignments(
        seen.partitions, before.partitions, rows, old.reassigned_from, before.read_us
    )
    changes += [*listed, *gone, *moved]
    return replace(
        state,
        missing=missing,
        reassigned_from=reassigned,
        former_ids=_former_ids(old, listed, gone),
    )


def _former_ids(
    old: KnownState, listed: Sequence[Change], gone: Sequence[Change]
) -> dict[str, TopicId]:
    """Return the id before of each topic that was created again, as long as it exists."""
    deleted = {change.subject.topic for change in gone if change.kind is Kind.TOPIC_DELETED}
    former = {topic: topic_id for topic, topic_id in old.former_ids.items() if topic not in deleted}
    for change in listed:
        topic, before = change.subject.topic, change.subject.before
        if change.kind is Kind.TOPIC_RECREATED and topic is not None and before is not None:
            former[topic] = TopicId(before)
    return former
