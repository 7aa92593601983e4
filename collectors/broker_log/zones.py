"""Zones of time by the names that people write: brokers log in their machine's own zone."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo


def zone_of(text: str) -> tzinfo:
    """Return a zone by its name (Europe/Berlin), or a fixed offset (+02:00); UTC needs no data.

    Raises:
        ValueError: this machine knows no such zone.
    """
    try:
        return _offset(text) or (UTC if text == "UTC" else ZoneInfo(text))
    except (ValueError, OSError, KeyError) as exc:  # also a folder of zones, or a path out of it
        raise ValueError("no time zone like Europe/Berlin or +02:00") from exc


def _offset(text: str) -> tzinfo | None:
    """Return a fixed offset, None if the text does not begin like one."""
    is_offset = text[:1] in ("+", "-")
    return datetime.fromisoformat(f"2000-01-01T00:00{text}").tzinfo if is_offset else None
