"""A fake of where runs of jobs are kept; tests/contract runs one suite on it and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rules.errors import StoreError
from service.scheduling.job import Ended, Known, Rejected, RunOutcome
from service.storage.jobs.jobs import GONE, StoredRun

UNENDED = (RunOutcome.RUNNING, RunOutcome.INTERRUPTED)


@dataclass
class KeptRuns:
    """What all processes share."""

    rows: dict[int, StoredRun] = field(default_factory=dict)
    locked: dict[str, MemoryRuns] = field(default_factory=dict)  # by job: whose run it is


class MemoryRuns:
    """One process's way to the runs; `fails` is raised by every call while it is set."""

    def __init__(self, kept: KeptRuns | None = None) -> None:
        self.kept = kept or KeptRuns()
        self.fails: StoreError | None = None

    def known(self, names: Sequence[str], now: datetime) -> Mapping[str, Known]:
        """Return what is known, with what a dead process left taken for interrupted."""
        self.call()
        for name in names:
            if name not in self.kept.locked:
                self._interrupt(name, now)
        return {name: self._known(name, now) for name in names}

    def begin(self, name: str, due_at: datetime, now: datetime) -> MemoryTurn | Rejected:
        """Begin a run."""
        self.call()
        if name in self.kept.locked:
            return Rejected.ELSEWHERE
        self._interrupt(name, now)
        done = [one for one in self._of(name) if one.due_at == due_at]
        if any(one.outcome not in (*UNENDED, RunOutcome.MISSED) for one in done):
            return Rejected.DONE
        self.kept.locked[name] = self
        return MemoryTurn(self, self._add(name, due_at, now, RunOutcome.RUNNING))

    def missed(self, name: str, due_at: datetime, now: datetime, times: int) -> None:
        """Keep that a job was missed."""
        self.call()
        row = self._add(name, due_at, now, RunOutcome.MISSED)
        self.put(row, ended_at=now, stats={"times": times})

    def runs(self, name: str, limit: int) -> list[StoredRun]:
        """Return the newest runs of a job, newest first."""
        self.call()
        found = sorted(self._of(name), key=lambda one: one.id, reverse=True)
        return found[:limit]

    def die(self) -> None:
        """End the process: its locks are gone."""
        held = self.kept.locked
        self.kept.locked = {name: who for name, who in held.items() if who is not self}

    def call(self) -> None:
        """Be the database that answers, or does not."""
        if self.fails is not None:
            raise self.fails

    def put(self, run: int, **changes: object) -> None:
        """Change a row."""
        before = self.kept.rows[run]
        values = {name: getattr(before, name) for name in StoredRun.__dataclass_fields__}
        self.kept.rows[run] = StoredRun(**{**values, **changes})

    def _of(self, name: str) -> list[StoredRun]:
        return [one for one in self.kept.rows.values() if one.job_name == name]

    def _add(self, name: str, due_at: datetime, now: datetime, outcome: RunOutcome) -> int:
        run = len(self.kept.rows) + 1
        self.kept.rows[run] = StoredRun(
            id=run,
            job_name=name,
            due_at=due_at,
            started_at=now,
            ended_at=None,
            outcome=outcome,
            detail="",
            stats={},
        )
        return run

    def _interrupt(self, name: str, now: datetime) -> None:
        for one in self._of(name):
            if one.outcome is RunOutcome.RUNNING:
                self.put(one.id, outcome=RunOutcome.INTERRUPTED, ended_at=now, detail=GONE)

    def _known(self, name: str, now: datetime) -> Known:
        mine = [one for one in self._of(name) if one.due_at <= now]
        last = max((one.due_at for one in mine if one.outcome not in UNENDED), default=None)
        cut = [
            one
            for one in mine
            if one.outcome is RunOutcome.INTERRUPTED and (last is None or one.due_at > last)
        ]
        well = (one.ended_at for one in mine if one.outcome is RunOutcome.SUCCEEDED)
        return Known(
            last_due=last,
            interrupted=len(cut),
            last_success=max((at for at in well if at is not None), default=None),
        )


class MemoryTurn:
    """A run that is under way."""

    def __init__(self, runs: MemoryRuns, run: int) -> None:
        self._runs = runs
        self._run = run

    def end(self, ended: Ended, now: datetime) -> None:
        """Keep how it ended."""
        self._runs.call()
        self._runs.put(
            self._run,
            outcome=ended.outcome,
            ended_at=now,
            detail=ended.detail,
            stats=dict(ended.stats),
        )

    def release(self) -> None:
        """Let others run the job."""
        name = self._runs.kept.rows[self._run].job_name
        self._runs.kept.locked.pop(name, None)
