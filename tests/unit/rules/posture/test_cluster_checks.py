"""Checks of brokers, transactional ids, features and the cluster's own topics."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from rules.facts.configs import Config, ConfigEntry, ConfigSource, FailedRead
from rules.facts.gap import GapCause
from rules.facts.identity import BrokerId
from rules.facts.transactions import NO_TIMEOUT
from rules.posture.all_checks import CHECKS, judge_posture
from rules.posture.line import PostureScope
from rules.remembering import view_of_round
from rules.verdict import Severity, Verdict
from tests.factories import config, transaction, transactions
from tests.unit.rules.posture.given import DENIED, LATE, Topic, Values, cluster, lines_of, said

OK_ALL = {"1": "OK", "2": "OK", "3": "OK"}


def test_nothing_is_said_of_a_cluster_that_is_right() -> None:
    seen = cluster({
        "orders": Topic(),
        "__consumer_offsets": Topic(replicas=(3,) * 50),
        "__transaction_state": Topic(replicas=(3,) * 50),
    })  # fmt: skip
    posture = judge_posture(view_of_round(seen, None))
    others = [j for j in posture.judgements if j.check.scope is not PostureScope.CLIENT]
    assert [line for j in others for line in j.lines(Verdict.BREACH, Verdict.UNKNOWN)] == []
    assert sum(j.count(Verdict.OK) for j in others) > 50


def test_what_only_clients_know_is_always_unknown_with_a_line_to_compare() -> None:
    posture = judge_posture(view_of_round(cluster(), None))
    clients = [j for j in posture.judgements if j.check.scope is PostureScope.CLIENT]
    assert {j.check.setting for j in clients} == {
        "acks",
        "enable.idempotence",
        "max.in.flight.requests.per.connection",
        "retries",
        "delivery.timeout.ms",
        "isolation.level",
        "enable.auto.commit",
        "transactional.id",
    }
    for judgement in clients:
        [line] = judgement.lines(*Verdict)
        assert (line.verdict, str(line.reason)) == (Verdict.UNKNOWN, "client_only")
        assert line.fix.startswith(f"{line.setting}=")
        assert not judgement.is_visible


@pytest.mark.parametrize(
    ("check", "setting", "right", "wrong", "reason"),
    [
        ("producer_id_expiration", "producer.id.expiration.ms", "300000", "299999",
         "shorter_than_retries"),
        ("transactional_id_expiration", "transactional.id.expiration.ms", "86400000", "86399999",
         "shorter_than_a_day"),
        ("transactional_id_expiration", "transactional.id.expiration.ms", "604800000", "899999",
         "shorter_than_transactions"),
        ("partition_verification", "transaction.partition.verification.enable", "true", "false",
         "turned_off"),
        ("offsets_retention", "offsets.retention.minutes", "1440", "1439", "shorter_than_a_day"),
    ],
)  # fmt: skip
def test_settings_of_brokers(check: str, setting: str, right: str, wrong: str, reason: str) -> None:
    lines = lines_of(cluster(brokers={1: {setting: right}, 2: {setting: wrong}, 3: {}}), check)
    assert {name: verdict for name, (verdict, _) in said(lines).items()} == OK_ALL | {"2": "BREACH"}
    [line] = [line for line in lines if line.name == "2"]
    assert (str(line.reason), line.value, line.source) == (
        reason,
        wrong,
        ConfigSource.STATIC_BROKER,
    )
    assert line.consequence
    assert setting in line.fix


@pytest.mark.parametrize("check", ["partition_verification", "producer_id_expiration"])
def test_a_setting_that_the_release_lacks_is_unknown(check: str) -> None:
    own = {"transaction.partition.verification.enable": None, "producer.id.expiration.ms": None}
    lines = lines_of(cluster(brokers={1: own}), check)
    assert said(lines) == {"1": ("UNKNOWN", "not_in_release")}


def test_a_broker_that_may_not_be_read_is_unknown_and_the_others_are_judged() -> None:
    seen = cluster(brokers={1: {}}, failed_brokers={2: DENIED, 3: LATE})
    lines = lines_of(seen, "producer_id_expiration")
    assert said(lines) == {
        "1": ("OK", "long_enough"),
        "2": ("UNKNOWN", "not_authorized"),
        "3": ("UNKNOWN", "not_read"),
    }
    assert "DESCRIBE_CONFIGS on Cluster" in lines[1].consequence


def test_a_value_of_one_broker_at_run_time_is_set_at_that_broker() -> None:
    seen = cluster()
    own = config({"producer.id.expiration.ms": "60000"}, ConfigSource.DYNAMIC_BROKER)
    brokers = {**seen.configs.brokers, seen.brokers[1].broker_id: own}
    changed = replace(seen, configs=replace(seen.configs, brokers=brokers))
    [line] = [x for x in lines_of(changed, "producer_id_expiration") if x.verdict != Verdict.OK]
    assert "--entity-name 2 --add-config producer.id.expiration.ms=86400000" in line.fix


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(900, ("OK", "allowed"), id="as-long-as-allowed"),
        pytest.param(901, ("BREACH", "above_maximum"), id="longer"),
    ],
)
def test_timeouts_of_transactional_ids(seconds: int, expected: tuple[str, str]) -> None:
    open_ = transactions(transaction("payments", timeout=timedelta(seconds=seconds)))
    assert said(lines_of(cluster(transactions=open_), "transaction_timeout")) == {
        "payments": expected
    }


def test_the_lowest_maximum_of_the_brokers_counts_and_two_phase_commit_has_none() -> None:
    ids = transactions(
        transaction("payments", timeout=timedelta(seconds=60)),
        transaction("flink", timeout=NO_TIMEOUT),
        transaction("unseen", timeout=None),
    )
    seen = cluster(brokers={1: {}, 2: {"transaction.max.timeout.ms": "30000"}}, transactions=ids)
    assert said(lines_of(seen, "transaction_timeout")) == {
        "payments": ("BREACH", "above_maximum"),
        "flink": ("OK", "allowed"),
    }


def test_a_timeout_without_a_known_maximum_is_unknown() -> None:
    seen = cluster(brokers={}, failed_brokers={1: DENIED}, transactions=transactions(transaction()))
    assert said(lines_of(seen, "transaction_timeout")) == {
        "payments": ("UNKNOWN", "not_authorized")
    }


@pytest.mark.parametrize(
    ("check", "feature", "level", "severity"),
    [
        ("transaction_version", "transaction.version", 1, Severity.WARNING),
        ("metadata_version", "metadata.version", 26, Severity.INFO),
        ("eligible_leader_replicas", "eligible.leader.replicas.version", 0, Severity.INFO),
    ],
)
def test_feature_levels(check: str, feature: str, level: int, severity: Severity) -> None:
    used = transactions(transaction())
    seen = cluster(levels={feature.replace(".", "_"): level}, transactions=used)
    [line] = lines_of(seen, check)
    assert (said([line]), line.severity, line.value) == (
        {"default": ("BREACH", "below_supported")},
        severity,
        str(level),
    )
    assert "kafka-features.sh --bootstrap-server 127.0.0.1:9091" in line.fix
    features = seen.configs.features
    assert features is not None
    older = replace(
        features,
        finalized={n: v for n, v in features.finalized.items() if n != feature},
        supported={n: v for n, v in features.supported.items() if n != feature},
    )
    for changed, reason in (
        (replace(seen.configs, features=older), "not_in_release"),
        (replace(seen.configs, features=None), "not_read"),
        (replace(seen.configs, features=replace(features, epoch=None)), "not_read"),
        (replace(seen.configs, failed_features=FailedRead(GapCause.TIMEOUT, "late")), "not_read"),
    ):
        lines = lines_of(replace(seen, configs=changed), check)
        assert said(lines) == {"default": ("UNKNOWN", reason)}


def test_a_feature_at_level_0_that_is_supported_is_below() -> None:
    features = cluster().configs.features
    assert features is not None
    finalized = {n: v for n, v in features.finalized.items() if n != "transaction.version"}
    seen = cluster()
    changed = replace(seen.configs, features=replace(features, finalized=finalized))
    [line] = lines_of(replace(seen, configs=changed), "transaction_version")
    assert (line.value, str(line.reason)) == ("0", "below_supported")


def test_a_level_that_the_release_does_not_support_is_not_asked_for() -> None:
    seen = cluster(levels={"transaction.version": 0})
    features = seen.configs.features
    assert features is not None
    supported = {**features.supported, "transaction.version": (0, 1)}
    older = replace(features, supported=supported)
    finalized = replace(older, finalized={**features.finalized, "transaction.version": 0})
    changed = replace(seen, configs=replace(seen.configs, features=finalized))
    assert said(lines_of(changed, "transaction_version")) == {
        "default": ("UNKNOWN", "not_in_release")
    }


@pytest.mark.parametrize(
    ("topic", "setting", "reason"),
    [
        pytest.param(Topic(replicas=(1,) * 50), "replication.factor", "too_few_replicas", id="one"),
        pytest.param(Topic(replicas=(2,) * 50), "replication.factor", "too_few_replicas", id="two"),
        pytest.param(
            Topic(replicas=(3,) * 50, settings={"min.insync.replicas": "1"}),
            "min.insync.replicas",
            "one_acknowledges",
            id="minimum-1",
        ),
        pytest.param(
            Topic(replicas=(3,) * 50, settings={"min.insync.replicas": "3"}),
            "min.insync.replicas",
            "no_replica_may_fail",
            id="minimum-3",
        ),
        pytest.param(
            Topic(replicas=(3,) * 50, settings={"cleanup.policy": "compact,delete"}),
            "cleanup.policy",
            "not_compacted",
            id="deleted-by-age-too",
        ),
        pytest.param(
            Topic(replicas=(3,) * 50, settings={"unclean.leader.election.enable": "true"}),
            "unclean.leader.election.enable",
            "unclean_allowed",
            id="unclean",
        ),
        pytest.param(
            Topic(replicas=(3,) * 50, settings={"max.message.bytes": "1000"}),
            "max.message.bytes",
            "writes_too_large",
            id="small-limit",
        ),
    ],
)
@pytest.mark.parametrize(
    ("check", "name"),
    [("transaction_log", "__transaction_state"), ("offsets_topic", "__consumer_offsets")],
)
def test_the_topics_of_coordinators(
    topic: Topic, setting: str, reason: str, check: str, name: str
) -> None:
    lines = lines_of(cluster({name: topic}), check)
    wrong = [line for line in lines if line.verdict == Verdict.BREACH]
    assert [(line.name, line.setting, str(line.reason)) for line in wrong] == [
        (name, setting, reason)
    ]
    assert len(lines) == 6


def test_partitions_that_differ_from_the_setting_are_information() -> None:
    lines = lines_of(cluster({"__transaction_state": Topic(replicas=(3,) * 60)}), "transaction_log")
    [line] = [line for line in lines if line.verdict == Verdict.BREACH]
    assert (line.value, line.severity) == ("60", Severity.INFO)
    assert "The brokers say 50" in line.consequence


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        pytest.param({}, None, id="right"),
        pytest.param(
            {"transaction.state.log.replication.factor": "1"}, "would_have_too_few", id="one"
        ),
        pytest.param({"transaction.state.log.min.isr": "1"}, "would_have_too_few", id="minimum"),
    ],
)
def test_before_the_topic_exists_the_settings_that_make_it_count(
    own: Values, reason: str | None
) -> None:
    seen = cluster(brokers={1: own}, transactions=transactions(was_ever_used=False))
    lines = lines_of(seen, "transaction_log")
    assert len(lines) == 2
    reasons = [str(line.reason) for line in lines if line.verdict == Verdict.BREACH]
    assert reasons == ([] if reason is None else [reason])


def test_a_topic_that_exists_and_is_not_observed_is_not_judged() -> None:
    assert lines_of(cluster(transactions=transactions()), "transaction_log") == []


@pytest.mark.parametrize(
    ("own", "setting"),
    [
        ({"default.replication.factor": "1"}, "default.replication.factor"),
        ({"min.insync.replicas": "1"}, "min.insync.replicas"),
        ({"unclean.leader.election.enable": "true"}, "unclean.leader.election.enable"),
    ],
)
def test_what_new_topics_get(own: Values, setting: str) -> None:
    lines = lines_of(cluster(brokers={1: own}), "new_topics")
    wrong = [line for line in lines if line.verdict == Verdict.BREACH]
    assert [(line.setting, line.severity) for line in wrong] == [(setting, Severity.INFO)]
    assert len(lines) == 3


def test_brokers_that_differ_are_named_with_their_values() -> None:
    differing = {1: {}, 2: {"transaction.max.timeout.ms": "60000"}}
    lines = lines_of(cluster(brokers=differing), "brokers_differ")
    [line] = [line for line in lines if line.verdict != Verdict.OK]
    assert (line.setting, line.value) == (
        "transaction.max.timeout.ms",
        "broker 1: 900000; broker 2: 60000",
    )
    assert len(lines) > 10


def test_a_value_for_one_broker_is_removed_after_all_have_one() -> None:
    """The value that is removed may be the safe one."""
    seen = cluster()
    own = ConfigEntry("min.insync.replicas", "3", ConfigSource.DYNAMIC_BROKER)
    rest = tuple(e for e in seen.configs.brokers[BrokerId(1)].entries if e.name != own.name)
    brokers = {**seen.configs.brokers, BrokerId(2): Config((*rest, own))}
    changed = replace(seen, configs=replace(seen.configs, brokers=brokers))
    [line] = [x for x in lines_of(changed, "brokers_differ") if x.verdict != Verdict.OK]
    first, second = line.fix.split(" && ")
    assert first.endswith("brokers --entity-default --add-config min.insync.replicas=VALUE")
    assert second.endswith("brokers --entity-name 2 --delete-config min.insync.replicas")


def test_brokers_that_could_not_be_read_are_one_line() -> None:
    seen = cluster(brokers={1: {}}, failed_brokers={2: DENIED, 3: DENIED})
    [line] = [x for x in lines_of(seen, "brokers_differ") if x.verdict != Verdict.OK]
    assert (line.verdict, str(line.reason)) == (Verdict.UNKNOWN, "not_authorized")


def test_ids_of_checks_are_unique_and_equal_to_their_files() -> None:
    ids = [check.meta.check_id for check in CHECKS]
    assert len(set(ids)) == len(ids)
    for check in CHECKS:
        assert check.judge.__module__ == f"rules.posture.checks.{check.meta.check_id}"
        assert check.meta.milder <= {str(reason) for reason in check.reasons}
        assert check.meta.severity is not Severity.CRITICAL
