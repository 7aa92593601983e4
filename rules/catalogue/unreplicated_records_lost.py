"""Records that were never committed are lost after a clean leader change.

Detects:
    Partitions whose leader changed cleanly and whose former leader epoch ended below the log end
    offset of the last observation, while everything below the high watermark is still there.

Why it matters:
    A producer that waits for the leader alone (acks=1) got an acknowledgement for these records.
    One that waits for all in-sync replicas (acks=all) did not, and has sent them again.

Inputs:
    The last observation before the change; the end of its leader epoch (OffsetForLeaderEpoch).

Thresholds:
    None: one offset is enough.

False positives:
    Topics whose producers all use acks=all, as idempotent and transactional ones do: no
    acknowledged record is lost. Which acks a producer uses cannot be observed.

Runbook:
    `uncommitted_from` to `uncommitted_to` is gone. If a producer of this topic uses acks=1 or 0,
    have it write again what it sent around `last_observation`, and set acks=all.
"""

from __future__ import annotations

from typing import Final

from rules.judgement import Judgement, PartitionSubjects, Reason, decide
from rules.loss.events import events_of
from rules.loss.loss_evidence import loss_evidence
from rules.loss.proof import list_proofs
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="unreplicated_records_lost",
    subject=SubjectKind.PARTITION,
    kind=Kind.EVENT,
    severity=Severity.INFO,
    summary="Records that were never committed are lost after a clean leader change.",
    names_events=True,
    outlives_subject=True,
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_SEEN_IS_MISSING = "nothing_seen_is_missing"
    NEVER_COMMITTED = "never_committed"


def judge(view: View) -> Judgement:
    """Judge every partition."""
    lost = {
        proof.event: proof
        for proof in list_proofs(view)
        if not proof.is_open_ended and proof.uncommitted is not None
    }
    reasons = dict.fromkeys(lost, Why.NEVER_COMMITTED)
    return decide(
        RULE,
        PartitionSubjects(view.snapshot),
        [],
        (Verdict.OK, Why.NOTHING_SEEN_IS_MISSING),
        events=events_of(view, reasons, lambda key: loss_evidence(view, lost[key])),
    )
