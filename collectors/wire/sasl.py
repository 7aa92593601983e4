"""The client's side of SASL PLAIN (RFC 4616) and SCRAM (RFC 5802), without any I/O.

A mechanism is a generator: it yields what to send and is sent what the broker answered.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from scramp import ScramClient, ScramException

from collectors.security import SaslMechanism, Security
from collectors.wire.failure import ConnectionFailedError, Failure
from rules.facts.gap import GapCause

Exchange = Generator[bytes, bytes, None]
# A quarter of a second. Brokers store passwords with 4,096 to 16,384 (KIP-554), older tools with any number.
MAX_ITERATIONS: Final = 500_000


def start(security: Security) -> Exchange:
    """Return the exchange of the configured mechanism."""
    if security.sasl_mechanism is SaslMechanism.PLAIN:
        return _plain(security)
    return _scram(security)


def _plain(security: Security) -> Exchange:
    yield f"\0{security.sasl_username}\0{security.sasl_password}".encode()


def _scram(security: Security) -> Exchange:
    client = _client(security)
    try:
        server_first = yield client.get_client_first().encode()
        client.set_server_first(server_first.decode())
        _check_work(client)
        server_final = yield client.get_client_final().encode()
        client.set_server_final(server_final.decode())
    except (ScramException, UnicodeDecodeError) as exc:
        why = f"the broker's {security.sasl_mechanism} answer does not prove that it knows us"
        failure = Failure(GapCause.NOT_AUTHORIZED, f"{why}: {exc}", rejected=True)
        raise ConnectionFailedError(failure) from exc


def _check_work(client: ScramClient) -> None:
    if int(client.iterations) > MAX_ITERATIONS:
        raise ScramException(f"it demands {client.iterations} iterations")


def _client(security: Security) -> ScramClient:
    try:
        return ScramClient(
            [str(security.sasl_mechanism)], security.sasl_username, security.sasl_password
        )
    except ScramException as exc:
        why = f"user name or password cannot be used with {security.sasl_mechanism}: {exc}"
        failure = Failure(GapCause.NOT_AUTHORIZED, why, rejected=True)
        raise ConnectionFailedError(failure) from exc
