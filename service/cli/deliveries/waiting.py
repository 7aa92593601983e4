"""Start a delivery by hand, wait until it is done, and print the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from service.cli.server import listing
from service.cli.terminal.exit_codes import ExitCode
from service.cli.terminal.printable import printable
from service.runtime import clock

if TYPE_CHECKING:
    from service.cli.server.api_client import ApiClient

UNDER_WAY: Final = ("waiting", "sending")
POLL_SECONDS: Final = 0.5


def send(api: ApiClient, path: str, *, seconds: float, output: str) -> int:
    """Start a delivery, wait up to `seconds` for its result, print it, and return the exit code."""
    delivery = api.change("POST", path).document["delivery"]
    document = wait_for(api, delivery, seconds=seconds)
    return report(document, output, was_awaited=seconds > 0)


def wait_for(api: ApiClient, delivery: listing.Row, *, seconds: float) -> listing.Row:
    """Return a delivery with its attempts once it is done, or as it is after `seconds`."""
    path = f"deliveries/{delivery['id']}"
    newest: listing.Row = {"delivery": delivery, "attempts": []}

    def is_done() -> bool:
        nonlocal newest
        newest = api.get(path)
        return newest["delivery"]["state"] not in UNDER_WAY

    if seconds > 0:
        clock.wait_until(is_done, timeout_seconds=seconds, poll_seconds=POLL_SECONDS)
    return newest


def report(document: listing.Row, output: str, *, was_awaited: bool) -> int:
    """Print the result; return 0 if it was delivered, or if `was_awaited` is false."""
    row = document["delivery"]
    if output == "json":
        listing.print_json(document)
    else:
        from service.cli.deliveries import tables  # noqa: PLC0415 - keeps `--help` fast

        if document.get("attempts"):
            listing.print_parts([tables.attempts_table(document["attempts"])])
        tried = f", attempts: {row['attempts']}" if row.get("attempts") else ""
        message = f"delivery {row['id']} to {row['receiver']}: {row['state']}{tried}"
        click.echo(printable(message))
    if row["state"] == "delivered" or not was_awaited:
        return ExitCode.OK
    click.echo(
        f"tidemark: not delivered; check later: tidemark deliveries show {row['id']}", err=True
    )
    return ExitCode.INCOMPLETE
