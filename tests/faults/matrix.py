"""A service that watches the sandbox and reads its brokers' logs, and what it says of one fault."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from rules.facts.sequence_verdicts import Phase, SequenceClass
from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults import (
    Client,
    SequenceEpisode,
    SequenceName,
    SequenceTruth,
    prepare_sequence,
)
from tests.faults import panels
from tests.faults.without_logs import SuspicionMark
from tests.integration.counting import Counting
from tests.integration.sandbox_logs import log_files_of
from tests.integration.serve.claims import Before, answers_before, assert_shown
from tests.integration.serve.scraping import Prometheus
from tests.integration.serve.served import Document, Served, Start

SEEN_SECONDS: Final = 90.0  # from the blow on; two rounds and an election, on a busy machine
PATIENCE_SECONDS: Final = 240.0  # where a client's delivery timeout has to pass first
INTERVAL: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """Two producers whose batch of 30 records was rejected, and given up, behind as large a gap."""

    topic: str
    gap: int
    times: int  # how often each was rejected
    ends: int  # the producer that writes no more
    goes_on: int  # the one that writes on under a newer epoch


class FaultPanels:
    """The panels of a Prometheus that scrapes the service: each fault is asserted once on them."""

    def __init__(self, server: Prometheus) -> None:
        self._server = server
        self._left = dict(panels.SEQUENCES)

    def before(self, fault: SequenceName) -> Before:
        """Return what a fault is going to raise."""
        return answers_before(self._server, self._left.get(fault, ()))

    def assert_fault(self, truth: SequenceTruth, before: Before) -> None:
        """Assert that the panels show a fault, unless they have shown it already."""
        assert_shown(self._server, self._left.pop(truth.fault, ()), truth, before)


class Matrix:
    """One service for all faults: each has a topic of its own."""

    def __init__(
        self,
        cluster: Sandbox,
        folder: Path,
        *,
        reads_logs: bool = True,
        topics: str = "sequence-.*",
    ) -> None:
        settings = {"BROKER_LOGS__FILES": json.dumps(log_files_of(cluster))} if reads_logs else {}
        self._start = Start(
            bootstrap=cluster.bootstrap_servers,
            directory=folder / "data",
            topics=topics,
            interval=INTERVAL,
            settings=settings,
        )
        self._folder = folder
        self._logs = 0
        self.served = self._serve()
        self.panels: FaultPanels | None = None  # of the service that sees every fault
        self.counting: Counting | None = None  # sees every fault too, by metrics and without logs

    def restart(self) -> None:
        """Kill the service and start it again on what it had stored."""
        self.served.kill()
        self.served = self._serve()

    def ensure_running(self) -> None:
        """Start the service again if it died."""
        if self.served.process.poll() is not None:
            self.served = self._serve()

    def await_watched(self, topic: str) -> None:
        """Wait until the last rounds saw a topic whole, so that what comes next is a change."""
        path = f"/api/v1/partitions?topic={topic}"
        assert wait_until(
            lambda: len(self.served.document(path)["items"]) > 0, timeout_seconds=SEEN_SECONDS
        ), self.served.reported()
        self.served.wait_rounds(2)

    def await_breach(self, topic: str, rule: str) -> None:
        """Wait until a rule has spoken of a topic."""
        is_said = wait_until(
            lambda: rule in self.breaches(topic), timeout_seconds=SEEN_SECONDS, poll_seconds=0.3
        )
        assert is_said, self.served.reported()

    def episodes(self, topic: str) -> list[Document]:
        """Return the events of sequences of a topic."""
        path = f"/api/v1/sequences?state=all&limit=1000&topic={topic}"
        items: list[Document] = self.served.document(path)["items"]
        return items

    def breaches(self, topic: str) -> dict[str, list[Document]]:
        """Return every breach of a topic so far, by rule."""
        by_rule: dict[str, list[Document]] = {}
        for finding in self.served.findings(state="all"):
            if finding["labels"].get("topic") == topic and finding["verdict"] == "breach":
                by_rule.setdefault(finding["rule"], []).append(finding)
        return by_rule

    def count_rounds_until_reported(self, topic: str, rule: str) -> int:
        """Count the rounds from the one that read a line of a topic to the one that reported it."""
        [event], [finding] = self.episodes(topic), self.breaches(topic)[rule]
        ends = [datetime.fromisoformat(round_row["time"]) for round_row in self.served.rounds()]
        read, reported = (
            sum(end < datetime.fromisoformat(timestamp) for end in ends)
            for timestamp in (event["first_seen"], finding["since"])
        )
        return reported - read + 1

    def _serve(self) -> Served:
        self._logs += 1
        served = Served(self._start, self._folder / f"{self._logs}.log")
        try:
            return served.wait_ready()
        except BaseException:
            served.kill()  # the next one needs its directory
            raise


def event_of(episode: SequenceEpisode, events: Sequence[Document]) -> Document | None:
    """Return what is said of a producer, once it is confirmed."""
    for event in events:
        is_it = (event["producer_id"], event["partition"]) == (
            episode.producer_id,
            episode.partition,
        )
        if is_it and event["phase"] == Phase.CONFIRMED:
            return event
    return None


def is_settled(matrix: Matrix, truth: SequenceTruth) -> bool:
    """Whether all that has to be found is found, and every producer's class is confirmed."""
    events, breaches = matrix.episodes(truth.topic), matrix.breaches(truth.topic)
    needed = {rule for rule in (truth.rule, *truth.also) if rule is not None}
    return needed <= set(breaches) and all(event_of(episode, events) for episode in truth.episodes)


