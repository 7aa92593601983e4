"""What the rules say of transactions on real brokers, fault by fault, against the fault's own truth."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from rules.facts.transaction_log import EndedTransaction
from rules.judgement import Finding
from rules.transactions.classes import TransactionClass
from rules.transactions.lso_blocker import lso_blockers
from rules.verdict import Verdict
from service.observe.cluster_reader import ClusterReader
from service.observe.watch import WatchedRound
from service.sandbox.cluster.admin import Permission, SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.tools import run_quietly
from service.sandbox.faults import Truth, make_fault
from service.sandbox.workloads.raw_cluster import RawCluster
from tests.integration.conftest import MakeReader
from tests.integration.watching import Watch
from tests.kafka_release import SCRAM_USERS

pytestmark = pytest.mark.integration

TRANSACTION_RULES = (
    "transaction_hanging",
    "transaction_overdue",
    "transaction_marker_stuck",
    "read_committed_consumers_blocked",
    "producer_fenced",
)


def said(made: WatchedRound, rule: str, truth: Truth, verdict: Verdict) -> Finding | None:
    """Return what a rule says with this verdict of the partition or of the transactional id."""
    for judgement in made.judged.judgements:
        if judgement.rule.rule_id != rule:
            continue
        for finding in judgement.findings(verdict):
            labels = finding.labels
            where = (truth.where.topic, str(truth.where.partition))
            is_there = (labels.get("topic"), labels.get("partition")) == where
            if is_there or labels.get("transactional_id") == truth.transactional_id is not None:
                return finding
    return None


def breach(made: WatchedRound, rule: str, truth: Truth) -> Finding | None:
    return said(made, rule, truth, Verdict.BREACH)


def class_seen(watch: Watch, truth: Truth) -> TransactionClass | None:
    """Return the class of what holds the truth's partition in the last round."""
    view = watch.rounds[-1].view
    held = [] if view is None else [one for one in lso_blockers(view) if one.name == truth.where]
    return held[0].class_ if held else None


@pytest.fixture
def watch(reader: ClusterReader) -> Watch:
    watching = Watch(reader)
    watching.round()
    return watching


def assert_named(finding: Finding, truth: Truth) -> None:
    """Assert that a finding names the producer, its transaction, and the groups that wait."""
    evidence = finding.evidence
    assert evidence["producer_id"] == truth.producer_id
    assert evidence["producer_epoch"] == truth.producer_epoch
    assert evidence["start_offset"] == truth.start_offset
    assert evidence["transactional_id"] == truth.transactional_id
    blocked = evidence["blocked_groups"]
    assert isinstance(blocked, list)
    [group] = truth.blocked_groups
    assert blocked == [
        {
            "group": group,
            "blocked_offsets": truth.high_watermark - truth.start_offset,
            "lag_before_transaction": 0,
            "is_waiting": True,
        }
    ]


def test_a_transaction_within_its_timeout_is_no_breach(cluster: Sandbox, watch: Watch) -> None:
    with make_fault("open-transaction", cluster) as truth:
        watch.until(lambda _: class_seen(watch, truth) is TransactionClass.OPEN)
        for _ in range(2):
            made = watch.round()
            found = [breach(made, rule, truth) for rule in TRANSACTION_RULES]
            assert found == [None] * len(TRANSACTION_RULES)
            assert class_seen(watch, truth) is TransactionClass.OPEN


def test_an_overdue_transaction_is_told_until_its_coordinator_aborts_it(
    cluster: Sandbox, watch: Watch
) -> None:
    with make_fault("overdue-transaction", cluster) as truth:
        made = watch.until(lambda made: breach(made, "transaction_overdue", truth))
        found = breach(made, "transaction_overdue", truth)
        assert found is not None
        assert found.reason == "will_be_aborted"
        assert found.evidence["producer_id"] == truth.producer_id
        assert found.evidence["coordinator"] == truth.coordinator
        watch.until(lambda _: class_seen(watch, truth) is TransactionClass.OVERDUE)
        assert breach(watch.rounds[-1], "transaction_hanging", truth) is None
    made = watch.until(lambda made: not breach(made, "transaction_overdue", truth))
    # The LSO moves before the coordinator says that it is done: neither time is a breach.
    assert all(breach(one, "transaction_hanging", truth) is None for one in watch.rounds)
    fenced = [breach(one, "producer_fenced", truth) for one in watch.rounds]
    watch.until(lambda made: breach(made, "producer_fenced", truth) or any(fenced))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="listed-as-empty"),
        pytest.param({"unlisted": True}, id="unknown-to-all"),
        pytest.param({"offsets": True}, id="on-an-internal-topic", marks=pytest.mark.variation),
    ],
)
def test_a_hanging_transaction_is_found_and_gone_after_the_printed_command(
    cluster: Sandbox, watch: Watch, options: dict[str, Any]
) -> None:
    with make_fault("hanging-transaction", cluster, **options) as truth:
        first = watch.round()
        assert not breach(first, "transaction_hanging", truth), "it was seen only once"
        made = watch.until(lambda made: breach(made, "transaction_hanging", truth))
        regular = [one for one in watch.rounds[2:-1] if not one.next_is_early]
        assert len(regular) <= 1, "two intervals after it was first seen, at most"
        found = breach(made, "transaction_hanging", truth)
        assert found is not None
        assert_named(found, truth)
        blocked = breach(made, "read_committed_consumers_blocked", truth)
        assert blocked is not None
        assert (blocked.reason, blocked.labels["group"]) == ("hanging", truth.blocked_groups[0])
        tool, *arguments = shlex.split(str(found.evidence["repair"]))
        run_quietly(cluster, tool, arguments)
        watch.until(lambda made: said(made, "transaction_hanging", truth, Verdict.OK))
        assert not breach(watch.rounds[-1], "read_committed_consumers_blocked", truth)


