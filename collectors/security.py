"""How to reach a cluster: the one place from which every Kafka client takes its security.

The names are those of the Kafka clients (`security.protocol`, `sasl.mechanism`, ...). The wire
reader needs an SSL context and credentials, confluent-kafka a configuration mapping.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from enum import StrEnum

from rules.errors import SettingsError


class SecurityProtocol(StrEnum):
    """The four listener protocols of Kafka."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class SaslMechanism(StrEnum):
    """The SASL mechanisms that Tidemark speaks."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """Security of one cluster's connections; the secrets never show in `repr`."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    sasl_mechanism: SaslMechanism = SaslMechanism.SCRAM_SHA_512
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    ssl_ca_location: str | None = None  # PEM file; None: the system's trusted roots
    ssl_certificate_location: str | None = None  # PEM file of the client's own certificate
    ssl_key_location: str | None = None
    ssl_key_password: str | None = field(default=None, repr=False)
    ssl_check_hostname: bool = True

    def __post_init__(self) -> None:
        if self.uses_sasl and not (self.sasl_username and self.sasl_password):
            missing = {
                "TIDEMARK_KAFKA__SASL_USERNAME": not self.sasl_username,
                "TIDEMARK_KAFKA__SASL_PASSWORD_FILE": not self.sasl_password,
            }
            raise SettingsError(
                f"security protocol {self.protocol} needs a SASL user name and password; set "
                + " and ".join(name for name, is_missing in missing.items() if is_missing)
            )
        if self.ssl_key_location and not self.ssl_certificate_location:
            raise SettingsError("an SSL key needs the certificate that belongs to it")

    @property
    def uses_sasl(self) -> bool:
        """Whether the listener uses SASL."""
        return self.protocol in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}

    @property
    def uses_tls(self) -> bool:
        """Whether the listener speaks TLS."""
        return self.protocol in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}

    def ssl_context(self) -> ssl.SSLContext | None:
        """Build the TLS context, or None for a listener without TLS.

        Raises:
            SettingsError: a file is missing or is not what it should be.
        """
        if not self.uses_tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ssl_ca_location)
            context.check_hostname = self.ssl_check_hostname
            if self.ssl_certificate_location:
                context.load_cert_chain(
                    self.ssl_certificate_location,
                    self.ssl_key_location,
                    self.ssl_key_password or _no_password,
                )
        except (OSError, ssl.SSLError) as exc:
            files = (self.ssl_ca_location, self.ssl_certificate_location, self.ssl_key_location)
            named = ", ".join(name for name in files if name)
            raise SettingsError(f"TLS files cannot be used ({named}): {exc}") from exc
        return context

    def confluent_config(self) -> dict[str, str]:
        """Return the same security as a confluent-kafka (librdkafka) configuration."""
        config: dict[str, str | None] = {"security.protocol": self.protocol}
        if self.uses_sasl:
            config["sasl.mechanism"] = self.sasl_mechanism
            config["sasl.username"] = self.sasl_username
            config["sasl.password"] = self.sasl_password
        if self.uses_tls:
            config["ssl.ca.location"] = self.ssl_ca_location
            config["ssl.certificate.location"] = self.ssl_certificate_location
            config["ssl.key.location"] = self.ssl_key_location
            config["ssl.key.password"] = self.ssl_key_password
            config["ssl.endpoint.identification.algorithm"] = (
                "https" if self.ssl_check_hostname else "none"
            )
        return {key: value for key, value in config.items() if value is not None}


def _no_password() -> str:
    """Raise instead of OpenSSL's prompt for a password at the terminal."""
    raise SettingsError("the SSL key is encrypted: it needs a password (ssl_key_password)")
