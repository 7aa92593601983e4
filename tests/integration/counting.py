"""A watcher that reads brokers' metrics and no logs, beside whatever else observes the same cluster."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from rules.facts.suspicions import Suspicion
from rules.verdict import Severity, Verdict
from service.app import cluster_reader
from service.observe.watch import WatchedRound
from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.state import Role
from service.settings import KafkaSettings
from tests.integration.scrape_watching import watching
from tests.integration.watching import Watch, told

LISTED_SECONDS: Final = 90.0
# What a round asks of leaders only because something is suspected.
CLOSE: Final = ("DescribeProducers", "Fetch")


def metrics_settings(cluster: Sandbox) -> dict[str, str]:
    """Return the settings `scrapes` for the pages of all nodes, which are on one machine."""
    brokers = [node for node in cluster.state.nodes if node.role is Role.BROKER]
    pages = {node.id: cluster.metrics_url(node.id) for node in cluster.state.nodes}
    ids = (f"{_address(pages[node.id])}={node.id}" for node in brokers)
    return {"pages": ",".join(pages.values()), "broker_ids": ",".join(ids)}


def _address(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]


@dataclass
class Counting:
    """Makes rounds in a thread until it is stopped; what it found of each topic is kept."""

    watch: Watch
    findings: dict[str, list[Any]] = field(default_factory=dict)  # breaches by topic
    suspicions: dict[str, Suspicion] = field(default_factory=dict)  # the latest state, by id
    stopping: threading.Event = field(default_factory=threading.Event)
    rounds: int = 0

    def run(self) -> None:
        """Make rounds."""
        while not self.stopping.is_set():
            self.note(self.watch.round())
            del self.watch.rounds[:-20]

    def note(self, made: WatchedRound) -> None:
        """Keep what a round said."""
        for judgement in made.judged.judgements:
            for finding in judgement.findings(Verdict.BREACH):
                self.findings.setdefault(finding.labels.get("topic", ""), []).append(finding)
        if made.view is not None:
            for suspicion in made.view.memory.suspicions.suspicions:
                self.suspicions[suspicion.id] = suspicion
        self.rounds += 1

    def wait_rounds(self, number: int = 2) -> None:
        """Wait for further rounds."""
        until = self.rounds + number
        assert wait_until(lambda: self.rounds >= until, timeout_seconds=LISTED_SECONDS)

    def breaches(self, topic: str, rule: str) -> list[Any]:
        """Return what a rule said of a topic."""
        found = self.findings.get(topic, ())
        return [finding for finding in found if finding.rule.rule_id == rule]

    def pages(self, topic: str) -> set[str]:
        """Return the rules that would wake somebody up for a topic."""
        found = self.findings.get(topic, ())
        return {one.rule.rule_id for one in found if one.severity is Severity.CRITICAL}

    def said(self) -> str:
        """Return what the last rounds said, and what is suspected."""
        suspected = (
            f"{one.brokers} {one.error} {one.count} {one.outcome} "
            f"{[(str(each.name), str(each.state), each.breaks) for each in one.partitions[:4]]}"
            for one in self.suspicions.values()
        )
        return "\n".join([told(self.watch.rounds), *suspected])


@contextmanager
def counting(cluster: Sandbox, topics: str) -> Iterator[Counting]:
    """Watch topics of a cluster by offsets and brokers' metrics alone, a round each second or two."""
    servers = {"bootstrap_servers": cluster.bootstrap_servers}
    reader = cluster_reader(KafkaSettings.model_validate(servers))
    try:
        with watching(**metrics_settings(cluster), timeout_seconds=10.0) as scrapes:
            counted = Counting(Watch(reader, scrapes=scrapes.scrapes, topics=topics))
            thread = threading.Thread(target=counted.run)
            thread.start()
            try:
                yield counted
            finally:
                counted.stopping.set()
                thread.join()
    finally:
        reader.close()
