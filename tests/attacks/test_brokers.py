"""A broker that answers to do harm, also before anybody is authenticated, beside an honest one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Final

import psutil
import pytest

from collectors.wire.api import LIST_GROUPS, METADATA
from collectors.wire.connection import Address
from service.runtime.clock import wait_until
from tests.folders import new_folder
from tests.integration.peer import Peer, Script, listening
from tests.integration.serve.served import SEE_SECONDS, Document, Served, Start, end_processes
from tests.integration.test_hostile_broker import (
    MOST,
    answering,
    groups_answer,
    metadata_answer,
    with_brokers,
)

HOSTILE: Final = "groups coordinated by broker 2"
ROUND_SECONDS: Final = 8.0  # two requests that time out
MEGABYTES: Final = 400  # of the service, whatever is announced


class Cluster:
    """Two brokers, of which one does what a test says."""

    def __init__(self, stack: ExitStack) -> None:
        self._script: Script | None = None  # None: it is honest
        self._peers: list[Peer] = []
        self._places: dict[int, Address] = {}
        honest = {METADATA.key: metadata_answer(), LIST_GROUPS.key: groups_answer()}
        self.honest = answering(partial(with_brokers, honest, self._places))
        for broker_id, script in ((1, self.honest), (2, self._hostile)):
            self._places[broker_id] = stack.enter_context(listening(script))

    @property
    def bootstrap(self) -> str:
        return str(self._places[1])

    def turn(self, script: Script | None) -> None:
        """Let the one broker do something else on every connection, None: be honest."""
        self._script = script
        peers, self._peers = self._peers, []
        for peer in peers:
            with suppress(OSError):
                peer.hang_up()

    def _hostile(self, peer: Peer) -> None:
        self._peers.append(peer)
        (self._script or self.honest)(peer)

    def answering_groups(self, body: bytes) -> Script:
        """Return a script that is honest but for the list of groups."""
        answers = {METADATA.key: metadata_answer(), LIST_GROUPS.key: body}
        return answering(partial(with_brokers, answers, self._places))


@pytest.fixture(scope="module")
def parts() -> Iterator[tuple[Cluster, Served]]:
    with ExitStack() as stack:
        folder: Path = new_folder()
        hostile = Cluster(stack)
        settings = {"KAFKA__REQUEST_TIMEOUT_SECONDS": "2"}
        start = Start(
            bootstrap=hostile.bootstrap, directory=folder, interval=0.5, settings=settings
        )
        served = Served(start, folder / "log")
        stack.callback(end_processes, folder)
        stack.callback(served.kill)
        yield hostile, served.wait_ready()


def announcing(peer: Peer) -> None:
    """Announce a frame of 256 MiB, and send little of it."""
    peer.request()
    peer.raw(struct.pack(">i", 256 * 1024 * 1024) + b"\0" * 65_536)
    peer.silence()


def flooding(peer: Peer) -> None:
    """Send a number that does not end."""
    peer.answer(peer.request(), b"\0\0" + b"\xff" * (1 << 20))


ATTACKS: Final[dict[str, Callable[[Cluster], Script]]] = {
    "ten bytes for all memory": lambda _: (
        lambda peer: peer.answer(peer.request(), b"\0\0" + MOST + b"\0\0\0")
    ),
    "a list of four billion groups": lambda hostile: hostile.answering_groups(b"\0" * 6 + MOST),
    "a number that does not end": lambda _: flooding,
    "frames of 256 MiB": lambda _: announcing,
    "silence": lambda _: lambda peer: peer.silence(),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_broker_costs_no_more_than_its_own_answers(
    attack: str, parts: tuple[Cluster, Served]
) -> None:
    hostile, served = parts
    hostile.turn(ATTACKS[attack](hostile))
    is_seen = wait_until(lambda: HOSTILE in gaps(served), timeout_seconds=SEE_SECONDS)
    assert is_seen, served.reported()
    before = len(served.rounds())
    for _ in range(3):
        served.wait_rounds(1)
        assert served.get("/livez").status_code == 200
        assert served.get("/metrics").status_code == 200
    assert {item["topic"] for item in items(served, "partitions")} == {"orders"}
    assert {item["group"] for item in items(served, "groups")} == {"billing"}
    slowest = max(event["took_seconds"] for event in served.rounds()[before:])
    assert slowest < ROUND_SECONDS
    peak = psutil.Process(served.process.pid).memory_info().rss
    assert peak < MEGABYTES * 1024 * 1024, f"{peak:,} bytes"
    hostile.turn(None)
    is_over = wait_until(lambda: HOSTILE not in gaps(served), timeout_seconds=SEE_SECONDS)
    assert is_over, served.reported()
    assert served.process.poll() is None


def gaps(served: Served) -> set[str]:
    """Return what was not seen in the last round."""
    return {gap["what"] for gap in items(served, "clusters/default")}


def items(served: Served, resource: str) -> list[Document]:
    found: list[Document] = served.document(f"/api/v1/{resource}?limit=1000")["items"]
    return found
