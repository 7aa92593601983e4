"""One bucket's night: samples, masks and states of before become the bucket's file of the run.

What a file cannot tell is no reason to lose what is known: where samples or masks are damaged, the
series of that bucket have a day without data. Where the states themselves are damaged the night
cannot go on, because nobody knows what they were.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field

import numpy as np
import pyarrow as pa

from rules.baseline.baseline_run import BucketRun
from rules.baseline.civil import CivilDay, civil_day
from rules.baseline.daily_step import advance
from rules.baseline.layout import bucket_file, day_folder, masks_folder, run_folder
from rules.baseline.settings import BaselineSettings
from spark.gridding import Masks, blocks
from spark.inputs import RunInputs, is_as_it_was
from spark.places import Place
from spark.reading import END, BrokenRunError, DamagedError, Rows, Step, steps
from spark.schemas import MASKS, SAMPLES, STATES
from spark.writing import run_rows, writing_run

READ, ADVANCE, WRITE = "read", "advance", "write"  # stages; seconds of one core


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketOutcome:
    """What became of a bucket: `run` or why there is none."""

    run: BucketRun | None = None
    broken: str | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return it as one line, for the driver."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> BucketOutcome:
        """Read what `to_json` wrote."""
        read = json.loads(text)
        run = None if read["run"] is None else BucketRun(**read["run"])
        return cls(run=run, broken=read["broken"], seconds=read["seconds"])


def make_bucket(night: RunInputs, bucket: int) -> BucketOutcome:
    """Make a bucket's file; making it again makes the same one.

    Raises:
        OSError: a file cannot be read or written now; another time it may.
    """
    pa.set_cpu_count(1)  # the other cores have buckets of their own
    work = _Work(night, bucket)
    try:
        run = _made(work)
    except BrokenRunError as exc:
        return BucketOutcome(broken=str(exc))
    return BucketOutcome(run=run, seconds=work.seconds)


def _made(work: _Work) -> BucketRun:
    """Make a bucket: what can be read the second time is not damaged, a disk or a store has failed."""
    with suppress(DamagedError):
        return work.make(damaged=None)
    try:
        return work.make(damaged=None)
    except BrokenRunError:
        raise
    except DamagedError as exc:
        work.confirm(exc)
        return work.make(damaged=str(exc))


class _Work:
    def __init__(self, night: RunInputs, bucket: int) -> None:
        self._night, self._bucket = night, bucket
        self._place = Place(night.history)
        self._calendar = civil_day(night.day, night.zone)
        self._settings = BaselineSettings()
        self._file = bucket_file(bucket)
        self._clock = time.perf_counter()
        self.seconds = {READ: 0.0, ADVANCE: 0.0, WRITE: 0.0}

    def make(self, damaged: str | None) -> BucketRun:
        """Make the file; a damaged bucket has no samples."""
        self._clock = time.perf_counter()
        masks = self._masks(damaged)
        folder = day_folder(self._night.day)
        samples = Rows(self._place, None if damaged else f"{folder}/{self._file}", SAMPLES)
        name = f"{run_folder(self._night.day, self._night.id)}/{self._file}"
        with writing_run(self._place, name) as writer:
            for step in steps(samples, self._states()):
                self._took(READ)
                writer.add(self._advanced(step, masks, self._calendar))
                self._took(WRITE)
            told = writer.reported(self._bucket, damaged)
        self._took(WRITE)
        return told

    def confirm(self, damage: DamagedError) -> None:
        """See that a damaged file is what it was when the run's id was made.

        Raises:
            OSError: it could be read then; now it cannot, or somebody changes it.
        """
        for folder in (day_folder, masks_folder):
            name = f"{folder(self._night.day)}/{self._file}"
            if not is_as_it_was(self._place, self._night, name):
                raise OSError(f"{name} was changed while it was read: {damage}") from damage

    def _advanced(self, step: Step, masks: Masks, calendar: CivilDay) -> pa.Table:
        tables, places = [], []
        for block in blocks(step, calendar, masks):
            self._took(READ)
            states, baselines = advance(block.states, block.day, calendar, self._settings)
            self._took(ADVANCE)
            tables.append(run_rows(states, baselines))
            places.append(block.place[baselines.is_kept])
            self._took(WRITE)
        order = np.concatenate(places)
        rows = pa.concat_tables(tables)
        is_in_order = bool((np.diff(order) > 0).all())
        return rows if is_in_order else rows.take(pa.array(np.argsort(order)))

    def _masks(self, damaged: str | None) -> Masks:
        name = f"{masks_folder(self._night.day)}/{self._file}"
        rows = Rows(self._place, None if damaged else name, MASKS)
        parts = []
        while not rows.is_empty:
            parts.append(rows.take(END))
        return Masks.of(pa.concat_tables([MASKS.empty_table(), *parts]))

    def _states(self) -> Rows:
        before = self._night.previous
        if before is None:
            return Rows(self._place, None, STATES)
        name = f"{run_folder(before.day, before.id)}/{self._file}"
        states = Rows(self._place, name, STATES, BrokenRunError)
        expected = before.buckets[self._bucket].rows
        if states.count != expected:
            raise BrokenRunError(f"{name}: it has {states.count} rows of {expected}")
        return states

    def _took(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] += now - self._clock
        self._clock = now
