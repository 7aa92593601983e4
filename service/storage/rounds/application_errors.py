"""Errors that applications logged: one row per problem, so that a restart loses none of them.

A writer holds a lock on the cluster's problems until its transaction ends: it reads those that it counts once more,
and two services that take lines at the same time lose no count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.dialects.postgresql import insert

from rules.exceptions.problems import Problem, ProblemId
from service.storage.database.translate import translate_errors
from service.storage.formats.application_errors import FORMAT, decode, encode
from service.storage.tables.core import APPLICATION_ERROR

LOCKS: Final = 0x6572_7273  # "errs": one writer of a cluster's problems at a time


@dataclass(frozen=True, slots=True)
class KnownProblems:
    """Some problems by their ids, and how many there are in all."""

    problems: Mapping[ProblemId, Problem]
    count: int


class ProblemTurn(Protocol):
    """One writer's turn: what it saves is committed if the turn succeeds."""

    def known(self, ids: Collection[ProblemId], since: datetime) -> KnownProblems:
        """Return those among some ids that were seen since a time, and the number of all such."""

    def save(self, problems: Sequence[Problem]) -> None:
        """Store problems as they are now."""


class StoredApplicationErrors:
    """The problems of one cluster, by its configured name; every call may raise `StoreError`."""

    def __init__(self, engine: Callable[[], Engine], cluster: str) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._cluster = cluster

    def load(self, since: datetime) -> Sequence[Problem]:
        """Return the problems that were last seen since a time."""
        query = select(APPLICATION_ERROR.c.content, APPLICATION_ERROR.c.format)
        recent = query.where(
            APPLICATION_ERROR.c.cluster == self._cluster, APPLICATION_ERROR.c.last_seen >= since
        )
        doing = "application errors cannot be read"
        with translate_errors(doing), self._engine().connect() as connection:
            rows = connection.execute(recent).all()
        return [decode(row.content, row.format) for row in rows]

    @contextmanager
    def turn(self) -> Iterator[ProblemTurn]:
        """Wait for the lock, and commit what the writer saves.

        Raises:
            StoreError: nothing was stored, or the answer to COMMIT was lost.
        """
        doing = "application errors cannot be stored"
        with translate_errors(doing), self._engine().begin() as connection:
            lock = func.pg_advisory_xact_lock(LOCKS, func.hashtext(self._cluster))
            connection.execute(select(lock))
            yield _StoredTurn(connection, self._cluster)


class _StoredTurn:
    """A turn within one transaction."""

    def __init__(self, connection: Connection, cluster: str) -> None:
        self._connection = connection
        self._cluster = cluster

    def known(self, ids: Collection[ProblemId], since: datetime) -> KnownProblems:
        mine = APPLICATION_ERROR.c.cluster == self._cluster
        recent = APPLICATION_ERROR.c.last_seen >= since
        count = select(func.count()).select_from(APPLICATION_ERROR).where(mine, recent)
        query = select(APPLICATION_ERROR.c.content, APPLICATION_ERROR.c.format)
        chosen = query.where(mine, recent, APPLICATION_ERROR.c.id.in_(ids))
        problems = [decode(row.content, row.format) for row in self._connection.execute(chosen)]
        return KnownProblems(
            {problem.id: problem for problem in problems},
            int(self._connection.execute(count).scalar_one()),
        )

    def save(self, problems: Sequence[Problem]) -> None:
        upsert = insert(APPLICATION_ERROR)
        names = ("last_seen", "format", "content")
        changed = {name: upsert.excluded[name] for name in names}
        self._connection.execute(
            upsert.on_conflict_do_update(index_elements=["cluster", "id"], set_=changed),
            [
                {
                    "cluster": self._cluster,
                    "id": problem.id,
                    "last_seen": problem.last_seen,
                    "format": FORMAT,
                    "content": encode(problem),
                }
                for problem in problems
            ],
        )
