"""A killed leader that comes back: its own log lines tell exactly what was lost, and nothing else.

The truth is what producers were told and what a reader of the topic finds afterwards. LOSS_RUNS sets
how often leaders are killed (`make returned-long`).
"""

from __future__ import annotations

import logging
import os
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any, Final, Self

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from rules.facts.broker_log import LogEvent, LogTruncated
from rules.judgement import Finding
from rules.verdict import Verdict
from service.app.feeds import log_files
from service.observe.log_files import LogFiles
from service.observe.watch import WatchedRound
from service.runtime.clock import pause, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.state import CONTROLLER_ID
from service.settings import BrokerLogSettings
from tests.integration.conftest import MakeReader, assert_heals
from tests.integration.elections import let_stale_lead
from tests.integration.watching import Watch, told

RUNS: Final = int(os.environ.get("LOSS_RUNS", "2"))
RUN_SECONDS: Final = 180.0
SETTLE_SECONDS: Final = 180.0
LEADER, FOLLOWER = 1, 2
ACKS: Final = ("1", "all")
TRIES: Final = 4  # at most, until a leader has had to cut its log
RETURNED: Final = "former_leader_returned"
COMMITTED, POSSIBLY = "committed_records_lost", "records_possibly_lost"
UNCLEAN: Final = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}

pytestmark = [pytest.mark.integration, pytest.mark.timeout(RUNS * RUN_SECONDS + 300)]

logger = logging.getLogger(__name__)


@dataclass
class Load:
    """One producer of numbered records that waits for all in-sync replicas unless told otherwise."""

    servers: str
    topic: str
    acks: str = "all"
    sent: int = 0
    acknowledged: dict[int, int] = field(default_factory=dict)  # offset -> number
    stopping: threading.Event = field(default_factory=threading.Event)
    is_orderly: bool = True  # wait for what is on its way when it ends

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.stopping.set()
        self._thread.join()

    def _run(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self.servers, "acks": self.acks, "linger.ms": 2, "retries": 0}
        )
        while not self.stopping.wait(0.002):
            number = self.sent
            producer.produce(self.topic, str(number).encode(), on_delivery=self._note(number))
            self.sent += 1
            producer.poll(0)
        if not self.is_orderly:
            producer.purge()
        producer.flush(10 if self.is_orderly else 2)

    def _note(self, number: int) -> Callable[[Any, Any], None]:
        def note(error: Any, message: Any) -> None:
            if error is None:
                self.acknowledged[message.offset()] = number

        return note


def readable(faults: Sandbox, topic: str) -> dict[int, int]:
    """Return the numbers that a reader of the topic finds, by offset."""
    reader = Consumer(
        {
            "bootstrap.servers": faults.bootstrap_servers,
            "group.id": f"outside-{topic}",
            "enable.partition.eof": True,
        }
    )
    found: dict[int, int] = {}
    try:
        reader.assign([TopicPartition(topic, 0, 0)])
        while (message := reader.poll(30)) is not None and message.error() is None:
            found[message.offset() or 0] = int(message.value() or b"")
    finally:
        reader.close()
    return found


def breaches(watch: Watch, topic: str) -> list[Finding]:
    """Return all that was said of lost records of a topic, in any round."""
    return [finding for made in watch.rounds for finding in said(made, topic)]


def said(made: WatchedRound, topic: str) -> list[Finding]:
    return [
        finding
        for judgement in made.judged.judgements
        if judgement.rule.rule_id in (COMMITTED, POSSIBLY)
        for finding in judgement.findings(Verdict.BREACH)
        if finding.labels["topic"] == topic
    ]


def settled(made: WatchedRound, topic: str) -> list[Finding]:
    return [finding for finding in said(made, topic) if finding.reason == RETURNED]


