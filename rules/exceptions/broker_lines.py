"""What a line of a broker or a controller about a partition means for its records, by itself."""

from __future__ import annotations

from rules.exceptions.meaning import Records
from rules.facts.broker_log import LogEvent, LogTruncated, UncleanChange, WatermarkWentBack


def records_of(event: LogEvent) -> Records:
    """Return what may have become of records: only a high watermark that went back is evidence of a loss."""
    match event:
        case WatermarkWentBack():
            return Records.LOST
        case UncleanChange():
            return Records.UNKNOWN
        case LogTruncated(epoch=epoch) if epoch is not None:
            return Records.UNKNOWN
        case _:
            return Records.NEITHER
