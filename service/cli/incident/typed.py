"""What was typed: commands and answers in the transcripts that `tidemark runbook run` keeps.

A transcript is on the machine of the person who followed the runbook. Those of this machine and this Tidemark are read
by themselves; those of colleagues are given as files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rules.errors import CollectError
from service.cli.runbook.transcript import FOLDER, FORM, INDENT

MOST_BYTES: Final = 16_000_000  # of a transcript
EVENT: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) (.*)")
SHOWN: Final = ("run ", "confirm: ", "interrupted", "runbook ")
ENDED: Final = ("exit code ", "ended after ", "cannot be started", "interrupted")


@dataclass(frozen=True, slots=True)
class Typed:
    """Something that a person did, or let be done, at a terminal."""

    at: datetime  # to the second
    what: str
    path: Path  # of the transcript


@dataclass(slots=True)
class _Event:
    at: datetime
    text: str
    lines: list[str]  # below it


def transcripts_in(state_folder: Path) -> list[Path]:
    """Return the transcripts of a user's state folder, in order of time; none if it cannot be listed."""
    try:
        return sorted(state_folder.joinpath(*FOLDER).glob("*.txt"))
    except OSError:
        return []


def typed_in(path: Path, server: str | None) -> list[Typed]:
    """Return what was typed by a transcript: of all walks in it, or of those that queried one server.

    Raises:
        CollectError: it cannot be read, or is no transcript.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise CollectError(f"{path} is too large for a transcript")
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as exc:
        raise CollectError(f"{path}: {(exc.strerror or str(exc)).lower()}") from exc
    events = list(_events(text))
    if text and not events:
        raise CollectError(f"{path} is no transcript of `tidemark runbook run`")
    return list(_typed(events, path, server))


def _events(text: str) -> Iterator[_Event]:
    event: _Event | None = None
    for line in text.splitlines():
        match = EVENT.fullmatch(line)
        if match is not None:
            if event is not None:
                yield event
            event = _Event(_time(match[1]), match[2], [])
        elif event is not None and line.startswith(INDENT):
            event.lines.append(line.removeprefix(INDENT))
    if event is not None:
        yield event


def _time(text: str) -> datetime:
    try:
        return datetime.strptime(text, FORM).replace(tzinfo=UTC)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def _typed(events: Sequence[_Event], path: Path, server: str | None) -> Iterator[Typed]:
    is_ours = server is None
    for place, event in enumerate(events):
        if event.text.startswith("runbook ") and server is not None:
            is_ours = f"server: {server}" in event.lines
        if is_ours and event.text.startswith(SHOWN):
            yield Typed(event.at, _words(event, events[place + 1 :]), path)


def _words(event: _Event, later: Sequence[_Event]) -> str:
    """Return an event as a line: with the answer to a question, or how a command ended."""
    kind, _, rest = event.text.partition(" ")
    if kind == "run":
        ended = (
            later[0].text if later and later[0].text.startswith(ENDED) else "its end is not noted"
        )
        return f"ran from the runbook: {rest} ({ended})"
    if kind == "confirm:":
        return f"asked whether to {rest}: {' '.join(event.lines) or 'no answer'}"
    return f"runbook followed: {rest}" if kind == "runbook" else f"runbook {event.text}"
