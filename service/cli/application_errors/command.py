"""`tidemark application-errors`: what applications logged about Kafka, what it means, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click

from service.cli.past.times import PastTime
from service.cli.server import listing
from service.cli.server.server_options import server_options
from service.terminal.answer import print_answer
from service.terminal.parts import Facts, Line, Part, Row, Table, long, short, time_column
from service.terminal.words import text, time

PATH: Final = "application-errors"
ROLES: Final = ("cause", "consequence", "harmless")
MAX_PRODUCER: Final = 2**63 - 1
NOTHING: Final = "no error is known: none was logged for a day, or no application's log is sent (docs/application-log.md)"
UNLOADED: Final = "Errors that an earlier process of Tidemark took may be missing."
MATCHES: Final = {
    "transactional_id": "same transactional id",
    "producer_id": "same producer id",
    "producer_id_other_epoch": "same producer id, another epoch",
    "group": "same group",
    "may_be_of_it": "may be of it: topic and time alone",
}


def ability(row: Row) -> str:
    """Return what the client can still do, by the kind of producer where both are known."""
    plain, transactional = row.get("idempotent_producer"), row.get("transactional_producer")
    if plain is None or transactional in (None, plain):
        return text(transactional or plain)
    return f"{plain}; {transactional} in a transaction"


def whose(row: Row) -> str:
    """Return the most telling name of whose error it is."""
    names = ("transactional_id", "group", "client_id")
    return text(next((row[name] for name in names if row.get(name)), None))


def how_sure(row: Row) -> str:
    """Return in words by what two things belong together."""
    match = str(row.get("match"))
    return MATCHES.get(match, match)


RESOURCE: Final = listing.Resource(
    path=PATH,
    name="application_errors",
    columns=(
        time_column("last", "last_at", "last_seen"),
        short("count"),
        long("error"),
        long("application"),
        long("of", whose),
        long("topic"),
        short("producer", ability),
        short("records"),
        short("role"),
        short("id"),
    ),
    style=lambda row: (
        "bold red" if row.get("records") == "lost" and row.get("role") == "cause" else None
    ),
)


@click.group(PATH)
def command() -> None:
    """Show errors of Kafka's clients in applications' logs: what each means and what to do.

    Queries a running `tidemark serve`, to which a shipper sends these logs (docs/application-log.md). None of them is a
    verdict: they show the side of the application of a producer, beside what the brokers know of it.

    \b
    Examples:
      tidemark application-errors ls
      tidemark application-errors ls --transactional-id payments-7
      tidemark application-errors show 0123456789ab
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("ls")
@click.option(
    "--error",
    metavar="NAME",
    help="Only this one, as PRODUCER_FENCED, or this meaning, as producer_fenced.",
)
@click.option("--role", type=click.Choice(ROLES), help="Only of this role in an incident.")
@click.option("--application", metavar="NAME", help="Only of this application; * matches any text.")
@click.option("--client-id", metavar="NAME", help="Only of this client id; * matches any text.")
@click.option(
    "--transactional-id", metavar="NAME", help="Only of this transactional id; * matches any text."
)
@click.option(
    "--producer-id",
    type=click.IntRange(0, MAX_PRODUCER),
    metavar="N",
    help="Only of this producer id.",
)
@click.option("--group", metavar="NAME", help="Only of this group; * matches any text.")
@click.option("--topic", metavar="NAME", help="Only of this topic; * matches any text.")
@click.option(
    "--since", type=PastTime(), metavar="TIME", help="Only last seen then or later, as -1h."
)
@listing.limit_option
@server_options
def ls(**options: Any) -> int:
    """List errors that applications logged in the last day, those last seen first.

    \b
    producer  what it can still do: retriable, fails (these records), abort
              (the transaction), fatal (it can only be closed)
    records   what may have become of them: neither lost nor duplicated, lost,
              duplicated, unknown; `show` says when
    role      consequence: an earlier error is the reason; harmless: the client
              deals with it by itself

    Exits with 1 if errors that an earlier process of Tidemark took may be missing.

    \b
    Examples:
      tidemark application-errors ls
      tidemark application-errors ls --role cause --since -1h
      tidemark application-errors ls --topic 'orders*' -o json | jq '.application_errors[] | {error, records, count}'
    """  # noqa: D301 - see above
    filters = (
        "error", "role", "application", "client_id", "transactional_id", "producer_id", "group", "topic", "since",
    )  # fmt: skip
    listed = listing.query_list(RESOURCE, options, *filters)
    parts: list[Part] = [RESOURCE.table(listed.rows) if listed.rows else Line(NOTHING)]
    parts += [*listing.more_rows(listed), *([] if listed.page["is_current"] else [Line(UNLOADED)])]
    print_answer(listed.document(RESOURCE.name), parts, options)
    return listed.exit_code


