"""Values as Grafana writes them in a unit.

Source: the behaviour of Grafana's value formats, for the units that our dashboards have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

SHORT: Final = ("", " K", " Mil", " Bil", " Tri")
COUNTS: Final = ("", "K", "M", "B", "T")
BYTES: Final = (" B", " KiB", " MiB", " GiB", " TiB")
RATES: Final = {"cps": "c/s", "ops": "ops/s", "reqps": "req/s", "recps": "rec/s"}
# From how many seconds on, in what, and how many seconds that is.
DURATIONS: Final = (
    (31_536_000.0, " years", 31_536_000.0),
    (604_800.0, " weeks", 604_800.0),
    (86_400.0, " days", 86_400.0),
    (3600.0, " hours", 3600.0),
    (60.0, " mins", 60.0),
    (1.0, " s", 1.0),
    (1e-3, " ms", 1e-3),
    (1e-6, " µs", 1e-6),
)
# Up to how many seconds a distance is called so; moment.js has these words.
DISTANCES: Final = (
    (45, "a few seconds", 0),
    (90, "a minute", 0),
    (45 * 60, "{} minutes", 60),
    (90 * 60, "an hour", 0),
    (22 * 3600, "{} hours", 3600),
    (36 * 3600, "a day", 0),
    (26 * 86_400, "{} days", 86_400),
)


def in_unit(value: float, unit: str, now: float) -> str:
    """Return a value in a unit, by Grafana's name of it; `now` is in seconds, dates are in milliseconds.

    Raises:
        KeyError: no dashboard of ours had the unit so far.
    """
    if unit == "dateTimeFromNow":
        return from_now(value / 1000 - now)
    if unit == "dateTimeAsIso":
        return iso(value, now)
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    if unit in RATES:
        return f"{scaled(value, 1000, COUNTS)} {RATES[unit]}"
    return FORMATS[unit](value)


def seconds(value: float) -> str:
    """Return a duration in the largest unit of which it has one."""
    for least, name, factor in DURATIONS:
        if abs(value) >= least:
            return plain(value / factor) + name
    return "0 s" if value == 0 else plain(value * 1e9) + " ns"


def scaled(value: float, factor: int, suffixes: tuple[str, ...]) -> str:
    """Return a value with the suffix of its power of the factor."""
    power = 0 if value == 0 else math.floor(math.log(abs(value), factor) + 1e-12)
    power = min(max(power, 0), len(suffixes) - 1)
    return plain(value / factor**power) + suffixes[power]


def plain(value: float) -> str:
    """Return a number with three significant digits, all of those before the point, without zeros at the end."""
    if value == 0 or float(value).is_integer():
        return f"{value:.0f}"
    digits = 2 - math.floor(math.log10(abs(value)))
    text = f"{value:.{max(0, digits)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def iso(value: float, now: float) -> str:
    """Return a date and a time in UTC, of today only the time."""
    at, today = (datetime.fromtimestamp(second, UTC) for second in (value / 1000, now))
    return f"{at:%H:%M:%S}" if at.date() == today.date() else f"{at:%Y-%m-%d %H:%M:%S}"


def from_now(distance: float) -> str:
    """Return a distance in seconds in words, negative for the past."""
    for limit, words, factor in DISTANCES:
        if abs(distance) < limit:
            text = words.format(round(abs(distance) / factor)) if factor else words
            break
    else:
        text = f"{round(abs(distance) / (30 * 86_400))} months"
    return f"{text} ago" if distance <= 0 else f"in {text}"


FORMATS: Final[dict[str, Callable[[float], str]]] = {
    "short": lambda value: scaled(value, 1000, SHORT),
    "none": plain,
    "s": seconds,
    "bytes": lambda value: scaled(value, 1024, BYTES),
    "percentunit": lambda value: plain(value * 100) + "%",
    "bool_yes_no": lambda value: "Yes" if value else "No",
}
