"""Files of brokers that live, were killed, came back and stopped in order, held against Kafka's own kafka-dump-log.sh.

Batch by batch, marker by marker, producer by producer, record by record of the coordinators' topics.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from collectors.log_files.folders import find_logs
from collectors.log_files.segments import read_segment
from rules.facts.identity import CONSUMER_OFFSETS, TRANSACTION_STATE, BrokerId, TopicPartition
from rules.facts.log_files import BatchBlock, FileProblem, LogBatch
from rules.facts.log_folders import PartitionLog
from rules.verdict import Verdict
from service.cli.main import run
from service.observe.log_directories import Files
from service.runtime.clock import wait_until
from service.sandbox.cluster import processes
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.layout import node_layout
from service.sandbox.cluster.processes import Liveness, liveness
from service.sandbox.workloads.raw_cluster import RawCluster
from service.sandbox.workloads.raw_producer import Protocol, RawProducer
from service.terminal.exit_codes import ExitCode
from service.views.log_files.filters import Filter
from service.views.log_files.inspected import InspectedLog
from service.views.log_files.listed import record_rows
from tests.integration import dumped
from tests.integration.clients import commit_offset
from tests.integration.log_files_workload import (
    CODECS,
    RECORDS_OF_CODEC,
    VALUE_BYTES,
    Written,
    write,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

BROKER: Final = BrokerId(1)
PATIENCE_SECONDS: Final = 120.0
ROLL_AT_ONCE: Final = {"segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}


def test_files_are_read_as_kafkas_own_tool_reads_them(
    faults: Sandbox, new_name: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    written = write(faults.bootstrap_servers, new_name("files"))
    _write_in_new_epochs(faults, written.topic)
    data = node_layout(faults.directory, BROKER).data
    _compact_commits(faults, written, data)

    faults.kill(BROKER)
    compare(faults, written, data)
    assert_overview(data, written, capsys)

    faults.start(BROKER)
    compare(faults, written, data)

    _stop_in_order(faults)
    compare(faults, written, data, has_stopped=True)


def _write_in_new_epochs(sandbox: Sandbox, topic: str) -> None:
    """End transactions as clients since 4.0 do it: each marker has a new producer epoch."""
    if not sandbox.state.release.has_transactions_v2:
        return
    with RawCluster(sandbox) as brokers:
        producer = RawProducer(
            cluster=brokers, transactional_id=f"{topic}-v2", protocol=Protocol.V2
        )
        producer.begin()
        for is_commit in (True, False, True):
            producer.produce(TopicPartition(topic, 0), 3)
            producer.end(commit=is_commit)


def _compact_commits(sandbox: Sandbox, written: Written, data: Path) -> None:
    """Have the log cleaner compact the commits of the groups, and wait until it did."""
    servers = sandbox.bootstrap_servers
    admin = SandboxAdmin(servers)
    admin.set_topic_config(CONSUMER_OFFSETS, ROLL_AT_ONCE)
    try:

        def is_compacted() -> bool:
            commit_offset(servers, f"{written.topic}-plain", written.topic, 9)  # rolls a segment
            return commits_of(written, data).findings.is_compacted

        assert wait_until(is_compacted, timeout_seconds=PATIENCE_SECONDS, poll_seconds=1.5)
    finally:
        admin.set_topic_config(CONSUMER_OFFSETS, dict.fromkeys(ROLL_AT_ONCE))


def _stop_in_order(sandbox: Sandbox) -> None:
    process = sandbox.state.node(BROKER).process
    assert process is not None
    processes.terminate(process)

    def has_ended() -> bool:
        return liveness(process) is Liveness.DEAD

    assert wait_until(has_ended, timeout_seconds=PATIENCE_SECONDS, poll_seconds=0.3)


def compare(sandbox: Sandbox, written: Written, data: Path, *, has_stopped: bool = False) -> None:
    """Hold every file of the topic and of the coordinators' topics against what the tool prints of it."""
    topics = (written.topic, CONSUMER_OFFSETS, TRANSACTION_STATE)
    folders = [
        folder for folder in sorted(data.iterdir()) if folder.name.rpartition("-")[0] in topics
    ]
    counts = compare_files(sandbox, find_logs(folders).logs)
    assert min(counts) > 0, "something of each kind was compared"
    for inspected in Files(folders, verify=True).inspect(lambda _: None):
        assert_consistent(inspected)
    own = inspect(data / f"{written.topic}-0")
    assert_found(own, written)
    assert_records(data / f"{written.topic}-0", own)
    if has_stopped:
        assert own.log.snapshots[-1].offset == own.findings.log_end_offset
    compare_records(sandbox, commits_of(written, data), "--offsets-decoder")
    compare_records(sandbox, state_of(written, data), "--transaction-log-decoder")


def compare_files(sandbox: Sandbox, logs: Sequence[PartitionLog]) -> tuple[int, int, int, int]:
    """Compare all files; return how many batches, markers, producers and index entries were compared."""
    segments = [Path(segment.path) for log in logs for segment in log.segments]
    batches = markers = 0
    for path, text in dumped.dump(sandbox, segments, "--deep-iteration").items():
        own = list(read(path))
        assert [dumped.as_dumped(batch) for batch in own] == dumped.batches(path, text)
        controls = {
            batch.base_offset: (batch.control.type, batch.control.coordinator_epoch)
            for batch in own
            if batch.control is not None
        }
        assert controls == dumped.markers(text)
        batches, markers = batches + len(own), markers + len(controls)
    snapshots = {Path(each.path): each for log in logs for each in log.snapshots}
    indexes = {Path(each.path): each for log in logs for each in log.transaction_indexes}
    for path, text in dumped.dump(sandbox, [*snapshots, *indexes]).items():
        if path in snapshots:
            assert snapshots[path].producers == dumped.producers(text)
        else:
            assert indexes[path].aborted == dumped.aborted(text)
    producers = sum(len(each.producers) for each in snapshots.values())
    entries = sum(len(each.aborted) for each in indexes.values())
    return batches, markers, producers, entries


