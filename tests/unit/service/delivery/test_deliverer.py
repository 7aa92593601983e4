"""The loop that sends: what it stores, how much at once, and what it does when something is away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from service.alerting.alerts.outbox_row import DeadReason, RowState
from service.alerting.sending.answers import Outcome
from service.runtime.events import Event
from service.storage.database.rejections import RejectedRow, RowKind
from tests.factories import at
from tests.unit.service.alerting.notifications.given import alertmanager, webhook
from tests.unit.service.delivery.given import FaultContext, attempt, claimed

Story = Callable[[FaultContext], Awaitable[None]]


def play(story: Story, **given: object) -> None:
    async def run() -> None:
        async with FaultContext(**given) as context:  # type: ignore[arg-type]
            await story(context)

    asyncio.run(run())


def test_what_waits_is_sent_and_stored_as_delivered() -> None:
    async def story(context: FaultContext) -> None:
        context.sender.free.clear()
        context.outbox.add(claimed(1), claimed(2), claimed(3))
        await context.until(lambda: len(context.sender.sent) == 2)
        context.sender.free.set()
        await context.until(lambda: len(context.outbox.done) == 3)
        assert sorted(context.sender.sent) == ["id-1", "id-2", "id-3"]
        assert {one.state for one in context.outbox.done} == {RowState.DELIVERED}
        assert context.sender.most_at_once == 2
        assert len(context.reported.of(Event.DELIVERED)) == 3

    play(story)


def test_a_failed_one_is_tried_again_with_the_same_id_when_its_pause_is_over() -> None:
    async def story(context: FaultContext) -> None:
        answers = [attempt(500), attempt(None), attempt()]
        context.sender.answer = lambda _id: answers.pop(0)
        context.outbox.add(claimed())
        await context.until(lambda: len(context.outbox.done) == 1)
        assert context.outbox.done[0].next_attempt_at == at(2.5)  # half of 5 s
        await context.until(lambda: len(context.outbox.done) == 3, step=0.5)
        assert context.sender.sent == ["id-1"] * 3
        assert [one.failure for one in context.outbox.done] == ["server_error", "timeout", None]
        assert [told["attempt"] for told in context.reported.of(Event.DELIVERY_FAILED)] == [1, 2]

    play(story)


def test_answers_wait_for_the_database_and_nothing_is_sent_twice() -> None:
    async def story(context: FaultContext) -> None:
        context.sender.free.clear()
        context.outbox.add(claimed(1), claimed(2))
        await context.until(lambda: len(context.sender.sent) == 2)
        context.outbox.is_away = True
        context.sender.free.set()
        await context.until(lambda: not context.stats.is_up)
        context.clock.seconds = 500  # beyond every lease
        context.outbox.is_away = False
        await context.until(lambda: context.stats.is_up)
        assert len(context.outbox.done) == 2
        assert len(context.sender.sent) == 2
        assert (
            len(context.reported.of(Event.OUTBOX_UNAVAILABLE))
            == len(context.reported.of(Event.OUTBOX_AVAILABLE))
            == 1
        )

    play(story)


def test_an_attempt_that_the_database_rejects_is_counted_and_logged() -> None:
    async def story(context: FaultContext) -> None:
        row = RejectedRow(kind=RowKind.ATTEMPT, name="1", why="no such number")
        context.outbox.rejected = [row]
        context.outbox.add(claimed(1))
        await context.until(lambda: len(context.outbox.done) == 1)
        await context.until(lambda: bool(context.reported.of(Event.ROW_REJECTED)))
        assert context.stats.reported(at(0)).rejected_rows == 1

    play(story)


def test_a_receiver_that_is_down_is_tried_by_one_and_then_all_at_once() -> None:
    async def story(context: FaultContext) -> None:
        context.sender.answer = lambda _id: attempt(503)
        context.outbox.add(*(claimed(row) for row in range(6)))
        await context.until(lambda: len(context.outbox.done) >= 6, step=0.1)
        context.sender.most_at_once = 0
        before = len(context.outbox.done)
        await context.until(lambda: len(context.outbox.done) >= before + 6, step=1)
        assert context.sender.most_at_once == 1
        context.sender.answer = lambda _id: attempt()
        await context.until(lambda: "hasten team" in context.outbox.queries, step=1)
        await context.until(lambda: not context.outbox.waiting)

    play(story)


def test_what_a_receiver_asks_for_goes_for_all_that_is_sent_to_it() -> None:
    async def story(context: FaultContext) -> None:
        context.sender.answer = lambda _id: attempt(429, not_before=at(60))
        context.outbox.add(claimed(1))
        await context.until(lambda: len(context.outbox.done) == 1)
        context.sender.answer = lambda _id: attempt()
        context.outbox.add(claimed(2), claimed(3, receiver="other"))
        await context.until(lambda: len(context.outbox.done) == 2)
        assert context.sender.sent == ["id-1", "id-3"]
        assert 2 in context.outbox.waiting
        context.clock.seconds = 60
        await context.until(lambda: not context.outbox.waiting)

    play(story, receivers=[(webhook(), 2), (webhook(name="other"), 2)])


def test_more_is_fetched_for_a_quick_receiver_and_given_back_when_it_is_down() -> None:
    async def story(context: FaultContext) -> None:
        context.outbox.add(claimed(0))
        await context.until(lambda: len(context.outbox.done) == 1)
        context.sender.free.clear()
        context.outbox.add(*(claimed(row) for row in range(1, 11)))
        await context.until(lambda: len(context.deliverer.under_way) == 10)
        await context.until(lambda: len(context.sender.sent) == 3)
        context.sender.answer = lambda _id: attempt(503)
        context.sender.free.set()
        await context.until(lambda: any("release" in asked for asked in context.outbox.queries))
        assert context.sender.most_at_once == 2

    play(story)


def test_what_has_waited_for_its_turn_too_long_is_given_back() -> None:
    async def story(context: FaultContext) -> None:
        context.outbox.add(claimed(0))
        await context.until(lambda: len(context.outbox.done) == 1)
        context.sender.free.clear()
        context.outbox.add(claimed(1), claimed(2), claimed(3))
        await context.until(lambda: len(context.deliverer.under_way) == 3)
        await context.until(lambda: len(context.sender.sent) == 3)  # two of them in their turn
        context.clock.seconds += 13  # an attempt more would outlast its lease
        context.sender.free.set()
        await context.until(lambda: "release [3]" in context.outbox.queries)
        await context.until(lambda: len(context.outbox.done) == 4)
        assert sorted(context.sender.sent) == ["id-0", "id-1", "id-2", "id-3"]

    play(story)


def test_a_receiver_that_is_gone_gets_nothing_more() -> None:
    async def story(context: FaultContext) -> None:
        context.sender.answer = lambda _id: attempt(410)
        context.outbox.add(claimed())
        await context.until(lambda: "give up team" in context.outbox.queries)
        assert context.outbox.done[0].dead_reason is DeadReason.GONE
        assert context.reported.of(Event.RECEIVER_GONE)[0]["given_up"] == 3
        told = context.stats.reported(at(0)).receivers["team"]
        assert told.outcomes == {"dead": 4}

    play(story)


def test_a_body_that_does_not_fit_its_receiver_is_given_up() -> None:
    async def story(context: FaultContext) -> None:
        context.outbox.add(claimed(receiver="am", body=b"x"))
        await context.until(lambda: len(context.outbox.done) == 1)
        assert context.outbox.done[0].dead_reason is DeadReason.UNSENDABLE
        assert context.failed == ["notification"]
        assert context.sender.sent == []

    play(story, receivers=[(alertmanager(), 1)])


@pytest.mark.parametrize("step", [-3600, 86_400 * 3])
def test_a_clock_that_is_set_makes_nothing_late_or_early(step: float) -> None:
    async def story(context: FaultContext) -> None:
        context.sender.answer = lambda _id: attempt(500)
        context.outbox.add(claimed())
        await context.until(lambda: len(context.outbox.done) == 1)
        context.clock.set_by = timedelta(seconds=step)
        await context.until(lambda: f"shift {step:g}" in context.outbox.queries)
        assert context.sender.sent == ["id-1"]
        context.clock.seconds = 3
        await context.until(lambda: len(context.sender.sent) == 2)

    play(story)


def test_the_end_waits_for_what_is_under_way_and_begins_nothing() -> None:
    async def story(context: FaultContext) -> None:
        context.sender.free.clear()
        context.outbox.add(claimed(1))
        await context.until(lambda: len(context.sender.sent) == 1)
        context.stop.set()
        context.outbox.add(claimed(2))
        assert set(context.deliverer.under_way) == {1}
        ending = asyncio.create_task(context.ended())
        context.sender.free.set()
        await ending
        assert [one.id for one in context.outbox.done] == [1]
        assert context.sender.sent == ["id-1"]

    play(story)


def test_the_end_does_not_wait_for_ever() -> None:
    async def story(context: FaultContext) -> None:
        context.sender.free.clear()
        context.outbox.add(claimed(1))
        await context.until(lambda: len(context.sender.sent) == 1)
        await context.ended()
        assert context.outbox.done == []
        assert 1 in context.outbox.waiting, "its lease runs out, and the next process sends it"

    play(story, grace=0.01)


def test_what_is_claimed_while_it_is_woken_from_a_thread_is_sent() -> None:
    async def story(context: FaultContext) -> None:
        context.outbox.add(claimed(1))
        await asyncio.to_thread(context.deliverer.wake)
        await context.until(lambda: len(context.outbox.done) == 1)
        assert context.outbox.done[0].outcome == Outcome.DELIVERED

    play(story)
