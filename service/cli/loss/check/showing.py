"""The answer of a check for a person: losses first, then what was not judged and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from collectors.naming import grouped
from service.api.core.models import VerdictWord
from service.cli.loss.check.verdicts import EXPLANATIONS, Conclusion, PartitionVerdict
from service.cli.loss.tables import incidents_in_order, render_details
from service.terminal.formats import Format, chosen_format
from service.terminal.parts import Column, Line, Part, Table, not_seen
from service.terminal.words import json_time, names_text, text, time

STYLES: Final = {VerdictWord.BREACH: "bold red", VerdictWord.UNKNOWN: "yellow"}


def render(conclusion: Conclusion, *, is_detailed: bool) -> Iterator[Part]:
    """Yield the losses, each with all details if `is_detailed`, and the verdicts."""
    yield from _head(conclusion)
    if is_detailed:
        for loss in conclusion.losses.losses:
            yield Line("")
            yield from render_details(loss)
    elif conclusion.incidents:
        yield from incidents_in_order(conclusion.incidents)
        yield Line("What to do: tidemark loss check TOPIC-PARTITION, with the same options")
    yield Line("")
    if is_detailed or chosen_format() in (Format.WIDE, Format.TSV):
        yield _of_partitions(conclusion)
    else:
        yield _by_reason(conclusion)
    yield Line(conclusion.limit)
    yield from not_seen(f"{gap.what}: {gap.why}" for gap in conclusion.checked.gaps)


def _head(conclusion: Conclusion) -> Iterator[Line]:
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in conclusion.counts.items())
    yield conclusion.losses.head(f"partitions: {counts}")
    before = conclusion.checked.before
    if before is not None:
        yield Line(
            f"compared with the round of {time(json_time(before.taken_at))} in {conclusion.file}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdicts:
    """The partitions with one verdict for one reason."""

    partitions: list[PartitionVerdict]

    @property
    def first(self) -> PartitionVerdict:
        return self.partitions[0]


def _by_reason(conclusion: Conclusion) -> Table[_Verdicts]:
    by_reason = grouped(
        ((partition.verdict, partition.class_, partition.reason), partition)
        for partition in conclusion.partitions
    )
    return Table(
        columns=(
            Column("verdict", lambda row: str(row.first.verdict), is_short=True),
            Column("partitions", lambda row: f"{len(row.partitions):,}", is_short=True),
            Column("reason", lambda row: row.first.reason),
            Column("which", lambda row: names_text([str(each.name) for each in row.partitions])),
            Column("explanation", lambda row: _explain(row.first)),
        ),
        rows=[_Verdicts(partitions=partitions) for partitions in by_reason.values()],
        style=lambda row: STYLES.get(row.first.verdict),
    )


def _of_partitions(conclusion: Conclusion) -> Table[PartitionVerdict]:
    return Table(
        columns=(
            Column("topic-partition", lambda row: str(row.name)),
            Column("verdict", lambda row: str(row.verdict), is_short=True),
            Column("reason", lambda row: row.reason),
            Column("epoch", lambda row: _then(row.leader_epoch_before, row.leader_epoch)),
            Column("HWM", lambda row: _then(row.high_watermark_before, row.high_watermark)),
            Column("explanation", _explain),
        ),
        rows=conclusion.partitions,
        style=lambda row: STYLES.get(row.verdict),
    )


def _explain(partition: PartitionVerdict) -> str:
    explanation = EXPLANATIONS.get(partition.reason)
    return text(partition.class_) if explanation is None else explanation


def _then(before: int | None, now: int | None) -> str:
    return text(now) if before in (None, now) else f"{before} -> {text(now)}"
