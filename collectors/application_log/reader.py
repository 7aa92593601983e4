"""Reads an application's log line by line: stack traces, clients' lines, Kafka's formatter of transactions.

A record ends when the next one begins, so its event is returned then, or by `close`. Nearly all lines are frames of
stack traces or have nothing to do with Kafka; they cost a search for a few words. Any bytes may come: nothing here
raises, and memory is bounded, however many applications wrote into one log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, tzinfo
from itertools import islice
from typing import Final

from collectors.application_log.errors_in_line import LineErrors, errors_of
from collectors.application_log.name_reading import LIBRDKAFKA
from collectors.application_log.operations import call_in
from collectors.application_log.record import Record
from collectors.application_log.sentences import Sentence, sentence_of
from collectors.application_log.transaction_lines import MARKS, transaction_of
from collectors.application_log.unwrapping import clean, unwrap
from collectors.broker_log.parser import MARKS as BROKER_MARKS
from rules.facts.application_log import ApplicationEvent

MOST_BYTES: Final = 16_000  # of one line that are read
MOST_DOCUMENT: Final = 1_000_000  # bytes of a line, which may be a JSON document
MOST_OPEN: Final = 64  # applications whose records are open at the same time
AT_ONCE: Final = 200  # lines that are searched together
MOST_HEAD: Final = 2_000

# What a line has to hold to be read; one of these, or a code in capitals.
_MARKS: Final = (
    b"xception", b"Error", b"afka", b"Transiting", b"Local: ", b"Broker: ", b"clientId", b"Fenced", b"::NULL",
    b"::null", b"_transaction", b"TransactionMetadata", b"transaction_metadata", b"transactionStatus", b"transactional", b"fenced during",
    *(b"%%%d|" % level for level in range(8)),
)  # fmt: skip
_CODE: Final = re.compile(rb"[A-Z]_[A-Z]{2}")
_FRAME: Final = re.compile(
    rb"\s*at [\w.$/@<>-]{2,300}\(|\s*\.\.\. \d{1,5} (?:more|common frames)|\s*~?\[na:|\s+File \""
)
_GOES_ON: Final = re.compile(rb"\s*(?:Caused by|Suppressed|Wrapped by)\b|\s+\.\.\.")
_BARE: Final = re.compile(rb"\s{0,8}(?:[a-z_][\w]{0,60}\.){1,12}[A-Z]\w{1,80}(?:Exception|Error)\b")
_HEAD: Final = re.compile(
    rb"\s{0,4}(?:[\[<(]?\d{4}[-/.]\d\d|\d\d:\d\d:\d\d|\d\d[./]\d\d[./]\d{2,4}|\d\d [A-Z][a-z]{2} \d{4}|%[0-7]\||\[|"
    rb"(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL|SEVERE)\b|[A-Z][a-z]{2} [ \d]\d |\{)"
)
_KAFKAS: Final = re.compile(
    r"org\.apache\.kafka|kafka\.clients|clientId=|kafka-producer-network-thread|\bkafka\b|Kafka|kafka\.|"
    r"\bfranz-go\b|\bsarama\b|group\.instance\.id|transactional\.id|"
    # As franz-go writes errors; codes that others have too are not among them.
    r"\b(?:NOT_LEADER_\w{9,12}|LEADER_NOT_AVAILABLE|UNKNOWN_TOPIC_OR_PARTITION|OFFSET_OUT_OF_RANGE|NOT_ENOUGH_REPLICAS\w{0,13}|"
    r"REBALANCE_IN_PROGRESS|ILLEGAL_GENERATION|UNKNOWN_MEMBER_ID|\w{5,6}_MEMBER_EPOCH|(?:NOT_)?COORDINATOR\w{0,17}|"
    r"\w{3,9}_SEQUENCE_NUMBER|\w{0,8}PRODUCER_\w{2,10}|INVALID_TXN_STATE|CONCURRENT_TRANSACTIONS): [A-Z]"
)
_BAD: Final = re.compile(r"\b(?:WARN|WARNING|ERROR|FATAL|SEVERE)\b")
_OF_KAFKA: Final = re.compile(
    r"\[(?:Producer|Consumer|AdminClient) (?:clientId|instanceId)|org\.apache\.kafka\.|kafka\.(?:server|coordinator|"
    r"cluster|log|controller|network)\.|o\.a\.k(?:afka)?\.|rdkafka"
)


# Lines that `collectors.broker_log` reads.
BROKERS_OWN: Final = tuple(mark.decode() for mark in BROKER_MARKS)


def _is_of_note(text: bytes) -> bool:
    """Whether there is any word of interest; searching for each by itself is ten times as fast as for all at once."""
    has_mark = any(mark in text for mark in _MARKS)
    return has_mark or (b"_" in text and _CODE.search(text) is not None)


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Return lines by as many as are searched at once."""
    rest = iter(lines)
    while batch := list(islice(rest, AT_ONCE)):
        yield batch


