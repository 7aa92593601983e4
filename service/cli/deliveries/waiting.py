"""Makes a delivery by hand, waits until it has come to something, and says what."""

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
    """Ask for a delivery, wait so long for what comes of it, and print that; return the exit code."""
    made = api.change("POST", path).document["delivery"]
    found = awaited(api, made, seconds=seconds)
    return tell(found, output, was_awaited=seconds > 0)


def awaited(api: ApiClient, delivery: listing.Row, *, seconds: float) -> listing.Row:
    """Return a delivery with its attempts once it is done, or as it is after so many seconds."""
    path = f"deliveries/{delivery['id']}"
    newest: listing.Row = {"delivery": delivery, "attempts": []}

    def is_done() -> bool:
        nonlocal newest
        newest = api.get(path)
        return newest["delivery"]["state"] not in UNDER_WAY

    if seconds > 0:
        clock.wait_until(is_done, timeout_seconds=seconds, poll_seconds=POLL_SECONDS)
    return newest


def tell(document: listing.Row, output: str, *, was_awaited: bool) -> int:
    """Print what came of it; 0 if it was delivered, or nobody waited."""
    row = document["delivery"]
    if output == "json":
        listing.print_json(document)
    else:
        from service.cli.deliveries import tables  # noqa: PLC0415 - keeps `--help` fast

        if document.get("attempts"):
            listing.print_parts([tables.attempts_table(document["attempts"])])
        tried = f", attempts: {row['attempts']}" if row.get("attempts") else ""
        told = f"delivery {row['id']} to {row['receiver']}: {row['state']}{tried}"
        click.echo(printable(told))
    if row["state"] == "delivered" or not was_awaited:
        return ExitCode.OK
    click.echo(f"tidemark: not delivered; later: tidemark deliveries show {row['id']}", err=True)
    return ExitCode.INCOMPLETE
