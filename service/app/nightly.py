"""The job of the baseline run: a program of its own, so that Spark can be ended."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from service.scheduling.job import CatchUp, Command, Job
from service.scheduling.triggers import Cron
from service.settings import Settings

NIGHTLY: Final = "nightly"
GRACE: Final = timedelta(hours=1)
AFTER_SPARK: Final = timedelta(minutes=30)  # to publish, when Spark took all of its time
PATIENCE_SECONDS: Final = 30.0  # Spark and its workers end first


def nightly_jobs(settings: Settings, config_file: Path | None) -> Sequence[Job]:
    """Return the job, unless the baseline run or history is turned off.

    Args:
        settings: of the service; those that its flags changed are passed on.
        config_file: of the service; secrets reach the job by it or by the environment.
    """
    if not (settings.nightly.enabled and settings.history.enabled):
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
            work=Command(_words(settings, config_file), patience_seconds=PATIENCE_SECONDS),
        )
    ]


def _words(settings: Settings, config_file: Path | None) -> tuple[str, ...]:
    words = (sys.executable, "-m", "service", "nightly", "run", "-o", "json")
    config = () if config_file is None else ("--config", str(config_file.absolute()))
    place = ("--data-dir", str(settings.service.data_directory()), "--cluster", settings.kafka.name)
    return (*words, *config, *place)
