"""Several errors as one incident: in order, causes before consequences, repeats counted, the worst state at the end.

The first error that is no consequence is the cause, as far as the text has it. What a client said of itself in one line
holds for its other lines: a producer with a transactional id is transactional everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from rules.exceptions.applications import applications
from rules.exceptions.frameworks import CONNECT_FAILED
from rules.exceptions.judging import Judged, judge
from rules.exceptions.meaning import Ability, Records, Role
from rules.facts.application_log import ApplicationError, Client, Names, Outcome

# Longer than delivery.timeout.ms and most limits of transactions: what lies further apart is another incident.
TOGETHER: Final = timedelta(minutes=10)
ABILITIES: Final = (None, Ability.RETRIABLE, Ability.FAILS, Ability.ABORT, Ability.FATAL)
WORST: Final = (Records.NEITHER, Records.DUPLICATED, Records.UNKNOWN, Records.LOST)
OUTCOMES: Final = (
    Outcome.RETRYING, Outcome.HANDLED, Outcome.RAISED, Outcome.ABORTABLE, Outcome.FATAL,
)  # fmt: skip
_ENDED: Final = frozenset(
    {"transaction_timed_out", "producer_initialized", "max_poll_exceeded", "session_expired"}
)
_FENCING: Final = frozenset(
    {
        "invalid_producer_epoch",
        "invalid_producer_epoch_at_coordinator",
        "invalid_producer_epoch_fatal",
        "producer_fenced",
    }
)
_LEFT: Final = frozenset(
    {"max_poll_exceeded", "session_expired", "member_not_known", "rebalance_in_progress"}
)
CLOSE: Final = "Close this producer and start a new one."  # where only the client's own words say that it is finished
# What says nothing more of records where its cause is known.
EXPLAINED_AWAY: Final = frozenset({"task_corrupted", "epoch_raised"})
# What an earlier error explains in the same application.
FOLLOWS: Final = {
    "producer_fenced": _ENDED | _FENCING,
    "invalid_producer_epoch": _ENDED | _FENCING,
    "invalid_producer_epoch_at_coordinator": _ENDED | _FENCING,
    "invalid_producer_epoch_fatal": _ENDED | _FENCING,
    "invalid_txn_state_at_abort": _ENDED | _FENCING,
    "invalid_txn_state": _ENDED | _FENCING,
    "invalid_txn_state_at_leader": _ENDED | _FENCING,
    "commit_failed": _LEFT,
    "txn_offset_commit_failed": _LEFT,
    "member_not_known": _LEFT,
    "assignment_lost": _LEFT,
    "task_migrated": _LEFT | _FENCING | _ENDED,
    "task_corrupted": frozenset({"commit_result_unknown_in_streams", "batch_expired"}),
    "epoch_raised": frozenset({"epoch_raised_after_timeouts"}),
    "epoch_raised_after_timeouts": frozenset({"batch_expired"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One meaning in an incident, with all lines that have it."""

    judged: Judged  # of the line that says most
    role: Role
    count: int
    first_at: datetime | None
    last_at: datetime | None
    lines: tuple[int, ...]  # the first ones, from 1
    names: Names
    first: ApplicationError  # by time, or by line


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """The errors of one application that belong together."""

    problems: tuple[Problem, ...]  # in order
    cause: Problem  # the first that is no consequence; else the first
    is_cause_known: bool
    names: Names  # of the application, as far as its lines have them
    is_transactional: bool | None
    idempotent: Ability | None  # what the instance can do in the end
    transactional: Ability | None
    records: Records
    condition: str
    action: str

    @property
    def is_harmless(self) -> bool:
        """Whether the client has dealt with all of it by itself, as far as the text goes."""
        return all(problem.role is Role.HARMLESS for problem in self.problems)


def incidents_of(events: Sequence[ApplicationError]) -> list[Incident]:
    """Return the incidents in the order of their first lines; errors that no table has are left out."""
    incidents = [
        _incident([event for event, _ in part], [at for _, at in part])
        for indices in applications(events)
        for part in _split([events[index] for index in indices])
    ]
    return [incident for incident in incidents if incident is not None]


Timed = tuple[ApplicationError, datetime | None]


def _split(events: Iterable[ApplicationError]) -> list[list[Timed]]:
    """Return the events of one application in order, cut where nothing happened for long."""
    timed = _with_times(list(events))
    parts: list[list[Timed]] = []
    before: datetime | None = None
    for event, at in sorted(timed, key=_time_and_line):
        is_apart = at is not None and before is not None and at - before > TOGETHER
        if not parts or is_apart:
            parts.append([])
        parts[-1].append((event, at))
        before = at or before
    return parts


def _time_and_line(timed: Timed) -> tuple[float, int]:
    event, at = timed
    return (0.0 if at is None else at.timestamp()), event.line


def _with_times(events: list[ApplicationError]) -> list[Timed]:
    """Return each event with its time, or with that of the line before it, or else behind it."""
    first = next((event.at for event in events if event.at is not None), None)
    timed: list[Timed] = []
    latest = first
    for event in events:
        latest = event.at or latest
        timed.append((event, latest))
    return timed


