"""How commands connect to a server, on this machine or not."""

from __future__ import annotations

import os
import ssl
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
AUTHORITIES: Final = (  # files of systems; a build of Python may look elsewhere
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/ca-bundle.pem",
)
OTHER_AUTHORITIES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # they replace those of the machine


def client_options(server: str) -> dict[str, Any]:
    """Return what httpx2's client of an address needs besides the address."""
    address = urlsplit(server)
    is_here = address.hostname in LOOPBACK
    is_plain = is_here and address.scheme == "http"
    return {
        # Without TLS, the machine's certificate authorities need not be read: 40 ms of CPU.
        "verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True,
        # A proxy does not lead to this machine's own loopback interface.
        "trust_env": not is_here,
    }


def tls_context() -> ssl.SSLContext:
    """Return what the standard library's client needs for TLS, with the machine's authorities; 40 ms of CPU.

    Raises:
        OSError: a file that the environment names cannot be read.
    """
    is_chosen = any(os.environ.get(name) for name in OTHER_AUTHORITIES)
    if sys.platform == "darwin" and not is_chosen:
        import httpcore2  # noqa: PLC0415 - knows the keychain

        return httpcore2.default_ssl_context()
    context = ssl.create_default_context()
    if not is_chosen and not Path(ssl.get_default_verify_paths().openssl_cafile).is_file():
        files = [file for file in AUTHORITIES if Path(file).is_file()]
        if files:
            context.load_verify_locations(files[0])
    return context
