"""Where `groups` and `lag` get their answers: a running Tidemark, or the cluster itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from service.cli.options.kafka_options import kafka_options
from service.cli.server.server_options import Command, server_options


def source_options(function: Command) -> Command:
    """Add the options of a running Tidemark, and those of a cluster."""
    return server_options(kafka_options(function))


def is_direct(options: Mapping[str, Any]) -> bool:
    """Whether the options name a cluster: it is read once, without a Tidemark that runs.

    Raises:
        UsageError: they name both.
    """
    if options["bootstrap_servers"] is None and options["path"] is None:
        return False
    context = click.get_current_context()
    if context.get_parameter_source("server") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--server and --bootstrap-servers exclude each other")
    return True
