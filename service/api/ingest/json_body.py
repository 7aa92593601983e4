"""Reads JSON records one by one: an object, an array of objects, or a sequence of them.

Shippers send all of these under the same content type, with or without newlines between them. A
record is decoded when it is needed, so that a large body is never decoded all at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from http import HTTPStatus
from typing import Any, Final

from service.api.core.problems import ProblemError

SPACE: Final = re.compile(r"[ \t\r\n]*")
DECODER: Final = json.JSONDecoder()

Record = dict[str, Any]
Placed = tuple[int, Record]  # where it begins, and the record


class Records:
    """The records of one body."""

    def __init__(self, body: bytes) -> None:
        """Bytes that are not UTF-8 are replaced: a log may contain any bytes."""
        self._text = body.decode("utf-8", "replace").removeprefix("\N{BOM}")

    def __iter__(self) -> Iterator[Placed]:
        """Yield each record with its position.

        Raises:
            ProblemError: the body is not JSON, or a record is no object; it names the line.
        """
        place = self._skip(0)
        while place < len(self._text):
            if self._text[place] == "[":
                place = yield from self._read_array(place + 1)
            else:
                place = yield from self._read_record(place)
            place = self._skip(place)

    def bad(self, place: int, why: str) -> ProblemError:
        """Return the problem of a record, with its line."""
        line = self._text.count("\n", 0, place) + 1
        return ProblemError(HTTPStatus.BAD_REQUEST, f"line {line} of the body: {why}")

    def _read_array(self, place: int) -> Generator[Placed, None, int]:
        """Yield the records of an array whose bracket was read; return the position after its end."""
        place = self._skip(place)
        if self._text[place : place + 1] == "]":
            return place + 1
        while True:
            end = yield from self._read_record(place)
            end = self._skip(end)
            mark = self._text[end : end + 1]
            if mark == "]":
                return end + 1
            if mark != ",":
                raise self.bad(end, "neither a comma nor the end of the array")
            place = self._skip(end + 1)

    def _read_record(self, place: int) -> Generator[Placed, None, int]:
        try:
            value, end = DECODER.raw_decode(self._text, place)
        except json.JSONDecodeError as exc:
            raise self.bad(exc.pos, f"not JSON: {exc.msg}") from exc
        except RecursionError as exc:
            raise self.bad(place, "nested too deeply") from exc
        except ValueError as exc:  # a number with thousands of digits
            raise self.bad(place, "not JSON that can be read") from exc
        if not isinstance(value, dict):
            raise self.bad(place, "not an object")
        yield place, value
        return end

    def _skip(self, place: int) -> int:
        """Return the position of the next character that is not white space."""
        space = SPACE.match(self._text, place)
        return place if space is None else space.end()
