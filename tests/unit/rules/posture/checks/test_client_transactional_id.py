"""One producer id stops and another begins: what is proven, and what only looks like it."""

from __future__ import annotations

import pytest

from rules.facts.batch_samples import BatchSamples
from rules.facts.identity import TopicPartition
from rules.posture.checks.client_transactional_id import judge
from rules.posture.line import Unseen
from rules.verdict import Severity, Verdict
from tests.factories import at, partitions, topic_id
from tests.unit.rules.posture.client_rounds import (
    beginning,
    named,
    rounds,
    sample,
    sampled,
    unknown,
    view_after,
    writer,
)

# Producer 7 wrote in each of four rounds, and producer 8 begins and goes on without it.
BEFORE = tuple(sampled(sample(writer(7, offset))) for offset in (0, 10, 20, 30))
AFTER = tuple(sampled(sample(writer(8, offset))) for offset in (50, 60, 70, 80))
LATER = tuple(sampled(sample(writer(8, offset))) for offset in (90, 100))
BEGINS = sampled(sample(beginning(8, 40)))
RESTART = (*BEFORE, BEGINS, *AFTER)


NINE = sampled(sample(writer(9, 35)))


def seven(offset: int) -> BatchSamples:
    return sampled(sample(writer(7, offset)))


def after(*more: BatchSamples) -> tuple[BatchSamples, ...]:
    return (*BEFORE, BEGINS, *more)


def test_a_restart_is_named_with_its_partition_and_times() -> None:
    [line] = named(judge, view_after(rounds(*RESTART)))
    assert (line.name, line.verdict) == ("producer 8 on orders-0", Verdict.BREACH)
    assert line.severity is Severity.INFO
    assert line.evidence == {
        "topic": "orders",
        "partition": 0,
        "former_producer_id": 7,
        "former_last_offset": 30,
        "former_last_record_time": "2025-06-02T12:00:30.000+00:00",
        "former_last_observed_at": "2025-06-02T12:00:30.000+00:00",
        "producer_id": 8,
        "first_offset": 40,
        "first_record_time": "2025-06-02T12:00:40.000+00:00",
        "first_observed_at": "2025-06-02T12:00:40.000+00:00",
    }
    assert "Whether both are one application cannot be seen" in line.consequence


@pytest.mark.parametrize(
    "samples",
    [
        pytest.param(BEFORE + AFTER + LATER, id="the-beginning-was-not-sampled"),
        pytest.param(after(*AFTER[:2]), id="the-former-may-only-pause"),
        pytest.param(
            after(*[BatchSamples.unread()] * 9), id="nothing-was-sampled-since-however-long-it-is"
        ),
        pytest.param(
            (
                *(each for offset in (0, 10, 20, 30) for each in (seven(offset), *[NINE] * 3)),
                BEGINS,
                *[NINE] * 22,
            ),
            id="the-former-wrote-now-and-then",
        ),
        pytest.param(
            after(*AFTER, sampled(sample(writer(8, 90), writer(7, 91)))), id="the-former-is-back"
        ),
        pytest.param(
            after(*AFTER[:-1], sampled(sample(writer(8, 80)), sample(writer(7, 9), row=2))),
            id="the-former-writes-to-another-partition",
        ),
        pytest.param(
            (
                sampled(sample(writer(7, 0)), sample(writer(8, 3), row=1)),
                *RESTART[1:],
            ),
            id="the-other-wrote-elsewhere-before",
        ),
        pytest.param((*BEFORE[:2], BEGINS, *AFTER), id="the-former-was-seen-twice-only"),
        pytest.param(
            (
                *BEFORE,
                sampled(sample(beginning(8, 40, first_record_at=at(200)))),
                *AFTER,
            ),
            id="another-application-begins-minutes-later",
        ),
        pytest.param(
            tuple(
                sampled(
                    sample(writer(7, 10 * number, is_transactional=True))
                    if number < 4
                    else sample(beginning(8, 10 * number, is_transactional=True))
                )
                for number in range(9)
            ),
            id="a-transactional-id-names-both",
        ),
        pytest.param(
            (*BEFORE, sampled(sample(beginning(8, 40, first_epoch=1))), *AFTER),
            id="an-epoch-that-was-raised-is-no-beginning",
        ),
        pytest.param(
            (*BEFORE[:3], sampled(sample(beginning(8, 25), writer(7, 30))), *AFTER, *LATER),
            id="it-began-before-the-former-ended",
        ),
    ],
)
def test_what_only_looks_like_a_restart_is_not_named(samples: tuple[BatchSamples, ...]) -> None:
    assert named(judge, view_after(rounds(*samples))) == []


def test_one_that_writes_seldom_is_waited_for_longer() -> None:
    """It wrote every minute: half a minute of silence is nothing."""
    idle = sampled(sample())
    seldom = [sampled(sample(writer(7, 60 * number))) for number in range(3)]
    spread = [each for one in seldom for each in (one, *[BatchSamples.unread()] * 5)]
    begins = sampled(sample(beginning(8, 200, first_record_at=at(180))))
    samples = (*spread, begins, *AFTER, idle)
    assert named(judge, view_after(rounds(*samples))) == []


def test_instances_that_restart_one_after_the_other_are_paired() -> None:
    both = [sampled(sample(writer(7, 10 * n), writer(9, 10 * n + 1))) for n in range(4)]
    first = [sampled(sample(beginning(8, 40), writer(9, 41)))]
    second = [sampled(sample(writer(8, 50), beginning(10, 51)))]
    rest = [sampled(sample(writer(8, 10 * n), writer(10, 10 * n + 1))) for n in range(6, 11)]
    lines = named(judge, view_after(rounds(*both, *first, *second, *rest)))
    pairs = [(line.evidence["former_producer_id"], line.evidence["producer_id"]) for line in lines]
    assert pairs == [(7, 8), (9, 10)]


def test_instances_that_restart_at_once_are_paired_one_by_one() -> None:
    both = [sampled(sample(writer(7, 10 * n), writer(9, 10 * n + 1))) for n in range(4)]
    begins = [sampled(sample(beginning(8, 40), beginning(10, 41)))]
    rest = [sampled(sample(writer(8, 10 * n), writer(10, 10 * n + 1))) for n in range(5, 10)]
    lines = named(judge, view_after(rounds(*both, *begins, *rest)))
    assert [line.evidence["producer_id"] for line in lines] == [8, 10]


def test_a_recreated_topic_begins_anew() -> None:
    view = view_after(rounds(*BEFORE))
    assert TopicPartition("orders", 0) in view.memory.clients.writers.partitions
    anew = partitions(topic_ids=(topic_id("orders", creation=1),))
    after_it = rounds(*(*[BatchSamples.unread()] * 4, BEGINS, *AFTER), partitions=anew)[4:]
    assert named(judge, view_after(after_it, view.memory)) == []


def test_without_read_it_is_unknown_and_the_permission_is_named() -> None:
    denied = sampled(denied_topics=("__consumer_offsets", "orders", "payments"))
    [line] = unknown(judge, view_after(rounds(denied)))
    assert line.reason is Unseen.NOT_AUTHORIZED
    assert line.evidence == {"needs": "READ on Topic orders and 1 more", "topics": 2}
