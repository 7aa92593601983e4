"""Reads files of properties as `java.util.Properties` does; those that librdkafka's applications have are a part of it.

Comments begin with # or !, a line that ends with a backslash goes on in the next one, a name ends at the first =, : or
white space, and escapes as of Unicode characters are resolved. Java reads ISO 8859-1; UTF-8 is read too. What is malformed is a problem, and the
rest is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rules.facts.client_config import ClientProperty, PropertiesFile

MOST_BYTES: Final = 1_000_000
MOST_PROBLEMS: Final = 20
_BLANK: Final = " \t\f"
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_NAME: Final = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_BAD_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})")
_CHARACTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(source: str, raw: bytes) -> PropertiesFile:
    """Return what a file holds."""
    if b"\x00" in raw:
        problem = f"{source} is no text: it has zero bytes"
        return PropertiesFile(source=source, properties=(), problems=(problem,))
    problems = []
    if len(raw) > MOST_BYTES:
        problems.append(f"{source} is larger than {MOST_BYTES:,} bytes: the rest was not read")
    properties: list[ClientProperty] = []
    for number, line in _logical_lines(_text(raw[:MOST_BYTES])):
        if _BAD_ESCAPE.search(line):
            problems.append(f"{source}:{number}: malformed \\uXXXX; Java rejects the whole file")
            continue
        properties.append(_property(line, number))
    problems += _repeated(source, properties)
    return PropertiesFile(
        source=source, properties=tuple(properties), problems=tuple(problems[:MOST_PROBLEMS])
    )


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines that hold a setting, each joined with those that it goes on in, and the number of its first one."""
    begin, joined = 0, ""
    for number, natural in enumerate(_LINE_END.split(text), start=1):
        line = natural.lstrip(_BLANK)
        if not begin and (not line or line[0] in "#!"):
            continue
        begin = begin or number
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        joined += line[:-1] if goes_on else line
        if not goes_on:
            yield begin, joined
            begin, joined = 0, ""
    if joined:
        yield begin, joined


def _property(line: str, number: int) -> ClientProperty:
    end = _NAME.match(line)
    at = 0 if end is None else end.end()
    separator = _SEPARATOR.match(line, at)
    value = line[at if separator is None else separator.end() :]
    return ClientProperty(name=_unescape(line[:at]), value=_unescape(value).strip(), line=number)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    escaped = match[1]
    return chr(int(escaped[1:], 16)) if len(escaped) == 5 else _CHARACTERS.get(escaped, escaped)


def _repeated(source: str, properties: list[ClientProperty]) -> Iterator[str]:
    """Yield a sentence for each setting that comes twice with different values."""
    before: dict[str, ClientProperty] = {}
    for each in properties:
        first = before.get(each.name)
        if first is not None and first.value != each.value:
            yield f"{source}:{each.line}: overrides line {first.line}, which sets the same name"
        before[each.name] = each
