"""The story of the demo: three acts on a cluster of its own, each judged by its offsets."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from rules.facts.snapshot import Snapshot
from service import clock
from service.app import cluster_reader
from service.cli.live import LiveView
from service.rounds import ClusterReader, Scope
from service.sandbox.admin import SandboxAdmin
from service.sandbox.cluster import Sandbox
from service.sandbox.workloads.producer import IdempotentProducer
from service.sandbox.workloads.standard import WorkloadPlan, standard_workload
from service.sandbox.workloads.transactions import OpenTransaction
from service.settings import KafkaSettings

ROUND_SECONDS: Final = 1.0
SEEN_WITHIN_SECONDS: Final = 30.0  # an act may last longer than planned until it was seen
PAYMENTS: Final = "payments"
AUDIT: Final = "audit"
FROZEN: Final = (2, 3)


class DemoStory:
    """Tells the story; `stop` ends it early, and the cluster is taken down in any case."""

    def __init__(self, stop: threading.Event, *, act_seconds: float) -> None:
        self._stop = stop
        self._act_seconds = act_seconds
        self._outcomes: list[tuple[str, bool]] = []
        self._took: list[float] = []

    def tell(self) -> bool:
        """Run all acts and print a summary; True if each was seen in the offsets."""
        with self._cluster() as sandbox, self._reader(sandbox) as reader:
            self._healthy_load(sandbox, reader)
            self._frozen_followers(sandbox, reader)
        return self._summary()

    # -------------------------------------------------------------- acts
    def _healthy_load(self, sandbox: Sandbox, reader: ClusterReader) -> None:
        plan = WorkloadPlan(rate=100, abort_every=5, slow_rate=10)
        SandboxAdmin(sandbox.bootstrap_servers).create_topic(PAYMENTS)
        with standard_workload(sandbox, plan):
            self._act(
                reader,
                "A healthy load: transactions, a fast group, and a slow one whose lag grows",
                lambda snapshot: len(snapshot.commits) > 0 and not snapshot.gaps,
            )
            if self._stop.is_set():
                return
            with OpenTransaction(sandbox.bootstrap_servers, topic=PAYMENTS, records=5):
                self._act(
                    reader,
                    f"A transaction on {PAYMENTS} stays open: the LSO stands below the HWM",
                    lambda snapshot: _span(snapshot, PAYMENTS, open_span=True) == 5,
                )

    def _frozen_followers(self, sandbox: Sandbox, reader: ClusterReader) -> None:
        if self._stop.is_set():
            return
        admin = SandboxAdmin(sandbox.bootstrap_servers)
        admin.create_topic(AUDIT, assignment=[[1, *FROZEN]])
        with IdempotentProducer(sandbox.bootstrap_servers, topic=AUDIT, rate=20):
            for broker in FROZEN:
                sandbox.pause(broker)
            self._act(
                reader,
                f"Brokers 2 and 3 freeze: on {AUDIT} the LEO runs ahead of the HWM",
                lambda snapshot: (_span(snapshot, AUDIT, open_span=False) or 0) > 0,
            )
            for broker in FROZEN:
                sandbox.resume(broker)

    def _act(self, reader: ClusterReader, title: str, is_seen: Callable[[Snapshot], bool]) -> None:
        """Show rounds for the act's time, and longer if what it is about was not seen yet."""
        if self._stop.is_set():
            return
        click.secho(f"\n{len(self._outcomes) + 1}. {title}", bold=True)
        begin = clock.monotonic()
        was_seen = False
        with LiveView(as_json=False, all_rows=False) as view:
            last: Snapshot | None = None
            while not self._is_over(begin, was_seen=was_seen):
                last = reader.read(Scope())
                self._took.append(last.report.took_seconds)
                was_seen = was_seen or is_seen(last)
                if view.is_live:
                    view.show(last)
                self._stop.wait(ROUND_SECONDS)
            if last is not None and not view.is_live:
                view.show(last)
        self._outcomes.append((title, was_seen))

    def _is_over(self, begin: float, *, was_seen: bool) -> bool:
        elapsed = clock.monotonic() - begin
        limit = self._act_seconds if was_seen else max(self._act_seconds, SEEN_WITHIN_SECONDS)
        return self._stop.is_set() or elapsed >= limit

    # -------------------------------------------------------------- surroundings
    @contextlib.contextmanager
    def _cluster(self) -> Iterator[Sandbox]:
        with tempfile.TemporaryDirectory(prefix="tidemark-demo-") as folder:
            sandbox = Sandbox(
                Path(folder) / "kafka", progress=lambda line: click.echo(line, err=True)
            )
            begin = clock.monotonic()
            try:
                click.echo("Starting a controller and three brokers ...")
                sandbox.up()
                click.echo(f"Kafka is running after {clock.monotonic() - begin:.1f} s.")
                yield sandbox
            finally:
                sandbox.down()
                click.echo("\nThe cluster is down and its files are removed.")

    @contextlib.contextmanager
    def _reader(self, sandbox: Sandbox) -> Iterator[ClusterReader]:
        settings = KafkaSettings(
            name="demo", bootstrap_servers=sandbox.bootstrap_servers, request_timeout_seconds=1.0
        )
        reader = cluster_reader(settings)
        try:
            yield reader
        finally:
            reader.close()

    def _summary(self) -> bool:
        if self._stop.is_set():
            click.echo("Interrupted.")
            return False
        console = Console(highlight=False)
        for title, was_seen in self._outcomes:
            mark = "[green]seen[/]" if was_seen else "[bold red]NOT SEEN[/]"
            console.print(f"{mark}  {title}")
        middle = sorted(self._took)[len(self._took) // 2] * 1000
        console.print(f"{len(self._took)} rounds, {middle:.0f} ms at the median.")
        return all(was_seen for _, was_seen in self._outcomes)


def _span(snapshot: Snapshot, topic: str, *, open_span: bool) -> int | None:
    """Return one span of the topic's first partition, None where it is not known."""
    row = snapshot.partitions.index.row(topic, 0)
    offsets = snapshot.offsets
    spans = offsets.open_span if open_span else offsets.unreplicated_span
    return None if row is None else spans[row]
