"""Alerts are known by their labels, and by the very fingerprint that Alertmanager gives them."""

from __future__ import annotations

import pytest

from rules.verdict import Severity
from service.alerting.alerts.identity import fingerprint, labels_of

# Read from a running Alertmanager.
KNOWN: list[tuple[dict[str, str], str]] = [
    (
        {"alertname": "HangingTransaction", "severity": "critical", "topic": "orders"},
        "139b21fd24c3e5fc",
    ),
    (
        {
            "alertname": "some_rule",
            "cluster": "default",
            "partition": "0",
            "severity": "warning",
            "topic": 'zähler-"x"',
        },
        "ac54dc1b1e00fe55",
    ),
]


@pytest.mark.parametrize(("labels", "known"), KNOWN)
def test_fingerprints_are_alertmanagers(labels: dict[str, str], known: str) -> None:
    assert fingerprint(labels) == known


def test_the_order_of_labels_is_irrelevant() -> None:
    labels = {"alertname": "HangingTransaction", "severity": "critical", "topic": "orders"}
    assert fingerprint(dict(reversed(labels.items()))) == fingerprint(labels)


def test_where_a_name_ends_matters() -> None:
    assert fingerprint({"ab": "c"}) != fingerprint({"a": "bc"})


def test_labels_are_the_findings_the_rule_and_the_severity_by_name() -> None:
    identity = ("partition_offline", (("cluster", "default"), ("topic", "orders")))
    assert list(labels_of(identity, Severity.CRITICAL).items()) == [
        ("alertname", "partition_offline"),
        ("cluster", "default"),
        ("severity", "critical"),
        ("topic", "orders"),
    ]


def test_the_rule_and_the_severity_win_over_labels_of_their_names() -> None:
    identity = ("some_rule", (("alertname", "x"), ("severity", "y")))
    assert labels_of(identity, Severity.INFO) == {"alertname": "some_rule", "severity": "info"}


def test_empty_labels_are_left_out_as_alertmanager_does() -> None:
    identity = ("consumer_group_stalled", (("cluster", "default"), ("group", "")))
    assert "group" not in labels_of(identity, Severity.WARNING)


def test_another_severity_is_another_alert() -> None:
    identity = ("some_rule", (("cluster", "default"),))
    mild, bad = labels_of(identity, Severity.WARNING), labels_of(identity, Severity.CRITICAL)
    assert fingerprint(mild) != fingerprint(bad)


def test_text_that_is_no_unicode_has_a_fingerprint_too() -> None:
    assert len(fingerprint({"group": "\udcff"})) == 16
