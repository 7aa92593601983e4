"""Where the files of history and of nightly runs are, below the folder of history: names only.

```
history.json                                      the format, the number of buckets, whether it is whole
hours/hour=2026-03-29T05/part-<...>.parquet       packed samples of one hour (UTC), until they are folded
days/day=2026-03-29/bucket=007.parquet            packed samples of one civil day
series/...parquet                                 the dictionary of series, every file a part of it
masks/day=2026-03-29/bucket=007.parquet           windows not to learn from; absent: none
labels/day=2026-03-29/windows.parquet             of these, what imported labels name as incidents
imports/import=<id>/...                           days of an import that is not finished
runs/day=2026-03-29/run=<id>/bucket=007.parquet   state and baseline of every series after that day
runs/day=2026-03-29/run=<id>/run.json             written last: without it there is no run
```
A day is a civil day in the cluster's time zone. Files are written under another name and renamed.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Final

HISTORY_FILE: Final = "history.json"
RUN_FILE: Final = "run.json"
SERIES: Final = "series"
HOURS: Final = "hours"
DAYS: Final = "days"
MASKS: Final = "masks"
LABELS: Final = "labels"
IMPORTS: Final = "imports"
RUNS: Final = "runs"
DAY: Final = "day="  # begins the name of a day's folder in any of these
RUN: Final = "run="  # likewise of a run


def hour_folder(hour: datetime) -> str:
    """Return the folder of an hour's samples; the hour is in UTC."""
    return f"{HOURS}/hour={hour:%Y-%m-%dT%H}"


def day_folder(day: date) -> str:
    """Return the folder of a day's samples."""
    return f"{DAYS}/{DAY}{day.isoformat()}"


def masks_folder(day: date) -> str:
    """Return the folder of a day's windows."""
    return f"{MASKS}/{DAY}{day.isoformat()}"


def labels_file(day: date) -> str:
    """Return the file of a day's windows that imported labels name."""
    return f"{LABELS}/{DAY}{day.isoformat()}/windows.parquet"


def runs_folder(day: date) -> str:
    """Return the folder of all runs for a day."""
    return f"{RUNS}/{DAY}{day.isoformat()}"


def run_folder(day: date, run_id: str) -> str:
    """Return the folder of one run."""
    return f"{runs_folder(day)}/{RUN}{run_id}"


def day_of_folder(name: str) -> date | None:
    """Return the day of a folder such as `day=2026-03-29`; None: it has another name."""
    try:
        return date.fromisoformat(name.removeprefix(DAY)) if name.startswith(DAY) else None
    except ValueError:
        return None


def bucket_file(bucket: int) -> str:
    """Return the name of a bucket's file in any of these folders."""
    return f"bucket={bucket:03d}.parquet"
