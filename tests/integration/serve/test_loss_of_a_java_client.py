"""A real Java producer meets a real loss: its own metrics show retries alone, and the event names it for that."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from rules.facts.sequence_verdicts import Phase, SequenceClass
from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.jars import agent_jar, read_lock
from service.sandbox.cluster.ports import HOST, choose_free
from service.sandbox.faults import Client, Prepared, SequenceTruth, prepare_sequence
from service.sandbox.workloads.stepwise_producer import JavaConsoleProducer
from tests.integration.failing_producer import AGENTS_OWN
from tests.integration.outside import only
from tests.integration.sandbox_logs import log_files_of
from tests.integration.serve.conftest import Serve
from tests.integration.serve.served import ROOT, SEE_SECONDS, Document, Served, plain_environment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

FAULT = "sequence-loss"  # and how its topics begin


@contextmanager
def exposed(
    cluster: Sandbox, folder: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Prepared[SequenceTruth]]:
    """Prepare the loss with a client that serves its metrics; brokers that start later do not."""
    config = folder / "agent.yaml"
    config.write_text(AGENTS_OWN, encoding="utf-8")
    jar = agent_jar(Path(cluster.state.cache) / "jars", read_lock(cluster.state.release.lock_file))
    with ExitStack() as stack:
        with monkeypatch.context() as environment:
            agent = f"-javaagent:{jar}={HOST}:{port}:{config}"
            environment.setenv("JAVA_TOOL_OPTIONS", agent)
            prepared = stack.enter_context(
                prepare_sequence("sequence-loss", cluster, client=Client.JAVA)
            )
        yield prepared


def clients_of(served: Served, topic: str) -> list[Document]:
    items: list[Document] = served.document(f"/api/v1/record-errors?topic={topic}")["items"]
    return items


def event_of(served: Served, topic: str) -> Document | None:
    items = served.document(f"/api/v1/sequences?topic={topic}&state=all")["items"]
    return items[0] if items else None


def printed(served: Served, *arguments: str) -> str:
    """Return what a command prints of the service."""
    command = [sys.executable, "-m", "service", *arguments, "--server", served.address]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=plain_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    return done.stdout + done.stderr


def test_a_loss_names_the_client_whose_retries_alone_rose(
    faults: Sandbox, serve: Serve, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = choose_free(1)
    settings = {
        "BROKER_LOGS__FILES": json.dumps(log_files_of(faults)),
        "SCRAPES__PAGES": f"http://{HOST}:{port}/metrics",
        "SCRAPES__INTERVAL_SECONDS": "0.5",
    }
    served = serve(topics=f"{FAULT}.*", groups=f"{FAULT}.*", interval=1, settings=settings)
    served.wait_ready()
    with exposed(faults, folder, port, monkeypatch) as prepared:
        topic = prepared.topic

        def is_watched() -> bool:
            partitions = served.document(f"/api/v1/partitions?topic={topic}")["items"]
            return bool(partitions and clients_of(served, topic))

        assert wait_until(is_watched, timeout_seconds=SEE_SECONDS), served.reported()
        served.wait_rounds(2)

        def has_retried() -> bool:
            return any(client["retries"]["last_rise"] for client in clients_of(served, topic))

        # The fault ends its client at once: on a busy machine before anybody has read its metrics.
        end = JavaConsoleProducer.close
        monkeypatch.setattr(
            JavaConsoleProducer,
            "close",
            lambda client: (wait_until(has_retried, timeout_seconds=SEE_SECONDS), end(client)),
        )
        truth = prepared.inject()

        def is_named() -> bool:
            event = event_of(served, topic)
            return (
                event is not None
                and event["phase"] == Phase.CONFIRMED
                and bool(event["evidence"]["record_errors"])
            )

        assert wait_until(is_named, timeout_seconds=SEE_SECONDS), event_of(served, topic)
        assert not truth.application_notified
        check_event(served, truth, f"{HOST}:{port}")
        check_lists(served, topic)
        check_past(served, topic)
    assert served.stop() == 0


def check_event(served: Served, truth: SequenceTruth, address: str) -> None:
    """The event is the loss that the offsets prove, and names the client beside it."""
    event = event_of(served, truth.topic)
    assert event is not None
    assert event["producer_id"] == only(truth).producer_id
    assert (event["class"], event["phase"]) == (SequenceClass.LOSS, Phase.CONFIRMED)
    (client,) = event["evidence"]["record_errors"]
    assert (client["address"], client["topic"]) == (address, truth.topic)
    assert client["errors"] == 0, "the client was told nothing"
    assert client["retries"] > 0
    assert client["retries_since"] < client["retries_until"]
    assert event["evidence"]["client_metrics"] == "incomplete", "it was not there before"
    shown = printed(served, "sequence", "show", f"{truth.topic}-0", "-o", "wide")
    assert f"{client['client_id']} at {address}: {client['retries']} retried record" in shown


def check_lists(served: Served, topic: str) -> None:
    """The list has the same rise, while its process is there and for a while after."""
    (client,) = clients_of(served, topic)
    assert client["retries"]["last_rise"] is not None
    assert (client["errors"]["total"], client["errors"]["last_rise"]) == (0, None)
    shown = printed(served, "record-errors", "ls", "--topic", topic, "--failing", "-o", "tsv")
    assert client["address"] in shown


def check_past(served: Served, topic: str) -> None:
    """History has the retries by client, and the incident report names the client."""
    (client,) = clients_of(served, topic)
    series = f"metric=client_record_retry_rate&topic={topic}&client_id={client['client_id']}"
    values = served.document(f"/api/v1/measured?{series}")["measured"]["values"]
    assert any(row["value"] for row in values)
    report = json.loads(printed(served, "incident", "--from", "-30m", "-o", "json").splitlines()[0])
    (named,) = report["clients"]
    assert (named["of_topic"], named["client_id"]) == (topic, client["client_id"])
