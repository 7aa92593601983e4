"""Answers about jobs, the scheduled work beside rounds."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from service.api.core.models import Model, NextCursor, Paged, Stamped


class JobRun(Model):
    """One run of a job."""

    id: int
    due_at: datetime
    started_at: datetime | None
    ended_at: Annotated[datetime | None, Field(description="null: it is running")]
    outcome: Annotated[
        str,
        Field(examples=["running", "succeeded", "failed", "timed_out", "interrupted", "missed"]),
    ]
    detail: str
    stats: dict[str, Any]


class Job(Model):
    """A job and its last run."""

    name: str
    trigger: Annotated[str, Field(description="When it is due", examples=["every hour"])]
    next_due_at: datetime | None
    is_running: bool
    waits_for: str | None
    """What keeps a run from beginning now; null: nothing"""
    last_run: JobRun | None


class JobPage(Paged[Job]):
    """Jobs by name."""


class JobDetail(Stamped):
    """A job with its runs, newest first."""

    job: Job
    items: list[JobRun]
    next: NextCursor


class JobRunRequest(Stamped):
    """A request to run a job now."""

    name: str
    requested_at: datetime
    waits_for: str | None
    """What the run waits for; null: it begins at once"""
