"""One record of a log: the line with its time, the exceptions below it, and what their frames were doing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Final

from collectors.application_log.errors_in_line import (
    WEAK,
    LineErrors,
    framework_in,
)
from collectors.application_log.name_reading import client_in, names_of, part_in
from collectors.application_log.operations import (
    TRANSACTIONAL,
    call_in,
    operation_of_frame,
    operation_of_text,
    part_of,
)
from collectors.application_log.sentences import Sentence, goes_on
from collectors.broker_log.wording.times import time_of
from rules.facts.application_log import (
    ApplicationError,
    Client,
    Framework,
    Operation,
    Outcome,
    Part,
    Release,
    Thrown,
)

MOST_ERRORS: Final = 12  # of one chain of causes
MOST_APPENDED: Final = 3
MOST_TEXT: Final = 6_000  # characters
SHOWN: Final = 240
ABORTABLE: Final = frozenset({"TRANSACTION_ABORTABLE"})  # its class says what can be done
_JAR: Final = re.compile(rb"kafka-clients-(?P<major>\d{1,3})\.(?P<minor>\d{1,3})\.")
_EPOCH: Final = re.compile(r"%[0-7]\|(?P<seconds>\d{9,10}(?:\.\d{1,6})?)\|")


@dataclass(slots=True, kw_only=True)
class Record:
    """A record while its lines come; bounded."""

    source: str
    line: int
    application: str | None
    head: str = ""  # the line with the time, where it is an ordinary one
    text: str = ""  # the lines that name errors
    sentence: Sentence | None = None
    thrown: list[Thrown] = field(default_factory=list)
    framework: Framework | None = None
    outcome: Outcome | None = None
    has_java: bool = False
    has_frames: bool = False
    appended: int = 0  # lines that went on with a message
    operation: Operation | None = None  # of the outermost frame that says one
    part: Part | None = None
    release: Release | None = None

    def add_line(self, text: str, errors: LineErrors, sentence: Sentence | None) -> None:
        """Take a line that names errors, or holds a known sentence."""
        if len(self.text) < MOST_TEXT:
            self.text += ("\n" if self.text else "") + text[: MOST_TEXT - len(self.text)]
        if self.sentence is None:
            self.sentence = sentence
        elif sentence is not None:
            errors = with_words(errors, sentence)
        self.outcome = self.outcome or errors.outcome
        self.has_java = self.has_java or errors.has_java
        self.framework = self.framework or errors.framework
        for each in errors.thrown:
            last = self.thrown[-1] if self.thrown else None
            is_repeated = last is not None and (last.error, last.text) == (each.error, each.text)
            if not is_repeated and len(self.thrown) < MOST_ERRORS:
                self.thrown.append(each)

    @property
    def takes_text(self) -> bool:
        """Whether a line may go on with the message: a few do, before any frame."""
        return not self.has_frames and self.appended < MOST_APPENDED

    def takes_words(self, line: bytes, sentence: Sentence | None) -> bool:
        """Whether a line without an error goes on with this: with its empty message, or in the same words."""
        if sentence is None or not self.takes_text:
            return False
        has_no_message = bool(self.thrown) and not self.thrown[-1].text and line[:1].isspace()
        is_same = self.sentence is not None and self.sentence.error == sentence.error
        return has_no_message or (is_same and not self.thrown)

    @property
    def takes_errors(self) -> bool:
        """Whether an exception may follow that the line is about: a client's verdict names its error itself."""
        sentence = self.sentence
        is_verdict = sentence is not None and sentence.outcome in (Outcome.ABORTABLE, Outcome.FATAL)
        return not self.has_frames and not (is_verdict and self.thrown)

    def add_text(self, text: str) -> None:
        """Take the rest of a message that was broken over two lines."""
        self.appended += 1
        if len(self.text) < MOST_TEXT:
            self.text += f" {text.strip()}"
        if self.thrown:
            last = self.thrown[-1]
            joined = f"{last.text} {text.strip()}"[:SHOWN]
            operation = last.operation or operation_of_text(joined)
            self.thrown[-1] = replace(last, text=joined, operation=operation)

    def add_frame(self, line: bytes) -> None:
        """Take a frame of the stack trace of the last exception."""
        self.has_frames = True
        if b"afka" not in line:
            return
        self.release = self.release or _release_of(line)
        self.framework = self.framework or framework_in(line.decode(errors="replace"))
        operation, part = operation_of_frame(line)
        self.part = self.part or part
        if operation is None:
            return
        self.operation = self.operation or operation
        if self.thrown and self.thrown[-1].operation is None:
            self.thrown[-1] = replace(self.thrown[-1], operation=operation)

    def event(self, zone: tzinfo) -> ApplicationError:
        """Return what the record says."""
        whole = f"{self.head}\n{self.text}" if self.head else self.text
        sentence, chain = self.sentence, self._chain()
        if sentence is not None and sentence.error is not None:
            chain = _with_sentence(chain, sentence, sentence.error)
        names = names_of(whole, self.application)
        client = client_in(whole, has_java=self.has_java or self.has_frames)
        client = (None if sentence is None else sentence.client) or client
        operation = self._operation(whole)
        part = part_in(whole) or self.part or part_of(operation) or (None if sentence is None else sentence.part)  # fmt: skip
        is_transactional = _is_transactional(whole, names.transactional_id, operation, client)
        return ApplicationError(
            source=self.source,
            line=self.line,
            at=self._at(zone),
            client=client,
            part=part,
            outcome=self._outcome(whole, chain, operation),
            chain=chain,
            framework=self.framework or framework_in(whole),
            operation=operation,
            is_transactional=is_transactional
            or (True if _names_a_transaction(chain) else is_transactional),
            release=self.release,
            names=names,
            text=(self.text or self.head).split("\n", 1)[0].strip()[:SHOWN],
        )

    def _chain(self) -> tuple[Thrown, ...]:
        """Return the errors, with the call above them where they say only that a transaction was to be ended."""
        call = call_in(self.head) or call_in(self.text)
        is_of_ending = call in (Operation.COMMIT, Operation.ABORT)
        return tuple(
            replace(each, operation=call)
            if is_of_ending and each.operation is Operation.END_TXN
            else each
            for each in self.thrown
        )

    def _at(self, zone: tzinfo) -> datetime | None:
        of_head = time_of(self.head, zone) if self.head else None
        return of_head or time_of(self.text, zone) or _epoch_time(self.text)

    def _operation(self, whole: str) -> Operation | None:
        of_sentence = None if self.sentence is None else self.sentence.operation
        of_first = self.thrown[0].operation if self.thrown else None
        operation = of_sentence or of_first or self.operation or operation_of_text(whole)
        is_vague = operation in (None, Operation.END_TXN)
        call = call_in(self.head) or call_in(self.text) if is_vague else None
        return call or operation

    def _outcome(
        self, whole: str, chain: tuple[Thrown, ...], operation: Operation | None
    ) -> Outcome:
        """Return what the client does now: its own words count, whatever the error."""
        if "|FATAL|" in whole or "Fatal error:" in whole:
            return Outcome.FATAL
        if self.sentence is not None and self.sentence.outcome is not Outcome.RAISED:
            return self.sentence.outcome
        if self.outcome is not None:
            return self.outcome
        if operation is not Operation.ABORT and any(each.error in ABORTABLE for each in chain):
            return Outcome.ABORTABLE
        is_trace = self.has_frames or self.text.lstrip().startswith(("org.", "Caused", "java."))
        return Outcome.RETRYING if goes_on(whole) and not is_trace else Outcome.RAISED


