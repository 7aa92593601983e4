"""`tidemark tx` on real brokers, as an on-call engineer meets it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import Permission, SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.tools import run_quietly
from service.sandbox.faults import Truth, make_fault
from service.sandbox.workloads.transactions import OpenTransaction
from service.terminal.exit_codes import ExitCode
from service.terminal.parameters import MAX_BYTES
from tests.integration.clients import (
    FLUSH_SECONDS,
    commit_offset,
    produce,
    produce_in_transaction,
    transactional_producer,
)
from tests.kafka_release import SCRAM_USERS
from tests.schemas import validate

pytestmark = pytest.mark.integration

NewName = Callable[[str], str]
TIDEMARK = Path(sys.executable).with_name("tidemark")
RUN_SECONDS = 180
PASSWORD = "one-eyed-sandbox-only"  # noqa: S105 - of a user of this file alone, on loopback


def environment(**more: str) -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("TIDEMARK_")} | more


def tx(cluster: Sandbox, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TIDEMARK, "tx", *arguments, "--bootstrap-servers", cluster.bootstrap_servers],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )


def document(done: subprocess.CompletedProcess[str], code: ExitCode) -> dict[str, Any]:
    assert done.returncode == code, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    validate(" ".join(done.args[done.args.index("tx") :][:2]), told)
    return told


@pytest.fixture
def topic(cluster: Sandbox, admin: SandboxAdmin, new_name: NewName) -> Iterator[str]:
    """Make a topic with five records, which the group of the same name has read."""
    name = new_name("tx")
    admin.create_topic(name)
    produce(cluster.bootstrap_servers, name, 5)
    commit_offset(cluster.bootstrap_servers, name, name, 5)
    yield name
    admin.delete_topic(name)


@contextmanager
def committing(cluster: Sandbox, topic: str) -> Iterator[None]:
    """Commit one transaction after the other: a last stable offset that is held and moves on."""
    stop, begun = threading.Event(), threading.Event()

    def work() -> None:
        producer = transactional_producer(cluster.bootstrap_servers, f"{topic}-load")
        while not stop.is_set():
            produce_in_transaction(producer, topic, 5)
            producer.commit_transaction(FLUSH_SECONDS)
            begun.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert begun.wait(FLUSH_SECONDS)
        yield
    finally:
        stop.set()
        thread.join()


def test_an_open_transaction_is_listed_with_the_group_that_waits_for_it(
    cluster: Sandbox, topic: str
) -> None:
    with OpenTransaction(cluster.bootstrap_servers, topic=topic, records=3) as opened:
        told = document(tx(cluster, "ls", "--topic", topic, "-o", "json"), ExitCode.OK)
        table = tx(cluster, "ls", "--group", topic)
    [row] = told["transactions"]
    [place] = row["partitions"]
    assert (row["class"], row["transactional_id"]) == ("open", opened.transactional_id)
    assert (row["state"], row["timeout_ms"], row["repair"]) == ("Ongoing", 60_000, None)
    assert 0 <= row["running_ms"] < 60_000
    assert (place["topic"], place["start_offset"], place["last_stable_offset"]) == (topic, 5, 5)
    assert (place["high_watermark"], place["holds_last_stable_offset"]) == (8, True)
    assert place["blocked_groups"] == [
        {"group": topic, "is_waiting": True, "lag_before_transaction": 0, "blocked_offsets": 3}
    ]
    assert told["complete"] is True
    assert table.returncode == ExitCode.OK, table.stderr
    [line] = [line for line in table.stdout.splitlines() if line.startswith("open ")]
    assert opened.transactional_id in line
    assert line.split()[-2:] == [f"{topic}-0*", topic]


def test_an_id_is_shown_while_it_is_open_and_after_it_ended(cluster: Sandbox, topic: str) -> None:
    with OpenTransaction(cluster.bootstrap_servers, topic=topic, records=3) as opened:
        name = opened.transactional_id
        during = tx(cluster, "show", name)
        opened.commit()

        def has_ended() -> bool:
            told = document(tx(cluster, "show", name, "-o", "json"), ExitCode.OK)
            return not told["described"]["is_open"]

        assert wait_until(has_ended, timeout_seconds=180)
        after = tx(cluster, "show", name)
    assert during.returncode == ExitCode.OK, during.stderr
    assert during.stdout.startswith(f"open  {name}")
    [place] = [line.split() for line in during.stdout.splitlines() if line.startswith(topic)]
    assert place[:1] + place[2:7] == [f"{topic}-0", "5", "5", "8", "3", "yes"]
    assert "its coordinator aborts it when its timeout has passed" in during.stdout
    assert after.returncode == ExitCode.OK, after.stderr
    assert after.stdout.startswith(f"CompleteCommit  {name}")
    assert "the last one was committed" in after.stdout


def test_an_id_that_nobody_knows_is_an_error_of_one_line(cluster: Sandbox, topic: str) -> None:
    done = tx(cluster, "show", f"{topic}-nobody")
    assert (done.returncode, done.stdout) == (ExitCode.NOTHING_MATCHED, "")
    assert done.stderr == f"tidemark: no coordinator knows transactional id '{topic}-nobody'\n"


@pytest.mark.parametrize("name", [b"", b"a\xff", b"x" * 40_000])
def test_an_id_that_no_broker_can_be_asked_for_is_a_usage_error(
    cluster: Sandbox, name: bytes
) -> None:
    command: list[Any] = [
        TIDEMARK,
        "tx",
        "show",
        name,
        "--bootstrap-servers",
        cluster.bootstrap_servers,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert "Traceback" not in done.stderr


def test_the_longest_id_is_asked_for(cluster: Sandbox) -> None:
    done = tx(cluster, "show", "x" * MAX_BYTES)
    assert done.returncode == ExitCode.NOTHING_MATCHED, done.stderr


def test_a_filter_that_names_no_topic_says_so(cluster: Sandbox, topic: str) -> None:
    done = tx(cluster, "ls", "--topic", f"{topic}-nothing")
    assert done.returncode == ExitCode.NOTHING_MATCHED
    assert "no topic matches" in done.stderr


@pytest.mark.smoke
def test_what_hangs_is_proven_and_the_printed_command_ends_it(cluster: Sandbox, topic: str) -> None:
    with make_fault("hanging-transaction", cluster) as truth, committing(cluster, topic):
        done = tx(cluster, "hanging", "-o", "json")
        told = document(done, ExitCode.HANGING)
        assert done.stderr.splitlines()[:3] == [f"round {n} of 3 ..." for n in (1, 2, 3)]
        [row] = told["hanging"]
        assert_as_made(row, truth)
        where = "--topic", truth.where.topic, "--class", "unknown", "--class", "hanging"
        [listed] = document(tx(cluster, "ls", *where, "-o", "json"), ExitCode.OK)["transactions"]
        # Its observations are milliseconds apart, which proves nothing, unless the machine is slow.
        assert (listed["class"], listed["unknown_reason"]) in {
            ("unknown", "confirming"),
            ("hanging", None),
        }
        assert listed["partitions"][0]["start_offset"] == truth.start_offset
        name, *arguments = shlex.split(row["repair"])
        run_quietly(cluster, name, arguments)
        after = tx(cluster, "hanging")
    assert after.returncode == ExitCode.OK, after.stdout + after.stderr
    assert after.stdout.startswith("Nothing hangs")


def assert_as_made(row: dict[str, Any], truth: Truth) -> None:
    [place] = row["partitions"]
    assert (row["class"], row["transactional_id"]) == ("hanging", truth.transactional_id)
    assert (row["producer_id"], row["producer_epoch"]) == (truth.producer_id, truth.producer_epoch)
    assert (row["coordinator"], row["state"]) == (truth.coordinator, truth.state)
    assert (place["topic"], place["partition"]) == (truth.where.topic, truth.where.partition)
    assert place["start_offset"] == truth.start_offset
    assert place["last_stable_offset"] == truth.last_stable_offset
    assert [one["group"] for one in place["blocked_groups"]] == list(truth.blocked_groups)


@pytest.fixture
def one_eyed(admin: SandboxAdmin) -> Iterator[tuple[str, ...]]:
    """Give the options of a user who may see all but transactional ids."""
    user = admin.create_user("one-eyed", PASSWORD)
    given = [
        Permission(user=user.name, operation=operation, resource=resource)
        for resource, operation in (
            ("cluster", "describe"), ("topic", "describe"), ("topic", "read"),
            ("topic", "describe_configs"), ("group", "describe"),
        )
    ]  # fmt: skip
    admin.grant(given)
    yield "--security-protocol", "SASL_PLAINTEXT", "--sasl-username", user.name
    admin.revoke(given)


@SCRAM_USERS
def test_who_may_not_see_ids_is_told_that_it_is_not_certain(
    cluster: Sandbox, one_eyed: tuple[str, ...]
) -> None:
    def hanging(*more: str) -> subprocess.CompletedProcess[str]:
        servers = ("--bootstrap-servers", cluster.sasl_bootstrap_servers)
        return subprocess.run(
            [TIDEMARK, "tx", "hanging", *one_eyed, *more, *servers],
            env=environment(TIDEMARK_KAFKA__SASL_PASSWORD=PASSWORD),
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )

    with make_fault("hanging-transaction", cluster, unlisted=True) as truth:
        unsure = hanging()
        declared = hanging("--sees-all-transactional-ids")
    assert unsure.returncode == ExitCode.INCOMPLETE, unsure.stdout + unsure.stderr
    assert f"UNKNOWN  {truth.where}" in unsure.stdout
    assert "DESCRIBE on every TransactionalId" in unsure.stdout
    assert "kafka-transactions.sh" not in unsure.stdout
    assert declared.returncode == ExitCode.HANGING, declared.stdout + declared.stderr
    assert f"HANGING  {truth.where}  transactional id not known" in declared.stdout
    assert "--command-config" in declared.stdout


def test_ctrl_c_ends_the_wait_between_two_rounds(cluster: Sandbox) -> None:
    servers = ("--bootstrap-servers", cluster.bootstrap_servers)
    process = subprocess.Popen(
        [TIDEMARK, "tx", "hanging", "--interval", "3600", *servers],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(2)]
        assert lines[1] == "round 2 of 3 ...\n"
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=RUN_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out) == (ExitCode.INTERRUPTED, "")
    assert errors.strip() == "interrupted"
