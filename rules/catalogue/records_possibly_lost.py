"""Records may be gone after a leader change; nobody who is left can tell how many.

Detects:
    Partitions whose leader changed in a way that may have lost committed records, where nothing that
    was seen to be committed is missing: an unclean election, or one after which the ISR may have
    shrunk unseen. Where brokers' logs are read, an unclean election that a controller tells of also
    counts if nobody had observed the partition under its old leader. And, without any memory: partitions on which a group has committed an offset that
    lies beyond the end of the leader epoch it was read in.

Why it matters:
    When an ISR shrinks to the leader, hundreds of records that were waiting are acknowledged within
    milliseconds. If that leader dies then, they are gone, and no count of what was seen before tells.

Inputs:
    The last observation before the change; where its epoch ended (OffsetForLeaderEpoch);
    `unclean.leader.election.enable`; committed leader epochs of groups. Partitions at risk are
    observed every second, so that `unknown_since` is short. Where brokers' logs are read: what
    controllers write of elections, and what the old leader writes when it comes back.

Thresholds:
    None: one such change is enough.

False positives:
    Reason `unseen`: a controller, the old leader, or metadata told of an unclean election, and nothing was written in the time that was not seen. Where the settings of a
    topic may not be read (DESCRIBE_CONFIGS), unclean elections count as allowed. With
    `never_observed`: a topic that Tidemark may see only since then, and a controller that starts at that
    time and writes of an election of long ago once more. Reason
    `read_beyond_epoch_end`: a topic that was created again under its name while a consumer was
    running; observation whether the topic id is the one that you expect.

Runbook:
    `possible_from` to `possible_to` was seen and is gone, and may have been committed; what was
    appended after `unknown_since` is not known. Follow `advice`, and have nothing written again as long as
    nothing is proven: the old leader's own log settles it. When it comes back, its broker log says how far it had come ("Follower ... starts ... from
    offset N") and where it truncates: the difference is the loss. Where Tidemark reads that log it says
    so, with the reason `former_leader_returned`: `exact_from` to `exact_to` is all that is gone, and an upper
    bound of what was acknowledged. If committed records are among it, committed_records_lost says so,
    and the reason here becomes `proven` (info): it is one loss, and read on there. The same goes for
    what a group had read, once that is proven. With `never_observed` nobody had observed the partition under the leader that died:
    `unknown_since` is then the last time at which nothing had happened to it.
    Reason `election_not_known` (info): nothing that was seen to be committed is missing, and whether the new
    leader was in sync nobody saw, as in a rolling restart of partitions with two replicas. Read the controllers' logs: where the
    active one wrote of no unclean election, there was none.
    Reason `not_determinable` (info): the topic was deleted before its new leader could be asked what the
    older one had; whether anything was lost before that cannot be found out any more.
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
from rules.facts.column import Column
from rules.facts.loss_memory import ReportedLoss, beyond_epoch_end, is_new
from rules.facts.unseen_elections import UnseenElection
from rules.judgement import Event, Judgement, PartitionSubjects, Reason, decide
from rules.loss.election import Election
from rules.loss.events import EventKey, events_of, labels_of
from rules.loss.incidents import IncidentIndex
from rules.loss.late_lines import has_tail, late_evidence, newly_contradicted
from rules.loss.loss_evidence import SHOWN, told
from rules.loss.proof import Proof, proofs
from rules.loss.proven import loss_read_in, newly_proven, proven_evidence
from rules.loss.returned import is_committed, is_no_sign, newly_settled, return_evidence
from rules.loss.unseen import election_evidence, newly_unseen
from rules.loss.vanished import vanished
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
    UNSEEN = "unseen"  # log lines or metadata tell of an unclean election, or of an ISR without the winner
    ELECTION_NOT_KNOWN = (
        "election_not_known"  # nothing committed is missing, nothing tells of an unclean election
    )
    FORMER_LEADER_RETURNED = "former_leader_returned"  # its own log lines tell exactly what is gone
    PROVEN = "proven"  # committed_records_lost tells of the same records
    READ_BEYOND_EPOCH_END = "read_beyond_epoch_end"  # a group has read what is not there
    NOT_DETERMINABLE = "not_determinable"  # the topic was deleted before its leader could be asked


def judge(view: View) -> Judgement:
    """Judge every partition; what is certainly lost is committed_records_lost's to say."""
    found = _Found.of(view)
    reasons: dict[EventKey, Reason] = {
        **dict.fromkeys(found.proven, Why.PROVEN),
        **dict.fromkeys([*found.open_ended, *found.cut], Why.ELECTION_NOT_KNOWN),
        **dict.fromkeys(found.unseen, Why.UNSEEN),
        **dict.fromkeys(found.read, Why.READ_BEYOND_EPOCH_END),
        **dict.fromkeys(found.possible, Why.POSSIBLE),
        **dict.fromkeys(found.settled, Why.FORMER_LEADER_RETURNED),
    }
    return decide(
        RULE,
        PartitionSubjects(view.snapshot),
        [],
        (Verdict.OK, Why.NOTHING_SAYS_SO),
        events=[
            *events_of(view, reasons, partial(_evidence, view, found)),
            *_vanished_events(view),
        ],
    )