class Reader:
    """Reads the lines of one source in their order."""

    def __init__(self, source: str, zone: tzinfo = UTC) -> None:
        """`zone` is that of times that name none."""
        self._source = source
        self._zone = zone
        self._open: dict[str | None, Record] = {}
        self._heads: dict[str | None, bytes] = {}  # the last line that has a time, by application
        self.lines = 0
        self.kafka_lines = 0  # that speak of Kafka, as its ordinary ones do
        self.binary_lines = 0  # with zero bytes

    def feed(self, line: bytes) -> list[ApplicationEvent]:
        """Return the events that this line completes; a line is without its newline, or with it."""
        self.lines += 1
        self.binary_lines += b"\x00" in line
        text = clean(line[:MOST_DOCUMENT])
        return list(self._read(text)) if text else []

    def feed_all(self, lines: Iterable[bytes]) -> list[ApplicationEvent]:
        """Return the events that these lines complete; lines far from any word of Kafka's cost little."""
        events: list[ApplicationEvent] = []
        for batch in _batches(lines):
            if self._open or not self._is_ordinary(batch):
                events += [event for line in batch for event in self.feed(line)]
            else:
                self.lines += len(batch)
                self._heads.clear()
                heads = (line for line in reversed(batch) if _HEAD.match(line))
                self._keep_head(None, next(heads, b""))
        return events

    def _is_ordinary(self, batch: list[bytes]) -> bool:
        """Whether nothing in these lines is of interest, nor may be once they are unwrapped."""
        text = b"\n".join(batch)
        return b"\x00" not in text and not _is_of_note(text)

    def close(self) -> list[ApplicationEvent]:
        """Return the events of the records that are still open: no more lines come."""
        return [event for name in list(self._open) for event in self._end(name)]

    def _read(self, line: bytes) -> Iterator[ApplicationEvent]:
        unwrapped = unwrap(line)
        name = unwrapped.application
        if unwrapped.is_document:
            yield from self._end(name)
        for part in unwrapped.lines:
            yield from self._take(part[:MOST_BYTES], name)
        if unwrapped.is_document:
            yield from self._end(name)
            self._heads.pop(name, None)

    def _take(self, line: bytes, name: str | None) -> Iterator[ApplicationEvent]:
        record = self._open.get(name)
        if _FRAME.match(line):
            self.kafka_lines += b"org.apache.kafka." in line
            if record is not None:
                record.add_frame(line)
            return
        if (
            b"_transaction" in line
            and call_in(line.decode(errors="replace"))
            and line[:1].isspace()
        ):
            head = self._heads.get(name, b"")[:MOST_HEAD]
            self._keep_head(name, head + b"\n" + line.strip()[:MOST_HEAD])  # above its exception
            return
        if not _is_of_note(line):
            yield from self._take_ordinary(line, name, record)
            return
        text = line.decode(errors="replace")
        if any(mark in line for mark in MARKS):
            logged = transaction_of(text, self._source, self.lines)
            if logged is not None:
                yield from self._end(name)
                self.kafka_lines += 1
                yield logged
                return
        yield from self._take_words(line, text, name, record)

    def _take_ordinary(
        self, line: bytes, name: str | None, record: Record | None
    ) -> Iterator[ApplicationEvent]:
        """Take a line without any word of interest: the head of a trace, or the rest of a message."""
        is_head = _HEAD.match(line) is not None
        if record is not None and not is_head and record.takes_text and line.strip():
            record.add_text(line.decode(errors="replace"))
        elif is_head:
            yield from self._end(name)
            self._keep_head(name, line)

    def _take_words(
        self, line: bytes, text: str, name: str | None, record: Record | None
    ) -> Iterator[ApplicationEvent]:
        sentence = sentence_of(text)
        is_named = sentence is not None and sentence.error not in _AMBIGUOUS
        is_kafkas = is_named or _is_kafkas(text)
        errors = errors_of(text, is_kafkas=is_kafkas)
        self.kafka_lines += is_kafkas or bool(errors.thrown)
        is_bare = _BARE.match(line) is not None
        belongs = record is not None and (
            _GOES_ON.match(line) is not None
            or (is_bare and record.takes_errors)
            or (
                not errors.thrown
                and _HEAD.match(line) is None
                and record.takes_words(line, sentence)
            )
        )
        if belongs and record is not None:
            record.add_line(text, errors, sentence)
            return
        yield from self._end(name)
        has_head = is_bare or not _HEAD.match(line)
        head = self._heads.pop(name, b"")[:MOST_HEAD] if has_head else b""
        begins = is_bare or _is_of_interest(text, errors, sentence)
        if not is_bare and not errors.thrown:
            self._keep_head(name, line)
        if begins:
            record = Record(source=self._source, line=self.lines, application=name)
            record.head = head.decode(errors="replace")
            record.add_line(text, errors, sentence)
            yield from self._make_room()
            self._open[name] = record

    def _make_room(self) -> Iterator[ApplicationEvent]:
        if len(self._open) >= MOST_OPEN:
            yield from self._end(next(iter(self._open)))

    def _keep_head(self, name: str | None, line: bytes) -> None:
        if len(self._heads) >= MOST_OPEN and name not in self._heads:
            self._heads.pop(next(iter(self._heads)))
        self._heads[name] = line

    def _end(self, name: str | None) -> Iterator[ApplicationEvent]:
        record = self._open.pop(name, None)
        if record is not None and _speaks_of_kafka(record):
            yield record.event(self._zone)


