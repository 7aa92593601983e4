"""Copies of partitions from brokers that were killed, and what `log diff` says of them, held against a fault's truth.

What lies in a copy is read by Kafka's own tool.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rules.facts.identity import TopicPartition
from rules.log_files.missing import Fate
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.layout import node_layout
from service.sandbox.cluster.tools import run_quietly
from service.sandbox.faults.loss_truth import LossTruth, PartitionTruth
from service.sandbox.workloads.log_reading import read_records
from service.terminal.exit_codes import ExitCode
from tests.schemas import validate

CHECKPOINT: Final = "replication-offset-checkpoint"
OF_TOPIC: Final = re.compile(r"(?!__).+-\d+")  # the folder of a partition, and not of Kafka's own
SEGMENT: Final = f"{0:020}.log"
EVERY_FATE: Final = tuple(fate for fate in Fate if fate not in (Fate.LOST, Fate.NOT_READABLE))
RECORD: Final = re.compile(r"^\| offset: (\d+) .* payload: (.*)$", re.MULTILINE)
# Faults in which no broker dies: the copies are taken before them.
WITHOUT_DEATH: Final = ("topic-recreated", "records-deleted")
# What `log diff` says where nothing is lost, and its exit code.
WITHOUT_LOSS: Final = {
    "unclean-without-loss": ({"nothing_missing"}, ExitCode.OK),
    "clean-failover-under-load": ({"nothing_missing", "nothing_lost"}, ExitCode.OK),
    "topic-recreated": ({"other_topic_id"}, ExitCode.INCOMPLETE),
    "records-deleted": ({"followed_new_leader"}, ExitCode.INCOMPLETE),  # nobody else leads
}

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Copies:
    """Where copies are, by broker."""

    cluster: Sandbox
    folder: Path

    def take(self, broker: int) -> None:
        """Copy all partitions of a broker but Kafka's own, unless there is an earlier copy of them."""
        data, target = node_layout(self.cluster.directory, broker).data, self.folder / str(broker)
        target.mkdir(parents=True, exist_ok=True)
        for path in data.iterdir():
            if OF_TOPIC.fullmatch(path.name) and not (target / path.name).exists():
                ignored = shutil.ignore_patterns("*.index", "*.timeindex")  # 10 MB each
                shutil.copytree(path, target / path.name, ignore=ignored)
        shutil.copy(data / CHECKPOINT, target / CHECKPOINT)

    def take_all(self) -> None:
        """Copy what each broker has."""
        for broker in self.cluster.state.brokers:
            self.take(broker.id)

    def of(self, broker: int, topic: str, partition: int = 0) -> Path:
        """Return a broker's copy of a partition."""
        return self.folder / str(broker) / f"{topic}-{partition}"


@contextmanager
def former_leaders(cluster: Sandbox, folder: Path) -> Iterator[Copies]:
    """Copy what a broker has whenever one is killed: before it can return and truncate."""
    copies, kill = Copies(cluster, folder / "former"), cluster.kill

    def kill_and_copy(node_id: int) -> bool:
        was_killed = kill(node_id)
        copies.take(node_id)
        return was_killed

    cluster.kill = kill_and_copy  # type: ignore[method-assign]
    try:
        yield copies
    finally:
        del cluster.kill


def log_diff(cluster: Sandbox, old: Path, *options: str, code: int | None) -> Document:
    """Return what `log diff` says of the only partition; None: it may end with any code."""
    where = () if options and not options[0].startswith("-") else (
        "--bootstrap-servers", cluster.bootstrap_servers,
    )  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "service",
        "log",
        "diff",
        str(old),
        *options,
        *where,
        "-o",
        "json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == code or code is None, done.stdout + done.stderr
    document = json.loads(done.stdout)
    validate("log diff", document)
    [partition] = document["partitions"]
    return dict(partition)


def assert_compared(copies: Copies, truth: LossTruth) -> None:
    """What `log diff` says of the old leader's copy: what is lost, or why it is nothing."""
    if truth.lost_offsets:
        assert_exactly_lost(copies, truth)
        return
    [one] = truth.partitions
    old = copies.of(one.before.leader, truth.topic)
    reasons, code = WITHOUT_LOSS[truth.fault]
    assert log_diff(copies.cluster, old, code=code)["reason"] in reasons


