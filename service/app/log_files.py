"""Builds the reader of brokers' log files."""

from __future__ import annotations

from collectors.broker_log.disk import Disk
from collectors.broker_log.tail import LogTail, TailSource
from rules.facts.identity import BrokerId
from service.observe.log_files import LogFiles
from service.runtime.clock import monotonic
from service.runtime.threads import OneAtATime
from service.settings import BrokerLogSettings, LogFileSettings


def log_files(settings: BrokerLogSettings) -> LogFiles:
    """Build the feed of log files; nothing is opened yet, and without a pattern nothing ever is."""
    sources = [_source(file) for file in settings.files]
    tail = LogTail(Disk(), sources, monotonic=monotonic, read_existing=settings.read_existing)
    names = [source.name for source in sources]
    return LogFiles(tail, names, in_time=OneAtATime("log_files").call)


def _source(file: LogFileSettings) -> TailSource:
    return TailSource(
        name=file.source,
        pattern=file.path,
        broker_id=None if file.broker_id is None else BrokerId(file.broker_id),
        zone=file.zone,
    )