def _incident(
    events: Sequence[ApplicationError], times: Sequence[datetime | None]
) -> Incident | None:
    is_transactional = _is_transactional(events)
    is_librdkafka = any(event.client is Client.LIBRDKAFKA for event in events)
    judged = [
        result
        for event in events
        if (result := judge(event, is_transactional=is_transactional, is_librdkafka=is_librdkafka))
    ]
    if not judged:
        return None
    problems = _in_order(_problems(judged), dict(zip(map(id, events), times, strict=True)))
    counted = [problem for problem in problems if problem.role is Role.CAUSE] or problems
    problems = _with_consequences(problems)
    explained = [each.judged.meaning.id for each in problems if each.role is Role.CONSEQUENCE]
    counted = [
        each
        for each in counted
        if not (each.judged.meaning.id in EXPLAINED_AWAY and each.judged.meaning.id in explained)
    ] or counted
    causes = [problem for problem in problems if problem.role is Role.CAUSE]
    harmless = [problem for problem in problems if problem.role is Role.HARMLESS]
    cause = next(iter([*causes, *harmless, *problems]))
    worst = max(counted, key=_how_bad)
    return Incident(
        problems=tuple(problems),
        cause=cause,
        is_cause_known=bool(causes or harmless),
        names=merge_names([*(problem.names for problem in [cause, *problems])]),
        is_transactional=is_transactional,
        idempotent=_worst(problem.judged.idempotent for problem in counted),
        transactional=_worst(
            problem.judged.transactional for problem in [*counted, *_verdicts(problems)]
        ),
        records=worst.judged.records,
        condition=worst.judged.condition,
        action=_action(cause, problems),
    )


def _how_bad(problem: Problem) -> tuple[int, bool]:
    """Order problems by what may have become of records; a client says more of its own than a broker."""
    judged = problem.judged
    return WORST.index(judged.records), judged.event.client is not Client.BROKER


def _action(cause: Problem, problems: Iterable[Problem]) -> str:
    """Return what to do: that of the error that finished the producer, if the first one had not."""
    judged, own = cause.judged, cause.judged.meaning.action
    if judged.framework is CONNECT_FAILED:
        own = f"{own} Then restart the task by Connect's API."
    if Ability.FATAL in (judged.transactional, judged.idempotent):
        is_said_alone = Ability.FATAL not in (
            *judged.meaning.java,
            *(judged.meaning.librdkafka or ()),
        )
        return f"{CLOSE} {own}" if is_said_alone else own
    fatal = [each.judged.meaning for each in problems if each.judged.transactional is Ability.FATAL]
    last = fatal[-1].action if fatal else own
    return f"{last} {own}" if judged.event.client is Client.BROKER and last != own else last


def _is_transactional(events: Iterable[ApplicationError]) -> bool | None:
    kinds = {event.is_transactional for event in events if event.is_transactional is not None}
    return True if True in kinds else (False if False in kinds else None)


def _verdicts(problems: Iterable[Problem]) -> list[Problem]:
    """Return the consequences in which a client says what it can do: an echo may be fatal."""
    said = (Outcome.ABORTABLE, Outcome.FATAL)
    return [problem for problem in problems if problem.judged.event.outcome in said]


def _worst(abilities: Iterable[Ability | None]) -> Ability | None:
    return max(abilities, key=ABILITIES.index, default=None)


def _problems(judged: Sequence[Judged]) -> list[Problem]:
    """Return one problem for each meaning, in the order of their first lines."""
    by_meaning: dict[str, list[Judged]] = {}
    for result in judged:
        by_meaning.setdefault(result.meaning.id, []).append(result)
    return [_problem(results) for results in by_meaning.values()]


def _problem(results: Sequence[Judged]) -> Problem:
    best = max(
        results,
        key=lambda each: (
            each.event.client is not Client.BROKER,
            OUTCOMES.index(each.event.outcome),
        ),
    )
    ends = [(result.event.at, result.event.last_at or result.event.at) for result in results]
    times = [at for pair in ends for at in pair if at is not None]
    return Problem(
        judged=best,
        role=best.role,
        count=sum(result.event.count for result in results),
        first_at=min(times, default=None),
        last_at=max(times, default=None),
        first=results[0].event,
        lines=tuple(result.event.line for result in results[:5]),
        names=merge_names([best.event.names, *(result.event.names for result in results)]),
    )


def _in_order(problems: Sequence[Problem], times: Mapping[int, datetime | None]) -> list[Problem]:
    """Return problems by the times of their lines; of one second, or without a time, consequences last."""

    def order(problem: Problem) -> tuple[int, bool]:
        at = times.get(id(problem.first))
        return (0 if at is None else int(at.timestamp())), problem.role is Role.CONSEQUENCE

    return sorted(problems, key=order)


def _with_consequences(problems: Sequence[Problem]) -> list[Problem]:
    """Return problems with those as consequences that an earlier one explains."""
    before: list[str] = []
    ranked: list[Problem] = []
    for problem in problems:
        explained = FOLLOWS.get(problem.judged.meaning.id, frozenset()) & set(before)
        is_echo = problem.judged.meaning.id == "transaction_abortable" and before
        if problem.role is Role.CAUSE and (explained or is_echo):
            problem = replace(problem, role=Role.CONSEQUENCE)  # noqa: PLW2901 - the same one
        ranked.append(problem)
        before.append(problem.judged.meaning.id)
    return ranked


NAMES: Final = (
    "application", "thread", "client_id", "handle", "transactional_id", "group", "producer_id", "broker",
)  # fmt: skip


def merge_names(all_names: Sequence[Names]) -> Names:
    """Return the first value of each name; topic and partition are of one line."""
    values: dict[str, Any] = {}
    for names in all_names:
        if "topic" not in values and names.topic is not None:
            values |= {"topic": names.topic, "partition": names.partition}
        for name in NAMES:
            if values.get(name) is None:
                values[name] = getattr(names, name)
    return Names(**values)
