"""What the output of a tool means: one finding for each reason, with all rows that have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rules.facts.application_log import Names
from rules.facts.tool_output import Tool
from rules.tool_output.meanings import MEANINGS
from rules.tool_output.reasons import Meaning, Reason
from rules.verdict import Verdict

MOST_ITEMS: Final = 200  # of one finding that are kept
ORDER: Final = tuple(MEANINGS)  # the worst ones of a tool first
VERDICTS: Final = (Verdict.BREACH, Verdict.UNKNOWN, Verdict.OK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One row that a finding is about, in words."""

    line: int
    words: str
    names: Names = field(default_factory=Names)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinding:
    """Rows of one output that mean the same."""

    tool: Tool
    reason: Reason
    items: tuple[Item, ...]  # the first ones
    count: int

    @property
    def meaning(self) -> Meaning:
        """Return what it means."""
        return MEANINGS[self.reason]

    @property
    def names(self) -> Names:
        """Return the names that are the same in all its items."""
        values = {name: {getattr(item.names, name) for item in self.items} for name in SHARED}
        common = {
            name: next(iter(distinct)) for name, distinct in values.items() if len(distinct) == 1
        }
        if "topic" not in common:
            common.pop("partition", None)
        return Names(**common)


SHARED: Final = ("topic", "partition", "group", "transactional_id", "producer_id")


class Findings:
    """Collects items by their reasons."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self._items: dict[Reason, list[Item]] = {}
        self._counts: dict[Reason, int] = {}

    def add(self, reason: Reason, line: int, words: str, names: Names | None = None) -> None:
        """Add an item."""
        items = self._items.setdefault(reason, [])
        self._counts[reason] = self._counts.get(reason, 0) + 1
        if len(items) < MOST_ITEMS:
            items.append(Item(line=line, words=words, names=names or Names()))

    @property
    def reasons(self) -> Mapping[Reason, int]:
        """Return how many items each reason has."""
        return self._counts

    def all(self) -> list[ToolFinding]:
        """Return the findings, breaches first, those that are in order last."""
        return in_order(
            ToolFinding(
                tool=self._tool, reason=reason, items=tuple(items), count=self._counts[reason]
            )
            for reason, items in self._items.items()
        )


def in_order(findings: Iterable[ToolFinding]) -> list[ToolFinding]:
    """Return findings, breaches first, those that are in order last."""
    return sorted(
        findings,
        key=lambda each: (VERDICTS.index(each.meaning.verdict), ORDER.index(each.reason)),
    )


def listed(values: Sequence[int]) -> str:
    """Return numbers of brokers as the tools print them."""
    return ",".join(map(str, values)) or "none"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
