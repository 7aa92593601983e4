"""Settings: read once at start from a TOML file, the environment and flags, then frozen.

A later source wins: defaults, `tidemark.toml`, environment, command-line flags. The environment is
written TIDEMARK_<GROUP>__<KEY>; with `_FILE` behind it the value is read from that file, which is
how secrets arrive. Unknown keys are refused, wherever they stand.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from collectors.security import SaslMechanism, Security, SecurityProtocol
from rules.errors import SettingsError

PREFIX: Final = "TIDEMARK_"
FILE_SUFFIX: Final = "_FILE"
MAX_SECRET_BYTES: Final = 64 * 1024

Seconds = Annotated[float, Field(gt=0, le=3600)]


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class KafkaSettings(_Group):
    """How to reach and how to ask one cluster."""

    name: str = "default"
    """Name under which the cluster appears everywhere; with the cluster id it is its identity."""

    bootstrap_servers: str = ""
    """Comma-separated host:port pairs; a few brokers are enough to find all. No default."""

    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL: what the listener speaks. Default as in Kafka."""

    sasl_mechanism: SaslMechanism = SaslMechanism.SCRAM_SHA_512
    """PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. Default: the one that never sends the password."""

    sasl_username: str | None = None
    """User name; needed by the SASL protocols."""

    sasl_password: SecretStr | None = None
    """Password; give it as TIDEMARK_KAFKA__SASL_PASSWORD_FILE rather than in a file of settings."""

    ssl_ca_location: str | None = None
    """PEM file of the authority to trust. Default: the system's trusted roots."""

    ssl_certificate_location: str | None = None
    """PEM file of the client's own certificate, where the listener asks for one."""

    ssl_key_location: str | None = None
    """PEM file of the certificate's key, if it is not in the same file."""

    ssl_key_password: SecretStr | None = None
    """Password of the key."""

    ssl_check_hostname: bool = True
    """Whether the broker's certificate must carry its host name. Turn off only to try things."""

    request_timeout_seconds: Seconds = 5.0
    """Seconds one broker may take for one request; above a slow disk, below the round's limit."""

    round_timeout_seconds: Seconds = 10.0
    """Seconds after which a round takes what it has; two thirds of the interval of a service."""

    def security(self) -> Security:
        """Return what every client of this cluster uses."""
        password, key_password = self.sasl_password, self.ssl_key_password
        return Security(
            protocol=self.security_protocol,
            sasl_mechanism=self.sasl_mechanism,
            sasl_username=self.sasl_username,
            sasl_password=password.get_secret_value() if password else None,
            ssl_ca_location=self.ssl_ca_location,
            ssl_certificate_location=self.ssl_certificate_location,
            ssl_key_location=self.ssl_key_location,
            ssl_key_password=key_password.get_secret_value() if key_password else None,
            ssl_check_hostname=self.ssl_check_hostname,
        )


class SandboxSettings(_Group):
    """Where the local cluster keeps its files; read by `tidemark sandbox`."""

    dir: str | None = None
    """Folder of the cluster. Default: tidemark/sandbox in the user's state folder."""

    cache: str | None = None
    """Folder of Kafka's jars. Default: tidemark in the user's cache folder."""


class Settings(_Group):
    """All settings, by group."""

    kafka: KafkaSettings = KafkaSettings()
    sandbox: SandboxSettings = SandboxSettings()


def read_settings(
    environment: Mapping[str, str],
    *,
    path: Path | None = None,
    flags: Mapping[str, Mapping[str, object]] | None = None,
) -> Settings:
    """Merge the sources and check every value.

    Args:
        environment: the process's environment.
        path: a TOML file with one table per group, or None.
        flags: group -> key -> value of the flags that were given; None values count as not given.

    Raises:
        SettingsError: naming each key that is unknown or has a value that cannot be used.
    """
    merged = _from_file(path) if path is not None else {}
    _merge(merged, _from_environment(environment))
    given = {
        group: {key: value for key, value in values.items() if value is not None}
        for group, values in (flags or {}).items()
    }
    _merge(merged, given)
    try:
        return Settings.model_validate(merged)
    except ValidationError as exc:
        raise SettingsError("; ".join(_told(error) for error in exc.errors())) from None


def _merge(into: dict[str, Any], new: Mapping[str, Any], path: str = "") -> None:
    for key, value in new.items():
        place, is_table = f"{path}{key}", isinstance(value, Mapping)
        if key in into and is_table != isinstance(into[key], dict):
            # The winner would silently hide a source that was written wrong.
            wanted, found = ("a table", "one value") if is_table else ("one value", "a table")
            raise SettingsError(f"{place}: {wanted} is expected, and a source gives {found}")
        if is_table:
            _merge(into.setdefault(key, {}), value, f"{place}.")
        else:
            into[key] = value


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise SettingsError(f"settings file {path}: {(exc.strerror or str(exc)).lower()}") from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise SettingsError(f"settings file {path} is not TOML: {exc}") from exc


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in sorted(environment):
        if not name.startswith(PREFIX):
            continue
        group, separator, key = name.removeprefix(PREFIX).partition("__")
        if not separator or not key:
            raise SettingsError(f"unknown setting {name}: write {PREFIX}<GROUP>__<KEY>")
        value = environment[name]
        if f"{name}{FILE_SUFFIX}" in environment:
            raise SettingsError(f"both {name} and {name}{FILE_SUFFIX} are set: keep one of them")
        if key.endswith(FILE_SUFFIX):
            key, value = key.removesuffix(FILE_SUFFIX), secret_from(name, Path(value))
        values.setdefault(group.lower(), {})[key.lower()] = value
    return values


def secret_from(name: str, path: Path) -> str:
    """Read a secret from the file that the setting or flag `name` points at.

    Raises:
        SettingsError: the file cannot be read.
    """
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(MAX_SECRET_BYTES).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(f"{name} names a file that cannot be read: {path}") from exc


def _told(error: Any) -> str:
    key = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"unknown setting {key}"
    told = str(error["msg"])
    return f"{key}: {told[:1].lower()}{told[1:]}"  # never the value: it may be a secret
