"""Records may be lost after a leader change; how many can no longer be observed.

Detects:
    Partitions whose leader changed in a way that may have lost committed records, although no
    record that was observed as committed is missing: an unclean election, or an election before
    which the ISR may have shrunk unobserved. Where brokers' logs are read, an unclean election that
    a controller logs also counts if the partition was never observed under its former leader. Where
    no controller's log is read, a new partition that is first observed in a leader epoch above 0
    counts too: elections came before, and nobody observed them.

    Without any earlier observation: partitions on which a group has committed an offset beyond the
    end of the leader epoch in which it was read.

Why it matters:
    When an ISR shrinks to the leader alone, hundreds of waiting records are acknowledged within
    milliseconds. If that leader then fails, they are lost, and no earlier observation contains
    them.

Inputs:
    The last observation before the change; the end of its leader epoch (OffsetForLeaderEpoch);
    `unclean.leader.election.enable`; the committed leader epochs of groups. Partitions at risk are
    observed every second, so that `unknown_since` is recent. Where brokers' logs are read: what
    controllers log about elections, and what the former leader logs when it returns. Where they are
    not: the controllers' counters of unclean elections, from their metrics.

Thresholds:
    None: one such change is enough.

False positives:
    - `unseen`: a controller, the former leader, or metadata indicates an unclean election, but
      nothing was written while the partition was not observed. Where the topic's settings cannot be
      read (DESCRIBE_CONFIGS), unclean elections count as allowed.
    - `never_observed`: a topic that became visible to Tidemark only then, and a controller that
      starts at that time and logs an old election again.
    - `never_observed` without a log line: the counted unclean election
      (`unclean_elections_counted`) was another partition's.
    - `read_beyond_epoch_end`: a topic that was deleted and created again while a consumer was
      running. Check whether the topic id is the one you expect.

Runbook:
    Follow `advice`, and write nothing again as long as nothing is proven: the log of the former
    leader decides. When that broker returns, its log says to which offset it had written ("Follower
    ... starts ... from offset N") and to which it truncates: what lies
    between is gone, and its last records may never have been acknowledged.
    `possible_from` to `possible_to` was observed, is gone, and may have been committed. Records
    appended after `unknown_since` are not known.

    - `possible`: records that were observed above the high watermark are gone.
    - `unseen` (warning): logs or metadata indicate an unclean election, and nothing that was
      observed is missing. With `never_observed`, the partition was not observed under the leader
      that failed: `unknown_since` is the last time at which nothing had happened to it.
    - `former_leader_returned`: Tidemark has read the former leader's log. `exact_from` to
      `exact_to` is everything that is gone, and an upper bound of what was acknowledged.
    - `proven` (info): committed records are among the lost ones, or among those that a group had
      read. It is the same loss: continue with the finding committed_records_lost.
    - `election_not_known` (info): nothing that was observed as committed is missing, and whether
      the new leader was in sync was not observed, as in a rolling restart of partitions with two
      replicas. Read the controllers' logs: if the active one logged no unclean election, there was
      none. With `never_observed`, the partition is new, and had elections before its first
      observation.
    - `read_beyond_epoch_end`: at least `at_least_offsets` offsets are lost; `groups_beyond` lists
      the groups that had read them.
    - `not_determinable` (info): the topic was deleted before its new leader could be queried.
      Whether anything was lost before cannot be determined any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from rules.evidence import generic
from rules.facts.column import Column
from rules.facts.first_epochs import FirstEpoch
from rules.facts.loss_memory import ReportedLoss, beyond_epoch_end, is_new
from rules.facts.unseen_elections import UnseenElection
from rules.judgement import Event, Judgement, PartitionSubjects, Reason, decide
from rules.loss.election import Election
from rules.loss.events import EventKey, events_of, labels_of
from rules.loss.evidence_fields import GroupBeyond, LossEvidence
from rules.loss.first_epochs import first_epoch_evidence, list_newly_first
from rules.loss.incidents import IncidentIndex
from rules.loss.late_lines import has_tail, late_evidence, list_newly_contradicted
from rules.loss.loss_evidence import SHOWN, loss_evidence
from rules.loss.proof import Proof, list_proofs
from rules.loss.proven import list_newly_proven, loss_read_in, proven_evidence
from rules.loss.returned import is_committed, is_no_sign, list_newly_settled, return_evidence
from rules.loss.unseen import election_evidence, list_newly_unseen
from rules.loss.vanished import list_vanished
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="records_possibly_lost",
    subject=SubjectKind.PARTITION,
    kind=Kind.EVENT,
    severity=Severity.CRITICAL,
    summary="Records may be gone after a leader change.",
    milder=(
        ("unseen", Severity.WARNING),
        ("proven", Severity.INFO),
        ("election_not_known", Severity.INFO),
        ("not_determinable", Severity.INFO),
    ),
    sharpening=("former_leader_returned", "proven"),
    names_events=True,
    outlives_subject=True,
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_SAYS_SO = "nothing_says_so"
    POSSIBLE = "possible"  # what was seen above the high watermark is gone
    UNSEEN = "unseen"  # logs or metadata indicate an unclean election; nothing observed is missing
    # Nothing committed is missing, nothing indicates an unclean election
    ELECTION_NOT_KNOWN = "election_not_known"
    FORMER_LEADER_RETURNED = "former_leader_returned"  # its log lines give the exact range
    PROVEN = "proven"  # committed_records_lost reports the same records
    READ_BEYOND_EPOCH_END = "read_beyond_epoch_end"  # a group has read records that are gone
    NOT_DETERMINABLE = "not_determinable"  # the topic was deleted before its leader was queried


def judge(view: View) -> Judgement:
    """Judge every partition; certain losses are findings of committed_records_lost."""
    losses = _Losses.of(view)
    reasons: dict[EventKey, Reason] = {
        **dict.fromkeys(losses.proven, Why.PROVEN),
        **dict.fromkeys([*losses.open_ended, *losses.cut, *losses.first], Why.ELECTION_NOT_KNOWN),
        **dict.fromkeys(losses.unseen, Why.UNSEEN),
        **dict.fromkeys(losses.read, Why.READ_BEYOND_EPOCH_END),
        **dict.fromkeys(losses.possible, Why.POSSIBLE),
        **dict.fromkeys(losses.settled, Why.FORMER_LEADER_RETURNED),
    }
    return decide(
        RULE,
        PartitionSubjects(view.snapshot),
        [],
        (Verdict.OK, Why.NOTHING_SAYS_SO),
        events=[
            *events_of(view, reasons, partial(_evidence, view, losses)),
            *_vanished_events(view),
        ],
    )


def _vanished_events(view: View) -> Iterator[Event]:
    """Yield the losses that cannot be determined any more; their subjects are gone."""
    partitions = list_vanished(view)
    incidents = IncidentIndex.of(view.memory.losses) if partitions else None
    for partition in partitions:
        incident = None if incidents is None else incidents.incident(partition.name)
        yield Event(
            position=None,
            labels=labels_of(view.snapshot.cluster, partition.name),
            reason=Why.NOT_DETERMINABLE,
            evidence=generic(LossEvidence(incident=incident) | partition.to_evidence()),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Losses:
    """What a round learned of possible losses, by event."""

    beyond: Column  # by commit: how far it lies beyond the end of its leader epoch
    open_ended: Mapping[EventKey, Proof]
    elected: Mapping[EventKey, UnseenElection]
    first: Mapping[EventKey, FirstEpoch]  # of new partitions, without a line
    late: Mapping[EventKey, ReportedLoss]  # reported before as `election_not_known`
    cut: Mapping[EventKey, ReportedLoss]  # truncated as after every clean change
    settled: Mapping[EventKey, ReportedLoss]
    read: Mapping[EventKey, list[int]]  # places of commits
    read_and_proven: Mapping[EventKey, list[int]]
    proven: Mapping[EventKey, ReportedLoss]

    @classmethod
    def of(cls, view: View) -> _Losses:
        """Separate the losses of this rule from those that committed_records_lost reports."""
        late, beyond = list_newly_contradicted(view), beyond_epoch_end(view.snapshot)
        again = {key: loss for key, loss in late.items() if loss.lost_to is not None}
        learned = list_newly_settled(view) | again
        there = {key for key, loss in learned.items() if is_committed(loss)}
        read = _read_beyond(view, beyond)
        covered = {key: loss for key, (_, loss) in read.items() if loss and is_committed(loss)}
        places = {key: at for key, (at, _) in read.items()}
        return cls(
            beyond=beyond,
            open_ended={
                proof.event: proof
                for proof in list_proofs(view)
                if proof.certain is None and proof.is_open_ended and proof.event not in there
            },
            elected={
                key: election
                for key, election in list_newly_unseen(view).items()
                if key not in there
            },
            first={key: first for key, first in list_newly_first(view).items() if key not in there},
            late={key: loss for key, loss in late.items() if key not in there},
            cut={key: loss for key, loss in learned.items() if is_no_sign(loss)},
            settled={
                key: loss
                for key, loss in learned.items()
                if key not in there and not is_no_sign(loss)
            },
            read={key: at for key, at in places.items() if key not in covered},
            read_and_proven={key: places[key] for key in covered},
            proven={**covered, **list_newly_proven(view)},
        )

    @property
    def possible(self) -> list[EventKey]:
        """Return the events whose records above the high watermark are gone and may have been committed.

        A short tail is normal under load; one above a high watermark that did not advance is not.
        """
        now = [
            key
            for key, proof in self.open_ended.items()
            if proof.possible is not None and _may_have_lost(proof)
        ]
        return [*now, *(key for key, loss in self.late.items() if has_tail(loss))]

    @property
    def unseen(self) -> set[EventKey]:
        """Return the events after which no observed record is missing, with signs of an unclean election."""
        unclean = {key for key, proof in self.open_ended.items() if _is_unclean(proof)}
        counted = {key for key, first in self.first.items() if first.has_sign}
        return unclean | self.elected.keys() | self.late.keys() | counted


def _may_have_lost(proof: Proof) -> bool:
    """Whether a lost tail is critical; signs from metadata alone make it a warning."""
    return proof.election is Election.UNCLEAN or proof.is_contradicted_directly or proof.was_stalled


def _is_unclean(proof: Proof) -> bool:
    """Whether there is a sign that the election was unclean; that it was possible is not enough."""
    return proof.election is Election.UNCLEAN or proof.is_contradicted


def _evidence(view: View, losses: _Losses, key: EventKey) -> LossEvidence:
    """Return the evidence of an event, in the order of the reasons."""
    places = losses.read.get(key) or losses.read_and_proven.get(key, [])
    others = (
        losses.settled,
        losses.cut,
        losses.open_ended,
        losses.elected,
        losses.first,
        losses.late,
        losses.read,
    )
    is_reported = any(key in other for other in others)
    return {
        **_proof_evidence(view, losses.open_ended.get(key), places, losses.beyond),
        **(first_epoch_evidence(view, losses.first[key]) if key in losses.first else {}),
        **(election_evidence(view, losses.elected[key]) if key in losses.elected else {}),
        **(late_evidence(view, losses.late[key]) if key in losses.late else {}),
        **(return_evidence(losses.cut[key]) if key in losses.cut else {}),
        **(return_evidence(losses.settled[key]) if key in losses.settled else {}),
        **(proven_evidence(losses.proven[key]) if key in losses.proven and not is_reported else {}),
    }


def _read_beyond(
    view: View, beyond: Column
) -> dict[EventKey, tuple[list[int], ReportedLoss | None]]:
    """Return the places of commits that newly lie beyond the end of their own epoch, by event.

    They belong to the loss at that epoch's end, where one is known, otherwise to the present leader.
    """
    snapshot, commits = view.snapshot, view.snapshot.commits
    reported = view.losses_before.beyond_epoch_end
    places = np.flatnonzero(beyond.valid).astype(np.int64)
    by_event: dict[EventKey, tuple[list[int], ReportedLoss | None]] = {}
    for place, new in zip(places.tolist(), is_new(snapshot, places, reported), strict=True):
        row = int(commits.row[place])
        present = snapshot.offsets.leader_epoch[row]
        if not new or present is None:
            continue
        end = int(commits.committed_offset[place]) - int(beyond.values[place])
        epoch = commits.committed_leader_epoch[place]
        loss = loss_read_in(view, row, epoch=epoch, end=end)
        key = row, present if loss is None else loss.leader_epoch
        by_event.setdefault(key, ([], loss))[0].append(place)
    return by_event


def _proof_evidence(
    view: View, proof: Proof | None, places: list[int], beyond: Column
) -> LossEvidence:
    return {
        **({} if proof is None else loss_evidence(view, proof)),
        **(_commit_evidence(view, places, beyond) if places else {}),
    }


def _commit_evidence(view: View, places: list[int], beyond: Column) -> LossEvidence:
    snapshot, commits = view.snapshot, view.snapshot.commits
    rows: list[GroupBeyond] = [
        {
            "group": snapshot.groups[int(commits.group[place])].group_id,
            "committed_offset": int(commits.committed_offset[place]),
            "committed_leader_epoch": commits.committed_leader_epoch[place],
            "read_beyond": int(beyond.values[place]),
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
