"""The document of `tidemark log inspect`, made of what was read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rules.facts.coordinator_logs import WrittenState
from rules.facts.identity import TRANSACTION_STATE, TopicPartition
from rules.facts.log_files import FileProblem
from rules.facts.log_findings import EpochRange, LogFindings, ProducerInLog, SegmentSummary
from rules.facts.log_folders import PartitionLog
from rules.facts.log_states import OffsetCheckpoint
from service.views.log_files import models
from service.views.log_files.filters import Filter
from service.views.log_files.inspected import InspectedLog
from service.views.model import Row


def document(
    logs: Sequence[Row], checkpoints: Iterable[OffsetCheckpoint], problems: Sequence[FileProblem]
) -> Row:
    """Return the whole document; `problems` are of no log."""
    return {
        "complete": not problems and not any(log["problems"] for log in logs),
        "logs": list(logs),
        "checkpoints": [
            {
                "path": each.path,
                "offsets": [_offset(*item) for item in sorted(each.offsets.items())],
            }
            for each in checkpoints
        ],
        "problems": models.Problem.rows_of(problems),
    }


def _offset(name: TopicPartition, offset: int) -> Row:
    return {"topic": name.topic, "partition": name.partition, "offset": offset}


def log_row(inspected: InspectedLog, shown: Filter) -> Row:
    """Return the document of one log with what a filter leaves of it; its totals are of all of it."""
    log, findings = inspected.log, inspected.findings
    return {
        **_head(log, findings),
        "segments": [
            _segment(each)
            for each in findings.segments
            if shown.has(each.first_offset, each.last_offset)
        ],
        "leader_epochs": [
            _epoch(each, log)
            for each in findings.epochs
            if shown.has(each.first_offset, each.last_offset)
        ],
        **_transactions(findings, shown),
        "producers": [_producer(each) for each in findings.producers if _is_shown(each, shown)],
        "not_idempotent": models.WithoutProducerId.of(findings.not_idempotent).to_row()
        if findings.not_idempotent.batches
        else None,
        **_gaps(findings, shown),
        "differences": models.Contradiction.rows_of(findings.differences),
        **_coordinator(inspected),
        "problems": models.Problem.rows_of(inspected.problems),
    }


def _head(log: PartitionLog, findings: LogFindings) -> Row:
    return {
        "folder": log.folder,
        "topic": None if log.name is None else log.name.topic,
        "partition": None if log.name is None else log.name.partition,
        "topic_id": log.topic_id,
        "state": str(log.state),
        "first_offset": findings.log_start_offset,
        "log_end_offset": findings.log_end_offset,
        "last_stable_offset": findings.last_stable_offset,
        "log_start_offset": log.log_start_offset,
        "high_watermark": log.high_watermark,
        "recovery_point": log.recovery_point,
        "is_compacted": findings.is_compacted,
    }


def _segment(summary: SegmentSummary) -> Row:
    return models.Segment.of(summary, codecs=sorted(summary.codecs)).to_row()


def _epoch(epochs: EpochRange, log: PartitionLog) -> Row:
    noted = () if log.epochs is None else log.epochs.epochs
    starts = {each.leader_epoch: each.start_offset for each in noted}
    start = starts.get(epochs.leader_epoch)
    return models.LeaderEpochRange.of(epochs, checkpoint_start_offset=start).to_row()


def _transactions(findings: LogFindings, shown: Filter) -> Row:
    open_ones = [
        each
        for each in findings.open_transactions
        if shown.has(each.first_offset, each.last_offset, each.producer_id)
    ]
    aborted = [
        each
        for each in findings.aborted_transactions
        if shown.has(each.first_offset, each.marker_offset, each.producer_id)
    ]
    return {
        "committed_transactions": findings.committed,
        "aborted_transactions": findings.aborted,
        "open_transactions": models.UnendedTransaction.rows_of(open_ones),
        "aborted": models.AbortedTransaction.rows_of(aborted),
    }


def _is_shown(producer: ProducerInLog, shown: Filter) -> bool:
    entry = producer.entry
    return shown.has(producer.first_offset, entry.last_offset, entry.producer_id)


def _producer(producer: ProducerInLog) -> Row:
    return models.Producer.of(
        producer.entry,
        first_offset=producer.first_offset,
        batches=producer.batches,
        records=producer.records,
        is_transactional=producer.is_transactional,
    ).to_row()


def _gaps(findings: LogFindings, shown: Filter) -> Row:
    offsets = [each for each in findings.offset_gaps if shown.has(each.start, each.end - 1)]
    sequences = [
        each
        for each in findings.sequence_gaps
        if shown.has(each.offset, each.offset, each.producer_id)
    ]
    return {
        "offset_gap_count": findings.offset_gap_count,
        "offset_gaps": models.MissingOffsets.rows_of(offsets),
        "sequence_gap_count": findings.sequence_gap_count,
        "sequence_gaps": models.MissingSequences.rows_of(sequences),
    }


def _coordinator(inspected: InspectedLog) -> Row:
    records = inspected.coordinator
    if records is None:
        return {"transactional_ids": None, "commits": None, "other_records": None}
    ids = [
        {
            "transactional_id": name,
            "record_count": of_id.record_count,
            "states": list(map(_state, of_id.states)),
        }
        for name, of_id in sorted(records.ids.items())
    ]
    commits = [
        models.Commit.of(
            of_name.last,
            topic=name.topic,
            partition=name.partition,
            committed_at=of_name.last.committed_ms,
            record_count=of_name.record_count,
        ).to_row()
        for (_, name), of_name in sorted(records.commits.items())
    ]
    is_of_ids = records.topic == TRANSACTION_STATE
    return {
        "transactional_ids": ids if is_of_ids else None,
        "commits": None if is_of_ids else commits,
        "other_records": dict(sorted(records.others.items())),
    }


def _state(state: WrittenState) -> Row:
    return models.WrittenState.of(
        state,
        at=state.at_ms,
        started_at=state.started_ms,
        partitions=[str(name) for name in state.partitions],
    ).to_row()
