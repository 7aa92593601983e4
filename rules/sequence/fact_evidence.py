"""Facts for and against a verdict, as sentences with their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from rules.facts.episodes import ChangeKind, Episode, LeaderChange
from rules.facts.rejections import LogEntry, Rejection
from rules.facts.sequence_verdicts import CONTINUITY, Arrival, SequenceClass, SequenceReason
from rules.facts.times import iso_time
from rules.sequence.arrivals import HARMLESS, arrival_evidence
from rules.sequence.evidence_fields import ChangeEvidence, FactEvidence, SequenceEvidence
from rules.sequence.log_entries import last_of
from rules.sequence.numbers import (
    BEFORE_IN_FLIGHT,
    REPEATS,
    gap_of,
    is_start,
    records_per_batch,
    times_rejected,
    unresolved_with,
)
from rules.sequence.proofs import is_filled

Fact: TypeAlias = tuple[str, SequenceClass]  # a sentence, and the class that it speaks for
CLIENT_FAILURE: Final = SequenceClass.CLIENT_FAILURE


def for_and_against(episode: Episode, rejection: Rejection) -> SequenceEvidence:
    """Return the facts for and against the verdict on an episode."""
    class_ = episode.verdict.class_
    facts = [*_numbers(episode, rejection), *_log(episode, rejection), *_leaders(episode)]
    pro: list[FactEvidence] = []
    contra: list[FactEvidence] = []
    for fact, speaks_for in facts:
        (pro if _agrees(speaks_for, class_) else contra).append({"fact": fact})
    return {"evidence_for": pro, "evidence_against": contra}


def resolution_evidence(episode: Episode, rejection: Rejection) -> SequenceEvidence:
    """Return the log entries around the rejected batch, and the leader's producer state."""
    before, after, observation = rejection.before, rejection.after, episode.last_state
    state = None if observation is None else observation.state
    return {
        "leader_epoch_first_seen": episode.leader_epoch,
        "appended_offset": None if before is None else before.last_offset,
        "appended_leader_epoch": None if before is None else before.leader_epoch,
        "next_offset": None if after is None else after.base_offset,
        "next_sequence": None if after is None else after.base_sequence,
        "next_producer_epoch": None if after is None else after.producer_epoch,
        "state_known": None if observation is None else state is not None,
        "state_producer_epoch": None if state is None else state.producer_epoch,
        "state_last_sequence": None if state is None else state.last_sequence,
        "leader_changes": [_change_evidence(change) for change in episode.changes],
    }


def _agrees(speaks_for: SequenceClass, class_: SequenceClass) -> bool:
    return speaks_for is class_ or {speaks_for, class_} <= HARMLESS


def _numbers(episode: Episode, rejection: Rejection) -> Iterator[Fact]:
    gap, beside = gap_of(rejection), unresolved_with(rejection, episode.rejections)
    if gap is None:
        yield (
            (
                f"sequence {rejection.incoming_sequence} is not above the last one, "
                f"{rejection.current_sequence}"
            ),
            SequenceClass.STALE_RETRY,
        )
        return
    in_flight = BEFORE_IN_FLIGHT * records_per_batch(beside, episode.largest_batch)
    class_ = SequenceClass.REORDERING if gap <= in_flight else SequenceClass.LOSS
    missing = "1 record is" if gap == 1 else f"{gap} records are"
    yield f"{missing} missing, and up to {in_flight} may be in flight before it", class_
    if is_start(rejection):
        yield "the broker had nothing of this transaction yet", SequenceClass.REORDERING
    same = (other for other in beside if other.incoming_sequence == rejection.incoming_sequence)
    times = times_rejected(same)
    if times >= REPEATS:
        yield f"the same batch was rejected {times} times", SequenceClass.LOSS


def _log(episode: Episode, rejection: Rejection) -> Iterator[Fact]:
    last, observation, gap = last_of(rejection), episode.last_state, gap_of(rejection)
    if rejection.proof is SequenceReason.FILLED and is_filled(rejection, episode):
        where = "" if rejection.after is None else f" at offset {rejection.after.base_offset}"
        yield f"the sequence that was expected came{where}", SequenceClass.REORDERING
    if rejection.proof in CONTINUITY:
        yield (
            f"leader epoch {rejection.proof_leader_epoch} lasted from the last accepted batch on",
            SequenceClass.REORDERING,
        )
    elif last is not None and gap is not None and _has_changed(last, episode, rejection):
        yield (
            (
                f"the last accepted batch, up to offset {last.last_offset}, is of leader epoch "
                f"{last.leader_epoch}, and the leader has changed since"
            ),
            SequenceClass.LOSS,
        )
    if (
        arrival_evidence(episode) is Arrival.NOT_ARRIVED
        and rejection.arrival is Arrival.NOT_ARRIVED
    ):
        yield "nothing of it came, up to the end of the log two minutes later", CLIENT_FAILURE
    if observation is not None and observation.state is None:
        yield "the leader knows nothing of the producer", SequenceClass.PRODUCER_STATE_LOST


def _has_changed(last: LogEntry, episode: Episode, rejection: Rejection) -> bool:
    """Whether a later leader epoch was seen than that of the last accepted batch."""
    observation = None if episode.last_state is None else episode.last_state.leader_epoch
    seen = [episode.leader_epoch, rejection.proof_leader_epoch, observation]
    seen += [change.leader_epoch for change in episode.changes]
    return any(epoch is not None and epoch > last.leader_epoch for epoch in seen)


def _leaders(episode: Episode) -> Iterator[Fact]:
    reason = episode.verdict.reason
    if reason is SequenceReason.RECORD_ERROR:
        yield (
            "exactly one producer of the topic had records fail at that time",
            CLIENT_FAILURE,
        )
    if reason is SequenceReason.CLEAN_CHANGES:
        yield (
            "every leader change since the last accepted batch was clean",
            CLIENT_FAILURE,
        )
    for change in episode.changes:
        yield _change_fact(change), SequenceClass.LOSS


def _change_fact(change: LeaderChange) -> str:
    head = f"broker {change.leader} became leader in epoch {change.leader_epoch}"
    match change.kind:
        case ChangeKind.LOST:
            return f"{head} without the committed offsets {change.lost_from} to before {change.lost_to}"
        case ChangeKind.UNCLEAN:
            return f"{head}, and was not in sync"
        case ChangeKind.NOT_KNOWN:
            return f"{head}, and too much happened unseen to say how"


def _change_evidence(change: LeaderChange) -> ChangeEvidence:
    return {
        "kind": str(change.kind),
        "leader_epoch": change.leader_epoch,
        "leader": change.leader,
        "leader_before": change.leader_before,
        "epoch_end": change.epoch_end,
        "lost_from": change.lost_from,
        "lost_to": change.lost_to,
        "seen_at": iso_time(change.seen_us),
    }
