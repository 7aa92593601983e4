"""Times on the command line: with their zone, or as long ago as `-15m` says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import click

from service.terminal.parameters import Duration, Timestamp

NOW: Final = "now"
AGO: Final = re.compile(r"-(?:\d+[wdhms])+")


class PastTime(Timestamp):
    """A time with its zone, like 2026-01-31T03:00:00Z, or how long ago it was, like -15m."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Parse a time; one without a zone is a usage error, because it is ambiguous."""
        if value == NOW:
            return _utc_now()
        if isinstance(value, str) and AGO.fullmatch(value.removeprefix(NOW)):
            return _utc_now() - Duration().convert(value.removeprefix(NOW)[1:], param, ctx)
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(
                f"{value!r} is neither a time with a zone like 2026-01-31T03:00:00Z nor how long ago, "
                "like -15m.",
                param,
                ctx,
            )


def _utc_now() -> datetime:
    from service.runtime.clock import utc_now  # noqa: PLC0415 - only a time ago needs it

    return utc_now()


class TimesAsArguments(click.Command):
    """A command that takes times as arguments: `-15m` is not an option there."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments, with each time ago written as `now-15m`."""
        return super().parse_args(ctx, name_times(args))


def name_times(args: Sequence[str]) -> list[str]:
    """Return arguments with each time ago written as `now-15m`."""
    return [f"{NOW}{arg}" if AGO.fullmatch(arg) else arg for arg in args]
