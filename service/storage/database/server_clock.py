"""Reads the clock of the database server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import Engine, text

from rules.facts.clocks import ClockDifference, difference
from service.storage.database.translate import translate_errors


def read_clock(engine: Engine, utc_now: Callable[[], datetime]) -> ClockDifference:
    """Return how the server's clock differs from ours.

    Raises:
        StoreError: the database is away.
    """
    with translate_errors("the clock cannot be read"), engine.connect() as connection:
        connection.scalar(text("SELECT 1"))  # connecting is not part of what is measured
        sent = utc_now()
        theirs: datetime = connection.scalar(text("SELECT clock_timestamp()"))
        return difference(theirs, sent, utc_now(), resolution=timedelta(microseconds=1))
