"""`tidemark silences`: hold back the notifications of alerts for a while."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from service.cli.server import listing
from service.cli.server.server_options import client_of, server_options, server_options_for
from service.terminal.answer import print_answer
from service.terminal.formats import output_option
from service.terminal.parameters import Duration, Timestamp
from service.terminal.parts import Facts, Line, Part, Row, long, short, time_column
from service.terminal.words import text, time

if TYPE_CHECKING:
    from service.cli.server.api_client import ApiClient

STATES: Final = ("current", "pending", "active", "expired", "all")
SCOPE: Final = "silence"
WHOLE: Final = 36  # characters of an id
BEGINNING: Final = re.compile("[0-9a-f][0-9a-f-]{3,34}")
SILENCES: Final = listing.Resource(
    path="silences",
    name="silences",
    columns=(
        short("state"),
        long("matchers"),
        time_column("from", "starts_at"),
        time_column("until", "ends_at"),
        long("by", "created_by"),
        long("comment"),
        short("id"),
    ),
)


@click.group("silences")
def command() -> None:
    """Hold back notifications of alerts for a while; the alerts still fire and end.

    Queries a running `tidemark serve`. Matchers are written as Alertmanager's amtool does:
    topic=orders, severity!=critical, topic=~"orders|payments", group!~"test-.*".

    \b
    Examples:
      tidemark silences add topic=orders --for 2h --comment 'broker 2 is being replaced'
      tidemark silences ls
      tidemark silences expire 6f1c2b1e-8c4d-4a0e-9f57-3d1f0f0c9a11
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


