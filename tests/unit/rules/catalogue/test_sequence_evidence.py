"""What is told of rejected sequences once, again, and never."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rules.catalogue import (
    sequence_gap_loss,
    sequence_gap_reordering,
)
from rules.completeness import Completeness
from rules.facts.broker_log import BrokerLog, LogSource, SequenceRejected
from rules.facts.gap import GapScope
from rules.judgement import Judgement
from rules.open_findings import (
    EVENT_LASTS,
    Identity,
    OpenFinding,
    Step,
    apply_changes,
    next_changes,
)
from rules.question import BatchesQuestion, ProducersQuestion, TransactionsQuestion
from rules.sequence.retention import MAX_ENDED, MAX_OPEN
from rules.verdict import Severity, Verdict
from rules.view import View
from tests.factories import gap, partitions, snapshot
from tests.unit.rules.catalogue.judging import view_of
from tests.unit.rules.catalogue.sequence_rules import RULES, TEXTBOOK, breaches
from tests.unit.rules.sequence.case_observations import (
    ALONE,
    LOST,
    NOT_READABLE,
    OLD_BATCH,
    line_of_2,
    of_2,
)
from tests.unit.rules.sequence.cases import CASES
from tests.unit.rules.sequence.lines import earliest_seen, rejected
from tests.unit.rules.sequence.stage import PATIENCE, Observation, batch, found, play


def unread(numbers: Iterable[int], *, every: int) -> list[Observation]:
    """Return rounds in which broker 2 rejects another batch every few seconds; nobody may read its log."""
    observations: list[Observation] = []
    for number in numbers:
        begin = 10 + every * number
        line = rejected(600 + number, 2, second=begin, offset=100 + number, broker=2)
        ends = LOST if number == 0 else ()
        observations.append(of_2(begin + 1, lines=(line,), gaps=(NOT_READABLE,), ends=ends))
        observations += [of_2(begin + 2 + n, gaps=(NOT_READABLE,)) for n in range(every - 1)]
    return observations


def test_a_confirmed_loss_stays_one_when_its_producer_is_rejected_again() -> None:
    """After an unclean change a later rejection starts the waiting anew, for itself alone."""
    observations = (
        *CASES["unclean-and-unhealed"].observations,
        of_2(200, lines=(rejected(9, 2, broker=2),)),
    )
    later = [of_2(201 + n, found=[found(OLD_BATCH)]) for n in range(6)]
    assert breaches(play((*observations, *later))) == [(3, "loss", "lost")]


def test_what_is_asked_again_and_answered_the_same_is_not_told_again() -> None:
    unread = [of_2(12 + n, gaps=(NOT_READABLE,)) for n in range(4)]
    later = [of_2(140 + n, gaps=(NOT_READABLE,)) for n in range(5)]
    observations = (ALONE, line_of_2(600), *unread, *later, *(of_2(400 + n) for n in range(5)))
    assert [said[1:] for said in breaches(play(observations))] == [("loss", "possibly_lost")]


def test_a_producer_that_is_rejected_again_and_again_is_one_event() -> None:
    views = play([ALONE, *unread(range(40), every=5)])
    assert [said[1:] for said in breaches(views)] == [("loss", "possibly_lost")]


def test_a_producer_that_is_rejected_on_a_log_that_nobody_may_read_warns_nobody() -> None:
    """No leader changed: that a gap is large and its log unread is no ground to suspect a loss."""
    led = [
        replace(observation, leader=1, epoch=5, isr=(1, 2, 3))
        for observation in unread(range(40), every=5)
    ]
    told = breaches(
        play([Observation(second=0), *led, Observation(second=400), Observation(second=600)])
    )
    assert [said[1:] for said in told] == [("undetermined", "undetermined")]


def test_a_producer_that_is_rejected_for_a_day_is_told_again() -> None:
    """A finding expires a day after it was told."""
    hour = 3600
    observations = [ALONE]
    for number in range(48):
        second = 11 + number * hour / 2
        line = rejected(600, 2, second=second - 1, broker=2)
        ends = LOST if number == 0 else ()
        observations.append(of_2(second, lines=(line,), gaps=(NOT_READABLE,), ends=ends))
        observations += [of_2(second + n, gaps=(NOT_READABLE,)) for n in range(1, 4)]
    views = play(observations)
    told = [views[number].now for number, *_ in breaches(views)]
    assert len(told) == 2
    assert told[1] - told[0] < EVENT_LASTS


def test_a_client_failure_stays_one_when_its_metrics_are_forgotten() -> None:
    later = rejected(9, 5, second=250, offset=110)
    observations = (
        *CASES["same-leader-epoch"].observations,
        Observation(second=251, lines=(later,)),
        Observation(second=252, found=[found(batch(97, 0, 3), batch(104, 0, 6, epoch=1))]),
        Observation(second=253),
    )
    answers = iter(["the client", *[None] * 20])
    views = play(observations, only_failed=lambda *_: next(answers))
    assert {said[1:] for said in breaches(views)} == {("reordering", "client_failure")}


def test_an_open_episode_asks_for_batches_and_for_the_producer() -> None:
    states, batches, transactions = sequence_gap_loss.judge(play(TEXTBOOK[:2])[-1]).questions
    assert isinstance(states, ProducersQuestion)
    assert (states.rows.tolist(), states.wants_states_of) == ([0], frozenset({7}))
    assert isinstance(batches, BatchesQuestion)
    [wanted] = batches.requests
    assert (str(wanted.name), wanted.producer_id) == ("orders-0", 7)
    assert (wanted.offset, wanted.sequence) == (100, 2)
    assert transactions == TransactionsQuestion(frozenset({7}))


def test_what_is_proven_is_asked_no_more() -> None:
    assert sequence_gap_loss.judge(play(TEXTBOOK)[-1]).questions == ()


def test_it_is_asked_at_once_and_again_when_a_client_has_given_up() -> None:
    seconds = [12.0 + n for n in range(6)] + [12 + PATIENCE + n for n in range(6)]
    observations = [
        Observation(second=0),
        Observation(second=11, lines=(rejected(6, 2),)),
        *(Observation(second=second) for second in seconds),
    ]
    asked = [bool(sequence_gap_loss.judge(view).questions) for view in play(observations)]
    assert asked == [False] + [True] * 3 + [False] * 4 + [True] * 3 + [False] * 3


@pytest.mark.parametrize("judge", RULES.values(), ids=list(RULES))
@pytest.mark.parametrize(
    ("log", "gaps", "verdict", "reason"),
    [
        pytest.param(BrokerLog.unread(), (), Verdict.OK, "no_source", id="nobody-asked-for-it"),
        pytest.param(BrokerLog(is_read=True), (), Verdict.OK, "nothing_new", id="quiet"),
        pytest.param(
            BrokerLog(is_read=True, sources=(LogSource(name="b", error="gone"),)),
            (gap(scope=GapScope.BROKER_LOG),),
            Verdict.UNKNOWN,
            "log_not_read",
            id="a-source-in-error",
        ),
        pytest.param(
            BrokerLog.unread(),
            (gap(scope=GapScope.BROKER_LOG),),
            Verdict.UNKNOWN,
            "log_not_read",
            id="not-yet",
        ),
    ],
)
def test_where_nothing_was_rejected(
    judge: Callable[[View], Judgement],
    log: BrokerLog,
    gaps: tuple[Any, ...],
    verdict: Verdict,
    reason: str,
) -> None:
    judgement = judge(view_of([snapshot(broker_log=log, gaps=gaps)]))
    finding = judgement.finding(0)
    assert (len(judgement.verdicts), finding.verdict, finding.reason) == (1, verdict, reason)
    assert not judgement.rule.is_critical


def carried(observations: Iterable[Observation]) -> dict[Identity, OpenFinding]:
    """Return the open findings about lost records after these rounds."""
    entries: dict[Identity, OpenFinding] = {}
    for view in play(observations):
        said = [sequence_gap_loss.judge(view)]
        complete = Completeness.of(view.snapshot)
        changes = next_changes(entries, said, completeness=complete, now=view.now)
        entries = apply_changes(entries, changes, view.now)
    return entries


def test_a_loss_stays_a_breach_while_nothing_new_is_said() -> None:
    entries: dict[Identity, OpenFinding] = {}
    steps: list[Step] = []
    for view in play([*TEXTBOOK, of_2(30), of_2(3800), of_2(3900)]):
        said = [sequence_gap_loss.judge(view)]
        complete = Completeness.of(view.snapshot)
        changes = next_changes(entries, said, completeness=complete, now=view.now)
        entries = apply_changes(entries, changes, view.now)
        steps += [change.step for change in changes]
    assert steps == [Step.OPENED, Step.HELD, Step.HELD, Step.HELD]
    [entry] = entries.values()
    assert entry.evidence["lost_offsets"] == 24


def test_a_suspicion_of_another_producer_leaves_a_confirmed_loss_first() -> None:
    other = rejected(600, 2, broker=2, producer_id=8, second=20, offset=130)
    quiet = [of_2(22 + 30 * n, gaps=(NOT_READABLE,)) for n in range(12)]
    observations = [*TEXTBOOK, of_2(21, lines=(other,), gaps=(NOT_READABLE,)), *quiet]
    [entry] = carried(observations).values()
    assert (entry.reason, entry.severity) == ("lost", Severity.CRITICAL)
    assert (entry.evidence["producer_id"], entry.evidence["lost_offsets"]) == (7, 24)
    episodes = entry.evidence["episodes"]
    assert isinstance(episodes, list)
    assert [(one["producer_id"], one["phase"], one["is_new"]) for one in episodes] == [
        (7, "confirmed", False),
        (8, "suspected", True),
    ]


def test_a_partition_that_is_not_seen_keeps_its_finding() -> None:
    unseen = {"partitions": partitions({"other": 1})}
    observations = [*TEXTBOOK, *(Observation(second=20 + n, more=unseen) for n in range(4))]
    entries = carried(observations)
    assert [entry.reason for entry in entries.values()] == ["lost"]


def nameless(line: SequenceRejected) -> View:
    return play((Observation(second=0), Observation(second=11, lines=(line,))))[-1]


@pytest.mark.parametrize("name", RULES)
def test_a_line_without_its_partition_leaves_every_rule_unknown(name: str) -> None:
    view = nameless(rejected(60000, 2, topic=None))
    assert breaches([view]) == []
    assert len(view.memory.sequences.episodes) == 1
    finding = RULES[name](view).finding(0)
    assert (finding.verdict, finding.reason) == (Verdict.UNKNOWN, "partition_not_reported")
    assert finding.evidence["without_partition_count"] == 1


def test_a_proven_reordering_without_its_partition_puts_no_loss_in_question() -> None:
    view = nameless(earliest_seen(3, 0, topic=None))
    assert breaches([view]) == []
    said = {name: judge(view).finding(0).verdict for name, judge in RULES.items()}
    assert said == dict.fromkeys(RULES, Verdict.OK) | {"reordering": Verdict.UNKNOWN}


def test_a_line_without_its_partition_may_be_of_any_partition() -> None:
    unnamed = Observation(second=20, lines=(rejected(60000, 2, topic=None, producer_id=8),))
    view = play((*CASES["same-leader-epoch"].observations, unnamed))[-1]
    finding = sequence_gap_loss.judge(view).finding(0)
    assert finding.labels["topic"] == "orders"
    assert (finding.verdict, finding.reason) == (Verdict.UNKNOWN, "partition_not_reported")


def test_lines_without_a_partition_are_in_question_for_a_day() -> None:
    line = rejected(60000, 2, topic=None)
    observations = (
        Observation(second=0),
        Observation(second=11, lines=(line,)),
        Observation(second=4000),
    )
    later = (*observations, Observation(second=100_000))
    verdicts = [sequence_gap_loss.judge(view).finding(0).verdict for view in play(later)]
    assert verdicts == [Verdict.OK, Verdict.UNKNOWN, Verdict.UNKNOWN, Verdict.OK]


@pytest.mark.parametrize("name", RULES)
def test_a_log_that_cannot_be_read_is_unknown_beside_remembered_episodes(name: str) -> None:
    unread = gap(scope=GapScope.BROKER_LOG)
    observation = Observation(second=20, gaps=(unread,))
    view = play((*CASES["same-leader-epoch"].observations, observation))[-1]
    finding = RULES[name](view).finding(0)
    assert (finding.verdict, finding.reason) == (Verdict.UNKNOWN, "log_not_read")


def storm(count: int, second: float, **overrides: Any) -> list[SequenceRejected]:
    return [
        rejected(600, 2, second=second, producer_id=1000 + number, **overrides)
        for number in range(count)
    ]


def test_a_storm_that_is_more_than_is_remembered_leaves_the_rest_unknown() -> None:
    flood = storm(MAX_OPEN + MAX_ENDED + 50, 10, topic="other")
    observations = (*CASES["same-leader-epoch"].observations, Observation(second=20, lines=flood))
    later = Observation(second=100_000)
    _, _, _, stormy, over = play((*observations, later))
    assert stormy.memory.sequences.unreported == 50, "the one before had been told"
    [quiet] = sequence_gap_reordering.judge(stormy).findings(Verdict.UNKNOWN)
    assert (quiet.reason, quiet.evidence["unreported_episodes"]) == ("too_many", 50)
    assert sequence_gap_loss.judge(over).finding(0).verdict is Verdict.OK


def test_a_partition_whose_episode_had_to_go_keeps_its_finding() -> None:
    """It is forgotten, and not gone."""
    observations = [*TEXTBOOK, of_2(4000)]
    views = play(observations)
    entries = carried(observations)
    other = play(
        [Observation(second=0), Observation(second=4001, lines=storm(1, 4000, topic="other"))]
    )[-1]
    for second in range(5):
        judgement = sequence_gap_loss.judge(other)
        changes = next_changes(
            entries,
            [judgement],
            completeness=Completeness.of(views[-1].snapshot),
            now=views[-1].now + timedelta(seconds=second),
        )
        entries = apply_changes(entries, changes, views[-1].now)
    assert "orders" in {dict(labels)["topic"] for _, labels in entries}
