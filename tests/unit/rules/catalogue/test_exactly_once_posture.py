"""One finding per check of posture, and how bad it is."""

from __future__ import annotations

from typing import Any

import pytest

from rules.catalogue.exactly_once_posture import count_settings, judge
from rules.facts.configs import Configs
from rules.facts.snapshot import Snapshot
from rules.judgement import Finding
from rules.verdict import Severity, Verdict
from tests.factories import transaction, transactions
from tests.unit.rules.catalogue.judging import view_of
from tests.unit.rules.posture.given import DENIED, Topic, cluster

SINGLE = Topic(replicas=(1,))


def finding_of(seen: Snapshot, check: str) -> Finding:
    """Return the finding of one check."""
    judgement = judge(view_of([seen]))
    [position] = judgement.subjects.find([{"cluster": "default", "check": check}])
    assert position is not None
    return judgement.finding(position)


def test_a_cluster_that_is_right_has_a_finding_per_check_and_all_are_ok() -> None:
    judgement = judge(view_of([cluster()]))
    assert set(judgement.verdicts.tolist()) == {Verdict.OK}
    checks = {judgement.subjects.labels(n)["check"] for n in range(len(judgement.subjects))}
    assert "topic_replication" in checks
    assert not {name for name in checks if name.startswith("client_")}


@pytest.mark.parametrize(
    ("seen", "check", "verdict", "reason", "severity"),
    [
        pytest.param(
            cluster({"orders": SINGLE, "bills": SINGLE}, transactions=transactions(transaction())),
            "topic_replication",
            Verdict.BREACH,
            "wrong",
            Severity.WARNING,
            id="it carries transactions",
        ),
        pytest.param(
            cluster({"orders": SINGLE, "bills": SINGLE}),
            "topic_replication",
            Verdict.BREACH,
            "could_be_safer",
            Severity.INFO,
            id="no transaction was seen",
        ),
        pytest.param(
            cluster(levels={"metadata_version": 26}, transactions=transactions(transaction())),
            "metadata_version",
            Verdict.BREACH,
            "could_be_safer",
            Severity.INFO,
            id="the check is information",
        ),
        pytest.param(
            cluster(brokers={1: {}}, failed_brokers={2: DENIED}),
            "producer_id_expiration",
            Verdict.UNKNOWN,
            "not_known",
            None,
            id="a broker may not be read",
        ),
        pytest.param(
            cluster(brokers={1: {"transaction.partition.verification.enable": None}}),
            "partition_verification",
            Verdict.UNKNOWN,
            "not_in_release",
            None,
            id="the release lacks it",
        ),
    ],
)
def test_verdicts(
    seen: Snapshot, check: str, verdict: Verdict, reason: str, severity: Severity | None
) -> None:
    finding = finding_of(seen, check)
    assert (finding.verdict, finding.reason) == (verdict, reason)
    if severity is not None:
        assert finding.severity is severity


def test_evidence_counts_and_names_the_first_with_its_command() -> None:
    topics = {f"t-{number}": SINGLE for number in range(7)} | {"fine": Topic()}
    evidence: Any = finding_of(cluster(topics), "topic_replication").evidence
    assert (evidence["wrong"], evidence["unknown"], evidence["right"]) == (7, 0, 1)
    assert evidence["names"] == "t-0, t-1, t-2, t-3, t-4"
    assert (evidence["setting"], evidence["value"]) == ("replication.factor", "1")
    assert evidence["command"].startswith("kafka-reassign-partitions.sh --bootstrap-server")
    assert evidence["page"] == "posture/topic_replication.md"


def test_settings_that_were_never_read_are_unknown_and_never_wrong() -> None:
    judgement = judge(view_of([cluster(configs=Configs.unread())]))
    assert Verdict.BREACH not in judgement.verdicts
    assert judgement.count(Verdict.UNKNOWN) > 5


def test_settings_are_counted_by_check_and_word() -> None:
    counts = count_settings([judge(view_of([cluster({"orders": SINGLE, "bills": Topic()})]))])
    assert counts["topic_replication", "wrong"] == 1
    assert counts["topic_replication", "right"] == 1
    assert counts["producer_id_expiration", "right"] == 3
