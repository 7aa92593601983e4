"""Options of the commands that query a running Tidemark, and their check; imports nothing heavy."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from rules.errors import SettingsError
from service.terminal.formats import output_option

if TYPE_CHECKING:
    from service.cli.server.api_client import ApiClient
    from service.cli.server.contexts import Context, Contexts

Command = Callable[..., Any]

VARIABLE: Final = "TIDEMARK_SERVER"
CONTEXT_VARIABLE: Final = "TIDEMARK_CONTEXT"
CHOSEN_CONTEXT: Final = "tidemark.chosen_context"  # keys of a context's meta: name, by a flag
NAMED_SERVER: Final = "tidemark.named_server"  # whether --server was given
USED_CONTEXT: Final = "tidemark.used_context"  # the context, whether it is the current one
DEFAULT: Final = "http://127.0.0.1:8780"


def address(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return an address that is given, checked: http or https, and without a password; in one form, to compare it."""
    del ctx, param
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
        parts = urlsplit("")
    if not is_address or parts.query or parts.fragment or not value.isprintable() or " " in value:
        raise click.BadParameter(f"{value!r} is not an address like {DEFAULT}")
    if parts.username is not None or parts.password is not None:
        raise click.BadParameter(
            "an address must not hold a user name or password: use --token-file"
        )
    return value.rstrip("/")


