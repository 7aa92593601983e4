"""Laws of episodes, held against a partition whose truth is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import Enum
from typing import Final

from hypothesis import example, given
from hypothesis import strategies as st

from rules.catalogue import (
    duplicates_possible,
    producer_sequence_bug,
    sequence_gap_loss,
    sequence_gap_reordering,
    sequence_gap_undetermined,
)
from rules.facts.broker_log import SequenceRejected
from rules.facts.episodes import Episode, EpisodeKey
from rules.facts.last_observation import microseconds
from rules.facts.memory import Memory, advance
from rules.facts.sequence_verdicts import SequenceClass
from rules.judgement import Judgement
from rules.loss.remembered import remember_losses
from rules.question import BatchesQuestion
from rules.sequence.advance import with_sequences
from rules.sequence.requests import questions_of
from rules.verdict import Severity, Verdict
from rules.view import View
from tests.factories import partitions, unseen_offsets
from tests.property.sequenced import Act, Course, World, courses
from tests.unit.rules.sequence.case_observations import SILENT
from tests.unit.rules.sequence.lines import by_numbers
from tests.unit.rules.sequence.stage import Observation

Order = Callable[[list[SequenceRejected]], list[SequenceRejected]]
HARMLESS = (
    SequenceClass.REORDERING,
    SequenceClass.STALE_RETRY,
    SequenceClass.SEQUENCE_RESTART,
    SequenceClass.CLIENT_FAILURE,
)
RULES = (
    sequence_gap_loss,
    sequence_gap_reordering,
    sequence_gap_undetermined,
    duplicates_possible,
    producer_sequence_bug,
)
AFTER = (
    ((Act.OBSERVATION, 1),) * 5 + ((Act.WAIT, 1),) + ((Act.OBSERVATION, 1),) * 5
)  # until nothing is asked


class Silence(Enum):
    """How a round sees nothing of the partition."""

    LEADER = "leader"  # it does not answer
    PARTITION = "partition"  # no broker tells of it
    LOG = "log"  # the leader answers, and its log cannot be scanned

    def of(self, observation: Observation) -> Observation:
        """Return an observation that is silent in this way."""
        match self:
            case Silence.LEADER:
                return replace(observation, more={"offsets": unseen_offsets(1)})
            case Silence.PARTITION:
                return replace(observation, more={"partitions": partitions({"other": 1})})
            case Silence.LOG:
                return replace(observation, gaps=(SILENT,), found=(), states=None)


def badness(episode: Episode) -> int:
    """Return how bad it is what is said: harmless, not known, a suspected loss, a proven one."""
    if episode.verdict.class_ is SequenceClass.LOSS:
        return 3 if episode.verdict.is_confirmed else 2
    return 0 if episode.verdict.is_confirmed and episode.verdict.class_ in HARMLESS else 1


def by_key(view: View) -> dict[EpisodeKey, Episode]:
    """Return the latest episode of each producer."""
    return {one.key: one for one in view.memory.sequences.episodes}


class Watch:
    """Makes a round at every observation, and carries memory and questions on."""

    def __init__(self, order: Order = lambda lines: lines, *, splits: bool = False) -> None:
        self.world = World()
        self.views: list[View] = []
        self._memory: Memory | None = None
        self._read = 0
        self._order = order
        self._splits = splits

    def run(self, course: Iterable[tuple[Act, int]]) -> Watch:
        """Let everything happen, and then observation until nothing is asked any more."""
        self.begin()
        for act, size in (*course, *AFTER):
            self.act(act, size)
        return self

    def begin(self) -> None:
        """Make the first round."""
        self._round([])

    def act(self, act: Act, size: int) -> None:
        """Let something happen, and observation where that is what happens."""
        self.world.act(act, size)
        if act is Act.OBSERVATION:
            self._observe()

    def _observe(self) -> None:
        new = [one.line for one in self.world.reported[self._read :]]
        self._read = len(self.world.reported)
        lines = self._order(new)
        if self._splits and len(lines) > 1:
            half = len(lines) // 2
            self._round(lines[:half])
            lines = lines[half:]
        self._round(lines)

    def _round(self, lines: list[SequenceRejected]) -> None:
        asked = bool(self.views) and any(
            isinstance(one, BatchesQuestion) for one in questions_of(self.views[-1])
        )
        self._make(self.world.observe(lines, asked=asked))

    def silent_round(self, silence: Silence) -> None:
        """Make a round more, in which nobody answers."""
        self._make(silence.of(self.world.observe([], asked=False)))

    def _make(self, observation: Observation) -> None:
        seen = observation.snapshot()
        memory = advance(seen, self._memory)
        view = View(snapshot=seen, memory=memory, before=self._memory, now=seen.taken_at)
        view = replace(view, memory=replace(memory, losses=remember_losses(view)))
        self.views.append(with_sequences(view))
        self._memory = self.views[-1].memory

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

    Changes before the first observation of a topic are not known to be.
    """
    watched = [
        one
        for act, size in course
        for one in ((act, size), *(((Act.OBSERVATION, 1),) if act is Act.CREATE_AGAIN else ()))
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
    def mixed(lines: list[SequenceRejected]) -> list[SequenceRejected]:
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


silences: Final = st.lists(st.sampled_from(Silence), min_size=1, max_size=3)
# A batch is given up, and another one rejected behind a clean change of leader.
SKIPPED: Final = [
    (Act.WRITE, 1),
    (Act.OBSERVATION, 1),
    (Act.CHANGE, 1),
    (Act.GIVE_UP, 3),
    (Act.WRITE, 1),
]


def far(course: Course) -> Course:
    """Return a course in which more is given up than may be in flight."""
    return [(act, size * 20 if act is Act.GIVE_UP else size) for act, size in course]


@given(courses, silences, st.booleans())
@example(SKIPPED, [Silence.LEADER], False)
@example(SKIPPED, [Silence.PARTITION], False)
@example(SKIPPED, [Silence.LOG, Silence.LEADER], True)
def test_a_silent_round_never_makes_a_verdict_worse(
    course: Course,
    silent: list[Silence],
    is_unclean_allowed: bool,  # noqa: FBT001 - given by Hypothesis
) -> None:
    watch = Watch()
    watch.world.is_unclean_allowed = is_unclean_allowed
    watch.begin()
    for act, size in (*far(course), *AFTER):
        watch.act(act, size)
        for silence in silent if act is Act.OBSERVATION else ():
            before = by_key(watch.views[-1])
            watch.silent_round(silence)
            for key, one in by_key(watch.views[-1]).items():
                assert badness(one) <= badness(before[key]), (silence, before[key], one)
            for rule in RULES:
                assert not is_warned(rule.judge(watch.views[-1])), (silence, before)


def is_warned(judgement: Judgement) -> bool:
    """Whether a round tells more than information."""
    told = judgement.findings(Verdict.BREACH)
    return any(finding.severity is not Severity.INFO for finding in told)


@given(courses, st.integers(0, 50), silences, st.booleans())
@example(SKIPPED, 6, [Silence.LEADER, Silence.LOG], False)
@example(SKIPPED, 7, [Silence.PARTITION], False)
def test_a_silent_round_changes_nothing_that_is_said_at_last(
    course: Course,
    at: int,
    silent: list[Silence],
    is_unclean_allowed: bool,  # noqa: FBT001 - given by Hypothesis
) -> None:
    """What nobody answered is asked once more."""
    silenced, whole = Watch(), Watch()
    for watch in (silenced, whole):
        watch.world.is_unclean_allowed = is_unclean_allowed
        watch.begin()
        for number, (act, size) in enumerate((*far(course), *AFTER, *AFTER)):
            watch.act(act, size)
            if watch is silenced and number == min(at, len(course)) + 1:
                for silence in silent:
                    watch.silent_round(silence)
    for key, one in by_key(silenced.views[-1]).items():
        known = by_key(whole.views[-1])[key]
        assert badness(one) <= badness(known), (known, one)


@given(courses)
def test_nobody_is_warned_while_an_answer_is_awaited(course: Course) -> None:
    """A line is told of as a loss when that is proven, or when its client has given up."""
    watch = Watch().run(course)
    for view in watch.views:
        for finding in sequence_gap_loss.judge(view).findings(Verdict.BREACH):
            if finding.severity is Severity.WARNING:
                told = finding.evidence["episode"]
                [one] = [one for one in view.memory.sequences.episodes if one.id == told]
                assert microseconds(view.now) >= one.shown.seen_us + 120_000_000


@given(courses)
def test_who_writes_in_order_is_never_told_of(course: Course) -> None:
    orderly = {Act.WRITE, Act.BUMP, Act.OTHERS, Act.OBSERVATION, Act.WAIT, Act.CHANGE}
    watch = Watch().run([one for one in course if one[0] in orderly])
    assert watch.episodes == ()
    assert questions_of(watch.views[-1]) == ()


@given(courses)
def test_asking_ends(course: Course) -> None:
    assert questions_of(Watch().run(course).views[-1]) == ()


@given(courses)
def test_the_numbers_alone_confirm_nothing(course: Course) -> None:
    watch = Watch().run(course)
    lines = [one.line for one in watch.world.reported]
    if lines:
        assert by_numbers(lines).phase == "suspected"
        assert by_numbers(lines[::-1]) == by_numbers(lines)
