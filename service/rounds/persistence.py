"""Persistence of rounds: the stored state is read once, and every round is stored, if the database answers.

A database that is away never stops a round: rounds wait in memory, bounded, and `status` says how many
wait, how many were lost and why. It is tried again after 1 s, 2 s, 4 s, at most 30 s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Final, Protocol, TypeVar
from uuid import UUID, uuid4

from rules.errors import StoreError
from rules.facts.change_events import ChangeEvent
from rules.open_findings import Change, Identity, OpenFinding, apply_changes, rebased
from service.alerting.alerts.delta import AlertDelta
from service.runtime.threads import InTime, without_limit
from service.storage.database.rejections import RejectedRow, RowKind
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds.clusters import ClusterKey, RoundId
from service.storage.rounds.pending import PART_CHANGES, Pending
from service.storage.rounds.rounds import Round, Stored
from service.storage.rounds.store import Loaded, OpenFindings

FIRST_RETRY_SECONDS: Final = 1.0
LAST_RETRY_SECONDS: Final = 30.0
# Above the server's own limits, which a frozen or paused server does not enforce.
STORE_SECONDS: Final = 10.0
LAST_SECONDS: Final = 5.0  # at the end of the service, which has a limit of its own
LOAD_SECONDS: Final = 120.0  # an embedded server may have to recover first

# A round may be stored in pieces, which are numbered by their rows.
NUMBERS: Final = 1_000_000
LEAST_CHANGES: Final = 250  # in one piece, however slow the database is
QUICK_SECONDS: Final = 2.0  # a piece that took no longer may be followed by a larger one

T = TypeVar("T")


class PersistenceState(StrEnum):
    """Whether rounds are being stored."""

    NOT_LOADED = "not_loaded"  # what was remembered could not be read yet; rounds wait
    STORED = "stored"
    WAITING = "waiting"  # the database is away
    REJECTED = "rejected"  # it answers and says no: a person has to act


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistenceStatus:
    """The state of storing, and what waits or was lost."""

    state: PersistenceState = PersistenceState.NOT_LOADED
    error: str | None = None  # why, one line
    alerts_error: str | None = None  # what of alerts could not be stored or read, one line
    is_final: bool = False  # no later try can succeed: a person has to fix it
    waiting_rounds: int = 0
    lost_rounds: int = 0  # since the start
    lost_transitions: int = 0  # of findings and alerts, since the start
    # Rows that the database rejects for good, since the start, and why it rejected the last one.
    rejected_rows: Mapping[RowKind, int] = field(default_factory=dict)
    rejected_row: RejectedRow | None = None
    stored_at: datetime | None = None  # the time of the last round that was stored
    took_seconds: float | None = None  # the last transaction

    @property
    def is_loaded(self) -> bool:
        """Whether the stored state has been read: before it, how many findings are open is not known."""
        return self.state is not PersistenceState.NOT_LOADED


class Store(Protocol):
    """Loads and stores rounds."""

    def load(self, name: str, writer: UUID) -> Loaded:
        """Claim and read the state under a cluster's name; StoreError if it cannot be done now.

        The newest writer that claimed a name is the one that may store.
        """

    def store(self, rounds: Sequence[Round]) -> Stored:
        """Store rounds in order, all or none; idempotent."""


class RoundWriter:
    """Stores one cluster's rounds; one caller at a time, because rounds never overlap."""

    def __init__(  # noqa: PLR0913 - each by its name
        self,
        store: Store,
        name: str,
        *,
        monotonic: Callable[[], float],
        waiting_rounds: int,
        writer: UUID | None = None,
        in_time: InTime = without_limit,
        part_changes: int = PART_CHANGES,
    ) -> None:
        """`in_time` calls the store, and raises TimeoutError when that takes too long.

        `part_changes` are stored in one transaction, and fewer while the database is slow.
        """
        self._store = store
        self._in_time = in_time
        self._name = name
        self._monotonic = monotonic
        self._writer = writer or uuid4()
        self._number = 0
        self._pending = Pending(limit=waiting_rounds)
        self._part_changes = self._most = part_changes  # in one transaction
        self._retry_at = float("-inf")
        self._retry_seconds = FIRST_RETRY_SECONDS
        self._status = PersistenceStatus()
        self._stored: list[Stored] = []
        self._rejected: Counter[RowKind] = Counter()
        self._rejected_row: RejectedRow | None = None
        self._rejected_rows: list[RejectedRow] = []  # that were not taken yet
        self._lost_steps = 0  # of alerts, and of what is stored by now

    @property
    def status(self) -> PersistenceStatus:
        """Return the status of storing."""
        return replace(
            self._status,
            waiting_rounds=len(self._pending.rounds),
            lost_rounds=self._pending.lost_rounds,
            lost_transitions=self._pending.lost_transitions
            + self._lost_steps
            + _count_lost_steps(self._pending.rounds),
            rejected_rows={kind: self._rejected[kind] for kind in RowKind},
            rejected_row=self._rejected_row,
        )

    @property
    def is_loaded(self) -> bool:
        """Whether the stored state has been read."""
        return self._status.is_loaded

    @property
    def is_storing(self) -> bool:
        """Whether the last attempt to store succeeded, or none was made yet."""
        return self._status.state is PersistenceState.STORED

    def load(self, *, is_start: bool = False, at_once: bool = False) -> Loaded | None:
        """Read the stored state if the next attempt is due, or `at_once`.

        None if that failed or was done before.

        Raises:
            StoreError: at the start only: no later try will mend it.
        """
        if self.is_loaded or (self._monotonic() < self._retry_at and not at_once):
            return None
        try:
            loaded = self._call_store(
                lambda: self._store.load(self._name, self._writer), LOAD_SECONDS
            )
        except StoreError as exc:
            self._put_off(PersistenceState.NOT_LOADED, exc)
            if is_start and not exc.retryable:
                raise
            return None
        self._rebase(loaded)
        self._retry_at, self._retry_seconds = float("-inf"), FIRST_RETRY_SECONDS
        self._status = replace(
            self._status,
            state=PersistenceState.STORED,
            error=None,
            is_final=False,
            alerts_error=next(iter(loaded.damaged.values()), None),
        )
        return loaded

    def under(self, cluster_id: str, current: OpenFindings, loaded: Loaded) -> OpenFindings:
        """Return the open findings of a cluster: the stored ones, with waiting rounds applied to them."""
        merged: dict[Identity, OpenFinding] = dict(loaded.open_findings.get(cluster_id, {}))
        for round_ in self.waiting(cluster_id):
            changes = [c for c in round_.changes if c.identity in merged or c.before is None]
            merged = apply_changes(merged, changes, round_.at)
        # A current finding was opened by a waiting round, unless that one was lost.
        return {**{key: merged.get(key, entry) for key, entry in current.items()}, **merged}

    def waiting(self, cluster_id: str) -> list[Round]:
        """Return the waiting rounds of a cluster, oldest first."""
        return [
            round_ for round_ in self._pending.rounds if round_.cluster.cluster_id == cluster_id
        ]

    def take_stored(self) -> list[Stored]:
        """Return the results of storing since the last call."""
        taken, self._stored = self._stored, []
        return taken

    def take_lost_openings(self, cluster_id: str) -> set[Identity]:
        """Return the findings of a cluster that opened in rounds which were lost since the last call."""
        key = ClusterKey(self._name, cluster_id)
        lost = {entry for entry in self._pending.lost_openings if entry[0] == key}
        if lost:
            left = self._pending.lost_openings - lost
            self._pending = replace(self._pending, lost_openings=left)
        return {identity for _, identity in lost}

    def take_rejected(self) -> list[RejectedRow]:
        """Return the rows that the database rejected for good since the last call."""
        taken, self._rejected_rows = self._rejected_rows, []
        return taken

    def keep(  # noqa: PLR0913 - what is stored of a round
        self,
        *,
        cluster_id: str,
        at: datetime,
        changes: Sequence[Change],
        checkpoint: Checkpoint | None = None,
        alerts: AlertDelta | None = None,
        change_events: Sequence[ChangeEvent] = (),
        more_comes: bool = False,
    ) -> None:
        """Queue what is stored of a round, and store all that waits if the next attempt is due.

        With `more_comes` it belongs into one transaction with the next one.
        """
        self._number += NUMBERS
        self._pending = self._pending.add(
            Round(
                cluster=ClusterKey(self._name, cluster_id),
                round_id=RoundId(self._writer, self._number),
                at=at,
                changes=changes,
                checkpoint=checkpoint,
                alerts=alerts,
                change_events=change_events,
            )
        )
        if self.is_loaded and not more_comes:
            self.flush()

    def flush(self, *, at_once: bool = False, seconds: float = STORE_SECONDS) -> None:
        """Store what waits, part by part and oldest first, if the next attempt is due or `at_once`.

        No part is begun after so many seconds: a long queue holds up no round.
        """
        begin = self._monotonic()
        if not self._pending.rounds or not self.is_loaded:
            return
        if begin < self._retry_at and not at_once:
            return
        try:
            while self._pending.rounds:
                self._store_part(seconds)
                if self._monotonic() - begin > seconds:
                    break
        except StoreError as exc:
            is_away = exc.retryable
            self._most = max(self._most // 2, min(LEAST_CHANGES, self._most))
            self._put_off(PersistenceState.WAITING if is_away else PersistenceState.REJECTED, exc)

    def _store_part(self, seconds: float) -> None:
        begin = self._monotonic()
        part, rest = self._pending.first_part(self._most)
        self._pending = rest.tried(part)
        stored = self._call_store(lambda: self._store.store(part), seconds)
        self._stored.append(stored)
        self._pending = rest
        took = self._monotonic() - begin
        if took < QUICK_SECONDS:
            self._most = min(2 * self._most, self._part_changes)
        self._lost_steps += _count_lost_steps(part)
        self._note_rejected(stored.rejected_rows)
        self._retry_at, self._retry_seconds = float("-inf"), FIRST_RETRY_SECONDS
        self._status = PersistenceStatus(
            state=PersistenceState.WAITING if self._pending.rounds else PersistenceState.STORED,
            error="more waited than could be stored at once" if self._pending.rounds else None,
            alerts_error=stored.error,
            stored_at=part[-1].at,
            took_seconds=took,
        )

    def _note_rejected(self, rows: Sequence[RejectedRow]) -> None:
        self._rejected.update(row.kind for row in rows)
        self._rejected_row = rows[-1] if rows else self._rejected_row
        self._rejected_rows += rows

    def _call_store(self, ask: Callable[[], T], seconds: float) -> T:
        """Call the store; one that hangs counts as away."""
        try:
            return self._in_time(ask, seconds)
        except TimeoutError as exc:
            raise StoreError(f"the database hangs: {exc}", retryable=True) from exc

    def _put_off(self, state: PersistenceState, why: StoreError) -> None:
        self._status = replace(
            self._status, state=state, error=str(why), is_final=not why.retryable
        )
        self._retry_at = self._monotonic() + self._retry_seconds
        self._retry_seconds = min(2 * self._retry_seconds, LAST_RETRY_SECONDS)

    def _rebase(self, loaded: Loaded) -> None:
        """Rebase the waiting rounds on the stored state."""
        self._name_waiting(loaded.cluster_id)
        self._place_waiting(loaded.checkpoint or Checkpoint())
        for cluster_id, stored in loaded.open_findings.items():
            mine = self.waiting(cluster_id)
            changed = rebased([round_.changes for round_ in mine], stored)
            changes_of = {
                round_.round_id: changes for round_, changes in zip(mine, changed, strict=True)
            }
            self._replace_waiting(partial(_with_changes, changes_of))

    def _name_waiting(self, cluster_id: str) -> None:
        """Give waiting rounds without a cluster id, as no broker answered, the stored one.

        Otherwise an open finding would open once more, for a cluster without an id.
        """
        waiting = self._pending.rounds
        if not waiting or waiting[-1].cluster.cluster_id or not cluster_id:
            return
        key = ClusterKey(self._name, cluster_id)
        # Such a round has no snapshot: its checkpoint must not replace the stored one.
        self._replace_waiting(lambda round_: replace(round_, cluster=key, checkpoint=None))

    def _place_waiting(self, stored: Checkpoint) -> None:
        """Give waiting rounds, which could not read any log line, the stored log positions."""

        def place(round_: Round) -> Round:
            if round_.checkpoint is None:
                return round_
            placed = replace(round_.checkpoint, log_positions=stored.log_positions)
            return replace(round_, checkpoint=placed)

        self._replace_waiting(place)

    def _replace_waiting(self, change: Callable[[Round], Round]) -> None:
        self._pending = replace(self._pending, rounds=tuple(map(change, self._pending.rounds)))


def _count_lost_steps(rounds: Sequence[Round]) -> int:
    return sum(round_.alerts.lost_steps for round_ in rounds if round_.alerts is not None)


def _with_changes(changes_of: Mapping[RoundId, Sequence[Change]], round_: Round) -> Round:
    return replace(round_, changes=changes_of.get(round_.round_id, round_.changes))
