"""What is remembered of losses, as plain values for JSON.

Which transactions may be missing is not kept: what was committed lately is not either, so that a
restart could not go on with it.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from rules.facts.broker_log import LogEvent
from rules.facts.identity import TopicId, TopicPartition
from rules.facts.loss_memory import (
    CommitFact,
    LossMemory,
    ReplicaEvent,
    ReplicaLine,
    ToldLoss,
)
from service.storage import log_format

COMMITS_ALONE: Final = 2  # parts that older checkpoints have
NUMBERS: Final = tuple(
    one.name
    for one in fields(ToldLoss)
    if one.name not in ("name", "topic_id", "missing", "doubtful", "doubtful_since_us")
)


def plain(memory: LossMemory) -> list[Any]:
    """Return the memory as values that JSON has."""
    lines = log_format.ParsedLines(events=tuple(one.event for one in memory.lines), sources=())
    return [
        sorted(memory.beyond_epoch_end),
        sorted(memory.beyond_log_end),
        [_plain_loss(loss) for loss in memory.told],
        [log_format.FORMAT, log_format.encode(lines), [one.read_us for one in memory.lines]],
        [_plain_loss(loss) for loss in memory.quiet],
    ]


def losses_of(told: Any) -> LossMemory:
    """Return what `plain` was given.

    Raises:
        StoreError: the lines are of another format.
        LookupError, TypeError, ValueError: it is something else.
    """
    beyond_epoch_end, beyond_log_end = (_facts(part) for part in told[:COMMITS_ALONE])
    if len(told) == COMMITS_ALONE:
        return LossMemory(beyond_epoch_end=beyond_epoch_end, beyond_log_end=beyond_log_end)
    losses, (form, content, times), quiet = told[COMMITS_ALONE:]
    events = log_format.decode(content, form).events
    return LossMemory(
        beyond_epoch_end=beyond_epoch_end,
        beyond_log_end=beyond_log_end,
        told=tuple(_loss(row) for row in losses),
        quiet=tuple(_loss(row) for row in quiet),
        lines=tuple(
            ReplicaLine(event=_of_replica(event), read_us=int(read_us))
            for event, read_us in zip(events, times, strict=True)
        ),
    )


def _facts(told: Any) -> frozenset[CommitFact]:
    return frozenset((str(topic), int(n), str(group), int(at)) for topic, n, group, at in told)


def _plain_loss(loss: ToldLoss) -> list[Any]:
    own = [loss.name.topic, loss.name.partition, loss.topic_id]
    return [*own, *(getattr(loss, name) for name in NUMBERS)]


def _loss(row: Any) -> ToldLoss:
    topic, partition, topic_id, *numbers = row
    told = dict(zip(NUMBERS, numbers, strict=True))
    return ToldLoss(
        name=TopicPartition(str(topic), int(partition)),
        topic_id=None if topic_id is None else TopicId(topic_id),
        **{name: None if value is None else int(value) for name, value in told.items()},  # type: ignore[arg-type]
    )


def _of_replica(event: LogEvent) -> ReplicaEvent:
    if not isinstance(event, ReplicaEvent):
        raise TypeError("a line that settles no loss")
    return event
