"""`tidemark token`: who may use the HTTP API.

A secret is written once, alone, to stdout, so that it can be redirected into a file or a secret
store; all other text goes to stderr.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from rules.errors import StoreError
from service.cli.database import database_options, settings_of
from service.terminal.answer import print_columns, print_json
from service.terminal.formats import output_option
from service.terminal.words import text

if TYPE_CHECKING:
    from datetime import datetime

    from service.storage.tokens.tokens import ApiToken

# Those of service.storage.tokens.tokens, whose import would import the database.
SCOPES: Final = ("read", "ack", "silence", "admin", "ingest")
MAX_NAME: Final = 100
TIMES: Final = ("created", "last_used", "revoked", "expires")
MAX_DAYS: Final = 3650


@click.group("token")
def command() -> None:
    """Create, list and revoke tokens of the HTTP API; the database has only their hashes.

    Works while `tidemark serve` runs on the same data directory.

    \b
    Examples:
      tidemark token create prometheus --scope read > /run/secrets/tidemark
      tidemark token list
      tidemark token revoke prometheus
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


def _name(ctx: click.Context, param: click.Parameter, value: str) -> str:
    del ctx, param
    if not value.isprintable() or not 0 < len(value.strip()) <= MAX_NAME:
        raise click.BadParameter(f"a name must be printable and have 1 to {MAX_NAME} characters")
    return value.strip()


@command.command()
@click.argument("name", callback=_name)
@click.option(
    "--scope", "scopes", type=click.Choice(SCOPES), multiple=True, required=True,
    help="What the token may do; repeat it for more. No scope implies another.",
)  # fmt: skip
@click.option(
    "--days",
    type=click.IntRange(1, MAX_DAYS),
    metavar="N",
    help="After so many days the token expires. Default: never.",
)
@database_options
def create(name: str, *, scopes: Sequence[str], days: int | None, **options: Any) -> None:
    """Create a token and print its secret, which cannot be shown again.

    A name cannot be used again, even after the token was revoked: the record of access stays.

    \b
    Examples:
      tidemark token create prometheus --scope read > /run/secrets/tidemark
      tidemark token create on-call --scope read --scope ack --scope silence --days 90
    """  # noqa: D301 - see above
    from service.runtime.clock import utc_now  # noqa: PLC0415 - keeps `--help` fast
    from service.storage.database.opening import open_at_head  # noqa: PLC0415 - same
    from service.storage.tokens import tokens  # noqa: PLC0415 - same

    granted = {tokens.Scope(scope) for scope in scopes}
    with open_at_head(settings_of(options)) as engine:
        now = utc_now()
        expires = None if days is None else now + timedelta(days=days)
        secret = tokens.create(engine, name, granted, now, expires)
    scope_names = ", ".join(sorted(granted))
    click.echo(secret)
    click.echo(f"token {name} may {scope_names}; its secret is not shown again", err=True)


@command.command("list")
@database_options
@output_option
def list_(*, output: str, **options: Any) -> None:
    """List all tokens, revoked ones too; never a secret.

    \b
    Examples:
      tidemark token list
      tidemark token list -o json | jq -r '.[] | select(.revoked == null) | .name'
    """  # noqa: D301 - see above
    from service.storage.database.opening import open_at_head  # noqa: PLC0415 - same
    from service.storage.tokens import tokens  # noqa: PLC0415 - keeps `--help` fast

    with open_at_head(settings_of(options)) as engine:
        listed = tokens.list_tokens(engine)
    documents = [_document(token) for token in listed]
    if output == "json":
        print_json(documents, indent=2)
    else:
        headings = ("name", "scopes", *(name.replace("_", " ") for name in TIMES))
        print_columns([headings, *map(_cells, documents)])


@command.command()
@click.argument("name", callback=_name)
@database_options
def revoke(name: str, **options: Any) -> None:
    """Revoke a token for ever. Exits with 9 if there is no such token.

    A running service checks a token in use again after 10 seconds, during a request, which still
    succeeds. A token that was not used for two minutes is checked before the request.

    \b
    Examples:
      tidemark token revoke prometheus
      tidemark token revoke prometheus --data-dir /var/lib/tidemark
    """  # noqa: D301 - see above
    from service.runtime.clock import utc_now  # noqa: PLC0415 - keeps `--help` fast
    from service.storage.database.opening import open_at_head  # noqa: PLC0415 - same
    from service.storage.tokens import tokens  # noqa: PLC0415 - same

    with open_at_head(settings_of(options)) as engine:
        if not tokens.revoke(engine, name, utc_now()):
            message = f"there is no token {name} to revoke; see `tidemark token list`"
            raise StoreError(message, retryable=False)
    click.echo(
        f"token {name} is revoked; a running service rejects it within two minutes", err=True
    )


def _document(token: ApiToken) -> dict[str, Any]:
    times = (token.created, token.last_used, token.revoked, token.expires)
    return {
        "name": token.name,
        "scopes": sorted(token.scopes),
        **{name: _time(at) for name, at in zip(TIMES, times, strict=True)},
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _cells(document: dict[str, Any]) -> tuple[str, ...]:
    times = (text(document[name]) for name in TIMES)
    return document["name"], ",".join(document["scopes"]), *times
