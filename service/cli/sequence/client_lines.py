"""Lines of clients' logs about a rejected sequence: they say that it was rejected, but not the numbers.

Only the broker that rejected a batch logs the numbers. A client's line often names that broker.
Source: texts of the Java client 4.1, librdkafka 2.16, and of `Errors` and `kerr` in other clients.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from collectors.naming import counted

MARKS: Final = (
    b"OUT_OF_ORDER_SEQUENCE",
    b"OutOfOrderSequence",
    b"ut of order sequence",
    b"ut-of-order sequence",
    b"skipped sequence numbers",
    b"sequence desynchronization",
)
# The words of brokers' lines, which are parsed or counted as unreadable.
BROKERS: Final = re.compile(rb"equence number for (?:producer|new epoch)|incoming seq\. number")
_BROKERS_CUT: Final = re.compile(rb"OutOfOrderSequenceException: ?(?:(?:Out|Inv)[a-z ]{0,30})?$")
_WHERE: Final = re.compile(
    rb"(?:topic-partition (?P<java>[\w.-]{1,249}-\d{1,10})\b)"
    rb"|(?:ProduceRequest for (?P<topic>[\w.-]{1,249}) \[(?P<partition>\d{1,10})\])"
)
_BROKER: Final = re.compile(rb"desynchronization with broker (?P<broker>\d{1,10})\b")
PLACES: Final = 20
SHOWN: Final = 5


class ClientLines:
    """Counts clients' lines, and stores where their batches were rejected."""

    def __init__(self) -> None:
        self.count = 0
        self._places: dict[str, str | None] = {}  # partition -> broker, None: not known

    def see(self, lines: Sequence[bytes]) -> None:
        """Count the clients' lines among these; nearly always there is none."""
        text = b"\n".join(lines)
        if not any(mark in text for mark in MARKS):
            return
        for line in lines:
            if is_clients(line):
                self.count += 1
                self._keep_place(line)

    def remarks(self) -> Iterator[str]:
        """Yield the advice, line by line; nothing if there was no client's line."""
        if not self.count:
            return
        of = "is a client's" if self.count == 1 else "are a client's"
        yield (
            f"{counted(self.count, 'line')} {of}: the sequence numbers are in the log of the broker "
            "that led the partition then, as"
        )
        yield (
            '  "Out of order sequence number for producer ..." or "Invalid sequence number for ...", '
            "with the line before it"
        )
        for place, broker in list(self._places.items())[:SHOWN]:
            where = "the broker that led it" if broker is None else f"broker {broker}"
            yield f"  {place}: grep -B1 'sequence number for .*{place}' server.log on {where}"

    def _keep_place(self, line: bytes) -> None:
        match, broker = _WHERE.search(line), _BROKER.search(line)
        if match is None or len(self._places) == PLACES:
            return
        place = match["java"] or match["topic"] + b"-" + match["partition"]
        broker_id = None if broker is None else broker["broker"].decode()
        self._places[place.decode()] = broker_id or self._places.get(place.decode())


def is_clients(line: bytes) -> bool:
    """Whether a line reports a rejected sequence in words that no broker's log has."""
    if not any(mark in line for mark in MARKS):
        return False
    return BROKERS.search(line) is None and _BROKERS_CUT.search(line) is None
