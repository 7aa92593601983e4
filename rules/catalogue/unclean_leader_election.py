"""A replica that was not in sync became leader.

Detects:
    Leader changes that a controller's own log calls unclean, and all after which committed records are
    missing, unless the same leader leads on: that one has lost its disk. A winner that was neither in sync nor eligible when the partition was last seen may have
    come back since: that is not known, and told by records_possibly_lost where something may be gone. An
    election of the last known leader is called unclean by controllers and is none here.

Why it matters:
    Such a leader knows nothing of what it had not fetched, and what the old one had acknowledged
    beyond that is gone. It is not loss by itself: one on a partition at rest loses nothing.

Inputs:
    The last observation before the change (ISR, ELR); `unclean.leader.election.enable`; where the older
    leader epoch ended; where controllers' logs are read, what they write of elections.

Thresholds:
    None: each is told.

False positives:
    None are known. Without the controllers' logs an unclean election that took nothing with it that had
    been seen is not told here.

Runbook:
    Reason `lost`: see the finding committed_records_lost of this partition. Reasons `possibly_lost`
    and `nothing_seen_is_missing`: see records_possibly_lost; what was appended after `last_observation` is
    not known. Turn off `unclean.leader.election.enable` where exactly-once is promised.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from rules.evidence import EvidenceValue
from rules.facts.loss_memory import Contradiction, ReportedLoss
from rules.judgement import Judgement, PartitionSubjects, Reason, decide
from rules.loss.election import Election
from rules.loss.events import EventKey, events_of
from rules.loss.late_lines import has_tail, late_evidence, newly_contradicted
from rules.loss.loss_evidence import told
from rules.loss.proof import Proof, proofs
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="unclean_leader_election",
    subject=SubjectKind.PARTITION,
    kind=Kind.EVENT,
    severity=Severity.WARNING,
    for_=timedelta(0),
    summary="A replica that was not in sync became leader.",
    names_events=True,
    outlives_subject=True,
)


class Why(Reason):
    """Reasons of this rule."""

    NONE_SEEN = "none_seen"
    LOST = "lost"
    POSSIBLY_LOST = "possibly_lost"
    NOTHING_SEEN_IS_MISSING = "nothing_seen_is_missing"


def judge(view: View) -> Judgement:
    """Judge every partition; the reason says what became of the records that were seen."""
    unclean = {
        (proof.row, proof.leader_epoch): proof
        for proof in proofs(view)
        if _is_election(view, proof)
    }

    late = {
        key: loss
        for key, loss in newly_contradicted(view).items()
        if loss.contradicted == Contradiction.BY_CONTROLLER
    }
    reasons = {key: _why_late(loss) for key, loss in late.items()}
    reasons |= {key: _why(proof) for key, proof in unclean.items()}

    def evidence(key: EventKey) -> Mapping[str, EvidenceValue]:
        return told(view, unclean[key]) if key in unclean else late_evidence(view, late[key])

    return decide(
        RULE,
        PartitionSubjects(view.snapshot),
        [],
        (Verdict.OK, Why.NONE_SEEN),
        events=events_of(view, reasons, evidence),
    )


def _is_election(view: View, proof: Proof) -> bool:
    """Whether another replica led meanwhile, or does; a leader that leads on has lost its disk."""
    is_own = proof.leader is not None and proof.leader == proof.before.leader
    is_direct = proof.leader_epoch - proof.before.leader_epoch == 1
    leads_on = is_own and (
        is_direct or len(view.snapshot.partitions.replicas[proof.row] or ()) == 1
    )
    return proof.election is Election.UNCLEAN or (proof.certain is not None and not leads_on)


def _why(proof: Proof) -> Why:
    if proof.certain is not None:
        return Why.LOST
    return Why.NOTHING_SEEN_IS_MISSING if proof.possible is None else Why.POSSIBLY_LOST


def _why_late(loss: ReportedLoss) -> Why:
    return Why.POSSIBLY_LOST if has_tail(loss) else Why.NOTHING_SEEN_IS_MISSING