def test_what_a_returning_leader_tells_is_what_acknowledgements_and_a_reader_say(
    faults: Sandbox, make_reader: MakeReader, new_name: Callable[[str], str]
) -> None:
    chance = random.Random(0)  # the same times in every run of the test
    reader = make_reader()
    for number in range(RUNS):
        assert_heals(reader)
        with closing(logs_of(faults, nodes_of(number))) as logs:
            inject(
                faults,
                Watch(make_reader(), [logs]),
                new_name("back"),
                seconds=chance.uniform(0.1, 4.0),
                is_seen=number % 2 == 0,
                is_orderly=number % 3 != 1,
            )


def nodes_of(number: int) -> list[int]:
    """Return whose logs are read: in every fourth run not the controller's."""
    return [1, 2, 3] if number % 4 == 3 else [1, 2, 3, CONTROLLER_ID]


def logs_of(faults: Sandbox, nodes: Sequence[int]) -> LogFiles:
    """Return the log files of these nodes as a feed, from their present ends on."""
    files = [
        {
            "path": str(faults.log_directory(node) / "*.log"),
            "broker_id": node,
            "name": f"node {node}",
        }
        for node in nodes
    ]
    return log_files(BrokerLogSettings.model_validate({"files": files}))


def inject(
    faults: Sandbox,
    watch: Watch,
    topic: str,
    *,
    seconds: float,
    is_seen: bool,
    is_orderly: bool,
) -> None:
    """Kill a leader that was alone for so long, elect its stale follower, and let it come back.

    Unless `is_seen` no round observes it while it is alone. An orderly load ends before the blow, so that each
    record was acknowledged or never sent; in the other runs the last ones are in doubt.
    """
    admin = SandboxAdmin(faults.bootstrap_servers)
    admin.create_topic(topic, assignment=[[LEADER, FOLLOWER]], configs=UNCLEAN)
    load = kill_alone(faults, watch, topic, seconds=seconds, is_seen=is_seen, is_orderly=is_orderly)
    faults.resume(FOLLOWER)
    let_stale_lead(faults, topic)
    watch.until(lambda made: leader_of(made, topic) == FOLLOWER, SETTLE_SECONDS)
    watch.round()
    after, before = readable(faults, topic), [one.reason for one in breaches(watch, topic)]
    faults.start(LEADER)
    made = watch.until(lambda made: settled(made, topic), SETTLE_SECONDS)
    watch.round()
    lost = sorted(at for at, number in load.acknowledged.items() if after.get(at) != number)
    in_doubt = load.sent - len(load.acknowledged)
    finding = settled(made, topic)[0]
    logger.info(
        "%s: alone for %.1f s, %s; told before: %s; %d acknowledged records gone, %d in doubt; told %s",
        *(topic, seconds, "seen" if is_seen else "unseen", before, len(lost), in_doubt),
        finding,
    )
    assert_tells(finding, lost, in_doubt=0 if is_orderly else in_doubt)
    last = breaches(watch, topic)[-1]
    assert last.reason in (RETURNED, "proven"), told(watch.rounds)
    admin.delete_topic(topic)


def kill_alone(
    faults: Sandbox, watch: Watch, topic: str, *, seconds: float, is_seen: bool, is_orderly: bool
) -> Load:
    """Kill a leader that has been alone for so long, under load; return what was written."""
    with Load(faults.bootstrap_servers, topic, is_orderly=is_orderly) as load:
        assert wait_until(lambda: len(load.acknowledged) > 100, timeout_seconds=180)
        watch.round()
        watch.round()
        faults.pause(FOLLOWER)
        stood = len(load.acknowledged)
        assert wait_until(lambda: len(load.acknowledged) > stood + 500, timeout_seconds=180)
        pause(seconds)
        if is_seen:
            watch.round()
        if is_orderly:
            load.stop()
        faults.kill(LEADER)
        load.stopping.set()
    return load


