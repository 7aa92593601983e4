"""Writes the report of an incident as Markdown, and as one HTML file that needs nothing else.

A group, a transactional id or a comment may hold anything. In HTML everything is escaped; in Markdown too, as its
readers take HTML, and no text begins a line or ends a cell of a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from html import escape
from itertools import groupby
from typing import Final

from service.cli.incident.report import (
    ClientOfEvent,
    Entry,
    IncidentReport,
    LostRange,
    Outcome,
    Proof,
    UnknownLoss,
)
from service.cli.incident.svg import svg_of
from service.terminal.words import ABSENT, in_words, printable, text, timestamp

OUTCOMES: Final = {
    Outcome.LOST: "Committed records are lost",
    Outcome.MAY_BE_LOST: "Committed records may be lost",
    Outcome.UNKNOWN: "UNKNOWN whether records are lost",
    Outcome.NONE_FOUND: "No rule found lost records",
}
ELSEWHERE: Final = {  # of other losses than those that are related to the alert
    Outcome.LOST: "At that time other committed records are lost, which share no subject with the alert",
    Outcome.MAY_BE_LOST: "At that time other records may be lost, which share no subject with the alert",
}
MOST_ALIKE: Final = 3  # facts of one kind at one time that are shown one by one
LONGEST: Final = 2000  # characters of one cell
MARKS: Final = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_{}[]()#+!|~$"})
NAME_MARKS: Final = re.compile(r"[_/.]+")
TIME: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
STYLE: Final = (
    "body{font-family:sans-serif;line-height:1.4;max-width:72rem;margin:2rem auto;padding:0 1rem;"
    "overflow-wrap:break-word}div{overflow-x:auto}table{border-collapse:collapse;width:100%;"
    "font-size:.875rem}td,th{border:1px solid #ccc;padding:.25rem .5rem;text-align:left;"
    "vertical-align:top}time{white-space:nowrap}th{background:#f4f4f4}svg{max-width:100%;height:auto}"
    "@media print{div{overflow-x:visible}}"
)

LOST: Final = "Lost offsets"  # headings
UNKNOWN_EXTENT: Final = "Losses of unknown extent"
OTHER: Final = "Not related to the alert: "
RANGE_COLUMNS: Final = (
    "partition", "certainty", "offsets from", "to (excluded)", "count", "source",
)  # fmt: skip
UNKNOWN_COLUMNS: Final = ("partition", "reason", "at least", "unknown since", "source")
VERDICTS: Final = "Verdicts and their proof"
CLIENTS: Final = "Clients whose records failed or were retried (no proof of a loss)"
CLIENT_COLUMNS: Final = (
    "partition", "client", "address", "topic", "errors", "retries", "from (UTC)", "to (UTC)", "source",
)  # fmt: skip
SOURCES: Final = {LOST: "losses", VERDICTS: "findings"}  # the parts of the API that they are of

Section = tuple[str, Sequence[str], list[Sequence[str]]]  # heading, columns, rows


def headline(report: IncidentReport) -> str:
    """Return the outcome in one sentence, and in another one what else was lost at that time."""
    words = OUTCOMES[report.outcome]
    at_least = sum(row.at_least_offsets or 0 for row in report.unknown_losses if row.is_related)
    if report.lost_offsets:
        words += f": at least {report.lost_offsets:,} offsets, exact ranges below"
    elif at_least:
        words += f": groups had committed {at_least:,} offsets that are not in the log"
    if report.other_outcome is None:
        return f"{words}."
    return f"{words}. {ELSEWHERE[report.other_outcome]}."


def markdown_of(report: IncidentReport) -> str:
    """Return the report as Markdown."""
    lines = [f"# {_markdown(report.title)}", "", f"**{_markdown(headline(report))}**", ""]
    lines += [f"- {name}: {_markdown(value)}" for name, value in _facts(report)]
    for heading, columns, rows in _sections(report):
        lines += ["", f"## {heading}", ""]
        lines += list(_markdown_table(columns, rows)) if rows else [_nothing(report, heading)]
    lines += ["", "## Charts", ""]
    lines += [f"{svg_of(chart)}\n" for chart in report.charts] or ["None."]
    lines += ["", "## Missing", ""]
    lines += [f"- {_markdown(line)}" for line in report.missing] or ["Nothing."]
    return "\n".join(lines) + "\n"


def html_of(report: IncidentReport) -> str:
    """Return the report as one HTML file, without scripts and without addresses."""
    facts = "".join(f"<li>{escape(name)}: {_html(value)}</li>" for name, value in _facts(report))
    sections = "".join(
        f"<h2>{heading}</h2>"
        f"{_html_table(columns, rows) if rows else f'<p>{_nothing(report, heading)}</p>'}"
        for heading, columns, rows in _sections(report)
    )
    charts = "".join(f"<p>{svg_of(chart)}</p>" for chart in report.charts) or "<p>None.</p>"
    missing = "".join(f"<li>{_html(line)}</li>" for line in report.missing) or "<li>Nothing.</li>"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>{_html(report.title)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{_html(report.title)}</h1><p><strong>{_html(headline(report))}</strong></p>"
        f"<ul>{facts}</ul>{sections}<h2>Charts</h2>{charts}<h2>Missing</h2><ul>{missing}</ul>"
        "</body></html>\n"
    )


def _nothing(report: IncidentReport, heading: str) -> str:
    """Return what an empty section says: what could not be read is not none."""
    source = SOURCES.get(heading)
    is_unread = source is not None and any(each.startswith(f"{source}:") for each in report.missing)
    return "Not known: see Missing." if is_unread else "None."


def _facts(report: IncidentReport) -> list[tuple[str, str]]:
    return [
        ("cluster", report.cluster),
        ("from", timestamp(report.begin)),
        ("to", timestamp(report.end)),
        ("alert", text(report.alert)),
        *(("losses", summary) for summary in report.loss_summaries),
        ("affected groups", ", ".join(report.groups) or "none is named"),
        ("affected transactional ids", ", ".join(report.transactional_ids) or "none is named"),
        ("answers of", f"{report.server}, {timestamp(report.made_at)}"),
    ]


def _sections(report: IncidentReport) -> Iterator[Section]:
    for prefix, is_related in (("", True), (OTHER, False)):
        ranges = [_range_row(lost) for lost in report.lost_ranges if lost.is_related is is_related]
        unknown = [
            _unknown_row(lost) for lost in report.unknown_losses if lost.is_related is is_related
        ]
        if ranges or is_related:
            yield f"{prefix}{LOST}", RANGE_COLUMNS, ranges
        if unknown:
            yield f"{prefix}{UNKNOWN_EXTENT}", UNKNOWN_COLUMNS, unknown
    facts = ("rule", "about", "verdict", "since (UTC)", "until (UTC)", "evidence", "source")
    related = [_proof_row(proof) for proof in report.proofs if proof.is_related]
    yield VERDICTS, facts, related
    others = [_proof_row(proof) for proof in report.proofs if not proof.is_related]
    if others:
        yield f"{OTHER}{VERDICTS}", facts, others
    if report.clients:
        yield CLIENTS, CLIENT_COLUMNS, [_client_row(client) for client in report.clients]
    yield (
        "Timeline",
        ("time (UTC)", "what", "source"),
        list(_timeline(report.timeline)),
    )


def _timeline(entries: Sequence[Entry]) -> Iterator[Sequence[str]]:
    """Yield the facts; of many of one kind at one time, as when a broker comes back, the first and how many."""

    def kind(entry: Entry) -> tuple[datetime, str, str]:
        return entry.at, entry.what.partition(",")[0], entry.source.partition("/")[0]

    for (at, _, _), group in groupby(entries, kind):
        rows = list(group)
        time, hidden = f"{at:%Y-%m-%d %H:%M:%S}", len(rows) - 1
        if len(rows) <= MOST_ALIKE:
            yield from ((time, entry.what, entry.source) for entry in rows)
        else:
            what = f"{rows[0].what} and {hidden:,} more like it (-o json has all)"
            yield time, what, rows[0].source


def _range_row(lost: LostRange) -> Sequence[str]:
    place = f"{text(lost.topic)}-{text(lost.partition)}"
    numbers = (str(lost.begin), str(lost.end), f"{lost.offsets:,}")
    return (place, lost.kind.value, *numbers, f"losses/{lost.loss}")


def _unknown_row(lost: UnknownLoss) -> Sequence[str]:
    return (
        f"{text(lost.topic)}-{text(lost.partition)}",
        lost.reason,
        text(lost.at_least_offsets),
        timestamp(lost.unknown_since),
        f"losses/{lost.loss}",
    )


def _client_row(client: ClientOfEvent) -> Sequence[str]:
    begins = [at for at in (client.errors_since, client.retries_since) if at is not None]
    ends = [at for at in (client.errors_until, client.retries_until) if at is not None]
    return (
        f"{text(client.of_topic)}-{text(client.partition)}",
        client.client_id,
        client.address,
        client.topic or "all its topics",
        _number(client.errors, client.errors_until),
        _number(client.retries, client.retries_until),
        f"{min(begins):%Y-%m-%d %H:%M:%S}" if begins else ABSENT,
        f"{max(ends):%Y-%m-%d %H:%M:%S}" if ends else ABSENT,
        f"sequences/{client.sequence}",
    )


def _number(count: int | None, until: datetime | None) -> str:
    """Return by how much a counter rose; a rate says only that it did."""
    return "more" if count is None and until is not None else text(count)


def _proof_row(proof: Proof) -> Sequence[str]:
    about = ", ".join(f"{name} {value}" for name, value in proof.labels.items())
    until = ABSENT if proof.ended_at is None else f"{proof.ended_at:%Y-%m-%d %H:%M:%S}"
    return (
        f"{proof.rule} ({proof.severity})",
        about,
        f"{proof.verdict}: {proof.reason}",
        f"{proof.since:%Y-%m-%d %H:%M:%S}",
        until,
        in_words(proof.evidence) or ABSENT,
        f"findings/{proof.finding}",
    )


def _markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{' --- |' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(map(_markdown, row))} |"


def _html_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{_html_cell(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _html_cell(value: str) -> str:
    """Return a cell that is folded within a name only after its marks, and never within a time."""
    return TIME.sub(r"<time>\g<0></time>", NAME_MARKS.sub(r"\g<0><wbr>", _html(value)))


def _cut(value: str) -> str:
    shown = printable(value)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}… (-o json has all)"


def _markdown(value: str) -> str:
    return escape(_cut(value), quote=False).translate(MARKS)


def _html(value: str) -> str:
    return escape(_cut(value))
