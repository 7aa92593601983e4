"""The memory of losses from round to round: those of the last day, and log lines that may settle them.

Lines may be read before the loss is proven: a broker that was only paused is back within a second.
Most of them settle nothing, such as those of every restart, and are kept for minutes. A change that
seems clean and lost nothing that was committed is kept for an hour where unclean elections are allowed:
the ISR may have shrunk and its leader failed between two observations, and then only the leader's log
lines, which may arrive late, show a loss. Elections whose former leader was never observed are known
from log lines alone (`rules.loss.unseen`).
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
from rules.loss.first_epochs import list_first_epochs
from rules.loss.late_lines import apply_late_lines
from rules.loss.new_topics import list_new_topics
from rules.loss.proof import Proof, list_plain_changes, list_proofs
from rules.loss.restored import update_restored
from rules.loss.returned import add_settled, is_loss, settle, settle_election
from rules.loss.unseen import Remembered, list_unseen_elections
from rules.loss.whole_transactions import update_transactions
from rules.view import View

REPORTED_KEPT: Final = timedelta(days=1)  # as long as the finding of an event
MAX_REPORTED: Final = 1000  # a broker that leads more of them at once is resolved in its own log
LINES_KEPT: Final = timedelta(minutes=5)  # of partitions without a loss
ALONE_KEPT: Final = timedelta(hours=1)  # a leader may be alone for long before it fails
MAX_LINES: Final = 5000  # those of losses, then the latest
OF_A_CUT: Final = (LogTruncated, WatermarkWentBack)


def remember_losses(view: View) -> LossMemory:
    """Return the memory with the proofs of this round and the log lines since the previous one."""
    memory, now_us = view.memory.losses, microseconds(view.now)
    possible = [_report(proof, now_us) for proof in list_proofs(view) if proof.is_open_ended]
    plain = [
        _report(proof, now_us) for proof in list_plain_changes(view) if not proof.is_open_ended
    ]
    events = (_select_event(event) for event in view.snapshot.broker_log.events)
    read = [ReplicaLine(event=event, read_us=now_us) for event in events if event is not None]
    memory = replace(memory, new_topics=list_new_topics(view), controllers=controllers_read(view))
    if not (
        possible
        or plain
        or read
        or memory.reported
        or memory.quiet
        or memory.lines
        or memory.unseen
    ):
        first = list_first_epochs(view, memory.new_topics, memory.unseen)
        return replace(memory, first_epochs=first) if first != memory.first_epochs else memory
    reported = _latest([*memory.reported, *possible], now_us, REPORTED_KEPT)
    quiet = _latest([*memory.quiet, *plain], now_us, ALONE_KEPT)
    remembered = Remembered(reported=reported, quiet=quiet, new=memory.new_topics)
    unseen = list_unseen_elections(view, (*memory.lines, *read), remembered)
    lines = _limit_lines([*memory.lines, *read], [*reported, *quiet, *unseen], now_us)
    reported, quiet = _settle(remembered, unseen, lines, now_us)
    is_behind, every = view.snapshot.broker_log.is_behind, (*memory.lines, *read)
    reported = [apply_late_lines(loss, every, is_behind=is_behind) for loss in reported]
    return replace(
        memory,
        reported=tuple(update_transactions(view, update_restored(view, loss)) for loss in reported),
        quiet=tuple(quiet),
        lines=tuple(lines),
        unseen=unseen,
        first_epochs=list_first_epochs(view, memory.new_topics, unseen),
    )


def _settle(
    remembered: Remembered,
    unseen: Sequence[UnseenElection],
    lines: Iterable[ReplicaLine],
    now_us: int,
) -> tuple[list[ReportedLoss], list[ReportedLoss]]:
    """Settle losses by log lines; a quiet change that proves to be a loss is reported from now on."""
    by_name: dict[TopicPartition | None, list[ReplicaLine]] = {}
    for line in lines:
        by_name.setdefault(partition_of(line.event), []).append(line)
    ends = [settle(loss, by_name.get(loss.name, ())) for loss in remembered.reported]
    quiet = [settle(loss, by_name.get(loss.name, ())) for loss in remembered.quiet]
    lost = [replace(loss, reported_us=now_us) for loss in quiet if is_loss(loss)]
    reported = [*ends, *lost]
    for election in unseen:
        loss = settle_election(election, by_name.get(election.name, ()), now_us)
        if loss is not None:
            reported = add_settled(reported, loss)
    gone = {loss.key for loss in reported}
    return reported, [loss for loss in quiet if loss.key not in gone]


def _report(proof: Proof, now_us: int) -> ReportedLoss:
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


def _latest(losses: Iterable[ReportedLoss], now_us: int, kept_for: timedelta) -> list[ReportedLoss]:
    """Return each loss once, without the old ones."""
    oldest = now_us - kept_for // MICROSECOND
    by_key = {loss.key: loss for loss in losses if loss.reported_us > oldest}
    return list(by_key.values())[-MAX_REPORTED:]


def _select_event(event: LogEvent) -> ReplicaEvent | None:
    """Return the event of a line that can belong to a loss; a truncation without a leader cannot."""
    match event:
        case LogTruncated():
            return None if event.epoch_end is None else event
        case IsrUpdated() | UncleanChange() | LogLoaded() | FollowerStarted() | WatermarkWentBack():
            return event
        case _:
            return None


def _of_isr(lines: Iterable[ReplicaLine]) -> tuple[set[ReplicaEvent], set[ReplicaEvent]]:
    """Return the ISR updates that began or ended a sole leader, and the last one of each leader.

    The last one is compared with the election that follows.
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


def _limit_lines(
    lines: Sequence[ReplicaLine], losses: Iterable[ReportedLoss | UnseenElection], now_us: int
) -> list[ReplicaLine]:
    """Return each line once, as long as it may be needed; of too many, the most likely ones."""
    of_losses = {loss.name for loss in losses}
    turns, last = _of_isr(lines)
    by_event = {
        line.event: line
        for line in lines
        if not isinstance(line.event, IsrUpdated) or line.event in turns or line.event in last
        if _is_recent(line, of_losses, turns, now_us)
    }
    recent = list(by_event.values())
    if len(recent) <= MAX_LINES:
        return recent
    cut = {partition_of(line.event) for line in recent if isinstance(line.event, OF_A_CUT)}

    def worth(line: ReplicaLine) -> tuple[bool, bool, bool, int]:
        name = partition_of(line.event)
        is_ordinary = isinstance(line.event, IsrUpdated) and line.event not in turns
        return not is_ordinary, name in of_losses, name in cut, line.read_us

    best = sorted(recent, key=worth, reverse=True)[:MAX_LINES]
    return sorted(best, key=lambda line: line.read_us)


def _is_recent(
    line: ReplicaLine, of_losses: set[TopicPartition], turns: set[ReplicaEvent], now_us: int
) -> bool:
    if partition_of(line.event) in of_losses:
        return line.read_us > now_us - REPORTED_KEPT // MICROSECOND
    kept_for = ALONE_KEPT if line.event in turns else LINES_KEPT
    return line.read_us > now_us - kept_for // MICROSECOND
