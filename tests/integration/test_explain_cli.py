"""`tidemark explain` on what real clients and brokers print, with what a service and the brokers know of it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from confluent_kafka import KafkaException, Producer

from service.rounds.latest import Latest
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.terminal.exit_codes import ExitCode
from tests.integration.clients import produce, produce_in_transaction, transactional_producer
from tests.integration.serve.served import ROOT, plain_environment
from tests.integration.serving import serving
from tests.schemas import validate
from tests.unit.service.api.given import World, service_state
from tests.unit.service.api.sequences.sequences import LOSS, after
from tests.unit.service.cli.app_api import judgements

pytestmark = pytest.mark.integration

NewName = Callable[[str], str]
EXPIRED: Final = (
    "ERROR [Producer clientId=p-1] org.apache.kafka.common.errors.TimeoutException: Expiring 3 record(s) for {place}:"
    "120000 ms has passed since batch creation"
)


def explain(text: str, *options: str) -> tuple[int, dict[str, Any]]:
    """Explain a text as a pipe gives it; return the exit code and the document."""
    done = subprocess.run(
        [sys.executable, "-m", "service", "explain", "-", "-o", "json", *options],
        cwd=ROOT, env=plain_environment(), input=text, capture_output=True, text=True, check=False, timeout=180,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    validate("explain", document)
    return done.returncode, document


class Lines(logging.Handler):
    """What librdkafka logs, as the application's log has it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line."""
        self.lines.append(f"{record.levelname} {record.getMessage()}")


def fence(bootstrap: str, topic: str, transactional_id: str) -> list[str]:
    """Fence a producer with a second one of its id; return what it logged and raised."""
    log = Lines()
    logger = logging.getLogger(transactional_id)
    logger.addHandler(log)
    settings = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id}
    first = Producer(settings, logger=logger)
    first.init_transactions(30)
    produce_in_transaction(first, topic, 3)
    second = transactional_producer(bootstrap, transactional_id)
    for call in (first.commit_transaction, first.poll):
        try:
            call(0 if call == first.poll else 30)
        except KafkaException as error:
            log.lines.append(
                f"ERROR transactional id '{transactional_id}' failed: {error.args[0]!r}"
            )
    del second
    return log.lines


def test_a_real_fenced_producer_is_one_incident_and_its_id_is_described(
    cluster: Sandbox, admin: SandboxAdmin, new_name: NewName
) -> None:
    topic, id_ = new_name("orders"), new_name("payments")
    admin.create_topic(topic)
    lines = fence(cluster.bootstrap_servers, topic, id_)
    code, document = explain("\n".join(lines), "--bootstrap-servers", cluster.bootstrap_servers)
    incident = document["incidents"][0]
    assert (incident["meaning"], incident["transactional_producer"]) == (
        "producer_fenced",
        "fatal",
    ), lines
    assert incident["records"] == "neither"
    assert code == ExitCode.OK, document
    assert (id_, "brokers") in [(row["about"], row["by"]) for row in document["answers"]]


def test_brokers_add_the_leader_and_the_offsets(
    cluster: Sandbox, admin: SandboxAdmin, new_name: NewName
) -> None:
    topic = new_name("orders")
    admin.create_topic(topic)
    produce(cluster.bootstrap_servers, topic, 5)
    text = EXPIRED.format(place=f"{topic}-0")
    code, document = explain(text, "--bootstrap-servers", cluster.bootstrap_servers)
    assert code == ExitCode.OK, document["errors"]
    (answer,) = document["answers"]
    assert (answer["about"], answer["verdict"]) == (f"{topic}-0", "HAS_LEADER")
    assert "LSO 5, HWM 5" in answer["summary"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Serve what a round has proven of a loss of orders-0."""
    view = after(*LOSS)
    seen = service_state(snapshot=view.snapshot, view=view, at=view.now, judgements=judgements())
    with serving(World(latest=Latest(seen)).app()) as running:
        yield f"http://{running.address[0]}:{running.address[1]}"


def test_a_service_adds_its_findings(server: str) -> None:
    code, document = explain(EXPIRED.format(place="orders-0"), "--server", server)
    assert code == ExitCode.OK, document["errors"]
    assert document["answers"]
    assert {row["by"] for row in document["answers"]} == {"service"}
    assert {row["about"] for row in document["answers"]} == {"orders-0"}


def test_what_a_service_does_not_know_is_not_therefore_in_order(server: str) -> None:
    _, document = explain(EXPIRED.format(place="refunds-7"), "--server", server)
    (answer,) = document["answers"]
    assert answer["verdict"] in ("OK", "UNKNOWN")
    assert ("not all is seen" in answer["summary"]) == (answer["verdict"] == "UNKNOWN")
