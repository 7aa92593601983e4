"""The names and numbers in a line: whose it is, and about what.

Only lines that hold an error are searched, and only so much of each; every pattern is bounded.
"""

from __future__ import annotations

import re
from typing import Final

from rules.facts.application_log import Client, Names, Part

_NAME: Final = r"[^\s,;\]})'\"|]{1,249}"
_TOPIC: Final = r"[a-zA-Z0-9._-]{1,249}"

_CLIENT_ID: Final = (
    re.compile(rf"clientId[=:] ?(?P<id>{_NAME})"),
    re.compile(r"\[[\w-]{0,40} \| (?P<id>[\w.-]{1,249})\]"),  # a thread that a layout has cut
    re.compile(r"kafka-producer-network-thread \| (?P<id>[^\]\s]{1,249})"),
    re.compile(r"client\.id[=:] ?'?(?P<id>[^\s,;\]})'\"|]{1,249})"),
)
# librdkafka's name of an instance: its client id, and which of the process it is.
_HANDLE: Final = re.compile(
    r"[|\[](?P<handle>(?P<id>[^\[\]|\s]{1,200})#(?:producer|consumer)-\d{1,6})[|\]]"
)
# Words that follow "transactional id" in a sentence.
_NO_ID: Final = (
    r"(?!(?:which|of|for|is|has|as|and|to|in|with|was|already|authorization|or|that|from|the|fences|at|on|"
    r"expired|configured|due|by|not|are|mapping|this)\b)"
)
_TRANSACTIONAL_ID: Final = (
    re.compile(rf"transactionalId[=:] ?['\"]?(?P<id>{_NAME})"),
    re.compile(rf"\b(?:txn?_?[iI]d|transactional_id)\"?[=:] ?['\"]?(?P<id>{_NAME})"),
    re.compile(rf"exception while committing (?P<id>{_NAME})"),
    re.compile(rf"Sending (?P<id>{_NAME}?)'s transaction marker"),
    re.compile(rf"transactional\.id[=:]? ?['\"]?{_NO_ID}(?P<id>{_NAME})"),
    re.compile(rf"[Tt]ransactional(?:Id|[ _]id):? ['\"]?{_NO_ID}(?P<id>{_NAME})"),
)
_NO_GROUP: Final = r"(?!(?:error|coordinator|membership|member|is|has|was|id|with|due|that|and|or|metadata|command)\b)"
_GROUP: Final = (
    re.compile(rf"groupId[=:] ?'?(?P<id>{_NAME})"),
    re.compile(rf"group\.id[=:] ?'?(?P<id>{_NAME})"),
    re.compile(rf"[Gg]roup \"(?P<id>{_NAME})\""),
    re.compile(rf"Group (?P<id>{_NAME}) not found"),
    re.compile(rf"(?:for|in|rebalance|to|access|consumer) group:? {_NO_GROUP}(?P<id>{_NAME})"),
)
_PARTITION: Final = (
    re.compile(rf"(?:topic-partition|TopicPartition|[Pp]artitions?|record\(s\) for|batches remaining for|requesting metadata from brokers for) [\[{{(]?(?P<topic>{_TOPIC})-(?P<partition>\d{{1,9}})(?![\w.])"),
    re.compile(rf"(?<![\w:.-])(?P<topic>{_TOPIC})\"? \[(?P<partition>\d{{1,9}})\]"),
    re.compile(rf"[\[{{](?P<topic>{_TOPIC})-(?P<partition>\d{{1,9}})="),
    re.compile(rf"topic[=: ]['\"]?(?P<topic>{_TOPIC})['\"]?,? partition[=: ](?P<partition>\d{{1,9}})"),
    re.compile(rf"partition (?P<partition>\d{{1,9}}) of topic (?P<topic>{_TOPIC})", re.IGNORECASE),
    re.compile(rf"Topic (?P<topic>{_TOPIC})(?P<partition>) not present"),
    re.compile(rf"\{{(?P<topic>{_TOPIC})(?P<partition>)=[A-Z_]{{5,60}}\}}"),
    re.compile(rf"to access topics: \[(?P<topic>{_TOPIC})(?P<partition>)"),
    re.compile(rf"(?:sending record to topic|topic ['\"]?)(?<=[ '\"])(?P<topic>{_TOPIC})(?P<partition>)(?=[ ,'\"])"),
    re.compile(rf"(?:for|in) (?P<topic>{_TOPIC})-(?P<partition>\d{{1,9}})(?: is|:)"),
)  # fmt: skip
_PRODUCER: Final = (
    re.compile(r"PID\{Id:(?P<id>\d{1,19}),Epoch:(?P<epoch>\d{1,5})"),
    re.compile(r"ProducerId set to (?P<id>\d{1,19}) with epoch (?P<epoch>\d{1,5})"),
    re.compile(r"[Pp]roducer(?: ?[iI]d)?[= ](?P<id>\d{1,19})(?:,? (?:and )?(?:producer )?epoch[= ](?P<epoch>\d{1,5}))?"),
)  # fmt: skip
_BROKER: Final = re.compile(r"(?:broker|node|[Bb]roker id|broker=)[ =:]?(?P<id>\d{1,9})\b")
_OFFSET: Final = re.compile(r"(?:at )?offset[ =](?P<id>\d{1,19})\b")
_THREAD: Final = (
    re.compile(r"(?P<id>[\w.-]{1,200}-StreamThread-\d{1,4})"),
    re.compile(r"\[(?P<id>task-thread-[\w.:-]{1,200})\]"),
    re.compile(r"\[(?P<id>[A-Za-z][\w.#$@:/-]{0,80})\]"),
)
_NO_THREAD: Final = (
    "Producer",
    "Consumer",
    "Connection",
    "Runner",  # kafkajs writes its parts so
    "thrd:",
)  # librdkafka names its threads alike in all instances
_PARTS: Final = (
    (re.compile(r"\[(?:Producer|Transactional producer) |#producer-\d|kafka\.clients\.producer|kafka-producer"), Part.PRODUCER),
    (re.compile(r"\[Consumer |#consumer-\d|kafka\.clients\.consumer|groupId="), Part.CONSUMER),
    (re.compile(r"\[AdminClient |kafka-admin-client|kafka\.clients\.admin"), Part.ADMIN),
)  # fmt: skip
_BROKERS: Final = re.compile(
    r"\[(?:ReplicaManager|Broker|GroupCoordinator|TransactionCoordinator|KafkaServer|BrokerServer|"
    r"QuorumController|ReplicaFetcher|Transaction State Manager|TransactionMarkerChannelManager|KafkaApi)"
    r"[ -](?:broker=|id=|replicaId=)?\d|kafka\.(?:server|coordinator|cluster|controller|log|storage)\.[\w.]{0,60}[A-Z]|"
    r"Transaction Marker Request Completion Handler"
)
LIBRDKAFKA: Final = re.compile(
    r"rdkafka|%[0-7]\|\d|KafkaError\{|cimpl\.Kafka|Confluent\.Kafka|Local: |Broker: |#(?:producer|consumer)-\d|\[thrd:|"
    r"TXNERR|in state (?:Abortable|Fatal)Error|\(idempotence state "
)
PYTHON: Final = re.compile(r"aiokafka|kafka\.errors\.|kafka-python|<Broker|\[Error \d{1,3}\] ")