def read(path: Path) -> Iterator[LogBatch]:
    for part in read_segment(path, verify=True):
        assert isinstance(part, BatchBlock), part
        yield from part.rows()


def assert_consistent(inspected: InspectedLog) -> None:
    """Nothing is wrong with files of a healthy log: its producers are those of its snapshots."""
    assert inspected.problems == ()
    assert inspected.findings.differences == ()
    findings = inspected.findings
    assert findings.sequence_gaps == ()
    assert {gap.verdict for gap in findings.offset_gaps} <= {Verdict.OK}


def assert_found(own: InspectedLog, written: Written) -> None:
    """The log has what was written, and nothing else."""
    findings = own.findings
    of_v2 = {2: 0, 3: 1}[findings.aborted]  # where the release has them
    assert findings.committed == 4 + 2 * of_v2
    [left_open] = findings.open_transactions
    assert left_open.last_offset - left_open.first_offset == 2
    assert findings.last_stable_offset == left_open.first_offset
    assert findings.not_idempotent.records == 25
    codecs = {str(codec) for segment in findings.segments for codec in segment.codecs}
    assert codecs == set(CODECS)
    assert own.log.high_watermark is not None


def assert_records(folder: Path, own: InspectedLog) -> None:
    """Each record is read, whatever its batch is compressed with."""
    blocks = [
        part
        for part in Files([folder], verify=False).parts(lambda _: None)
        if isinstance(part, BatchBlock)
    ]
    rows = [row for block in blocks for row in record_rows(block, Filter())]
    records = [row for row in rows if not isinstance(row, FileProblem)]
    assert len(records) == len(rows) == sum(each.records for each in own.findings.segments)
    by_codec = Counter(str(row["key"]).partition("-")[0] for row in records if row["key"])
    assert by_codec == dict.fromkeys(CODECS, RECORDS_OF_CODEC)
    assert {row["value_size"] for row in records if row["key"]} == {VALUE_BYTES}


def compare_records(sandbox: Sandbox, inspected: InspectedLog, decoder: str) -> None:
    """Compare the decoded records of a coordinator's topic: commits, or states of transactional ids."""
    records = inspected.coordinator
    assert records is not None
    paths = [Path(segment.path) for segment in inspected.log.segments]
    texts = dumped.dump(sandbox, paths, decoder)
    decoded = {
        offset: pair for text in texts.values() for offset, pair in dumped.decoded(text).items()
    }
    assert decoded
    for of_name in records.commits.values():
        assert of_name.last.offset in decoded, (of_name, dumped.near(texts, of_name.last.offset))
        key, value = decoded[of_name.last.offset]
        name = of_name.last.name
        assert key["data"] == {
            "group": of_name.last.group, "topic": name.topic, "partition": name.partition,
        }  # fmt: skip
        offset, written_ms = of_name.last.committed_offset, of_name.last.committed_ms
        if value is None:  # deleted, such as by the deletion of the topic in another test
            assert (offset, written_ms) == (None, None)
            continue
        assert value["data"]["offset"] == offset
        assert value["data"]["commitTimestamp"] == written_ms
    for transactional_id, of_id in records.ids.items():
        for state in of_id.states:
            key, value = decoded[state.offset]
            assert key["data"]["transactionalId"] == transactional_id
            assert value["data"]["producerId"] == state.producer_id
            assert value["data"]["producerEpoch"] == state.producer_epoch
            assert value["data"]["transactionLastUpdateTimestampMs"] == state.at_ms
            partitions = {
                f"{topic['topic']}-{number}"
                for topic in value["data"]["transactionPartitions"] or ()
                for number in topic["partitionIds"]
            }
            assert {str(name) for name in state.partitions} == partitions


def inspect(folder: Path) -> InspectedLog:
    [inspected] = Files([folder], verify=True).inspect(lambda _: None)
    return inspected


def commits_of(written: Written, data: Path) -> InspectedLog:
    """Return the partition of the groups' commits that has those of the plain group."""
    return _with(data, CONSUMER_OFFSETS, lambda records: any(
        group == f"{written.topic}-plain" for group, _ in records.commits
    ))  # fmt: skip


def state_of(written: Written, data: Path) -> InspectedLog:
    """Return the partition of transactional ids that has the one whose transactions ended."""
    return _with(data, TRANSACTION_STATE, lambda records: written.transactional_id in records.ids)


def _with(data: Path, topic: str, has: Callable[[Any], bool]) -> InspectedLog:
    folders = sorted(data.glob(f"{topic}-*"))
    logs = list(Files(folders, verify=False).inspect(lambda _: None))
    [log] = [each for each in logs if each.coordinator is not None and has(each.coordinator)]
    return log


def assert_overview(data: Path, written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says the same of the killed broker's whole log directory."""
    capsys.readouterr()
    assert run(["log", "inspect", str(data), "-o", "json"]) == ExitCode.OK
    answer = json.loads(capsys.readouterr().out)
    assert answer["complete"]
    [log] = [each for each in answer["logs"] if each["topic"] == written.topic]
    assert len(log["open_transactions"]) == 1
    [ids] = [
        each["transactional_ids"]
        for each in answer["logs"]
        if any(
            id_["transactional_id"] == written.transactional_id
            for id_ in each["transactional_ids"] or ()
        )
    ]
    assert [
        id_["states"][-1]["state"]
        for id_ in ids
        if id_["transactional_id"] == written.transactional_id
    ] == ["CompleteCommit"]
