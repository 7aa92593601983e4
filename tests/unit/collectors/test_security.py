"""Security settings that contradict each other, and what Kafka clients are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.security import SaslMechanism, Security, SecurityProtocol
from rules.errors import SettingsError

PHRASE = "pencil"
# Made for this test, of use nowhere else: openssl req -x509 -newkey ed25519 -subj /CN=t
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBLjCB4aADAgECAhRXHyjn2nqlcn4qXbTx3kEG11X6rDAFBgMrZXAwDDEKMAgG
A1UEAwwBdDAgFw0yNjExMjExNTUzMDhaGA8yMTI2MTAyODE1NTMwOFowDDEKMAgG
A1UEAwwBdDAqMAUGAytlcAMhAH6YigDEsrgtx+iMbPuk6FEwUmYcVNQ0gW4AgFre
P/DSo1MwUTAdBgNVHQ4EFgQU2S8qJS+u/qZ3dgv8Z3ue+bhxea0wHwYDVR0jBBgw
FoAU2S8qJS+u/qZ3dgv8Z3ue+bhxea0wDwYDVR0TAQH/BAUwAwEB/zAFBgMrZXAD
QQBkd900FtXfMwucQ59SrzP56SCqxoTgiZEfN2FYYVX9LayEr0SfVE7zZ17p9Dy0
wEkCW49hOiSZ6pxosT7detkN
-----END CERTIFICATE-----
"""
ENCRYPTED_KEY = """\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhplHv+xVPR2gICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEASuxg9SjlQmW2ya4L8TdgoEQERC
Nd3KM10a6wzY+L2l83xyhQmiW0B/UeLN28VEe+K2LJxX4l7/OGbSikqIsKKRmoaT
GOBkWIt2340Ms5hovKc=
-----END ENCRYPTED PRIVATE KEY-----
"""


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
def test_sasl_without_credentials_is_rejected(missing: str) -> None:
    given = {"sasl_username": "billing", "sasl_password": PHRASE} | {missing: None}
    with pytest.raises(SettingsError, match="needs a SASL user name and password"):
        Security(protocol=SecurityProtocol.SASL_PLAINTEXT, **given)  # type: ignore[arg-type]


def test_a_key_without_its_certificate_is_rejected() -> None:
    with pytest.raises(SettingsError, match="certificate"):
        Security(protocol=SecurityProtocol.SSL, ssl_key_location="/key.pem")


def test_a_missing_file_is_a_wrong_setting() -> None:
    missing = Path("/no/such/ca.pem")
    security = Security(protocol=SecurityProtocol.SSL, ssl_ca_location=str(missing))
    with pytest.raises(SettingsError, match="TLS files"):
        security.ssl_context()


@pytest.fixture
def encrypted(tmp_path: Path) -> dict[str, str]:
    """Write a certificate and its key, which PHRASE opens."""
    certificate, key = tmp_path / "client.pem", tmp_path / "client.key"
    certificate.write_text(CERTIFICATE, encoding="utf-8")
    key.write_text(ENCRYPTED_KEY, encoding="utf-8")
    return {"ssl_certificate_location": str(certificate), "ssl_key_location": str(key)}


@pytest.mark.parametrize("password", [None, ""])
def test_an_encrypted_key_without_a_password_is_rejected_and_nobody_is_asked(
    password: str | None, encrypted: dict[str, str]
) -> None:
    security = Security(
        protocol=SecurityProtocol.SSL,
        ssl_key_password=password,
        **encrypted,  # type: ignore[arg-type]
    )
    with pytest.raises(SettingsError, match=r"key is encrypted.*ssl_key_password"):
        security.ssl_context()


def test_an_encrypted_key_is_opened_by_its_password_alone(encrypted: dict[str, str]) -> None:
    def security(password: str) -> Security:
        return Security(
            protocol=SecurityProtocol.SSL,
            ssl_key_password=password,
            **encrypted,  # type: ignore[arg-type]
        )

    assert security(PHRASE).ssl_context() is not None
    with pytest.raises(SettingsError, match="TLS files"):
        security(f"not {PHRASE}").ssl_context()


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
