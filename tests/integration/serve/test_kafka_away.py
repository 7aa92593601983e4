"""The whole cluster is away for several rounds: blindness is told, and nothing is made up."""

from __future__ import annotations

from typing import Final

import pytest

from rules.names import METRICS, MetricType
from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from tests.integration.serve.conftest import Serve
from tests.integration.serve.kafka import Kafka
from tests.integration.serve.served import SEE_SECONDS, Document, Served

pytestmark = pytest.mark.integration

OFFLINE = "partition_offline"
POSTURE = "exactly_once_posture"
ALSO_TOLD = "partition_under_min_isr"  # true as well, while brokers are away
# How the cluster is; counters tell what happened so far, and go on being shown.
OBSERVED: Final = tuple(
    f"{metric.name}{{"
    for metric in METRICS
    if metric.name.startswith("tidemark_kafka_") and metric.type is MetricType.GAUGE
)
BROKERS = (1, 2, 3)


def given_finding(served: Served, kafka: Kafka, cluster: Sandbox) -> Document:
    """Kill the only replica's broker; return the finding about the partition."""
    kafka.admin.create_topic(f"{kafka.topic}-single", assignment=[[BROKERS[0]]])
    served.wait_rounds(2)
    cluster.kill(BROKERS[0])
    wait_finding(served, "breach")
    [found] = served.findings(OFFLINE)
    return found


def wait_finding(served: Served, verdict: str) -> None:
    """Wait until one partition is offline, with a verdict."""

    def is_so() -> bool:
        return [item["verdict"] for item in served.findings(OFFLINE)] == [verdict]

    assert wait_until(is_so, timeout_seconds=SEE_SECONDS), served.reported()


def wait_blind(served: Served, rounds: int) -> None:
    def blind() -> int:
        return sum(event["outcome"] == "failed" for event in served.rounds())

    assert wait_until(lambda: blind() >= rounds, timeout_seconds=SEE_SECONDS), served.reported()


def wait_no_findings(served: Served) -> None:
    """Wait until nothing is reported but that a topic has a single replica."""

    def is_gone() -> bool:
        return all(item["rule"] == POSTURE for item in served.findings())

    assert wait_until(is_gone, timeout_seconds=SEE_SECONDS), served.reported()


def observed(served: Served) -> list[str]:
    return [series for series in served.metrics() if series.startswith(OBSERVED)]


def check_blind(served: Served) -> None:
    status, page = served.status(), served.metrics()
    assert (status["round"]["outcome"], status["is_current"]) == ("failed", False)
    assert "no bootstrap address answered" in status["round"]["error"]
    assert observed(served) == []
    assert page['tidemark_rounds_total{cluster="default",outcome="failed"}'] >= 2
    assert page['tidemark_store_up{cluster="default"}'] == 1
    assert served.is_ready, "a restart of Tidemark would not bring Kafka back"


def test_a_finding_stays_open_and_unknown_until_kafka_is_back(
    serve: Serve, kafka: Kafka, faults: Sandbox
) -> None:
    served = serve(settings={"KAFKA__REQUEST_TIMEOUT_SECONDS": "1"}).wait_ready()
    found = given_finding(served, kafka, faults)
    for broker in BROKERS[1:]:
        faults.pause(broker)
    wait_blind(served, 2)
    check_blind(served)
    [blind] = served.findings(OFFLINE)
    kept = ("id", "since", "labels")
    assert {name: blind[name] for name in kept} == {name: found[name] for name in kept}
    assert blind["verdict"] == "unknown"
    assert blind["last_breach_at"] < blind["last_judged_at"]

    for broker in BROKERS[1:]:
        faults.resume(broker)
    wait_finding(served, "breach")
    [again] = served.findings(OFFLINE)
    assert (again["id"], again["since"]) == (found["id"], found["since"])
    faults.start(BROKERS[0])
    wait_no_findings(served)
    assert observed(served)
    check_story(served, found["id"])


def check_story(served: Served, name: str) -> None:
    """One opening, UNKNOWN and BREACH in turns, one end; nothing else is left of the outage."""
    told = served.document(f"/api/v1/findings/{name}")["transitions"]
    verdicts = [(step["from_verdict"], step["to_verdict"]) for step in told]
    assert verdicts[:3] == [(None, "breach"), ("breach", "unknown"), ("unknown", "breach")]
    assert [pair[1] for pair in verdicts].index("ok") == len(verdicts) - 1
    assert [pair[0] for pair in verdicts].count(None) == 1
    ended = served.findings(state="ended")
    assert {item["rule"] for item in ended} <= {OFFLINE, ALSO_TOLD}
    assert {item["end_reason"] for item in ended} == {"ok"}
    assert served.stop() == 0
