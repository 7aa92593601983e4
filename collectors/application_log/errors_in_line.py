"""The errors in one line: exceptions by their classes, codes, and librdkafka's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from collectors.application_log.error_names import CODES, canonical, name_of_class, name_of_text
from collectors.application_log.operations import operation_of_text
from rules.facts.application_log import Framework, Outcome, Thrown

SHOWN: Final = 300  # characters of a message

_CLASS: Final = re.compile(
    r"(?P<package>(?:[a-zA-Z_]\w{0,60}[./]){0,12})(?P<class>[A-Z]\w{1,80}(?:Exception|Error)|"
    r"ProducerFenced|(?<=aiokafka\.errors\.)[A-Z]\w{1,80}|(?<=kafka\.errors\.)[A-Z]\w{1,80})(?![\w.]|\((?!['\"]))"
    r"(?P<colon>(?:`\d\[[^\]\n]{0,200}\])?(?:: ?|\())?"
)
_KAFKA_ERROR: Final = re.compile(
    r"KafkaError\{(?P<flags>[A-Z_,]{0,60}?)code=(?P<code>\w{1,60}),val=(?P<value>-?\d{1,5}),str=\"?(?P<text>[^\n]{0,600})"
)
_WORDS: Final = re.compile(r"\b(?P<where>Local|Broker): (?P<text>[^\n]{1,600})")
_CODE: Final = re.compile(r"(?<![\w.])_?[A-Z]{2,20}(?:_[A-Z]{2,20}){0,8}(?!\w|\.\w)")
_SEQUENCE: Final = re.compile(
    r"(?P<first>\d{1,10}) \(incoming seq\. number\), (?P<last>-?\d{1,10}) \(current end"
)
HALF: Final = 1 << 30  # sequences wrap: what is less than this before the last one is behind it
_PYTHON: Final = re.compile(r"\[Error (?P<number>\d{1,3})\] (?P<class>\w{1,80}?Error)")
_NESTED: Final = re.compile(
    r"; nested exception is|\n| due to (?=org\.)|: (?=org\.apache\.kafka\.)"
)

# Errors of clients alone, whose names are of Kafka even without their package.
OF_CLIENTS: Final = frozenset({
    "COMMIT_FAILED", "RETRIABLE_COMMIT_FAILED", "TRANSACTION_ABORTED", "NO_OFFSET_FOR_PARTITION",
    "LOG_TRUNCATION", "BUFFER_EXHAUSTED", "RECORD_DESERIALIZATION", "TASK_MIGRATED", "TASK_CORRUPTED",
    "OUT_OF_ORDER_SEQUENCE_NUMBER", "FLINK_KAFKA", "NO_BROKERS_AVAILABLE", "KAFKA",
    "UNKNOWN_SERVER_ERROR", "KAFKA_TXN_REQUIRES_ABORT", "KAFKA_RETRIABLE", "MISSING_SOURCE_TOPIC",
    "PRODUCER_FENCED", "INVALID_PRODUCER_ID_MAPPING",
})  # fmt: skip
# Of .NET: the class says what can be done, and the message has the error.
_OUTCOMES: Final = {"KAFKA_TXN_REQUIRES_ABORT": Outcome.ABORTABLE}
_FRAMEWORKS: Final = (
    ("kafka.streams.", Framework.STREAMS),
    ("-StreamThread-", Framework.STREAMS),
    ("kafka.connect.", Framework.CONNECT),
    (".flink.", Framework.FLINK),
    ("o.a.f.", Framework.FLINK),
    ("KafkaCommitter", Framework.FLINK),
    ("springframework.", Framework.SPRING),
)


@dataclass(frozen=True, slots=True)
class LineErrors:
    """What a line names, in its order."""

    thrown: tuple[Thrown, ...]
    framework: Framework | None = None
    outcome: Outcome | None = None
    has_java: bool = False


NOTHING: Final = LineErrors(())


def errors_of(text: str, *, is_kafkas: bool) -> LineErrors:
    """Return the errors that a line names; `is_kafkas`: by other words it is a line about Kafka."""
    thrown: list[Thrown] = []
    framework: Framework | None = None
    outcome: Outcome | None = None
    has_java = False
    has_class = any(words in text for words in ("xception", "Error", "errors.", "Fenced"))
    matches = list(_CLASS.finditer(text)) if has_class else []
    for place, match in enumerate(matches):
        end = matches[place + 1].start() if place + 1 < len(matches) else len(text)
        message = _message(text[match.end() : end]) if match["colon"] else ""
        package, simple = match["package"], match["class"]
        framework = framework or framework_in(package)
        name = name_of_class(simple)
        outcome = outcome or _OUTCOMES.get(name)
        if _is_kafkas(package, name, message, is_kafkas=is_kafkas):
            has_java = has_java or package.startswith("org.apache.kafka")
            name = _of_reader(_by_sequence(name, message), message)
            thrown.append(Thrown(error=name, text=message, operation=operation_of_text(message), class_name=simple))  # fmt: skip
    others, fatal = _others(text, is_kafkas=is_kafkas or bool(thrown))
    if all(each.error in WEAK for each in thrown):
        thrown += others
    return LineErrors(tuple(thrown), framework, outcome or fatal, has_java)


# Classes that say nothing of their own.
WEAK: Final = frozenset({
    "KAFKA", "KAFKA_TXN_REQUIRES_ABORT", "KAFKA_RETRIABLE", "KAFKA_PRODUCER", "PRODUCE", "CONSUME", "STREAMS",
    "CONNECT", "FLINK_KAFKA", "RETRIABLE", "LISTENER_EXECUTION_FAILED", "DATA",
    "TOPIC_PARTITION", "TOPIC_PARTITION_OFFSET",  # of .NET
})  # fmt: skip


def _by_sequence(name: str, message: str) -> str:
    """Return what a broker's line about a sequence says more than its class: a repeated batch, or a beginning."""
    if name != "OUT_OF_ORDER_SEQUENCE_NUMBER":
        return name
    if "earliest seen" in message:
        return "_OVERTAKEN"
    if "Expected sequence 0" in message:
        return "_STATE_FORGOTTEN"
    match = _SEQUENCE.search(message)
    if match is None or int(match["last"]) < 0:
        return name
    ahead = (int(match["first"]) - int(match["last"])) % (1 << 31)
    return "_REPEATED_BATCH" if ahead == 0 or ahead > HALF else name


