"""Lines of the transaction log: as the console consumer's formatter prints them, and as records of a dump have them.

The formatter of Kafka 4.1 and later prints its documents one after the other without a new line between them; a line of
them may be of any length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from collectors.application_log.transaction_lines import transaction_of
from collectors.tool_output.pasting import squash
from rules.facts.application_log import TransactionLogged

MOST_PARTS: Final = 40  # lines that one state may have become
MOST_LENGTH: Final = 40_000  # characters of one state
_TEXT: Final = re.compile(r"\S{1,500}?::(?:TransactionMetadata\(|\{)")
_DOCUMENT: Final = re.compile(
    r'\{\s*"key"\s*:\s*\{[^{}]{0,60}(?:"data"\s*:\s*\{\s*)?"transactionalId"|\{\s*"transactionalId"\s*:'
)
_HALF_DOCUMENT: Final = re.compile(r'\{"key":\{"(?:type|version)":"?0')
FORMS: Final = (_TEXT, _DOCUMENT, _HALF_DOCUMENT)
_VALUE: Final = re.compile(
    r'key:(?P<key>\{"type":"?0"?,"data":\{"transactionalId":.{1,2000}?\}\})payload:(?P<value>.*)'
)
_WORDS: Final = re.compile(
    r"key:(?P<key>transaction_metadata::transactionalId=.{1,500}?)payload:(?P<value>.*)"
)
_DECODER: Final = json.JSONDecoder()


class LoggedStates:
    """Reads lines of the formatter; one may have been wrapped."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._rest = ""  # a state that is not whole yet
        self._parts = 0
        self._line = 0
        self.states: list[TransactionLogged] = []
        self.cut = 0  # states that are not whole

    @property
    def is_open(self) -> bool:
        """Whether the next line may go on with a state."""
        return bool(self._rest)

    def takes(self, text: str, line: int) -> bool:
        """Read a line if it is the formatter's, or goes on with one; return whether it is."""
        is_inside = self._rest.endswith(":")
        is_new = not is_inside and any(form.match(text) for form in FORMS)
        if not is_new and not self._rest:
            return False
        if is_new:
            self.close()
            self._rest, self._line, self._parts = text, line, 0
        else:
            self._rest += squash(text)
        before = len(self.states)
        self._rest = self._read(self._rest)
        has_states = len(self.states) > before
        self._parts = 1 if has_states else self._parts + 1
        if self._rest and (self._parts > MOST_PARTS or len(self._rest) > MOST_LENGTH):
            self.close()
        return has_states or bool(self._rest)

    def close(self) -> None:
        """Give up a state that is not whole."""
        self.cut += bool(self._rest)
        self._rest = ""

    def _read(self, text: str) -> str:
        """Read the states at the beginning, and return what is not whole."""
        at = 0
        while text.startswith("{", at):
            try:
                document, end = _DECODER.raw_decode(text, at)
            except (ValueError, RecursionError):
                return text[at:]
            self._add(json.dumps(document))
            at = end
            while text.startswith(" ", at):
                at += 1
        text = text[at:]
        if _TEXT.match(text) is None:
            return ""
        if text.count("(") + text.count("{") > text.count(")") + text.count("}"):
            return text
        self._add(text)
        return ""

    def _add(self, text: str) -> None:
        state = transaction_of(text, self._source, self._line)
        if state is not None:
            self.states.append(state)


def states_of_record(rest: str, source: str, line: int) -> Iterator[TransactionLogged]:
    """Yield the state in what follows the headers of a record of `__transaction_state`, without white space."""
    match = _VALUE.fullmatch(rest)
    if match is not None:
        is_removed = match["value"] in ("<DELETE>", "null")
        text = f'{{"key":{match["key"]},"value":{"null" if is_removed else match["value"]}}}'
    elif (words := _WORDS.fullmatch(rest)) is not None:
        is_removed = words["value"] == "<DELETE>"
        name = words["key"].partition("transactionalId=")[2]
        text = f"{name}::null" if is_removed else f"{words['key']} payload: {words['value']}"
    else:
        return
    state = transaction_of(text, source, line)
    if state is not None:
        yield state
