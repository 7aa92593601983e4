"""A client of the servers that tests start on this machine, over plain HTTP."""

from __future__ import annotations

import ssl
from typing import Final

import httpx2

# A client reads all certificate authorities of the machine otherwise, which takes 40 ms of CPU.
NO_AUTHORITIES: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def client(seconds: float = 30) -> httpx2.Client:
    """Return a client that asks no proxy."""
    return httpx2.Client(trust_env=False, timeout=seconds, verify=NO_AUTHORITIES)
