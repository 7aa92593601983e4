"""A proxy that keeps records back, and delivers them when their client has given them up.

So a request is late on its way, as in a network that stalls: the client has closed its connection
meanwhile, and has gone on over another one.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping

from service.sandbox.workloads.broker_proxy import BrokerProxy, Link, is_produce


class StallingProxy(BrokerProxy):
    """Forwards everything at once, until `stall` makes it hold the requests that write records."""

    def __init__(self, ports: Mapping[int, int]) -> None:
        """Take the port of each broker by its id, all on the loopback interface."""
        self._is_stalling = threading.Event()
        self._late: list[
            tuple[int, socket.socket, bytes]
        ] = []  # the broker's port, and its request
        super().__init__(ports)

    def stall(self) -> None:
        """Keep every Produce request from now on."""
        self._is_stalling.set()

    def go_on(self) -> None:
        """Let new Produce requests through; those that were kept stay."""
        self._is_stalling.clear()

    def count_held(self, port: int) -> int:
        """Return how many requests to one broker are kept."""
        return sum(held_port == port for held_port, _, _ in self._late)

    def deliver_late(self) -> None:
        """Send what was kept to the brokers that it was for; nobody waits for the answers."""
        for _, broker, request in self._late:
            with contextlib.suppress(OSError):  # of a broker that died meanwhile
                broker.sendall(request)

    def close(self) -> None:
        """End the thread and every connection."""
        super().close()
        for _, broker, _ in self._late:
            broker.close()

    def _take(self, link: Link, request: bytes) -> None:
        if self._is_stalling.is_set() and is_produce(request):
            self._late.append((link.port, link.broker, request))
        else:
            link.broker.sendall(request)

    def _tend(self, link: Link) -> None:
        """Do nothing: what is kept waits for a call."""

    def _part(self, link: Link) -> None:
        if all(broker is not link.broker for _, broker, _ in self._late):
            super()._part(link)
