"""Options of the commands that query a running Tidemark, and their check; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click

from rules.errors import SettingsError
from service.cli.terminal.formats import output_option

if TYPE_CHECKING:
    from service.cli.server.api_client import ApiClient

Command = Callable[..., Any]

VARIABLE: Final = "TIDEMARK_SERVER"
DEFAULT: Final = "http://127.0.0.1:8780"


def address(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return an address that is given, checked: http or https, and without a password."""
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
    return value


SERVER: Final = click.option(
    "--server", default=DEFAULT, envvar=VARIABLE, show_envvar=True, show_default=True,
    metavar="URL", callback=address, help="Address of the running Tidemark.",
)  # fmt: skip
SERVER_IF_ANY: Final = click.option(
    "--server", envvar=VARIABLE, show_envvar=True, metavar="URL", callback=address,
    help="Address of a running Tidemark to query too; default: none.",
)  # fmt: skip
TOKEN_FILE: Final = click.option(
    "--token-file", type=click.Path(path_type=Path), metavar="FILE",
    help="File with a token of scope read; on loopback none is needed.",
)  # fmt: skip


def server_options(function: Command) -> Command:
    """Add `-o table|json`, `--server URL` and `--token-file FILE`."""
    return output_option(SERVER(TOKEN_FILE(function)))


def server_options_for(scope: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the server's options to a command that needs this scope."""
    token_file = click.option(
        "--token-file", type=click.Path(path_type=Path), metavar="FILE",
        help=f"File with a token of scope {scope}; its name is recorded as the author. On loopback "
        "none is needed.",
    )  # fmt: skip
    return lambda function: SERVER(token_file(function))


def optional_server_options(function: Command) -> Command:
    """Add the same options to a command that needs no server: without an address it is None."""
    return SERVER_IF_ANY(TOKEN_FILE(function))


def client_of(options: Mapping[str, Any], *, scope: str = "read") -> ApiClient:
    """Return a client of the Tidemark that a command's options name; errors name the scope.

    Raises:
        SettingsError: the token's file cannot be read, or holds no token.
    """
    from service.cli.server.api_client import ApiClient  # noqa: PLC0415 - keeps `--help` fast

    path = options["token_file"]
    token = None if path is None else token_from(path)
    return ApiClient(options["server"], token=token, scope=scope)


def token_from(path: Path, option: str = "--token-file") -> str:
    """Return the token that the file of an option holds.

    Raises:
        SettingsError: the file cannot be read, or holds no token.
    """
    from service.settings import secret_from  # noqa: PLC0415 - keeps `--help` fast

    secret = secret_from(option, path).strip()
    if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise SettingsError(f"the file of {option} holds no token: {path}")
    return secret
