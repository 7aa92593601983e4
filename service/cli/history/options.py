"""Reads options of `tidemark history import`; imports nothing heavy."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from service.jobs.history_import.fetching import Span

DEFAULT_SPAN: Final = timedelta(days=35)  # a baseline run learns from no older day
UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600}
DURATION: Final = re.compile(r"([1-9]\d{0,5})([smh]?)")
MATCHER: Final = re.compile(r'[A-Za-z_]\w*(=|!=|=~|!~)"([^"\\\n]|\\.)*"')
LONGEST_STEP: Final = 900  # seconds: a slot of half an hour needs two samples


def read_zone(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return the zone, if there is one of that name."""
    del ctx, param
    if value is not None:
        from zoneinfo import ZoneInfo  # noqa: PLC0415 - keeps `--help` fast

        try:
            ZoneInfo(value)
        except (ValueError, OSError, KeyError) as exc:
            raise click.BadParameter(f"{value!r} is no time zone like Europe/Berlin") from exc
    return value


def read_match(
    ctx: click.Context, param: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the matchers, if Prometheus can read them."""
    del ctx, param
    for matcher in value:
        if not MATCHER.fullmatch(matcher):
            raise click.BadParameter(f'{matcher!r} is not LABEL="VALUE", with =, !=, =~ or !~')
    return value


def read_duration(ctx: click.Context, param: click.Parameter, value: str) -> int:
    """Return seconds of a duration like 30s, 1m or 300."""
    del ctx, param
    read = DURATION.fullmatch(value)
    seconds = int(read[1]) * UNITS[read[2]] if read else 0
    if not 0 < seconds <= LONGEST_STEP:
        raise click.BadParameter(f"{value!r} is no duration like 30s or 1m, up to 15m")
    return seconds


def read_span(options: dict[str, Any], now: datetime) -> Span:
    """Return the time of the queries, on the grid of their step."""
    from service.jobs.history_import.fetching import Span  # noqa: PLC0415 - keeps `--help` fast

    step = options["step"]
    end = now if options["end"] is None else _time("--to", options["end"], options["times_zone"])
    begin = (
        end - DEFAULT_SPAN
        if options["begin"] is None
        else _time("--from", options["begin"], options["times_zone"])
    )
    end = min(end, now)
    start_s = -(-int(begin.timestamp()) // step) * step
    end_s = int(end.timestamp()) // step * step
    if start_s >= end_s:
        raise click.UsageError("--from is not before --to, or in the future")
    return Span(start_s=start_s, end_s=end_s, step_s=step)


def _time(option: str, text: str, zone: str | None) -> datetime:
    """Return a time; one that names no zone is of --time-zone, UTC without that."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - keeps `--help` fast

    try:
        read = datetime.fromisoformat(text)
    except ValueError as exc:
        raise click.BadParameter(
            f"{text!r} is no time like 2026-10-01 or 2026-10-01T06:00:00Z", param_hint=option
        ) from exc
    return read if read.tzinfo else read.replace(tzinfo=ZoneInfo(zone) if zone else UTC)
