"""Types of option values that click lacks, or does not check completely."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final

import click

from collectors.broker_log.wording.times import zone_of
from service.terminal.words import printable

DAY_SECONDS: Final = 86_400.0
UNITS: Final = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}  # those of amtool
MOST_SECONDS: Final = 3650 * 86_400
# Of a string in Kafka's protocol: a broker closes the connection at a longer one.
MAX_BYTES: Final = 32_767
_PART: Final = re.compile(r"(\d{1,6})([wdhms])")


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
    """A range of numbers that rejects "nan" and "inf", which click accepts."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert and check the bounds."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class TimeZone(click.ParamType[tzinfo]):
    """A time zone by its name, or an offset like +02:00."""

    name = "ZONE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tzinfo:
        """Find the zone; one that this machine does not know is a usage error."""
        if isinstance(value, tzinfo):
            return value
        try:
            return zone_of(value)
        except ValueError as exc:
            self.fail(f"{value!r} is {exc}.", param, ctx)


class Duration(click.ParamType[timedelta]):
    """A duration: numbers with units, as amtool takes them, like 2h or 1d12h."""

    name = "DURATION"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Add up the parts; zero is a usage error."""
        if isinstance(value, timedelta):
            return value
        parts = _PART.findall(value)
        seconds = sum(int(count) * UNITS[unit] for count, unit in parts)
        if "".join(count + unit for count, unit in parts) != value or not seconds:
            self.fail(f"{value!r} is not a duration like 2h, 90m or 1d12h.", param, ctx)
        if seconds > MOST_SECONDS:
            self.fail(f"{value!r} is longer than 10 years.", param, ctx)
        return timedelta(seconds=seconds)


class Timestamp(click.ParamType[datetime]):
    """A time with its zone, like 2026-01-31T03:00:00Z."""

    name = "TIME"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Parse a time; one without a zone is a usage error, because it is ambiguous."""
        if isinstance(value, datetime):
            return value
        try:
            timestamp = datetime.fromisoformat(value)
        except ValueError:
            timestamp = None
        if timestamp is None or timestamp.tzinfo is None:
            self.fail(f"{value!r} is not a time with a zone like 2026-01-31T03:00:00Z.", param, ctx)
        return timestamp


class TransactionalId(click.ParamType[str]):
    """An id that a broker can describe."""

    name = "ID"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the id; it must not be empty, too long or invalid UTF-8."""
        text = str(value)
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            self.fail(f"'{printable(text)}' is not UTF-8.", param, ctx)
        if not size:
            self.fail("it is empty.", param, ctx)
        if size > MAX_BYTES:
            self.fail(f"it has {size:,} bytes, more than {MAX_BYTES:,}.", param, ctx)
        return text


wait_option: Final = click.option(
    "--wait",
    type=FiniteRange(0, DAY_SECONDS),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the result.",
)