def assert_exactly_lost(copies: Copies, truth: LossTruth) -> None:
    """Exactly what is gone is found, byte for byte; what is not proven to be lost is not written as lost."""
    for partition in truth.partitions:
        assert_lost(copies, truth.topic, partition)


def fates_of(
    copies: Copies,
    topic: str,
    truth: PartitionTruth,
    records: Mapping[int, bytes],
) -> dict[int, Fate]:
    """Return what became of each record of the copy: an ordinary client reads what is there again."""
    servers, where = copies.cluster.bootstrap_servers, TopicPartition(topic, truth.partition)
    now = read_records(servers, where)
    again = {value for offset, value in now.items() if offset >= (truth.lost_from or 0)}
    end = truth.committed_to or 0
    committed = {
        offset: Fate.LOST if offset < end else Fate.BEYOND_HIGH_WATERMARK for offset in records
    }
    return committed | {
        offset: Fate.POSSIBLY_AGAIN for offset, value in records.items() if value in again
    }


def assert_lost(
    copies: Copies, topic: str, truth: PartitionTruth, *, is_open: bool = False
) -> None:
    """The records of one partition that are gone are found, with what became of each.

    `is_open`: they are of a transaction that the copy leaves open, and that is aborted sooner or later.
    """
    old = copies.of(truth.before.leader, topic, truth.partition)
    lines, segment = (old.with_suffix(f".{end}") for end in ("jsonl", "log"))
    assert truth.lost_from is not None
    records = {
        offset: value
        for offset, value in dumped(copies.cluster, old).items()
        if offset >= truth.lost_from
    }
    every = [word for fate in EVERY_FATE for word in ("--include", str(fate))]
    files = ("--records", str(lines), "--segment", str(segment))
    seen = ("--high-watermark", str(truth.before.high_watermark))
    code = None if is_open else ExitCode.LOST
    document = log_diff(copies.cluster, old, *every, *files, *seen, code=code)
    assert (document["divergence_offset"], document["missing_offsets"]) == (
        truth.lost_from, truth.lost_offsets,
    )  # fmt: skip
    written = [json.loads(line) for line in lines.read_text().splitlines()]
    assert {line["offset"]: content(line, "value") for line in written} == records
    whole = (old / SEGMENT).read_bytes()
    missing = segment.read_bytes()
    assert whole.endswith(missing)
    assert int.from_bytes(missing[:8]) == truth.lost_from
    if is_open:
        assert {line["fate"] for line in written} <= {Fate.UNDECIDED, Fate.ABORTED}
        return
    fates = fates_of(copies, topic, truth, records)
    assert {line["offset"]: line["fate"] for line in written} == fates
    assert_default(copies, old, seen, {at for at, fate in fates.items() if fate is Fate.LOST})


def assert_default(copies: Copies, old: Path, seen: Sequence[str], lost: set[int]) -> None:
    """Without --include only what is lost for certain is written, and no file is overwritten."""
    lines = old.with_suffix(".lost.jsonl")
    document = log_diff(copies.cluster, old, "--records", str(lines), *seen, code=ExitCode.LOST)
    assert {json.loads(line)["offset"] for line in lines.read_text().splitlines()} == lost
    assert document["reason"] == ("committed_missing" if lost else "perhaps_missing")
    assert document["written_records"] == document["records"]["lost"] == len(lost)


def content(line: Document, name: str) -> bytes | None:
    """Return the bytes of a field as they were."""
    text, encoding = line[name], line[f"{name}_encoding"]
    if text is None:
        return None
    return base64.b64decode(text) if encoding == "base64" else str(text).encode()


def dumped(cluster: Sandbox, folder: Path) -> dict[int, bytes]:
    """Return the values of a copy's first segment by offset, as kafka-dump-log.sh prints them."""
    options = ["--files", str(folder / SEGMENT), "--print-data-log"]
    text = run_quietly(cluster, "kafka-dump-log.sh", options)
    return {int(offset): value.encode() for offset, value in RECORD.findall(text)}
