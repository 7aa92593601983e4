"""The log lines of a former leader that returns: they show exactly what a leader change lost.

It logs the end of its log, N ("Follower ... starts ... from offset N", or the log that it loaded), and
then truncates it to the end of its epoch in the new leader's log, C: [C, N) is gone. That is everything
that is gone, and in general an upper bound of what was acknowledged, because its last records may not have
been. If it sets back its own high watermark from H, the records below H were committed.

A truncation alone is no loss: only what a leader change may have lost is settled here, and only where the
truncation matches the end of that epoch in the proof. A clean election keeps everything below any high
watermark, so that one that was set back shows another kind of election. The last ISR is the one that
the controller confirmed, never the one that the leader requested: a leader that was frozen requests an
ISR of itself when it resumes, long after another one was elected. Until the controller confirms it, the
high watermark waits for the replicas that the leader wants to remove.
Source: the brokers' log lines after 14 losses and 8 frozen leaders on Kafka 4.1; KIP-101, KIP-497.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from rules.facts.broker_log import (
    FollowerStarted,
    IsrUpdated,
    LogLoaded,
    LogTruncated,
    WatermarkWentBack,
    partition_of,
)
from rules.facts.last_observation import microseconds
from rules.facts.loss_memory import Contradiction, ReplicaEvent, ReplicaLine, ReportedLoss
from rules.facts.times import CLOCKS_AGREE_US, iso_time_or_none
from rules.facts.unseen_elections import UnseenElection
from rules.loss.evidence_fields import LossEvidence
from rules.loss.loss_evidence import change_evidence
from rules.view import View

E = TypeVar("E", bound=ReplicaEvent)


def settle(loss: ReportedLoss, lines: Iterable[ReplicaLine]) -> ReportedLoss:
    """Return the loss with the evidence of these lines; everything else stays as it was."""
    own = [
        line.event
        for line in lines
        if partition_of(line.event) == loss.name and _may_be_of(loss, line)
    ]
    cut = next(iter(sorted(_cuts(loss, own), key=_timestamp)), None)
    if cut is None or _was_joined(loss, cut, own):
        return loss
    end = _end_before(loss, cut, own)
    is_shorter = end is not None and loss.certain_to is not None and end < loss.certain_to
    return replace(
        loss,
        # A log that lacks observed records is no measure: a machine that failed lost its end.
        former_leader_log_end=loss.former_leader_log_end if end is None or is_shorter else end,
        former_leader_high_watermark=_watermark(loss, cut, own)
        or loss.former_leader_high_watermark,
        alone_since_us=_alone_since(loss, cut, own) or loss.alone_since_us,
    )


def settle_election(
    election: UnseenElection, lines: Iterable[ReplicaLine], now_us: int
) -> ReportedLoss | None:
    """Return the loss that these lines show, of an election whose former leader was never observed.

    None until a former leader has truncated its log. Where several may have led, the longest log counts.
    """
    known_lines = list(lines)
    losses: dict[int | None, ReportedLoss] = {}
    for cut in sorted(_of(LogTruncated, [line.event for line in known_lines]), key=_timestamp):
        if partition_of(cut) == election.name and _is_of_election(election, cut):
            losses.setdefault(
                cut.origin.broker_id, settle(_cut_by(election, cut, now_us), known_lines)
            )
    truncated = [loss for loss in losses.values() if loss.lost_to is not None]
    return max(truncated, key=lambda loss: loss.lost_to or 0, default=None)


def add_settled(losses: Sequence[ReportedLoss], loss: ReportedLoss) -> list[ReportedLoss]:
    """Return the losses with one more, unless the same change has a loss that reaches as far."""
    same = next((other for other in losses if _is_same_change(other, loss)), None)
    if same is None:
        return [*losses, loss]
    if (same.lost_to or 0) >= (loss.lost_to or 0):
        return list(losses)
    longer = replace(loss, reported_us=same.reported_us, certain_to=same.certain_to)
    return [longer if other is same else other for other in losses]


def list_losses(
    view: View, is_news: Callable[[ReportedLoss | None, ReportedLoss], bool]
) -> dict[tuple[int, int], ReportedLoss]:
    """Return by row and leader epoch the losses that are news, given what was remembered before."""
    before = {loss.key: loss for loss in view.losses_before.reported}
    return {
        (row, loss.leader_epoch): loss
        for loss in view.memory.losses.reported
        if (row := row_of(view, loss)) is not None and is_news(before.get(loss.key), loss)
    }


def list_newly_settled(view: View) -> dict[tuple[int, int], ReportedLoss]:
    """Return by row and leader epoch the losses of which this round learned more from log lines."""
    return list_losses(view, _has_learned)


def row_of(view: View, loss: ReportedLoss) -> int | None:
    """Return the present row of the partition of a loss; None if it was deleted, or created again."""
    partitions = view.snapshot.partitions
    row = partitions.index.row(loss.name.topic, loss.name.partition)
    is_same = row is not None and partitions.topic_id(row) == loss.topic_id
    return row if is_same else None


def is_committed(loss: ReportedLoss) -> bool:
    """Whether committed records are proven to be among the lost ones."""
    return loss.committed_to is not None and loss.committed_to > loss.epoch_end


def is_loss(loss: ReportedLoss) -> bool:
    """Whether the lines show that a seemingly clean change was not: the broker truncated its only copy.

    Either it sets back its own high watermark, or it was alone in the ISR after the last observation.
    """
    was_alone = loss.alone_since_us is not None and (
        loss.alone_since_us + CLOCKS_AGREE_US >= (loss.last_observation_us or 0)
    )
    return loss.lost_to is not None and (is_committed(loss) or was_alone)


def is_no_sign(loss: ReportedLoss) -> bool:
    """Whether a truncation is no sign of a loss.

    Every clean change drops the records that were not yet replicated, and there is no evidence that this
    one was not clean, or that the dropped records were acknowledged.
    """
    is_not_known = loss.not_known_to is not None and loss.contradicted == Contradiction.NOTHING
    return is_not_known and not is_loss(loss) and loss.alone_since_us is None


def return_evidence(loss: ReportedLoss) -> LossEvidence:
    """Return the present evidence; None retracts an earlier value."""
    lost_to, committed_to = loss.lost_to or loss.epoch_end, loss.committed_to
    proven = None if committed_to is None else min(committed_to, lost_to) - loss.epoch_end
    return {
        **change_evidence(loss),
        "exact_from": loss.epoch_end,
        "exact_to": lost_to,
        "exact_offsets": lost_to - loss.epoch_end,
        "proven_committed_offsets": proven if proven is not None and proven > 0 else None,
        "former_leader": loss.leader_before,
        "sole_in_sync_since": iso_time_or_none(loss.alone_since_us),
        "last_observation": iso_time_or_none(loss.last_observation_us),
        "unknown_since": None,
        "advice": None,  # its disk does not have the records any more
    }


def _is_of_election(election: UnseenElection, cut: LogTruncated) -> bool:
    """Whether a truncation may be of a replica that led before this election and returned after it."""
    broker, at = cut.origin.broker_id, cut.origin.at
    is_late = None in (at, election.written_us) or (
        at is not None and microseconds(at) + CLOCKS_AGREE_US >= (election.written_us or 0)
    )
    is_older = cut.epoch is not None and cut.epoch < election.leader_epoch
    is_its = broker is None or not election.former_leaders or broker in election.former_leaders
    return (
        is_late
        and is_older
        and is_its
        and cut.epoch_end == cut.offset
        and broker != election.leader
    )


def _cut_by(election: UnseenElection, cut: LogTruncated, now_us: int) -> ReportedLoss:
    """Return the loss of an election, as far as the truncation alone shows it."""
    broker = cut.origin.broker_id
    return ReportedLoss(
        name=election.name,
        topic_id=election.topic_id,
        leader_before=election.former_leader if broker is None else broker,
        leader_epoch_before=election.leader_epoch - 1 if cut.epoch is None else cut.epoch,
        leader=election.leader,
        leader_epoch=election.leader_epoch,
        epoch_end=cut.offset,
        certain_to=None,
        last_observation_us=None,
        reported_us=now_us,
    )


def _is_same_change(change: ReportedLoss, other: ReportedLoss) -> bool:
    return (change.name, change.topic_id, change.epoch_end) == (
        other.name,
        other.topic_id,
        other.epoch_end,
    ) and change.leader_epoch_before < other.leader_epoch <= change.leader_epoch


def _may_be_of(loss: ReportedLoss, line: ReplicaLine) -> bool:
    """Whether a line may belong to the return after this loss, and not to an earlier one.

    The broker led at the last observation: an earlier truncation belongs to an older change.
    """
    if isinstance(line.event, IsrUpdated):
        return True
    if loss.last_observation_us is None:
        return True
    at, earliest = line.event.origin.at, loss.last_observation_us - CLOCKS_AGREE_US
    return line.read_us >= loss.last_observation_us and (at is None or microseconds(at) >= earliest)


def _has_learned(before: ReportedLoss | None, after: ReportedLoss) -> bool:
    if before is None or after.lost_to is None:
        return after.lost_to is not None
    return (before.lost_to, is_committed(before)) != (after.lost_to, is_committed(after))


def _cuts(loss: ReportedLoss, own: Sequence[ReplicaEvent]) -> list[LogTruncated]:
    """Return the truncations of the former leader to the epoch end that proves the loss."""
    return [
        event
        for event in _of(LogTruncated, own)
        if event.epoch_end == loss.epoch_end == event.offset
        and event.epoch is not None
        and event.epoch <= loss.leader_epoch_before
        and event.origin.broker_id in (None, loss.leader_before)
    ]


def _end_before(loss: ReportedLoss, cut: LogTruncated, own: Sequence[ReplicaEvent]) -> int | None:
    """Return the log end before the truncation, from the last earlier line that contains it."""
    started = [
        event
        for event in _of(FollowerStarted, own)
        if event.leader_epoch > loss.leader_epoch_before and _precedes(event, cut)
    ]
    loaded = [event for event in _of(LogLoaded, own) if _precedes(event, cut)]
    ends: Sequence[FollowerStarted | LogLoaded] = started or loaded
    return max(ends, key=_timestamp).log_end_offset if ends else None


def _watermark(loss: ReportedLoss, cut: LogTruncated, own: Sequence[ReplicaEvent]) -> int | None:
    """Return the high watermark before it was set back to the truncation offset."""
    back = [
        event.offset_before
        for event in _of(WatermarkWentBack, own)
        if event.offset == loss.epoch_end < event.offset_before and _is_same_broker(event, cut)
    ]
    return max(back, default=None)


def _alone_since(loss: ReportedLoss, cut: LogTruncated, own: Sequence[ReplicaEvent]) -> int | None:
    """Return since when the broker was alone in the ISR before the truncation, by its own clock."""
    since: int | None = None
    for event in _updates(cut, own):
        is_alone = event.isr == (loss.leader_before,)
        since = (since or _timestamp(event)) if is_alone else None
    return since


def _was_joined(loss: ReportedLoss, cut: LogTruncated, own: Sequence[ReplicaEvent]) -> bool:
    """Whether the last ISR since the last observation contains the successor: it has everything committed."""
    last = next(reversed(_updates(cut, own)), None)
    if last is None or loss.certain_to is not None or loss.leader not in last.isr:
        return False
    return _timestamp(last) + CLOCKS_AGREE_US >= (loss.last_observation_us or 0)


def _updates(cut: LogTruncated, own: Sequence[ReplicaEvent]) -> list[IsrUpdated]:
    """Return the ISR updates that the broker had received before it truncated, in order."""
    updates = [
        update for update in _of(IsrUpdated, own) if update.origin.at and _precedes(update, cut)
    ]
    return sorted(updates, key=_timestamp)


def _of(kind: type[E], events: Sequence[ReplicaEvent]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def _precedes(event: FollowerStarted | LogLoaded | IsrUpdated, cut: LogTruncated) -> bool:
    """Whether a line of the same broker is not later than the truncation; lines without a time are not."""
    if not _is_same_broker(event, cut):
        return False
    at, cut_at = event.origin.at, cut.origin.at
    return at is None or cut_at is None or at <= cut_at


def _is_same_broker(event: ReplicaEvent, cut: LogTruncated) -> bool:
    ids = {event.origin.broker_id, cut.origin.broker_id} - {None}
    is_reported = None not in (event.origin.broker_id, cut.origin.broker_id)
    return len(ids) == 1 if is_reported else event.origin.source == cut.origin.source


def _timestamp(event: ReplicaEvent) -> int:
    """Return the time of a line, for an order in which those without time come first."""
    return 0 if event.origin.at is None else microseconds(event.origin.at)
