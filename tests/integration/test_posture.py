"""Posture on real brokers: every line is right, and nothing is said of a cluster that is set up well."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack

import pytest

from rules.facts.configs import ConfigSource
from rules.facts.identity import CONSUMER_OFFSETS, TRANSACTION_STATE
from rules.posture.all_checks import judge_posture
from rules.posture.line import PostureLine, PostureScope
from rules.remembering import view_of_round
from rules.verdict import Severity, Verdict
from rules.view import View
from service.observe.cluster_reader import Scope
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import Permission, SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.layout import node_layout
from service.sandbox.workloads.transactions import OpenTransaction
from tests.integration.clients import commit_offset
from tests.integration.conftest import MakeReader
from tests.integration.observing import why_of
from tests.kafka_release import SCRAM_USERS

pytestmark = pytest.mark.integration

CHANGED = 2  # the broker that differs from the others
AT_START = {
    "default.replication.factor": "1",
    "offsets.retention.minutes": "60",
    "transaction.max.timeout.ms": "30000",
    "transactional.id.expiration.ms": "3600000",
}
AT_RUN_TIME = {
    "producer.id.expiration.ms": "60000",
    "transaction.partition.verification.enable": "false",
}
OF_CLUSTER = (PostureScope.CLUSTER, PostureScope.BROKER)
KAFKAS_OWN = (CONSUMER_OFFSETS, TRANSACTION_STATE)
Line = tuple[str, str, str]  # check, name, reason


def lines_of(view: View, own: Collection[str], *verdicts: Verdict) -> list[PostureLine]:
    """Return the lines that are no client's, without topics and ids of other tests of the cluster."""
    return [
        line
        for judgement in judge_posture(view).judgements
        if judgement.check.scope is not PostureScope.CLIENT
        for line in judgement.lines(*verdicts)
        if judgement.check.scope in OF_CLUSTER or line.name in own or line.name in KAFKAS_OWN
    ]


def shown(lines: list[PostureLine]) -> set[Line]:
    return {(line.check.check_id, line.name, str(line.reason)) for line in lines}


def test_nothing_is_said_of_a_cluster_that_is_set_up_well(
    admin: SandboxAdmin,
    cluster: Sandbox,
    make_reader: MakeReader,
    new_name: Callable[[str], str],
) -> None:
    topic = new_name("right")
    admin.create_topic(topic, partitions=3)
    with OpenTransaction(cluster.bootstrap_servers, topic=topic):
        seen = make_reader().read(Scope())
    assert seen.gaps == (), why_of(seen)
    view = view_of_round(seen, None)
    own = [line for line in lines_of(view, {topic}, *Verdict) if line.name == topic]
    assert shown(lines_of(view, {topic}, Verdict.BREACH, Verdict.UNKNOWN)) == set()
    assert {line.check.check_id for line in own} >= {
        "topic_replication",
        "topic_min_insync_replicas",
        "topic_unclean_election",
        "topic_message_size",
        "topic_compaction",
    }


def test_settings_cost_no_more_than_two_requests_per_broker(make_reader: MakeReader) -> None:
    reader = make_reader()
    first, second = reader.read(Scope()), reader.read(Scope())
    counted = ("DescribeConfigs", "ApiVersions")
    brokers = len(first.brokers)
    assert sum(first.report.requests.get(name, 0) for name in counted) <= brokers + 1
    assert sum(second.report.requests.get(name, 0) for name in counted) == 0
    assert second.configs is first.configs


@SCRAM_USERS
def test_without_the_permissions_settings_are_unknown_and_name_them(
    cluster: Sandbox, admin: SandboxAdmin, make_reader: MakeReader, new_name: Callable[[str], str]
) -> None:
    topic = new_name("hidden")
    admin.create_topic(topic, configs={"min.insync.replicas": "1"})
    user = admin.create_user("posture", "posture-sandbox-only")
    may = [Permission(user=user.name, operation="describe", resource="topic")]
    admin.grant(may)
    try:
        seen = make_reader(
            bootstrap_servers=cluster.sasl_bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_username=user.name,
            sasl_password=user.password,
        ).read(Scope())
    finally:
        admin.revoke(may)
        admin.delete_topic(topic)  # the next tests count what is wrong
    lines = lines_of(view_of_round(seen, None), {topic}, *Verdict)
    of_settings = {"topic_min_insync_replicas", "producer_id_expiration", "brokers_differ"}
    chosen = [line for line in lines if line.check.check_id in of_settings]
    assert {(line.verdict, str(line.reason)) for line in chosen} == {
        (Verdict.UNKNOWN, "not_authorized")
    }
    consequences = " ".join(line.consequence for line in chosen)
    assert "DESCRIBE_CONFIGS on Topic" in consequences
    assert "DESCRIBE_CONFIGS on Cluster" in consequences
    [replicas] = [line for line in lines if line.name == topic and "replication" in line.setting]
    assert (replicas.verdict, replicas.value) == (Verdict.OK, "3")
    assert "DESCRIBE_CONFIGS on Cluster" in why_of(seen)


