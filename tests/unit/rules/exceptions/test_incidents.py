"""Several errors in one text: which belong together, in which order, and what became of the producer."""

from datetime import timedelta

import pytest

from collectors.application_log.reader import Reader
from rules.exceptions.collected import Collected, subjects_of
from rules.exceptions.incidents import TOGETHER, Incident
from rules.exceptions.repeats import MOST_EVENTS

ERRORS = "org.apache.kafka.common.errors."
FENCED = f"{ERRORS}ProducerFencedException: words"
TX = "[Producer clientId=p-1, transactionalId=pay-1] "
OTHER = "[Producer clientId=p-2, transactionalId=pay-2] "


def collect(*lines: str) -> Collected:
    collected, reader = Collected(), Reader("app.log")
    for line in lines:
        collected.add(reader.feed(line.encode()))
    collected.add(reader.close())
    return collected


def incidents(*lines: str) -> list[Incident]:
    return collect(*lines).incidents


def meanings(incident: Incident) -> list[tuple[str, str, int]]:
    return [(each.judged.meaning.id, str(each.role), each.count) for each in incident.problems]


def at(second: int, text: str) -> str:
    return f"2026-01-02 03:{second // 60:02d}:{second % 60:02d},000 INFO {text}"


def test_times_order_what_was_pasted_backwards() -> None:
    (incident,) = incidents(
        at(9, f"{TX}abort failed {FENCED}"),
        at(5, f"{TX}Transiting to abortable error state due to {ERRORS}InvalidProducerEpochException: x"),
        at(1, "[TransactionCoordinator id=1] Completed rollback of ongoing transaction for transactionalId pay-1 due to timeout"),
    )  # fmt: skip
    assert meanings(incident) == [
        ("transaction_timed_out", "cause", 1),
        ("invalid_producer_epoch", "consequence", 1),
        ("producer_fenced", "consequence", 1),
    ]
    assert (incident.transactional, incident.records) == ("fatal", "neither")


def test_without_times_a_cause_comes_before_its_consequences() -> None:
    (incident,) = incidents(
        "%3|1.1|X|rd#producer-1| Local: Purged in queue",
        "%3|1.1|X|rd#producer-1| Local: Fatal error",
        "%0|1.1|FATAL|rd#producer-1| [thrd:main]: Fatal error: Broker: Broker received an out of order sequence number: words",
    )  # fmt: skip
    assert incident.cause.judged.meaning.id == "out_of_order_sequence_fatal"
    assert [role for _, role, _ in meanings(incident)] == ["cause", "consequence", "consequence"]
    assert incident.idempotent == "fatal"


def test_an_echo_alone_has_no_known_cause() -> None:
    (incident,) = incidents(
        f"{TX}Cannot execute transactional method because we are in an error state"
    )
    assert not incident.is_cause_known


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (TX, OTHER),
        ("one-app-1  | ", "two-app-1  | "),
        ("[kafka-producer-network-thread | p-1] ", "[kafka-producer-network-thread | p-2] "),
        ("%1|1.1|TXNERR|a#producer-1| ", "%1|1.1|TXNERR|b#producer-1| "),
    ],
    ids=["client ids", "containers", "threads", "librdkafka's names"],
)
def test_two_applications_are_kept_apart(first: str, second: str) -> None:
    assert len(incidents(f"{first}{FENCED}", f"{second}{FENCED}")) == 2


def test_clients_of_one_streams_thread_are_one_application() -> None:
    name = "app-1f-StreamThread-1"
    (incident,) = incidents(
        f"ERROR [Consumer clientId={name}-consumer, groupId=app] consumer poll timeout has expired.",
        f"ERROR [Producer clientId={name}-producer] {FENCED}",
    )
    assert len(incident.problems) == 2


def test_a_line_without_names_belongs_to_whoever_had_the_same_error() -> None:
    found = incidents(
        f"INFO {OTHER}Transiting to fatal error state due to {FENCED}",
        f"INFO {TX}Transiting to fatal error state due to {ERRORS}InvalidTxnStateException: x",
        "ERROR [main] a.B - failed",
        FENCED,
    )
    counts = {each.names.transactional_id: each.cause.count for each in found}
    assert counts == {"pay-2": 2, "pay-1": 1}


