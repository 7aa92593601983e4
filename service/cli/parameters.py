"""Kinds of option values that click does not have, or does not check to the end."""

from __future__ import annotations

import math
import re
from datetime import tzinfo
from typing import Any, Final

import click

from collectors.broker_log.zones import zone_of

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
            return zone_of(value)
        except ValueError as exc:
            self.fail(f"{value!r} is {exc}.", param, ctx)
