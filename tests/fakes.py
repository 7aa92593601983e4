"""Fakes of our own ports; tests/contract runs one suite on each of them and on its real twin."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from rules.errors import StoreError, UnreachableError
from rules.exceptions.problems import Problem, ProblemId
from rules.facts.broker_log import LogSource
from rules.facts.snapshot import Snapshot
from rules.open_findings import Change, Identity, Step, apply_changes
from service.alerting.alerts.alert import RESOLVED_KEPT, Alert, AlertState
from service.alerting.alerts.delta import AlertDelta, Closing
from service.alerting.alerts.grouping import AlertingState
from service.alerting.alerts.outbox_row import Outgoing
from service.observe.cluster_reader import Scope
from service.observe.feeds import Fed
from service.storage.alerting.alerts import with_evidence
from service.storage.alerting.pending_requests import NO_PENDING_REQUESTS
from service.storage.findings.findings import OPEN_STEPS
from service.storage.formats.application_errors import FORMAT as PROBLEM_FORMAT
from service.storage.formats.application_errors import decode as decode_problem
from service.storage.formats.application_errors import encode as encode_problem
from service.storage.rounds.application_errors import KnownProblems, ProblemTurn
from service.storage.rounds.clusters import ClusterKey, RoundId
from service.storage.rounds.inbox import (
    KnownDelivery,
    NewDelivery,
    StreamState,
    Turn,
    WaitingLines,
)
from service.storage.rounds.rounds import Round, Stored
from service.storage.rounds.store import Loaded, OpenFindings
from tests.factories import at, snapshot


def is_remembered(alert: Alert, observed_at: datetime | None) -> bool:
    """Return whether a stored alert belongs to the state of alerting, not only to its history."""
    if alert.state is not AlertState.RESOLVED:
        return True
    if observed_at is None or alert.fired_at is None or alert.resolved_at is None:
        return False
    return alert.resolved_at >= observed_at - RESOLVED_KEPT


def stored(before: Collection[Identity], changes: Sequence[Change]) -> Iterator[Change]:
    """Yield what a database makes of changes: one of a finding whose opening was lost opens it."""
    for change in changes:
        if change.identity in before or change.step in (Step.OPENED, Step.ENDED):
            yield change
        elif change.step in OPEN_STEPS:
            yield replace(change, step=Step.OPENED)


class MemoryStore:
    """Keeps rounds as the database does; `fails` is raised by every call while it is set."""

    def __init__(self) -> None:
        self.fails: StoreError | None = None
        self.calls = 0
        self.rounds: list[Round] = []
        self._last: dict[ClusterKey, RoundId] = {}
        self._open: dict[ClusterKey, OpenFindings] = {}
        self._newest: dict[str, Round] = {}
        self._alerting: dict[ClusterKey, AlertingState] = {}
        self.requests = NO_PENDING_REQUESTS  # what persons ask for
        self.outbox: list[Outgoing] = []
        self.closed: list[Closing] = []

    def load(self, name: str, writer: UUID) -> Loaded:
        """Claim and return what is kept under a name."""
        self._call()
        for key, last in self._last.items():
            if key.name == name and last.writer != writer:
                self._last[key] = RoundId(writer, 0)
        return self.kept(name)

    def kept(self, name: str) -> Loaded:
        """Return what is kept under a name, for a test: nobody loses it to another writer."""
        newest = self._newest.get(name)
        return Loaded(
            cluster_id="" if newest is None else newest.cluster.cluster_id,
            checkpoint=None if newest is None else newest.checkpoint,
            open_findings={
                key.cluster_id: found for key, found in self._open.items() if key.name == name
            },
            alerting={
                key.cluster_id: with_evidence(state, self._open.get(key, {}))
                for key, state in self._alerting.items()
                if key.name == name
            },
            requests=self.requests,
        )

    def store(self, rounds: Sequence[Round]) -> Stored:
        """Keep rounds that are not kept yet."""
        self._call()
        for one in rounds:
            self._refuse_stranger(one)
        for one in rounds:
            last = self._last.get(one.cluster)
            if last and last.writer == one.round_id.writer and one.round_id.number <= last.number:
                continue
            self.rounds.append(one)
            self._last[one.cluster] = one.round_id
            before = self._open.get(one.cluster, {})
            self._open[one.cluster] = apply_changes(before, stored(before, one.changes), one.at)
            if one.checkpoint is not None:
                self._newest[one.cluster.name] = one
            if one.alerts is not None:
                self._keep_alerts(one.cluster, one.alerts)
        return Stored(requests=self.requests)

    def _keep_alerts(self, cluster: ClusterKey, delta: AlertDelta) -> None:
        self.outbox += delta.outgoing
        self.closed += delta.closed
        before = self._alerting.get(cluster, AlertingState())
        known = {} if delta.is_whole else {a.fingerprint: a for a in before.alerts.values()}
        groups = {} if delta.is_whole else dict(before.groups)
        alerts = {**known, **delta.alerts}
        groups |= {name: one for name, one in delta.groups.items() if one is not None}
        gone = {name for name, one in delta.groups.items() if one is None}
        observed_at = delta.observed_at or before.observed_at
        self._alerting[cluster] = AlertingState(
            alerts={a.key: a for a in alerts.values() if is_remembered(a, observed_at)},
            groups={name: one for name, one in groups.items() if name not in gone},
            observed_at=observed_at,
        )

    def _refuse_stranger(self, one: Round) -> None:
        mine, name = one.round_id.writer, one.cluster.name
        if any(key.name == name and last.writer != mine for key, last in self._last.items()):
            told = f"another Tidemark service keeps cluster {name} in this database"
            raise StoreError(told, retryable=False)

    def _call(self) -> None:
        self.calls += 1
        if self.fails is not None:
            raise self.fails


class ScriptedSource:
    """Shows prepared rounds in order; None is a round that cannot be made.

    Its clock is until `pass_interval`, which a test calls before every round.
    """

    def __init__(
        self, *observations: dict[str, Any] | None, interval_seconds: float = 15.0
    ) -> None:
        self.observations = list(observations)
        self.elapsed = -interval_seconds
        self._interval = interval_seconds
        self.wall_ahead = 0.0  # seconds by which somebody set the wall clock

    def utc_now(self) -> datetime:
        """Return the time of the round that is being made."""
        return at(self.elapsed + self.wall_ahead)

    def monotonic(self) -> float:
        """Return the same time in seconds."""
        return self.elapsed

    def pass_interval(self) -> None:
        """Let the next round be due."""
        self.elapsed += self._interval

    def read(self, scope: Scope) -> Snapshot:
        """Show the next round."""
        del scope
        observation = self.observations.pop(0)
        if observation is None:
            raise UnreachableError("no bootstrap address answered: 127.0.0.1:9: connection refused")
        return snapshot(**{"taken_at": self.utc_now(), **observation})


class CountedFeed:
    """A feed of endless lines; `limit` of them per read, and it notes from where it was read."""

    name = "counted"
    is_used = may_be_used = True

    def __init__(self, *, limit: int = 10, waiting: int = 0) -> None:
        self.limit = limit
        self.waiting = waiting  # lines that nobody has read yet
        self.began: list[int | None] = []

    def read(self, position: str | None) -> Fed:
        """Return as many lines as wait, as counts alone."""
        self.began.append(None if position is None else int(position))
        start = int(position or 0)
        count = min(self.limit, self.waiting - start)
        return Fed(
            sources=(LogSource(name="a.log", lines=count),),
            position=str(start + count),
            is_behind=start + count < self.waiting,
        )


@dataclass
class MemoryInbox:
    """Keeps deliveries as the database does; `fails` is raised by every call while it is set."""

    fails: StoreError | None = None
    deliveries: list[NewDelivery] = field(
        default_factory=list
    )  # the id of one is its place, from 1
    streams: dict[str, StreamState] = field(default_factory=dict)

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Keep what is added if the turn ends well."""
        self._call()
        turn = _MemoryTurn(self)
        yield turn
        self.deliveries += turn.added
        for one in turn.added:
            for stream in one.streams:
                before = self.streams.get(stream.name, stream)
                times = [at for at in (before.last_line_at, stream.last_line_at) if at is not None]
                self.streams[stream.name] = replace(stream, last_line_at=max(times, default=None))

    def after(self, last_id: int, *, max_events: int, max_rows: int) -> WaitingLines:
        """Return what waits after an id."""
        self._call()
        waiting, taken, events = self.deliveries[last_id:], list[NewDelivery](), 0
        for one in waiting[:max_rows]:
            events += one.counts.events
            if taken and events > max_events:
                break
            taken.append(one)
        latest: dict[str, datetime | None] = {}
        for stream in self.streams.values():
            times = [at for at in (latest.get(stream.source), stream.last_line_at) if at]
            latest[stream.source] = max(times, default=None)
        return WaitingLines(
            parsed=tuple(one.parsed for one in taken),
            last_id=last_id + len(taken) if taken else None,
            is_all=len(taken) == len(waiting),
            sources=tuple(LogSource(name=n, last_line_at=at) for n, at in sorted(latest.items())),
        )

    def _call(self) -> None:
        if self.fails is not None:
            raise self.fails


