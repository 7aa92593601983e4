"""Looking at `__transaction_state`: by Tidemark's own reader, and by Kafka's own formatter."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collectors import cluster as cluster_collector
from collectors import state_topic
from collectors.security import Security
from collectors.session import Session
from collectors.state_topic import StateTopic
from collectors.transaction_log import TransactionLogReader
from collectors.transaction_record import STATES, TransactionRecord, decode
from collectors.transaction_tail import Tail, fetch
from collectors.wire.connection import Address
from collectors.wire.failure import Failure
from collectors.wire.pool import Pool
from rules.facts.identity import TRANSACTION_STATE
from rules.facts.transaction_log import EndedTransaction, TransactionLog
from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.commands import marker, tool_command

SOON = 180.0
TOOL_SECONDS = 180
TOOLS = "org.apache.kafka.tools"
NO_TAGS = {
    "previousProducerId": -1,
    "nextProducerId": -1,
    "clientTransactionVersion": 0,
    "nextProducerEpoch": -1,
}


class Follower:
    """A reader of the log over connections of its own, round after round."""

    def __init__(self, servers: str, security: Security | None = None) -> None:
        self.pool = Pool(security or Security())
        hosts = [server.rsplit(":", 1) for server in servers.split(",")]
        self._addresses = [Address(host, int(port)) for host, port in hosts]
        self._reader = TransactionLogReader()
        self.session = Session(self.pool)
        self.ended: list[EndedTransaction] = []

    def begin(self) -> Session:
        """Begin a round."""
        self.session = Session(self.pool)
        cluster_collector.collect(self.session, self._addresses)
        return self.session

    def placed(self) -> StateTopic | Failure | None:
        """Return where the topic is."""
        return state_topic.collect(self.begin())

    def read(self) -> TransactionLog:
        """Make a round and keep what ended."""
        placed = self.placed()
        self.session.gaps.clear()  # of the brokers, which are not observed here
        log = self._reader.collect(self.session, placed)
        self.ended += log.ended
        return log

    def wait_for(self, transactional_id: str, count: int = 1) -> list[EndedTransaction]:
        """Read on until so many transactions of this id have ended; return them."""

        def found() -> list[EndedTransaction]:
            self.read()
            return self.ended_of(transactional_id)

        assert wait_until(lambda: len(found()) >= count, timeout_seconds=SOON), self.session.gaps
        return self.ended_of(transactional_id)

    def ended_of(self, transactional_id: str) -> list[EndedTransaction]:
        return [one for one in self.ended if one.transactional_id == transactional_id]

    def tail(self, number: int, position: int, last_epoch: int | None = None) -> Tail:
        """Return a tail at a position of one partition, as a round would have it."""
        placed = self.placed()
        assert isinstance(placed, StateTopic)
        leader, epoch = placed.leaders[number], placed.leader_epochs[number]
        tail = Tail(number=number, position=position, last_epoch=last_epoch)
        tail.begin_round(None if leader is None else self.session.broker(leader), epoch)
        return tail

    def everything(self) -> list[TransactionRecord]:
        """Read the whole topic from its first record on."""
        placed = self.placed()
        assert isinstance(placed, StateTopic)
        tails = [self.tail(number, 0) for number in range(len(placed.leaders))]
        found: list[TransactionRecord] = []
        while due := [tail for tail in tails if tail.is_due]:
            for _, records in fetch(self.session, due):
                taken = [decode(record.key, record.value) for record in records.records]
                found += [record for record in taken if record is not None]
        assert [(tail.failure, tail.lost) for tail in tails] == [(None, None)] * len(tails)
        return found

    def close(self) -> None:
        self.pool.close()


def as_kafka_prints(record: TransactionRecord) -> str:
    """Return a record as Kafka's formatter writes it, with every field and in one order."""
    value = record.value
    content = None
    if value is not None:
        topics = value.partitions
        named = [{"topic": name, "partitionIds": list(numbers)} for name, numbers in topics or ()]
        data = {
            "producerId": value.producer_id,
            "producerEpoch": value.producer_epoch,
            "transactionTimeoutMs": value.timeout_ms,
            "transactionStatus": STATES.index(value.state),
            "transactionPartitions": None if topics is None else named,
            "transactionLastUpdateTimestampMs": value.last_update_ms,
            "transactionStartTimestampMs": _or_minus_one(value.start_ms),
            "previousProducerId": _or_minus_one(value.previous_producer_id),
            "nextProducerId": _or_minus_one(value.next_producer_id),
            "clientTransactionVersion": value.client_transaction_version,
            "nextProducerEpoch": _or_minus_one(value.next_producer_epoch),
        }
        content = {"version": value.version, "data": data}
    key = {"type": 0, "data": {"transactionalId": record.transactional_id}}
    return json.dumps({"key": key, "value": content}, sort_keys=True)


def printed_by_kafka(cluster: Sandbox, scratch: Path, count: int) -> list[str]:
    """Return so many records of the topic as Kafka's own formatter prints them."""
    done = run_tool(
        cluster,
        scratch,
        f"{TOOLS}.consumer.ConsoleConsumer",
        *("--bootstrap-server", cluster.bootstrap_servers),
        *("--topic", TRANSACTION_STATE, "--from-beginning", "--max-messages", str(count)),
        *("--formatter", f"{TOOLS}.consumer.TransactionLogMessageFormatter"),
    )
    decoder, position, found = json.JSONDecoder(), 0, list[str]()
    while position < len(done) and done[position] == "{":
        record, position = decoder.raw_decode(done, position)
        if record["value"] is not None:
            record["value"]["data"] = {**NO_TAGS, **record["value"]["data"]}
        found.append(json.dumps(record, sort_keys=True))
    return found


def run_tool(cluster: Sandbox, scratch: Path, main_class: str, *arguments: str) -> str:
    """Run one of Kafka's tools to its end; return what it printed."""
    done = subprocess.run(
        _command(cluster, scratch, main_class, arguments),
        capture_output=True,
        text=True,
        timeout=TOOL_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextlib.contextmanager
def running_tool(
    cluster: Sandbox, scratch: Path, main_class: str, *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run one of Kafka's tools for the length of the block, then kill it as a crash would."""
    process = subprocess.Popen(
        _command(cluster, scratch, main_class, arguments),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def producing(cluster: Sandbox, topic: str, transactional_id: str, *props: str) -> tuple[str, ...]:
    """Return the arguments of a Java producer whose first transaction stays open for a minute."""
    return (
        *("--topic", topic, "--num-records", "600", "--record-size", "10", "--throughput", "10"),
        *("--transactional-id", transactional_id, "--transaction-duration-ms", "60000"),
        *("--producer-props", f"bootstrap.servers={cluster.bootstrap_servers}", *props),
    )


def _command(
    cluster: Sandbox, scratch: Path, main_class: str, arguments: tuple[str, ...]
) -> list[str]:
    state = cluster.state
    java, *rest = tool_command(state, main_class, scratch=scratch)
    return [java, "-Xmx96m", marker(cluster.directory), *rest, *arguments]


def _or_minus_one(number: int | None) -> Any:
    return -1 if number is None else number
