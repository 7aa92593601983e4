"""`tidemark serve`: watch a cluster continuously."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TextIO

import click

from service.cli.options.kafka_options import Command, data_dir_option, kafka_flags, kafka_options
from service.terminal.exit_codes import ExitCode
from service.terminal.parameters import FiniteRange

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


@click.command(name="serve")
@serve_options
def command(**options: Any) -> int:
    """Watch a cluster continuously: rounds, verdicts, storage, metrics, HTTP.

    Needs only the address of a broker: PostgreSQL runs embedded in the data directory, or
    elsewhere by TIDEMARK_DATABASE__URL. Metrics are at http://127.0.0.1:8780/metrics, the API below
    /api/v1/, probes at /livez and /readyz. SIGTERM or Ctrl-C finishes and stores the round; a
    second one stops sooner. `tidemark config check` shows every setting that would be used.

    \b
    Examples:
      tidemark serve --bootstrap-servers broker-1:9092
      tidemark serve --config tidemark.toml --data-dir /var/lib/tidemark
      TIDEMARK_HTTP__TOKEN_FILE=/run/secrets/token tidemark serve --host 0.0.0.0
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    import asyncio  # noqa: PLC0415 - keeps `--help` fast

    from service.runtime.allocator import keep_memory_small  # noqa: PLC0415
    from service.settings import read_settings  # noqa: PLC0415

    keep_memory_small()
    settings = read_settings(os.environ, path=options["path"], flags=serve_flags(options))
    from service.app.process import open_service  # noqa: PLC0415 - not for wrong settings

    # Not the guarded stream: a log that cannot be written must not stop the service.
    with _stdout() as stream, open_service(settings, stream, options["path"]) as service:
        ended_well = asyncio.run(service.run())
    return ExitCode.OK if ended_well else ExitCode.FAILED


@contextmanager
def _stdout() -> Iterator[TextIO]:
    """Yield the real stdout, or the null device if the parent process closed it."""
    if sys.__stdout__ is not None:
        yield sys.__stdout__
        return
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        yield nowhere
