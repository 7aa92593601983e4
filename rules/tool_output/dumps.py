"""Judges what `kafka-dump-log` printed of a log, followed batch by batch as `rules/log_files/` follows a log on disk.

A text is a part of a log: what lies before, behind or between its lines is not known. Without --deep-iteration the tool
does not print whether a control record commits or aborts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from rules.facts.application_log import Names
from rules.facts.identity import TopicPartition
from rules.facts.log_files import (
    CONTROL_BIT,
    NONE,
    TRANSACTIONAL_BIT,
    BatchBlock,
    ControlRecord,
    ControlType,
)
from rules.facts.log_findings import LogFindings, SequenceGap, SequenceGapReason
from rules.facts.log_folders import PartitionLog, SegmentFile
from rules.facts.tool_output import (
    DumpedAbort,
    DumpedBatch,
    DumpedCommit,
    DumpedFile,
    DumpedProducer,
    DumpedRecord,
    Marker,
    Tool,
    ToolFact,
)
from rules.log_files.analysis import LogAnalysis
from rules.log_files.histories import INTERNAL_TOPICS
from rules.tool_output.findings import Findings, ToolFinding
from rules.tool_output.reasons import Reason

REASONS: Final = {
    SequenceGapReason.SEQUENCES_MISSING: Reason.SEQUENCES_MISSING,
    SequenceGapReason.SEQUENCES_REPEATED: Reason.SEQUENCES_REPEATED,
    SequenceGapReason.EPOCH_WENT_BACK: Reason.SEQUENCES_REPEATED,
}  # all others are not decided


@dataclass(slots=True)
class Dump:
    """The lines of one file, or of a part of it, in the order of their offsets."""

    file: DumpedFile | None = None  # None: the line that names it is not in the text
    batches: list[DumpedBatch] = field(default_factory=list)
    markers: dict[int, DumpedRecord] = field(default_factory=dict)  # by offset
    records: list[DumpedRecord] = field(default_factory=list)  # without the line of their batch
    producers: list[DumpedProducer] = field(default_factory=list)
    aborts: list[DumpedAbort] = field(default_factory=list)
    commits: list[DumpedCommit] = field(default_factory=list)

    @property
    def place(self) -> TopicPartition | None:
        """Return the partition, by the directory of the file."""
        file = self.file
        if file is None or file.topic is None or file.partition is None:
            return None
        return TopicPartition(file.topic, file.partition)

    @property
    def names(self) -> Names:
        """Return the names for what is found."""
        place = self.place
        return Names() if place is None else Names(topic=place.topic, partition=place.partition)

    @property
    def about(self) -> str:
        """Return what it is of."""
        return "the log" if self.place is None else str(self.place)


def dumps_of(facts: Iterable[ToolFact]) -> list[Dump]:
    """Return the dumps of a text; offsets that go back begin another one."""
    dumps = [Dump()]
    for fact in facts:
        dump = dumps[-1]
        match fact:
            case DumpedFile():
                dumps.append(Dump(file=fact))
            case DumpedBatch():
                if dump.batches and fact.base_offset <= dump.batches[-1].last_offset:
                    dump = Dump(file=dump.file)
                    dumps.append(dump)
                dump.batches.append(fact)
            case DumpedRecord():
                dump.markers[fact.offset] = fact
                if not dump.batches:
                    dump.records.append(fact)
            case DumpedProducer():
                dump.producers.append(fact)
            case DumpedAbort():
                dump.aborts.append(fact)
            case DumpedCommit():
                dump.commits.append(fact)
            case _:
                pass
    return dumps


def judge_dumps(facts: Sequence[ToolFact]) -> list[ToolFinding]:
    """Return what all dumps of a text mean; an index of aborted transactions helps to read the log beside it."""
    findings = Findings(Tool.DUMP_LOG)
    dumps = dumps_of(facts)
    aborts = {(dump.place, each.producer_id, each.last_offset) for dump in dumps for each in dump.aborts}  # fmt: skip
    for dump in dumps:
        if dump.batches:
            _judge_log(dump, aborts, findings)
        _judge_records(dump, findings)
        _judge_snapshot(dump, findings)
        _judge_commits(dump, findings)
        for each in dump.aborts:
            words = f"{dump.about}: producer {each.producer_id}, offsets {each.first_offset} to {each.last_offset}"
            findings.add(Reason.TRANSACTIONS_ABORTED, each.line, words, _of(dump, each.producer_id))
    return findings.all()


def _of(dump: Dump, producer_id: int) -> Names:
    names = dump.names
    return Names(topic=names.topic, partition=names.partition, producer_id=producer_id)


def _judge_log(dump: Dump, aborts: set[tuple[TopicPartition | None, int, int]], findings: Findings) -> None:  # fmt: skip
    outcomes = _outcomes(dump, aborts)
    analysis = LogAnalysis(PartitionLog(folder=dump.about, name=dump.place))
    analysis.begin_segment(SegmentFile(dump.about, _base(dump)))
    analysis.add(_block(dump, outcomes))
    log = analysis.findings()
    lines = {each.base_offset: each.line for each in dump.batches}
    _add_not_shown(dump, outcomes, findings)
    _add_gaps(dump, log, lines, findings)
    _add_writers(dump, log, lines, findings)
    _add_transactions(dump, log, lines, findings)
    unknown_ends = sum(1 for each in dump.batches if each.is_control and each.base_offset not in outcomes)  # fmt: skip
    _add_summary(dump, log, unknown_ends, findings)


def _outcomes(dump: Dump, aborts: set[tuple[TopicPartition | None, int, int]]) -> Mapping[int, ControlRecord]:  # fmt: skip
    """Return what each control record says, by its offset, as far as the text has it."""
    outcomes: dict[int, ControlRecord] = {}
    for each in dump.batches:
        if not each.is_control:
            continue
        record = dump.markers.get(each.base_offset)
        if record is not None and record.marker is not None:
            kind = ControlType.COMMIT if record.marker is Marker.COMMIT else ControlType.ABORT
            outcomes[each.base_offset] = ControlRecord(kind, record.coordinator_epoch)
        elif (dump.place, each.producer_id, each.base_offset) in aborts:
            outcomes[each.base_offset] = ControlRecord(ControlType.ABORT)
        elif not each.is_transactional:
            outcomes[each.base_offset] = ControlRecord(ControlType.UNKNOWN)
    return outcomes


def _base(dump: Dump) -> int | None:
    """Return the first offset of the file, if the text has it from its beginning."""
    name = "" if dump.file is None else dump.file.path.replace("\\", "/").rsplit("/", 1)[-1]
    digits = name.split(".", 1)[0]
    first = dump.batches[0].base_offset
    return first if digits.isdecimal() and int(digits) == first else None


def _block(dump: Dump, outcomes: Mapping[int, ControlRecord]) -> BatchBlock:
    """Return the batches as columns; an end whose outcome is not shown is taken for one, of any outcome."""
    rows = dump.batches
    ended = ControlRecord(ControlType.COMMIT)
    columns = {
        "position": [NONE for _ in rows],
        "size": [0 for _ in rows],
        "crc": [0 for _ in rows],
        "attributes": [CONTROL_BIT * row.is_control | TRANSACTIONAL_BIT * row.is_transactional for row in rows],
        "record_count": [row.record_count for row in rows],
        "base_offset": [row.base_offset for row in rows],
        "last_offset": [row.last_offset for row in rows],
        "leader_epoch": [_number(row.leader_epoch) for row in rows],
        "first_timestamp_ms": [_number(row.timestamp_ms) for row in rows],
        "max_timestamp_ms": [_number(row.timestamp_ms) for row in rows],
        "producer_id": [_number(row.producer_id) for row in rows],
        "producer_epoch": [_number(row.producer_epoch) for row in rows],
        "base_sequence": [_number(row.base_sequence) for row in rows],
    }  # fmt: skip
    return BatchBlock(
        path=dump.about,
        controls={place: outcomes.get(row.base_offset, ended) for place, row in enumerate(rows) if row.is_control},
        **{name: np.array(values, np.int64) for name, values in columns.items()},
    )  # fmt: skip


def _number(value: int | None) -> int:
    return NONE if value is None else value


def _add_not_shown(dump: Dump, outcomes: Mapping[int, ControlRecord], findings: Findings) -> None:
    for each in dump.batches:
        if each.is_control and each.base_offset not in outcomes:
            words = f"{dump.about}: offset {each.base_offset}, producer {each.producer_id} epoch {each.producer_epoch}"
            findings.add(Reason.OUTCOME_NOT_SHOWN, each.line, words, _of(dump, each.producer_id or 0))  # fmt: skip
        if each.is_valid is False:
            words = f"{dump.about}: offsets {each.base_offset} to {each.last_offset}"
            findings.add(Reason.BATCH_INVALID, each.line, words, dump.names)


def _add_gaps(dump: Dump, log: LogFindings, lines: Mapping[int, int], findings: Findings) -> None:
    for gap in log.sequence_gaps:
        if gap.reason is SequenceGapReason.LOG_STARTS_LATER:
            continue  # a part of a log begins anywhere
        reason = REASONS.get(gap.reason, Reason.SEQUENCES_NOT_DECIDED)
        findings.add(reason, lines.get(gap.offset, 0), _gap_words(dump, gap), _of(dump, gap.producer_id))  # fmt: skip
    for hole in log.offset_gaps:
        words = f"{dump.about}: offsets {hole.start} to {hole.end - 1}"
        findings.add(Reason.OFFSETS_NOT_SHOWN, lines.get(hole.end, 0), words, dump.names)


def _gap_words(dump: Dump, gap: SequenceGap) -> str:
    after = "" if gap.after_offset is None else f", after offset {gap.after_offset}"
    return (
        f"{dump.about}: producer {gap.producer_id} epoch {gap.producer_epoch}, sequence {gap.base_sequence} at offset "
        f"{gap.offset}, and not {gap.expected_sequence}{after} ({gap.reason})"
    )


def _add_writers(dump: Dump, log: LogFindings, lines: Mapping[int, int], findings: Findings) -> None:  # fmt: skip
    place, writers = dump.place, log.not_idempotent
    is_kafkas = (place is not None and place.topic in INTERNAL_TOPICS) or bool(dump.commits)
    if writers.batches and writers.first_offset is not None and not is_kafkas:
        words = f"{dump.about}: {writers.batches} batches with {writers.records} records, offsets {writers.first_offset} to {writers.last_offset}"
        findings.add(Reason.WRITER_NOT_IDEMPOTENT, lines.get(writers.first_offset, 0), words, dump.names)  # fmt: skip
    for each in log.producers:
        entry = each.entry
        sequence = "no batch of its epoch" if entry.last_sequence is None else f"last sequence {entry.last_sequence}"  # fmt: skip
        at = "" if entry.last_offset is None else f" at offset {entry.last_offset}"
        kind = ", transactional" if each.is_transactional else ""
        words = f"{dump.about}: producer {entry.producer_id} epoch {entry.producer_epoch}, {sequence}{at}, {each.records} records{kind}"
        line = lines.get(each.first_offset or 0, dump.batches[0].line)
        findings.add(Reason.PRODUCERS, line, words, _of(dump, entry.producer_id))


def _add_transactions(dump: Dump, log: LogFindings, lines: Mapping[int, int], findings: Findings) -> None:  # fmt: skip
    for each in log.open_transactions:
        words = f"{dump.about}: producer {each.producer_id} epoch {each.producer_epoch}, from offset {each.first_offset}"
        findings.add(Reason.OPEN_AT_END_OF_TEXT, lines.get(each.first_offset, 0), words, _of(dump, each.producer_id))  # fmt: skip
    for ended in log.aborted_transactions:
        begin = "not shown" if ended.first_offset is None else ended.first_offset
        words = f"{dump.about}: producer {ended.producer_id} epoch {ended.producer_epoch}, offsets {begin} to {ended.marker_offset}"
        findings.add(Reason.TRANSACTIONS_ABORTED, lines.get(ended.marker_offset, 0), words, _of(dump, ended.producer_id))  # fmt: skip


def _add_summary(dump: Dump, log: LogFindings, unknown_ends: int, findings: Findings) -> None:
    epochs = ", ".join(f"{each.leader_epoch} from offset {each.first_offset}" for each in log.epochs[:5])  # fmt: skip
    ends = [f"{log.committed - unknown_ends} committed", f"{log.aborted} aborted"]
    ends += [f"{unknown_ends} ended either way"] if unknown_ends else []
    ends += [f"{len(log.open_transactions)} without an end"] if log.open_transactions else []
    words = (
        f"{dump.about}: offsets {dump.batches[0].base_offset} to {dump.batches[-1].last_offset} in {len(dump.batches)} batches; "
        f"leader epoch {epochs}; transactions: {', '.join(ends)}"
    )
    findings.add(Reason.LOG_READ, dump.batches[0].line, words, dump.names)


def _judge_records(dump: Dump, findings: Findings) -> None:
    """Say what records without the lines of their batches show: markers alone name no producer."""
    marked = [each for each in dump.records if each.marker is not None]
    for each in marked:
        words = f"{dump.about}: offset {each.offset}, {each.marker}, coordinator epoch {each.coordinator_epoch}"
        findings.add(Reason.RECORDS_ALONE, each.line, words, dump.names)
    if dump.records and not marked:
        first, last = dump.records[0], dump.records[-1]
        words = f"{dump.about}: records at offsets {first.offset} to {last.offset}"
        findings.add(Reason.RECORDS_ALONE, first.line, words, dump.names)


def _judge_snapshot(dump: Dump, findings: Findings) -> None:
    for each in dump.producers:
        sequence = "no batch" if each.last_sequence is None else f"last sequence {each.last_sequence} at offset {each.last_offset}"  # fmt: skip
        words = f"{dump.about}: producer {each.producer_id} epoch {each.producer_epoch}, {sequence}"
        findings.add(Reason.PRODUCERS, each.line, words, _of(dump, each.producer_id))
        if each.transaction_start_offset is not None:
            words = f"{words}, open from offset {each.transaction_start_offset}"
            findings.add(Reason.OPEN_IN_SNAPSHOT, each.line, words, _of(dump, each.producer_id))


def _judge_commits(dump: Dump, findings: Findings) -> None:
    last: dict[tuple[str, str, int], DumpedCommit] = {}
    for each in dump.commits:
        key = each.group, each.topic, each.partition
        before = last.get(key)
        if before is not None and _went_back(before, each):
            words = f"{_commit_words(each)}, and {before.offset} before"
            findings.add(Reason.COMMIT_WENT_BACK, each.line, words, _commit_names(each))
        last[key] = each
    for each in last.values():
        findings.add(Reason.COMMITS, each.line, _commit_words(each), _commit_names(each))


def _went_back(before: DumpedCommit, after: DumpedCommit) -> bool:
    return before.offset is not None and after.offset is not None and after.offset < before.offset


def _commit_words(commit: DumpedCommit) -> str:
    what = "removed" if commit.offset is None else f"committed {commit.offset}"
    return f"{commit.group}: {commit.topic}-{commit.partition}, {what}"


def _commit_names(commit: DumpedCommit) -> Names:
    return Names(group=commit.group, topic=commit.topic, partition=commit.partition)
