"""Elections of new partitions that nobody observed, where no controller's log is read.

A topic that was created, written to and lost between two rounds leaves a leader epoch above 0 at its
first observation, and a group's commit beyond the end of its epoch at most (`rules.loss.proof` has
nothing to compare with). After a clean election the epoch is the same, so that it proves nothing: it is
reported as not known, and as a warning only where a controller counted an unclean election at that time
and another broker leads than the one that led first. The election of the last known leader is counted too.
Where a controller's log is read its lines decide (`rules.loss.unseen`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from rules.facts.first_epochs import FirstEpoch
from rules.facts.last_observation import microseconds
from rules.facts.scrapes import RISES_KEPT, Scrapes, UncleanElections, rises_within
from rules.facts.times import MICROSECOND, iso_time_or_none, time_of
from rules.facts.unseen_elections import NewTopic, UnseenElection
from rules.loss.controllers import controllers_read
from rules.loss.election import Election
from rules.loss.evidence_fields import LossEvidence
from rules.loss.loss_evidence import copy_first
from rules.view import View

KEPT: Final = timedelta(days=1)  # as long as the finding of an event
MAX_KEPT: Final = 1000
# A page is scraped every 15 s, and what Prometheus returns may be a minute older.
COUNTERS_AWAITED: Final = timedelta(seconds=90)
LISTED_WITHOUT_LEADER: Final = timedelta(minutes=5)  # how long a new topic had no leader, at most


def list_first_epochs(
    view: View, new: Sequence[NewTopic], unseen: Sequence[UnseenElection]
) -> tuple[FirstEpoch, ...]:
    """Return the first observations of the last day whose elections nobody observed."""
    oldest = microseconds(view.now) - KEPT // MICROSECOND
    firsts = {
        first.key: first for first in view.memory.losses.first_epochs if first.seen_us > oldest
    }
    if new and view.before is not None and not controllers_read(view):
        logged = {election.key[:2] for election in unseen}
        for topic in new:
            for first in _observe_first(view, topic):
                if first.key not in firsts and first.key not in logged:
                    firsts[first.key] = first
    return tuple(_with_counters(view, first) for first in firsts.values())[-MAX_KEPT:]


def list_newly_first(view: View) -> dict[tuple[int, int], FirstEpoch]:
    """Return by row and leader epoch the first observations that this round reports."""
    before = {first.key: first.reported_us for first in view.losses_before.first_epochs}
    newly: dict[tuple[int, int], FirstEpoch] = {}
    for first in view.memory.losses.first_epochs:
        row = _row(view, first)
        if first.reported_us is not None and before.get(first.key) is None and row is not None:
            newly[row, first.leader_epoch] = first
    return newly


def first_epoch_evidence(view: View, first: FirstEpoch) -> LossEvidence:
    """Return the evidence of elections that nobody observed; whether anything is lost is not known."""
    row = _row(view, first)
    replicas = () if row is None else view.snapshot.partitions.replicas[row] or ()
    in_sync = () if row is None else view.snapshot.partitions.isr[row] or ()
    away = [broker for broker in replicas if broker not in in_sync]
    return {
        "topic_id": first.topic_id,
        "election": str(Election.NOT_KNOWN),
        "leader_before": None,
        "leader": first.leader,
        "leader_epoch": first.leader_epoch,
        "unknown_since": iso_time_or_none(first.since_us),
        "never_observed": True,
        "unclean_elections_counted": first.unclean_elections,
        "advice": copy_first(away, first.name) if away and first.has_sign else None,
    }


def _row(view: View, first: FirstEpoch) -> int | None:
    partitions = view.snapshot.partitions
    row = partitions.index.row(first.name.topic, first.name.partition)
    return None if row is None or partitions.topic_id(row) != first.topic_id else row


def _observe_first(view: View, topic: NewTopic) -> Iterator[FirstEpoch]:
    """Yield the partitions of a new topic that this round observes first, after an election."""
    partitions, before = view.snapshot.partitions, view.before
    position = partitions.index.position_of_topic.get(topic.topic)
    if before is None or position is None or partitions.topic_ids[position] != topic.topic_id:
        return
    start, end = partitions.index.starts[position : position + 2].tolist()
    epochs = view.snapshot.offsets.leader_epoch
    rows = np.arange(start + topic.first_partition, end)
    for row in rows[epochs.valid[rows] & (epochs.values[rows] > 0)].tolist():
        name = partitions.index.topic_partition(row)
        earlier = before.observations.of_partition(name)
        is_first = earlier is None or earlier.topic_id != topic.topic_id
        if is_first and view.memory.observations.of_partition(name) is not None:
            yield from _after_election(view, topic, row)


def _after_election(view: View, topic: NewTopic, row: int) -> Iterator[FirstEpoch]:
    """Yield the first observation of a partition if an election before it may have been unclean."""
    partitions = view.snapshot.partitions
    leader, epoch = partitions.leader[row], view.snapshot.offsets.leader_epoch[row]
    replicas = partitions.replicas[row] or ()
    is_forbidden = partitions.unclean_election_enabled[row] == 0
    if leader is None or epoch is None or is_forbidden or replicas == (leader,):
        return
    yield FirstEpoch(
        name=partitions.index.topic_partition(row),
        topic_id=topic.topic_id,
        leader=leader,
        leader_epoch=epoch,
        is_preferred=replicas[:1] == (leader,),
        seen_us=microseconds(view.now),
        since_us=_did_not_exist_at(view, topic),
    )


def _did_not_exist_at(view: View, topic: NewTopic) -> int | None:
    """Return the time of the last round that did not list the topic; None: it is not remembered."""
    if view.before is None or topic.listed_us != microseconds(view.now):
        return None
    return view.before.taken_us or None


def _with_counters(view: View, first: FirstEpoch) -> FirstEpoch:
    """Return a first observation that is reported once the controllers' counters cover its time."""
    if first.reported_us is not None:
        return first
    now_us, scrapes = microseconds(view.now), view.snapshot.scrapes
    counters = [counter for counter in scrapes.unclean_elections if not counter.is_gone]
    counted = _count(counters, first)
    is_late = now_us >= first.seen_us + COUNTERS_AWAITED // MICROSECOND
    if counters and not counted and not _are_past(counters, scrapes, first) and not is_late:
        return first
    is_known = bool(counters) and (bool(counted) or _are_whole(counters, scrapes, first))
    return replace(first, unclean_elections=counted if is_known else None, reported_us=now_us)


