"""What a suspicion means, in words: what was counted, what is known of it, and what would settle it."""

from __future__ import annotations

from typing import Final

from rules.facts.suspicions import (
    BreakKind,
    PartitionState,
    SequenceBreak,
    Suspicion,
    SuspicionOutcome,
    SuspicionSource,
)
from rules.facts.times import time_of

NAMED: Final = 3  # partitions in a sentence

_KNOWN: Final = {
    SuspicionOutcome.AWAITING_LINES: "The lines of the broker's log are awaited.",
    SuspicionOutcome.BY_LINES: "The broker's log has the rejected batches: they are sequence events.",
    SuspicionOutcome.LOSS_REPORTED: "A leader change lost committed records of {names}: these may be "
    "what the rejected batches came after. `tidemark loss ls` has the offsets.",
    SuspicionOutcome.LEADER_CHANGED: "It is not known whether acknowledged records are missing: the "
    "leader of {names} changed, and the change was unclean, or it is not known whether it was.",
    SuspicionOutcome.CLEAN_NOT_PROVEN: "It is not known whether acknowledged records are missing: the "
    "leader of {names} changed before Tidemark observed it, or while unclean elections were allowed. "
    "No change of it is known to have been unclean.",
    SuspicionOutcome.NOT_OBSERVED: "It is not known whether acknowledged records are missing: "
    "{names} could not be observed.",
    SuspicionOutcome.BROKER_NOT_KNOWN: "It is not known whether acknowledged records are missing: the "
    "address is no broker's, so that it may be any partition.",
}
_NEEDED: Final = {
    SuspicionOutcome.LEADER_CHANGED: "The broker's log lines of the rejected batches, or the log of the "
    "leader before, when it is back (docs/broker-log.md).",
    SuspicionOutcome.CLEAN_NOT_PROVEN: "The broker's log lines of the rejected batches "
    "(docs/broker-log.md). A leader that has not changed for eight days settles later ones.",
    SuspicionOutcome.NOT_OBSERVED: "An answer of the partitions' leaders, or the broker's log lines of "
    "the rejected batches (docs/broker-log.md).",
    SuspicionOutcome.BROKER_NOT_KNOWN: "The broker of that address: a label broker_id of the series, or "
    "the setting scrapes.broker_ids.",
    SuspicionOutcome.LOSS_REPORTED: "The broker's log lines of the rejected batches, which name the "
    "producer and how many records are missing (docs/broker-log.md).",
}
_CHECK: Final = {
    SuspicionOutcome.NOTHING_MISSING: "Nothing, unless producers report records that failed.",
    SuspicionOutcome.BY_LINES: "tidemark sequence ls",
    SuspicionOutcome.LOSS_REPORTED: "tidemark loss ls",
}
_ELSE: Final = (
    "Read the log of the broker at that time for OutOfOrderSequenceException, and give it to "
    "`tidemark sequence explain`. Ask the owners of the producers whether records failed."
)


def explain(suspicion: Suspicion) -> str:
    """Return what was counted and what is known of it."""
    if suspicion.outcome is SuspicionOutcome.NOTHING_MISSING:
        return f"{_counted(suspicion)} {_nothing_missing(suspicion)}{_breaks(suspicion)}"
    names = _names(suspicion)
    outcome = _KNOWN[suspicion.outcome].format(names=names)
    return f"{_counted(suspicion)} {outcome}{_breaks(suspicion)}"


def needed_evidence(suspicion: Suspicion) -> str | None:
    """Return what would settle a suspicion, None where it is settled."""
    return None if suspicion.is_settled else _NEEDED.get(suspicion.outcome)


def check(suspicion: Suspicion) -> str:
    """Return what to do."""
    return _CHECK.get(suspicion.outcome, _ELSE)


def describe_break(sequence_break: SequenceBreak) -> str:
    """Return one place at which a producer's sequence does not go on."""
    before = "nothing of it is in the log before"
    if sequence_break.last_sequence is not None:
        before = (
            f"last sequence {sequence_break.last_sequence} in producer epoch {sequence_break.last_epoch} was appended in "
            f"leader epoch {sequence_break.last_leader_epoch}"
        )
    after = {
        BreakKind.SILENT: "nothing came since the leader changed",
        BreakKind.NEW_EPOCH: f"it began again at sequence {sequence_break.next_sequence} in producer epoch "
        f"{sequence_break.next_epoch}, at offset {sequence_break.next_offset}",
        BreakKind.JUMP: f"it goes on at sequence {sequence_break.next_sequence}, at offset {sequence_break.next_offset}",
        BreakKind.STARTS_LATE: f"it begins at sequence {sequence_break.next_sequence}, at offset "
        f"{sequence_break.next_offset}",
    }[sequence_break.kind]
    where = " (over a leader change)" if sequence_break.is_over_change else " (in one leader epoch)"
    where = "" if sequence_break.kind is BreakKind.SILENT else where
    return f"producer {sequence_break.producer_id}: {before}; {after}{where}"


def _counted(suspicion: Suspicion) -> str:
    between = f"between {_time(suspicion.since_us)} and {_time(suspicion.until_us)} UTC"
    if suspicion.source is SuspicionSource.CLIENT:
        what = "failed" if suspicion.error == "record-error" else "were sent again"
        return f"{suspicion.count:,} records of topic {suspicion.topic} {what} {between}."
    times = "one batch" if suspicion.count == 1 else f"{suspicion.count:,} batches"
    return f"{_who(suspicion)} rejected {times} with {suspicion.error} {between}."


def _who(suspicion: Suspicion) -> str:
    if not suspicion.brokers:
        return f"The process at {suspicion.address}"
    if len(suspicion.brokers) == 1:
        return f"Broker {suspicion.brokers[0]}"
    return f"One of the brokers {', '.join(map(str, suspicion.brokers))} ({suspicion.address})"


def _nothing_missing(suspicion: Suspicion) -> str:
    count = suspicion.partition_count
    of = "the partition" if count == 1 else f"each of the {count:,} partitions"
    if suspicion.source is SuspicionSource.CLIENT:
        return f"No acknowledged record is missing: {of} of the topic has all of them."
    led = "that it led" if suspicion.brokers else "of the cluster"
    return (
        f"No acknowledged record is missing, whichever partition it was: {of} {led} had no leader "
        "change that could have lost any. It was a reordering, a retry, or what a client gave up."
    )


def _names(suspicion: Suspicion) -> str:
    state = {
        SuspicionOutcome.LOSS_REPORTED: PartitionState.LOST,
        SuspicionOutcome.LEADER_CHANGED: PartitionState.CHANGED,
        SuspicionOutcome.CLEAN_NOT_PROVEN: PartitionState.CLEAN_NOT_PROVEN,
        SuspicionOutcome.NOT_OBSERVED: PartitionState.NOT_OBSERVED,
    }.get(suspicion.outcome)
    names = [str(each.name) for each in suspicion.partitions if each.state is state]
    if not names:
        return "a partition"
    more = suspicion.open_count - min(len(names), NAMED)
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def _breaks(suspicion: Suspicion) -> str:
    """Return what the logs show of producers that do not go on, those over a leader change first."""
    breaks = [(each.name, at) for each in suspicion.partitions for at in each.breaks]
    breaks.sort(key=lambda pair: not pair[1].is_over_change)
    sentences = (f" On {name}, {describe_break(at)}." for name, at in breaks[:NAMED])
    return "".join(sentences)


def _time(timestamp_us: int) -> str:
    return f"{time_of(timestamp_us):%Y-%m-%d %H:%M:%S}"
