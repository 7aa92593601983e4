"""The memory of losses as plain values for JSON.

Transactions that may be missing are not stored: recently committed ones are not stored either, so a
restart could not continue with them.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final

from rules.facts.broker_log import LogEvent
from rules.facts.identity import TopicId, TopicPartition
from rules.facts.incidents import EventName, Incident
from rules.facts.loss_memory import (
    CommitFact,
    LossMemory,
    ReplicaEvent,
    ReplicaLine,
    ReportedLoss,
)
from rules.facts.unseen_elections import NewTopic, UnseenElection
from service.storage.formats import log as log_format

COMMITS_ALONE, WITHOUT_ELECTIONS = 2, 5  # parts that older checkpoints have
OF_ELECTION: Final = (
    "not_known_to",
    "contradicted",
)  # stored apart, so that older versions ignore it
NUMBERS: Final = tuple(
    field.name
    for field in fields(ReportedLoss)
    if field.name
    not in ("name", "topic_id", "missing", "doubtful", "doubtful_since_us", *OF_ELECTION)
)
OLDER_NUMBERS: Final = len(NUMBERS) - 2  # of checkpoints to format 2: not whether it was restored


def plain(memory: LossMemory) -> list[Any]:
    """Return the memory as JSON values."""
    lines = log_format.ParsedLines(events=tuple(line.event for line in memory.lines), sources=())
    return [
        sorted(memory.beyond_epoch_end),
        sorted(memory.beyond_log_end),
        [_plain_loss(loss) for loss in memory.reported],
        [log_format.FORMAT, log_format.encode(lines), [line.read_us for line in memory.lines]],
        [_plain_loss(loss) for loss in memory.quiet],
        [_plain_election(election) for election in memory.unseen],
        [
            [topic.topic, topic.topic_id, topic.first_partition, topic.listed_us]
            for topic in memory.new_topics
        ],
        [_plain_incident(incident) for incident in memory.incidents],
    ]


def losses_of(stored: Any) -> LossMemory:
    """Read the memory that `plain` returned.

    Raises:
        StoreError: the log lines have another format.
        LookupError, TypeError, ValueError: the values are malformed.
    """
    beyond_epoch_end, beyond_log_end = (_facts(part) for part in stored[:COMMITS_ALONE])
    if len(stored) == COMMITS_ALONE:
        return LossMemory(beyond_epoch_end=beyond_epoch_end, beyond_log_end=beyond_log_end)
    losses, (form, content, times), quiet = stored[COMMITS_ALONE:WITHOUT_ELECTIONS]
    unseen, new_topics, *later = stored[WITHOUT_ELECTIONS:] or ((), ())
    (incidents,) = later or ((),)  # older checkpoints have none
    events = log_format.decode(content, form).events
    return LossMemory(
        beyond_epoch_end=beyond_epoch_end,
        beyond_log_end=beyond_log_end,
        reported=tuple(_loss(row) for row in losses),
        quiet=tuple(_loss(row) for row in quiet),
        lines=tuple(
            ReplicaLine(event=_of_replica(event), read_us=int(read_us))
            for event, read_us in zip(events, times, strict=True)
        ),
        unseen=tuple(_election(row) for row in unseen),
        new_topics=tuple(_new_topic(row) for row in new_topics),
        incidents=tuple(_incident(row) for row in incidents),
    )


def plain_elections(memory: LossMemory) -> list[Any]:
    """Return the election fields of the reported losses, in their order."""
    return [[getattr(loss, name) for name in OF_ELECTION] for loss in memory.reported]


def with_elections(memory: LossMemory, stored: Any) -> LossMemory:
    """Return the memory with the values that `plain_elections` returned."""
    losses = (
        replace(loss, not_known_to=None if end is None else int(end), contradicted=int(level))
        for loss, (end, level) in zip(memory.reported, stored, strict=True)
    )
    return replace(memory, reported=tuple(losses))


def _facts(rows: Any) -> frozenset[CommitFact]:
    return frozenset((str(topic), int(n), str(group), int(at)) for topic, n, group, at in rows)


def _plain_loss(loss: ReportedLoss) -> list[Any]:
    own = [loss.name.topic, loss.name.partition, loss.topic_id]
    return [*own, *(getattr(loss, name) for name in NUMBERS)]


def _loss(row: Any) -> ReportedLoss:
    topic, partition, topic_id, *numbers = row
    names = NUMBERS[:OLDER_NUMBERS] if len(numbers) == OLDER_NUMBERS else NUMBERS
    by_name = dict(zip(names, numbers, strict=True))
    return ReportedLoss(
        name=TopicPartition(str(topic), int(partition)),
        topic_id=_topic_id(topic_id),
        **{name: None if value is None else int(value) for name, value in by_name.items()},  # type: ignore[arg-type]
    )


def _plain_election(election: UnseenElection) -> list[Any]:
    own = [
        election.name.topic,
        election.name.partition,
        election.topic_id,
        election.leader,
        election.leader_epoch,
    ]
    return [
        *own,
        list(election.former_leaders),
        election.written_us,
        election.read_us,
        election.since_us,
    ]


def _election(row: Any) -> UnseenElection:
    topic, partition, topic_id, leader, leader_epoch, former_leaders, written, read, since = row
    return UnseenElection(
        name=TopicPartition(str(topic), int(partition)),
        topic_id=_topic_id(topic_id),
        leader=int(leader),
        leader_epoch=int(leader_epoch),
        former_leaders=tuple(int(broker) for broker in former_leaders),
        written_us=None if written is None else int(written),
        read_us=int(read),
        since_us=None if since is None else int(since),
    )


def _new_topic(row: Any) -> NewTopic:
    topic, topic_id, first_partition, listed_us = row
    return NewTopic(
        topic=str(topic),
        topic_id=_topic_id(topic_id),
        first_partition=int(first_partition),
        listed_us=int(listed_us),
    )


def _plain_incident(incident: Incident) -> list[Any]:
    events = [
        [name.partition.topic, name.partition.partition, name.topic_id, name.leader_epoch]
        for name in sorted(incident.events, key=str)
    ]
    return [incident.incident_id, incident.broker, incident.began_us, incident.last_us, events]


def _incident(row: Any) -> Incident:
    incident_id, broker, began_us, last_us, events = row
    return Incident(
        incident_id=str(incident_id),
        broker=None if broker is None else int(broker),
        began_us=int(began_us),
        last_us=int(last_us),
        events=frozenset(
            EventName(TopicPartition(str(topic), int(number)), _topic_id(topic_id), int(epoch))
            for topic, number, topic_id, epoch in events
        ),
    )


def _topic_id(stored: Any) -> TopicId | None:
    return None if stored is None else TopicId(stored)


def _of_replica(event: LogEvent) -> ReplicaEvent:
    if not isinstance(event, ReplicaEvent):
        raise TypeError("a line that settles no loss")
    return event