@pytest.fixture
def changed(faults: Sandbox, admin: SandboxAdmin) -> Iterator[Sandbox]:
    """Give the cluster with a broker that has other settings than the others; the old ones come back."""
    properties = node_layout(faults.directory, CHANGED).properties
    before = properties.read_text(encoding="ascii")
    kept = [line for line in before.splitlines() if line.partition("=")[0] not in AT_START]
    after = [*kept, *(f"{name}={value}" for name, value in AT_START.items())]

    def restart(content: str) -> None:
        faults.kill(CHANGED)
        properties.write_text(content, encoding="ascii")
        faults.start(CHANGED)

    def reset() -> None:
        admin.set_broker_config(CHANGED, dict.fromkeys(AT_RUN_TIME))
        admin.set_topic_config("__transaction_state", {"max.message.bytes": None})
        admin.set_topic_config("__consumer_offsets", {"min.insync.replicas": None})

    with ExitStack() as undo:
        undo.callback(restart, before)
        restart("\n".join(after) + "\n")
        undo.callback(reset)
        admin.set_broker_config(CHANGED, AT_RUN_TIME)
        yield faults


@pytest.mark.timeout(300)
def test_every_line_is_right(
    faults: Sandbox,
    admin: SandboxAdmin,
    make_reader: MakeReader,
    new_name: Callable[[str], str],
    request: pytest.FixtureRequest,
) -> None:
    names = {stem: new_name(stem) for stem in TOPICS}
    for stem, (placed, settings) in TOPICS.items():
        admin.create_topic(names[stem], assignment=placed, configs=settings)
    servers, paid, table, state = (
        faults.bootstrap_servers,
        *(names[stem] for stem in ("paid", "table", "state")),
    )
    ids = {stem: new_name(stem) for stem in ("long", "short")}
    with (
        OpenTransaction(servers, topic=paid, transactional_id=ids["long"], timeout_ms=60_000),
        OpenTransaction(servers, topic=table, transactional_id=ids["short"], timeout_ms=20_000),
        OpenTransaction(servers, topic=state, timeout_ms=20_000),
    ):
        first = view_of_round(make_reader().read(Scope()), None)
    for topic in (table, state):
        admin.set_topic_config(topic, {"cleanup.policy": "compact"})
    commit_offset(servers, new_name("reader"), table, 2)  # one record and its marker
    request.getfixturevalue("changed")
    admin.set_topic_config("__transaction_state", {"max.message.bytes": "500000"})
    admin.set_topic_config("__consumer_offsets", {"min.insync.replicas": "1"})

    view = first
    wanted, own = wrong_lines(names, ids), {*names.values(), *ids.values()}

    def is_seen() -> bool:
        nonlocal view
        view = view_of_round(make_reader().read(Scope()), first.memory)
        return not view.snapshot.gaps and len(view.snapshot.configs.brokers) == 3

    assert wait_until(is_seen, timeout_seconds=60, poll_seconds=1), why_of(view.snapshot)
    wrong = lines_of(view, own, Verdict.BREACH)
    assert {line for line in shown(wrong) if line[0] != "brokers_differ"} == wanted
    assert {line.setting for line in wrong if line.check.check_id == "brokers_differ"} == {
        *AT_START,
        *AT_RUN_TIME,
    }
    assert len(wanted) >= 15
    assert shown(lines_of(view, own, Verdict.UNKNOWN)) == set()
    right = shown(lines_of(view, own, Verdict.OK))
    assert right_lines(names, ids) <= right
    assert len(right_lines(names, ids)) >= 15
    assert_values_and_sources(wrong, names)


