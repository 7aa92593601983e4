"""Records may be gone after a leader change; nobody who is left can tell how many.

Detects:
    Partitions whose leader changed in a way that may have lost committed records, where nothing that
    was seen to be committed is missing: an unclean election, or one after which the ISR may have
    shrunk unseen. Where brokers' logs are read, an unclean election that a controller tells of also
    counts if nobody had looked at the partition under its old leader. And, without any memory: partitions on which a group has committed an offset that
    lies beyond the end of the leader epoch it was read in.

Why it matters:
    When an ISR shrinks to the leader, hundreds of records that were waiting are acknowledged within
    milliseconds. If that leader dies then, they are gone, and no count of what was seen before tells.

Inputs:
    The last look before the change; where its epoch ended (OffsetForLeaderEpoch);
    `unclean.leader.election.enable`; committed leader epochs of groups. Partitions at risk are
    looked at every second, so that `unknown_since` is short. Where brokers' logs are read: what
    controllers write of elections, and what the old leader writes when it comes back.

Thresholds:
    None: one such change is enough.

False positives:
    Reason `unseen`: nothing was written in the moment that was not seen, or the new leader had come back
    into sync since the last look, as in a rolling restart of partitions with two replicas. Read the
    controllers' logs: where the active one wrote of no unclean election, there was none. Where the settings of a
    topic may not be read (DESCRIBE_CONFIGS), unclean elections count as allowed. With
    `never_looked_at`: a topic that Tidemark may see only since then, and a controller that starts at that
    moment and writes of an election of long ago once more. Reason
    `read_beyond_epoch_end`: a topic that was created again under its name while a consumer was
    running; look whether the topic id is the one that you expect.

Runbook:
    `possible_from` to `possible_to` was seen and is gone, and may have been committed; what was
    appended after `unknown_since` is not known. Follow `advice`: the old leader's own log settles
    it. When it comes back, its broker log says how far it had come ("Follower ... starts ... from
    offset N") and where it truncates: the difference is the loss. Where Tidemark reads that log it says
    so, with the reason `ex_leader_returned`: `exact_from` to `exact_to` is all that is gone, and an upper
    bound of what was acknowledged. If committed records are among it, committed_records_lost says so,
    and the reason here becomes `proven` (info): it is one loss, and read on there. The same goes for
    what a group had read, once that is proven. With `never_looked_at` nobody had looked at the partition under the leader that died:
    `unknown_since` is then the last moment at which nothing had happened to it.
    Reason `read_beyond_epoch_end`: at least `at_least_offsets` are gone; the groups are in
    `groups_beyond`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

import numpy as np

from rules.evidence import EvidenceValue, Scalar
from rules.facts.column import Column, marked
from rules.facts.loss_memory import ToldLoss, beyond_epoch_end, is_new
from rules.facts.unseen_elections import UnseenElection
from rules.judgement import Case, Judgement, PartitionSubjects, Reason, decide
from rules.loss.proof import Proof, proofs
from rules.loss.proven import newly_proven, proven_before, told_proven
from rules.loss.returned import is_committed, newly_settled, told_return
from rules.loss.told import SHOWN, told
from rules.loss.unseen import newly_unseen, told_election
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="records_possibly_lost",
    subject=SubjectKind.PARTITION,
    kind=Kind.EVENT,
    severity=Severity.CRITICAL,
    for_=timedelta(0),
    summary="Records may be gone after a leader change.",
    milder=(
        ("unseen", Severity.WARNING),
        ("proven", Severity.INFO),
    ),
    sharpening=("ex_leader_returned", "proven"),
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_SAYS_SO = "nothing_says_so"
    POSSIBLE = "possible"  # what was seen above the high watermark is gone
    UNSEEN = "unseen"  # nothing that was seen is missing; what was not seen may be
    EX_LEADER_RETURNED = "ex_leader_returned"  # its own log lines tell exactly what is gone
    PROVEN = "proven"  # committed_records_lost tells of the same records
    READ_BEYOND_EPOCH_END = "read_beyond_epoch_end"  # a group has read what is not there


def judge(view: View) -> Judgement:
    """Judge every partition; what is certainly lost is committed_records_lost's to say."""
    rows = len(view.snapshot.partitions)
    found = _Found.of(view)
    return decide(
        RULE,
        PartitionSubjects(view.snapshot),
        [
            Case(marked(rows, found.settled), Verdict.BREACH, Why.EX_LEADER_RETURNED),
            Case(marked(rows, found.possible), Verdict.BREACH, Why.POSSIBLE),
            Case(marked(rows, found.read), Verdict.BREACH, Why.READ_BEYOND_EPOCH_END),
            Case(marked(rows, found.unseen), Verdict.BREACH, Why.UNSEEN),
            Case(marked(rows, found.proven), Verdict.BREACH, Why.PROVEN),
        ],
        (Verdict.OK, Why.NOTHING_SAYS_SO),
        details=partial(_details, view, found),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    """What a round found out, by row."""

    beyond: Column  # by commit: how far it lies beyond the end of its leader epoch
    open_ended: Mapping[int, Proof]
    elected: Mapping[int, UnseenElection]
    settled: Mapping[int, ToldLoss]
    read: Mapping[int, list[int]]  # places of commits
    read_and_proven: Mapping[int, list[int]]
    proven: Mapping[int, ToldLoss]

    @classmethod
    def of(cls, view: View) -> _Found:
        """Sort by what is told here, and what committed_records_lost tells."""
        learned, beyond = newly_settled(view), beyond_epoch_end(view.snapshot)
        there = {(row, one.leader_epoch) for row, one in learned.items() if is_committed(one)}
        read, proven = _read_beyond(view, beyond), newly_proven(view)
        covered = {
            row: loss for row, places in read.items() for loss in _all_proven(view, places, beyond)
        }
        return cls(
            beyond=beyond,
            open_ended={
                proof.row: proof
                for proof in proofs(view)
                if proof.certain is None
                and proof.is_open_ended
                and (proof.row, proof.leader_epoch) not in there
            },
            elected={
                row: one
                for row, one in newly_unseen(view).items()
                if (row, one.leader_epoch) not in there
            },
            settled={row: loss for row, loss in learned.items() if not is_committed(loss)},
            read={row: places for row, places in read.items() if row not in covered},
            read_and_proven={row: read[row] for row in covered},
            proven={**covered, **proven},
        )

    @property
    def possible(self) -> list[int]:
        """Return where what was seen above the high watermark is gone."""
        return [row for row, proof in self.open_ended.items() if proof.possible is not None]

    @property
    def unseen(self) -> set[int]:
        """Return where nothing that was seen is missing."""
        return {*self.open_ended, *self.elected}


def _details(view: View, found: _Found, row: int) -> dict[str, EvidenceValue]:
    """Return what is told of a partition, by the same order of reasons as the cases."""
    places = found.read.get(row) or found.read_and_proven.get(row, [])
    is_told = row in found.settled or row in found.unseen or row in found.read
    return {
        **_told(view, found.open_ended.get(row), places, found.beyond),
        **(told_election(view, found.elected[row]) if row in found.elected else {}),
        **(told_return(found.settled[row]) if row in found.settled else {}),
        **(told_proven(found.proven[row]) if row in found.proven and not is_told else {}),
    }


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


def _all_proven(view: View, places: list[int], beyond: Column) -> Iterator[ToldLoss]:
    """Give the proven loss of what groups had read, if that is one for all of their commits."""
    commits = view.snapshot.commits
    losses = [
        proven_before(
            view,
            int(commits.row[place]),
            epoch=commits.committed_leader_epoch[place],
            end=int(commits.committed_offset[place]) - int(beyond.values[place]),
        )
        for place in places
    ]
    if losses[0] is not None and all(one is losses[0] for one in losses):
        yield losses[0]


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
