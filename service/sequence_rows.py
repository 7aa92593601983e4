"""Events of sequences as flat rows of plain values, absent ones as None: for JSON, HTTP and command
line alike.

The names are a contract with scripts: they may be added to, never changed.
"""

from __future__ import annotations

from datetime import datetime

from rules.sequence.explained import Explained
from service.snapshot_rows import Row


def explained_row(found: Explained) -> Row:
    """Return what is told of the refusals of one producer on one partition."""
    verdict = found.verdict
    return {
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "topic": found.topic,
        "partition": found.partition,
        "offset": found.offset,
        "incoming_sequence": found.incoming_sequence,
        "current_sequence": found.current_sequence,
        "gap": found.gap,
        "class": str(verdict.class_),
        "phase": str(verdict.phase),
        "reason": str(verdict.reason),
        "evidence": dict(found.evidence),
        "lost_from": verdict.lost_from,
        "lost_to": verdict.lost_to,
        "lost_offsets": verdict.lost_offsets,
        "at_most_records": verdict.at_most_records,
        "refusals": found.refusals,
        "means": found.means,
        "settles": found.settles,
        "check": found.check,
    }


def time_text(moment: datetime | None) -> str | None:
    """Return a moment as JSON has it; it is UTC."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
