"""The order of a backtest: the file of JSON that the service writes, the job reads, and its tasks get."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Final

from rules.baseline.replaying import WARM_UP_DAYS

# A profile is made of 35 days, and what is usual around it of 28 days that were compared with it.
LEARNT_DAYS: Final = 63
DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestOrder:
    """What a task has to know."""

    history: str  # the folder, as `spark.places.Place` takes it
    zone: str  # IANA, of civil days
    buckets: int
    first_day: date  # the first one that is learnt from
    from_day: date  # the first one whose openings count
    to_day: date  # the last one
    settings: tuple[tuple[str, ...], ...] = ((),)  # of each replay: changes, as NAME=VALUE
    metrics: tuple[str, ...] = ()  # none: all
    series: tuple[int, ...] | None = None  # ids; None: all

    @property
    def days(self) -> list[date]:
        """Return all days in order."""
        return [
            self.first_day + DAY * number
            for number in range((self.to_day - self.first_day).days + 1)
        ]

    @property
    def judged_from(self) -> date:
        """Return the first day that is replayed."""
        return self.from_day - DAY * WARM_UP_DAYS

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self), default=date.isoformat)

    @classmethod
    def from_json(cls, text: str) -> BacktestOrder:
        """Read what `to_json` wrote."""
        read = json.loads(text)
        for name in ("first_day", "from_day", "to_day"):
            read[name] = date.fromisoformat(read[name])
        read["settings"] = tuple(tuple(changes) for changes in read["settings"])
        read["metrics"] = tuple(read["metrics"])
        read["series"] = None if read["series"] is None else tuple(read["series"])
        return cls(**read)
