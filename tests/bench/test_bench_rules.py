"""Judging a round of 10,000 partitions x 1,001 groups (31,590 commits); stats are printed.

A quiet round, a round in which all brokers but one are gone, and one with 5,000 open findings.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np

from rules.catalogue.all_rules import Judged, count_verdicts, judge_round
from rules.completeness import Completeness
from rules.facts.column import Ragged
from rules.facts.memory import Memory, advance
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot
from rules.open_findings import Identity, OpenFinding, apply_changes, next_changes
from rules.verdict import Verdict
from rules.view import View
from service.metrics.exposition import Exposition
from service.metrics.totals import SelfMetrics
from service.runtime.clock import monotonic
from tests.bench.large import GROUPS, PLACED, ROWS, TITLE, abandoned, moving, stuck
from tests.factories import broker, gap

Done = TypeVar("Done")

ROUNDS = 20
OPEN = 5_000


class Process:
    """What a process carries from round to round; counts the time of each part."""

    def __init__(self) -> None:
        self.memory: Memory | None = None
        self.judged = Judged(judgements=())
        self.exposition = Exposition()
        self.totals = SelfMetrics(version="0.1.0")
        self.open: dict[Identity, OpenFinding] = {}
        self.took: dict[str, list[float]] = {}

    def timed(self, part: str, action: Callable[[], Done]) -> Done:
        """Do it and note how long it took."""
        begin = monotonic()
        done = action()
        self.took.setdefault(part, []).append(monotonic() - begin)
        return done

    def make_round(self, seen: Snapshot) -> None:
        """Do what a round does once everything is collected."""
        before, now = self.memory, seen.taken_at
        memory = self.timed("memory", lambda: advance(seen, before))
        view = View(snapshot=seen, memory=memory, before=before, now=now)
        judged = self.timed("rules", lambda: judge_round(view, self.judged.unknown_since))
        counts = count_verdicts(judged.judgements)
        totals = self.totals.after_round(seen.report, counts)
        self.timed("metrics text", lambda: self.exposition.update(seen, totals))
        whole = Completeness.of(seen)
        changes = self.timed(
            "lifecycle",
            lambda: next_changes(self.open, judged.judgements, completeness=whole, now=now),
        )
        self.open = self.timed("apply", lambda: apply_changes(self.open, changes, now))
        self.memory, self.judged, self.totals = memory, judged, totals

    def forget_times(self) -> None:
        """Begin to count anew."""
        self.took = {}

    def stats(self) -> Iterator[str]:
        """Say median and maximum of every part, and of all together."""
        whole = [sum(parts) for parts in zip(*self.took.values(), strict=True)]
        for part, seconds in (*self.took.items(), ("together", whole)):
            yield (
                f"    {part:<13} median {statistics.median(seconds) * 1000:7.1f} ms, "
                f"max {max(seconds) * 1000:7.1f} ms"
            )


def report(title: str, process: Process) -> None:
    print(f"\n  {title}, {len(process.open):,} findings open", *process.stats(), sep="\n")


def test_judging_a_quiet_round() -> None:
    print(f"\n{TITLE} (bar: 200 ms)")
    process = Process()
    process.make_round(moving(0))
    report("first round", process)
    process.forget_times()
    for number in range(1, ROUNDS + 1):
        process.make_round(moving(number))
    report(f"{ROUNDS} rounds, everything moves", process)
    assert not process.open
    process.forget_times()
    for number in range(ROUNDS + 1, 2 * ROUNDS + 1):
        process.make_round(moving(number, committed_at=ROUNDS))
    report(f"{ROUNDS} rounds, no group moves", process)
    [stalled] = [
        judgement
        for judgement in process.judged.judgements
        if judgement.rule.rule_id == "consumer_group_stalled"
    ]
    assert len(process.open) == stalled.count(Verdict.BREACH) > 0


def test_judging_when_all_brokers_but_one_are_gone() -> None:
    process = Process()
    process.make_round(moving(0))
    process.forget_times()
    process.make_round(last_broker(1))
    report("all brokers but one gone, first round", process)
    process.forget_times()
    for number in range(2, ROUNDS + 2):
        process.make_round(last_broker(number))
    report(f"all brokers but one gone, {ROUNDS} rounds", process)
    assert len(process.open) > ROWS


def test_judging_with_many_open_findings() -> None:
    process = Process()
    for number in range(4):
        process.make_round(stuck(number, since=0, rows=OPEN))
    assert len(process.open) == OPEN
    process.forget_times()
    for number in range(4, ROUNDS + 4):
        process.make_round(stuck(number, since=0, rows=OPEN))
    report(f"{OPEN:,} high watermarks stuck, {ROUNDS} rounds", process)
    process.forget_times()
    process.make_round(moving(ROUNDS + 4))
    report("the round in which all of them end", process)
    assert not process.open


def test_judging_groups_that_nobody_uses_any_more() -> None:
    process = Process()
    for number in range(6):
        process.make_round(abandoned(number))
    process.forget_times()
    for number in range(6, ROUNDS + 6):
        process.make_round(abandoned(number))
    report(f"{GROUPS:,} groups without members before 30 ends each, {ROUNDS} rounds", process)
    assert len(process.open) == GROUPS


def last_broker(number: int) -> Snapshot:
    """Return a round in which one broker of three is left: it leads every third partition."""
    is_led = np.arange(ROWS) % 3 == 0
    quiet = moving(number)
    known = {
        name: getattr(quiet.offsets, name).where(is_led)
        for name in ("log_start_offset", "last_stable_offset", "high_watermark", "log_end_offset")
    }
    placed: Partitions = replace(
        PLACED,
        leader=PLACED.leader.where(is_led),
        isr=Ragged.of([(1,) if led else (2,) for led in is_led.tolist()]),
    )
    return replace(
        quiet,
        brokers=(broker(1),),
        partitions=placed,
        offsets=replace(
            quiet.offsets, **known, leader_epoch=quiet.offsets.leader_epoch.where(is_led)
        ),
        gaps=(gap(),),
    )
