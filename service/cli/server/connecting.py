"""How commands connect to a server, on this machine or not."""

from __future__ import annotations

import ssl
from typing import Any, Final
from urllib.parse import urlsplit

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


def client_options(server: str) -> dict[str, Any]:
    """Return what the HTTP client of an address needs besides the address."""
    address = urlsplit(server)
    is_here = address.hostname in LOOPBACK
    is_plain = is_here and address.scheme == "http"
    return {
        # Without TLS, the machine's certificate authorities need not be read: 40 ms of CPU.
        "verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True,
        # A proxy does not lead to this machine's own loopback interface.
        "trust_env": not is_here,
    }
