"""How episodes begin, go on and end, and what is kept of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from rules.facts.broker_log import EpochRejected, Origin
from rules.facts.column import Column
from rules.facts.episodes import ChangeKind, Episode, SequenceMemory, merge_sequences
from rules.facts.identity import BrokerId
from rules.facts.last_observation import microseconds
from rules.facts.memory import Memory, merge_stored, shift_times
from rules.facts.rejections import TIMES_KEPT
from rules.question import BatchesQuestion
from rules.sequence.gathering import KEPT_FIRST, KEPT_LAST
from rules.sequence.requests import questions_of
from rules.sequence.retention import MAX_ENDED, MAX_OPEN, MAX_QUERYING
from rules.view import View
from tests.factories import at, partitions, topic_id
from tests.unit.rules.sequence.case_observations import ALONE, OLD_BATCH, line_of_2, of_2
from tests.unit.rules.sequence.cases import CASES
from tests.unit.rules.sequence.lines import rejected
from tests.unit.rules.sequence.stage import (
    NAME,
    PATIENCE,
    Observation,
    batch,
    found,
    play,
    remembered,
    watched,
)

MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 86_400.0
HARMLESS: Final = CASES["same-leader-epoch"].observations


def after(*observations: Observation) -> SequenceMemory:
    return play(observations)[-1].memory.sequences


def test_a_batch_of_an_older_producer_epoch_opens_nothing() -> None:
    """After a clean failover one such line comes late, and means nothing."""
    late = EpochRejected(
        origin=Origin(source="broker-1", broker_id=BrokerId(1), at=at(10)),
        producer_id=7,
        topic="orders",
        partition=0,
        offset=100,
        producer_epoch=0,
        current_epoch=1,
    )
    assert after(Observation(second=0), Observation(second=11, lines=(late,))).episodes == ()


def test_the_same_line_by_another_way_and_later_is_the_same_line() -> None:
    line = rejected(6, 2)
    by_http = replace(line, origin=replace(line.origin, source="shipper"))
    [episode] = after(
        Observation(second=0),
        Observation(second=11, lines=(line,)),
        Observation(second=20, lines=(by_http,)),
    ).episodes
    assert (episode.rejection_count, len(episode.rejections)) == (1, 1)
    assert episode.last_seen_us == microseconds(at(11))


def test_a_line_that_comes_by_another_way_after_the_end_opens_no_episode() -> None:
    late = Observation(second=20 * MINUTE, lines=(rejected(6, 2),))
    memory = after(*HARMLESS, Observation(second=10 * MINUTE), late)
    assert memory.open == {}
    assert len(memory.ended) == 1


def test_another_rejection_after_the_end_is_another_episode() -> None:
    late = Observation(second=20 * MINUTE, lines=(rejected(9, 5, second=1190, offset=130),))
    memory = after(*HARMLESS, Observation(second=10 * MINUTE), late)
    [first], [second] = memory.ended, memory.open.values()
    assert first.id != second.id
    assert first.key == second.key


@pytest.mark.parametrize(
    ("name", "seconds", "is_over"),
    [
        ("same-leader-epoch", 4 * MINUTE, False),
        ("same-leader-epoch", 6 * MINUTE, True),
        ("textbook", 6 * MINUTE, False),
        ("textbook", 2 * HOUR, True),
    ],
)
def test_an_episode_ends_when_nothing_more_comes(
    name: str, seconds: float, *, is_over: bool
) -> None:
    last = CASES[name].observations[-1]
    quiet = replace(last, second=seconds, lines=(), found=(), ends=())
    [episode] = after(*CASES[name].observations, quiet).episodes
    assert (episode.ended_us is not None) == is_over
    assert episode.verdict.is_confirmed


def test_what_cannot_be_found_out_ends_too() -> None:
    unseen = {"partitions": partitions({"other": 1})}
    observations = (
        Observation(second=0, more=unseen),
        Observation(second=11, lines=(rejected(4, 2),), more=unseen),
    )
    memory = after(*observations, Observation(second=10 * MINUTE, more=unseen))
    assert [str(episode.verdict.class_) for episode in memory.ended] == ["undetermined"]


def test_what_ended_is_kept_for_a_day() -> None:
    observations = (*HARMLESS, Observation(second=10 * MINUTE))
    assert len(after(*observations, Observation(second=23 * HOUR)).ended) == 1
    assert after(*observations, Observation(second=25 * HOUR)).ended == ()


def test_a_storm_keeps_the_first_and_the_latest_and_counts_all() -> None:
    lines = [rejected(3 * n + 6, 3 * n + 2, second=n / 100, offset=100 + n) for n in range(1000)]
    [episode] = after(Observation(second=0), Observation(second=11, lines=lines)).episodes
    assert episode.rejection_count == 1000
    assert len(episode.rejections) == KEPT_FIRST + KEPT_LAST
    assert episode.rejections[0].offset == 100
    assert episode.rejections[-1].offset == 1099


def test_the_same_batch_rejected_for_ever_stays_small() -> None:
    rounds = [
        Observation(
            second=second, lines=[rejected(27, 2, second=second - 1 + n / 10) for n in range(5)]
        )
        for second in range(11, 41)
    ]
    [episode] = after(Observation(second=0), *rounds).episodes
    assert episode.rejection_count == 150
    [rejection] = episode.rejections
    assert (rejection.count, len(rejection.times_us)) == (150, TIMES_KEPT)


def test_the_newest_of_many_ask_and_the_others_wait() -> None:
    lines = [rejected(6, 2, producer_id=number) for number in range(MAX_QUERYING + 5)]
    views = play([Observation(second=0), Observation(second=11, lines=lines)])
    episodes = views[-1].memory.sequences.episodes
    assert sum(episode.is_querying for episode in episodes) == MAX_QUERYING
    waiting = [episode for episode in episodes if episode.is_waiting]
    assert [(episode.queries, episode.is_reported) for episode in waiting] == [(0, False)] * 5
    question = next(
        candidate for candidate in questions_of(views[-1]) if isinstance(candidate, BatchesQuestion)
    )
    assert len(question.requests) == MAX_QUERYING


def test_many_that_ended_are_bounded() -> None:
    harmless = replace(watched(*HARMLESS), producer_id=9, ended_us=microseconds(at(60)))
    ended = tuple(replace(harmless, id=str(number)) for number in range(MAX_ENDED))

    def crowded(memory: Memory) -> Memory:
        return replace(memory, sequences=replace(memory.sequences, ended=ended))

    observations = [*HARMLESS, Observation(second=10 * MINUTE)]
    last = play(observations, between=crowded)[-1].memory.sequences
    assert len(last.ended) == MAX_ENDED
    assert last.ended[0].id == "1"


def test_a_loss_is_kept_where_harmless_episodes_have_to_go() -> None:
    harmless = replace(watched(*HARMLESS), ended_us=microseconds(at(4000)))

    def crowded(memory: Memory) -> Memory:
        lost = [episode for episode in memory.sequences.ended if episode.producer_id == 7]
        many = [replace(harmless, id=str(n), producer_id=9 + n) for n in range(MAX_ENDED)]
        return replace(memory, sequences=replace(memory.sequences, ended=(*lost, *many)))

    observations = [*CASES["textbook"].observations, of_2(4000), of_2(4001), of_2(4002)]
    ended = play(observations, between=crowded)[-1].memory.sequences.ended
    assert len(ended) == MAX_ENDED
    assert (ended[0].producer_id, ended[0].verdict.class_) == (7, "loss")


def test_of_too_many_open_ones_those_that_are_proven_go_first() -> None:
    """A confirmed loss is observed for an hour, and an unexplained gap needs the place more."""
    lines = [rejected(600, 2, producer_id=100 + n, second=20) for n in range(MAX_OPEN)]
    memory = after(*HARMLESS, Observation(second=21, lines=lines))
    assert [episode.producer_id for episode in memory.ended] == [7]
    assert (len(memory.open), memory.unreported) == (MAX_OPEN, 0)


def test_what_ends_before_it_is_explained_is_undetermined() -> None:
    lines = [rejected(4, 2, producer_id=100 + n, second=20) for n in range(MAX_OPEN + 1)]
    [first] = after(Observation(second=0), Observation(second=21, lines=lines)).ended
    assert str(first.verdict.class_) == "undetermined"
    assert first.reported is not None


def test_the_log_of_a_topic_that_was_created_again_settles_nothing_of_the_old_one() -> None:
    new_id = topic_id("orders", creation=1)
    again = {"partitions": partitions({"orders": 1}, topic_ids=(new_id,))}
    lines = (rejected(6, 2, topic_id=topic_id("orders")),)
    memory = after(
        Observation(second=0),
        Observation(second=11, lines=lines),
        Observation(second=12, found=[found(batch(97, 0, 3))], more=again),
        Observation(second=13, lines=(rejected(4, 2, topic_id=new_id, second=12.5),), more=again),
    )
    [old], [new] = memory.ended, memory.open.values()
    assert (old.verdict.reason, old.topic_id) == ("topic_recreated", topic_id("orders"))
    assert new.topic_id == new_id


def test_what_was_proven_in_one_leader_epoch_is_proven_again_in_another() -> None:
    """The same batch at the same offset, rejected by the same broker that leads anew."""
    again = rejected(6, 2, second=40)
    observations = (
        *HARMLESS,
        Observation(second=30, epoch=7, ends=((0, 5, 100),)),
        Observation(second=41, epoch=7, lines=(again,)),
    )
    [episode] = after(*observations).episodes
    assert [rejection.proof for rejection in episode.rejections] == [None]
    assert episode.is_querying


def test_a_producer_that_was_not_queried_is_not_forgotten() -> None:
    """A leader describes only the producers that were requested."""
    lines = (rejected(6, 2), rejected(7, 2, producer_id=8))
    healed = found(batch(97, 0, 3), batch(100, 3, 3), batch(103, 6, 3))
    observations = (
        Observation(second=0),
        Observation(second=11, lines=lines),
        Observation(second=12, found=[healed], states=remembered(2)),
        Observation(second=13, states={}),
    )
    by_id = {episode.producer_id: episode for episode in after(*observations).episodes}
    assert by_id[7].last_state is not None
    assert by_id[7].last_state.state is not None, "it queried no more, and got no answer"
    assert by_id[8].last_state is not None
    assert by_id[8].last_state.state is None


def test_a_bad_change_is_kept_for_rejections_that_come_after_it() -> None:
    views = play([ALONE, replace(line_of_2(), lines=())])
    [change] = views[-1].memory.sequences.changes[NAME]
    assert (change.kind, change.leader_epoch, change.epoch_end) == (ChangeKind.LOST, 6, 100)
    assert (change.leader_before, change.leader, change.lost_from, change.lost_to) == (
        1, 2, 100, 124,
    )  # fmt: skip


def test_a_bad_change_that_is_forgotten_breaks_the_watch() -> None:
    def watch(*observations: Observation) -> tuple[int | None, int | None]:
        leaderships = after(*observations).leaderships
        return leaderships.watched_from[0], leaderships.epoch[0]

    changed = (ALONE, replace(line_of_2(), lines=()))
    assert watch(*changed) == (5, 6)
    assert watch(*changed, of_2(30)) == (5, 6)
    assert watch(*changed, of_2(2 * HOUR)) == (6, 6)
    assert after(*changed, of_2(2 * HOUR)).changes == {}


@pytest.mark.parametrize(
    ("is_unclean_allowed", "clean_from"),
    [pytest.param(True, 6, id="allowed"), pytest.param(False, 5, id="forbidden")],
)
def test_a_change_is_clean_for_certain_only_where_others_are_forbidden(
    *, is_unclean_allowed: bool, clean_from: int
) -> None:
    before = Observation(second=0, is_unclean_allowed=is_unclean_allowed)
    changed = replace(before, second=11, leader=2, epoch=6, ends=((0, 5, 100),))
    leaderships = after(before, changed).leaderships
    assert (leaderships.watched_from[0], leaderships.clean_from[0]) == (5, clean_from)


def test_a_leader_that_knows_nothing_of_the_older_epoch_breaks_the_watch() -> None:
    changed = Observation(second=11, leader=2, epoch=6, ends=((0, 5, None),))
    assert after(Observation(second=0), changed).leaderships.watched_from[0] == 6


def test_the_watch_goes_on_while_a_leader_is_silent() -> None:
    silent = Observation(second=11, leader=None, epoch=None)
    leaderships = after(Observation(second=0), silent, Observation(second=20)).leaderships
    assert (leaderships.epoch[0], leaderships.watched_from[0]) == (5, 5)
    assert leaderships.since_us[0] == microseconds(at(0))


def test_a_clock_that_was_set_makes_nobody_wait_longer() -> None:
    step = timedelta(hours=3) // timedelta(microseconds=1)
    observations = CASES["unclean-and-waiting"].observations
    late = of_2(11 + PATIENCE, found=[found(OLD_BATCH)])

    def set_back(memory: Memory) -> Memory:
        return shift_times(shift_times(memory, step), -step)

    [stayed] = play([*observations, late])[-1].memory.sequences.episodes
    [moved] = play([*observations, late], between=set_back)[-1].memory.sequences.episodes
    assert moved == stayed
    view = play(observations)[-1]
    [ahead] = shift_times(view.memory, step).sequences.episodes
    assert ahead.last_seen_us == view.memory.sequences.episodes[0].last_seen_us + step


def test_times_of_the_future_are_pulled_back() -> None:
    """The clock was set back while nobody watched."""
    memory = play(HARMLESS)[-1].memory
    early = Observation(second=-100).snapshot()
    view = View(snapshot=early, memory=memory, before=memory, now=early.taken_at)
    assert view.memory.sequences.episodes[0].last_seen_us > microseconds(early.taken_at)
    [episode] = play([*HARMLESS, Observation(second=-100)])[-1].memory.sequences.episodes
    assert episode.last_seen_us == microseconds(at(-100))


def test_a_memory_that_is_read_late_is_merged() -> None:
    stored = play(CASES["textbook"].observations)[-1].memory
    seen = play([of_2(20, lines=(rejected(9, 8, producer_id=8, broker=2, second=19),))])[-1].memory
    both = merge_stored(stored, seen).sequences
    assert {episode.producer_id for episode in both.episodes} == {7, 8}
    assert both.changes == stored.sequences.changes
    assert both.leaderships.watched_from[0] == 5
    assert merge_sequences(SequenceMemory(), seen.sequences).open == seen.sequences.open


def both_memories(stored: list[Observation], seen: list[Observation]) -> SequenceMemory:
    episode, other = (play(observations)[-1].memory.sequences for observations in (stored, seen))
    return merge_sequences(episode, other)


def test_a_loss_that_is_read_late_is_not_replaced_by_the_same_producers_newer_rejection() -> None:
    stored = [*CASES["textbook"].observations]
    seen = [of_2(20, lines=(rejected(9, 8, broker=2, second=19, offset=120),))]
    [episode] = both_memories(stored, seen).episodes
    assert (str(episode.verdict.class_), episode.verdict.is_confirmed) == ("loss", True)
    assert episode.shown.incoming_sequence == 27
    assert (len(episode.rejections), episode.rejection_count) == (2, 2)
    assert (episode.first_seen_us, episode.last_seen_us) == (
        microseconds(at(11)),
        microseconds(at(20)),
    )


def test_a_line_that_two_processes_read_is_counted_once() -> None:
    stored = [*CASES["textbook"].observations]
    [episode] = both_memories(stored, [replace(stored[1], second=20)]).episodes
    assert (len(episode.rejections), episode.rejection_count) == (1, 1)
    assert episode.rejections[0].before is not None, "what was resolved before is kept"


def test_an_episode_of_an_older_topic_is_over_when_it_is_read_late() -> None:
    lines = (rejected(27, 2, broker=2, topic_id=topic_id("orders")),)
    stored = [ALONE, replace(line_of_2(), lines=lines), of_2(12, found=[found(OLD_BATCH)])]
    new_id = topic_id("orders", creation=1)
    again = {"partitions": partitions({"orders": 1}, topic_ids=(new_id,))}
    line = rejected(4, 2, topic_id=new_id, second=19)
    memory = both_memories(stored, [Observation(second=20, lines=(line,), more=again)])
    [old], [new] = memory.ended, memory.open.values()
    assert (str(old.verdict.class_), old.ended_us) == ("loss", new.first_seen_us)
    assert new.topic_id == new_id


def test_the_watch_of_a_partition_that_only_one_of_two_memories_knows() -> None:
    stored = play([Observation(second=0)])[-1].memory.sequences.leaderships
    other = play(
        [Observation(second=9, more={"partitions": partitions({"audit": 1, "orders": 1})})]
    )
    seen = replace(other[-1].memory.sequences.leaderships, epoch=Column.of([None, None]))
    both = merge_sequences(
        SequenceMemory(leaderships=stored), SequenceMemory(leaderships=seen)
    ).leaderships
    assert both.epoch.to_list() == [None, 5]


def test_an_episode_shows_the_rejection_that_decides() -> None:
    later = rejected(12, 8, broker=2, second=30, offset=120)
    went_on = batch(100, 0, 9, leader_epoch=6, epoch=1)
    episode: Episode = watched(
        *CASES["textbook"].observations,
        of_2(31, lines=(later,)),
        of_2(32, found=[found(OLD_BATCH, went_on)]),
    )
    assert episode.shown.incoming_sequence == 27
    assert episode.rejection_count == 2
