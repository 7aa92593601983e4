"""Explained texts for a person at 3 a.m.: what it is, whether records are lost, what to do, what to type.

Lines are folded to the width of a terminal; with -o wide they are not.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from collectors.naming import counted
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import Format, chosen_format
from service.terminal.parts import FOLDED_WIDTH, Facts, Line, Part
from service.terminal.words import time
from service.views.explained import Answers, Row, with_sequences
from service.views.explained_tools import tool_words
from service.views.explained_words import RECORDS, incident_words, times, transactions_words

if TYPE_CHECKING:
    from service.cli.explain.reading import Text

VERDICTS: Final = {"OK": "bold green", "UNKNOWN": "bold yellow", "BREACH": "bold red"}


def render(text: Text, answers: Answers) -> Iterator[Part]:
    """Yield all that was found."""
    incidents = with_sequences(text.incidents, answers.sequences)
    shown = {at for row in incidents for at in row["sequences"]}
    for number, row in enumerate(incidents, start=1):
        yield from _incident(row, f"{number} of {len(incidents)}: " if len(incidents) > 1 else "")
        yield from _numbers([answers.sequences[at] for at in row["sequences"]])
    others = [event for at, event in enumerate(answers.sequences) if at not in shown]
    if others:
        from service.cli.sequence import tables as sequences  # noqa: PLC0415 - seldom needed

        yield from map(_folded, sequences.render_all_details(others))
    if text.broker_lines:
        yield Line("BROKERS' LINES", "bold")
        yield from map(_broker_line, text.broker_lines)
    for row in text.tools:
        yield Line(
            [
                (row["verdict"], VERDICTS[row["verdict"]]),
                (f"  {row['reason']}", "bold"),
                f"  {row['tool']}, {counted(row['count'], 'row')}",
            ]
        )
        yield Facts(_pairs(tool_words(row)))
    for row in text.transactions:
        yield Line(f"transactional id {row['transactional_id']}", "bold")
        yield Facts(_pairs(transactions_words(row, time)))
    if answers.rows:
        yield Line("WHAT IS KNOWN NOW", "bold")
        yield from map(_answer, answers.rows)
    if text.unexplained:
        yield Line("OF KAFKA, AND NOT KNOWN TO THIS COMMAND", "bold")
        yield from map(_unexplained, text.unexplained)


def remarks(text: Text) -> Iterator[str]:
    """Yield the remarks for stderr."""
    if text.exit_code is ExitCode.NOTHING_TO_EXPLAIN:
        yield f"nothing of Kafka among {counted(text.lines, 'line')}"
    elif not (text.incidents or text.unexplained or text.is_explained_otherwise):
        yield f"{counted(text.kafka_lines, 'line')} of Kafka, and no error that is known among them"
    if text.binary_lines:
        yield f"{counted(text.binary_lines, 'line')} with zero bytes: UTF-16 or binary, read as far as it is text"
    if text.collected.not_kept:
        yield f"{counted(text.collected.not_kept, 'error')} exceeded the limits: split the text"
    if text.tool_rows_not_kept:
        yield f"{counted(text.tool_rows_not_kept, 'row')} of Kafka's tools exceeded the limits: split the text"
    if text.cut_lines:
        yield f"{counted(text.cut_lines, 'line')} of Kafka's tools cut off, and not read"
    unknown = sum(each["count"] for each in text.unexplained)
    if unknown:
        yield f"{counted(unknown, 'record')} of Kafka could not be explained"


def _incident(row: Row, number: str) -> Iterator[Part]:
    records, style = RECORDS[row["records"]]
    harmless = "harmless so far" if row["is_harmless"] else f"records: {records}"
    yield Line([(f"{number}{row['meaning']}", "bold"), "  ", (harmless, style)])
    yield Facts(_pairs(incident_words(row, time)))


def _numbers(events: Sequence[Row]) -> Iterator[Part]:
    """Yield what the numbers of rejected batches say, below the incident that they belong to."""
    if not events:
        return
    from service.cli.sequence import tables as sequences  # noqa: PLC0415 - seldom needed

    for part in sequences.render_all_details(events):
        if isinstance(part, Facts):
            yield _folded(part)
        else:
            yield Facts(_pairs([("by numbers", _plain(part))]))


def _plain(part: Part) -> str | None:
    """Return the words of a heading; a heading of an event is one text."""
    return part.words if isinstance(part, Line) and isinstance(part.words, str) else None


def _broker_line(row: Row) -> Facts:
    at = time(row["at"])
    about = f"{row['topic']}-{row['partition']}{'' if at is None else f', {at}'}"
    records = None if row["records"] == "neither" else f"{RECORDS[row['records']][0]}"
    return Facts(_pairs([("line", f"{about}: {row['explanation']}"), ("records", records), ("next", row["next_command"])]))  # fmt: skip


def _answer(row: Row) -> Facts:
    return Facts(_pairs([(row["by"], f"{row['about']}: {row['verdict']}, {row['summary']}")]))


def _pairs(pairs: Sequence[tuple[str, str | None]]) -> list[tuple[str, object]]:
    """Return labels and values with long values on several lines, commands with a backslash between."""
    if chosen_format() is not Format.TABLE:
        return list(pairs)
    folded: list[tuple[str, object]] = []
    for label, value in pairs:
        if value is None:
            continue
        is_command = label == "next"
        width = FOLDED_WIDTH - 2 if is_command else FOLDED_WIDTH
        lines = textwrap.wrap(value, width, break_on_hyphens=False, break_long_words=not is_command)
        if is_command:
            lines = [f"{line} \\" for line in lines[:-1]] + lines[-1:]
        folded += [(label if place == 0 else "", line) for place, line in enumerate(lines)]
    return folded


def _folded(part: Part) -> Part:
    """Return a part of `sequence explain`, folded."""
    if not isinstance(part, Facts):
        return part
    return Facts(
        _pairs([(label, None if value is None else str(value)) for label, value in part.pairs])
    )


def _unexplained(row: Row) -> Facts:
    return Facts(_pairs([(f"line {row['line']}", f"{times(row)}{row['text']}")]))
