"""`tidemark loss` as a person types it, and a real service with a real database before it."""

from __future__ import annotations

import http.server
import json
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from rules import names
from rules.catalogue import committed_records_lost
from rules.judgement import Finding
from rules.open_findings import Change, Step
from rules.verdict import Verdict
from service.api.findings.views import finding_id
from service.runtime.clock import utc_now, wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.state import CONTROLLER_ID
from service.sandbox.faults import prepare_loss
from service.sandbox.faults.loss_truth import LossTruth
from service.storage.database.engine import open_database
from service.storage.findings import findings
from service.terminal.exit_codes import ExitCode
from tests.faults import panels
from tests.integration.serve.claims import assert_shown
from tests.integration.serve.conftest import Serve
from tests.integration.serve.kafka import Kafka
from tests.integration.serve.scraping import job, prometheus
from tests.integration.serve.served import ROOT, SEE_SECONDS, Served, plain_environment
from tests.integration.test_receive_cli import receiver
from tests.unit.service.api.losses.losses import PROVEN

pytestmark = pytest.mark.integration

SCHEMA = ROOT / "docs" / "schemas" / "incident.json"
SECRET = "of-the-scraper-of-this-test"  # noqa: S105 - of a service that lives briefly

Done = subprocess.CompletedProcess[str]


