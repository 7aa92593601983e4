"""The alert that a person names, by its fingerprint or the beginning of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from rules.errors import NotThereError
from service.cli.server import listing
from service.cli.terminal.parts import Row

if TYPE_CHECKING:
    from service.cli.server.api_client import ApiClient

WHOLE: Final = 16  # digits of a fingerprint
FORM: Final = re.compile(rf"[0-9a-f]{{4,{WHOLE}}}")
NAMED: Final = 5
MOST: Final = 10_000  # alerts among which a beginning is searched


class Fingerprint(click.ParamType[str]):
    """A fingerprint, or at least its first four digits."""

    name = "ALERT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the digits."""
        if not FORM.fullmatch(value):
            self.fail(
                f"{value!r} is no fingerprint: 4 to {WHOLE} hexadecimal digits of those that "
                "`tidemark alerts ls` shows",
                param,
                ctx,
            )
        return str(value)


def fetch_alert(api: ApiClient, name: str) -> Row:
    """Return the alert of a fingerprint or of its beginning; an alert that is active comes first.

    Raises:
        NotThereError: there is none.
        click.UsageError: there are several.
    """
    if len(name) == WHOLE:
        alert: Row = listing.fetch(api, f"alerts/{name}", f"alert {name}")["alert"]
        return alert
    for state in ("active", "all"):
        rows = listing.fetch_list(api, "alerts", {"state": state}, MOST).rows
        matches = [row for row in rows if str(row.get("fingerprint")).startswith(name)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise click.UsageError(f"{name} is the beginning of several alerts: {_named(matches)}")
    raise NotThereError(f"there is no alert whose fingerprint begins with {name}")


def _named(rows: list[Row]) -> str:
    names = ", ".join(f"{row['fingerprint']} ({row.get('rule')})" for row in rows[:NAMED])
    left = len(rows) - NAMED
    return f"{names} and {left} more" if left > 0 else names