def names_of(text: str, application: str | None) -> Names:
    """Return the names in a record: its lines joined, the line with the time first."""
    place = _first(_PARTITION, text)
    producer = _first(_PRODUCER, text)
    partition = None if place is None else place["partition"]
    handle = _HANDLE.search(text)
    epoch = None if producer is None else producer["epoch"]
    return Names(
        application=application,
        thread=_thread(text),
        client_id=_id(_CLIENT_ID, text) if handle is None else handle["id"],
        handle=None if handle is None else handle["handle"],
        transactional_id=_id(_TRANSACTIONAL_ID, text),
        group=_id(_GROUP, text),
        topic=None if place is None else place["topic"],
        partition=int(partition) if partition else None,
        producer_id=None if producer is None else int(producer["id"]),
        producer_epoch=int(epoch) if epoch else None,
        broker=_number(_BROKER, text),
        offset=_number(_OFFSET, text),
    )


def part_in(text: str) -> Part | None:
    """Return the client that a line speaks of, None if it does not say."""
    return next((part for pattern, part in _PARTS if pattern.search(text)), None)


def client_in(text: str, *, has_java: bool) -> Client | None:
    """Return the library that wrote a line, or a broker; None if it does not say."""
    if _BROKERS.search(text):
        return Client.BROKER
    if PYTHON.search(text):
        return Client.PYTHON
    if LIBRDKAFKA.search(text):
        return Client.LIBRDKAFKA
    if "Traceback (most recent" in text:
        return Client.PYTHON
    return Client.JAVA if has_java or "clientId=" in text else None


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> re.Match[str] | None:
    return next((match for pattern in patterns if (match := pattern.search(text))), None)


def _id(patterns: tuple[re.Pattern[str], ...], text: str) -> str | None:
    match = _first(patterns, text)
    value = None if match is None else match["id"].rstrip(".:=")
    return None if value in (None, "", "null", "None") else value


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return None if match is None else int(match["id"])


def _thread(text: str) -> str | None:
    head = text[:300]
    for pattern in _THREAD:
        for match in pattern.finditer(head):
            if not match["id"].isupper() and not match["id"].startswith(_NO_THREAD):
                return match["id"]
    return None
