"""Laws of episodes, held against a partition whose truth is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rules.facts.broker_log import SequenceRefused
from rules.facts.episodes import Episode
from rules.facts.memory import Memory, advance
from rules.facts.sequence_verdicts import SequenceClass
from rules.loss.remembered import remember_losses
from rules.question import BatchesQuestion
from rules.sequence.advance import with_sequences
from rules.sequence.asking import questions_of
from rules.sequence.numbers import by_numbers
from rules.view import View
from tests.property.sequenced import Act, Course, World, courses
from tests.unit.rules.sequence.stage import Look

Order = Callable[[list[SequenceRefused]], list[SequenceRefused]]
HARMLESS = (
    SequenceClass.REORDERING,
    SequenceClass.STALE_RETRY,
    SequenceClass.SEQUENCE_RESTART,
    SequenceClass.CLIENT_FAILURE,
)
AFTER = ((Act.LOOK, 1),) * 5 + ((Act.WAIT, 1),) + ((Act.LOOK, 1),) * 5  # until nothing is asked


class Watch:
    """Makes a round at every look, and carries memory and questions on."""

    def __init__(self, order: Order = lambda lines: lines, *, splits: bool = False) -> None:
        self.world = World()
        self.views: list[View] = []
        self._memory: Memory | None = None
        self._read = 0
        self._order = order
        self._splits = splits

    def run(self, course: Iterable[tuple[Act, int]]) -> Watch:
        """Let everything happen, and then look until nothing is asked any more."""
        self._round([])
        for act, size in (*course, *AFTER):
            self.world.act(act, size)
            if act is Act.LOOK:
                self._look()
        return self

    def _look(self) -> None:
        new = [one.line for one in self.world.told[self._read :]]
        self._read = len(self.world.told)
        lines = self._order(new)
        if self._splits and len(lines) > 1:
            half = len(lines) // 2
            self._round(lines[:half])
            lines = lines[half:]
        self._round(lines)

    def _round(self, lines: list[SequenceRefused]) -> None:
        asked = bool(self.views) and any(
            isinstance(one, BatchesQuestion) for one in questions_of(self.views[-1])
        )
        seen = self._look_of(lines, asked=asked).snapshot()
        memory = advance(seen, self._memory)
        view = View(snapshot=seen, memory=memory, before=self._memory, now=seen.taken_at)
        view = replace(view, memory=replace(memory, losses=remember_losses(view)))
        self.views.append(with_sequences(view))
        self._memory = self.views[-1].memory

    def _look_of(self, lines: list[SequenceRefused], *, asked: bool) -> Look:
        return self.world.look(lines, asked=asked)

    @property
    def episodes(self) -> tuple[Episode, ...]:
        return self.views[-1].memory.sequences.episodes


@given(courses)
def test_nothing_that_hides_a_loss_is_ever_confirmed(course: Course) -> None:
    watch = Watch().run(course)
    for view in watch.views:
        for episode in view.memory.sequences.episodes:
            if episode.verdict.is_confirmed and episode.verdict.class_ in HARMLESS:
                truth = watch.world.of_episode(episode)
                assert not any(one.is_lost for one in truth), (episode, truth)


@given(courses)
def test_a_loss_is_confirmed_only_where_a_leader_had_been_alone(course: Course) -> None:
    watch = Watch().run(course)
    for view in watch.views:
        for episode in view.memory.sequences.episodes:
            if episode.verdict.is_confirmed and episode.verdict.class_ is SequenceClass.LOSS:
                truth = watch.world.of_episode(episode)
                assert any(one.was_at_risk for one in truth), (episode, truth)


@given(courses)
def test_what_brokers_never_lost_is_never_suspected_to_be_lost_for_long(course: Course) -> None:
    """Where unclean elections are forbidden the log proves it, or the changes were clean.

    Changes before the first look at a topic are not known to be.
    """
    watched = [
        one
        for act, size in course
        for one in ((act, size), *(((Act.LOOK, 1),) if act is Act.CREATE_AGAIN else ()))
    ]
    clean = [(act, size) for act, size in watched if act is not Act.ALONE]
    watch = Watch()
    watch.world.is_unclean_allowed = False
    for episode in watch.run(clean).episodes:
        assert episode.verdict.class_ is not SequenceClass.LOSS


@given(courses)
def test_every_loss_that_a_line_shows_is_at_least_suspected(course: Course) -> None:
    watch = Watch().run(course)
    for episode in watch.episodes:
        if any(one.is_lost for one in watch.world.of_episode(episode)):
            assert episode.verdict.class_ in (SequenceClass.LOSS, SequenceClass.UNDETERMINED)


@given(courses, st.randoms(use_true_random=False))
def test_the_order_of_the_lines_of_a_round_is_irrelevant(course: Course, random: object) -> None:
    def mixed(lines: list[SequenceRefused]) -> list[SequenceRefused]:
        return sorted(lines, key=lambda _: random.random())  # type: ignore[attr-defined]

    assert Watch(mixed).run(course).episodes == Watch().run(course).episodes


@given(courses)
def test_a_line_that_comes_by_two_ways_is_one_line(course: Course) -> None:
    twice = Watch(lambda lines: [*lines, *lines]).run(course)
    assert twice.episodes == Watch().run(course).episodes


@given(courses)
def test_a_round_split_in_two_never_says_less_at_last(course: Course) -> None:
    whole = {one.key: one.verdict for one in Watch().run(course).episodes}
    split = {one.key: one.verdict for one in Watch(splits=True).run(course).episodes}
    for key, verdict in whole.items():
        if verdict.is_confirmed:
            assert split[key].is_confirmed
            assert split[key].class_ is verdict.class_


@given(courses)
def test_who_writes_in_order_is_never_told_of(course: Course) -> None:
    orderly = {Act.WRITE, Act.BUMP, Act.OTHERS, Act.LOOK, Act.WAIT, Act.CHANGE}
    watch = Watch().run([one for one in course if one[0] in orderly])
    assert watch.episodes == ()
    assert questions_of(watch.views[-1]) == ()


@given(courses)
def test_asking_ends(course: Course) -> None:
    assert questions_of(Watch().run(course).views[-1]) == ()


@given(courses)
def test_the_numbers_alone_confirm_nothing(course: Course) -> None:
    watch = Watch().run(course)
    lines = [one.line for one in watch.world.told]
    if lines:
        assert by_numbers(lines).phase == "suspected"
        assert by_numbers(lines[::-1]) == by_numbers(lines)
