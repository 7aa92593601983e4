"""What a client's settings mean, and what the client makes of them without a word.

What producers reject was tried on real ones: Java's of 3.3, 3.9, 4.1 and 4.4, and librdkafka 2.16.
"""

from __future__ import annotations

import pytest

from collectors.client_config.properties import read_properties
from rules.posture.client_config.clients import Library
from rules.posture.client_config.finding import NEWEST, Release
from rules.posture.client_config.judging import ClientConfigReport, judge_files
from rules.posture.client_config.reasons import Why
from rules.verdict import Verdict

JAVA = Library.JAVA
RDKAFKA = Library.LIBRDKAFKA
IN_FLIGHT = "max.in.flight.requests.per.connection"


def judge(text: str, library: Library | None = None, release: Release | None = None, name: str = "app.properties") -> ClientConfigReport:  # fmt: skip
    file = read_properties(name, text.replace(" ", "\n").encode())
    return judge_files([file], library=library, release=release)


def wrong(report: ClientConfigReport) -> set[tuple[str, Why]]:
    """Return what is not right, by setting."""
    return {
        (line.posture.setting, Why(line.posture.reason))
        for line in report.lines
        if line.posture.verdict is not Verdict.OK
    }


REJECTED = Why.DOES_NOT_START
PRODUCERS: dict[str, tuple[str, Library, Release, set[tuple[str, Why]]]] = {
    "Java's defaults": ("linger.ms=5", JAVA, NEWEST, set()),
    "all as it should be": (f"acks=all enable.idempotence=true {IN_FLIGHT}=5 retries=2147483647 delivery.timeout.ms=120000", JAVA, NEWEST, set()),
    "acks=1 switches idempotence off": ("acks=1", JAVA, NEWEST, {("acks", Why.IDEMPOTENCE_SWITCHED_OFF), ("acks", Why.NOT_REPLICATED)}),
    "acks=0": ("acks=0", JAVA, NEWEST, {("acks", Why.IDEMPOTENCE_SWITCHED_OFF), ("acks", Why.NOT_REPLICATED)}),
    "acks=1 is rejected with idempotence": ("acks=1 enable.idempotence=true", JAVA, NEWEST, {("acks", REJECTED)}),
    "acks=1 is rejected with a transactional id": ("acks=1 transactional.id=t", JAVA, NEWEST, {("acks", REJECTED)}),
    "acks=-1 is all": ("acks=-1", JAVA, NEWEST, set()),
    "acks of no meaning": ("acks=2", JAVA, NEWEST, {("acks", REJECTED)}),
    "retries=0 switches idempotence off": ("retries=0", JAVA, NEWEST, {("retries", Why.IDEMPOTENCE_SWITCHED_OFF), ("retries", Why.GIVES_UP)}),
    "retries=0 is rejected with idempotence": ("retries=0 enable.idempotence=true", JAVA, NEWEST, {("retries", REJECTED)}),
    "few retries": ("retries=3", JAVA, NEWEST, {("retries", Why.GIVES_UP)}),
    "6 in flight before 4.0": (f"{IN_FLIGHT}=6", JAVA, (3, 9, 2), {(IN_FLIGHT, Why.IDEMPOTENCE_SWITCHED_OFF)}),
    "6 in flight from 4.0 on": (f"{IN_FLIGHT}=6", JAVA, (4, 0, 0), {(IN_FLIGHT, REJECTED)}),
    "6 in flight with idempotence": (f"{IN_FLIGHT}=6 enable.idempotence=true", JAVA, (3, 9, 2), {(IN_FLIGHT, REJECTED)}),
    "6 in flight without idempotence": (
        f"{IN_FLIGHT}=6 enable.idempotence=false", JAVA, NEWEST, {("enable.idempotence", Why.IDEMPOTENCE_OFF), (IN_FLIGHT, Why.REORDERS)},
    ),
    "a transactional id without idempotence": ("transactional.id=t enable.idempotence=false", JAVA, NEWEST, {("enable.idempotence", REJECTED)}),
    "an empty transactional id": ("transactional.id=", JAVA, NEWEST, {("transactional.id", REJECTED)}),
    "a flag of no meaning": ("enable.idempotence=yes", JAVA, NEWEST, {("enable.idempotence", REJECTED)}),
    "no time for one request": ("delivery.timeout.ms=30000", JAVA, NEWEST, {("delivery.timeout.ms", REJECTED)}),
    "just enough time before linger.ms was 5": ("delivery.timeout.ms=30000", JAVA, (3, 9, 2), set()),
    "retries beyond the transaction": (
        "transactional.id=t delivery.timeout.ms=300000", JAVA, NEWEST, {("delivery.timeout.ms", Why.OUTLIVES_TRANSACTION)},
    ),
    "a timeout that brokers may reject": (
        "transactional.id=t transaction.timeout.ms=1000000", JAVA, NEWEST, {("transaction.timeout.ms", Why.REJECTED_BY_BROKER)},
    ),
    "defaults before 3.0": ("linger.ms=5", JAVA, (2, 8, 0), {("enable.idempotence", Why.IDEMPOTENCE_OFF_BY_DEFAULT), ("acks", Why.NOT_REPLICATED)}),
    "a transactional id before 3.0": ("transactional.id=t", JAVA, (2, 8, 0), set()),
    "idempotence before 3.0": ("enable.idempotence=true", JAVA, (2, 8, 0), set()),
    "the default that had no effect": ("linger.ms=5", JAVA, (3, 1, 0), {("enable.idempotence", Why.IDEMPOTENCE_OFF_BY_DEFAULT)}),
    "a value from elsewhere": ("acks=${ACKS}", JAVA, NEWEST, {("acks", Why.VALUE_NOT_SHOWN)}),
    "librdkafka's defaults": ("linger.ms=5", RDKAFKA, NEWEST, {("enable.idempotence", Why.IDEMPOTENCE_OFF_BY_DEFAULT)}),
    "librdkafka with idempotence": ("enable.idempotence=true", RDKAFKA, NEWEST, set()),
    "librdkafka with a transactional id": ("transactional.id=t", RDKAFKA, NEWEST, set()),
    "librdkafka rejects acks=1": ("enable.idempotence=true request.required.acks=1", RDKAFKA, NEWEST, {("request.required.acks", REJECTED)}),
    "librdkafka with acks=1": (
        "acks=1", RDKAFKA, NEWEST, {("enable.idempotence", Why.IDEMPOTENCE_OFF_BY_DEFAULT), ("acks", Why.NOT_REPLICATED)},
    ),
    "librdkafka rejects 6 in flight": ("enable.idempotence=true max.in.flight=6", RDKAFKA, NEWEST, {("max.in.flight", REJECTED)}),
    "librdkafka rejects no retries": ("enable.idempotence=true retries=0", RDKAFKA, NEWEST, {("retries", REJECTED)}),
    "librdkafka rejects lifo": ("enable.idempotence=true queuing.strategy=lifo", RDKAFKA, NEWEST, {("queuing.strategy", REJECTED)}),
    "librdkafka rejects a message that outlives its transaction": (
        "transactional.id=t message.timeout.ms=120000", RDKAFKA, NEWEST, {("message.timeout.ms", REJECTED)},
    ),
    "librdkafka rejects a socket that outlives its transaction": (
        "transactional.id=t transaction.timeout.ms=30000 socket.timeout.ms=60000", RDKAFKA, NEWEST, {("socket.timeout.ms", REJECTED)},
    ),
    "librdkafka rejects no time to linger": ("enable.idempotence=true linger.ms=5000 message.timeout.ms=3000", RDKAFKA, NEWEST, {("message.timeout.ms", REJECTED)}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "library", "release", "expected"), PRODUCERS.values(), ids=PRODUCERS)  # fmt: skip