def test_a_line_without_names_belongs_to_whoever_wrote_to_the_same_partition() -> None:
    expired = f"{ERRORS}TimeoutException: Expiring 3 record(s) for orders-3:1 ms has passed since batch creation"
    retried = "[Producer clientId=p-9] Got error produce response on topic-partition orders-3, retrying (9 attempts left). Error: NOT_ENOUGH_REPLICAS"  # fmt: skip
    fenced = f"INFO {TX}Transiting to fatal error state due to {FENCED}"
    found = incidents(f"WARN {retried}", fenced, "ERROR [main] a.B - failed", expired)
    assert [each.names.client_id for each in found] == ["p-9", "p-1"]
    assert meanings(found[0]) == [
        ("not_enough_replicas", "harmless", 1),
        ("batch_expired", "cause", 1),
    ]


def test_what_happens_long_after_is_another_incident() -> None:
    apart = int((TOGETHER + timedelta(seconds=1)).total_seconds())
    lines = at(0, f"{TX}{FENCED}"), at(apart, f"{TX}{FENCED}")
    assert [each.cause.count for each in incidents(*lines)] == [1, 1]
    assert [
        each.cause.count for each in incidents(at(0, f"{TX}{FENCED}"), at(60, f"{TX}{FENCED}"))
    ] == [2]


def test_a_client_that_goes_on_by_itself_is_harmless_and_comes_last() -> None:
    retried = f"WARN {OTHER}Got error produce response on topic-partition a-1, retrying (9 attempts left). Error: NETWORK_EXCEPTION"
    found = incidents(retried, f"INFO {TX}{FENCED}")
    assert [each.is_harmless for each in found] == [False, True]


def test_a_transactional_id_in_one_line_holds_for_the_others() -> None:
    expired = f"{ERRORS}TimeoutException: Expiring 3 record(s) for orders-3:1 ms has passed since batch creation"
    (incident,) = incidents(f"ERROR [kafka-producer-network-thread | p-1] {expired}", f"INFO {TX}Transiting to abortable error state due to {expired}")  # fmt: skip
    assert (incident.is_transactional, incident.records) == (True, "neither")
    assert (incident.idempotent, incident.transactional) == (None, "abort")


def test_memory_is_bounded_and_what_is_left_out_is_counted() -> None:
    lines = [f"[Producer clientId=p-{number}] {FENCED}" for number in range(MOST_EVENTS + 5)]
    assert collect(*lines).not_kept == 5
    assert collect(*[f"{TX}{FENCED}"] * 10_000).not_kept == 0


def test_subjects_are_the_names_of_all_lines_each_once() -> None:
    subjects = subjects_of(
        collect(
            f"ERROR {TX}for topic-partition orders-3 {FENCED}",
            f"ERROR {TX}for topic-partition orders-4 {ERRORS}NetworkException: x",
            f"ERROR [Consumer clientId=c, groupId=billing] {ERRORS}RebalanceInProgressException: x",
            "pay-9::TransactionMetadata(producerId=1, producerEpoch=0, state=Ongoing)",
        )
    )
    assert subjects.partitions == (("orders", 3), ("orders", 4))
    assert subjects.transactional_ids == ("pay-1", "pay-9")
    assert subjects.groups == ("billing",)


def test_a_fenced_client_without_names_belongs_to_the_one_id_of_the_text() -> None:
    took_over = "[TransactionCoordinator id=0] Initialized transactionalId pay-1 with producerId 9 and producer epoch 7 (kafka.coordinator.transaction.X)"
    (incident,) = incidents(at(1, took_over), at(2, FENCED))
    assert meanings(incident) == [
        ("producer_initialized", "harmless", 1),
        ("producer_fenced", "consequence", 1),
    ]
    assert incident.action.startswith("Close this producer")
    two = incidents(
        at(1, took_over),
        at(1, took_over.replace("pay-1", "pay-2").replace("Id 9", "Id 8")),
        at(2, FENCED),
    )
    assert len(two) == 3


