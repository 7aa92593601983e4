"""Batches as they lie in a broker's files, as Kafka's own kafka-dump-log.sh prints them."""

from __future__ import annotations

import re
from typing import Final

from rules.errors import SandboxError
from rules.facts.batches import BatchSeen, MarkerSeen
from rules.facts.identity import BrokerId, TopicPartition
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.layout import node_layout
from service.sandbox.cluster.tools import run_quietly

_BATCH: Final = re.compile(
    r"^baseOffset: (?P<base_offset>\d+) lastOffset: (?P<last_offset>\d+) count: (?P<count>\d+) "
    r"baseSequence: (?P<base_sequence>-?\d+) lastSequence: (?P<last_sequence>-?\d+) "
    r"producerId: (?P<producer_id>-?\d+) producerEpoch: (?P<producer_epoch>-?\d+) "
    r"partitionLeaderEpoch: (?P<leader_epoch>\d+) isTransactional: (?P<is_transactional>\w+) isControl: false ",
    re.ASCII | re.MULTILINE,
)

_MARKER: Final = re.compile(
    r"^baseOffset: (?P<offset>\d+) .* producerId: (?P<producer_id>\d+) "
    r"producerEpoch: (?P<producer_epoch>\d+) partitionLeaderEpoch: (?P<leader_epoch>\d+) "
    r".*isControl: true .*\n.*endTxnMarker: (?P<kind>COMMIT|ABORT) ",
    re.ASCII | re.MULTILINE,
)


def batches_on_disk(
    sandbox: Sandbox, broker_id: BrokerId, where: TopicPartition
) -> dict[int, list[BatchSeen]]:
    """Return the batches of records in one broker's copy of a partition, by producer id."""
    return parse_dump(_dump(sandbox, broker_id, where))


def markers_on_disk(
    sandbox: Sandbox, broker_id: BrokerId, where: TopicPartition
) -> dict[int, list[MarkerSeen]]:
    """Return the markers of transactions in one broker's copy of a partition, by producer id."""
    return parse_markers(_dump(sandbox, broker_id, where, "--deep-iteration"))


def _dump(sandbox: Sandbox, broker_id: BrokerId, where: TopicPartition, *options: str) -> str:
    files = sorted(node_layout(sandbox.directory, broker_id).data.glob(f"{where}/*.log"))
    if not files:
        raise SandboxError(f"broker {broker_id} has no files of {where}")
    paths = ",".join(str(path) for path in files)
    return run_quietly(sandbox, "kafka-dump-log.sh", ["--files", paths, *options])


def parse_dump(text: str) -> dict[int, list[BatchSeen]]:
    """Return the batches that the tool printed, without those that have no producer id."""
    batches: dict[int, list[BatchSeen]] = {}
    for line in _BATCH.finditer(text):
        words = line.groupdict()
        is_transactional = words.pop("is_transactional") == "true"
        numbers = {name: int(value) for name, value in words.items()}
        producer_id, count = numbers.pop("producer_id"), numbers.pop("count")
        if producer_id >= 0:
            batch = BatchSeen(record_count=count, is_transactional=is_transactional, **numbers)
            batches.setdefault(producer_id, []).append(batch)
    return batches


def parse_markers(text: str) -> dict[int, list[MarkerSeen]]:
    """Return the markers that the tool printed, each behind its control batch."""
    markers: dict[int, list[MarkerSeen]] = {}
    for line in _MARKER.finditer(text):
        words = line.groupdict()
        is_commit = words.pop("kind") == "COMMIT"
        numbers = {name: int(value) for name, value in words.items()}
        producer_id = numbers.pop("producer_id")
        markers.setdefault(producer_id, []).append(MarkerSeen(is_commit=is_commit, **numbers))
    return markers