def test_producers(text: str, library: Library, release: Release, expected: set[tuple[str, Why]]) -> None:  # fmt: skip
    assert wrong(judge(text, library, release)) == expected


ONCE = "transactional.id=t enable.auto.commit=false isolation.level=read_committed group.id=g"
SPRING = (
    "spring.kafka.producer.acks=1 spring.kafka.producer.properties.enable.idempotence=true spring.kafka.consumer.group-id=g "
    "spring.kafka.consumer.isolation-level=read-committed spring.kafka.listener.ack-mode=record"
)
OTHERS: dict[str, tuple[str, set[tuple[str, Why]]]] = {
    "Java's consumer": ("group.id=g key.deserializer=x", {("isolation.level", Why.READS_ABORTED), ("enable.auto.commit", Why.COMMITS_AT_POLL)}),
    "Java's consumer, as it should be": ("group.id=g key.deserializer=x isolation.level=read_committed enable.auto.commit=false", set()),
    "librdkafka's consumer": ("group.id=g enable.partition.eof=true", {("enable.auto.commit", Why.COMMITS_BEFORE)}),
    "librdkafka's consumer that stores offsets itself": ("group.id=g enable.auto.offset.store=false", set()),
    "read, process, write": (f"{ONCE} key.serializer=x", set()),
    "read, process, write, with commits by themselves": (
        "transactional.id=t group.id=g key.serializer=x isolation.level=read_committed", {("enable.auto.commit", Why.COMMITS_OUTSIDE)},
    ),
    "of either library": ("group.id=g enable.auto.commit=false", {("isolation.level", Why.DEPENDS_ON_LIBRARY)}),
    "a producer that is right with either library": ("transactional.id=t acks=all enable.idempotence=true", set()),
    "a producer of either library": ("acks=all", {("enable.idempotence", Why.DEPENDS_ON_LIBRARY)}),
    "Streams": ("application.id=a", {("processing.guarantee", Why.AT_LEAST_ONCE)}),
    "Streams with exactly-once": ("application.id=a processing.guarantee=exactly_once_v2", set()),
    "Streams with a removed value": ("application.id=a processing.guarantee=exactly_once", {("processing.guarantee", REJECTED)}),
    "Streams with settings of its clients": (
        "application.id=a processing.guarantee=exactly_once_v2 producer.acks=1 main.consumer.isolation.level=read_uncommitted",
        {("acks", REJECTED), ("isolation.level", Why.OVERRIDDEN)},
    ),
    "Streams that commits too seldom": (
        "application.id=a processing.guarantee=exactly_once_v2 commit.interval.ms=30000", {("commit.interval.ms", REJECTED)},
    ),
    "a worker of Connect": ("config.storage.topic=c", {("exactly.once.source.support", Why.SOURCE_NOT_TRANSACTIONAL)}),
    "a worker of Connect with exactly-once": (
        "config.storage.topic=c exactly.once.source.support=enabled consumer.isolation.level=read_committed", set(),
    ),
    "a worker of Connect on the way": (
        "config.storage.topic=c exactly.once.source.support=preparing", {("exactly.once.source.support", Why.DEPENDS_ON_RELEASE)},
    ),
    "a connector": ("connector.class=c name=n producer.override.acks=1", {("enable.idempotence", Why.IDEMPOTENCE_OFF_BY_DEFAULT), ("acks", Why.NOT_REPLICATED)}),
    "Spring Boot": (
        SPRING, {("acks", REJECTED)},
    ),
    "Spring Boot with transactions": ("spring.kafka.producer.transaction-id-prefix=tx- spring.kafka.producer.acks=all", set()),
    "a name that is misspelt": ("key.serializer=x enable.idempotense=true", {("enable.idempotense", Why.NOT_A_SETTING)}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), OTHERS.values(), ids=OTHERS)
