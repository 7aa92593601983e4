"""Security settings that contradict each other, and what Kafka clients are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.security import SaslMechanism, Security, SecurityProtocol
from rules.errors import SettingsError

PHRASE = "pencil"


def sasl_ssl() -> Security:
    return Security(
        protocol=SecurityProtocol.SASL_SSL,
        sasl_mechanism=SaslMechanism.SCRAM_SHA_256,
        sasl_username="billing",
        sasl_password=PHRASE,
        ssl_ca_location="/ca.pem",
        ssl_check_hostname=False,
    )


def test_a_listener_without_tls_needs_no_context() -> None:
    assert Security().ssl_context() is None


@pytest.mark.parametrize("missing", ["sasl_username", "sasl_password"])
def test_sasl_without_credentials_is_refused(missing: str) -> None:
    given = {"sasl_username": "billing", "sasl_password": PHRASE} | {missing: None}
    with pytest.raises(SettingsError, match="needs a SASL user name and password"):
        Security(protocol=SecurityProtocol.SASL_PLAINTEXT, **given)  # type: ignore[arg-type]


def test_a_key_without_its_certificate_is_refused() -> None:
    with pytest.raises(SettingsError, match="certificate"):
        Security(protocol=SecurityProtocol.SSL, ssl_key_location="/key.pem")


def test_a_missing_file_is_a_wrong_setting() -> None:
    missing = Path("/no/such/ca.pem")
    security = Security(protocol=SecurityProtocol.SSL, ssl_ca_location=str(missing))
    with pytest.raises(SettingsError, match="TLS files"):
        security.ssl_context()


def test_secrets_never_show() -> None:
    assert PHRASE not in repr(sasl_ssl())


def test_a_kafka_client_gets_the_same_security() -> None:
    assert sasl_ssl().confluent_config() == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "billing",
        "sasl.password": PHRASE,
        "ssl.ca.location": "/ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert Security().confluent_config() == {"security.protocol": "PLAINTEXT"}
