"""Options that several commands share: how to reach a cluster, and which settings file to read.

The commands pass the options to `read_settings` as flags, so that a flag overrides the environment
and the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from service.observe.cluster_reader import ClusterReader
    from service.settings import KafkaSettings

Command = Callable[..., Any]

# Options whose value is the setting's.
PLAIN_FLAGS: Final = (
    "name",
    "bootstrap_servers",
    "security_protocol",
    "sasl_mechanism",
    "sasl_username",
    "ssl_ca_location",
    "ssl_certificate_location",
    "ssl_key_location",
    "sees_all_transactional_ids",
)

KAFKA_OPTIONS: Final = (
    click.option("--bootstrap-servers", metavar="HOST:PORT,...", help="Brokers to begin with."),
    click.option("--cluster", "name", metavar="NAME", help="Name to show for the cluster."),
    click.option(
        "--security-protocol", metavar="NAME", help="PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL."
    ),
    click.option("--sasl-mechanism", metavar="NAME", help="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."),
    click.option("--sasl-username", metavar="NAME", help="User name for SASL."),
    click.option(
        "--sasl-password-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="File that holds the password, or TIDEMARK_KAFKA__SASL_PASSWORD in the environment.",
    ),
    click.option("--ssl-ca-location", metavar="FILE", help="PEM file of the authority to trust."),
    click.option("--ssl-certificate-location", metavar="FILE", help="PEM file of our certificate."),
    click.option("--ssl-key-location", metavar="FILE", help="PEM file of its key."),
    click.option(
        "--sees-all-transactional-ids",
        is_flag=True,
        default=None,
        help="Declare that we may describe every transactional id, if it cannot be determined.",
    ),
)


def config_option(function: Command) -> Command:
    """Add `--config FILE`, given to the command as `path`."""
    return click.option(
        "--config",
        "path",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="TOML file of settings; `tidemark config example` prints one.",
    )(function)


def data_dir_option(function: Command) -> Command:
    """Add `--data-dir FOLDER`, given to the command as `data_dir`."""
    return click.option(
        "--data-dir",
        metavar="FOLDER",
        help="Data directory  [default: ~/.local/state/tidemark]",
    )(function)


def kafka_options(function: Command) -> Command:
    """Add `--config` and every option that says how to reach a cluster."""
    for option in reversed(KAFKA_OPTIONS):
        function = option(function)
    return config_option(function)


def kafka_flags(options: Mapping[str, Any]) -> dict[str, object]:
    """Return the flags of the settings group kafka from a command's options; None: not set.

    Raises:
        SettingsError: the password's file cannot be read.
    """
    flags: dict[str, object] = {key: options[key] for key in PLAIN_FLAGS}
    if options["sasl_password_file"] is not None:
        from service.settings import secret_from  # noqa: PLC0415 - keeps `--help` fast

        flags["sasl_password"] = secret_from("--sasl-password-file", options["sasl_password_file"])
    return flags


def asks_brokers(options: Mapping[str, Any]) -> bool:
    """Whether an option says how to reach a cluster; the environment alone does not."""
    return options["path"] is not None or any(
        value is not None for value in kafka_flags(options).values()
    )


@contextmanager
def open_reader(options: Mapping[str, Any]) -> Iterator[tuple[ClusterReader, KafkaSettings]]:
    """Yield a reader of the cluster that a command's options name, and its settings."""
    from service.app.cluster import cluster_reader  # noqa: PLC0415 - keeps `--help` fast
    from service.settings import read_settings  # noqa: PLC0415 - same

    settings = read_settings(
        os.environ, path=options["path"], flags={"kafka": kafka_flags(options)}
    )
    reader = cluster_reader(settings.kafka)
    try:
        yield reader, settings.kafka
    finally:
        reader.close()
