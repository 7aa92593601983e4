"""What Kafka's own tools printed is read whole, whatever a ticket did to its lines, and nothing else is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from collectors.tool_output.reader import ToolReader
from rules.facts.application_log import TransactionLogged
from rules.facts.tool_output import (
    CommandLine,
    DumpedAbort,
    DumpedBatch,
    DumpedCommit,
    DumpedFile,
    DumpedProducer,
    DumpedRecord,
    GroupMemberRow,
    GroupOffsetRow,
    GroupSentence,
    GroupStateRow,
    HangingRow,
    Marker,
    PartitionRow,
    ProducerRow,
    Table,
    TableHead,
    Tool,
    TopicRow,
    TransactionRow,
)
from tests.tool_outputs import FILES, RELEASES, lines_of, wrapped


def read(lines: list[str]) -> tuple[ToolReader, list[str]]:
    """Return the reader, and the lines that are no tool's."""
    reader = ToolReader("text")
    others = [
        rest
        for number, line in enumerate(lines, start=1)
        for rest in reader.feed(line.encode(), number)
    ]
    others += reader.close()
    return reader, [text for other in others if (text := other.decode().strip("> \t"))]


def without_lines(reader: ToolReader) -> list[Any]:
    """Return the facts without what a wrapped line changes; of commands only their options count."""
    return [
        replace(fact, line=0, words=()) if isinstance(fact, CommandLine) else replace(fact, line=0)
        for fact in (*reader.facts, *reader.states)
    ]


