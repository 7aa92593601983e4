"""Where the files of history and of nightly runs are, below the folder of history: names only.

```
history.json                                      the format and the number of buckets
days/day=2026-03-29/bucket=007.parquet            packed samples of one civil day
series/...parquet                                 the dictionary of series, every file a part of it
masks/day=2026-03-29/bucket=007.parquet           windows not to learn from; absent: none
runs/day=2026-03-29/run=<id>/bucket=007.parquet   state and baseline of every series after that day
runs/day=2026-03-29/run=<id>/run.json             written last: without it there is no run
```
A day is a civil day in the cluster's time zone. Files are written under another name and renamed.
"""

from __future__ import annotations

from datetime import date
from typing import Final

HISTORY_FILE: Final = "history.json"
RUN_FILE: Final = "run.json"
SERIES: Final = "series"


def day_folder(day: date) -> str:
    """Return the folder of a day's samples."""
    return f"days/day={day.isoformat()}"


def masks_folder(day: date) -> str:
    """Return the folder of a day's windows."""
    return f"masks/day={day.isoformat()}"


def runs_folder(day: date) -> str:
    """Return the folder of all runs of a night."""
    return f"runs/day={day.isoformat()}"


def run_folder(day: date, run_id: str) -> str:
    """Return the folder of one run."""
    return f"{runs_folder(day)}/run={run_id}"


def bucket_file(bucket: int) -> str:
    """Return the name of a bucket's file in any of these folders."""
    return f"bucket={bucket:03d}.parquet"