def with_words(errors: LineErrors, sentence: Sentence) -> LineErrors:
    """Return the errors of a line below the first one, with that of its words where its class says nothing."""
    says_more = sentence.error is not None and all(each.error in WEAK for each in errors.thrown)
    if not says_more or sentence.error is None:
        return errors
    said = Thrown(error=sentence.error, operation=sentence.operation)
    verdict = sentence.outcome if sentence.outcome in (Outcome.ABORTABLE, Outcome.FATAL) else None
    return replace(errors, thrown=(*errors.thrown, said), outcome=errors.outcome or verdict)


def _epoch_time(text: str) -> datetime | None:
    """Return the time of a line of librdkafka, in seconds since 1970."""
    match = _EPOCH.search(text[:SHOWN])
    return None if match is None else datetime.fromtimestamp(float(match["seconds"]), UTC)


def _with_sentence(chain: tuple[Thrown, ...], sentence: Sentence, error: str) -> tuple[Thrown, ...]:
    """Return the errors with that of the sentence: around the others, or instead of a bare one."""
    if any(each.error == error for each in chain):
        return chain
    said = Thrown(error=error, operation=sentence.operation)
    if sentence.is_decisive:
        return (said, *chain)
    return (*chain, said) if all(each.error in WEAK for each in chain) else chain


def _release_of(frame: bytes) -> Release | None:
    """Return the release of the Java client by the jar that a frame names."""
    match = _JAR.search(frame)
    return None if match is None else (int(match["major"]), int(match["minor"]))


def _names_a_transaction(chain: tuple[Thrown, ...]) -> bool:
    return any(each.error in ABORTABLE or each.error == "TRANSACTION_ABORTED" for each in chain)


def _is_transactional(
    text: str, transactional_id: str | None, operation: Operation | None, client: Client | None
) -> bool | None:
    if "idempotence PID" in text and "TXNERR" not in text:
        return False
    if (
        transactional_id is not None
        or operation in TRANSACTIONAL
        or "TXNERR" in text
        or "exactly_once" in text
    ):
        return True
    is_java_producer = client is Client.JAVA and "[Producer clientId=" in text
    return False if is_java_producer else None
