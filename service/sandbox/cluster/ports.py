"""Choose and check loopback ports.

Free ports are taken below the range that the system hands to outgoing connections: a killed
broker's port would otherwise be given to some client, even to one that tries to reach that
very broker, before the broker is started again.
"""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterable
from pathlib import Path

from rules.errors import SandboxError

HOST = "127.0.0.1"
LOWEST = 10_000
HIGHEST = 65_535
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
ATTEMPTS = 2_000


def is_free(port: int) -> bool:
    """Return whether a server could listen on this loopback port now."""
    with socket.socket() as probe:
        return _listen(probe, port)


def choose_free(count: int) -> list[int]:
    """Return different free ports; all are held until the last one is found."""
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        for port in random.sample(range(LOWEST, _lowest_ephemeral()), ATTEMPTS):
            probe = held.enter_context(socket.socket())
            if _listen(probe, port):
                ports.append(port)
            if len(ports) == count:
                return ports
        for _ in range(count - len(ports)):
            probe = held.enter_context(socket.socket())
            probe.bind((HOST, 0))  # the system chooses
            ports.append(probe.getsockname()[1])
        return ports


def fixed(base: int, count: int) -> list[int]:
    """Return `count` ports from `base` upward; raise when they do not fit."""
    if not 1 <= base <= HIGHEST - count + 1:
        raise SandboxError(f"--port-base {base} leaves no space for {count} ports up to {HIGHEST}")
    return list(range(base, base + count))


def require_free(ports: Iterable[int]) -> None:
    """Raise when a port is taken, naming the first."""
    taken = [port for port in ports if not is_free(port)]
    if taken:
        raise SandboxError(
            f"port {taken[0]} on {HOST} is in use by another program; choose another "
            f"--port-base, or see who holds it: ss -ltnp 'sport = :{taken[0]}'"
        )


def accepts(port: int) -> bool:
    """Return whether something listens on this port."""
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def _lowest_ephemeral() -> int:
    try:
        lowest = int(EPHEMERAL_RANGE.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        lowest = 32_768  # Linux's own default
    return max(lowest, LOWEST + ATTEMPTS)


def _listen(probe: socket.socket, port: int) -> bool:
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java does
    try:
        probe.bind((HOST, port))
        probe.listen(1)
    except OSError:
        return False
    return True