# What each output must have, and how many of it where all releases print as many.
KINDS: dict[str, set[type]] = {
    "topics-describe": {TopicRow, PartitionRow},
    "topics-broker-down": {TopicRow, PartitionRow},
    "topics-under-replicated": {PartitionRow},
    "groups-describe": {TableHead, GroupOffsetRow, GroupSentence},
    "groups-state": {TableHead, GroupStateRow, GroupSentence},
    "groups-members": {GroupSentence},
    "tx-list": {TableHead, TransactionRow},
    "tx-describe": {TableHead, TransactionRow},
    "tx-describe-open": {TableHead, TransactionRow},
    "tx-hanging": {TableHead},
    "tx-producers": {TableHead, ProducerRow},
    "tx-producers-open": {TableHead, ProducerRow},
    "dump-plain": {DumpedFile, DumpedBatch},
    "dump-data": {DumpedFile, DumpedBatch},
    "dump-deep": {DumpedFile, DumpedBatch},
    "dump-tx": {DumpedFile, DumpedBatch, TransactionLogged},
    "dump-offsets": {DumpedFile, DumpedBatch, DumpedCommit},
    "dump-snapshot": {DumpedFile, DumpedProducer},
    "dump-txnindex": {DumpedFile, DumpedAbort},
    "formatter": {TransactionLogged},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("release", RELEASES)
def test_every_line_of_every_release_is_read(release: str, kind: str) -> None:
    reader, others = read(lines_of(f"{release}-{kind}"))
    kinds = {type(fact) for fact in (*reader.facts, *reader.states)}
    assert kinds >= KINDS[kind]
    assert kinds <= {*KINDS[kind], TableHead, DumpedRecord}
    assert [line for line in others if not line.startswith("Processed a total")] == []
    assert reader.cut == 0


@pytest.mark.parametrize("name", FILES)
def test_wrapped_and_quoted_lines_say_the_same(name: str) -> None:
    lines = lines_of(name)
    plain, _ = read(lines)
    for width, at_words, before in product((72, 80, 120), (True, False), ("", "> ", "    ")):
        reader, _ = read(wrapped(lines, width, at_words=at_words, before=before))
        assert without_lines(reader) == without_lines(plain), (width, at_words, before)
        assert reader.cut == plain.cut


def test_a_dump_says_what_kafka_wrote() -> None:
    reader, _ = read(lines_of("4.1.1-dump-deep"))
    file, batch = reader.facts[:2]
    assert file == DumpedFile(
        line=1,
        path="/var/lib/kafka/data/orders-validated-0/00000000000000000000.log",
        topic="orders-validated",
        partition=0,
    )
    assert batch == DumpedBatch(
        line=3, base_offset=0, last_offset=30, record_count=31, base_sequence=0, last_sequence=30, producer_id=0,
        producer_epoch=0, leader_epoch=0, is_transactional=True, is_control=False,
        timestamp_ms=1795859334942, is_valid=True,
    )  # fmt: skip


MARKER = "| offset: 5 CreateTime: 1 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] endTxnMarker: ABORT coordinatorEpoch: 3"


def test_a_marker_says_how_a_transaction_ended() -> None:
    reader, _ = read([MARKER])
    assert reader.facts == [DumpedRecord(line=1, offset=5, sequence=None, marker=Marker.ABORT, coordinator_epoch=3)]  # fmt: skip


FENCED = """Here is what I ran:
```
[ops@kafka-1 ~]$ kafka-transactions.sh --bootstrap-server kafka-1:9092 describe-producers --topic orders --partition=3
ProducerId\tProducerEpoch\tLatestCoordinatorEpoch\tLastSequence\tLastTimestamp\tCurrentTransactionStartOffset\t
1         \t0            \t-1                    \t2           \t1795859350361\t235                          \t
```
What now?"""


def test_the_command_above_an_output_names_the_partition() -> None:
    reader, others = read(FENCED.splitlines())
    command, head, row = reader.facts
    assert isinstance(command, CommandLine)
    assert (command.tool, command.topic, command.partition) == (Tool.TRANSACTIONS, "orders", 3)
    assert isinstance(head, TableHead)
    assert head.table is Table.PRODUCERS
    assert row == ProducerRow(
        line=5, producer_id=1, producer_epoch=0, coordinator_epoch=None, last_sequence=2,
        last_timestamp_ms=1795859350361, transaction_start_offset=235,
    )  # fmt: skip
    assert [others[0], others[-1]] == ["Here is what I ran:", "What now?"]


HANGING = """Topic \tPartition\tProducerId\tProducerEpoch\tCoordinatorEpoch\tStartOffset\tLastTimestamp\tDuration(min)\t
orders\t3        \t2000      \t0            \t-1              \t5          \t1795859351445\t43           \t"""


def test_a_transaction_that_is_reported_as_hanging() -> None:
    reader, _ = read(HANGING.splitlines())
    assert reader.facts[1:] == [
        HangingRow(
            line=2, topic="orders", partition=3, producer_id=2000, producer_epoch=0, coordinator_epoch=None,
            start_offset=5, last_timestamp_ms=1795859351445, duration_minutes=43,
        )
    ]  # fmt: skip


OFFLINE = "\tTopic: t\tPartition: 0\tLeader: none\tReplicas: 1,2\tIsr: \tElr: 2\tLastKnownElr: 1"


def test_a_partition_without_a_leader() -> None:
    reader, _ = read([OFFLINE])
    assert reader.facts == [
        PartitionRow(line=1, topic="t", partition=0, leader=None, replicas=(1, 2), isr=(), elr=(2,), last_known_elr=(1,))
    ]  # fmt: skip


def test_no_commit_is_no_zero_and_a_lag_may_be_negative() -> None:
    head = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
    reader, _ = read(
        [head, "g t 0 - 7 - - - -", "g t 1 9 7 -2 c-1 /10.0.0.1 c", "g t 2 3 - - - - -"]
    )
    rows = [row for row in reader.facts if isinstance(row, GroupOffsetRow)]
    assert [(row.committed_offset, row.log_end_offset, row.lag) for row in rows] == [
        (None, 7, None),
        (9, 7, -2),
        (3, None, None),
    ]


def test_members_with_several_topics_have_spaces_in_their_assignments() -> None:
    head = "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT"
    reader, _ = read(
        [head, "g c-1 /10.0.0.1 c 3 orders(0,1), payments(2)", "g c-2 /10.0.0.2 c 0 -"]
    )
    rows = [row for row in reader.facts if isinstance(row, GroupMemberRow)]
    assert [(row.consumer_id, row.partitions) for row in rows] == [("c-1", 3), ("c-2", 0)]


TRACE = "java.lang.IllegalStateException: broken\n\tat a.b.C.d(C.java:1)"


@pytest.mark.parametrize(
    "text",
    [
        "total 8\ndrwxr-xr-x 2 root root 4096 Nov 28 09:45 data\n-rw-r--r-- 1 root root 3 Nov 28 09:45 a.log",
        '10.0.0.1 - - [28/Nov/2026:09:45:01 +0000] "GET /topics HTTP/1.1" 200 12 "-" "curl/8"',
        "GROUP      VERSION   KIND\napps       v1        Deployment\nbatch      v1        Job",
        "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG OWNER\ng t 0 1 2 1 me",
        "Topic: how we deploy\nPartition: /dev/sda1\nLeader: Ann",
        "ProducerId,Name\n1,Ann",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  topic: orders\n  partition: '0'",
        "NAME   READY   STATUS    RESTARTS\norders-0   1/1   Running   0",
        TRACE,
        "offset: 34 position: 4166",
    ],
    ids=[
        "ls",
        "nginx",
        "kubectl api-resources",
        "another tool's lag",
        "a mail",
        "csv",
        "yaml",
        "kubectl",
        "trace",
        "numbers",
    ],
)
def test_what_is_no_tools_is_left_to_others(text: str) -> None:
    lines = text.splitlines()
    reader, others = read(lines)
    assert (reader.facts, reader.states) == ([], [])
    assert reader.cut == 0
    assert others == [line.strip() for line in lines]


def test_a_line_that_was_cut_is_counted_and_the_rest_is_read() -> None:
    lines = lines_of("4.1.1-dump-plain")[:5]
    reader, _ = read([*lines[:4], lines[4][:200]])
    assert [type(fact) for fact in reader.facts] == [DumpedFile, DumpedBatch, DumpedBatch]
    assert reader.cut == 1


@pytest.mark.parametrize("length", range(45, 61))
def test_an_isr_that_was_cut_is_no_isr_that_shrank(length: int) -> None:
    lines = lines_of("4.1.1-topics-describe")[:3]
    reader, _ = read([*lines[:2], lines[2][:length]])
    assert [type(fact) for fact in reader.facts] == [TopicRow, PartitionRow]


def test_values_of_records_are_not_taken_for_log_lines() -> None:
    """A dead letter queue has stack traces as values."""
    record = "| offset: 0 CreateTime: 1 keySize: 1 valueSize: 90 sequence: 0 headerKeys: [] key: 4 payload: org.apache.kafka.common.errors.TimeoutException: x"
    reader, others = read(
        [*lines_of("4.1.1-dump-data")[:3], record, "\tat a.b.C.d(C.java:1)", MARKER, TRACE]
    )
    assert others == TRACE.splitlines() or others == [TRACE]
    assert reader.cut == 0
