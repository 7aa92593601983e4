"""The alert that a person names, by its fingerprint or the beginning of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from service.cli.alerts.command import ALL_DIGITS, FINGERPRINT, find_alert
from service.cli.server import listing
from service.terminal.parts import Row

if TYPE_CHECKING:
    from service.cli.server.api_client import ApiClient


class Fingerprint(click.ParamType[str]):
    """A fingerprint, or at least its first four digits."""

    name = "ALERT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the digits."""
        if not FINGERPRINT.fullmatch(value):
            self.fail(
                f"{value!r} is no fingerprint: 4 to {ALL_DIGITS} hexadecimal digits of those that "
                "`tidemark alerts ls` shows",
                param,
                ctx,
            )
        return str(value)


def fetch_alert(api: ApiClient, name: str) -> Row:
    """Return the alert of a fingerprint or of its beginning; errors are those of `find_alert`."""
    fingerprint = find_alert(api, name)
    alert: Row = listing.fetch(api, f"alerts/{fingerprint}", f"alert {fingerprint}")["alert"]
    return alert