def _of_reader(name: str, message: str) -> str:
    """Return that a record could not be read: one class stands for that and for a record that could not be written."""
    is_reader = name == "SERIALIZATION" and ("eserializ" in message or "magic byte" in message)
    return "DESERIALIZATION" if is_reader else name


def framework_in(name: str) -> Framework | None:
    """Return the framework that a class belongs to, by its package."""
    return next((framework for words, framework in _FRAMEWORKS if words in name), None)


def _message(rest: str) -> str:
    cut = _NESTED.search(rest)
    return (rest if cut is None else rest[: cut.start()]).strip()[:SHOWN]


def _is_kafkas(package: str, name: str, message: str, *, is_kafkas: bool) -> bool:
    if package:
        return "kafka" in package.lower()
    if name in CODES or name in OF_CLIENTS:
        return True
    return operation_of_text(message) is not None and (is_kafkas or name == "TIMEOUT")


def _others(text: str, *, is_kafkas: bool) -> tuple[list[Thrown], Outcome | None]:
    """Return the errors that a line names otherwise than by a class: the first kind that is there."""
    thrown = list(_kafka_errors(text))
    if thrown:
        is_fatal = any("FATAL" in match["flags"] for match in _KAFKA_ERROR.finditer(text))
        return thrown, Outcome.FATAL if is_fatal else None
    thrown = list(_in_words(text)) or list(_python(text))
    if not thrown or all(each.error == "_FATAL" for each in thrown):
        thrown += _codes(text) if is_kafkas else []
    return thrown, None


def _kafka_errors(text: str) -> Iterator[Thrown]:
    for match in _KAFKA_ERROR.finditer(text):
        message = match["text"].split('"', 1)[0]
        name = canonical(match["code"])
        yield Thrown(error=name, text=message[:SHOWN], operation=operation_of_text(message))
        inner = next(_in_words(message), None)
        if inner is not None and name in _ECHOES and inner.error != name:
            yield inner


# Codes whose text may name the error behind it.
_ECHOES: Final = frozenset({"_FATAL", "_AUTO_OFFSET_RESET"})


def _in_words(text: str) -> Iterator[Thrown]:
    for match in _WORDS.finditer(text):
        name = name_of_text(match["text"], is_local=match["where"] == "Local")
        if name is not None:
            yield Thrown(error=name, text=match["text"][:SHOWN], operation=operation_of_text(text))
        inner = _WORDS.search(match["text"])
        if inner is not None:
            yield from _in_words(match["text"])


def _python(text: str) -> Iterator[Thrown]:
    for match in _PYTHON.finditer(text):
        yield Thrown(
            error=name_of_class(match["class"]), text=text[match.end() :].strip(": ")[:SHOWN]
        )


def _codes(text: str) -> list[Thrown]:
    names = dict.fromkeys(
        canonical(match[0]) for match in _CODE.finditer(text) if match[0] in CODES
    )
    return [Thrown(error=name, operation=operation_of_text(text)) for name in names][:4]
