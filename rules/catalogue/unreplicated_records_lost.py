"""Records that were never committed are gone after a clean leader change.

Detects:
    Partitions whose leader changed cleanly, and whose older leader epoch ended below the log end
    that was last seen, with everything below the high watermark still there.

Why it matters:
    A producer that waits for the leader alone (acks=1) was told that these records are there. One
    that waits for all in-sync replicas (acks=all) was not, and has sent them again.

Inputs:
    The last observation before the change; where its epoch ended (OffsetForLeaderEpoch).

Thresholds:
    None: one offset is enough.

False positives:
    Every producer of the topic uses acks=all, as idempotent and transactional ones do: nothing that
    was acknowledged is lost. How producers acknowledged cannot be seen.

Runbook:
    `uncommitted_from` to `uncommitted_to` is gone. If a producer of this topic uses acks=1 or 0,
    have it write again what it sent around `last_observation`, and set acks=all.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from rules.judgement import Judgement, PartitionSubjects, Reason, decide
from rules.loss.events import events_of
from rules.loss.loss_evidence import told
from rules.loss.proof import proofs
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="unreplicated_records_lost",
    subject=SubjectKind.PARTITION,
    kind=Kind.EVENT,
    severity=Severity.INFO,
    for_=timedelta(0),
    summary="Records that were never committed are gone after a clean leader change.",
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
        (proof.row, proof.leader_epoch): proof
        for proof in proofs(view)
        if not proof.is_open_ended and proof.uncommitted is not None
    }
    reasons = dict.fromkeys(lost, Why.NEVER_COMMITTED)
    return decide(
        RULE,
        PartitionSubjects(view.snapshot),
        [],
        (Verdict.OK, Why.NOTHING_SEEN_IS_MISSING),
        events=events_of(view, reasons, lambda key: told(view, lost[key])),
    )
