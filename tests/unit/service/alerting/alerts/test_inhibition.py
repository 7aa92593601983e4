"""Inhibition: an alert is not told while another one explains it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rules.catalogue.all_rules import RULES
from rules.evidence import Scalar
from rules.verdict import Kind, Severity, SubjectKind
from service.alerting.alerts.alert import Alert
from service.alerting.alerts.inhibition import DEFAULT_INHIBITIONS, Inhibition, Inhibitor
from service.alerting.alerts.matchers import parse_matchers
from tests.factories import at


def alert(rule_id: str, **labels: str) -> Alert:
    return Alert.begin(
        ((rule_id, tuple(sorted(labels.items()))), Severity.CRITICAL),
        reason="said",
        evidence={},
        active_at=at(0),
    )


def inhibition(source: str, target: str, *equal: str) -> Inhibition:
    return Inhibition(
        source=parse_matchers(source), target=parse_matchers(target), equal=tuple(equal)
    )


DOWN_MUTES_LAG = inhibition("alertname=down", "alertname=lag", "topic")


def test_a_source_mutes_what_it_explains_and_says_that_it_does() -> None:
    source = alert("down", topic="orders")
    inhibitor = Inhibitor([DOWN_MUTES_LAG], [source])
    assert inhibitor.inhibited_by(alert("lag", topic="orders")) == source.fingerprint


def test_both_have_to_agree_in_the_labels_of_equal() -> None:
    inhibitor = Inhibitor([DOWN_MUTES_LAG], [alert("down", topic="orders")])
    assert inhibitor.inhibited_by(alert("lag", topic="payments")) is None


def test_a_missing_label_is_an_empty_one_on_both_sides() -> None:
    inhibitor = Inhibitor([DOWN_MUTES_LAG], [alert("down", cluster="a")])
    assert inhibitor.inhibited_by(alert("lag", cluster="b")) is not None
    assert inhibitor.inhibited_by(alert("lag", topic="orders")) is None


def test_a_source_does_not_mute_itself() -> None:
    source = alert("down", topic="orders")
    assert Inhibitor([DOWN_MUTES_LAG], [source]).inhibited_by(source) is None


BOTH = inhibition('alertname=~"a|b"', 'alertname=~"b|c"', "topic")


@pytest.mark.parametrize(
    ("sources", "target", "is_muted"),
    [
        (["b"], "b", False),  # nothing mutes itself
        (["a"], "b", True),  # a is no target
        (["b"], "c", True),  # c is no source
        (["a", "b"], "b", True),
        (["a"], "a", False),
    ],
)
def test_alerts_on_both_sides_do_not_mute_one_another(
    sources: list[str],
    target: str,
    is_muted: bool,  # noqa: FBT001
) -> None:
    firing = [alert(name, topic="orders") for name in sources]
    by = Inhibitor([BOTH], firing).inhibited_by(alert(target, topic="orders", group="billing"))
    assert (by is not None) is is_muted


def test_which_source_is_named_does_not_depend_on_their_order() -> None:
    firing = [alert("down", topic="orders", cluster=name) for name in "abc"]
    target = alert("lag", topic="orders")
    names = {
        Inhibitor([DOWN_MUTES_LAG], order).inhibited_by(target) for order in (firing, firing[::-1])
    }
    assert len(names) == 1


RULE_OF = {one.meta.rule_id: one.meta for one in RULES}
PLACE = {"cluster": "default", "topic": "orders", "partition": "0"}


def muted_by(source: str) -> set[str]:
    """Return which of our rules are muted by one on the same partition."""
    inhibitor = Inhibitor(DEFAULT_INHIBITIONS, [alert(source, **PLACE)])
    return {
        name for name in RULE_OF if inhibitor.inhibited_by(alert(name, **PLACE, group="billing"))
    }


def test_what_a_partition_without_a_leader_explains() -> None:
    assert muted_by("partition_offline") == {
        "partition_under_min_isr",
        "high_watermark_stuck",
        "transaction_marker_stuck",
        "last_stable_offset_stuck",
        "read_committed_consumers_blocked",
    }


def test_what_a_hanging_transaction_explains() -> None:
    assert muted_by("transaction_hanging") == {
        "last_stable_offset_stuck",
        "read_committed_consumers_blocked",
    }


def test_nothing_is_muted_on_another_partition() -> None:
    inhibitor = Inhibitor(DEFAULT_INHIBITIONS, [alert("partition_offline", **PLACE)])
    elsewhere = {**PLACE, "partition": "1"}
    assert all(inhibitor.inhibited_by(alert(name, **elsewhere)) is None for name in RULE_OF)


def test_events_neither_mute_nor_are_muted() -> None:
    events = {name for name, meta in RULE_OF.items() if meta.kind is Kind.EVENT}
    assert events
    assert not any(muted_by(name) for name in events)
    assert not events & set().union(*map(muted_by, RULE_OF))


def test_only_rules_that_pages_are_written_for_mute() -> None:
    sources = {name for name in RULE_OF if muted_by(name)}
    assert {RULE_OF[name].severity for name in sources} == {Severity.CRITICAL}
    assert {RULE_OF[name].subject for name in sources} == {SubjectKind.PARTITION}


def test_no_two_rules_mute_each_other() -> None:
    pairs = {(source, target) for source in RULE_OF for target in muted_by(source)}
    assert not pairs & {(target, source) for source, target in pairs}


GONE_2 = alert("broker_gone", cluster="default", broker="2")
GONE_3 = alert("broker_gone", cluster="default", broker="3")


def misses(rule_id: str, *brokers: int, reason: str = "brokers_gone") -> Alert:
    rows: list[dict[str, Scalar]] = [{"broker": broker} for broker in brokers]
    return replace(alert(rule_id, **PLACE), reason=reason, evidence={"gone_brokers": rows})


@pytest.mark.parametrize(
    "rule_id", ["partition_offline", "partition_under_min_isr", "partition_under_replicated"]
)
def test_brokers_that_are_gone_explain_only_partitions_that_miss_no_others(rule_id: str) -> None:
    inhibitor = Inhibitor(DEFAULT_INHIBITIONS, [GONE_2])
    assert inhibitor.inhibited_by(misses(rule_id, 2)) == GONE_2.fingerprint
    assert inhibitor.inhibited_by(misses(rule_id, 2, 3)) is None
    assert inhibitor.inhibited_by(misses(rule_id, 2, reason="out_of_sync")) is None
    assert inhibitor.inhibited_by(misses(rule_id)) is None
    both = Inhibitor(DEFAULT_INHIBITIONS, [GONE_2, GONE_3])
    assert both.inhibited_by(misses(rule_id, 2, 3)) is not None


def test_a_milder_alert_of_a_broker_mutes_no_critical_one() -> None:
    identity = ("broker_gone", (("broker", "2"), ("cluster", "default")))
    mild = Alert.begin(
        (identity, Severity.WARNING), reason="replicas_missing", evidence={}, active_at=at(0)
    )
    inhibitor = Inhibitor(DEFAULT_INHIBITIONS, [mild])
    assert inhibitor.inhibited_by(misses("partition_offline", 2)) is None
    assert inhibitor.inhibited_by(misses("partition_under_replicated", 2)) is not None


def test_every_rule_that_is_named_exists() -> None:
    named = {
        name
        for one in DEFAULT_INHIBITIONS
        for matcher in (*one.source, *one.target)
        if matcher.name == "alertname"
        for name in matcher.value.split("|")
    }
    assert named <= set(RULE_OF)
