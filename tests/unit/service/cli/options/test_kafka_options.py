"""Every option that says how to reach a cluster becomes a setting of the group kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from rules.errors import SettingsError
from service.cli.options.kafka_options import kafka_flags, kafka_options
from service.settings import read_settings

PHRASE = "correct horse battery"


def given(*arguments: str) -> dict[str, Any]:
    """Return what a command with these options is called with."""
    found: dict[str, Any] = {}

    @click.command
    @kafka_options
    def command(**options: Any) -> None:
        found.update(options)

    CliRunner().invoke(command, arguments, catch_exceptions=False, standalone_mode=False)
    return found


def test_nothing_given_changes_nothing() -> None:
    options = given()
    assert read_settings({}, flags={"kafka": kafka_flags(options)}) == read_settings({})
    assert options["path"] is None


def test_every_option_arrives(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{PHRASE}\n", encoding="utf-8")
    options = given(
        "--config", "tidemark.toml",
        "--bootstrap-servers", "a:1",
        "--cluster", "payments",
        "--security-protocol", "SASL_SSL",
        "--sasl-mechanism", "PLAIN",
        "--sasl-username", "me",
        "--sasl-password-file", str(secret),
        "--ssl-ca-location", "ca.pem",
        "--ssl-certificate-location", "ours.pem",
        "--ssl-key-location", "key.pem",
    )  # fmt: skip
    kafka = read_settings({}, flags={"kafka": kafka_flags(options)}).kafka
    assert options["path"] == Path("tidemark.toml")
    assert (kafka.bootstrap_servers, kafka.name) == ("a:1", "payments")
    security = kafka.security()
    assert (security.protocol, security.sasl_mechanism) == ("SASL_SSL", "PLAIN")
    assert (security.sasl_username, security.sasl_password) == ("me", PHRASE)
    places = (
        security.ssl_ca_location, security.ssl_certificate_location, security.ssl_key_location,
    )  # fmt: skip
    assert places == ("ca.pem", "ours.pem", "key.pem")


def test_a_password_file_that_is_not_there_is_named_with_its_option() -> None:
    with pytest.raises(SettingsError, match="--sasl-password-file names a file"):
        kafka_flags(given("--sasl-password-file", "/no/such/file"))
