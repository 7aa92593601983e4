"""What an old leader's own log lines tell when it comes back: exactly what a leader change lost.

It says up to where its log had reached ("Follower ... starts ... from offset N", or the log that it
loaded), and then cuts it where the new leader says that its epoch ended, at C: [C, N) is gone. That
is all that is gone, and in general an upper bound of what was acknowledged, because its last records
may not have been. If it sets back its own high watermark from H, the records below H were committed.
Nothing is lost by a cut alone: only what a leader change may have lost is settled here, and only
where the new leader's end of that epoch is the one that was told of it. A clean election leaves all
that was below any high watermark, so that one that was set back tells of another kind of election.
Who was in sync at the end is told by what the leader heard of the controller, never by what it asked
for: one that was frozen asks for an ISR of itself when it wakes up, and another one has long been
elected. Until the controller has taken it, its high watermark waits for those whom it wants to leave.
Source: the brokers' log lines after 14 losses and 8 frozen leaders on Kafka 4.1; KIP-101, KIP-497.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from rules.evidence import EvidenceValue
from rules.facts.broker_log import (
    FollowerStarted,
    IsrUpdated,
    LogLoaded,
    LogTruncated,
    WatermarkWentBack,
    partition_of,
)
from rules.facts.clocks import CLOCKS_AGREE_US
from rules.facts.last_observation import microseconds
from rules.facts.loss_memory import Contradiction, ReplicaEvent, ReplicaLine, ReportedLoss
from rules.facts.unseen_elections import UnseenElection
from rules.loss.loss_evidence import timestamp
from rules.view import View

E = TypeVar("E", bound=ReplicaEvent)


def settled(loss: ReportedLoss, lines: Iterable[ReplicaLine]) -> ReportedLoss:
    """Return the loss with what these lines tell of it; what they do not tell stays as it was."""
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
        # A log that lacks what was seen is no measure: a machine that died lost its end.
        former_leader_log_end=loss.former_leader_log_end if end is None or is_shorter else end,
        former_leader_high_watermark=_watermark(loss, cut, own)
        or loss.former_leader_high_watermark,
        alone_since_us=_alone_since(loss, cut, own) or loss.alone_since_us,
    )


def settled_election(
    one: UnseenElection, lines: Iterable[ReplicaLine], now_us: int
) -> ReportedLoss | None:
    """Return what these lines tell of an election under whose old leader nobody had observed.

    None until an old leader has cut its log. Where several may have led, the longest log counts.
    """
    known = list(lines)
    losses: dict[int | None, ReportedLoss] = {}
    for cut in sorted(_of(LogTruncated, [line.event for line in known]), key=_timestamp):
        if partition_of(cut) == one.name and _is_of_election(one, cut):
            losses.setdefault(cut.origin.broker_id, settled(_cut_by(one, cut, now_us), known))
    told = [loss for loss in losses.values() if loss.lost_to is not None]
    return max(told, key=lambda loss: loss.lost_to or 0, default=None)


def with_settled(told: Sequence[ReportedLoss], loss: ReportedLoss) -> list[ReportedLoss]:
    """Return the losses with one more, unless as much is told of the same change."""
    same = next((one for one in told if _is_same_change(one, loss)), None)
    if same is None:
        return [*told, loss]
    if (same.lost_to or 0) >= (loss.lost_to or 0):
        return list(told)
    longer = replace(loss, reported_us=same.reported_us, certain_to=same.certain_to)
    return [longer if one is same else one for one in told]


def newly_settled(view: View) -> dict[tuple[int, int], ReportedLoss]:
    """Return by row and leader epoch the losses of which this round learned more from log lines."""
    before = {} if view.before is None else {one.key: one for one in view.before.losses.reported}
    losses: dict[tuple[int, int], ReportedLoss] = {}
    for loss in view.memory.losses.reported:
        row = row_of(view, loss)
        if row is not None and loss.lost_to is not None and _learned(before.get(loss.key), loss):
            losses[row, loss.leader_epoch] = loss
    return losses


def row_of(view: View, loss: ReportedLoss) -> int | None:
    """Return where the partition of a loss is now; None where it is gone, or created again."""
    partitions = view.snapshot.partitions
    row = partitions.index.row(loss.name.topic, loss.name.partition)
    is_same = row is not None and partitions.topic_id(row) == loss.topic_id
    return row if is_same else None


def is_committed(loss: ReportedLoss) -> bool:
    """Whether it is proven that committed records are among what is gone."""
    return loss.committed_to is not None and loss.committed_to > loss.epoch_end


def is_loss(loss: ReportedLoss) -> bool:
    """Whether the lines show that a change that seemed clean was none: it has cut what it alone had.

    Either it sets back its own high watermark, or it was alone in sync after the last observation.
    """
    was_alone = loss.alone_since_us is not None and (
        loss.alone_since_us + CLOCKS_AGREE_US >= (loss.last_observation_us or 0)
    )
    return loss.lost_to is not None and (is_committed(loss) or was_alone)


def is_no_sign(loss: ReportedLoss) -> bool:
    """Whether a cut says nothing of a loss: every clean change takes what was on its way from the old
    leader, and nothing tells that this one was none, or that what it took was acknowledged.
    """
    is_not_known = loss.not_known_to is not None and loss.contradicted == Contradiction.NOTHING
    return is_not_known and not is_loss(loss) and loss.alone_since_us is None


def return_evidence(loss: ReportedLoss) -> dict[str, EvidenceValue]:
    """Return what is known by now as evidence; None takes back what was told before."""
    lost_to, committed_to = loss.lost_to or loss.epoch_end, loss.committed_to
    proven = None if committed_to is None else min(committed_to, lost_to) - loss.epoch_end
    return {
        "topic_id": loss.topic_id,
        "leader_before": loss.leader_before,
        "leader_epoch_before": loss.leader_epoch_before,
        "leader": loss.leader,
        "leader_epoch": loss.leader_epoch,
        "epoch_end": loss.epoch_end,
        "exact_from": loss.epoch_end,
        "exact_to": lost_to,
        "exact_offsets": lost_to - loss.epoch_end,
        "proven_committed_offsets": proven if proven is not None and proven > 0 else None,
        "former_leader": loss.leader_before,
        "sole_in_sync_since": None
        if loss.alone_since_us is None
        else timestamp(loss.alone_since_us),
        "last_observation": None
        if loss.last_observation_us is None
        else timestamp(loss.last_observation_us),
        "unknown_since": None,
        "advice": None,  # its disk has no more what it had
    }


def _is_of_election(one: UnseenElection, cut: LogTruncated) -> bool:
    """Whether a cut may be of a replica that led before this election, when it came back after it."""
    broker, at = cut.origin.broker_id, cut.origin.at
    is_late = None in (at, one.written_us) or (
        at is not None and microseconds(at) + CLOCKS_AGREE_US >= (one.written_us or 0)
    )
    is_older = cut.epoch is not None and cut.epoch < one.leader_epoch
    is_its = broker is None or not one.former_leaders or broker in one.former_leaders
    return is_late and is_older and is_its and cut.epoch_end == cut.offset and broker != one.leader


def _cut_by(one: UnseenElection, cut: LogTruncated, now_us: int) -> ReportedLoss:
    """Return what an election lost, as far as the cut alone tells it."""
    broker = cut.origin.broker_id
    return ReportedLoss(
        name=one.name,
        topic_id=one.topic_id,
        leader_before=one.former_leader if broker is None else broker,
        leader_epoch_before=one.leader_epoch - 1 if cut.epoch is None else cut.epoch,
        leader=one.leader,
        leader_epoch=one.leader_epoch,
        epoch_end=cut.offset,
        certain_to=None,
        last_observation_us=None,
        reported_us=now_us,
    )


def _is_same_change(one: ReportedLoss, other: ReportedLoss) -> bool:
    return (one.name, one.topic_id, one.epoch_end) == (
        other.name,
        other.topic_id,
        other.epoch_end,
    ) and one.leader_epoch_before < other.leader_epoch <= one.leader_epoch


def _may_be_of(loss: ReportedLoss, line: ReplicaLine) -> bool:
    """Whether a line may be of the return after this loss, and is not of one before it.

    At the last observation it led: whatever it had cut before is of an older change.
    """
    if isinstance(line.event, IsrUpdated):
        return True
    if loss.last_observation_us is None:
        return True
    at, earliest = line.event.origin.at, loss.last_observation_us - CLOCKS_AGREE_US
    return line.read_us >= loss.last_observation_us and (at is None or microseconds(at) >= earliest)


def _learned(before: ReportedLoss | None, after: ReportedLoss) -> bool:
    if before is None:
        return True
    return (before.lost_to, is_committed(before)) != (after.lost_to, is_committed(after))


def _cuts(loss: ReportedLoss, own: Sequence[ReplicaEvent]) -> list[LogTruncated]:
    """Return where the old leader cut its log at the end that the loss was proven by."""
    return [
        event
        for event in _of(LogTruncated, own)
        if event.epoch_end == loss.epoch_end == event.offset
        and event.epoch is not None
        and event.epoch <= loss.leader_epoch_before
        and event.origin.broker_id in (None, loss.leader_before)
    ]


def _end_before(loss: ReportedLoss, cut: LogTruncated, own: Sequence[ReplicaEvent]) -> int | None:
    """Return how far the log had reached when it was cut: by the last line before that tells."""
    started = [
        event
        for event in _of(FollowerStarted, own)
        if event.leader_epoch > loss.leader_epoch_before and _precedes(event, cut)
    ]
    loaded = [event for event in _of(LogLoaded, own) if _precedes(event, cut)]
    ends: Sequence[FollowerStarted | LogLoaded] = started or loaded
    return max(ends, key=_timestamp).log_end_offset if ends else None


def _watermark(loss: ReportedLoss, cut: LogTruncated, own: Sequence[ReplicaEvent]) -> int | None:
    """Return the high watermark from which it was set back to the cut."""
    back = [
        event.offset_before
        for event in _of(WatermarkWentBack, own)
        if event.offset == loss.epoch_end < event.offset_before and _is_same_broker(event, cut)
    ]
    return max(back, default=None)


def _alone_since(loss: ReportedLoss, cut: LogTruncated, own: Sequence[ReplicaEvent]) -> int | None:
    """Return since when it alone was in sync at last before the cut, by its own clock."""
    since: int | None = None
    for event in _updates(cut, own):
        is_alone = event.isr == (loss.leader_before,)
        since = (since or _timestamp(event)) if is_alone else None
    return since


def _was_joined(loss: ReportedLoss, cut: LogTruncated, own: Sequence[ReplicaEvent]) -> bool:
    """Whether its successor was in sync at last, since the last observation: it has all that was committed."""
    last = next(reversed(_updates(cut, own)), None)
    if last is None or loss.certain_to is not None or loss.leader not in last.isr:
        return False
    return _timestamp(last) + CLOCKS_AGREE_US >= (loss.last_observation_us or 0)


def _updates(cut: LogTruncated, own: Sequence[ReplicaEvent]) -> list[IsrUpdated]:
    """Return what the broker that cut its log had heard before of who is in sync, in its order."""
    updates = [one for one in _of(IsrUpdated, own) if one.origin.at and _precedes(one, cut)]
    return sorted(updates, key=_timestamp)


def _of(kind: type[E], events: Sequence[ReplicaEvent]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def _precedes(event: FollowerStarted | LogLoaded | IsrUpdated, cut: LogTruncated) -> bool:
    """Whether a line of the same broker is not later; where no time is told, it is taken to be so."""
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