def test_other_clients(text: str, expected: set[tuple[str, Why]]) -> None:
    assert wrong(judge(text)) == expected


def test_a_setting_that_matters_only_for_exactly_once_is_information_without_it() -> None:
    (alone,) = judge("group.id=g key.deserializer=x enable.auto.commit=false").lines[:1]
    assert alone.posture.is_mild
    producer = read_properties("p.properties", b"transactional.id=t\nkey.serializer=x")
    consumer = read_properties("c.properties", b"group.id=g\nkey.deserializer=x")
    lines = judge_files([producer, consumer]).lines
    assert not any(line.posture.is_mild for line in lines)


def test_the_name_of_a_file_says_what_it_is_for() -> None:
    assert judge("bootstrap.servers=b:9092", name="/etc/consumer.properties").lines != ()
    assert judge("bootstrap.servers=b:9092", name="/etc/producer.properties").lines != ()
    assert judge("bootstrap.servers=b:9092", name="/etc/client.properties").lines == ()


SECRETS = """sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="u"
 password="hunter2";
ssl.keystore.key=-----BEGIN PRIVATE KEY-----
MIIEvQIBADANhunter2BgkqhkiG9w0BAQ==
ssl.key.pasword=hunter2
sasl.password=hunter2
hunter2
acks=1"""


def test_secrets_are_never_shown() -> None:
    report = judge_files([read_properties("f", SECRETS.encode())])
    shown = " ".join([*(repr(line.posture) for line in report.lines), *report.problems])
    assert "hunter2" not in shown
    assert "acks" in shown


def test_a_file_of_something_else_is_named_once() -> None:
    report = judge("server.port=8080 logging.level=debug")
    assert report.lines == ()
    assert report.problems == (
        "app.properties: none of its 2 names is a setting of a Kafka client",
    )
