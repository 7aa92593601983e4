"""A process that reads a log until it is killed; what it reads is stored as rounds of a service are.

Every rejected batch opens a finding of its own, and the checkpoint has the position and how many
lines were read in all: if a line were judged twice there would be a transition too many.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, timedelta
from pathlib import Path
from threading import Event
from typing import Final
from uuid import uuid4

from collectors.broker_log.disk import Disk
from collectors.broker_log.log_reading import PassLimits
from collectors.broker_log.tail import LogTail, TailSource
from rules.completeness import Completeness
from rules.facts.broker_log import LogEvent, SequenceRejected
from rules.facts.identity import BrokerId
from rules.open_findings import Change, next_changes
from rules.verdict import Verdict
from service.runtime.clock import monotonic
from service.storage.database.engine import open_database
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds.clusters import ClusterKey, RoundId
from service.storage.rounds.rounds import Round
from service.storage.rounds.store import PostgresStore
from tests.factories import CLUSTER_ID, NOON, snapshot
from tests.integration.storage.given import judged

FEED: Final = "files"
LINES: Final = "lines"  # in the checkpoint: read so far
KEY: Final = ClusterKey("default", CLUSTER_ID)


def read(url: str, pattern: str, observation_bytes: int) -> None:
    """Observation again and again, and tell after each stored observation how many lines were read so far."""
    store, writer = PostgresStore(lambda: open_database(url, Path("/nowhere"))), uuid4()
    before = store.load(KEY.name, writer).checkpoint or Checkpoint()
    position, lines = before.log_positions.get(FEED), before.unknown_since.get(LINES, 0)
    source = TailSource(name="kafka", pattern=pattern, broker_id=BrokerId(1), zone=UTC)
    limits = PassLimits(bytes=observation_bytes)
    tail = LogTail(Disk(), [source], monotonic=monotonic, limits=limits)
    for number in range(1, sys.maxsize):
        found = tail.read(position)
        assert found.gaps == (), found.gaps
        lines += sum(one.lines for one in found.sources)
        position = found.position
        checkpoint = Checkpoint(unknown_since={LINES: lines}, log_positions={FEED: position})
        store.store([
            Round(
                cluster=KEY,
                round_id=RoundId(writer, number),
                at=NOON + timedelta(seconds=number),
                changes=opened(found.events),
                checkpoint=checkpoint,
            )
        ])  # fmt: skip
        sys.stdout.write(f"{lines}\n")
        sys.stdout.flush()
        if not found.is_behind:
            Event().wait(0.02)


def opened(events: Sequence[LogEvent]) -> list[Change]:
    """Return a change per event: a finding that opens."""
    names = [str(one.incoming_sequence) for one in events if isinstance(one, SequenceRejected)]
    assert len(set(names)) == len(names) == len(events)
    said = [judged(dict.fromkeys(names, Verdict.BREACH))]
    return next_changes({}, said, completeness=Completeness.of(snapshot()), now=NOON)


if __name__ == "__main__":
    read(sys.argv[1], sys.argv[2], int(sys.argv[3]))
