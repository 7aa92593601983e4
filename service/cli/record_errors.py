"""`tidemark record-errors`: which clients had records fail, or sent them again, by topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import click

from service.cli.server import listing
from service.cli.server.server_options import server_options
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.parts import Line, Part, Row, long, not_seen, short, time_column
from service.terminal.words import ABSENT, time

FILTERS: Final = ("cluster", "topic", "client_id", "failing")
STATUS: Final = (  # of the list, beside its rows
    "is_read",
    "complete",
    "endpoint_count",
    "incomplete_endpoint_count",
    "incomplete_endpoints",
    "endpoints_without_metrics",
    "list_errors",
)
NOT_READ: Final = "UNKNOWN: no endpoint of metrics is configured (docs/scrapes.md): which records failed is not known"
NOBODY: Final = "no client reports failed records or retries"
NOBODY_KNOWN: Final = (
    "UNKNOWN: no client that is known, and not every endpoint of metrics has answered"
)
EVERY_TOPIC: Final = "(all its topics)"


def _number(counter: str, field: str) -> Callable[[Row], str]:
    """Return the cell of a number of `errors` or `retries`; a client may report only one of them."""

    def cell(row: Row) -> str:
        value = (row.get(counter) or {}).get(field)
        return (
            ABSENT if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
        )

    return cell


CLIENTS: Final = listing.Resource(
    path="record-errors",
    name="clients",
    columns=(
        long("topic", lambda row: str(row.get("topic") or EVERY_TOPIC)),
        long("client", "client_id"),
        long("address"),
        short("errors", _number("errors", "total")),
        short("new errors", _number("errors", "increase")),
        short("errors/s", _number("errors", "rate")),
        short("retries", _number("retries", "total")),
        short("new retries", _number("retries", "increase")),
        short("retries/s", _number("retries", "rate")),
        time_column("last rise", "last_rise_at"),
        time_column("seen", "seen_at"),
        short("state"),
    ),
    style=lambda row: "bold yellow" if row.get("last_rise_at") else None,
)


@click.group("record-errors")
def command() -> None:
    """Show which clients had records fail, or sent them again.

    Queries a running `tidemark serve` that reads the metrics of clients. docs/scrapes.md says what they prove,
    which is no loss, and what they cannot see.

    \b
    Examples:
      tidemark record-errors ls
      tidemark record-errors ls --topic orders --failing
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("ls")
@click.option("--cluster", metavar="NAME", help="Only of this cluster; * matches any text.")
@click.option("--topic", metavar="NAME", help="Only of this topic; * as above.")
@click.option("--client-id", metavar="NAME", help="Only of this client id; * as above.")
@click.option(
    "--failing", flag_value="true", default=None,
    help="Only clients whose errors or retries rose in the last 15 minutes.",
)  # fmt: skip
@listing.limit_option
@server_options
def ls(**options: Any) -> int:
    """List clients by topic with their failed records (errors) and retries.

    \b
    current  the numbers are those of its endpoint's latest answer
    stale    its endpoint does not answer: what happened since is not known
    gone     it is absent from two whole answers of its endpoint

    Retries matter as much as errors: an idempotent Java producer that meets a real loss raises only its
    retries. Neither proves a loss, and quiet ones rule none out.

    Exits with 1 if an endpoint of metrics is missing, so that clients may be, or if none is configured; with 6 if no
    client matches the filters and none can be missing.

    \b
    Examples:
      tidemark record-errors ls
      tidemark record-errors ls --topic 'orders*' --failing
      tidemark record-errors ls -o json | jq '.clients[] | {client_id, topic, retries: .retries.total}'
    """  # noqa: D301 - see above
    listed = listing.query_list(CLIENTS, options, *FILTERS)
    status = {name: listed.page.get(name) for name in STATUS}
    print_answer({**listed.document(CLIENTS.name), **status}, render(listed), options)
    chosen = listing.query_of(options, FILTERS)
    if chosen and not listed.rows and listed.page["complete"]:
        click.echo("tidemark: no client matches the filters", err=True)
        return ExitCode.NOTHING_MATCHED
    return listed.exit_code if listed.page["complete"] else ExitCode.INCOMPLETE


def render(listed: listing.Listed) -> Iterator[Part]:
    """Yield the clients, and which endpoints are missing."""
    page = listed.page
    if listed.rows:
        yield CLIENTS.table(listed.rows)
    elif not page["is_read"]:
        yield Line(NOT_READ)
    else:
        yield Line(NOBODY if page["complete"] else NOBODY_KNOWN)
    yield from listing.more_rows(listed)
    yield from not_seen(_missing(page))


def _missing(page: Row) -> Iterator[str]:
    """Yield why clients may be missing; an endpoint without these metrics is named, but hides no client."""
    for error in page["list_errors"]:
        yield f"lists of metrics endpoints: {error['why']}"
    for endpoint in page["incomplete_endpoints"]:
        whys = (
            "; ".join(error["why"] for error in endpoint["errors"])
            or "it was not queried for too long"
        )
        last = time(endpoint["answered_at"])
        yield f"{endpoint['endpoint']}: {whys}; last answer: {last or 'none yet'}"
    hidden = page["incomplete_endpoint_count"] - len(page["incomplete_endpoints"])
    if hidden:
        yield f"{hidden:,} more endpoints"
    for name in page["endpoints_without_metrics"]:
        yield f"{name}: it holds no metric of failed records or retries"
