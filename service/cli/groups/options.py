"""Where `groups` and `lag` get their answers: a running Tidemark, or the cluster itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from service.cli.options.kafka_options import kafka_options
from service.cli.server.server_options import (
    CHOSEN_CONTEXT,
    TOKEN_FILE,
    Command,
    context_option,
    server_option,
    server_to_query,
)
from service.terminal.formats import output_option


def source_options(function: Command) -> Command:
    """Add the options of a running Tidemark, and those of a cluster."""
    server = server_option(_server_unless_direct)
    return output_option(context_option(server(TOKEN_FILE(kafka_options(function)))))


def is_direct(options: Mapping[str, Any]) -> bool:
    """Whether the options name a cluster: it is read once, without a Tidemark that runs.

    Raises:
        UsageError: they name both.
    """
    cluster = _cluster_option(options)
    if cluster is None:
        return False
    context = click.get_current_context()
    _, is_flag = context.meta.get(CHOSEN_CONTEXT, (None, False))
    is_given = context.get_parameter_source("server") is ParameterSource.COMMANDLINE
    if is_flag or is_given:
        server = "--context" if is_flag else "--server"
        raise click.UsageError(f"{server} and {cluster} exclude each other")
    return True


def _cluster_option(options: Mapping[str, Any]) -> str | None:
    if options.get("bootstrap_servers") is not None:
        return "--bootstrap-servers"
    return None if options.get("path") is None else "--config"


def _server_unless_direct(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> str | None:
    """Return the address to query; of a cluster neither contexts nor the environment are read.

    click has the options that were given in `ctx.params` before those that were not.
    """
    if _cluster_option(ctx.params) is not None:
        return value
    return server_to_query(ctx, param, value)
