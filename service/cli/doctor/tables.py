"""The checks as a table with a line for each, and below it what to do about those that are not OK."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from service.terminal.parts import NARROW_WIDTH, Column, Line, Part, Table
from service.views.doctor import Check, CheckState, Doctor

STYLES: Final = {
    CheckState.MISSING: "bold red",
    CheckState.UNKNOWN: "yellow",
    CheckState.WARN: "yellow",
    CheckState.OK: "",
}
TEXT_WIDTH: Final = 78
INDENT: Final = "  "


def _state(check: Check) -> str:
    return check.state.name


def _subject(check: Check) -> str:
    return check.subject


def _found(check: Check) -> str:
    return check.summary


COLUMNS: Final = (
    Column("state", _state, is_short=True),
    Column("check", _subject),
    Column("found", _found),
)


def render(doctor: Doctor) -> Iterator[Part]:
    """Yield the table, then the details of what is not OK, then the counts."""
    yield Table(
        columns=COLUMNS,
        rows=doctor.checks,
        style=_style,
        folded_width=NARROW_WIDTH,
    )
    for check in doctor.checks:
        if check.state is not CheckState.OK:
            yield from _details(check)
    yield Line("")
    yield Line(_counts(doctor), STYLES[doctor.state])


def _style(check: Check) -> str | None:
    return STYLES[check.state] or None


def _details(check: Check) -> Iterator[Part]:
    yield Line("")
    yield Line([(check.state.name, STYLES[check.state]), f"  {check.subject}: {check.summary}"])
    paragraphs = [check.detail or ""]
    if check.rules:
        paragraphs.append(f"Rules that know less: {', '.join(check.rules)}.")
    for paragraph in filter(None, paragraphs):
        for line in textwrap.wrap(
            paragraph, TEXT_WIDTH - len(INDENT), break_long_words=False, break_on_hyphens=False
        ):
            yield Line(INDENT + line)
    if check.acl is not None:
        yield Line(INDENT + check.acl.command)


def _counts(doctor: Doctor) -> str:
    counts = {state: sum(check.state is state for check in doctor.checks) for state in CheckState}
    words = [f"{count} {state.name}" for state, count in counts.items() if count]
    return ", ".join(words) or "nothing was checked"
