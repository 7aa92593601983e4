"""The oldest Kafka release that the sandbox runs: the product works on it, briefly tried.

The fault families run on it, and on the newest one, in `make versions`.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest

from service.app import cluster_reader
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox, SandboxOptions
from service.sandbox.cluster.releases import supported
from service.sandbox.faults import prepare_loss, prepare_sequence
from service.settings import KafkaSettings
from tests.integration.clients import produce
from tests.integration.outside import only
from tests.integration.serve.served import ROOT, plain_environment
from tests.integration.test_loss import assert_certain, said
from tests.integration.watching import Watch

pytestmark = [pytest.mark.integration, pytest.mark.brokers, pytest.mark.breaking]


@pytest.fixture(scope="module")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    options = SandboxOptions(kafka_version=supported()[0])
    made = Sandbox(tmp_path_factory.mktemp("oldest") / "kafka", options=options)
    made.up()
    yield made
    made.down()


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "service", *words],
        cwd=ROOT,
        env=plain_environment(),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_a_round_lacks_nothing(oldest: Sandbox) -> None:
    count, servers = random.randint(1, 50), oldest.bootstrap_servers
    SandboxAdmin(servers).create_topic("orders", partitions=1)
    produce(servers, "orders", count)
    done = run(
        "collect", "--once", "--bootstrap-servers", servers, "--topics", "orders", "-o", "json"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    read = json.loads(done.stdout)
    assert read["gaps"] == []
    [partition] = read["partitions"]
    assert (partition["last_stable_offset"], partition["high_watermark"]) == (count, count)


def test_a_reordering_is_read_from_the_log_that_it_writes(oldest: Sandbox) -> None:
    with prepare_sequence("sequence-reordering", oldest, batch=random.randint(1, 9)) as prepared:
        truth = prepared.inject()
        told = only(truth)
        log = oldest.log_directory(told.broker_id) / "server.log"
        servers = ("--bootstrap-servers", oldest.bootstrap_servers)
        done = run("sequence", "explain", str(log), *servers, "-o", "json")
        [one] = [one for one in json.loads(done.stdout) if one["topic"] == truth.topic]
        assert (one["class"], one["phase"]) == ("reordering", "confirmed")
        assert (one["incoming_sequence"], one["gap"]) == (told.incoming_sequence, told.gap)


def test_a_loss_is_told_to_the_offset(oldest: Sandbox) -> None:
    settings = KafkaSettings.model_validate({"bootstrap_servers": oldest.bootstrap_servers})
    reader = cluster_reader(settings)
    watch, count = Watch(reader), random.randint(1, 40)
    with prepare_loss("committed-loss", oldest, records=count) as prepared:
        watch.round()
        watch.round()
        truth = prepared.inject()
        made = watch.until(lambda made: said(made, "committed_records_lost", truth.topic, 0))
        finding = said(made, "committed_records_lost", truth.topic, 0)
        assert finding is not None
        assert_certain(finding, truth.partitions[0])
    reader.close()
