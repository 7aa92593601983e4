"""What is carried from round to round of losses: those of the last day, and lines that may settle them.

Lines may be read before the loss is proven: a broker that was only paused is back within a second.
Most of them settle nothing, such as those of every restart, and are kept for minutes. A change that
seems to be clean and to have left all that was committed is kept for an hour where unclean elections
are allowed: the ISR may have shrunk, and its leader died, between two observations, and then only the lines
that it wrote, which may come late, tell of a loss. Elections under whose old leader nobody had observed are told by
lines alone (`rules.loss.unseen`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.facts.broker_log import (
    FollowerStarted,
    IsrUpdated,
    LogEvent,
    LogLoaded,
    LogTruncated,
    UncleanChange,
    WatermarkWentBack,
    partition_of,
)
from rules.facts.identity import TopicPartition
from rules.facts.last_observation import microseconds
from rules.facts.loss_memory import (
    Contradiction,
    LossMemory,
    ReplicaEvent,
    ReplicaLine,
    ReportedLoss,
)
from rules.facts.times import MICROSECOND
from rules.facts.unseen_elections import UnseenElection
from rules.loss.controllers import controllers_read
from rules.loss.election import Election
from rules.loss.late_lines import held_against
from rules.loss.new_topics import new_topics
from rules.loss.proof import Proof, plain_changes, proofs
from rules.loss.restored import with_what_is_back
from rules.loss.returned import is_loss, settled, settled_election, with_settled
from rules.loss.unseen import Remembered, unseen_elections
from rules.loss.whole_transactions import with_transactions
from rules.view import View

REPORTED_KEPT: Final = timedelta(days=1)  # as long as the finding of an event
MAX_REPORTED: Final = 1000  # a broker that leads more of them at once is resolved in its own log
LINES_KEPT: Final = timedelta(minutes=5)  # of partitions without a loss
ALONE_KEPT: Final = timedelta(hours=1)  # a leader may be alone for long before it dies
MAX_LINES: Final = 5000  # those of losses, then the latest
OF_A_CUT: Final = (LogTruncated, WatermarkWentBack)


def remember_losses(view: View) -> LossMemory:
    """Return the memory with what this round proved, and what was written since the last one."""
    memory, now_us = view.memory.losses, microseconds(view.now)
    found = [_told(proof, now_us) for proof in proofs(view) if proof.is_open_ended]
    plain = [_told(proof, now_us) for proof in plain_changes(view) if not proof.is_open_ended]
    events = (_that_may_settle(event) for event in view.snapshot.broker_log.events)
    read = [ReplicaLine(event=event, read_us=now_us) for event in events if event is not None]
    memory = replace(memory, new_topics=new_topics(view), controllers=controllers_read(view))
    if not (
        found or plain or read or memory.reported or memory.quiet or memory.lines or memory.unseen
    ):
        return memory
    told = _latest([*memory.reported, *found], now_us, REPORTED_KEPT)
    quiet = _latest([*memory.quiet, *plain], now_us, ALONE_KEPT)
    known = Remembered(reported=told, quiet=quiet, new=memory.new_topics)
    unseen = unseen_elections(view, (*memory.lines, *read), known)
    lines = _kept([*memory.lines, *read], [*told, *quiet, *unseen], now_us)
    told, quiet = _settled(known, unseen, lines, now_us)
    is_behind, every = view.snapshot.broker_log.is_behind, (*memory.lines, *read)
    told = [held_against(loss, every, is_behind=is_behind) for loss in told]
    return replace(
        memory,
        reported=tuple(with_transactions(view, with_what_is_back(view, loss)) for loss in told),
        quiet=tuple(quiet),
        lines=tuple(lines),
        unseen=unseen,
    )


def _settled(
    known: Remembered, unseen: Sequence[UnseenElection], lines: Iterable[ReplicaLine], now_us: int
) -> tuple[list[ReportedLoss], list[ReportedLoss]]:
    """Settle by lines; what proves to be a loss is told from now on."""
    by_name: dict[TopicPartition | None, list[ReplicaLine]] = {}
    for line in lines:
        by_name.setdefault(partition_of(line.event), []).append(line)
    ends = [settled(loss, by_name.get(loss.name, ())) for loss in known.reported]
    found = [settled(loss, by_name.get(loss.name, ())) for loss in known.quiet]
    lost = [replace(loss, reported_us=now_us) for loss in found if is_loss(loss)]
    told = [*ends, *lost]
    for one in unseen:
        loss = settled_election(one, by_name.get(one.name, ()), now_us)
        if loss is not None:
            told = with_settled(told, loss)
    gone = {loss.key for loss in told}
    return told, [loss for loss in found if loss.key not in gone]


def _told(proof: Proof, now_us: int) -> ReportedLoss:
    certain, possible = proof.certain, proof.possible
    is_not_known = certain is None and proof.election is Election.NOT_KNOWN
    open_to = proof.epoch_end if possible is None else possible.end
    has_signs = proof.is_contradicted_directly or (proof.was_stalled and possible is not None)
    return ReportedLoss(
        name=proof.name,
        topic_id=proof.before.topic_id,
        leader_before=proof.before.leader,
        leader_epoch_before=proof.before.leader_epoch,
        leader=proof.leader,
        leader_epoch=proof.leader_epoch,
        epoch_end=proof.epoch_end,
        certain_to=None if certain is None else certain.end,
        last_observation_us=proof.before.observed_at_us,
        reported_us=now_us,
        not_known_to=open_to if is_not_known else None,
        contradicted=Contradiction.BY_SIGNS if has_signs else Contradiction.NOTHING,
    )


def _latest(told: Iterable[ReportedLoss], now_us: int, kept: timedelta) -> list[ReportedLoss]:
    """Return each loss once, without the old ones."""
    oldest = now_us - kept // MICROSECOND
    by_key = {loss.key: loss for loss in told if loss.reported_us > oldest}
    return list(by_key.values())[-MAX_REPORTED:]


def _that_may_settle(event: LogEvent) -> ReplicaEvent | None:
    """Return a line that can belong to a loss; a cut that no leader asked for cannot."""
    match event:
        case LogTruncated():
            return None if event.epoch_end is None else event
        case IsrUpdated() | UncleanChange() | LogLoaded() | FollowerStarted() | WatermarkWentBack():
            return event
        case _:
            return None


def _of_isr(lines: Iterable[ReplicaLine]) -> tuple[set[ReplicaEvent], set[ReplicaEvent]]:
    """Return of the lines about who is in sync those with which a leader begins to be alone or ends it,
    and of each leader the last one: an election is held against it.
    """
    turns: set[ReplicaEvent] = set()
    last: dict[tuple[TopicPartition | None, int | str], IsrUpdated] = {}
    for line in sorted(lines, key=_written_us):
        event = line.event
        if not isinstance(event, IsrUpdated):
            continue
        broker = event.origin.broker_id
        key = partition_of(event), event.origin.source if broker is None else broker
        before = last.get(key)
        if (before is not None and _is_alone(before)) != _is_alone(event):
            turns.add(event)
        last[key] = event
    return turns, set(last.values())


def _is_alone(event: IsrUpdated) -> bool:
    return len(event.isr) == 1


def _written_us(line: ReplicaLine) -> int:
    at = line.event.origin.at
    return line.read_us if at is None else microseconds(at)


def _kept(
    lines: Sequence[ReplicaLine], told: Iterable[ReportedLoss | UnseenElection], now_us: int
) -> list[ReplicaLine]:
    """Return each line once, as long as it may be needed: of too many those that most likely are."""
    of_losses = {loss.name for loss in told}
    turns, last = _of_isr(lines)
    by_event = {
        line.event: line
        for line in lines
        if not isinstance(line.event, IsrUpdated) or line.event in turns or line.event in last
        if _is_recent(line, of_losses, turns, now_us)
    }
    kept = list(by_event.values())
    if len(kept) <= MAX_LINES:
        return kept
    cut = {partition_of(line.event) for line in kept if isinstance(line.event, OF_A_CUT)}

    def worth(line: ReplicaLine) -> tuple[bool, bool, bool, int]:
        name = partition_of(line.event)
        has_company = isinstance(line.event, IsrUpdated) and line.event not in turns
        return not has_company, name in of_losses, name in cut, line.read_us

    best = sorted(kept, key=worth, reverse=True)[:MAX_LINES]
    return sorted(best, key=lambda line: line.read_us)


def _is_recent(
    line: ReplicaLine, of_losses: set[TopicPartition], turns: set[ReplicaEvent], now_us: int
) -> bool:
    if partition_of(line.event) in of_losses:
        return line.read_us > now_us - REPORTED_KEPT // MICROSECOND
    kept = ALONE_KEPT if line.event in turns else LINES_KEPT
    return line.read_us > now_us - kept // MICROSECOND