def assert_values_and_sources(wrong: list[PostureLine], names: dict[str, str]) -> None:
    """Assert values with their sources, commands, and how bad it is, of some lines."""
    by_name = {(line.check.check_id, line.name): line for line in wrong}
    expected = {
        ("topic_unclean_election", names["unclean"]): ("true", ConfigSource.TOPIC),
        ("producer_id_expiration", str(CHANGED)): ("60000", ConfigSource.DYNAMIC_BROKER),
        ("offsets_retention", str(CHANGED)): ("60", ConfigSource.STATIC_BROKER),
    }
    for key, (value, source) in expected.items():
        assert (by_name[key].value, by_name[key].source) == (value, source)
    assert all(line.consequence and line.fix for line in wrong)
    assert by_name["topic_compaction", names["table"]].severity is Severity.INFO
    assert by_name["topic_replication", names["single"]].severity is Severity.INFO
    assert by_name["topic_min_insync_replicas", names["paid"]].severity is Severity.WARNING


THREE = [[1, 2, 3]]
TOPICS: dict[str, tuple[list[list[int]], dict[str, str]]] = {
    "single": ([[1]], {}),
    "two": ([[1, 2]], {}),
    "one-acks": (THREE, {"min.insync.replicas": "1"}),
    "all-ack": (THREE, {"min.insync.replicas": "3"}),
    "unclean": (THREE, {"unclean.leader.election.enable": "true"}),
    "large": (THREE, {"max.message.bytes": "5000000"}),
    "tiny": (THREE, {"max.message.bytes": "1000"}),
    "paid": (THREE, {"min.insync.replicas": "1"}),
    "table": (THREE, {}),
    "state": (THREE, {}),
    "clean": (THREE, {"unclean.leader.election.enable": "false", "min.insync.replicas": "2"}),
    "kept": (THREE, {"retention.ms": "-1", "max.message.bytes": "1048588"}),
}


def wrong_lines(names: dict[str, str], ids: dict[str, str]) -> set[Line]:
    """Return the lines of what is deliberately wrong, but for the brokers that differ."""
    changed = str(CHANGED)
    return {
        ("topic_replication", names["single"], "single_replica"),
        ("topic_replication", names["two"], "two_replicas"),
        ("topic_min_insync_replicas", names["two"], "no_replica_may_fail"),
        ("topic_min_insync_replicas", names["one-acks"], "one_acknowledges"),
        ("topic_min_insync_replicas", names["paid"], "one_acknowledges"),
        ("topic_min_insync_replicas", names["all-ack"], "no_replica_may_fail"),
        ("topic_unclean_election", names["unclean"], "allowed_after_elr"),
        ("topic_message_size", names["large"], "above_replica_fetch"),
        ("topic_message_size", names["tiny"], "below_producer_batch"),
        ("topic_compaction", names["table"], "overwritten_before_read"),
        ("transaction_log", "__transaction_state", "writes_too_large"),
        ("offsets_topic", "__consumer_offsets", "one_acknowledges"),
        ("transaction_timeout", ids["long"], "above_maximum"),
        ("producer_id_expiration", changed, "shorter_than_retries"),
        ("partition_verification", changed, "turned_off"),
        ("transactional_id_expiration", changed, "shorter_than_a_day"),
        ("offsets_retention", changed, "shorter_than_a_day"),
        ("new_topics", changed, "too_few_replicas"),
    }


def right_lines(names: dict[str, str], ids: dict[str, str]) -> set[Line]:
    """Return lines of what is deliberately right, or left at a default that is."""
    return {
        ("topic_replication", names["clean"], "enough"),
        ("topic_min_insync_replicas", names["clean"], "enough"),
        ("topic_unclean_election", names["clean"], "clean_only"),
        ("topic_message_size", names["kept"], "fits"),
        ("topic_compaction", names["state"], "read_as_state"),
        ("topic_compaction", names["paid"], "not_compacted"),
        ("topic_retention", names["table"], "no_lag"),
        ("transaction_log", "__transaction_state", "right"),
        ("offsets_topic", "__consumer_offsets", "right"),
        ("transaction_timeout", ids["short"], "allowed"),
        ("producer_id_expiration", "1", "long_enough"),
        ("partition_verification", "3", "verified"),
        ("transactional_id_expiration", "1", "long_enough"),
        ("offsets_retention", "3", "long_enough"),
        ("new_topics", "1", "safe"),
        ("transaction_version", "default", "in_force"),
        ("metadata_version", "default", "in_force"),
        ("eligible_leader_replicas", "default", "in_force"),
    }