def test_the_last_verdict_of_a_client_says_what_to_do() -> None:
    (incident,) = incidents(
        at(1, f"{TX}Transiting to abortable error state due to {ERRORS}InvalidProducerEpochException: x"),
        at(2, f"{TX}Transiting to fatal error state due to {FENCED}"),
    )  # fmt: skip
    assert incident.transactional == "fatal"
    assert "do not abort" in incident.action


def test_a_call_that_has_to_be_repeated_belongs_to_the_call_that_timed_out() -> None:
    (incident,) = incidents(
        f"{ERRORS}TimeoutException: Timeout expired after 5ms while awaiting EndTxn(true)",
        "\tat org.apache.kafka.clients.producer.KafkaProducer.commitTransaction(K.java:1)",
        "java.lang.IllegalStateException: the previous call to `commitTransaction` timed out and must be retried",
    )
    assert meanings(incident) == [
        ("commit_result_unknown", "cause", 1),
        ("call_to_be_repeated", "consequence", 1),
    ]


def test_what_a_client_gave_up_itself_is_no_gap_at_the_broker() -> None:
    plain = "[Producer clientId=p-1] "
    (incident,) = incidents(
        at(1, f"{plain}No inflight batches remaining for orders-3, last ack'd sequence for partition is 4, next sequence is 9. words"),
        at(1, f"{plain}ProducerId set to 9 with epoch 3"),
    )  # fmt: skip
    assert incident.cause.judged.meaning.id == "epoch_raised_after_timeouts"
    assert (incident.names.topic, incident.names.partition) == ("orders", 3)


def test_handles_of_librdkafka_keep_instances_of_one_client_id_apart() -> None:
    fatal = "|FATAL|rd#producer-{}| Fatal error: Local: This instance has been fenced"
    found = incidents(*(f"%0|1.1{fatal.format(number)}" for number in (1, 2)))
    assert [(each.names.client_id, each.names.handle) for each in found] == [
        ("rd", "rd#producer-1"),
        ("rd", "rd#producer-2"),
    ]


def test_an_exception_behind_a_verdict_is_another_error() -> None:
    (incident,) = incidents(
        at(1, f"{TX}Transiting to fatal error state due to {FENCED}"),
        f"{ERRORS}TimeoutException: Expiring 3 record(s) for orders-3: words",
    )
    assert [each for each, _, _ in meanings(incident)] == ["producer_fenced", "batch_expired"]


def test_a_task_of_connect_that_failed_has_to_be_restarted_once_its_cause_is_mended() -> None:
    (incident,) = incidents(
        "org.apache.kafka.connect.errors.ConnectException: words",
        "\tat org.apache.kafka.connect.X.y(X.java:1)",
        f"Caused by: {ERRORS}TopicAuthorizationException: words",
    )
    assert incident.cause.judged.meaning.id == "topic_denied"
    assert incident.action.endswith("Then restart the task by Connect's API.")


def test_a_traceback_of_python_and_the_line_above_it_are_of_one_application() -> None:
    (incident,) = incidents(
        "ERROR Committing raised exception: CommitFailedError('Commit cannot be completed since the group has already rebalanced',)",
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in f',
        "kafka.errors.RebalanceInProgressError: [Error 27] RebalanceInProgressError: billing",
    )
    assert incident.cause.judged.meaning.id == "commit_failed"


def test_a_document_of_kafkajs_and_the_error_below_it_are_one() -> None:
    words = "The broker received an out of order sequence number"
    (incident,) = incidents(
        f'{{"level":"ERROR","timestamp":"2026-01-02T03:04:05Z","logger":"kafkajs","message":"[Connection] words","error":"{words}"}}',
        f"KafkaJSProtocolError: {words}",
    )
    assert meanings(incident) == [("out_of_order_sequence", "cause", 2)]
