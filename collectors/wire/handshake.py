"""The set-up of a new connection: ApiVersions, then SASL.

Without any I/O: a generator that yields requests and is sent the bodies of their answers, so that
the connection drives it from its own loop. Source: KIP-35 and KIP-511 (ApiVersions), KIP-43 and
KIP-152 (SASL over Kafka requests).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from collectors.security import Security
from collectors.wire import codec, sasl
from collectors.wire.api import (
    API_VERSIONS,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Api,
    VersionRange,
)
from collectors.wire.failure import ConnectionFailedError, Failure
from rules.facts.gap import GapCause
from rules.version import VERSION

UNSUPPORTED_VERSION = 35
Versions = dict[int, VersionRange]


@dataclass(frozen=True, slots=True)
class SetupRequest:
    """A request of the set-up: what to send, and how its answer is to be framed."""

    api: Api
    version: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Established:
    """The result of the set-up."""

    versions: Versions
    lifetime: timedelta | None = None  # after which the broker wants the credentials again


Setup = Generator[SetupRequest, bytearray, Established]


def _request(api: Api, version: int, **fields: Any) -> SetupRequest:
    return SetupRequest(api, version, codec.encode_request(api, version, fields))


def setup(security: Security) -> Setup:
    """Query the versions, and authenticate if the listener uses SASL."""
    versions = yield from _api_versions()
    if not security.uses_sasl:
        return Established(versions)
    lifetime = yield from _authenticate(security, versions)
    return Established(versions, lifetime)


def _api_versions() -> Generator[SetupRequest, bytearray, Versions]:
    client = {"client_software_name": "tidemark", "client_software_version": VERSION}
    body = yield _request(API_VERSIONS, 3, **client)
    if int.from_bytes(body[:2], "big") == UNSUPPORTED_VERSION:
        # A broker that knows no v3 answers in v0's layout, whatever the request (KIP-511).
        body = yield _request(API_VERSIONS, 0)
        answer = codec.decode(API_VERSIONS, 0, body)
    else:
        answer = codec.decode(API_VERSIONS, 3, body)
    if int(answer.error_code) != codec.NO_ERROR:
        why = f"{codec.error_name(int(answer.error_code))} for ApiVersions"
        raise ConnectionFailedError(Failure(GapCause.BROKER_ERROR, why))
    return {
        int(entry.api_key): VersionRange(int(entry.min_version), int(entry.max_version))
        for entry in answer.api_keys
    }


def _authenticate(
    security: Security, versions: Versions
) -> Generator[SetupRequest, bytearray, timedelta | None]:
    """Authenticate; return the session lifetime that the broker grants (KIP-368)."""
    mechanism = str(security.sasl_mechanism)
    body = yield _request(SASL_HANDSHAKE, 1, mechanism=mechanism)
    answer = codec.decode(SASL_HANDSHAKE, 1, body)
    offered = ", ".join(answer.mechanisms) or "none: the listener does not use SASL"
    _raise_on_error(answer.error_code, mechanism, f"the listener offers: {offered}")

    version = _sasl_version(versions)
    exchange = sasl.start(security)
    try:
        token = next(exchange)
        while True:
            answer = yield from _sasl_step(version, token)
            _raise_on_error(
                answer.error_code, f"user {security.sasl_username}", answer.error_message
            )
            token = exchange.send(answer.auth_bytes)
    except StopIteration:
        return answer.session_lifetime or None


def _sasl_version(versions: Versions) -> int:
    offered = versions.get(SASL_AUTHENTICATE.key)
    version = offered.usable(SASL_AUTHENTICATE) if offered else None
    if version is None:
        why = f"no usable SaslAuthenticate: it needs Kafka {SASL_AUTHENTICATE.since} or newer"
        raise ConnectionFailedError(Failure(GapCause.UNSUPPORTED, why))
    return version


def _sasl_step(version: int, token: bytes) -> Generator[SetupRequest, bytearray, Any]:
    body = yield _request(SASL_AUTHENTICATE, version, auth_bytes=token)
    return codec.decode(SASL_AUTHENTICATE, version, body)


def _raise_on_error(code: int, what: str, hint: str | None) -> None:
    if int(code) == codec.NO_ERROR:
        return
    why = f"{codec.error_name(int(code))} for {what}" + (f" ({hint})" if hint else "")
    raise ConnectionFailedError(Failure(GapCause.NOT_AUTHORIZED, why, rejected=True))
