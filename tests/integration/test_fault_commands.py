"""Faults and Kafka's own tools as commands."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined] # re-exports without saying so
    ConfigResource,
)

from service.observe.cluster_reader import ClusterReader, Scope
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.commands import marker
from service.sandbox.cluster.layout import node_layout
from service.sandbox.cluster.processes import find_marked
from service.sandbox.cluster.tools import TOOLS, run_quietly
from service.sandbox.faults import make_fault
from service.terminal.exit_codes import ExitCode
from tests.integration.fault_truths import (
    HELD,
    RELEASED,
    SOON,
    TRANSACTIONS,
    Named,
    setting,
)
from tests.integration.observing import ends

pytestmark = pytest.mark.integration


def tidemark(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "service", "sandbox", *arguments]


def test_the_command_holds_a_fault_until_it_is_interrupted(
    cluster: Sandbox, reader: ClusterReader, new_name: Named
) -> None:
    topic = new_name("held")
    words = ("--dir", str(cluster.directory), "--topic", topic, "--seconds", "600", "-o", "json")
    with subprocess.Popen(
        tidemark("fault", "open-transaction", *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert next(process.stderr) == "Making open-transaction ...\n"
        assert next(process.stderr) == "Held for 600 s, and undone then.\n"
        assert ends(reader, topic) == HELD
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SOON)
    assert (process.returncode, err) == (0, "Undone.\n")
    truth = json.loads(out)
    assert (truth["topic"], truth["hold_class"]) == (topic, "open")
    assert ends(reader, topic) == RELEASED


def test_what_waits_for_a_monitor_is_there_and_undone_when_interrupted(
    cluster: Sandbox, reader: ClusterReader
) -> None:
    words = ("--dir", str(cluster.directory), "--wait", "600")
    with subprocess.Popen(
        tidemark("fault", "sequence-reordering", *words), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert next(process.stderr) == "Making sequence-reordering ...\n"
        topic = next(process.stderr).removeprefix("All is written to ").partition(";")[0]
        assert ends(reader, topic)[0] is not None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SOON)
    assert process.returncode == ExitCode.INTERRUPTED
    topics = re.compile(re.escape(topic))
    assert wait_until(
        lambda: not len(reader.read(Scope(topics=topics)).partitions), timeout_seconds=SOON
    )


def test_a_command_that_is_killed_while_it_makes_a_fault_undoes_it(
    cluster: Sandbox, new_name: Named
) -> None:
    topic = new_name("killed")
    words = ("--dir", str(cluster.directory), "--topic", topic, "--timeout", "5")
    log = ConfigResource(ConfigResource.Type.TOPIC, "__transaction_state")
    with make_fault("open-transaction", cluster):  # so that there is such a log
        usual = setting(cluster, log, "max.message.bytes").value
    with subprocess.Popen(
        tidemark("fault", "overdue-transaction", *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert wait_until(
            lambda: setting(cluster, log, "max.message.bytes").value != usual,
            timeout_seconds=SOON,
        )
        process.terminate()
        out, err = process.communicate(timeout=SOON)
    assert (process.returncode, out) == (ExitCode.INTERRUPTED, "")
    assert "Undone." in err.splitlines()
    assert wait_until(
        lambda: setting(cluster, log, "max.message.bytes").value == usual, timeout_seconds=SOON
    )


def test_a_tool_has_its_own_input_output_and_exit_code(
    cluster: Sandbox, admin: SandboxAdmin, new_name: Named
) -> None:
    topic, where = new_name("typed"), ("--dir", str(cluster.directory))
    admin.create_topic(topic)
    subprocess.run(
        tidemark("tool", *where, "kafka-console-producer.sh", "--topic", topic),
        input=b"one\ntwo\n",
        check=True,
    )
    told = run_quietly(cluster, "kafka-get-offsets.sh", ["--topic", topic])
    assert told.split() == [f"{topic}:0:2"]
    wrong = ("abort", "--topic", topic, "--partition", "0", "--start-offset", "7")
    done = subprocess.run(
        tidemark("tool", *where, TRANSACTIONS, *wrong), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Could not find any open transactions starting at offset 7" in done.stdout + done.stderr


def test_a_tool_ends_with_the_command_that_runs_it(cluster: Sandbox, new_name: Named) -> None:
    words = ("kafka-console-consumer.sh", "--topic", "__consumer_offsets")
    mark = marker(cluster.directory)
    before = len(find_marked(mark))
    with subprocess.Popen(
        tidemark("tool", "--dir", str(cluster.directory), *words),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert wait_until(lambda: len(find_marked(mark)) > before, timeout_seconds=SOON)
        process.terminate()
        assert process.wait(SOON) in {0, 128 + signal.SIGTERM}
    assert len(find_marked(mark)) == before


def test_a_log_file_can_be_dumped(cluster: Sandbox) -> None:
    logs = node_layout(cluster.directory, 1).data.glob("__transaction_state-*/*.log")
    told = run_quietly(cluster, "kafka-dump-log.sh", ["--files", str(next(iter(logs)))])
    assert "Log starting offset: 0" in told


def test_every_tool_is_in_the_jars(cluster: Sandbox) -> None:
    classes: set[str] = set()
    for jar in (Path(cluster.state.cache) / "jars").glob("kafka*.jar"):
        with zipfile.ZipFile(jar) as packed:
            classes.update(packed.namelist())
    missing = [
        tool.main_class
        for tool in TOOLS.values()
        if f"{tool.main_class.replace('.', '/')}.class" not in classes
    ]
    assert missing == []
