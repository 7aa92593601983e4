"""One bucket of a baseline run: samples, masks and earlier states become the bucket's file of the run.

A damaged file must not lose what was learnt: where samples or masks are damaged, the series of that bucket
have a day without data. Where the states themselves are damaged the run fails, because they cannot be
rebuilt from it. It fails as well where a file cannot be read now: the next run makes the same bucket.
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
from rules.baseline.policy import BaselineSettings
from spark.damage import CheckedPlace, DamagedError
from spark.gridding import Masks, blocks
from spark.inputs import RunInputs, is_as_it_was
from spark.places import Place
from spark.reading import BrokenRunError, Rows, Step, steps
from spark.schemas import MASKS, SAMPLES, STATES
from spark.writing import run_rows, writing_run

READ, ADVANCE, WRITE = "read", "advance", "write"  # stages; seconds of one core


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketOutcome:
    """The outcome of a bucket: its `run`, or why there is none."""

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


def make_bucket(inputs: RunInputs, bucket: int) -> BucketOutcome:
    """Make a bucket's file; repeated, it makes the same one.

    Raises:
        OSError: a file cannot be read or written now; a later try may succeed.
    """
    pa.set_cpu_count(1)  # the other cores have buckets of their own
    try:
        return _make(inputs, bucket)
    except BrokenRunError as exc:
        return BucketOutcome(broken=str(exc))


def _make(inputs: RunInputs, bucket: int) -> BucketOutcome:
    """Make a bucket's file; if a file cannot be read, once more from files that are read as checked ones."""
    with suppress(DamagedError, OSError):
        return _Work(inputs, bucket, Place(inputs.history)).make(damaged=None)
    checked = CheckedPlace(inputs.history)
    work = _Work(inputs, bucket, checked)
    try:
        with checked.proving():
            return work.make(damaged=None)
    except BrokenRunError:
        raise
    except DamagedError as exc:
        work.confirm(exc)
        damaged = str(exc)
    with checked.proving():
        return work.make(damaged=damaged)


class _Work:
    def __init__(self, inputs: RunInputs, bucket: int, place: Place) -> None:
        self._inputs, self._bucket, self._place = inputs, bucket, place
        self._calendar = civil_day(inputs.day, inputs.zone)
        self._settings = BaselineSettings()
        self._file = bucket_file(bucket)
        self._clock = time.perf_counter()
        self._seconds = {READ: 0.0, ADVANCE: 0.0, WRITE: 0.0}

    def make(self, damaged: str | None) -> BucketOutcome:
        """Make the file; a damaged bucket has no samples."""
        self._clock = time.perf_counter()
        masks = self._masks(damaged)
        folder = day_folder(self._inputs.day)
        samples = Rows(self._place, None if damaged else f"{folder}/{self._file}", SAMPLES)
        name = f"{run_folder(self._inputs.day, self._inputs.id)}/{self._file}"
        with writing_run(self._place, name) as writer:
            for step in steps(samples, self._states()):
                self._add_time(READ)
                writer.add(self._advance(step, masks, self._calendar))
                self._add_time(WRITE)
            run = writer.reported(self._bucket, damaged)
        self._add_time(WRITE)
        return BucketOutcome(run=run, seconds=self._seconds)

    def confirm(self, damage: DamagedError) -> None:
        """Check that a damaged file is the one that the run's id was computed from.

        Raises:
            OSError: it was changed meanwhile, or cannot be read now.
        """
        for folder in (day_folder, masks_folder):
            name = f"{folder(self._inputs.day)}/{self._file}"
            if not is_as_it_was(self._place, self._inputs, name):
                raise OSError(f"{name} was changed while it was read: {damage}") from damage

    def _advance(self, step: Step, masks: Masks, calendar: CivilDay) -> pa.Table:
        tables, places = [], []
        for block in blocks(step, calendar, masks):
            self._add_time(READ)
            states, baselines = advance(block.states, block.day, calendar, self._settings)
            self._add_time(ADVANCE)
            tables.append(run_rows(states, baselines))
            places.append(block.place[baselines.is_kept])
            self._add_time(WRITE)
        order = np.concatenate(places)
        rows = pa.concat_tables(tables)
        is_in_order = bool((np.diff(order) > 0).all())
        return rows if is_in_order else rows.take(pa.array(np.argsort(order)))

    def _masks(self, damaged: str | None) -> Masks:
        name = f"{masks_folder(self._inputs.day)}/{self._file}"
        return Masks.of(Rows(self._place, None if damaged else name, MASKS).rest())

    def _states(self) -> Rows:
        before = self._inputs.previous
        if before is None:
            return Rows(self._place, None, STATES)
        name = f"{run_folder(before.day, before.id)}/{self._file}"
        states = Rows(self._place, name, STATES, BrokenRunError)
        expected = before.buckets[self._bucket].rows
        if states.count != expected:
            raise BrokenRunError(f"{name}: it has {states.count} rows of {expected}")
        return states

    def _add_time(self, stage: str) -> None:
        now = time.perf_counter()
        self._seconds[stage] += now - self._clock
        self._clock = now
