"""What is said on a new connection, driven with a broker's answers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from collectors.security import SaslMechanism, Security, SecurityProtocol
from collectors.wire import codec, handshake
from collectors.wire.api import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE, VersionRange
from collectors.wire.failure import ConnectionFailedError, Failure
from collectors.wire.handshake import Setup, SetupRequest, Versions
from rules.facts.gap import GapCause
from tests.unit.collectors.wire.messages import (
    api_versions_answer,
    sasl_answer,
    sasl_handshake_answer,
)

PHRASE = "pencil"
UNSUPPORTED_SASL_MECHANISM = 33
SASL_AUTHENTICATION_FAILED = 58
UNSUPPORTED_VERSION = 35
OFFERED = {2: (1, 11), 17: (0, 1), 18: (0, 4), 36: (0, 2)}
EXPECTED = {key: VersionRange(*bounds) for key, bounds in OFFERED.items()}


def plain_sasl() -> Security:
    return Security(
        protocol=SecurityProtocol.SASL_PLAINTEXT,
        sasl_mechanism=SaslMechanism.PLAIN,
        sasl_username="billing",
        sasl_password=PHRASE,
    )


def sent(setup: Setup, answer: bytes) -> SetupRequest:
    return setup.send(bytearray(answer))


def result(setup: Setup, answer: bytes) -> Versions:
    with pytest.raises(StopIteration) as done:
        sent(setup, answer)
    established: handshake.Established = done.value.value
    versions: Versions = established.versions
    return versions


def failure_of(setup: Setup, answer: bytes) -> Failure:
    with pytest.raises(ConnectionFailedError) as caught:
        sent(setup, answer)
    return caught.value.failure


def test_versions_are_asked_for_first_and_who_we_are_is_said() -> None:
    request = next(handshake.setup(Security()))
    assert (request.api, request.version) == (API_VERSIONS, 3)
    assert b"tidemark" in request.body


def test_without_sasl_the_versions_are_all() -> None:
    setup = handshake.setup(Security())
    next(setup)
    assert result(setup, api_versions_answer(OFFERED)) == EXPECTED


def test_a_broker_that_knows_no_v3_is_asked_again_in_v0() -> None:
    setup = handshake.setup(Security())
    next(setup)
    request = sent(setup, api_versions_answer({18: (0, 2)}, version=0, error=UNSUPPORTED_VERSION))
    assert (request.api, request.version, request.body) == (API_VERSIONS, 0, b"")
    assert result(setup, api_versions_answer(OFFERED, version=0)) == EXPECTED


def test_an_answer_that_is_cut_short_is_unreadable() -> None:
    setup = handshake.setup(Security())
    next(setup)
    with pytest.raises(codec.UnreadableError):
        sent(setup, api_versions_answer(OFFERED)[:-4])


def authenticating(offered: dict[int, tuple[int, int]] | None = None) -> Setup:
    """Return a set-up that waits for the answer to SaslHandshake."""
    setup = handshake.setup(plain_sasl())
    next(setup)
    request = sent(setup, api_versions_answer(OFFERED if offered is None else offered))
    assert (request.api, request.version) == (SASL_HANDSHAKE, 1)
    assert b"PLAIN" in request.body
    return setup


def test_sasl_comes_after_the_versions_and_returns_them() -> None:
    setup = authenticating()
    request = sent(setup, sasl_handshake_answer("PLAIN"))
    assert (request.api, request.version) == (SASL_AUTHENTICATE, 2)
    assert b"\0billing\0pencil" in request.body
    assert result(setup, sasl_answer()) == EXPECTED


@pytest.mark.parametrize("granted", [None, timedelta(minutes=5)])
def test_the_lifetime_that_a_broker_grants_is_kept(granted: timedelta | None) -> None:
    setup = authenticating()
    sent(setup, sasl_handshake_answer("PLAIN"))
    with pytest.raises(StopIteration) as done:
        sent(setup, sasl_answer(lifetime=granted or timedelta(0)))
    assert done.value.value.lifetime == granted


def test_an_older_broker_is_asked_in_the_version_that_it_knows() -> None:
    setup = authenticating(OFFERED | {36: (0, 1)})
    assert sent(setup, sasl_handshake_answer("PLAIN")).version == 1


def test_a_mechanism_that_is_rejected_names_those_that_are_offered() -> None:
    answer = sasl_handshake_answer(
        "SCRAM-SHA-256", "SCRAM-SHA-512", error=UNSUPPORTED_SASL_MECHANISM
    )
    failure = failure_of(authenticating(), answer)
    assert failure.rejected
    assert "UNSUPPORTED_SASL_MECHANISM for PLAIN" in failure.why
    assert "the listener offers: SCRAM-SHA-256, SCRAM-SHA-512" in failure.why


def test_a_listener_without_sasl_is_named_as_such() -> None:
    answer = sasl_handshake_answer(error=34)
    assert "none: the listener does not use SASL" in failure_of(authenticating(), answer).why


def test_rejected_credentials_name_the_user_and_never_the_password() -> None:
    setup = authenticating()
    sent(setup, sasl_handshake_answer("PLAIN"))
    answer = sasl_answer(error=SASL_AUTHENTICATION_FAILED, message="Invalid username or password")
    failure = failure_of(setup, answer)
    assert failure == Failure(
        GapCause.NOT_AUTHORIZED,
        "SASL_AUTHENTICATION_FAILED for user billing (Invalid username or password)",
        rejected=True,
    )


def test_a_broker_without_sasl_authenticate_is_too_old_not_a_crash() -> None:
    without = {key: bounds for key, bounds in OFFERED.items() if key != SASL_AUTHENTICATE.key}
    failure = failure_of(authenticating(without), sasl_handshake_answer("PLAIN"))
    assert failure.cause is GapCause.UNSUPPORTED
    assert "no usable SaslAuthenticate" in failure.why
