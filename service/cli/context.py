"""`tidemark context`: names for several Tidemarks, with a token each."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any, Final

import click

from service.cli.server.contexts import (
    Context,
    contexts_path,
    read_contexts,
    write_contexts,
)
from service.cli.server.server_options import address, checked_token, token_from
from service.terminal.answer import print_answer
from service.terminal.formats import output_option
from service.terminal.parts import Line, Part, Table, long, short

MOST_BYTES: Final = 64 * 1024  # of a token
NAME: Final = re.compile(r"[\w.@-][\w.@ -]{0,62}")
COLUMNS: Final = (short("current"), long("name"), long("server"), long("token"))


@click.group("context")
def command() -> None:
    """Name several Tidemarks, and choose which one commands query.

    A command queries the one of --server, else of --context, else of TIDEMARK_SERVER, else of TIDEMARK_CONTEXT,
    else the current context, else the one on this machine. A context's token is sent to its own address only.

    \b
    Examples:
      tidemark context add prod --server https://tidemark.example --token-file ~/prod.token
      tidemark context use prod
      tidemark --context staging alerts ls
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


def _name(ctx: click.Context, param: click.Parameter, value: str) -> str:
    del ctx, param
    if not NAME.fullmatch(value) or not value.isprintable():
        raise click.BadParameter(f"{value!r} is no name of letters, digits, '.', '-', '_' and '@'")
    return value


NAME_ARGUMENT: Final = click.argument("name", metavar="NAME", callback=_name)


@command.command()
@NAME_ARGUMENT
@click.option("--server", required=True, metavar="URL", callback=address, help="Its address.")
@click.option(
    "--token-file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="File with the token, which is read at each use.",
)  # fmt: skip
@click.option(
    "--token-env",
    metavar="VARIABLE",
    help="Variable of the environment that has the token at each use.",
)
@click.option("--token-stdin", is_flag=True, help="Read the token from stdin, and store it.")
def add(
    name: str, *, server: str, token_file: Path | None, token_env: str | None, token_stdin: bool
) -> None:
    """Add a context, or replace the one of this name; the first one is used at once.

    \b
    Examples:
      tidemark context add prod --server https://tidemark.example --token-file ~/prod.token
      tidemark context add staging --server http://10.0.0.7:8780 --token-env STAGING_TOKEN
      pass tidemark/prod | tidemark context add prod --server https://tidemark.example --token-stdin
    """  # noqa: D301 - see above
    if sum((token_file is not None, token_env is not None, token_stdin)) > 1:
        raise click.UsageError("--token-file, --token-env and --token-stdin exclude each other")
    if token_file is not None:
        token_file = token_file.expanduser().absolute()
        token_from(token_file)
    token = None
    if token_stdin:
        token = checked_token(sys.stdin.read(MOST_BYTES), "standard input holds no token")
    context = Context(
        name=name,
        server=server,
        token=token,
        token_file=None if token_file is None else str(token_file),
        token_variable=token_env,
    )
    path = contexts_path(os.environ)
    contexts = read_contexts(path).with_context(context)
    write_contexts(path, contexts)
    remark = "current" if contexts.current == name else f"`tidemark context use {name}` uses it"
    click.echo(f"context {name}: {server}; {remark}", err=True)


@command.command("ls")
@output_option
def ls(**options: Any) -> None:
    """List the contexts; never a token.

    \b
    Examples:
      tidemark context ls
      tidemark context ls -o json | jq -r '.contexts[].name'
    """  # noqa: D301 - see above
    contexts = read_contexts(contexts_path(os.environ))
    rows = [_row(each, contexts.current) for _, each in sorted(contexts.by_name.items())]
    shown = [{**row, "current": "*" if row["current"] else ""} for row in rows]
    parts: list[Part] = [Table(columns=COLUMNS, rows=shown) if rows else Line("There is none.")]
    print_answer({"current": contexts.current, "contexts": rows}, parts, options)


@command.command()
@NAME_ARGUMENT
def use(name: str) -> None:
    """Let commands query this one, unless they name another. Exits with 6 if there is none.

    \b
    Examples:
      tidemark context use prod
    """  # noqa: D301 - see above
    path = contexts_path(os.environ)
    contexts = read_contexts(path).using(name)
    write_contexts(path, contexts)
    context = contexts.named(contexts.current or name)
    click.echo(f"context {context.name}: {context.server}; current", err=True)


@command.command()
@NAME_ARGUMENT
def rm(name: str) -> None:
    """Remove a context, and the token that is stored with it. Exits with 6 if there is none.

    \b
    Examples:
      tidemark context rm staging
    """  # noqa: D301 - see above
    path = contexts_path(os.environ)
    write_contexts(path, read_contexts(path).without(name))
    click.echo(f"context {name} is removed", err=True)


def _row(context: Context, current: str | None) -> dict[str, Any]:
    token = context.token_file or (context.token_variable and f"${context.token_variable}")
    return {
        "name": context.name,
        "server": context.server,
        "current": context.name == current,
        "token": token or ("stored" if context.token else None),
    }