def _vanished_events(view: View) -> Iterator[Event]:
    """Give the losses that cannot be determined any more; their subjects are gone."""
    found = vanished(view)
    incidents = IncidentIndex.of(view.memory.losses) if found else None
    for one in found:
        incident = None if incidents is None else incidents.incident(one.name)
        yield Event(
            position=None,
            labels=labels_of(view.snapshot.cluster, one.name),
            reason=Why.NOT_DETERMINABLE,
            evidence={"incident": incident, **one.reported()},
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    """What a round found out, by row."""

    beyond: Column  # by commit: how far it lies beyond the end of its leader epoch
    open_ended: Mapping[EventKey, Proof]
    elected: Mapping[EventKey, UnseenElection]
    late: Mapping[EventKey, ReportedLoss]  # told before, as an election that nobody knows
    cut: Mapping[EventKey, ReportedLoss]  # as after every clean change
    settled: Mapping[EventKey, ReportedLoss]
    read: Mapping[EventKey, list[int]]  # places of commits
    read_and_proven: Mapping[EventKey, list[int]]
    proven: Mapping[EventKey, ReportedLoss]

    @classmethod
    def of(cls, view: View) -> _Found:
        """Sort by what is told here, and what committed_records_lost tells."""
        late, beyond = newly_contradicted(view), beyond_epoch_end(view.snapshot)
        again = {key: loss for key, loss in late.items() if loss.lost_to is not None}
        learned = newly_settled(view) | again
        there = {key for key, loss in learned.items() if is_committed(loss)}
        read = _read_beyond(view, beyond)
        covered = {key: loss for key, (_, loss) in read.items() if loss and is_committed(loss)}
        places = {key: at for key, (at, _) in read.items()}
        return cls(
            beyond=beyond,
            open_ended={
                (proof.row, proof.leader_epoch): proof
                for proof in proofs(view)
                if proof.certain is None
                and proof.is_open_ended
                and (proof.row, proof.leader_epoch) not in there
            },
            elected={key: one for key, one in newly_unseen(view).items() if key not in there},
            late={key: one for key, one in late.items() if key not in there},
            cut={key: loss for key, loss in learned.items() if is_no_sign(loss)},
            settled={
                key: loss
                for key, loss in learned.items()
                if key not in there and not is_no_sign(loss)
            },
            read={key: at for key, at in places.items() if key not in covered},
            read_and_proven={key: places[key] for key in covered},
            proven={**covered, **newly_proven(view)},
        )

    @property
    def possible(self) -> list[EventKey]:
        """Return where what was seen above the high watermark is gone, and may have been committed.

        A tail of a time is part of every load; one above a high watermark that stood is not.
        """
        now = [
            key
            for key, proof in self.open_ended.items()
            if proof.possible is not None and _may_have_lost(proof)
        ]
        return [*now, *(key for key, loss in self.late.items() if has_tail(loss))]

    @property
    def unseen(self) -> set[EventKey]:
        """Return where nothing that was seen is missing, and log lines speak of an unclean election."""
        unclean = {key for key, proof in self.open_ended.items() if _is_unclean(proof)}
        return unclean | self.elected.keys() | self.late.keys()


def _may_have_lost(proof: Proof) -> bool:
    """Whether a tail that is gone is worth a page: what metadata tells alone is worth a warning."""
    return proof.election is Election.UNCLEAN or proof.is_contradicted_directly or proof.was_stalled


def _is_unclean(proof: Proof) -> bool:
    """Whether something tells that the election was unclean: that it may have been is not enough."""
    return proof.election is Election.UNCLEAN or proof.is_contradicted


def _evidence(view: View, found: _Found, key: EventKey) -> dict[str, EvidenceValue]:
    """Return what is told of an event, by the same order as the reasons."""
    places = found.read.get(key) or found.read_and_proven.get(key, [])
    others = (found.settled, found.cut, found.open_ended, found.elected, found.late, found.read)
    is_reported = any(key in other for other in others)
    return {
        **_told(view, found.open_ended.get(key), places, found.beyond),
        **(election_evidence(view, found.elected[key]) if key in found.elected else {}),
        **(late_evidence(view, found.late[key]) if key in found.late else {}),
        **(return_evidence(found.cut[key]) if key in found.cut else {}),
        **(return_evidence(found.settled[key]) if key in found.settled else {}),
        **(proven_evidence(found.proven[key]) if key in found.proven and not is_reported else {}),
    }


def _read_beyond(
    view: View, beyond: Column
) -> dict[EventKey, tuple[list[int], ReportedLoss | None]]:
    """Return the places of commits that newly lie beyond the end of their own epoch, by event.

    They belong to the loss of that epoch's end, where one is known, and else to the present leader.
    """
    snapshot, commits = view.snapshot, view.snapshot.commits
    known = view.before.losses.beyond_epoch_end if view.before is not None else frozenset()
    places = np.flatnonzero(beyond.valid).astype(np.int64)
    found: dict[EventKey, tuple[list[int], ReportedLoss | None]] = {}
    for place, new in zip(places.tolist(), is_new(snapshot, places, known), strict=True):
        row = int(commits.row[place])
        present = snapshot.offsets.leader_epoch[row]
        if not new or present is None:
            continue
        end = int(commits.committed_offset[place]) - int(beyond.values[place])
        epoch = commits.committed_leader_epoch[place]
        loss = loss_read_in(view, row, epoch=epoch, end=end)
        key = row, present if loss is None else loss.leader_epoch
        found.setdefault(key, ([], loss))[0].append(place)
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
