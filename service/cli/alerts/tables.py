"""Alerts for a person at 3 a.m.: what is wrong, who was notified, which command comes next."""

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
SAID: Final = ("alertname", "severity", "topic_id", "incident")  # labels that are shown elsewhere
STYLES: Final = {"critical": "bold red", "warning": "bold yellow"}
STATES: Final = ("firing", "pending", "resolved")
# Column -> whether its cells are short and never folded.
COLUMNS: Final = {
    "state": True,
    "severity": True,
    "alert": False,
    "about": False,
    "since (UTC)": True,
    "notified": False,
    "fingerprint": True,
}


def head(alerts: Listed) -> Text:
    """Return the line above the list: its time, and the number of alerts by state."""
    counts = Counter(str(row.get("state")) for row in alerts.rows)
    summary = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    age = alerts.page.get("age_seconds")
    ago = f" ({age:.0f} s ago)" if isinstance(age, (int, float)) else ""
    return Text.assemble(
        (f"as of {time(alerts.as_of) or 'never'}{ago}", "bold"),
        f"  {summary or 'no alert'}  ",
        ("current", "green") if alerts.is_current else ("NOT CURRENT", "bold yellow"),
    )


def render_list(alerts: Listed) -> Iterator[RenderableType]:
    """Yield a list, and the next command."""
    yield head(alerts)
    if alerts.rows:
        yield table(alerts.rows)
        yield Text("Details and next steps: tidemark alerts show FINGERPRINT")


def table(rows: Sequence[Row]) -> Rows:
    """Return one line per alert."""
    grid = Rows(COLUMNS, caption=more(rows))
    for row in rows[:SHOWN]:
        grid.add(_cells(row), style=_style(row))
    return grid


def render_details(document: Row, server: str) -> Iterator[RenderableType]:
    """Yield all details of one alert: facts, next commands, history, notifications."""
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
        yield Text("HISTORY", style="bold")
        yield lines([(utc(step.get("at")), _step(step)) for step in document["steps"]])
    if document.get("notified"):
        yield Text("NOTIFICATIONS, newest first", style="bold")
        yield deliveries_table(document["notified"])
    else:
        yield Text("No notification was sent.")


def _cells(row: Row) -> list[str]:
    return [
        text(row.get("state")),
        text(row.get("severity")),
        text(row.get("rule")),
        labels_text(row.get("labels"), without=SAID),
        utc(row.get("fired_at") or row.get("active_at")),
        _notified(row),
        text(row.get("fingerprint")),
    ]


def _notified(row: Row) -> str:
    """Return the receivers, or why they are not notified."""
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
        ("what", _string(alert.get("summary"))),
        ("reason", _string(alert.get("reason"))),
        ("breach since", time(alert.get("active_at"))),
        ("firing since", time(alert.get("fired_at"))),
        ("ended", _ended(alert)),
        *((f"  {name}", _value(value)) for name, value in (alert.get("evidence") or {}).items()),
        ("rule page", page),
        ("receivers", ", ".join(alert.get("receivers") or ()) or "none: nobody is notified"),
        ("silenced by", ", ".join(alert.get("silenced_by") or ()) or None),
        ("explained by", _string(alert.get("inhibited_by"))),
        ("acknowledged", _remark(alert.get("acknowledged"), "comment")),
        ("closing", _closing(document.get("closing"))),
        ("finding", _string(alert.get("finding_id"))),
        ("fingerprint", _string(alert.get("fingerprint"))),
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
    remark = _remark(row, "why")
    if row is None or remark is None:
        return None
    done = time(row.get("done_at"))
    return f"{remark}; {'the next round does it' if done is None else f'done {done}'}"


def _step(step: Row) -> str:
    return f"UTC  {text(step.get('step'))}  {text(step.get('reason'))}"


def _value(value: object) -> str | None:
    words = in_words(value)
    if words is None:
        return None
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}… (-o json)"


def _string(value: object) -> str | None:
    return None if value is None else str(value)


def _style(row: Mapping[str, Any]) -> str | None:
    return STYLES.get(str(row.get("severity"))) if row.get("state") == "firing" else None