def assert_tells(finding: Finding, lost: list[int], *, in_doubt: int) -> None:
    """Assert that a finding has the exact range of what was lost, up to the records in doubt."""
    evidence = finding.evidence
    exact_from, exact_to = evidence["exact_from"], evidence["exact_to"]
    assert isinstance(exact_to, int)
    assert lost, "nothing was lost: the test injected in vain"
    assert lost == list(range(lost[0], lost[-1] + 1)), "what is lost is the end of the log"
    assert exact_from == lost[0]
    assert lost[-1] + 1 <= exact_to <= lost[-1] + 1 + in_doubt
    assert evidence["unknown_since"] is None
    proven = evidence["proven_committed_offsets"]
    assert proven is None or int(str(proven)) <= len(lost)


def test_a_leader_that_was_paused_and_resumed_cuts_its_log_and_has_lost_nothing_committed(
    faults: Sandbox, make_reader: MakeReader, new_name: Callable[[str], str]
) -> None:
    """Whether a leader has appended what nobody replicated is chance: some are paused until one cuts both logs."""
    for _ in range(TRIES):
        topics = {acks: new_name("paused") for acks in ACKS}
        with closing(logs_of(faults, [1, 2, 3])) as logs:
            watch = Watch(make_reader(), [logs])
            cut = pause_leader(faults, watch, topics)
        for acks, topic in topics.items():
            lines = lines_of(watch, topic, LogTruncated)
            logger.info("acks=%s: %s", acks, lines)
            assert lines or topic not in cut, "the line was read"
            found = [(one.rule.rule_id, one.reason) for one in breaches(watch, topic)]
            assert [rule for rule, reason in found if rule == COMMITTED or reason == RETURNED] == []
        if len(cut) == len(topics):
            return
    raise AssertionError("no leader that woke up had to cut both logs: the test paused in vain")


def pause_leader(faults: Sandbox, watch: Watch, topics: Mapping[str, str]) -> set[str]:
    """Pause the leader of topics under load, by acks, until another one leads; return whose log it cut then."""
    admin = SandboxAdmin(faults.bootstrap_servers)
    for topic in topics.values():
        admin.create_topic(
            topic, assignment=[[LEADER, FOLLOWER]], configs={"min.insync.replicas": "1"}
        )
    with ExitStack() as stack:
        loads = [
            stack.enter_context(Load(faults.bootstrap_servers, topic, acks=acks))
            for acks, topic in topics.items()
        ]
        assert wait_until(
            lambda: all(len(load.acknowledged) > 100 for load in loads), timeout_seconds=180
        )
        watch.round()
        faults.pause(LEADER)
        watch.until(lambda made: {leader_of(made, one) for one in topics.values()} == {FOLLOWER})
        faults.resume(LEADER)
        watch.until(
            lambda made: all(has_followed(made, topic) for topic in topics.values()), SETTLE_SECONDS
        )
        for load in loads:
            load.stop()
        for _ in range(3):
            watch.round()
    log = (faults.log_directory(LEADER) / "server.log").read_text("utf-8")
    return {topic for topic in topics.values() if f"Truncating partition {topic}-0 with " in log}


def has_followed(made: WatchedRound, topic: str) -> bool:
    """Return whether the old leader replicates from the new one; before that it has cut its log, if it had to."""
    return leader_of(made, topic) == FOLLOWER and LEADER in isr_of(made, topic)


def lines_of(watch: Watch, topic: str, kind: type[LogEvent]) -> list[LogEvent]:
    """Return what was read of one kind about a topic."""
    return [
        event
        for made in watch.rounds
        for event in (made.snapshot.broker_log.events if made.snapshot else ())
        if isinstance(event, kind) and event.topic == topic
    ]


def isr_of(made: WatchedRound, topic: str) -> tuple[int, ...]:
    if made.snapshot is None:
        return ()
    partitions = made.snapshot.partitions
    row = partitions.index.row(topic, 0)
    return () if row is None else tuple(partitions.isr[row] or ())


def leader_of(made: WatchedRound, topic: str) -> int | None:
    if made.snapshot is None:
        return None
    partitions = made.snapshot.partitions
    row = partitions.index.row(topic, 0)
    return None if row is None else partitions.leader[row]
