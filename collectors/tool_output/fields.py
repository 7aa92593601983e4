"""Lines of named fields, as dumps and topics have them, and how one that was wrapped is put together again."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from collectors.tool_output import dump_lines, group_sentences, topic_lines
from collectors.tool_output.pasting import squash
from rules.facts.tool_output import ToolFact

MOST_PARTS: Final = 40  # lines that one wrapped line may have become
LEAST_WIDTH: Final = 50  # bytes of a line that was wrapped
MOST_LENGTH: Final = 200_000  # characters
_REST_OF_PRODUCER: Final = re.compile(r"\d{0,13} ?(?:firstSequence:|f[irstSequnc]{0,12}$)")
_LOG_LINE: Final = re.compile(
    r"[\[(<]?\d{4}-\d\d|\d\d:\d\d|(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b"
)


@dataclass(frozen=True, slots=True)
class Form:
    """A line with named fields: how it begins, its pattern without white space, and what it says."""

    begin: re.Pattern[str]
    pattern: re.Pattern[str]
    read: Callable[[re.Match[str], int], ToolFact]
    short: re.Pattern[str] | None = None  # without its last fields
    most_parts: int = MOST_PARTS
    certain: re.Pattern[str] | None = None  # how nothing but a tool's line begins
    # Without it the line may still go on; None: it may always, and ends with the next one that does not fit.
    is_whole: Callable[[re.Match[str]], bool] | None = None


@dataclass(slots=True)
class Wrapped:
    """A line, with those below it that go on with it."""

    form: Form
    line: int
    raw: list[bytes] = field(default_factory=list)
    text: str = ""
    match: re.Match[str] | None = None  # what the pattern finds; None: it is not whole

    @property
    def short_match(self) -> re.Match[str] | None:
        """Return what the pattern without the last fields finds."""
        return None if self.form.short is None else self.form.short.fullmatch(self.text)

    @property
    def is_cut(self) -> bool:
        """Whether it is certainly a tool's, although it is not whole."""
        certain = self.form.certain
        return self.match is None and certain is not None and certain.match(self.text) is not None

    @property
    def is_whole(self) -> bool:
        """Whether nothing can follow."""
        match = self.match
        return match is not None and self.form.is_whole is not None and self.form.is_whole(match)

    def add(self, text: str, raw: bytes) -> bool:
        """Take a line if it goes on with this one; return whether it did."""
        if len(self.raw) >= self.form.most_parts or len(self.text) > MOST_LENGTH:
            return False
        if self.raw and _LOG_LINE.match(text) is not None:
            return False
        if self.short_match is not None and _REST_OF_PRODUCER.match(text) is None:
            return False
        joined = self.text + squash(text)
        match = self.form.pattern.fullmatch(joined)
        if self.match is not None and (match is None or not self._fits(text)):
            return False
        self.text, self.match = joined, match
        self.raw.append(raw)
        return True

    def _fits(self, text: str) -> bool:
        """Whether a line may go on with what ends with anything: settings, a value."""
        if self.form is RECORD:
            return not self.is_whole
        match = self.match
        if self.form is TOPIC and match is not None and match["configs"]:
            return " " not in text and len(self.raw[-1]) > LEAST_WIDTH
        return True


def _always(_match: re.Match[str]) -> bool:
    return True


def _has_validity(match: re.Match[str]) -> bool:
    return match["valid"] is not None


def _is_read(match: re.Match[str]) -> bool:
    """Whether a record has all that may be of interest: the marker of a control record, a decoded key and value."""
    rest = match["rest"]
    is_cut = bool(rest) and any(form.startswith(rest) for form in DECODED)
    if is_cut or rest.startswith(DECODED_WORDS):
        return False
    if rest.startswith(DECODED):
        is_there = "payload:" in rest and not rest.endswith("payload:")
        return is_there and rest.count("{") == rest.count("}")
    if CONTROL_SIZES in match[0]:
        return match["marker"] is not None or rest.startswith(("key:", "payload:"))
    return True


CONTROL_SIZES: Final = "keySize:4valueSize:6"
# What a decoder prints: words up to Kafka 4.0, JSON from then on.
DECODED_WORDS: Final = ("key:transaction_metadata::", "key:offset_commit::", "key:group_metadata::")
DECODED: Final = ('key:{"type"', *DECODED_WORDS)
BATCH: Final = Form(
    re.compile(r"baseOffset:"), dump_lines.BATCH, dump_lines.batch_of,
    certain=re.compile(r"baseOffset:\d+lastOffset:\d"), is_whole=_has_validity,
)  # fmt: skip
RECORD: Final = Form(
    re.compile(r"\| ?offset:"), dump_lines.RECORD, dump_lines.record_of,
    certain=re.compile(r"\|offset:\d+(?:CreateTime|LogAppendTime):"), is_whole=_is_read,
)  # fmt: skip
PRODUCER: Final = Form(
    re.compile(r"producerId: ?\d"), dump_lines.PRODUCER, dump_lines.producer_of,
    short=dump_lines.BARE_PRODUCER, certain=re.compile(r"producerId:\d+producerEpoch:\d+coordinatorEpoch:"),
    is_whole=_always,
)  # fmt: skip
ABORT: Final = Form(
    re.compile(r"version: ?\d+ producerId:"), dump_lines.ABORT, dump_lines.abort_of,
    certain=re.compile(r"version:\d+producerId:\d+firstOffset:"), is_whole=_always,
)  # fmt: skip
FILE: Final = Form(
    re.compile(r"Dumping(?: \S|$)"), dump_lines.FILE, dump_lines.file_of,
    most_parts=3, is_whole=_always,
)  # fmt: skip
SENTENCE: Final = Form(
    group_sentences.BEGIN, group_sentences.SENTENCE, group_sentences.sentence_of,
    most_parts=3, is_whole=_always,
)  # fmt: skip
TOPIC: Final = Form(
    re.compile(r"Topic:(?: ?[\w.-]|\s|$)"), topic_lines.LINE, topic_lines.row_of,
    certain=re.compile(r"Topic:[\w.-]+?(?:Partition:\d+Leader:(?:none|\d)|(?:TopicId:[\w-]+)?PartitionCount:\d)"),
)  # fmt: skip
FORMS: Final = (BATCH, RECORD, PRODUCER, ABORT, FILE, TOPIC, SENTENCE)


def begin(text: str, raw: bytes, line: int) -> Wrapped | None:
    """Return a line with named fields that begins here; None: none does."""
    form = next((form for form in FORMS if form.begin.match(text)), None)
    if form is None:
        return None
    wrapped = Wrapped(form, line)
    wrapped.add(text, raw)
    return wrapped
