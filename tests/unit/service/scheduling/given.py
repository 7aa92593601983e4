"""Jobs for tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from service.scheduling.job import Call, CatchUp, Job
from service.scheduling.triggers import Every


def job(**overrides: Any) -> Job:
    """Return a job that is due every ten minutes and has a minute of grace."""
    base = Job(
        name="sweep",
        trigger=Every(interval=timedelta(minutes=10)),
        grace=timedelta(minutes=1),
        timeout=timedelta(minutes=5),
        catch_up=CatchUp.ONCE,
        work=Call(lambda _: {}),
    )
    return replace(base, **overrides)
