"""Alerts of groups name the member that owns the partition: in the finding, on the terminal, in the body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from rules.baseline.series import Metric, Series
from rules.catalogue import (
    committed_beyond_log_end,
    consumer_data_expired,
    consumer_group_rewound,
    consumer_group_stalled,
    consumer_partitions_unowned,
    read_committed_consumers_blocked,
)
from rules.evidence import Evidence
from rules.unusual import owner_of_series
from rules.verdict import Severity, Verdict
from service.alerting.alerts.alert import Alert
from service.alerting.alerts.annotations import annotations_of
from service.cli.alerts.command import evidence_lines
from tests.alerting import identity_of
from tests.factories import at as time_at
from tests.factories import commits, described, group, member, offsets, partitions, snapshot
from tests.unit.rules.catalogue.judging import Case, Judge, judged

A, B = member("a", 0), member("b")
BOTH = described(A, B)
OWNER = {"owner": "member", "member_id": "a", "client_id": "client-of-a", "host": "10.0.0.7"}
LAST_OWNER = {
    "owner": "nobody",
    "last_member_id": "a",
    "last_client_id": "client-of-a",
    "last_host": "10.0.0.7",
}


def seen(committed: int, of: Any = BOTH, *, log_start: int = 0) -> dict[str, Any]:
    """Return an observation of a group that committed in an earlier leader epoch on one partition."""
    return {
        "groups": (of,),
        "commits": commits((0, 0, committed), epochs=[4], nothing_to_read=[0]),
        "offsets": offsets(1, log_start_offset=[log_start], leader_epoch=[5]),
    }


@dataclass(frozen=True)
class Example:
    """What a rule judges, and whom its finding has to name."""

    judge: Judge
    observations: tuple[dict[str, Any], ...]
    owner: dict[str, str]
    seconds: float = 15


EXAMPLES = {
    "consumer_group_stalled": Example(
        consumer_group_stalled.judge, (seen(50), seen(50)), OWNER, seconds=60
    ),
    "consumer_data_expired": Example(
        consumer_data_expired.judge, (seen(50), seen(50, log_start=60)), OWNER
    ),
    "consumer_group_rewound": Example(consumer_group_rewound.judge, (seen(50), seen(20)), OWNER),
    "committed_beyond_log_end": Example(committed_beyond_log_end.judge, (seen(150),), OWNER),
    "read_committed_consumers_blocked": Example(
        read_committed_consumers_blocked.judge, (seen(100),), OWNER
    ),
    "consumer_partitions_unowned": Example(
        consumer_partitions_unowned.judge,
        (seen(50), *[seen(50, described(B))] * 3),
        LAST_OWNER,
    ),
}


@pytest.mark.parametrize("rule_id", EXAMPLES)
def test_an_alert_names_the_owner(rule_id: str) -> None:
    example = EXAMPLES[rule_id]
    case = Case(
        id="",
        because="",
        observations=example.observations,
        seconds=example.seconds,
        verdict=Verdict.BREACH,
        reason="",
    )
    finding = judged(example.judge, case)
    assert finding.rule.rule_id == rule_id
    check_is_named(example.owner, finding.evidence)


@pytest.mark.parametrize(
    ("partition", "named"), [(0, OWNER), (None, {}), (7, {})], ids=["known", "of-group", "gone"]
)
def test_an_unusual_lag_names_the_owner(partition: int | None, named: dict[str, str]) -> None:
    observed = snapshot(
        groups=(described(A, B, group_id="billing"), group(group_id="other")),
        partitions=partitions({"orders": 1}),
    )
    series = Series(
        cluster=observed.cluster,
        metric=Metric.READ_COMMITTED_LAG_SECONDS,
        topic="orders",
        partition=partition,
        group="billing",
    )
    owner = owner_of_series(observed, series)
    assert owner == named
    check_is_named(named, {"series": [owner]})


def check_is_named(owner: dict[str, str], evidence: Evidence) -> None:
    rows: Any = evidence.get("partitions") or evidence.get("series") or [evidence]
    assert owner.items() <= rows[0].items()
    alert = Alert.begin(
        (identity_of("orders-0"), Severity.WARNING),
        reason="",
        evidence=evidence,
        active_at=time_at(0),
    )
    body = " ".join(f"{name} {text}" for name, text in annotations_of(alert, None).items())
    lines = " ".join(f"{name} {text}" for name, text in evidence_lines({"evidence": evidence}))
    for name, value in owner.items():
        assert f"{name} {value}" in body
        assert f"{name} {value}" in lines
