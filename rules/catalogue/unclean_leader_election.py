"""A replica that was not in sync became leader.

Detects:
    Leader changes that a controller logs as unclean, and all leader changes after which committed
    records are missing, unless the same broker continues to lead: that one has lost its disk. A new
    leader that was neither in the ISR nor in the ELR at the last observation may have returned to
    them since: that is not known, and records_possibly_lost reports it where records may be lost.
    Controllers also log the election of the last known leader as unclean; it does not count here.

Why it matters:
    Such a leader lacks everything that it had not fetched, and what the former leader had
    acknowledged beyond that is lost. The election alone is not a loss: on an idle partition nothing
    is lost.

Inputs:
    The last observation before the change (ISR, ELR); `unclean.leader.election.enable`; the end of
    the former leader epoch; where controllers' logs are read, what they log about elections.

Thresholds:
    None: each such election is reported.

False positives:
    None known. Without the controllers' logs, an unclean election is not reported here if no
    observed record is missing after it.

Runbook:
    Where exactly-once is promised, set `unclean.leader.election.enable=false`.

    - `lost`: see the finding committed_records_lost of this partition.
    - `possibly_lost`, `nothing_seen_is_missing`: see records_possibly_lost. Records appended after
      `last_observation` are not known.
"""

from __future__ import annotations

from typing import Final

from rules.facts.loss_memory import Contradiction, ReportedLoss
from rules.judgement import Judgement, PartitionSubjects, Reason, decide
from rules.loss.election import Election
from rules.loss.events import EventKey, events_of
from rules.loss.evidence_fields import LossEvidence
from rules.loss.late_lines import has_tail, late_evidence, list_newly_contradicted
from rules.loss.loss_evidence import loss_evidence
from rules.loss.proof import Proof, list_proofs
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="unclean_leader_election",
    subject=SubjectKind.PARTITION,
    kind=Kind.EVENT,
    severity=Severity.WARNING,
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
    """Judge every partition; the reason says what became of the observed records."""
    unclean = {proof.event: proof for proof in list_proofs(view) if _is_election(view, proof)}

    late = {
        key: loss
        for key, loss in list_newly_contradicted(view).items()
        if loss.contradicted == Contradiction.BY_CONTROLLER
    }
    reasons = {key: _why_late(loss) for key, loss in late.items()}
    reasons |= {key: _why(proof) for key, proof in unclean.items()}

    def evidence(key: EventKey) -> LossEvidence:
        return (
            loss_evidence(view, unclean[key]) if key in unclean else late_evidence(view, late[key])
        )

    return decide(
        RULE,
        PartitionSubjects(view.snapshot),
        [],
        (Verdict.OK, Why.NONE_SEEN),
        events=events_of(view, reasons, evidence),
    )


def _is_election(view: View, proof: Proof) -> bool:
    """Whether another replica leads, or led in between; a leader that continues has lost its disk."""
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
