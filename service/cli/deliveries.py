"""`tidemark deliveries`: notifications sent to receivers, with each attempt, and their replay."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any, Final

import click

from collectors.naming import counted
from service.cli.server import listing
from service.cli.server.server_options import client_of, server_options, server_options_for
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import output_option
from service.terminal.parameters import wait_option
from service.terminal.parts import Facts, Line, Part, Row, Table, long, short, time_column
from service.terminal.words import ABSENT, text, time

STATES: Final = ("waiting", "sending", "delivered", "superseded", "dead")
UNDER_WAY: Final = ("waiting", "sending")
POLL_SECONDS: Final = 0.5
STYLES: Final = {"dead": "bold red", "waiting": "bold yellow"}
NUMBER: Final = click.argument("number", metavar="ID", type=click.IntRange(1, 2**63 - 1))


def _content(row: Row) -> str:
    what, count = "firing" if row.get("is_firing") else "resolved", row.get("alerts")
    return what if count is None else f"{what}, {counted(count, 'alert')}"


def _took(attempt: Row) -> str:
    took_ms = attempt.get("took_ms")
    return ABSENT if took_ms is None else f"{took_ms} ms"


DELIVERIES: Final = listing.Resource(
    path="deliveries",
    name="deliveries",
    columns=(
        short("id"),
        short("state"),
        long("receiver"),
        short("about", _content),
        long("why", "reason"),
        short("attempts"),
        time_column("created", "created_at"),
        time_column("next or done", "done_at", "next_attempt_at"),
        long("group", "group_key"),
    ),
    style=lambda row: STYLES.get(str(row.get("state"))),
)
ATTEMPTS: Final = (
    time_column("at", "at"),
    short("took", _took),
    short("outcome"),
    short("status"),
    long("failure"),
    long("detail"),
)


@click.group("deliveries")
def command() -> None:
    """Show deliveries to receivers: sent, waiting and given up; send one again.

    Queries a running `tidemark serve`. docs/alerts.md says what is guaranteed and what is not.

    \b
    Examples:
      tidemark deliveries ls --state dead
      tidemark deliveries show 7
      tidemark deliveries replay 7
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("ls")
@click.option("--receiver", metavar="NAME", help="Only to this receiver.")
@click.option("--state", type=click.Choice(STATES), help="Only in this state.")
@listing.limit_option
@server_options
def ls(**options: Any) -> None:
    """List deliveries, newest first.

    \b
    waiting     not sent yet, or to be sent again
    sending     an attempt is in progress
    delivered   the receiver has accepted it
    superseded  a newer one of the same group was sent instead
    dead        given up: the receiver will never accept it; it can be replayed

    \b
    Examples:
      tidemark deliveries ls
      tidemark deliveries ls --receiver pager --state waiting
      tidemark deliveries ls -o json | jq '.deliveries[] | {webhook_id, state, attempts}'
    """  # noqa: D301 - see above
    listing.print_list(DELIVERIES, options, "receiver", "state", empty="no delivery")


@command.command()
@NUMBER
@server_options
def show(number: int, **options: Any) -> None:
    """Show a delivery with its attempts and its body, which holds no secrets.

    \b
    Examples:
      tidemark deliveries show 7
      tidemark deliveries show 7 -o json | jq '.body.alerts[].labels'
    """  # noqa: D301 - see above
    path, what = f"deliveries/{number}", f"delivery {number}"
    listing.print_one(lambda api: listing.fetch(api, path, what), options, render_details)


@command.command()
@NUMBER
@wait_option
@output_option
@server_options_for("admin")
def replay(number: int, *, wait: float, **options: Any) -> int:
    """Send a dead delivery again, as a new delivery with a webhook-id of its own.

    Exits with 1 if it was not delivered within --wait.

    \b
    Examples:
      tidemark deliveries replay 7
    """  # noqa: D301 - see above
    return send(f"deliveries/{number}/replay", options, seconds=wait)


def send(
    path: str, options: Mapping[str, Any], *, seconds: float, receiver: str | None = None
) -> int:
    """Start a delivery, wait up to `seconds` for its result, print it, and return the exit code.

    `receiver` is the name that was typed, if one was.
    """
    from service.runtime import clock  # noqa: PLC0415 - keeps `--help` fast

    with client_of(options, scope="admin") as api:
        with (
            nullcontext()
            if receiver is None
            else listing.suggesting(api, "receivers", receiver, "receiver")
        ):
            row = api.change("POST", path).document["delivery"]
        document: Row = {"delivery": row, "attempts": []}

        def is_done() -> bool:
            nonlocal document
            document = api.get(f"deliveries/{row['id']}")
            return document["delivery"]["state"] not in UNDER_WAY

        if seconds > 0:
            clock.wait_until(is_done, timeout_seconds=seconds, poll_seconds=POLL_SECONDS)
    print_answer(document, _render_result(document), options)
    if document["delivery"]["state"] == "delivered" or not seconds:
        return ExitCode.OK
    click.echo(
        f"tidemark: not delivered; check later: tidemark deliveries show {row['id']}", err=True
    )
    return ExitCode.INCOMPLETE


def _render_result(document: Row) -> Iterator[Part]:
    row = document["delivery"]
    if document.get("attempts"):
        yield Table(columns=ATTEMPTS, rows=document["attempts"])
    tried = f", attempts: {row['attempts']}" if row.get("attempts") else ""
    yield Line(f"delivery {row['id']} to {row['receiver']}: {row['state']}{tried}")


def render_details(document: Row) -> Iterator[Part]:
    """Yield all details of one delivery."""
    row = document["delivery"]
    head = f"{text(row.get('state')).upper()}  delivery {row.get('id')} to {row.get('receiver')}"
    yield Line(head, STYLES.get(str(row.get("state")), "bold"))
    yield Facts(_facts(row))
    if document.get("attempts"):
        yield Line("ATTEMPTS, oldest first", "bold")
        yield Table(columns=ATTEMPTS, rows=document["attempts"])
        yield Facts([("last answer", document["attempts"][-1].get("reply") or None)])
    if document.get("body") is None:
        yield Line("Its body is no longer stored.")
        return
    yield Line("BODY", "bold")
    yield from map(Line, json.dumps(document["body"], indent=2, ensure_ascii=False).splitlines())


def _facts(row: Row) -> list[tuple[str, str | None]]:
    """Return labels and values; an absent value is left out."""
    superseded, replay = row.get("superseded_by"), row.get("replay_of")
    fallback = row.get("fallback_of")
    return [
        ("webhook-id", text(row.get("webhook_id"))),
        ("about", f"{_content(row)}: {text(row.get('reason'))}"),
        ("group", text(row.get("group_key"))),
        ("created", time(row.get("created_at"))),
        ("enqueued", time(row.get("enqueued_at"))),
        ("attempts", text(row.get("attempts"))),
        ("next attempt", time(row.get("next_attempt_at"))),
        ("done", time(row.get("done_at"))),
        ("given up", row.get("dead_reason")),
        ("replaced by", None if superseded is None else f"delivery {superseded}, which is newer"),
        ("replay of", None if replay is None else f"delivery {replay}, by hand"),
        ("instead of", None if fallback is None else f"delivery {fallback}, which was late"),
    ]
