"""Builds history and its jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from service.history.days import remove_old
from service.history.extraction import Extraction
from service.history.folder import Described, Folder, open_folder
from service.history.folding import Folded, fold_due
from service.history.recorder import Recorder
from service.history.shipping import Shipper
from service.jobs.retention import RunsBefore, clock_error
from service.rounds.history import History
from service.runtime.allocator import give_back
from service.runtime.clock import monotonic
from service.runtime.events import Event
from service.runtime.log import Log
from service.scheduling.job import Call, CatchUp, Job, RunContext, Stats
from service.scheduling.triggers import Every
from service.settings import HistorySettings, Settings

AHEAD: Final = "history-ahead"  # in the data directory
FOLD_LOCK: Final = "fold.lock"
HOUR: Final = timedelta(hours=1)
SETTLED: Final = timedelta(
    minutes=10
)  # after midnight, until yesterday's last hour is in its folder


def make_history(settings: Settings, stop: asyncio.Event, log: Log) -> History | None:
    """Build the history of a cluster; None where it is turned off. Nothing is opened yet."""
    if not settings.history.enabled:
        return None
    interval = settings.service.interval_seconds
    ahead = ahead_folder(settings.service.data_directory())
    recorder = Recorder(
        ahead,
        Extraction(settings.kafka.name, interval_seconds=interval),
        interval_seconds=interval,
        monotonic=monotonic,
        log=log,
    )
    shipper = Shipper(
        ahead,
        opener(settings),
        current=lambda: recorder.current,
        on_labels_lost=recorder.write_labels_again,
        log=log,
    )
    return History(recorder, shipper, stop=stop)


def history_jobs(settings: Settings, runs: RunsBefore, log: Log) -> list[Job]:
    """Return the jobs of history; none where it is turned off."""
    if not settings.history.enabled:
        return []
    return [
        Job(
            name="history_folding",
            what="folds the hours of history of days that are over",
            trigger=Every(interval=HOUR),
            grace=HOUR / 2,
            timeout=HOUR,
            catch_up=CatchUp.ONCE,
            work=Call(lambda context: _fold(settings, context, log)),
        ),
        Job(
            name="history_retention",
            what="removes days of history that are old enough",
            trigger=Every(interval=6 * HOUR),
            grace=3 * HOUR,
            timeout=HOUR,
            catch_up=CatchUp.ONCE,
            work=Call(lambda context: _remove_old(settings, runs, context, log)),
        ),
    ]


def opener(settings: Settings) -> Callable[[], Folder]:
    """Return a function that opens the folder of history, and makes it if there is none."""
    history = settings.history
    new = Described(
        cluster=settings.kafka.name, time_zone=history.time_zone, buckets=history.buckets
    )
    url = history.folder(settings.service.data_directory())
    return lambda: open_folder(url, new)


def ahead_folder(data_directory: Path) -> Path:
    """Return where segments are written."""
    return data_directory / AHEAD


def fold_days(
    settings: Settings, now: datetime, is_over: Callable[[], bool] = lambda: False
) -> Folded:
    """Fold the days that are over by `now`.

    Raises:
        StoreError: the folder is away.
    """
    return fold_folder(opener(settings)(), settings, now, is_over)


def fold_folder(
    folder: Folder,
    settings: Settings,
    now: datetime,
    is_over: Callable[[], bool] = lambda: False,
) -> Folded:
    """Fold the days that are over by `now` in a given folder.

    Raises:
        StoreError: the folder is away.
    """
    here = folder.local or ahead_folder(settings.service.data_directory())
    zone = ZoneInfo(folder.described.time_zone)
    return fold_due(
        folder,
        before=(now - SETTLED).astimezone(zone).date(),
        lock=here / FOLD_LOCK,  # in the folder, if it can: whoever folds it may have other settings
        is_over=is_over,
    )


def _fold(settings: Settings, context: RunContext, log: Log) -> Stats:
    folded = fold_days(settings, context.now, context.is_over)
    give_back()
    for file, why in folded.damaged.items():
        log.warning(Event.HISTORY_DAMAGED, file=file, why=why)
    return {
        "days": len(folded.days),
        "hours": folded.hours,
        "bytes": folded.bytes,
        "damaged": len(folded.damaged),
    }


def _remove_old(settings: Settings, runs: RunsBefore, context: RunContext, log: Log) -> Stats:
    error = clock_error(runs, context.now)
    if error is not None:
        if error.is_wrong:
            log.warning(Event.RETENTION_SKIPPED, why=error.why, now=context.now.isoformat())
        return {"skipped": error.why}
    days = timedelta(days=settings.history.retention_days)
    first = _local(context.now, settings.history).date() - days
    return {"days": remove_old(opener(settings)(), first, context.is_over)}


def _local(timestamp: datetime, settings: HistorySettings) -> datetime:
    return timestamp.astimezone(ZoneInfo(settings.time_zone))