@command.command()
@click.argument("error_id", metavar="ID")
@server_options
def show(error_id: str, **options: Any) -> None:
    """Show one error: what it means, what to do, and what Tidemark knows of its producer, group and topic.

    The beginning of an ID suffices. What matches by topic and time alone only may be of it, and is named so.

    \b
    Examples:
      tidemark application-errors show 0123456789ab
      tidemark application-errors show 0123456789ab -o json | jq .sequences
    """  # noqa: D301 - see above
    listing.print_one(
        lambda api: listing.fetch_by_id(api, PATH, error_id, "application error"),
        options,
        render_details,
    )


def render_details(document: Row) -> Iterator[Part]:
    """Yield all details of one error, and what is known of its producer."""
    row = document["application_error"]
    yield Line(f"{row['error']}  {whose(row)}  {row['title']}", "bold")
    yield Facts(_facts(row))
    yield Line("EXAMPLES, the first and the latest", "bold")
    for example in row.get("examples") or ():
        yield Line(f"  {example['text']}")
    yield from _related(document)
    if not document.get("is_current"):
        yield Line(UNLOADED)


def _facts(row: Row) -> list[tuple[str, object]]:
    """Return labels and values; None is left out."""
    places = [f"{place['topic']}-{place['partition']}" for place in row.get("partitions") or ()]
    producers = [_producer(each) for each in row.get("producers") or ()]
    return [
        ("explanation", row.get("explanation")),
        ("records", f"{row.get('records')}: {row.get('condition')}"),
        ("producer", ability(row)),
        ("framework", row.get("framework_does")),
        ("do", row.get("action")),
        ("check", row.get("check")),
        ("role", row.get("role")),
        ("outcome", row.get("outcome")),
        ("application", row.get("application")),
        ("client id", row.get("client_id")),
        ("transactional id", row.get("transactional_id")),
        ("producer ids", ", ".join(producers) or None),
        ("group", row.get("group")),
        ("topic", row.get("topic")),
        ("partitions", ", ".join(places) or None),
        (
            "of many",
            "names were left out, because there are too many problems"
            if row.get("is_of_many")
            else None,
        ),
        ("count", row.get("count")),
        ("first", time(row.get("first_at") or row.get("first_seen"))),
        ("last", time(row.get("last_at") or row.get("last_seen"))),
        ("id", row.get("id")),
    ]


def _producer(row: Row) -> str:
    epoch = row.get("producer_epoch")
    return str(row["producer_id"]) if epoch is None else f"{row['producer_id']}/{epoch}"


def _related(document: Row) -> Iterator[Part]:
    tables = (
        ("sequences", "EVENTS OF SEQUENCES", (short("id"), short("class"), short("phase"), long("topic"), short("partition"))),
        ("transactions", "OPEN TRANSACTIONS", (short("class"), long("transactional id", "transactional_id"), short("producer", "producer_id"))),
        ("findings", "OPEN FINDINGS", (long("id"), short("severity"), short("verdict"), long("reason"))),
    )  # fmt: skip
    for name, heading, columns in tables:
        rows = document.get(name) or ()
        if rows:
            yield Line(heading, "bold")
            yield Table(columns=(*columns, long("match", how_sure)), rows=rows)


def related_lines(rows: object) -> list[tuple[str, object]]:
    """Return what applications logged about a producer, a fact each; none if nothing is known."""
    return [("application", _line(row)) for row in rows] if isinstance(rows, list) else []


def _line(row: Row) -> str:
    of = text(row.get("application") or row.get("client_id"))
    times = "once" if row.get("count") == 1 else f"{row.get('count')} times"
    last = time(row.get("last_at") or row.get("last_seen"))
    return f"{row.get('error')} ({how_sure(row)}) of {of}, {times}, last {last}: {row.get('title')}; {row.get('id')}"
