"""Kinds of option values that click does not have, or does not check to the end."""

from __future__ import annotations

import math
import re
from typing import Any, Final

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
