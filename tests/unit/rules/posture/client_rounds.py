"""Rounds that sample batches and commits, remembered one after the other, and what a check says at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rules.facts.batch_samples import BatchSamples, CommitSample, PartitionSample, WriterSample
from rules.facts.identity import TopicPartition
from rules.facts.memory import Memory, advance
from rules.facts.snapshot import Snapshot
from rules.posture.line import PostureJudgement, PostureLine, Unseen
from rules.posture.subject import PostureSubject, subject_of
from rules.verdict import Verdict
from rules.view import View
from tests.factories import at, snapshot

ROUND_SECONDS = 10

Judge = Callable[[PostureSubject], PostureJudgement]


def writer(producer_id: int | None = 7, offset: int = 0, **overrides: Any) -> WriterSample:
    """Return a producer whose sampled batch at an offset is not the first of its producer id."""
    base = WriterSample(
        producer_id=producer_id,
        producer_epoch=None if producer_id is None else 0,
        first_offset=offset,
        last_offset=offset,
        first_sequence=None if producer_id is None else 50,
        first_epoch=None if producer_id is None else 0,
        first_record_at=at(offset),
        last_record_at=at(offset),
        batch_count=1,
        is_transactional=False,
    )
    return replace(base, **overrides)


def beginning(producer_id: int, offset: int, **overrides: Any) -> WriterSample:
    """Return a producer whose sampled batch is the first of its producer id there."""
    return writer(producer_id, offset, first_sequence=0, **overrides)


def sample(*writers: WriterSample, row: int = 0) -> PartitionSample:
    """Return a sample of one partition."""
    ends = [each.last_offset + 1 for each in writers]
    return PartitionSample(
        row=row, sampled_from=0, sampled_to=max(ends, default=0), writers=writers
    )


def sampled(*partitions: PartitionSample, **overrides: Any) -> BatchSamples:
    """Return what one round sampled."""
    return BatchSamples(is_read=True, partitions=partitions, **overrides)


def commit(offset: int, producer_id: int | None = None, group: str = "billing") -> CommitSample:
    """Return a commit; without a producer it belongs to no transaction."""
    return CommitSample(
        group_id=group,
        name=TopicPartition("orders", 0),
        offset=offset,
        producer_id=producer_id,
        record_at=at(offset),
    )


def rounds(*samples: BatchSamples, **overrides: Any) -> list[Snapshot]:
    """Return rounds ten seconds apart."""
    return [
        snapshot(taken_at=at(ROUND_SECONDS * number), batch_samples=each, **overrides)
        for number, each in enumerate(samples)
    ]


def view_after(snapshots: Sequence[Snapshot], memory: Memory | None = None) -> View:
    """Return the view of the last round."""
    before = memory
    for each in snapshots:
        before, memory = memory, advance(each, memory)
    assert memory is not None
    last = snapshots[-1]
    return View(snapshot=last, memory=memory, before=before, now=last.taken_at)


def named(judge: Judge, view: View) -> list[PostureLine]:
    """Return what the check names."""
    return list(judge(subject_of(view)).lines(Verdict.BREACH))


def unknown(judge: Judge, view: View) -> list[PostureLine]:
    """Return what the check cannot say; its last line is that of all clients."""
    *lines, rest = judge(subject_of(view)).lines(Verdict.UNKNOWN)
    assert rest.reason is Unseen.CLIENT_ONLY
    return lines
