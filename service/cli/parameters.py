"""Kinds of option values that click does not have, or does not check to the end."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

import click

DAY_SECONDS: Final = 86_400.0


class Regex(click.ParamType[re.Pattern[str]]):
    """A regular expression that has to match a whole name."""

    name = "RE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> re.Pattern[str]:
        """Compile the expression; a bad one is a usage error."""
        if isinstance(value, re.Pattern):
            return value
        try:
            return re.compile(value)
        except (re.error, OverflowError) as exc:
            self.fail(f"{value!r} is not a regular expression: {exc}", param, ctx)
        except RecursionError:
            self.fail("the regular expression is nested too deeply", param, ctx)


class FiniteRange(click.FloatRange):
    """A range of numbers; "nan" and "inf" are none, though they pass every comparison."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert and check the bounds."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class TimeZone(click.ParamType[tzinfo]):
    """A zone of time by its name, or an offset like +02:00."""

    name = "ZONE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tzinfo:
        """Find the zone; one that this machine does not know is a usage error."""
        if isinstance(value, tzinfo):
            return value
        try:
            return _offset(value) or (UTC if value == "UTC" else ZoneInfo(value))
        except (ValueError, OSError, KeyError):  # also a folder of zones, or a path out of it
            self.fail(f"{value!r} is no time zone like Europe/Berlin or +02:00.", param, ctx)


def _offset(text: str) -> tzinfo | None:
    """Return a fixed offset, None if the text does not begin like one."""
    is_one = text[:1] in ("+", "-")
    return datetime.fromisoformat(f"2000-01-01T00:00{text}").tzinfo if is_one else None
