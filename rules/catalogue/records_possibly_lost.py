"""Records may be gone after a leader change; nobody who is left can tell how many.

Detects:
    Partitions whose leader changed in a way that may have lost committed records, where nothing that
    was seen to be committed is missing: an unclean election, or one after which the ISR may have
    shrunk unseen. And, without any memory: partitions on which a group has committed an offset that
    lies beyond the end of the leader epoch it was read in.

Why it matters:
    When an ISR shrinks to the leader, hundreds of records that were waiting are acknowledged within
    milliseconds. If that leader dies then, they are gone, and no count of what was seen before tells.

Inputs:
    The last look before the change; where its epoch ended (OffsetForLeaderEpoch);
    `unclean.leader.election.enable`; committed leader epochs of groups. Partitions at risk are
    looked at every second, so that `unknown_since` is short. Where brokers' logs are read: what the old
    leader writes when it comes back.

Thresholds:
    None: one such change is enough.

False positives:
    Reason `unseen`: nothing was written in the moment that was not seen. Where the settings of a
    topic may not be read (DESCRIBE_CONFIGS), unclean elections count as allowed. Reason
    `read_beyond_epoch_end`: a topic that was created again under its name while a consumer was
    running; look whether the topic id is the one that you expect.

Runbook:
    `possible_from` to `possible_to` was seen and is gone, and may have been committed; what was
    appended after `unknown_since` is not known. Follow `advice`: the old leader's own log settles
    it. When it comes back, its broker log says how far it had come ("Follower ... starts ... from
    offset N") and where it truncates: the difference is the loss. Where Tidemark reads that log it says
    so, with the reason `ex_leader_returned`: `exact_from` to `exact_to` is all that is gone, and an upper
    bound of what was acknowledged; if committed records are among it, committed_records_lost says so.
    Reason `read_beyond_epoch_end`: at least `at_least_offsets` are gone; the groups are in
    `groups_beyond`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.evidence import EvidenceValue, Scalar
from rules.facts.column import Column, marked
from rules.facts.loss_memory import beyond_epoch_end, is_new
from rules.judgement import Case, Judgement, PartitionSubjects, Reason, decide
from rules.loss.proof import Proof, proofs
from rules.loss.returned import is_open, newly_settled, told_return
from rules.loss.told import SHOWN, told
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="records_possibly_lost",
    subject=SubjectKind.PARTITION,
    kind=Kind.EVENT,
    severity=Severity.CRITICAL,
    for_=timedelta(0),
    summary="Records may be gone after a leader change.",
    milder=(("unseen", Severity.WARNING),),
    sharpening=("ex_leader_returned",),
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_SAYS_SO = "nothing_says_so"
    POSSIBLE = "possible"  # what was seen above the high watermark is gone
    UNSEEN = "unseen"  # nothing that was seen is missing; what was not seen may be
    EX_LEADER_RETURNED = "ex_leader_returned"  # its own log lines tell exactly what is gone
    READ_BEYOND_EPOCH_END = "read_beyond_epoch_end"  # a group has read what is not there


def judge(view: View) -> Judgement:
    """Judge every partition; what is certainly lost is committed_records_lost's to say."""
    rows = len(view.snapshot.partitions)
    open_ended = {
        proof.row: proof for proof in proofs(view) if proof.certain is None and proof.is_open_ended
    }
    possible = [row for row, proof in open_ended.items() if proof.possible is not None]
    beyond = beyond_epoch_end(view.snapshot)
    read = _read_beyond(view, beyond)
    settled = {
        row: loss
        for row, loss in newly_settled(view).items()
        if loss.certain_to is None and (row in open_ended or is_open(view, loss))
    }

    def details(position: int) -> dict[str, EvidenceValue]:
        return {
            **_told(view, open_ended.get(position), read.get(position, []), beyond),
            **(told_return(settled[position]) if position in settled else {}),
        }

    return decide(
        RULE,
        PartitionSubjects(view.snapshot),
        [
            Case(marked(rows, settled), Verdict.BREACH, Why.EX_LEADER_RETURNED),
            Case(marked(rows, possible), Verdict.BREACH, Why.POSSIBLE),
            Case(marked(rows, read), Verdict.BREACH, Why.READ_BEYOND_EPOCH_END),
            Case(marked(rows, open_ended), Verdict.BREACH, Why.UNSEEN),
        ],
        (Verdict.OK, Why.NOTHING_SAYS_SO),
        details=details,
    )


def _read_beyond(view: View, beyond: Column) -> dict[int, list[int]]:
    """Return by row the places of commits that newly lie beyond the end of their own epoch."""
    snapshot = view.snapshot
    known = view.before.losses.beyond_epoch_end if view.before is not None else frozenset()
    places = np.flatnonzero(beyond.valid).astype(np.int64)
    found: dict[int, list[int]] = {}
    for place, new in zip(places.tolist(), is_new(snapshot, places, known), strict=True):
        if new:
            found.setdefault(int(snapshot.commits.row[place]), []).append(place)
    return found


def _told(
    view: View, proof: Proof | None, places: list[int], beyond: Column
) -> dict[str, EvidenceValue]:
    return {
        **({} if proof is None else told(view, proof)),
        **(_told_commits(view, places, beyond) if places else {}),
    }


def _told_commits(view: View, places: list[int], beyond: Column) -> dict[str, EvidenceValue]:
    snapshot, commits = view.snapshot, view.snapshot.commits
    rows: list[dict[str, Scalar]] = [
        {
            "group": snapshot.groups[int(commits.group[place])].group_id,
            "committed_offset": int(commits.committed_offset[place]),
            "committed_leader_epoch": commits.committed_leader_epoch[place],
            "read_beyond": beyond[place],
        }
        for place in sorted(places, key=lambda place: -int(beyond.values[place]))
    ]
    row = int(commits.row[places[0]])
    return {
        "topic_id": snapshot.partitions.topic_id(row),
        "leader": snapshot.partitions.leader[row],
        "leader_epoch": snapshot.offsets.leader_epoch[row],
        "at_least_offsets": max(int(beyond.values[place]) for place in places),
        "groups_beyond": rows[:SHOWN],
        "group_count": len(rows),
    }
