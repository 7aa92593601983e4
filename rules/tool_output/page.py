"""The page of what outputs of Kafka's tools mean, docs/tool-outputs.md: `make golden` writes it, and a test compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rules.tool_output.dump_meanings import DUMPS
from rules.tool_output.meanings import GROUPS, TOPICS, TRANSACTIONS
from rules.tool_output.reasons import Meaning, Reason

HEAD: Final = """# Outputs of Kafka's tools, and what they mean

Written by `make golden` from `rules/tool_output/`; [explain.md](explain.md#outputs-of-kafkas-tools) says how a text is read. An output shows one instant of one
observer: BREACH is what it shows to be wrong, UNKNOWN what it does not decide. None of it proves that records are lost or that a transaction hangs.
"""
SECTIONS: Final[tuple[tuple[str, Mapping[Reason, Meaning]], ...]] = (
    ("kafka-topics --describe", TOPICS),
    ("kafka-consumer-groups --describe", GROUPS),
    ("kafka-transactions", TRANSACTIONS),
    ("kafka-dump-log", DUMPS),
)


def tool_outputs_page() -> str:
    """Return the page."""
    return "\n".join([HEAD, *(line for title, table in SECTIONS for line in _section(title, table))])  # fmt: skip


def _section(title: str, table: Mapping[Reason, Meaning]) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| reason | verdict | what it means | records | what to do |"
    yield "|---|---|---|---|---|"
    for reason, meaning in table.items():
        yield (
            f"| `{reason}` | {meaning.verdict.name} | {meaning.title}. {meaning.explanation} | "
            f"{meaning.records}: {meaning.condition} | {meaning.action} |"
        )
    yield ""
