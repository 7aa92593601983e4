"""A self-signed certificate for the brokers' TLS listeners, made once per cache by Java's keytool.

It guards nothing but loopback; clients trust exactly this one certificate (`ca.pem`).
"""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

from service.sandbox.cluster.locking import locked
from service.sandbox.cluster.processes import run_to_end

KEYSTORE_PASSWORD = "sandbox-only"  # noqa: S105 - loopback only, documented
KEYTOOL_SECONDS = 60.0
VALID_DAYS = "3650"


def keystore(cache: Path) -> Path:
    """Return the brokers' key and certificate (PKCS#12)."""
    return cache / "tls/keystore.p12"


def ca_file(cache: Path) -> Path:
    """Return the certificate that clients have to trust (PEM)."""
    return cache / "tls/ca.pem"


def ensure_certificate(cache: Path, *, java: Path) -> None:
    """Make key and certificate unless they are there; they appear by one rename."""
    if ca_file(cache).exists():
        return
    with locked(cache):
        if ca_file(cache).exists():
            return
        work = Path(tempfile.mkdtemp(prefix="tls-", dir=cache))
        try:
            _make(java.resolve().with_name("keytool"), work)
            work.rename(cache / "tls")
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _make(keytool: Path, folder: Path) -> None:
    store = [
        "-alias", "sandbox", "-keystore", str(folder / "keystore.p12"), "-storetype", "PKCS12",
        "-storepass", KEYSTORE_PASSWORD,
    ]  # fmt: skip
    otherwise = f"{keytool} made no certificate"
    run = partial(run_to_end, seconds=KEYTOOL_SECONDS, otherwise=otherwise)
    run([
        str(keytool), "-genkeypair", *store, "-keyalg", "EC", "-groupname", "secp256r1",
        "-validity", VALID_DAYS, "-dname", "CN=localhost", "-ext", "SAN=IP:127.0.0.1,DNS:localhost",
    ])  # fmt: skip
    run([str(keytool), "-exportcert", "-rfc", *store, "-file", str(folder / "ca.pem")])