def test_a_coordinator_that_gives_no_answer_may_know_it(
    faults: Sandbox, make_reader: MakeReader, new_name: Callable[[str], str]
) -> None:
    watch, topic = Watch(make_reader(request_timeout_seconds=1)), new_name("hanging")
    with RawCluster(faults) as cluster:  # a broker that was restarted may coordinate nothing
        coordinator = cluster.coordinator(topic)
    others = [node.id for node in faults.state.brokers if node.id != coordinator]
    SandboxAdmin(faults.bootstrap_servers).create_topic(topic, assignment=[others])
    with make_fault("hanging-transaction", faults, topic=topic, unlisted=True) as truth:
        watch.round()
        faults.pause(coordinator)
        try:
            watch.until(lambda made: reason_of(made, truth) == "coordinator_not_seen")
        finally:
            faults.resume(coordinator)
        # Its partitions of __transaction_state may have moved to others meanwhile.
        assert not any(
            breach(made, "transaction_hanging", truth)
            for made in watch.rounds
            if made.snapshot is None or not made.snapshot.transactions.is_complete
        )
        watch.until(lambda made: breach(made, "transaction_hanging", truth))


@pytest.fixture
def short_sighted(
    cluster: Sandbox, admin: SandboxAdmin, make_reader: MakeReader
) -> Iterator[Watch]:
    """Watch as a user who may see the cluster, all topics and their records, and no id."""
    user = admin.create_user("no-ids", "no-ids-sandbox-only")
    given = [
        Permission(user=user.name, operation=operation, resource=resource, name="*")
        for resource, operation in (
            ("cluster", "describe"),
            ("topic", "read"),
            ("group", "describe"),
        )
    ]
    admin.grant(given)
    reader = make_reader(
        bootstrap_servers=cluster.sasl_bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_username=user.name,
        sasl_password=user.password,
    )
    yield Watch(reader)
    admin.revoke(given)


@SCRAM_USERS
def test_who_may_not_see_transactional_ids_cannot_say_that_one_hangs(
    cluster: Sandbox, short_sighted: Watch
) -> None:
    with make_fault("hanging-transaction", cluster) as truth:
        short_sighted.until(lambda made: reason_of(made, truth) == "permission_unproven")
        for _ in range(2):
            assert reason_of(short_sighted.round(), truth) == "permission_unproven"


def reason_of(made: WatchedRound, truth: Truth) -> str | None:
    """Return why it is unknown whether something hangs."""
    found = said(made, "transaction_hanging", truth, Verdict.UNKNOWN)
    return None if found is None else found.reason


def watch_end(watch: Watch, truth: Truth) -> list[EndedTransaction]:
    """Return what the log of the coordinators shows of the end of the truth's transaction."""

    def ended(made: WatchedRound) -> list[EndedTransaction]:
        log = () if made.snapshot is None else made.snapshot.transaction_log.ended
        return [one for one in log if one.transactional_id == truth.transactional_id]

    return ended(watch.until(lambda made: len(ended(made)) > 0))


def test_a_marker_that_a_partition_does_not_take_is_told(faults: Sandbox, watch: Watch) -> None:
    with make_fault("stuck-marker", faults) as truth:
        watch.until(lambda _: class_seen(watch, truth) is TransactionClass.PREPARE_COMMIT)
        made = watch.rounds[-1]
        assert breach(made, "transaction_hanging", truth) is None
        found = said(made, "transaction_marker_stuck", truth, Verdict.OK)
        assert found is not None
        assert found.reason == "being_written", "half a minute has not passed"
        assert found.evidence["transactional_id"] == truth.transactional_id
        held_at = watch.round().at
    [ended] = watch_end(watch, truth)
    assert ended.decided_at is not None
    assert ended.decided_at < held_at < ended.ended_at, "the marker was written at its end"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("second-instance", "handover"), ("timeout-fence", "coordinator_timeout")],
)
def test_an_owner_whose_transaction_is_cut_is_fenced(
    cluster: Sandbox, watch: Watch, fault: str, reason: str
) -> None:
    with make_fault(fault, cluster) as truth:
        made = watch.until(lambda made: breach(made, "producer_fenced", truth))
    found = breach(made, "producer_fenced", truth)
    assert found is not None
    assert found.reason == reason
    assert found.evidence["producer_id"] == truth.producer_id
    assert found.evidence["producer_epoch"] == truth.producer_epoch
    assert truth.timeout is not None
    assert found.evidence["timeout_ms"] == truth.timeout / timedelta(milliseconds=1)