def _count(counters: Sequence[UncleanElections], first: FirstEpoch) -> int:
    """Return the unclean elections that were counted in the time of an election, at most."""
    since, until = _since(first), time_of(first.seen_us)
    within = (rise for counter in counters for rise in rises_within(counter.counted, since, until))
    return max((rise.count or 0 for rise in within), default=0)


def _since(first: FirstEpoch) -> datetime:
    """Return the earliest time of an election before a first observation."""
    earliest = first.seen_us - LISTED_WITHOUT_LEADER // MICROSECOND
    return time_of(first.since_us or earliest)


def _are_whole(counters: Sequence[UncleanElections], scrapes: Scrapes, first: FirstEpoch) -> bool:
    """Whether no rise between the two was missed, as over a restart of Tidemark, or is forgotten."""
    since = _since(first)
    names = {counter.endpoint for counter in counters}
    return _are_past(counters, scrapes, first) and all(
        state.answered_since is not None
        and state.answered_at is not None
        and state.answered_since <= since
        and state.answered_at - RISES_KEPT <= since
        for state in scrapes.endpoints
        if state.name in names
    )


def _are_past(counters: Sequence[UncleanElections], scrapes: Scrapes, first: FirstEpoch) -> bool:
    """Whether the latest values of all controllers are from after the first observation."""
    states = {state.name: state for state in scrapes.endpoints}
    own = [states[counter.endpoint] for counter in counters if counter.endpoint in states]
    return len(own) == len(counters) and all(
        state.answered_at is not None and state.answered_at - state.lag >= time_of(first.seen_us)
        for state in own
    )