def loss(server: str, *arguments: str, **environment: str) -> Done:
    return subprocess.run(
        [sys.executable, "-m", "service", "loss", *arguments],
        cwd=ROOT,
        env={**plain_environment(), "TIDEMARK_SERVER": server, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


def store_loss(directory: Path, topic: str, **evidence: Any) -> None:
    """Store what a round stores that proves a loss, in the database of a service that is down."""
    database = open_database(None, directory)
    try:
        save_loss(database.engine, 1, topic, **evidence)
    finally:
        database.close()


def save_loss(engine: Engine, cluster: int, topic: str, partition: int = 0, **evidence: Any) -> str:
    """Save a proven loss as two rounds do, of a cluster by its row; return the id of its finding."""
    found = Finding(
        rule=committed_records_lost.RULE,
        labels={"cluster": "default", "topic": topic, "partition": str(partition)},
        verdict=Verdict.BREACH,
        reason="lost",
        evidence={**PROVEN, **evidence},
    )
    for seconds, step in ((2, Step.OPENED), (1, Step.AGAIN)):
        change = Change(
            step=step,
            identity=found.identity,
            before=None if step is Step.OPENED else Verdict.BREACH,
            after=Verdict.BREACH,
            finding=found,
        )
        with engine.begin() as connection:
            findings.save(connection, cluster, [change], utc_now() - timedelta(seconds=seconds))
    return finding_id(found.rule.rule_id, found.labels)


@pytest.mark.smoke
def test_a_stored_loss_is_told_to_the_next_person(serve: Serve, kafka: Kafka) -> None:
    first = serve().wait_ready()
    first.wait_status(lambda seen: seen["round"]["outcome"] == "complete", "no whole round")
    nothing = loss(first.address, "ls")
    assert (nothing.returncode, nothing.stderr) == (ExitCode.OK, ""), nothing.stdout
    assert "no loss is known  complete" in nothing.stdout
    assert loss(first.address, "ls", "--topic", "x").returncode == ExitCode.NOTHING_MATCHED
    unknown = loss(first.address, "show", f"{kafka.topic}-0")
    assert unknown.returncode == ExitCode.NOTHING_MATCHED
    assert unknown.stderr == f"tidemark: no loss is known of {kafka.topic}-0\n"
    assert first.stop() == 0

    store_loss(first.start.directory, kafka.topic, settled_to=117)
    second = serve().wait_ready()
    second.wait_status(lambda seen: seen["round"]["outcome"] == "complete", "no whole round")
    listed = loss(second.address, "ls")
    assert (listed.returncode, listed.stderr) == (ExitCode.LOST, "")
    assert "[73, 100) 27  " in listed.stdout
    told = json.loads(loss(second.address, "ls", "--group", "bill*", "-o", "json").stdout)
    ((item,),) = (incident["partitions"] for incident in told["incidents"])
    assert (told["complete"], item["topic"], item["more"]) == (
        True,
        kafka.topic,
        {"settled_to": 117},
    )

    for name in (item["id"], f"{kafka.topic}-0"):
        shown = loss(second.address, "show", name)
        assert (shown.returncode, shown.stderr) == (ExitCode.OK, "")
        assert shown.stdout.index("1. Keep broker 1 down") < shown.stdout.index("WHAT IS KNOWN")
        assert "HAPPENED 2 TIMES" in shown.stdout
    ended = loss(second.address, "ls", "--state", "ended")
    assert (ended.returncode, "no loss is known" in ended.stdout) == (ExitCode.OK, True)


def test_one_broker_that_dies_is_one_incident_and_one_notification(
    faults: Sandbox, serve: Serve, folder: Path, new_name: Callable[[str], str], tmp_path: Path
) -> None:
    """However many partitions it led, and however many rules tell of each of them."""
    chance = random.Random()
    topic, partitions, records = new_name("many"), chance.randint(5, 15), chance.randint(1, 30)
    record, count = tmp_path / "got.jsonl", partitions * records
    options: dict[str, Any] = {"topic": topic, "partitions": partitions, "records": records}
    with (
        receiver("--record", str(record)) as (_, address),
        prepare_loss("committed-loss", faults, readers=True, **options) as prepared,
    ):
        settings = paging(address) | {
            "SCRAPES__PAGES": faults.metrics_url(CONTROLLER_ID),
            "SCRAPES__INTERVAL_SECONDS": "1",
        }
        served = serve(topics=topic, groups=".*", settings=settings).wait_ready()
        served.wait_rounds(3)
        with prometheus(folder, [job("tidemark", served.address)], seconds=1) as server:
            server.wait_value(f"count({names.LEADER_EPOCH.name})", partitions)
            truth = prepared.inject()
            assert_shown(server, panels.LOSSES["committed-loss"], truth)

        assert wait_until(
            lambda: sum(one["lost_partitions"] for one in incidents(served, topic)) == partitions,
            timeout_seconds=SEE_SECONDS,
        ), served.reported()
        is_notified = wait_until(lambda: bool(notified(record)), timeout_seconds=SEE_SECONDS)
        assert is_notified, served.reported()
        served.wait_rounds(6)
        [incident], [body] = incidents(served, topic), notified(record)
        listed = loss(served.address, "ls")
        document = json.loads(loss(served.address, "ls", "-o", "json").stdout)
        assert_reported(served, truth, folder / "incident.json")
    assert (incident["partition_count"], incident["certain_offsets"]) == (partitions, count)
    assert [one["id"] for one in document["incidents"]] == [incident["id"]]
    assert_incident(incident, truth, listed)
    assert body["groupLabels"] == {"cluster": "default", "incident": incident["id"]}
    some = f"{partitions:,} partitions lost {count:,} offsets for certain"
    assert some in body["commonAnnotations"]["incident_summary"]
    assert_worst_first(body["alerts"])


def paging(address: str) -> dict[str, str]:
    """Return the settings of one receiver on this machine."""
    return {
        "ALERTING__RECEIVERS": json.dumps([{"name": "pager", "url": address}]),
        "ALERTING__DEFAULT_RECEIVER": "pager",
        "ALERTING__PRIVATE_RANGES": "127.0.0.1/32",
        "ALERTING__GROUP_WAIT_SECONDS": "8",
    }


def incidents(served: Served, topic: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = served.document(f"/api/v1/losses?topic={topic}")["items"]
    return items


def notified(record: Path) -> list[dict[str, Any]]:
    """Return the bodies about incidents that a receiver recorded."""
    whole = record.read_text("utf-8").rpartition("\n")[0]  # the last line may be half written
    rows = [json.loads(line) for line in whole.splitlines()]
    return [row["body"] for row in rows if "incident" in row["body"]["commonLabels"]]


def assert_incident(incident: dict[str, Any], truth: LossTruth, listed: Done) -> None:
    """Assert that each partition's loss is the true one, in the API's answer and in the list."""
    before = truth.partitions[0].before.leader
    assert (incident["broker"], incident["severity"]) == (before, "critical")
    for line in incident["partitions"]:
        [one] = [one for one in truth.partitions if one.partition == line["partition"]]
        assert (line["certain_from"], line["certain_to"]) == (one.lost_from, one.committed_to)
        assert line["visible_to_read_committed"] == line["certain_offsets"], "no transactions"
        assert "unclean_election" in {also["class"] for also in line["also"]}
    assert listed.returncode == ExitCode.LOST
    lines = [line for line in listed.stdout.splitlines() if line.startswith("committed_lost  ")]
    assert len(lines) == len(truth.partitions), listed.stdout
    assert f"Broker {before} lost leadership between" in listed.stdout


def assert_reported(served: Served, truth: LossTruth, path: Path) -> None:
    """Assert that the report of an alert has the true loss, and what led from it to a notification."""
    alerts = served.document("/api/v1/alerts?state=all&rule=committed_records_lost")["items"]
    place = truth.partitions[0]
    fingerprint = next(
        alert["fingerprint"]
        for alert in alerts
        if (alert["labels"]["topic"], alert["labels"]["partition"])
        == (truth.topic, str(place.partition))
    )
    words = (fingerprint, "-o", "json", "--server", served.address)
    command = [sys.executable, "-m", "service", "incident", *words]
    environment = plain_environment() | {"XDG_STATE_HOME": str(path.parent)}
    with path.open("wb") as file:
        subprocess.run(command, cwd=ROOT, env=environment, stdout=file, check=False, timeout=180)
    check = [sys.executable, "-m", "check_jsonschema", "--schemafile", str(SCHEMA), str(path)]
    subprocess.run(check, check=True, timeout=180)

    report = json.loads(path.read_text("utf-8"))
    ranges = {
        (row["partition"], row["begin"], row["end"])
        for row in report["lost_ranges"]
        if (row["topic"], row["kind"]) == (truth.topic, "certain")
    }
    assert ranges == {(one.partition, one.lost_from, one.committed_to) for one in truth.partitions}
    assert (report["outcome"], report["lost_offsets"]) == ("lost", truth.lost_offsets)
    assert {each.group for one in truth.partitions for each in one.groups} <= set(report["groups"])
    lines = [entry["what"] for entry in report["timeline"]]
    about = f"{truth.topic}-{place.partition} changed: broker {place.before.leader} (epoch"
    steps = (about, "finding opened: committed_records_lost", "alert fired: committed_records_lost")
    found = [next(n for n, line in enumerate(lines) if step in line) for step in steps]
    assert found == sorted(found), lines
    assert any("(firing, first notification) delivered" in line for line in lines), lines


def assert_worst_first(alerts: list[dict[str, Any]]) -> None:
    rules = {alert["labels"]["alertname"] for alert in alerts}
    assert {"committed_records_lost", "unclean_leader_election"} <= rules
    assert {alert["labels"]["severity"] for alert in alerts} == {"critical", "warning"}
    assert alerts[0]["labels"]["severity"] == "critical", "the worst is shown first"


def test_a_token_is_needed_where_others_may_ask(serve: Serve, folder: Path) -> None:
    served = serve(host="0.0.0.0", settings={"HTTP__TOKEN": SECRET}).wait_ready()  # noqa: S104
    served.wait_event("round", 2)
    right, wrong = folder / "right", folder / "wrong"
    right.write_text(f"{SECRET}\n")
    wrong.write_text("another\n")
    allowed = loss(served.address, "ls", "--token-file", str(right))
    assert allowed.returncode in (ExitCode.OK, ExitCode.INCOMPLETE), allowed.stderr
    assert "cluster default" in allowed.stdout
    for arguments in ((), ("--token-file", str(wrong))):
        rejected = loss(served.address, "ls", *arguments)
        assert (rejected.returncode, rejected.stdout) == (ExitCode.AUTHENTICATION, "")
        assert rejected.stderr.startswith(f"tidemark: {served.address} denies us: ")
        assert "another\n" not in rejected.stderr


def test_nobody_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closing:
        server = f"http://127.0.0.1:{closing.getsockname()[1]}"
    done = loss(server, "ls")
    assert (done.returncode, done.stdout) == (ExitCode.UNREACHABLE, "")
    assert done.stderr.startswith(f"tidemark: {server} cannot be reached: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_proxy_in_the_environment_does_not_stand_before_this_machine() -> None:
    with stranger() as server:
        done = loss(server, "ls", HTTP_PROXY="http://192.0.2.1:9", http_proxy="http://192.0.2.1:9")
    assert "is not a Tidemark: it answers 404" in done.stderr


@contextmanager
def stranger() -> Iterator[str]:
    """Serve files of nothing, as many a program on many a port does."""

    class Quiet(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_web_server_and_a_broker_are_no_tidemark(kafka: Kafka) -> None:
    with stranger() as server:
        done = loss(server, "ls")
    assert done.returncode == ExitCode.UNREACHABLE
    assert "is not a Tidemark: it answers 404 Not Found, text/html" in done.stderr
    broker = kafka.bootstrap.partition(",")[0]
    done = loss(f"http://{broker}", "show", "orders-0")
    assert (done.returncode, len(done.stderr.splitlines())) == (ExitCode.UNREACHABLE, 1)
