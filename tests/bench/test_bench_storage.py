"""Storing a round of 10,000 partitions x 1,001 groups with 100 changes; stats are printed.

Offsets are arbitrary, which compresses worst; the server runs on this machine.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

from rules.completeness import Completeness
from rules.facts.column import Column
from rules.facts.groups import Commits
from rules.facts.memory import Memory, advance
from rules.facts.snapshot import Snapshot
from rules.judgement import CommitSubjects, Judgement, Reason
from rules.open_findings import Identity, OpenFinding, apply_changes, next_changes
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from service.runtime.clock import monotonic
from service.storage.database import schema
from service.storage.database.engine import Database, open_database
from service.storage.formats.checkpoint import Checkpoint, encode
from service.storage.rounds import clusters
from service.storage.rounds.clusters import ClusterKey, RoundId
from service.storage.rounds.rounds import Round, store_rounds
from tests.bench.large import COMMITS, ROWS, TITLE, moving
from tests.factories import CLUSTER_ID, at

CHANGES = 100
ROUNDS = 15


class Why(Reason):
    SAID = "said"


RULE = RuleMeta(
    rule_id="some_rule",
    subject=SubjectKind.COMMIT,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    for_=at(1) - at(0),
    summary="For the bench.",
)


@pytest.fixture
def database(folder: Path) -> Iterator[Database]:
    made = open_database(None, folder)
    schema.upgrade(made.engine)
    yield made
    made.close()


def test_storing_a_round(database: Database) -> None:
    engine = database.engine
    key = ClusterKey("bench", CLUSTER_ID)
    cluster = clusters.register(engine, key, at(0))
    writer = uuid4()
    open_findings: dict[Identity, OpenFinding] = {}
    took: dict[str, list[float]] = {"judge": [], "encode": [], "store": []}
    checkpoint = Checkpoint()
    for number in range(ROUNDS):
        seen = _snapshot(number)
        checkpoint = Checkpoint(memory=advance(seen, checkpoint.memory))
        begin = monotonic()
        said = [_judgement(seen, number)]
        whole = Completeness.of(seen)
        changes = next_changes(open_findings, said, completeness=whole, now=seen.taken_at)
        open_findings = apply_changes(open_findings, changes, seen.taken_at)
        took["judge"].append(monotonic() - begin)
        begin = monotonic()
        encode(checkpoint)
        took["encode"].append(monotonic() - begin)
        made = Round(
            cluster=key,
            round_id=RoundId(writer, number),
            at=seen.taken_at,
            changes=changes,
            checkpoint=checkpoint,
        )
        begin = monotonic()
        store_rounds(engine, [made])
        took["store"].append(monotonic() - begin)
        assert CHANGES <= len(changes) <= 2 * CHANGES
    begin = monotonic()
    clusters.load_checkpoint(engine, cluster)
    _print(took, monotonic() - begin, checkpoint.memory)


def _print(took: dict[str, list[float]], load: float, memory: Memory | None) -> None:
    assert memory is not None
    whole = len(encode(Checkpoint(memory=memory)))
    bare = advance(replace(_snapshot(ROUNDS), groups=(), commits=Commits.none()))
    only_partitions = len(encode(Checkpoint(memory=bare)))
    print(f"\n{TITLE}, {CHANGES} breaches")
    for name, seconds in took.items():
        print(
            f"  {name:<7} median {statistics.median(seconds) * 1000:6.1f} ms, "
            f"max {max(seconds) * 1000:6.1f} ms"
        )
    print(
        "  (store includes its own encode; bar: under 200 ms)"
        f"\n  load    {load * 1000:.1f} ms"
        f"\n  checkpoint {whole / 1000:.0f} kB, of it partitions {only_partitions / 1000:.0f} kB "
        "(bar: 300 kB)"
    )


def _snapshot(number: int) -> Snapshot:
    """Return a round in which the three ends of a partition differ."""
    draw = np.random.default_rng(number)
    seen = moving(number)
    ends = seen.offsets.high_watermark.values
    spread = replace(
        seen.offsets,
        last_stable_offset=Column.known(ends - draw.integers(0, 100, ROWS)),
        log_end_offset=Column.known(ends + draw.integers(0, 100, ROWS)),
    )
    return replace(seen, offsets=spread)


def _judgement(seen: Snapshot, number: int) -> Judgement:
    verdicts = np.zeros(COMMITS, np.int8)
    verdicts[number * 50 : number * 50 + CHANGES] = Verdict.BREACH
    return Judgement(
        rule=RULE,
        subjects=CommitSubjects.all_of(seen),
        verdicts=verdicts,
        reasons=(Why.SAID,),
        reason=np.zeros(COMMITS, np.int8),
        evidence={"lag": seen.commits.read_committed_lag(seen.offsets)},
    )