def _speaks_of_kafka(record: Record) -> bool:
    text = f"{record.head} {record.text}"
    if record.thrown or _is_unknown_problem(text):
        return True
    sentence = record.sentence
    return sentence is not None and (sentence.error not in _AMBIGUOUS or _is_kafkas(text))


def _is_of_interest(text: str, errors: LineErrors, sentence: Sentence | None) -> bool:
    """Whether a record begins in a line."""
    if errors.thrown:
        return True
    if sentence is None or sentence.error in _AMBIGUOUS:
        return _is_unknown_problem(text) or (sentence is not None and _is_kafkas(text))
    return True


def _is_kafkas(text: str) -> bool:
    return _KAFKAS.search(text) is not None or LIBRDKAFKA.search(text) is not None


def _is_unknown_problem(text: str) -> bool:
    """Whether a line without a known error is a warning of Kafka's all the same."""
    if any(mark in text for mark in BROKERS_OWN):
        return False
    return _OF_KAFKA.search(text) is not None and (
        _BAD.search(text) is not None or "xception" in text or LIBRDKAFKA.search(text) is not None
    )


# Words that others than Kafka have too.
_AMBIGUOUS: Final = frozenset({
    "_NOT_CONNECTED", "_RESOLVE", "_CONNECT_TASK_FAILED", "NETWORK_EXCEPTION", "_SPRING_GAVE_UP",
    "COORDINATOR_NOT_AVAILABLE", "_SPRING_STOPPED", "_DISK_FAILED", "_CORRUPT_BATCH", "SASL_AUTHENTICATION_FAILED", None,
})  # fmt: skip
