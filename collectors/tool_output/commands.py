"""The command line above an output: it names what the output itself does not, as the partition of its producers."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from rules.facts.tool_output import CommandLine, Tool

_TOOLS: Final = {
    "kafka-dump-log": Tool.DUMP_LOG,
    "kafka.tools.DumpLogSegments": Tool.DUMP_LOG,
    "kafka-transactions": Tool.TRANSACTIONS,
    "kafka-topics": Tool.TOPICS,
    "kafka-consumer-groups": Tool.CONSUMER_GROUPS,
}
_COMMAND: Final = re.compile(
    rf"(?:^|[\s/\\])(?P<tool>{'|'.join(map(re.escape, _TOOLS))})(?:\.sh|\.bat)?(?P<rest>\s.{{0,4000}})?$"
)
_PROMPT: Final = re.compile(r"[^$#%>]{0,120}[$#%>] (?:[\w./~-]{0,200}/)?kafka-")
_MINUTES: Final = re.compile(r"\d{1,9}")


def command_of(text: str, line: int) -> CommandLine | None:
    """Return the command that a line runs; None: it runs none of these."""
    match = _COMMAND.search(text)
    if match is None:
        return None
    words = tuple((match["rest"] or "").replace("=", " ").split())
    partition, minutes = _option(words, "--partition"), _option(words, "--max-transaction-timeout")
    return CommandLine(
        line=line,
        tool=_TOOLS[match["tool"]],
        words=words,
        topic=_option(words, "--topic"),
        partition=int(partition) if partition and _MINUTES.fullmatch(partition) else None,
        is_typed=_PROMPT.match(text) is not None,
        max_timeout_minutes=int(minutes) if minutes and _MINUTES.fullmatch(minutes) else None,
    )


def _option(words: tuple[str, ...], name: str) -> str | None:
    """Return the value of an option, without quotes."""
    for option, value in pairwise(words):
        if option == name and not value.startswith("--"):
            return value.strip("'\"")
    return None