def assert_reported(matrix: Matrix, truth: SequenceTruth, seconds: float = SEEN_SECONDS) -> None:
    """Assert that a fault is reported exactly, and nothing else of it."""
    wait_until(lambda: is_settled(matrix, truth), timeout_seconds=seconds, poll_seconds=0.3)
    matrix.served.wait_rounds(3)
    events, breaches = matrix.episodes(truth.topic), matrix.breaches(truth.topic)
    said = json.dumps([truth.document(), events, breaches], indent=1)
    assert is_settled(matrix, truth), said
    for episode in truth.episodes:
        assert_event(truth, episode, event_of(episode, events), said)
    assert len(events) == len(truth.episodes), said
    assert not set(breaches) & set(truth.silent), said
    assert_pages(truth, breaches, said)


def assert_event(
    truth: SequenceTruth, episode: SequenceEpisode, event: Document | None, said: str
) -> None:
    assert event is not None, said
    assert event["class"] == episode.sequence_class, said
    assert (event["incoming_sequence"], event["gap"]) == (episode.incoming_sequence, episode.gap), (
        said
    )
    if episode.current_sequence is not None:
        assert event["current_sequence"] == episode.current_sequence, said
    assert event["offset"] == episode.offset, said
    # A Java client goes on sending what was in flight when the fault counted.
    is_counted = episode.client is not Client.JAVA
    assert (
        event["rejections"] == episode.lines if is_counted else event["rejections"] >= episode.lines
    ), said
    assert event["brokers"] == [episode.broker_id], said
    is_loss = episode.sequence_class is SequenceClass.LOSS
    assert (event["at_most_records"] is not None) is is_loss, said
    if is_loss:
        assert event["at_most_records"] == episode.gap, said
    if is_loss and event["lost_from"] is not None:
        [lost] = truth.lost
        assert (event["lost_from"], event["lost_to"]) == (lost.lost_from, lost.lost_to), said


def assert_pages(truth: SequenceTruth, breaches: dict[str, list[Document]], said: str) -> None:
    """Assert that only a loss wakes somebody up."""
    paging = {
        breach["rule"]
        for rows in breaches.values()
        for breach in rows
        if breach["severity"] == "critical"
    }
    is_loss = any(episode.sequence_class is SequenceClass.LOSS for episode in truth.episodes)
    assert bool(paging) is is_loss, said


@contextlib.contextmanager
def injected(
    matrix: Matrix, sandbox: Sandbox, name: SequenceName, options: dict[str, Any]
) -> Iterator[SequenceTruth]:
    """Make a fault that the service has seen coming, and hold what it says against the truth.

    The block may observe it once more by itself; then it is undone.
    """
    assert matrix.panels is not None
    with prepare_sequence(name, sandbox, **options) as prepared:
        matrix.await_watched(prepared.topic)
        before = matrix.panels.before(name)
        mark = SuspicionMark.of(matrix.counting)
        truth = prepared.inject()
        assert_reported(matrix, truth)
        matrix.panels.assert_fault(truth, before)
        mark.assert_suspected(truth)
        yield truth


def inject(
    matrix: Matrix, sandbox: Sandbox, name: SequenceName, options: dict[str, Any]
) -> SequenceTruth:
    """Do the same, where nobody else observations."""
    with injected(matrix, sandbox, name, options) as truth:
        return truth