class _MemoryTurn:
    def __init__(self, inbox: MemoryInbox) -> None:
        self._inbox = inbox
        self.added: list[NewDelivery] = []

    def find_delivery(self, key: str) -> KnownDelivery | None:
        for one in self._inbox.deliveries:
            if one.key == key:
                return KnownDelivery(digest=one.digest, counts=one.counts)
        return None

    def waiting(self, after: int) -> int:
        return sum(1 + one.counts.events for one in self._inbox.deliveries[after:])

    def states(self, names: Collection[str]) -> tuple[Mapping[str, str], int]:
        known = self._inbox.streams
        return {name: known[name].state for name in names if name in known}, len(known)

    def add(self, new: NewDelivery) -> None:
        self.added.append(new)


@dataclass
class MemoryProblems:
    """Keeps problems as the database does, in its format; `fails` is raised by every call while it is set."""

    fails: StoreError | None = None
    rows: dict[ProblemId, str] = field(default_factory=dict)

    def load(self, since: datetime) -> Sequence[Problem]:
        """Return those that were seen since a time."""
        self._call()
        problems = (decode_problem(content, PROBLEM_FORMAT) for content in self.rows.values())
        return [problem for problem in problems if problem.last_seen >= since]

    @contextmanager
    def turn(self) -> Iterator[ProblemTurn]:
        """Keep what is saved if the turn ends well."""
        self._call()
        turn = _ProblemTurn(
            {problem.id: problem for problem in self.load(datetime.min.replace(tzinfo=UTC))}
        )
        yield turn
        self.rows |= {problem.id: encode_problem(problem) for problem in turn.saved}

    def _call(self) -> None:
        if self.fails is not None:
            raise self.fails


class _ProblemTurn:
    def __init__(self, stored: Mapping[ProblemId, Problem]) -> None:
        self._stored = stored
        self.saved: list[Problem] = []

    def known(self, ids: Collection[ProblemId], since: datetime) -> KnownProblems:
        recent = {key: each for key, each in self._stored.items() if each.last_seen >= since}
        return KnownProblems({key: recent[key] for key in ids if key in recent}, len(recent))

    def save(self, problems: Sequence[Problem]) -> None:
        self.saved += problems
