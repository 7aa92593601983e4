"""Publishes a nightly run: readers see the run before until all of it is there.

A run is copied into a table of its own, checked against its record, attached and made the current
one in one transaction. Whatever is lost in the middle leaves nothing behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from sqlalchemy import Engine

from service.storage.baselines.run_files import RunPlace

RUNS_KEPT: Final = 3  # to roll back to


class Publishing(StrEnum):
    """What became of a run that was to be published."""

    PUBLISHED = "published"  # it is loaded and the current one
    UNCHANGED = "unchanged"  # it was loaded before; which run is current stays as it is
    OLDER = "older"  # a later day is loaded already: nothing was changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What publishing did."""

    outcome: Publishing
    run_id: str
    series: int  # rows of the run
    unlabelled: int  # of them: series that the dictionary does not have
    dropped: tuple[str, ...]  # runs that are no longer kept
    seconds: float


def publish(
    engine: Engine,
    place: RunPlace,
    *,
    cluster: str,
    now: datetime,
    kept: int = RUNS_KEPT,
) -> Published:
    """Load a complete run and make it the current one of a cluster, by its configured name.

    Of several nights that were made in one go only the last needs this. Publishing a run again
    changes nothing, also after a rollback. Memory does not grow with the run: about 25 bytes for
    each series of the dictionary, and a group of rows.

    Args:
        engine: of a database whose schema is at head.
        place: where the run is.
        cluster: its configured name.
        now: aware, UTC; kept as the time of loading.
        kept: how many runs stay loaded, this one included.

    Raises:
        StoreError: files are missing or torn (not retryable), or the database refused or was lost;
            the run before stays the current one, and another try begins anew.
    """
    raise NotImplementedError
