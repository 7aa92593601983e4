"""The message for a Slack channel: a line for notices, and blocks for who opens it.

Slack rejects a whole message if it exceeds one limit, so that every text is cut before. Besides the
limits of its reference there is an undocumented one: all blocks together must stay below some 13,000
characters, or it answers msg_blocks_too_long.

Source: Slack's reference of Block Kit; slackapi/bolt-js, issue 2509.
"""

from __future__ import annotations

import re
from typing import Final

from service.alerting.alerts.annotations import CUT, INCIDENT_SUMMARY, cut
from service.alerting.notifications.notification import (
    Json,
    Notification,
    NotifiedAlert,
    json_bytes,
)
from service.alerting.notifications.wording import details, headline, pairs, title, word_of

LONGEST_HEADER: Final = 150  # characters, of plain text
LONGEST_SECTION: Final = 3000
LONGEST_NOTICE: Final = 3000  # Slack takes 40,000; nobody reads them
LONGEST_TOGETHER: Final = 10_000  # of all sections
MOST_ALERTS: Final = 10  # of 50 blocks; for more, open Tidemark
_LONGEST_ALERT: Final = 900  # before it is escaped: ten of them, and space for what escaping adds
LONGEST_REASON: Final = 100
_LONGEST_ESCAPED: Final = 2300  # so that two links still fit
_LONGEST_LINK: Final = 250
_SPECIAL: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_WEB: Final = re.compile(r"https?://[^\s|<>]+")

_Block = dict[str, Json]


def slack_body(notification: Notification) -> bytes:
    """Return the message."""
    line = title(notification)
    header = {"type": "plain_text", "text": cut(line, LONGEST_HEADER)}
    # Slack shows blocks in place of the notice: a text that is too long for the header is below it.
    incident = notification.common_annotations.get(INCIDENT_SUMMARY, "")
    is_cut = bool(incident) and len(line) > LONGEST_HEADER
    whole = [_section(escape(incident, _LONGEST_ALERT))] if is_cut else []
    blocks: list[Json] = [{"type": "header", "text": header}, *whole, *_sections(notification)]
    return json_bytes({"text": escape(line, LONGEST_NOTICE), "blocks": blocks})


def escape(text: str, longest: int) -> str:
    """Return text that Slack shows as it is, cut between characters and never inside an escape."""
    written = [_SPECIAL.get(character, character) for character in text]
    if sum(map(len, written)) <= longest:
        return "".join(written)
    pieces, length = [], len(CUT)
    for piece in written:
        length += len(piece)
        if length > longest:
            break
        pieces.append(piece)
    return "".join(pieces) + CUT


def _sections(notification: Notification) -> list[_Block]:
    """Return a section for each alert, as many as fit, then a line with the number left out."""
    alerts = notification.most_urgent_first
    sections, length = [], 0
    for alert in alerts[:MOST_ALERTS]:
        text = _section_text(alert)
        length += len(text)
        if length > LONGEST_TOGETHER:
            break
        sections.append(_section(text))
    ending = _ending(len(alerts) - len(sections), notification)
    return [*sections, _context(ending)] if ending else sections


def _section_text(alert: NotifiedAlert) -> str:
    lines = [f"{word_of(alert)}: {headline(alert)}", pairs(alert.labels)]
    lines += [f"{name}: {value}" for name, value in details(alert).items()]
    text = escape(cut("\n".join(lines), _LONGEST_ALERT), _LONGEST_ESCAPED)
    links = _links(alert)
    return f"{text}\n{links}" if links else text


def _links(alert: NotifiedAlert) -> str:
    """Return links to the runbook, the panel and the details of an alert."""
    urls = (
        (alert.annotations.get("runbook_url", ""), "Runbook"),
        (alert.annotations.get("panelURL", ""), "Panel"),
        (alert.generator_url, "Details"),
    )
    return " · ".join(link for link in (_link(url, name) for url, name in urls) if link)


def _link(url: str, name: str) -> str:
    """Return a link; empty for a URL that is no plain web address and might break out of the markup."""
    is_plain = _WEB.fullmatch(url) and len(url) <= _LONGEST_LINK
    return f"<{url.replace('&', _SPECIAL['&'])}|{name}>" if is_plain else ""


def _ending(left: int, notification: Notification) -> str:
    more = f"and {left} more" if left else ""
    reason = escape(notification.reason, LONGEST_REASON)
    where = _link(notification.external_url, "Tidemark")
    return " · ".join(part for part in (more, reason, where) if part)


def _section(text: str) -> _Block:
    return {"type": "section", "text": _markdown(text)}


def _context(text: str) -> _Block:
    return {"type": "context", "elements": [_markdown(text)]}


def _markdown(text: str) -> _Block:
    """Return text in Slack's markup; verbatim, so that no #topic or @name in it becomes a link."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}
