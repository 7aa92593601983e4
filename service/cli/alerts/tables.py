"""Alerts for a person at 3 a.m.: what it is, who was told, what to type next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from service.cli.alerts.next_steps import next_steps
from service.cli.deliveries.tables import table as deliveries_table
from service.cli.server.listing import Listed, Row, labels_text, more, text, time, utc
from service.cli.terminal.columns import Rows, lines
from service.cli.terminal.printable import printable
from service.cli.terminal.showing import SHOWN
from service.cli.terminal.values import in_words

RULE_PAGES: Final = "docs/rules"  # of the repository
LONGEST: Final = 1000  # characters of one value of the evidence
SAID: Final = ("alertname", "severity", "topic_id", "incident")  # labels that stand elsewhere
STYLES: Final = {"critical": "bold red", "warning": "bold yellow"}
STATES: Final = ("firing", "pending", "resolved")
# Column -> whether its cells are short and never folded.
COLUMNS: Final = {
    "state": True,
    "severity": True,
    "alert": False,
    "about": False,
    "since (UTC)": True,
    "told": False,
    "fingerprint": True,
}


def head(found: Listed) -> Text:
    """Return the line above the list: of when it is, and how much there is."""
    counts = Counter(str(row.get("state")) for row in found.rows)
    told = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    age = found.page.get("age_seconds")
    ago = f" ({age:.0f} s ago)" if isinstance(age, (int, float)) else ""
    return Text.assemble(
        (f"as of {time(found.as_of) or 'never'}{ago}", "bold"),
        f"  {told or 'no alert'}  ",
        ("current", "green") if found.is_current else ("NOT CURRENT", "bold yellow"),
    )


def listed(found: Listed) -> Iterator[RenderableType]:
    """Give a list, and what to type next."""
    yield head(found)
    if found.rows:
        yield table(found.rows)
        yield Text("What it is, and what to do: tidemark alerts show FINGERPRINT")


def table(rows: Sequence[Row]) -> Rows:
    """Return one line per alert."""
    found = Rows(COLUMNS, caption=more(rows))
    for row in rows[:SHOWN]:
        found.add(_cells(row), style=_style(row))
    return found


def in_full(document: Row, server: str) -> Iterator[RenderableType]:
    """Give everything about one alert: what it is, what became of it, who was told, what is next."""
    alert = document["alert"]
    about = labels_text(alert.get("labels"), without=SAID)
    head_ = (
        f"{text(alert.get('state')).upper()} {alert.get('severity')} {alert.get('rule')}  {about}"
    )
    yield Text(printable(head_), style=_style(alert) or "bold")
    yield lines(_facts(document))
    steps = next_steps(alert, server)
    if steps:
        yield Text("NEXT", style="bold")
        yield Text("\n".join(f"  {printable(step)}" for step in steps))
    if document.get("steps"):
        yield Text("WHAT BECAME OF IT", style="bold")
        yield lines([(utc(step.get("at")), _step(step)) for step in document["steps"]])
    if document.get("notified"):
        yield Text("WHO WAS TOLD, newest first", style="bold")
        yield deliveries_table(document["notified"])
    else:
        yield Text("Nobody was told of it.")


def _cells(row: Row) -> list[str]:
    return [
        text(row.get("state")),
        text(row.get("severity")),
        text(row.get("rule")),
        labels_text(row.get("labels"), without=SAID),
        utc(row.get("fired_at") or row.get("active_at")),
        _told(row),
        text(row.get("fingerprint")),
    ]


def _told(row: Row) -> str:
    """Return who is told, or why nobody is."""
    parts = []
    if row.get("acknowledged"):
        parts.append(f"acknowledged by {row['acknowledged'].get('by')}")
    if row.get("silenced_by"):
        parts.append("silenced")
    if row.get("inhibited_by"):
        parts.append("explained by another")
    return ", ".join(parts) or ", ".join(row.get("receivers") or ()) or "nobody"


def _facts(document: Row) -> list[tuple[str, str | None]]:
    """Return labels and values; an absent value is left out."""
    alert = document["alert"]
    rule = alert.get("rule")
    page = document.get("runbook_url") or f"{RULE_PAGES}/{rule}.md"
    return [
        ("what", _said(alert.get("summary"))),
        ("reason", _said(alert.get("reason"))),
        ("breach since", time(alert.get("active_at"))),
        ("firing since", time(alert.get("fired_at"))),
        ("ended", _ended(alert)),
        *((f"  {name}", _value(value)) for name, value in (alert.get("evidence") or {}).items()),
        ("rule page", page),
        ("receivers", ", ".join(alert.get("receivers") or ()) or "none: nobody is told"),
        ("silenced by", ", ".join(alert.get("silenced_by") or ()) or None),
        ("explained by", _said(alert.get("inhibited_by"))),
        ("acknowledged", _remark(alert.get("acknowledged"), "comment")),
        ("closing", _closing(document.get("closing"))),
        ("finding", _said(alert.get("finding_id"))),
        ("fingerprint", _said(alert.get("fingerprint"))),
        ("seen last", time(alert.get("updated_at"))),
    ]


def _ended(alert: Row) -> str | None:
    ended = time(alert.get("resolved_at"))
    return None if ended is None else f"{ended} ({text(alert.get('end_reason'))})"


def _remark(row: Row | None, words: str) -> str | None:
    if not row:
        return None
    said = f": {row[words]}" if row.get(words) else ""
    return f"by {row.get('by')}, {time(row.get('at'))}{said}"


def _closing(row: Row | None) -> str | None:
    told = _remark(row, "why")
    if row is None or told is None:
        return None
    done = time(row.get("done_at"))
    return f"{told}; {'the next round does it' if done is None else f'done {done}'}"


def _step(step: Row) -> str:
    return f"UTC  {text(step.get('step'))}  {text(step.get('reason'))}"


def _value(value: object) -> str | None:
    told = in_words(value)
    if told is None:
        return None
    return told if len(told) <= LONGEST else f"{told[:LONGEST]}… (-o json)"


def _said(value: object) -> str | None:
    return None if value is None else str(value)


def _style(row: Mapping[str, Any]) -> str | None:
    return STYLES.get(str(row.get("severity"))) if row.get("state") == "firing" else None
