"""Proxies that make the run's brokers observation older than they are.

Each is before one real broker, passes every frame on, takes APIs or versions out of the
ApiVersions answers, and puts its own address into those of DescribeCluster.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from collectors.wire import codec
from collectors.wire.api import API_VERSIONS, DESCRIBE_CLUSTER
from service.sandbox.cluster.cluster import Sandbox

HOST = "127.0.0.1"
MISSING = -1
ACCEPT_SECONDS = 0.2

NewestVersions = Mapping[int, int]  # API key -> newest version to announce, MISSING for none


class OldBroker:
    """One proxy before one broker."""

    def __init__(self, broker_port: int, newest: NewestVersions, ports: dict[int, int]) -> None:
        self._broker_port = broker_port
        self._newest = newest
        self._ports = ports  # broker port -> proxy port, of all proxies
        self._listener = socket.create_server((HOST, 0))
        self._listener.settimeout(ACCEPT_SECONDS)
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self.port: int = self._listener.getsockname()[1]

    @contextmanager
    def running(self) -> Iterator[None]:
        self._spawn(self._accept)
        try:
            yield
        finally:
            self._stopping.set()
            for thread in self._threads:
                thread.join(5)
            self._listener.close()

    def _spawn(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            client.settimeout(ACCEPT_SECONDS)
            self._spawn(lambda client=client: self._serve(client))  # type: ignore[misc]

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection((HOST, self._broker_port)) as broker:
            broker.settimeout(10)
            while (request := self._frame(client)) is not None:
                broker.sendall(struct.pack(">i", len(request)) + request)
                answer = self._frame(broker)
                if answer is None:
                    return
                key, version = struct.unpack_from(">hh", request)
                changed = self._rewrite(key, version, answer)
                client.sendall(struct.pack(">i", len(changed)) + changed)

    def _frame(self, sock: socket.socket) -> bytes | None:
        head = self._exactly(sock, 4)
        return None if head is None else self._exactly(sock, struct.unpack(">i", head)[0])

    def _exactly(self, sock: socket.socket, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            try:
                part = sock.recv(count - len(data))
            except TimeoutError:
                if self._stopping.is_set():
                    return None
                continue
            except OSError:
                return None
            if not part:
                return None
            data += part
        return data

    def _rewrite(self, key: int, version: int, answer: bytes) -> bytes:
        if key == API_VERSIONS.key:
            entity = codec.decode(API_VERSIONS, version, answer[4:])
            kept = tuple(self._aged(entry) for entry in entity.api_keys)
            aged = replace(entity, api_keys=tuple(entry for entry in kept if entry is not None))
            return answer[:4] + codec.encode(aged)
        if key == DESCRIBE_CLUSTER.key:
            entity = codec.decode(DESCRIBE_CLUSTER, version, answer[5:])
            brokers = tuple(
                replace(entry, port=self._ports[int(entry.port)]) for entry in entity.brokers
            )
            return answer[:5] + codec.encode(replace(entity, brokers=brokers))
        return answer

    def _aged(self, entry: Any) -> Any:
        newest = self._newest.get(int(entry.api_key))
        if newest is None:
            return entry
        if newest < entry.min_version:
            return None
        return replace(entry, max_version=min(entry.max_version, newest))


@contextmanager
def old_brokers(cluster: Sandbox, newest: NewestVersions) -> Iterator[str]:
    """Run a proxy before each broker; yield their bootstrap addresses."""
    ports: dict[int, int] = {}
    proxies = []
    for broker in cluster.state.brokers:
        proxy = OldBroker(broker.port, newest, ports)
        ports[broker.port] = proxy.port
        proxies.append(proxy)
    with ExitStack() as stack:
        for proxy in proxies:
            stack.enter_context(proxy.running())
        yield ",".join(f"{HOST}:{proxy.port}" for proxy in proxies)
