"""SASL against a server's own side of the exchange."""

from __future__ import annotations

import base64

import pytest
from scramp import ScramException, ScramMechanism

from collectors.security import SaslMechanism, Security, SecurityProtocol
from collectors.wire import sasl
from collectors.wire.failure import ConnectionFailedError, Failure
from rules.facts.gap import GapCause

USER, PHRASE = "billing", "pencil"
ITERATIONS = 4096


def security(mechanism: SaslMechanism, *, user: str = USER, phrase: str = PHRASE) -> Security:
    return Security(
        protocol=SecurityProtocol.SASL_PLAINTEXT,
        sasl_mechanism=mechanism,
        sasl_username=user,
        sasl_password=phrase,
    )


class Server:
    """A broker that knows one user."""

    def __init__(self, mechanism: str, phrase: str = PHRASE) -> None:
        made = ScramMechanism(mechanism)
        self._known = made.make_auth_info(phrase, iteration_count=ITERATIONS)
        self._scram = made.make_server(lambda _: self._known)

    def first(self, message: bytes) -> bytes:
        self._scram.set_client_first(message.decode())
        told: str = self._scram.get_server_first()
        return told.encode()

    def final(self, message: bytes) -> bytes:
        self._scram.set_client_final(message.decode())
        told: str = self._scram.get_server_final()
        return told.encode()


def failure_of(exchange: sasl.Exchange, answer: bytes) -> Failure:
    with pytest.raises(ConnectionFailedError) as caught:
        exchange.send(answer)
    return caught.value.failure


def test_plain_sends_user_and_password_in_one_message() -> None:
    exchange = sasl.start(security(SaslMechanism.PLAIN, user="jörg", phrase="geheim ü"))
    assert next(exchange) == "\0jörg\0geheim ü".encode()
    with pytest.raises(StopIteration):
        exchange.send(b"")


SCRAM = [SaslMechanism.SCRAM_SHA_256, SaslMechanism.SCRAM_SHA_512]


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_convinces_a_server_and_is_convinced_by_it(mechanism: SaslMechanism) -> None:
    server, exchange = Server(mechanism), sasl.start(security(mechanism))
    final = exchange.send(server.first(next(exchange)))
    proof = server.final(final)
    with pytest.raises(StopIteration):
        exchange.send(proof)


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_never_sends_the_password(mechanism: SaslMechanism) -> None:
    server, exchange = Server(mechanism), sasl.start(security(mechanism))
    first = next(exchange)
    assert PHRASE.encode() not in first + exchange.send(server.first(first))


def test_a_wrong_password_is_rejected_by_the_server_and_told() -> None:
    mechanism = SaslMechanism.SCRAM_SHA_256
    server = Server(mechanism)
    exchange = sasl.start(security(mechanism, phrase="pencils"))
    rejection = server_rejection(server, exchange.send(server.first(next(exchange))))
    failure = failure_of(exchange, rejection)
    assert failure.rejected
    assert failure.cause is GapCause.NOT_AUTHORIZED


def server_rejection(server: Server, final: bytes) -> bytes:
    """Return the server's last message when it does not accept the proof."""
    with pytest.raises(ScramException):
        server.final(final)
    return b"e=invalid-proof"


def test_a_server_that_knows_another_password_does_not_prove_itself() -> None:
    mechanism = SaslMechanism.SCRAM_SHA_512
    impostor, exchange = Server(mechanism), sasl.start(security(mechanism))
    exchange.send(impostor.first(next(exchange)))
    failure = failure_of(exchange, b"v=" + b"A" * 86 + b"==")
    assert "does not prove" in failure.why
    assert failure.rejected


def test_an_answer_to_another_clients_nonce_is_rejected() -> None:
    mechanism = SaslMechanism.SCRAM_SHA_256
    mine, theirs = sasl.start(security(mechanism)), sasl.start(security(mechanism))
    next(mine)
    assert failure_of(mine, Server(mechanism).first(next(theirs))).rejected


@pytest.mark.parametrize("answer", [b"", b"\xff\xfe", b"HTTP/1.1 400", b"r=,s=,i=0", b"e=nope"])
def test_an_answer_that_is_no_scram_is_rejected(answer: bytes) -> None:
    exchange = sasl.start(security(SaslMechanism.SCRAM_SHA_256))
    next(exchange)
    assert failure_of(exchange, answer).cause is GapCause.NOT_AUTHORIZED


def test_a_server_that_demands_minutes_of_work_is_rejected() -> None:
    exchange = sasl.start(security(SaslMechanism.SCRAM_SHA_512))
    nonce = next(exchange).partition(b"r=")[2]
    first = b"r=%bserver,s=%b,i=10000000" % (nonce, base64.b64encode(b"s" * 16))
    assert "10000000 iterations" in failure_of(exchange, first).why


def test_a_password_that_scram_forbids_is_told_without_showing_it() -> None:
    exchange = sasl.start(security(SaslMechanism.SCRAM_SHA_512, phrase="bell\x07secret"))
    with pytest.raises(ConnectionFailedError) as caught:
        next(exchange)
    assert "cannot be used with SCRAM-SHA-512" in caught.value.failure.why
    assert "secret" not in caught.value.failure.why
