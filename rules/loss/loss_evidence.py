"""The evidence of a proven loss: which offsets, since when, which groups had read them, what to do now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from rules.facts.groups import GroupType
from rules.facts.identity import TopicPartition
from rules.facts.loss_memory import ReportedLoss
from rules.facts.memory import Memory
from rules.facts.snapshot import Snapshot
from rules.facts.times import iso_time
from rules.facts.transactions import IdVisibility
from rules.loss.election import Election
from rules.loss.evidence_fields import (
    GroupBeyond,
    GroupGoneOn,
    LossEvidence,
    LossTransaction,
)
from rules.loss.proof import Proof, Span
from rules.view import View

SHOWN: Final = 20  # groups, transactional ids
KEEP_IT_DOWN: Final = (
    "The disk of broker {leader} holds the only copy of the missing records, and the broker "
    "truncates its log as soon as it follows the new leader: keep it down, copy the folder {name} of its log "
    "directory and the file replication-offset-checkpoint beside it, and let tidemark log diff write out of the "
    "copy what the new leader lacks."
)

COPY_IT_FIRST: Final = (
    "It is not proven whether records are missing. Until it is, copy the folder {name} of the log "
    "directory of broker {leader} before the broker is started again: it truncates its log as soon "
    "as it follows the new leader, and records that only it may have are gone then. tidemark log diff "
    "shows whether the copy has any."
)

COPY_THEM_FIRST: Final = (
    "It is not proven whether records are missing. Until it is, copy the folder {name} of the log "
    "directories of the brokers {leaders} before they are started again: they truncate their logs as "
    "soon as they follow the new leader, and records that only one of them may have are gone then. tidemark "
    "log diff shows whether a copy has any."
)


def loss_evidence(view: View, proof: Proof) -> LossEvidence:
    """Return the evidence of one proof."""
    before = proof.before
    certain_from, certain_to, certain_offsets = _range(proof.certain)
    possible_from, possible_to, possible_offsets = _range(proof.possible)
    uncommitted_from, uncommitted_to, uncommitted_offsets = _range(proof.uncommitted)
    return {
        "topic_id": before.topic_id,
        "election": str(_election(proof)),
        "leader_before": before.leader,
        "leader_epoch_before": before.leader_epoch,
        "leader": proof.leader,
        "leader_epoch": proof.leader_epoch,
        "epoch_end": proof.epoch_end,
        "certain_from": certain_from,
        "certain_to": certain_to,
        "certain_offsets": certain_offsets,
        "visible_to_read_committed": _visible(view, proof),
        "possible_from": possible_from,
        "possible_to": possible_to,
        "possible_offsets": possible_offsets,
        "uncommitted_from": uncommitted_from,
        "uncommitted_to": uncommitted_to,
        "uncommitted_offsets": uncommitted_offsets,
        "last_observation": iso_time(before.observed_at_us),
        "unknown_since": iso_time(before.observed_at_us) if proof.is_open_ended else None,
        "former_leader_end": proof.former_leader_end,
        **_groups(view.snapshot, proof),
        **_open_transactions(view, proof),
        "advice": _advice(view.snapshot, proof),
    }


def _range(span: Span | None) -> tuple[int | None, int | None, int]:
    """Return start, end and number of offsets."""
    return (None, None, 0) if span is None else (span.start, span.end, len(span))


def _visible(view: View, proof: Proof) -> int:
    """Return how many of the certain offsets read_committed consumers could have read.

    The last stable offset is read some time before the high watermark: without a transaction the two are
    equal, even if they were read at different times.
    """
    if proof.certain is not None and not _may_have_transactions(view, proof):
        return len(proof.certain)
    return len(proof.certain_visible or ())


def _may_have_transactions(view: View, proof: Proof) -> bool:
    """Whether a transaction may have been open on the partition at the last observation."""
    transactions, before = view.snapshot.transactions, view.before
    if not transactions.was_ever_used:
        return False
    if (
        before is None
        or not transactions.is_complete
        or transactions.visibility is IdVisibility.UNPROVEN
    ):
        return True
    seen = (remembered.transaction for remembered in before.transactions.open.values())
    entries = (*seen, *transactions.known.values())
    if any(proof.name in (entry.partitions or ()) for entry in entries):
        return True
    return proof.name in before.transactions.committed or _was_unchanged(before, proof)


def _was_unchanged(before: Memory, proof: Proof) -> bool:
    """Whether the last stable offset was unchanged for longer than one observation takes."""
    row = before.partitions.index.row(proof.name.topic, proof.name.partition)
    if row is None:
        return True
    since = before.last_stable_offset.since_us[row]
    is_same = before.last_stable_offset.values[row] == proof.before.last_stable_offset
    return since is not None and is_same and since < proof.before.observed_at_us


def _groups(snapshot: Snapshot, proof: Proof) -> LossEvidence:
    """Return the groups whose commit lies beyond the end of the epoch, those that had read most first.

    A group that has committed in the new leader's epoch continues with the new log, and is listed apart.
    """
    commits, end = snapshot.commits, proof.epoch_end
    at = np.flatnonzero((commits.row == proof.row) & (commits.committed_offset > end))
    log_end = snapshot.offsets.log_end_offset[proof.row]
    rows: list[GroupBeyond] = []
    gone_on: list[GroupGoneOn] = []
    for place in at.tolist():
        group = snapshot.groups[int(commits.group[place])]
        if group.group_type is GroupType.SHARE:
            continue
        committed = int(commits.committed_offset[place])
        epoch = commits.committed_leader_epoch[place]
        if epoch is not None and epoch >= proof.leader_epoch:
            gone_on.append({"group": group.group_id, "committed_offset": committed})
            continue
        # The new leader has written other records at the same offsets since.
        skips = None if log_end is None else max(0, min(committed, log_end) - end)
        rows.append(
            {
                "group": group.group_id,
                "committed_offset": committed,
                "read_beyond": committed - end,
                "may_skip_offsets": skips,
            }
        )
    rows.sort(key=lambda row: (-row["read_beyond"], row["group"]))
    gone_on.sort(key=lambda row: row["group"])
    return {
        "groups_beyond": rows[:SHOWN],
        "group_count": len(rows),
        "groups_gone_on": gone_on[:SHOWN],
    }


def _open_transactions(view: View, proof: Proof) -> LossEvidence:
    """Return the transactional ids with an open transaction on the partition at the last observation."""
    if view.before is None:
        return {"open_transactions": []}
    names = [
        name
        for name, seen in view.before.transactions.open.items()
        if proof.name in (seen.transaction.partitions or ())
    ]
    rows: list[LossTransaction] = [{"transactional_id": name} for name in sorted(names)[:SHOWN]]
    return {"open_transactions": rows}


def _election(proof: Proof) -> Election:
    """Return the kind of election; a clean one cannot have lost committed records."""
    is_contradicted = proof.certain is not None and proof.election is Election.CLEAN
    return Election.NOT_KNOWN if is_contradicted else proof.election


def _advice(snapshot: Snapshot, proof: Proof) -> str | None:
    """Return what to do at once where the old leader may have the only copy of records."""
    if proof.before.leader is None or proof.leader == proof.before.leader:
        return None
    is_proven = proof.certain is not None or proof.election is Election.UNCLEAN
    if not is_proven or proof.before.leader in (snapshot.partitions.isr[proof.row] or ()):
        return None
    if proof.certain is None:
        return copy_first([proof.before.leader], proof.name)
    return KEEP_IT_DOWN.format(leader=proof.before.leader, name=proof.name)


def copy_first(brokers: Sequence[int], name: TopicPartition) -> str:
    """Return what to do with brokers of which one may have the only copy of records."""
    if len(brokers) == 1:
        return COPY_IT_FIRST.format(leader=brokers[0], name=name)
    return COPY_THEM_FIRST.format(leaders=", ".join(map(str, brokers)), name=name)


def change_evidence(loss: ReportedLoss, election: Election | None = None) -> LossEvidence:
    """Return the leader change of a loss, with the kind of its election where that is given."""
    return {
        "topic_id": loss.topic_id,
        **({} if election is None else {"election": str(election)}),
        "leader_before": loss.leader_before,
        "leader_epoch_before": loss.leader_epoch_before,
        "leader": loss.leader,
        "leader_epoch": loss.leader_epoch,
        "epoch_end": loss.epoch_end,
    }
