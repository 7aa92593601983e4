"""What became of a rejected batch's transaction: a case per outcome, and how it is reported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rules.catalogue import sequence_gap_loss, sequence_gap_reordering
from rules.exceptions.known_producers import producer_of_episode
from rules.facts.episode_transactions import TransactionOutcome, UnknownOutcome
from rules.facts.episodes import Episode
from rules.facts.transaction_log import Cut
from rules.facts.transactions import TransactionState
from rules.question import TransactionsQuestion
from rules.sequence.explained import explain_episode
from rules.sequence.transaction_outcome import is_news
from rules.sequence.transaction_words import (
    AFTER_LOSS,
    COMMITTED_WITH_LOSS,
    IF_GIVEN_UP,
    IF_HEALED,
    NOT_IN_IT,
    OUTCOMES,
    UNKNOWN,
    UNKNOWN_PRODUCER,
    UNTIL_ENDED,
    show_command,
)
from rules.sequence.words import COMPARE, COPY_DISK, KEEP_DISK, NOTHING
from rules.verdict import Severity, Verdict
from rules.view import View
from tests.unit.rules.catalogue.sequence_rules import breaches
from tests.unit.rules.loss.replica_lines import elected
from tests.unit.rules.sequence.case_observations import ALONE, line_of_2, of_2
from tests.unit.rules.sequence.lines import earliest_seen, rejected
from tests.unit.rules.sequence.stage import (
    Observation,
    batch,
    found,
    marker,
    play,
    remembered,
    watched,
)
from tests.unit.rules.sequence.transaction_cases import (
    ABORTED,
    CASES,
    LINE,
    ONGOING,
    QUIET,
    STARTED,
    TRANSACTIONAL,
    TransactionCase,
    healed,
    holds,
    known,
    over,
    sees,
)

Outcome = TransactionOutcome


def views_of(case: TransactionCase) -> list[View]:
    return play((QUIET, case.line, *case.rounds))


def episode_of(case: TransactionCase) -> Episode:
    [episode] = views_of(case)[-1].memory.sequences.episodes
    return episode


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_case(case: TransactionCase) -> None:
    said = explain_episode(episode_of(case)).evidence
    assert (
        said["transaction"],
        said["transaction_shown_by"],
        said["transaction_unknown_reason"],
    ) == (case.outcome, case.shown_by, case.unknown_reason), case.because


@pytest.mark.parametrize("name", CASES)
def test_it_is_known_whether_a_producer_is_transactional(name: str) -> None:
    assert episode_of(CASES[name]).transaction.is_transactional is TRANSACTIONAL.get(name, True)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_only_a_transaction_that_failed_warns_and_none_is_a_page(case: TransactionCase) -> None:
    failed = {"aborted", "fenced", "timed_out", "overdue"}
    severities = [
        finding.severity
        for view in views_of(case)
        for finding in sequence_gap_reordering.judge(view).findings(Verdict.BREACH)
    ]
    is_reported = bool(severities)
    is_failure = case.outcome in failed and case.warns
    worst = Severity.WARNING if is_failure else Severity.INFO
    assert not is_reported or severities[-1] is worst
    assert Severity.CRITICAL not in severities


def test_a_failed_transaction_is_reported_with_its_producer() -> None:
    view = views_of(CASES["timed-out-by-the-coordinators-log"])[-1]
    [finding] = sequence_gap_reordering.judge(view).findings(Verdict.BREACH)
    said = finding.evidence
    assert (finding.reason, said["transaction"]) == ("transaction_failed", "timed_out")
    assert (said["transactional_id"], said["producer_id"]) == ("payments", 7)
    assert (said["transaction_epoch"], said["producer_epoch"]) == (0, 0)


def test_a_command_has_an_id_in_quotes() -> None:
    assert show_command("pay 1; rm {x}") == "tidemark tx show 'pay 1; rm {x}'"
    assert show_command(None) == "tidemark tx show"


def test_what_applications_logged_finds_a_transaction_that_is_over() -> None:
    episode = episode_of(CASES["timed-out-by-the-coordinators-log"])
    assert producer_of_episode(episode, {}).transactional_id == "payments"


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        pytest.param("committed-by-its-marker", NOTHING, id="committed"),
        pytest.param("aborted-by-its-owner", "write the records", id="aborted"),
        pytest.param("open-and-awaited", "`abort_transaction()`", id="librdkafka has to abort it"),
        pytest.param("open-and-awaited", "nothing has to be done", id="Java goes on"),
        pytest.param("open", IF_HEALED, id="open, and its client has healed it"),
        pytest.param("open-and-given-up", IF_GIVEN_UP, id="open, and its client gave it up"),
        pytest.param("fenced", "close it", id="fenced"),
        pytest.param("timed-out-by-the-coordinators-log", "a new one", id="timed out"),
        pytest.param("overdue", "`transactional.id`", id="overdue"),
        pytest.param("ended-unseen", "tidemark tx show payments", id="not known"),
        pytest.param("no-transactional-producer", NOTHING, id="not transactional"),
    ],
)
def test_it_says_what_the_application_has_to_do(outcome: str, words: str) -> None:
    said = explain_episode(episode_of(CASES[outcome]))
    assert words.lower() in said.check.lower()
    is_final = said.transaction is None or said.transaction.value in {
        "committed", "aborted", "fenced", "timed_out",
    }  # fmt: skip
    assert (said.needed_evidence is None) == (is_final and said.verdict.is_confirmed)


def test_what_is_not_proven_is_still_to_be_checked() -> None:
    unseen = found(
        batch(97, 0, 3, leader_epoch=4, transactional=True), markers=(marker(101, commit=False),)
    )
    said = explain_episode(watched(QUIET, LINE, sees(12, found=[unseen])))
    assert (said.class_, said.transaction) == ("reordering", Outcome.ABORTED)
    assert said.check == f"{COMPARE} {OUTCOMES[Outcome.ABORTED].check}"


def test_a_loss_in_a_transaction_keeps_the_disk_first_and_says_what_the_client_needs() -> None:
    lost = batch(97, 0, 3, transactional=True)
    said = explain_episode(watched(ALONE, line_of_2(), of_2(12, found=[found(lost)])))
    assert (said.class_, said.transaction) == ("loss", Outcome.UNKNOWN)
    assert said.check == f"{KEEP_DISK} {AFTER_LOSS}"
    ended = found(lost, markers=(marker(130, commit=True, leader_epoch=6),))
    said = explain_episode(watched(ALONE, line_of_2(), of_2(12, found=[ended])))
    assert (said.class_, said.transaction) == ("loss", Outcome.COMMITTED)
    assert COMMITTED_WITH_LOSS in said.explanation
    assert said.check == KEEP_DISK


def test_nothing_is_to_be_written_again_while_a_loss_is_only_suspected() -> None:
    """The client may still send the batch again, and commit: the records would be there twice."""
    elected_uncleanly = replace(line_of_2(4), lines=(*line_of_2(4).lines, elected()))
    before = batch(97, 0, 3, transactional=True)
    rounds = (Observation(second=0, isr=(1,)), elected_uncleanly)
    said = explain_episode(watched(*rounds, of_2(12, found=[found(before)])))
    assert (said.class_, said.phase, said.transaction) == ("loss", "suspected", Outcome.UNKNOWN)
    assert said.check == f"{COPY_DISK} {UNTIL_ENDED.format(show='tidemark tx show')}"
    ended = found(before, markers=(marker(130, commit=True, leader_epoch=6),))
    said = explain_episode(watched(*rounds, of_2(12, found=[ended])))
    assert (said.phase, said.transaction) == ("suspected", Outcome.COMMITTED)
    assert said.check == COPY_DISK
    assert COMMITTED_WITH_LOSS not in said.explanation


def test_every_outcome_and_every_reason_has_words() -> None:
    assert set(OUTCOMES) == set(TransactionOutcome)
    assert set(UNKNOWN) == set(UnknownOutcome)


def test_nothing_has_to_be_done_is_never_said_of_a_producer_that_may_be_transactional() -> None:
    moved = (
        Observation(second=12, states=remembered(2)),
        Observation(second=13, states=remembered(8)),
    )
    said = explain_episode(watched(QUIET, LINE, *moved))
    assert (said.reason, said.transactional) == ("filled", None)
    assert said.check == f"{NOTHING} {UNKNOWN_PRODUCER}"


def test_a_committed_transaction_may_lack_the_rejected_batch() -> None:
    lacking = found(batch(97, 0, 3, transactional=True), markers=(marker(100, commit=True),))
    late = Observation(second=140, end=101, found=[replace(lacking, scanned_to=101)])
    said = explain_episode(watched(QUIET, LINE, Observation(second=12, found=[lacking]), late))
    assert (said.transaction, said.arrival) == (Outcome.COMMITTED, "not_arrived")
    assert NOT_IN_IT in said.explanation


def test_an_open_transaction_is_reported_again_when_it_has_ended() -> None:
    log = (*STARTED, sees(31, known(None), over(), holds(None)))
    assert breaches(play((QUIET, LINE, *log))) == [
        (2, "reordering", "reordered"),
        (4, "reordering", "reordered"),
    ]
    cut = (*STARTED, sees(31, known(None), over(ABORTED, Cut.SECOND_INSTANCE), holds(None)))
    assert breaches(play((QUIET, LINE, *cut)))[-1] == (4, "reordering", "transaction_failed")


@pytest.mark.parametrize(
    ("before", "outcome", "expected"),
    [
        pytest.param(None, "committed", False, id="an older report said nothing of it"),
        pytest.param(None, "aborted", True, id="but a failure is news"),
        pytest.param("committed", "open", False, id="the next transaction has begun"),
        pytest.param("aborted", "committed", False, id="the failed one is forgotten"),
        pytest.param("open", "committed", True, id="it has ended"),
        pytest.param("unknown", "committed", True, id="it is known now"),
        pytest.param("open", "unknown", False, id="nothing more is known"),
        pytest.param("overdue", "timed_out", True, id="who aborted it"),
        pytest.param("overdue", "overdue", False, id="the same"),
    ],
)
def test_what_is_news(before: str | None, outcome: str, *, expected: bool) -> None:
    earlier = None if before is None else TransactionOutcome(before)
    assert is_news(earlier, TransactionOutcome(outcome)) is expected


def test_an_episode_is_watched_while_its_transaction_is_open_and_no_longer_than_an_hour() -> None:
    lasting = replace(ONGOING, timeout=None)
    rounds = [*STARTED, *(sees(second, known(lasting), holds()) for second in (400, 3500, 3700))]
    views = play((QUIET, LINE, *rounds))
    assert [len(view.memory.sequences.open) for view in views][-3:] == [1, 1, 0]
    [episode] = views[-1].memory.sequences.ended
    assert explain_episode(episode).transaction is Outcome.UNKNOWN


def test_coordinators_are_asked_while_a_transaction_is_open_and_no_longer() -> None:
    log = (*STARTED, *(sees(20 + n, known(), holds()) for n in range(3)))
    ended = (sees(31, known(None), over(), holds(None)), sees(32))
    views = play((QUIET, LINE, *log, *ended))
    asked = [
        question.producer_ids
        for view in views
        for question in sequence_gap_loss.judge(view).questions
        if isinstance(question, TransactionsQuestion)
    ]
    assert asked == [frozenset({7})] * 6
    assert sequence_gap_loss.judge(views[-1]).questions == ()


def test_a_line_that_only_transactions_have_says_so() -> None:
    said = explain_episode(watched(QUIET, Observation(second=11, lines=(earliest_seen(3, 0),))))
    assert (said.transactional, said.transaction) == (True, Outcome.UNKNOWN)
    assert said.check != NOTHING


def test_the_worst_of_many_transactions_decides() -> None:
    later = rejected(15, 12, second=20, offset=120)
    log = healed(marker(106, commit=False), marker(130, commit=True))
    views = play(
        (
            QUIET,
            LINE,
            sees(12, found=[log]),
            Observation(second=21, lines=(later,)),
            sees(22, found=[log]),
        )
    )
    [episode] = views[-1].memory.sequences.episodes
    outcomes = [rejection.transaction for rejection in episode.rejections]
    assert [entry.outcome for entry in outcomes if entry is not None] == ["aborted", "committed"]
    assert explain_episode(episode).transaction is Outcome.ABORTED


def test_another_topic_of_that_name_changes_nothing() -> None:
    gone = sees(13, known(replace(ONGOING, state=TransactionState.COMPLETE_COMMIT)), creation=1)
    episode = watched(QUIET, LINE, *STARTED[:1], gone)
    assert explain_episode(episode).transaction is Outcome.OPEN
