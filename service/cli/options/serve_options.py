"""The options of `tidemark serve`, shared with `tidemark config check`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from service.cli.options.kafka_options import Command, data_dir_option, kafka_flags, kafka_options
from service.cli.terminal.parameters import FiniteRange

SERVE_OPTIONS: Final = (
    click.option(
        "--interval", type=FiniteRange(0.5, 3600), metavar="SECONDS",
        help="Seconds from the start of one round to the start of the next  [default: 15]",
    ),
    click.option("--host", metavar="ADDRESS", help="Address to listen on  [default: 127.0.0.1]"),
    click.option("--port", type=int, metavar="PORT", help="TCP port, 0 for any  [default: 8780]"),
    click.option(
        "--log-format", type=click.Choice(["auto", "json", "console"]),
        help="Format of log lines  [default: auto]",
    ),
)  # fmt: skip


def serve_options(function: Command) -> Command:
    """Add `--config` and every option that becomes a setting of the service."""
    for option in reversed(SERVE_OPTIONS):
        function = option(function)
    return kafka_options(data_dir_option(function))


def serve_flags(options: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    """Return the flags from a command's options, by settings group; None: not set.

    Raises:
        SettingsError: the password's file cannot be read.
    """
    return {
        "kafka": kafka_flags(options),
        "service": {
            "data_dir": options["data_dir"],
            "interval_seconds": options["interval"],
            "log_format": options["log_format"],
        },
        "http": {"host": options["host"], "port": options["port"]},
    }
