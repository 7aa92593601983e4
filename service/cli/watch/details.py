"""The details of a row, as parts: what `alerts show`, `groups show` and `loss show` print, and transactions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from service.cli.alerts.command import render_details as render_alert
from service.cli.groups.tables import render_group
from service.cli.loss.queries import LossReport
from service.cli.loss.tables import render_all_details
from service.cli.watch.fetching import Details, ListName
from service.cli.watch.lists import running
from service.terminal.parts import Facts, Line, Part, Row, Table, long, not_seen, short
from service.terminal.words import ABSENT, duration, names_text, text, time

NO_TIMEOUT_DAYS: Final = 365  # a two-phase commit has the longest timeout that there is


def render(details: Details, server: str) -> Iterator[Part]:
    """Yield the details, or why there are none."""
    document, name = details.document, details.subject.name
    if details.error is not None or document is None:
        yield Line(f"NOT KNOWN: {details.error}", "bold yellow")
    elif isinstance(document, LossReport):
        yield from render_all_details(document)
        yield from not_seen(document.errors)
    elif name is ListName.ALERTS:
        yield from render_alert(document, server)
    elif name is ListName.GROUPS:
        yield from render_group(document)
    elif name is ListName.TRANSACTIONS:
        yield from _transaction(document)
    else:
        yield Line(str(document.get("line")))


def _transaction(row: Row) -> Iterator[Part]:
    yield Line(f"{row.get('class')}  {text(row.get('transactional_id'))}", "bold")
    yield Facts([
        ("next", row.get("next_step")),
        ("repair", row.get("repair")),
        ("class unknown", row.get("unknown_reason")),
        ("open for", running(row)),
        ("timeout", _timeout(row.get("timeout_ms"))),
        ("started", time(row.get("started_at"))),
        ("first seen", time(row.get("first_seen_at"))),
        ("producer", f"{text(row.get('producer_id'))}, epoch {text(row.get('producer_epoch'))}"),
        ("coordinator", _coordinator(row)),
    ])  # fmt: skip
    places = row.get("partitions") or ()
    yield Line(f"PARTITIONS ({text(row.get('partition_count'))})", "bold")
    if places:
        yield Table(
            columns=(
                long("partition", lambda place: f"{place.get('topic')}-{place.get('partition')}"),
                short("starts at", "start_offset"),
                short("LSO", "last_stable_offset"),
                short("HWM", "high_watermark"),
                short("holds the LSO", _holds),
                long("blocks", _groups),
            ),
            rows=places,
        )


def _timeout(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    value = timedelta(milliseconds=milliseconds)
    return "none" if value.days >= NO_TIMEOUT_DAYS else duration(value)


def _coordinator(row: Row) -> str:
    if row.get("coordinator") is None:
        return "no broker lists its producer"
    return f"broker {row['coordinator']} says {text(row.get('state'))}"


def _holds(place: Row) -> str:
    holds = place.get("holds_last_stable_offset")
    return ABSENT if holds is None else "yes" if holds else "no"


def _groups(place: Row) -> str:
    groups = place.get("blocked_groups")
    if groups is None:
        return "not known"
    names = [
        f"{group.get('group')} ({'waits' if group.get('is_waiting') else 'will wait'})"
        for group in groups
    ]
    return names_text(names) or "no group"