def server_to_query(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return the address to query: that of a context is remembered, because its token goes with it."""
    if ctx.resilient_parsing:
        return value
    name, is_flag = ctx.meta.get(CHOSEN_CONTEXT, (None, False))
    source = ctx.get_parameter_source(str(param.name))
    if source is ParameterSource.COMMANDLINE:
        if is_flag:
            raise click.UsageError("--server and --context exclude each other", ctx)
        ctx.meta[NAMED_SERVER] = True
        return address(ctx, param, value)
    if is_flag or (name is not None and source is not ParameterSource.ENVIRONMENT):
        return _use(ctx, param, _contexts().named(name))
    if source is ParameterSource.ENVIRONMENT or value is None:
        return address(ctx, param, value)
    contexts = _contexts()
    if contexts.current is not None:
        return _use(ctx, param, contexts.named(contexts.current), is_current=True)
    return address(ctx, param, value)


def _contexts() -> Contexts:
    from service.cli.server.contexts import (  # noqa: PLC0415 - keeps `--help` fast
        contexts_path,
        read_contexts,
    )

    return read_contexts(contexts_path(os.environ))


def _use(
    ctx: click.Context, param: click.Parameter, context: Context, *, is_current: bool = False
) -> str | None:
    ctx.meta[USED_CONTEXT] = context, is_current
    return address(ctx, param, context.server)


def _choose_context(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        source = ctx.get_parameter_source(str(param.name))
        is_flag = source is ParameterSource.COMMANDLINE
        if is_flag or CHOSEN_CONTEXT not in ctx.meta:
            ctx.meta[CHOSEN_CONTEXT] = value, is_flag


def context_option(function: Command) -> Command:
    """Add `--context NAME`, which the command does not see: it chooses the server and its token."""
    return click.option(
        "--context", metavar="NAME", envvar=CONTEXT_VARIABLE, show_envvar=True, is_eager=True,
        expose_value=False, callback=_choose_context,
        help="The Tidemark of this name (`tidemark context ls`).",
    )(function)  # fmt: skip


def options_to(server: str) -> str:
    """Return the options by which another command queries the same Tidemark, "" if it needs none.

    Where this command was told the address, the other one has to be told as well: without it a current
    context or the environment might name another Tidemark.
    """
    ctx = click.get_current_context(silent=True)
    meta = {} if ctx is None else ctx.meta
    context, is_current = meta.get(USED_CONTEXT, (None, False))
    if context is not None and context.server == server:
        return "" if is_current else f" --context {shlex.quote(context.name)}"
    if server == DEFAULT and not meta.get(NAMED_SERVER, False):
        return ""
    return f" --server {shlex.quote(server)}"


def options_to_also(server: str) -> str:
    """Return the options by which a command that queries no Tidemark by itself, as `tx show`, queries the same one."""
    ctx = click.get_current_context(silent=True)
    context, _is_current = ({} if ctx is None else ctx.meta).get(USED_CONTEXT, (None, False))
    if context is not None and context.server == server:
        return f" --context {shlex.quote(context.name)}"
    return f" --server {shlex.quote(server)}"


def server_option(
    callback: Callable[..., str | None] = server_to_query,
) -> Callable[[Command], Command]:
    """Return a decorator that adds `--server URL`, whose value the callback decides."""
    return click.option(
        "--server", default=DEFAULT, envvar=VARIABLE, show_envvar=True, show_default=True,
        metavar="URL", callback=callback, help="Address of the running Tidemark.",
    )  # fmt: skip


SERVER: Final = server_option()
SERVER_IF_ANY: Final = click.option(
    "--server", envvar=VARIABLE, show_envvar=True, metavar="URL", callback=server_to_query,
    help="Address of a running Tidemark to query too; default: none.",
)  # fmt: skip
TOKEN_FILE: Final = click.option(
    "--token-file", type=click.Path(path_type=Path), metavar="FILE",
    help="File with a token of scope read; on loopback none is needed.",
)  # fmt: skip


def server_options(function: Command) -> Command:
    """Add `-o table|json`, `--server URL` and `--token-file FILE`."""
    return output_option(context_option(SERVER(TOKEN_FILE(function))))


def server_options_for(scope: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the server's options to a command that needs this scope."""
    token_file = click.option(
        "--token-file", type=click.Path(path_type=Path), metavar="FILE",
        help=f"File with a token of scope {scope}; its name is recorded as the author. On loopback "
        "none is needed.",
    )  # fmt: skip
    return lambda function: context_option(SERVER(token_file(function)))


def optional_server_options(function: Command) -> Command:
    """Add the same options to a command that needs no server: without an address it is None."""
    return context_option(SERVER_IF_ANY(TOKEN_FILE(function)))


def client_of(options: Mapping[str, Any], *, scope: str = "read") -> ApiClient:
    """Return a client of the Tidemark that a command's options name; errors name the scope.

    Raises:
        SettingsError: the token's file cannot be read, or holds no token.
    """
    from service.cli.server.api_client import ApiClient  # noqa: PLC0415 - keeps `--help` fast

    path = options["token_file"]
    token = _context_token(options["server"]) if path is None else token_from(path)
    return ApiClient(options["server"], token=token, scope=scope)


def token_from(path: Path, option: str = "--token-file") -> str:
    """Return the token that the file of an option holds.

    Raises:
        SettingsError: the file cannot be read, or holds no token.
    """
    from service.runtime.secret_files import secret_from  # noqa: PLC0415 - keeps `--help` fast

    return checked_token(secret_from(option, path), f"the file of {option} holds no token: {path}")


def checked_token(text: str, problem: str) -> str:
    """Return a token without the space around it.

    Raises:
        SettingsError: it is none; `problem` is the text.
    """
    secret = text.strip()
    if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise SettingsError(problem)
    return secret


def _context_token(server: str) -> str | None:
    """Return the token of the context in use; to another address than its own it is never sent."""
    ctx = click.get_current_context(silent=True)
    context: Context | None = None if ctx is None else ctx.meta.get(USED_CONTEXT, (None,))[0]
    if context is None or context.server != server:
        return None
    if context.token_file is not None:
        return token_from(Path(context.token_file), f"context {context.name}")
    if context.token_variable is not None:
        variable = context.token_variable
        value = os.environ.get(variable, "")
        return checked_token(value, f"{variable}, of context {context.name}, holds no token")
    return context.token
