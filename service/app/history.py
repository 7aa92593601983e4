"""Builds history and its jobs, and the job of the baseline run, a program that learns from history."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from service.history.days import remove_old
from service.history.extraction import Extraction, JudgedRound, RoundSamples
from service.history.folder import Described, Folder, open_folder, open_if_any
from service.history.folding import Folded, alone_folding, fold_due
from service.history.offset_writer import OffsetWriter, remove_old_offsets
from service.history.past_offsets import PastOffsets
from service.history.reading import MeasuredHistory
from service.history.recorder import OnSamples, Recorder
from service.history.shipping import Shipper
from service.jobs.retention import RunsBefore, clock_error
from service.rounds.history import History
from service.runtime.allocator import give_back
from service.runtime.children import module_command
from service.runtime.clock import monotonic
from service.runtime.events import Event
from service.runtime.log import Log
from service.scheduling.job import Call, CatchUp, Command, Job, RunContext, Stats
from service.scheduling.triggers import Cron, Every
from service.settings import Settings, absolute_files
from spark.home import spark_error

AHEAD: Final = "history-ahead"  # in the data directory
OFFSETS: Final = "history-offsets"  # there too: exact offsets, never in the folder of history
FOLD_LOCK: Final = "fold.lock"
HOUR: Final = timedelta(hours=1)
# After midnight, until yesterday's last hour is in its folder.
SETTLED: Final = timedelta(minutes=10)
NIGHTLY: Final = "nightly"
GRACE: Final = timedelta(hours=1)
AFTER_SPARK: Final = timedelta(minutes=30)  # to publish, when Spark took all of its time
PATIENCE_SECONDS: Final = 30.0  # Spark and its workers end first


def make_history(
    settings: Settings, stop: asyncio.Event, log: Log, on_samples: OnSamples
) -> History | None:
    """Build the history of a cluster; None where it is turned off. Nothing is opened yet.

    `on_samples` is called with the samples of every round, in the thread that writes them.
    """
    if not settings.history.enabled:
        return None
    interval = settings.service.interval_seconds
    ahead = ahead_folder(settings.service.data_directory())
    offsets = OffsetWriter(offsets_folder(settings.service.data_directory()), log)

    def write_offsets(judged: JudgedRound, samples: RoundSamples) -> None:
        offsets.append(judged.snapshot)
        on_samples(judged, samples)

    recorder = Recorder(
        ahead,
        Extraction(settings.kafka.name, interval_seconds=interval),
        interval_seconds=interval,
        monotonic=monotonic,
        log=log,
        on_samples=write_offsets,
    )
    shipper = Shipper(
        ahead,
        opener(settings),
        current=lambda: recorder.current,
        on_labels_lost=recorder.write_labels_again,
        log=log,
    )
    return History(recorder, shipper, stop=stop)


def measured_history(settings: Settings) -> MeasuredHistory | None:
    """Return what reads history for the HTTP API; None where it is turned off. Nothing is opened yet."""
    if not settings.history.enabled:
        return None
    directory = settings.service.data_directory()
    url = settings.history.folder(directory)
    return MeasuredHistory(ahead_folder(directory), lambda: open_if_any(url, _described(settings)))


def past_offsets(settings: Settings) -> PastOffsets | None:
    """Return what reads the offsets of past rounds; None where history is turned off."""
    if not settings.history.enabled:
        return None
    interval = timedelta(seconds=settings.service.interval_seconds)
    return PastOffsets(offsets_folder(settings.service.data_directory()), interval)


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
    url = settings.history.folder(settings.service.data_directory())
    return lambda: open_folder(url, _described(settings))


def _described(settings: Settings) -> Described:
    """Return the description of a new folder of history."""
    history = settings.history
    return Described(
        cluster=settings.kafka.name, time_zone=history.time_zone, buckets=history.buckets
    )


def ahead_folder(data_directory: Path) -> Path:
    """Return where segments are written."""
    return data_directory / AHEAD


def offsets_folder(data_directory: Path) -> Path:
    """Return where the exact offsets of rounds are."""
    return data_directory / OFFSETS


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
    zone = ZoneInfo(folder.described.time_zone)
    return fold_due(
        folder,
        before=(now - SETTLED).astimezone(zone).date(),
        lock=_fold_lock(folder, settings),
        is_over=is_over,
    )


def alone_with_days(folder: Folder, settings: Settings) -> AbstractContextManager[None]:
    """Hold the lock under which days are written, so that nothing folds meanwhile.

    Raises:
        StoreError: it cannot be taken.
    """
    return alone_folding(_fold_lock(folder, settings))


def _fold_lock(folder: Folder, settings: Settings) -> Path:
    """Return the lock: in the folder, if it can be, as whoever folds it may have other settings."""
    return (folder.local or ahead_folder(settings.service.data_directory())) / FOLD_LOCK


def _fold(settings: Settings, context: RunContext, log: Log) -> Stats:
    folded = fold_folder(opener(settings)(), settings, context.now, context.is_over)
    give_back()
    for file, why in folded.damaged.items():
        log.warning(Event.HISTORY_DAMAGED, file=file, why=why)
    if folded.error is not None:
        raise folded.error
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
    zone = ZoneInfo(settings.history.time_zone)
    days = timedelta(days=settings.history.retention_days)
    first = context.now.astimezone(zone).date() - days
    removed = remove_old(opener(settings)(), first, context.is_over)
    hours = remove_old_offsets(offsets_folder(settings.service.data_directory()), first)
    return {"days": removed, "hours_of_offsets": hours}


def nightly_error(settings: Settings) -> str | None:
    """Return why no scheduled baseline run can be made; None: it can, or is turned off."""
    if not (settings.nightly.enabled and settings.history.enabled):
        return None
    error = spark_error()
    return None if error is None else f"baseline runs are not made: {error}"


def nightly_jobs(settings: Settings, config_file: Path | None) -> Sequence[Job]:
    """Return the job, unless the baseline run or history is turned off, or Spark is not installed.

    Args:
        settings: of the service; those that its flags changed are passed on.
        config_file: of the service; secrets reach the job by it or by the environment.
    """
    if not (settings.nightly.enabled and settings.history.enabled) or spark_error() is not None:
        return []
    hour, minute = settings.nightly.hour_and_minute
    return [
        Job(
            name=NIGHTLY,
            what="learns what is usual from the days that are over, with Spark",
            trigger=Cron(zone=ZoneInfo(settings.history.time_zone), hour=hour, minute=minute),
            grace=GRACE,
            timeout=timedelta(seconds=settings.nightly.timeout_seconds) + AFTER_SPARK,
            catch_up=CatchUp.ONCE,
            work=Command(
                _words(settings, config_file),
                patience_seconds=PATIENCE_SECONDS,
                environment=absolute_files(os.environ),
            ),
        )
    ]


def _words(settings: Settings, config_file: Path | None) -> tuple[str, ...]:
    words = module_command("service", "nightly", "run", "-o", "json")
    config = () if config_file is None else ("--config", str(config_file.absolute()))
    place = ("--data-dir", str(settings.service.data_directory()), "--cluster", settings.kafka.name)
    return (*words, *config, *place)
