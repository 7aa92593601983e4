"""Outputs of Kafka's tools as JSON rows and in words, for `tidemark explain`; their form is in `service/schemas/explained.py`."""

from __future__ import annotations

from typing import Final

from rules.exceptions.next_commands import commands
from rules.tool_output.findings import Item, ToolFinding
from service.views.explained import Row
from service.views.explained_words import RECORDS, Pairs, begin_sentence

SHOWN_IN_ORDER: Final = 3  # items of one that says that all is well
SHOWN: Final = 8  # items of a finding in a text for people; JSON has all that were kept


def tool_row(finding: ToolFinding, source: str) -> Row:
    """Return what rows of a tool mean."""
    meaning, names = finding.meaning, finding.names
    return {
        "tool": finding.tool.value,
        "reason": finding.reason.value,
        "verdict": meaning.verdict.name,
        "title": meaning.title,
        "explanation": meaning.explanation,
        "records": meaning.records.value,
        "condition": meaning.condition,
        "action": meaning.action,
        "next_commands": list(commands(meaning.next, names)),
        "count": finding.count,
        "source": source,
        "items": [_item_row(item) for item in finding.items],
    }


def _item_row(item: Item) -> Row:
    names = item.names
    return {
        "line": item.line,
        "words": item.words,
        "topic": names.topic,
        "partition": names.partition,
        "group": names.group,
        "transactional_id": names.transactional_id,
        "producer_id": names.producer_id,
    }


def tool_words(row: Row) -> Pairs:
    """Return labels and values of a finding for a person."""
    is_ok = row["verdict"] == "OK"
    items = row["items"][: SHOWN_IN_ORDER if is_ok else SHOWN]
    more = row["count"] - len(items)
    return [
        ("what", f"{begin_sentence(row['title'])}. {row['explanation']}"),
        ("records", None if is_ok else f"{RECORDS[row['records']][0]}. {row['condition']}"),
        ("do", None if is_ok else row["action"]),
        *(("next", command) for command in row["next_commands"]),
        *(("line", f"{item['line']}: {item['words']}") for item in items),
        ("", f"and {more:,} more" if more else None),
    ]
