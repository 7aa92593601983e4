"""The record of a baseline run, `run.json`: its inputs, its content, and the digests that prove it complete.

A run is identified by its inputs: the same inputs give the same id, the same files and this record byte
for byte, wherever and however often it runs. So the record holds no times and no durations. It is written
last; a run without it does not exist.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

RUN_FORMAT: Final = 2  # of the record and of a run's files
FORMER_FORMAT: Final = 1  # read as well: without the columns `packed.ADDED_COLUMNS`
ID_BYTES: Final = 10
DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRun:
    """What a run holds of one bucket."""

    bucket: int
    rows: int  # series
    digest: str  # hex: the columns that are published, in order (`RowDigest` of `spark.digests`)
    state_digest: str  # hex: the states, which only the next run reads
    outcomes: Mapping[str, int] = field(default_factory=dict)  # series per outcome
    damaged: str | None = None  # why its samples could not be read; its states were carried on


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRun:
    """One complete baseline run."""

    id: str
    day: date  # civil, in `zone`; the last day that it has learnt from
    zone: str  # IANA
    previous: str | None  # digest of the run that it continues; None: the first run
    buckets: tuple[BucketRun, ...]  # all of them, in order
    format: int = RUN_FORMAT

    @property
    def series(self) -> int:
        """Return the number of series with a row."""
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
        """Return the record as it is stored; equal for equal runs."""
        document = {
            "format": self.format,
            "id": self.id,
            "day": self.day.isoformat(),
            "zone": self.zone,
            "previous": self.previous,
            "series": self.series,
            "digest": self.digest,
            "outcomes": self.outcomes,
            "buckets": [_bucket(bucket) for bucket in self.buckets],
        }
        return json.dumps(document, indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> BaselineRun:
        """Read a record.

        Raises:
            ValueError: it is torn, of another format, or its sums do not fit.
        """
        read = json.loads(text)
        try:
            if read["format"] not in (RUN_FORMAT, FORMER_FORMAT):
                supported = f"{FORMER_FORMAT} and {RUN_FORMAT} are supported"
                raise ValueError(f"its format is {read['format']}; {supported}")
            run = cls(
                id=str(read["id"]),
                day=date.fromisoformat(read["day"]),
                zone=str(read["zone"]),
                previous=None if read["previous"] is None else str(read["previous"]),
                buckets=tuple(BucketRun(**row) for row in read["buckets"]),
                format=int(read["format"]),
            )
        except (KeyError, TypeError) as exc:
            raise ValueError(f"it is not a record of a run: {exc}") from exc
        if (run.series, run.digest) != (read.get("series"), read.get("digest")):
            raise ValueError("its totals do not match its buckets")
        return run


def digest_of(value: Sequence[Any] | Mapping[str, Any], size: int = DIGEST_BYTES) -> str:
    """Return a digest of a plain value, equal in every process."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


def _bucket(run: BucketRun) -> dict[str, object]:
    document: dict[str, object] = {
        "bucket": run.bucket,
        "rows": run.rows,
        "digest": run.digest,
        "state_digest": run.state_digest,
        "outcomes": dict(sorted(run.outcomes.items())),
    }
    return document if run.damaged is None else document | {"damaged": run.damaged}
