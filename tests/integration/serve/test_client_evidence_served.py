"""What a running service says of clients that evidence names: the finding, the API, and after a restart of it."""

from __future__ import annotations

import pytest

from service.runtime.clock import wait_until
from service.sandbox.workloads.producer import IdempotentProducer
from tests.integration.serve.conftest import Serve
from tests.integration.serve.kafka import Kafka
from tests.integration.serve.served import SEE_SECONDS, Document, Served

pytestmark = pytest.mark.integration

RULE, CHECK = "exactly_once_posture", "client_idempotence"
PLAIN = {"acks": "1", "enable.idempotence": "false"}


def lines(served: Served) -> list[Document]:
    """Return what the API says is wrong with producers."""
    items: list[Document] = served.document(f"/api/v1/posture?check={CHECK}&verdict=wrong")["items"]
    return items


def findings(served: Served) -> list[Document]:
    """Return the open findings of the check."""
    return [each for each in served.findings(RULE) if each["labels"]["check"] == CHECK]


def test_a_producer_that_is_not_idempotent_is_named_and_remembered(
    serve: Serve, kafka: Kafka
) -> None:
    served = serve().wait_ready()
    with IdempotentProducer(kafka.bootstrap, topic=kafka.topic, rate=20, settings=PLAIN):
        assert wait_until(lambda: bool(findings(served)), timeout_seconds=SEE_SECONDS), (
            served.reported()
        )
    [line], [finding] = lines(served), findings(served)
    assert line["name"] == f"producers without an id on {kafka.topic}-0"
    assert (line["verdict"], line["severity"], line["reason"]) == (
        "wrong",
        "info",
        "only_not_idempotent",
    )
    evidence = line["evidence"]
    assert (evidence["topic"], evidence["partition"]) == (kafka.topic, 0)
    assert evidence["first_record_time"] <= evidence["last_record_time"]
    assert evidence["first_observed_at"] <= evidence["last_observed_at"]
    assert (finding["severity"], finding["evidence"]["names"]) == ("info", line["name"])
    assert f"wrote to {kafka.topic}-0" in finding["evidence"]["consequence"]
    assert served.stop() == 0
    again = serve().wait_ready()
    assert wait_until(lambda: bool(lines(again)), timeout_seconds=SEE_SECONDS), again.reported()
    [remembered] = lines(again)
    assert remembered["evidence"]["first_offset"] == evidence["first_offset"]
    assert again.stop() == 0
