"""What lines of clients mean, from the text to the verdict: each case says it of one text."""

import pytest

from collectors.application_log.reader import Reader
from rules.exceptions.judging import TABLE, Judged, judge
from rules.exceptions.meaning import Role
from rules.facts.application_log import ApplicationError, Client, Outcome, Thrown
from tests.unit.rules.exceptions.texts import ALL, ECHO, PLAIN, TX, Text


def judged(text: str) -> list[Judged | None]:
    reader = Reader("app.log")
    events = [*reader.feed_all(text.encode().split(b"\n")), *reader.close()]
    return [judge(event) for event in events if isinstance(event, ApplicationError)]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_meaning(case: Text) -> None:
    (result,) = judged(case.text)
    assert result is not None
    assert (
        result.meaning.id,
        result.idempotent or "-",
        result.transactional or "-",
        result.records,
    ) == (case.meaning, case.idempotent, case.transactional, case.records)


def test_meanings_have_distinct_ids_and_complete_texts() -> None:
    meanings = {case.meaning.id: case.meaning for cases in TABLE.values() for case in cases}
    every = {id(case.meaning) for cases in TABLE.values() for case in cases}
    assert len(meanings) == len(every)
    for meaning in meanings.values():
        sentences = (meaning.explanation, meaning.condition, meaning.action)
        assert all(sentence[0].isupper() for sentence in sentences), meaning.id
        assert all(sentence.endswith(".") for sentence in (*sentences, meaning.check)), meaning.id
        assert len(meaning.title) <= 78, meaning.id


def test_every_error_of_the_table_ends_with_a_case_that_always_holds() -> None:
    for error, cases in TABLE.items():
        last = cases[-1]
        assert not last.operations, error
        assert (last.part, last.client, last.framework) == (None, None, None), error


@pytest.mark.parametrize(
    ("outcome", "role"),
    [(Outcome.RETRYING, Role.HARMLESS), (Outcome.RAISED, Role.CAUSE), (Outcome.FATAL, Role.CAUSE)],
)
def test_the_clients_own_words_decide_whether_an_error_matters(
    outcome: Outcome, role: Role
) -> None:
    event = ApplicationError(
        source="a", line=1, at=None, client=Client.JAVA, part=None, outcome=outcome,
        chain=(Thrown(error="NOT_ENOUGH_REPLICAS"),),
    )  # fmt: skip
    result = judge(event)
    assert result is not None
    assert result.role is role


def test_an_error_that_no_table_has_is_not_judged() -> None:
    assert judged("org.apache.kafka.common.errors.BrandNewException: words") == [None]


def test_what_other_lines_say_of_the_producer_counts() -> None:
    reader = Reader("app.log")
    line = b"org.apache.kafka.common.errors.TimeoutException: Expiring 3 record(s) for orders-3"
    reader.feed(line)
    (event,) = reader.close()
    assert isinstance(event, ApplicationError)
    alone, in_transaction = judge(event), judge(event, is_transactional=True)
    assert alone is not None
    assert in_transaction is not None
    assert (alone.idempotent, alone.records) == ("fails", "unknown")
    assert (in_transaction.idempotent, in_transaction.records) == (None, "neither")


def test_an_echo_is_a_consequence_and_its_cause_is_not() -> None:
    (echo,) = judged(ECHO)
    (cause,) = judged(
        f"{ECHO}\nCaused by: org.apache.kafka.common.errors.ProducerFencedException: x"
    )
    assert echo is not None
    assert cause is not None
    assert (echo.role, cause.role) == (Role.CONSEQUENCE, Role.CAUSE)


def test_a_plain_producer_is_told_apart_from_a_transactional_one() -> None:
    words = "Transiting to fatal error state due to org.apache.kafka.common.errors.ClusterAuthorizationException: x"
    (plain,), (transactional,) = judged(f"INFO {PLAIN}{words}"), judged(f"INFO {TX}{words}")
    assert plain is not None
    assert transactional is not None
    assert (plain.idempotent, transactional.idempotent) == ("fatal", None)