class SilenceId(click.ParamType[str]):
    """The id of a silence, or at least its first four digits."""

    name = "ID"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the id in its canonical form, or its beginning."""
        try:
            return str(uuid.UUID(value))
        except ValueError:
            beginning = str(value).lower()
        if not BEGINNING.fullmatch(beginning):
            self.fail(
                f"{value!r} is not the id of a silence, as `tidemark silences ls` shows, or the first of its "
                "digits, at least 4",
                param,
                ctx,
            )
        return beginning


ID: Final = click.argument("name", metavar="ID", type=SilenceId())
MATCHERS: Final = click.argument("matchers", metavar="MATCHER...", nargs=-1)
FOR: Final = click.option(
    "--for", "duration", type=Duration(), help="How long, like 2h, 90m or 1d12h; or --until."
)
UNTIL: Final = click.option("--until", type=Timestamp(), help="Its end, like 2026-01-31T03:00:00Z.")
FROM: Final = click.option("--from", "start", type=Timestamp(), help="Its start, if not now.")
ALL: Final = click.option(
    "--all", "is_all", is_flag=True, help="Confirm that the matchers may hold back every alert."
)


@command.command("ls")
@click.option(
    "--state", type=click.Choice(STATES), default="current", show_default=True,
    help="current: active or pending.",
)  # fmt: skip
@server_options
def ls(**options: Any) -> None:
    """List silences, the latest end first.

    \b
    Examples:
      tidemark silences ls
      tidemark silences ls --state expired
      tidemark silences ls -o json | jq -r '.silences[] | "\\(.ends_at) \\(.matchers)"'
    """  # noqa: D301 - see above
    state = options["state"]
    suffix = {"all": "", "current": " is active or pending"}.get(state, f" is {state}")
    listing.print_list(SILENCES, options, "state", empty=f"no silence{suffix}")


@command.command()
@ID
@server_options
def show(name: str, **options: Any) -> None:
    """Show one silence, even if it has expired.

    \b
    Examples:
      tidemark silences show 6f1c2b1e-8c4d-4a0e-9f57-3d1f0f0c9a11
    """  # noqa: D301 - see above
    listing.print_one(lambda api: _fetch(api, name), options, render_details)


@command.command()
@MATCHERS
@FOR
@UNTIL
@FROM
@click.option("--comment", required=True, metavar="TEXT", help="Why; your colleagues will read it.")
@ALL
@output_option
@server_options_for(SCOPE)
def add(matchers: Sequence[str], **options: Any) -> None:
    """Hold back the alerts whose labels all MATCHERs have; a missing label counts as empty.

    It has an end: give --for or --until. A silence that holds back every alert needs --all.

    \b
    Examples:
      tidemark silences add topic=orders --for 2h --comment 'broker 2 is being replaced'
      tidemark silences add 'topic=~"orders|payments"' severity!=critical --for 1d --comment 'load test'
      tidemark silences add cluster=staging --from 2026-01-31T22:00:00Z --for 4h --comment 'upgrade'
    """  # noqa: D301 - see above
    if not matchers:
        raise click.UsageError('give at least one MATCHER, like topic=orders (for all: =~".*")')
    body = _body(matchers, options)
    if body["ends_at"] is None:
        raise click.UsageError("a silence needs an end: --for 2h, or --until TIME")
    with client_of(options, scope=SCOPE) as api:
        _print(api.change("POST", "silences", body).document, options)


@command.command()
@ID
@MATCHERS
@FOR
@UNTIL
@FROM
@click.option("--comment", metavar="TEXT", help="Another reason.")
@ALL
@output_option
@server_options_for(SCOPE)
def edit(name: str, matchers: Sequence[str], **options: Any) -> None:
    """Change a silence that has not expired: other fields stay; --for counts from now.

    Exits with 14 if somebody else changed it meanwhile.

    \b
    Examples:
      tidemark silences edit 6f1c2b1e-8c4d-4a0e-9f57-3d1f0f0c9a11 --for 4h
      tidemark silences edit 6f1c2b1e-8c4d-4a0e-9f57-3d1f0f0c9a11 topic=orders --comment 'still at it'
    """  # noqa: D301 - see above
    body = _body(matchers, options)
    if not any(body[name] for name in ("matchers", "starts_at", "ends_at", "comment")):
        raise click.UsageError("nothing to change is given: MATCHER, --for, --until, --comment")
    with client_of(options, scope=SCOPE) as api:
        name = _whole(api, name)
        now = api.observe(f"silences/{name}")
        was = now.document["silence"]
        body |= {key: body[key] or was[key] for key in ("matchers", "ends_at", "comment")}
        changed = api.change("PUT", f"silences/{name}", body, etag=now.etag)
    _print(changed.document, options)


@command.command()
@click.argument("names", metavar="ID...", nargs=-1, required=True, type=SilenceId())
@server_options_for(SCOPE)
def expire(names: Sequence[str], **options: Any) -> None:
    """End silences now; their record stays.

    \b
    Examples:
      tidemark silences expire 6f1c2b1e-8c4d-4a0e-9f57-3d1f0f0c9a11
    """  # noqa: D301 - see above
    with client_of(options, scope=SCOPE) as api:
        for name in names:
            with listing.about(name):
                silence = _whole(api, name)
                etag = api.observe(f"silences/{silence}").etag
                api.change("DELETE", f"silences/{silence}", etag=etag)
            click.echo(f"silence {silence} has expired")


def _fetch(api: ApiClient, name: str) -> Row:
    silence = _whole(api, name)
    return listing.fetch(api, f"silences/{silence}", f"silence {silence}")


def _whole(api: ApiClient, name: str) -> str:
    """Return the id that begins so; a whole one is not looked up."""
    if len(name) == WHOLE:
        return name
    return listing.complete_id(api, "silences", name, "silence", field="id", state="all")


def _body(matchers: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    start, end = options["start"], _end(options)
    return {
        "matchers": ",".join(matchers),
        "starts_at": None if start is None else start.isoformat(),
        "ends_at": None if end is None else end.isoformat(),
        "comment": options["comment"],
        "all": options["is_all"],
    }


def _end(options: Mapping[str, Any]) -> datetime | None:
    """Return the end of a silence, None if the options have none."""
    duration: timedelta | None = options["duration"]
    until: datetime | None = options["until"]
    if duration is None:
        return until
    if until is not None:
        raise click.UsageError("give --for or --until, not both")
    from service.runtime.clock import utc_now  # noqa: PLC0415 - keeps `--help` fast

    try:
        return (options["start"] or utc_now()) + duration
    except OverflowError:
        raise click.UsageError("--for ends after the last day of the calendar") from None


def _print(document: Row, options: Mapping[str, Any]) -> None:
    print_answer(document, render_details(document), options)


def render_details(document: Row) -> Iterator[Part]:
    """Yield all details of one silence."""
    row = document["silence"]
    yield Line(f"{text(row.get('state')).upper()}  {row.get('matchers')}", "bold")
    yield Facts([
        ("from", time(row.get("starts_at"))),
        ("until", time(row.get("ends_at"))),
        ("by", text(row.get("created_by"))),
        ("comment", text(row.get("comment"))),
        ("created", time(row.get("created_at"))),
        ("changed", time(row.get("updated_at"))),
        ("version", text(row.get("version"))),
        ("id", text(row.get("id"))),
    ])  # fmt: skip
