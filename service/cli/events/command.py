"""`tidemark events`: what changed in the cluster and when, with the state before and after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click

from rules.facts.change_events import ChangeEventKind
from service.cli.past.times import PastTime
from service.cli.server import listing
from service.cli.server.server_options import server_options
from service.terminal.answer import print_answer
from service.terminal.parts import Facts, Line, Part, Row, Table, long, short, time_column
from service.terminal.words import text, time

PATH: Final = "events"
KINDS: Final = tuple(str(kind) for kind in ChangeEventKind)
NOTHING: Final = "no change matches"
DETAILS: Final = "Details: tidemark events show ID"
STALE: Final = "The latest rounds are not stored yet: newer changes may be missing."
RESOURCE: Final = listing.Resource(
    path=PATH,
    name="events",
    columns=(
        time_column("seen", "seen_at"),
        time_column("not before", "since"),
        short("kind"),
        long("summary"),
        short("id"),
    ),
)


@click.group("events")
def command() -> None:
    """Show what changed in the cluster: topics, partitions, replicas, brokers, settings, feature levels.

    Queries a running `tidemark serve`. A change is a difference of what brokers answered in two rounds, which
    may be those before and after a time in which Tidemark was not running: it happened between "not before"
    and "seen". What a round could not read is no change. docs/events.md has every kind.

    \b
    Examples:
      tidemark events ls --since -2h
      tidemark events ls --topic orders
      tidemark events show 0123456789ab
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("ls")
@click.option("--kind", type=click.Choice(KINDS), help="Only of this kind.")
@click.option("--topic", metavar="NAME", help="Only of this topic; * matches any text.")
@click.option("--since", type=PastTime(), metavar="TIME", help="Only seen then or later, as -2h.")
@click.option("--until", type=PastTime(), metavar="TIME", help="Only seen then or earlier.")
@click.option("--cluster", metavar="NAME", help="Of another cluster of the same database.")
@listing.limit_option
@server_options
def ls(**options: Any) -> int:
    """List changes, those seen last first; the same change of many subjects is one line.

    Exits with 1 if the latest rounds are not stored yet, so that newer changes may be missing.

    \b
    Examples:
      tidemark events ls
      tidemark events ls --since -2h --kind setting_changed
      tidemark events ls --topic 'orders*' -o json | jq '.events[] | {seen_at, kind, before, after}'
    """  # noqa: D301 - see above
    filters = ("kind", "topic", "since", "until", "cluster")
    listed = listing.query_list(RESOURCE, options, *filters)
    parts: list[Part] = [RESOURCE.table(listed.rows) if listed.rows else Line(NOTHING)]
    parts += [*listing.more_rows(listed), *([Line(DETAILS)] if listed.rows else [])]
    parts += [] if listed.page["is_current"] else [Line(STALE)]
    print_answer(listed.document(RESOURCE.name), parts, options)
    return listed.exit_code


@command.command()
@click.argument("event_id", metavar="ID")
@server_options
def show(event_id: str, **options: Any) -> None:
    """Show one change: what it means, and its first subjects with the state before and after.

    The beginning of an ID suffices.

    \b
    Examples:
      tidemark events show 0123456789ab
      tidemark events show 0123456789ab -o json | jq .event.subjects
    """  # noqa: D301 - see above
    listing.print_one(
        lambda api: listing.fetch_by_id(api, PATH, event_id, "change event"),
        options,
        render_details,
    )


def render_details(document: Row) -> Iterator[Part]:
    """Yield all details of one event."""
    event = document["event"]
    yield Line(f"{event['kind']}  {event['summary']}", "bold")
    yield Facts(
        [
            ("explanation", event.get("explanation")),
            ("not before", time(event.get("since")) if event.get("since") else "not known"),
            ("seen", time(event.get("seen_at"))),
            ("evidence", event.get("evidence")),
            ("cluster", event.get("cluster")),
            ("id", event.get("id")),
        ]
    )
    subjects = event.get("subjects") or ()
    yield Table(columns=_columns(subjects), rows=subjects)
    hidden = event.get("count", 0) - len(subjects)
    if hidden > 0:
        yield Line(f"{hidden:,} more")
    if not document.get("is_current"):
        yield Line(STALE)


def _columns(subjects: Any) -> tuple[Any, ...]:
    """Return the columns of the subjects; settings have sources."""
    if not any(subject.get("setting") for subject in subjects):
        return (long("subject", "name"), long("before"), long("after"))
    return (
        long("subject", "name"),
        long("setting"),
        long("before", lambda row: _value(row, "before")),
        long("after", lambda row: _value(row, "after")),
    )


def _value(row: Row, name: str) -> str:
    source = row.get(f"{name}_source")
    return text(row.get(name)) + (f" ({source})" if source else "")
