"""A proxy that spoils one request: it arrives damaged, and those behind it too early.

The chosen Produce request is held briefly, so that the client sends what it may have in flight,
and then goes on with one letter of its last record changed. The broker rejects it (CORRUPT_MESSAGE),
and finds the next ones out of order.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from service.runtime.clock import monotonic
from service.sandbox.workloads.broker_proxy import BrokerProxy, Link, is_produce

QUIET_SECONDS: Final = 0.4  # without a further request: the client has sent what it may
# Behind the last letters of the last value come one byte of its record and three of the request.
SPOILED: Final = -20


def spoil(frame: bytes) -> bytes:
    """Return a Produce request with another letter in the value of its last record."""
    spoiled = bytearray(frame)
    spoiled[SPOILED] ^= 1
    return bytes(spoiled)


class CorruptingProxy(BrokerProxy):
    """Forwards everything as it is, but for one request."""

    def __init__(self, ports: Mapping[int, int]) -> None:
        """Take the port of each broker by its id, all on the loopback interface."""
        self._is_armed = threading.Event()
        self._spoiled = 0
        super().__init__(ports)

    @property
    def spoiled(self) -> int:
        """How many requests were changed so far."""
        return self._spoiled

    def spoil_next(self) -> None:
        """Choose the next Produce request of whatever connection."""
        self._is_armed.set()

    def _take(self, link: Link, request: bytes) -> None:
        is_chosen = self._is_armed.is_set() and is_produce(request)
        if is_chosen:
            self._is_armed.clear()
        if is_chosen or link.held:
            link.held.append(request)
            link.held_at = monotonic()
        else:
            link.broker.sendall(request)

    def _tend(self, link: Link) -> None:
        if not link.held or monotonic() - link.held_at < QUIET_SECONDS:
            return
        first, *others = link.held
        link.held.clear()
        self._spoiled += 1
        link.broker.sendall(spoil(first) + b"".join(others))
