"""The record of one night's run, `run.json`: what was made of what, and how to tell that it is whole.

A run is told by what went into it: the same inputs give the same id, the same files and this record
byte for byte, wherever and how often it is made. So it holds no times and no durations. It is
written last; a run without it is none.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

RUN_FORMAT: Final = 1  # of the record and of a run's files
ID_BYTES: Final = 10
DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRun:
    """What a run holds of one bucket."""

    bucket: int
    rows: int  # series
    digest: str  # hex: the columns that are published, in order (`RowDigest` of `spark.digests`)
    state_digest: str  # hex: the states, which only the next night reads
    outcomes: Mapping[str, int] = field(default_factory=dict)  # series per outcome
    damaged: str | None = None  # why its samples could not be read; its states were carried on


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRun:
    """One night's run, complete."""

    id: str
    day: date  # civil, in `zone`; the last day that it has learnt from
    zone: str  # IANA
    previous: str | None  # digest of the run that it went on from; None: it began with nothing
    buckets: tuple[BucketRun, ...]  # all of them, in order

    @property
    def series(self) -> int:
        """Return for how many series there is a row."""
        return sum(bucket.rows for bucket in self.buckets)

    @property
    def outcomes(self) -> dict[str, int]:
        """Return series per outcome, by name."""
        total: Counter[str] = Counter()
        for bucket in self.buckets:
            total.update(bucket.outcomes)
        return dict(sorted(total.items()))

    @property
    def damaged(self) -> tuple[BucketRun, ...]:
        """Return the buckets whose samples could not be read."""
        return tuple(bucket for bucket in self.buckets if bucket.damaged is not None)

    @property
    def digest(self) -> str:
        """Return one digest over all content."""
        parts = [
            (bucket.bucket, bucket.rows, bucket.digest, bucket.state_digest)
            for bucket in self.buckets
        ]
        return digest_of(parts, DIGEST_BYTES)

    def to_json(self) -> str:
        """Return the record as it is kept; equal for equal runs."""
        told = {
            "format": RUN_FORMAT,
            "id": self.id,
            "day": self.day.isoformat(),
            "zone": self.zone,
            "previous": self.previous,
            "series": self.series,
            "digest": self.digest,
            "outcomes": self.outcomes,
            "buckets": [_bucket(bucket) for bucket in self.buckets],
        }
        return json.dumps(told, indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> BaselineRun:
        """Read a record.

        Raises:
            ValueError: it is torn, of another format, or its sums do not fit.
        """
        read = json.loads(text)
        try:
            if read["format"] != RUN_FORMAT:
                raise ValueError(f"its format is {read['format']}, and {RUN_FORMAT} is known here")
            run = cls(
                id=str(read["id"]),
                day=date.fromisoformat(read["day"]),
                zone=str(read["zone"]),
                previous=None if read["previous"] is None else str(read["previous"]),
                buckets=tuple(BucketRun(**one) for one in read["buckets"]),
            )
        except (KeyError, TypeError) as exc:
            raise ValueError(f"it is no record of a run: {exc}") from exc
        if (run.series, run.digest) != (read.get("series"), read.get("digest")):
            raise ValueError("its sums do not fit its buckets")
        return run


def digest_of(value: Sequence[Any] | Mapping[str, Any], size: int = DIGEST_BYTES) -> str:
    """Return a digest of a plain value, equal in every process."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


def _bucket(one: BucketRun) -> dict[str, object]:
    told: dict[str, object] = {
        "bucket": one.bucket,
        "rows": one.rows,
        "digest": one.digest,
        "state_digest": one.state_digest,
        "outcomes": dict(sorted(one.outcomes.items())),
    }
    return told if one.damaged is None else told | {"damaged": one.damaged}
