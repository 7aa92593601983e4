"""A real Java producer and real brokers tell of records that fail, through the JMX exporter's agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from rules import names
from rules.baseline.series import Series
from rules.catalogue import record_error_rate_high
from rules.facts.scrapes import ClientReading, Scrapes, reporting_producers
from rules.names import Metric
from rules.remembering import view_of_round
from rules.verdict import Verdict
from service.cli.main import run
from service.history.extraction import Extraction, JudgedRound
from service.history.series_ids import CLIENT_METRICS
from service.metrics.scraped_counters import Labels, scraped_counters
from service.rounds.latest import Latest
from service.runtime.clock import utc_now
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.state import CONTROLLER_ID
from service.terminal.exit_codes import ExitCode
from service.terminal.words import printable
from tests.factories import snapshot
from tests.integration.failing_producer import AGENTS_OWN, CLIENT, failing_producer
from tests.integration.scrape_watching import watching
from tests.integration.serving import serving
from tests.integration.test_scrape_watch import wait_for
from tests.schemas import validate
from tests.unit.service.api.given import World, service_state

pytestmark = pytest.mark.integration

RULES: Final = {
    "none, so that names are the agent's own": AGENTS_OWN,
    "of the operator's own, in the spelling that Strimzi and Connect have": r"""
lowercaseOutputName: true
rules:
  - pattern: kafka\.producer<type=(producer-topic)-metrics, client-id=(.+), topic=(.+)><>(record-.*total)
    name: kafka_$1_$4
    labels: {topic: "$3", clientId: "$2"}
    type: GAUGE
  - pattern: kafka\.producer<type=(producer)-metrics, client-id=(.+)><>(record-.*total)
    name: kafka_$1_$3
    labels: {clientId: "$2"}
    type: COUNTER
""",
}


def of_topic(seen: Scrapes, topic: str | None) -> list[ClientReading]:
    return [one for one in seen.clients if one.topic == topic and one.client_id == CLIENT]


def has_failed(seen: Scrapes, topic: str | None) -> bool:
    return any(one.errors is not None and one.errors.rises for one in of_topic(seen, topic))


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_a_java_producer_whose_records_fail_is_told_with_its_topic(  # noqa: PLR0917 - fixtures
    cluster: Sandbox,
    admin: SandboxAdmin,
    new_name: Callable[[str], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rules: str,
) -> None:
    topic = new_name("rejected")
    producer, address = failing_producer(cluster, admin, topic, tmp_path, rules=rules)
    pages = [
        f"http://{address}/metrics",
        cluster.metrics_url(1),
        cluster.metrics_url(CONTROLLER_ID),
    ]
    began = utc_now()
    with watching(pages=",".join(pages), interval_seconds=1.0, timeout_seconds=10.0) as watch:
        wait_for(watch, lambda now: len(now.fresh) == 2)  # its page is not there yet
        with producer:
            wait_for(watch, lambda now: has_failed(now, topic) and has_failed(now, None))
            seen = wait_for(watch, lambda now: bool(rejections(now)))
            told = reporting_producers(seen, topic, began, utc_now())
            assert told.only_raised is not None
            assert (told.only_raised.client_id, told.only_raised.address) == (
                CLIENT,
                address,
            )
            (mine,) = of_topic(seen, topic)
            assert mine.retries is not None, "they are told, though nothing was sent again"
            wait_for(watch, lambda now: breached_topics(now) == {topic})
            (elections,) = seen.unclean_elections
            assert elections.counted.total is not None
            check_counters(scraped_counters(seen), (CLIENT, address, topic))
            check_list(seen, topic, address, capsys)
            check_history(seen, topic)
    assert producer.counts.failed > 0


def check_counters(totals: Mapping[Metric, Mapping[Labels, int]], client: Labels) -> None:
    """The counters that are exposed name the producer, the broker and the controller."""
    assert totals[names.RECORD_ERRORS][client] > 0
    assert totals[names.RECORD_RETRIES][client] == 0
    errors = [labels[1:] for labels in totals[names.BROKER_REQUEST_ERRORS]]
    assert ("Produce", "INVALID_TIMESTAMP") in errors
    assert len(totals[names.UNCLEAN_ELECTIONS]) == 1


def check_list(seen: Scrapes, topic: str, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The API and the command list the producer by its topic, with what rose and when."""
    world = World(latest=Latest(service_state(snapshot=snapshot(scrapes=seen))))
    with serving(world.app()) as running:
        server = "http://{}:{}".format(*running.address)
        options = ["--topic", topic, "--client-id", CLIENT, "--server", server]
        assert run(["record-errors", "ls", "--failing", *options, "-o", "json"]) == ExitCode.OK
        document = json.loads(capsys.readouterr().out)
        validate("record-errors ls", document)
        (client,) = document["clients"]
        assert (client["address"], client["state"]) == (address, "current")
        assert client["errors"]["total"] > 0
        assert client["errors"]["last_rise"]["until"] == client["last_rise_at"]
        assert (client["retries"]["total"], client["retries"]["last_rise"]) == (0, None)
        assert run(["record-errors", "ls", *options, "-o", "tsv"]) == ExitCode.OK
        assert printable(CLIENT) in capsys.readouterr().out


def check_history(seen: Scrapes, topic: str) -> None:
    """The producer has series of its own, and its retries are a known zero."""
    extraction = Extraction("c", interval_seconds=1.0)
    samples = extraction.samples(JudgedRound(snapshot=snapshot(scrapes=seen), before=None))
    values = dict(zip(samples.ids.tolist(), samples.values.tolist(), strict=True))
    errors, retries = (
        values[Series(cluster="c", metric=metric, topic=topic, client_id=CLIENT).series_id]
        for metric in CLIENT_METRICS
    )
    assert errors > 0
    assert retries == 0


def rejections(seen: Scrapes) -> list[int]:
    """Return by how much the brokers' count of these rejections went up."""
    return [
        rise.count or 0
        for one in seen.request_errors
        if (one.request, one.error) == ("Produce", "INVALID_TIMESTAMP")
        for rise in one.counted.rises
    ]


def breached_topics(seen: Scrapes) -> set[str | None]:
    """Return the topics of which the rule says that this client's records fail."""
    judgement = record_error_rate_high.judge(view_of_round(snapshot(scrapes=seen), None))
    found = judgement.findings(Verdict.BREACH)
    return {one.labels.get("topic") for one in found if one.labels["client"] == CLIENT}
