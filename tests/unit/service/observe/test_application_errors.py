"""Application log lines: judged and stored when they come, bounded, counted once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from rules.errors import StoreError
from rules.exceptions.problems import Problem
from service.observe.application_errors import ApplicationErrors, Limited, LineCounts
from service.observe.line_rate import LineRate, RateLimits
from service.observe.log_submissions import Delivery, Stream
from tests.application_lines import ERRORS, FENCED, fatal
from tests.factories import NOON
from tests.fakes import MemoryProblems
from tests.unit.service.api.given import FakeLog

AWAY = StoreError("database x cannot be reached: rejected", retryable=True)
ORDINARY = "2025-06-02 12:00:00,000 INFO started"
NOT_KNOWN = "2025-06-02 12:00:00,000 ERROR [Producer clientId=p-1] Something else went wrong"


class Warnings(FakeLog):
    def warning(self, event: str, /, *_args: object, **fields: object) -> None:
        self.events.append((event, dict(fields)))


class World:
    """Application errors on a store in memory."""

    def __init__(
        self, store: MemoryProblems | None = None, *, max_problems: int = 1000, lines: int = 10**6
    ) -> None:
        self.now = NOON
        self.store = store or MemoryProblems()
        self.log = Warnings()
        self.errors = ApplicationErrors(
            self.store,
            LineRate(RateLimits(of_all=lines, of_sender=lines), lambda: 0.0),
            max_problems=max_problems,
            utc_now=lambda: self.now,
            stop=asyncio.Event(),
            log=self.log,  # type: ignore[arg-type]
        )

    def take(
        self, *lines: str, application: str = "payments", key: str | None = None
    ) -> LineCounts | Limited:
        made = Delivery(
            lines={Stream(application): [line.encode() for line in lines]},
            zone=UTC,
            digest=repr((lines, application)),
            key=key,
        )
        return self.errors.accept(made, "sender")

    def counts(self) -> dict[str | None, int]:
        return {each.names.transactional_id: each.count for each in self.errors.known.problems}


def test_lines_errors_and_what_is_not_understood_are_counted() -> None:
    world = World()
    assert world.take(ORDINARY, fatal(), NOT_KNOWN) == LineCounts(lines=3, errors=1, unparsed=1)
    (problem,) = world.errors.known.problems
    assert (problem.error, problem.names.application) == ("PRODUCER_FENCED", "payments")
    assert (problem.first_seen, problem.first_at) == (NOON, datetime(2025, 6, 2, 12, tzinfo=UTC))


def test_a_restart_loses_nothing_and_counting_goes_on() -> None:
    world = World()
    world.take(fatal())
    again = World(world.store)
    before = again.errors.known
    again.errors.refresh()
    assert (before.is_loaded, again.errors.known.is_loaded) == (False, True)
    again.take(fatal(at="2025-06-02 12:00:01,000"))
    assert again.counts() == {"pay-1": 2}


def test_counting_goes_on_before_anything_was_loaded() -> None:
    world = World()
    world.take(fatal())
    again = World(world.store)
    again.take(fatal(at="2025-06-02 12:00:01,000"))
    assert again.counts() == {"pay-1": 2}


def test_a_request_that_is_sent_again_is_counted_once_also_after_a_restart() -> None:
    world = World()
    assert world.take(fatal()) == world.take(fatal())
    assert world.counts() == {"pay-1": 1}
    again = World(world.store)
    again.take(fatal())
    assert again.counts() == {}, "nothing changed, and nothing is loaded yet"
    again.errors.refresh()
    assert again.counts() == {"pay-1": 1}


def test_lines_without_a_time_are_told_apart_only_by_a_key() -> None:
    world = World()
    line = f"[Producer clientId=p-1, transactionalId=pay-1] Transiting to fatal error state due to {FENCED}"
    for key in (None, None, "a", "a", "b"):
        world.take(line, key=key)
    assert world.counts() == {"pay-1": 4}


def test_a_storm_that_took_too_long_to_be_answered_is_not_read_again() -> None:
    world = World()

    class Slow(MemoryProblems):
        def load(self, since: datetime) -> Sequence[Problem]:
            world.now += timedelta(seconds=11)
            return super().load(since)

    world = World(Slow())
    lines = [f"{ERRORS}ProducerFencedException: without a time"] * 5
    first = world.take(*lines)
    world.store.fails = AWAY
    assert world.take(*lines) == first == LineCounts(lines=5, errors=1, unparsed=0)


def test_more_problems_than_may_be_are_counted_together_and_none_is_lost() -> None:
    world = World(max_problems=3)
    world.take(*(fatal(f"pay-{number}") for number in range(10)))
    world.take(fatal("pay-11"), fatal("pay-1", at="2025-06-02 12:00:02,000"))
    assert world.counts() == {"pay-0": 1, "pay-1": 2, "pay-2": 1, None: 8}
    (many,) = [each for each in world.errors.known.problems if each.is_of_many]
    assert many.producers == ()


def test_what_was_not_seen_for_a_day_is_forgotten_and_begins_anew() -> None:
    world = World()
    world.take(fatal())
    world.now = NOON + timedelta(days=1, seconds=1)
    assert world.counts() == {}
    world.take(fatal(at="2025-06-03 12:00:01,000"))
    assert world.counts() == {"pay-1": 1}


def test_what_could_not_be_stored_is_not_shown_and_counts_when_it_comes_again() -> None:
    world = World()
    world.store.fails = AWAY
    with pytest.raises(StoreError):
        world.take(fatal())
    assert world.counts() == {}
    assert world.take(ORDINARY) == LineCounts(lines=1, errors=0, unparsed=0), "needs no database"
    world.store.fails = None
    world.take(fatal())
    assert world.counts() == {"pay-1": 1}


def test_while_the_database_is_away_what_is_in_memory_is_shown_as_perhaps_not_all() -> None:
    world = World()
    world.take(fatal())
    world.errors.refresh()
    world.store.fails = AWAY
    for _ in range(5):
        world.errors.refresh()
    assert world.counts() == {"pay-1": 1}
    assert not world.errors.known.is_loaded
    assert world.log.events == [("application_errors_not_read", {"error": str(AWAY)})], "once"


def test_what_is_over_the_limit_is_not_read_and_counted() -> None:
    world = World(lines=2)
    world.take(fatal(), ORDINARY)
    outcome = world.take(fatal("pay-2"), ORDINARY, ORDINARY)
    assert isinstance(outcome, Limited)
    assert outcome.wait_seconds > 0
    assert world.errors.known.rejected_lines == 3
    assert world.counts() == {"pay-1": 1}


def test_secrets_are_stored_nowhere() -> None:
    world = World()
    world.take(
        f"2025-06-02 12:00:00,000 ERROR password=hunter2 {fatal()}",
        "Caused by: " + FENCED + " token=hunter2",
    )
    assert world.errors.known.problems
    assert "hunter2" not in repr((world.store.rows, world.errors.known))
