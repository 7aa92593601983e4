"""The form of a runbook: front matter, six sections, and blocks of commands; pure.

    ---
    rule: transaction_hanging
    severity: critical
    ---
    ## Diagnosis

    ```sh diagnosis when=hanging
    tidemark tx hanging
    ```

    Expect: the transaction under `hanging`.

A `diagnosis` block only reads; a `mitigation` block changes something. `when` names the reasons of the alert for
which a block is meant, separated by commas. Every other fenced block is prose. docs/runbooks.md is for operators.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rules.errors import SettingsError
from rules.verdict import SEVERITIES

SECTIONS: Final = (
    "Meaning",
    "Impact",
    "Diagnosis",
    "Mitigation",
    "Verification",
    "Escalation",
)
KEYS: Final = ("rule", "severity", "class", "owner", "fault", "no_fault", "last_verified")
FENCE: Final = "```"
EXPECT: Final = "Expect:"
_TAGGED: Final = re.compile(r"```sh[ \t]+(diagnosis|mitigation)(?:[ \t]+when=([a-z_,]+))?[ \t]*")


class BlockKind(StrEnum):
    """What the commands of a block do."""

    DIAGNOSIS = "diagnosis"  # they read
    MITIGATION = "mitigation"  # they change something


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """Lines of Markdown."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Commands, one per line, and what they are expected to show."""

    kind: BlockKind
    line: int  # of the opening fence, from 1
    commands: tuple[str, ...]  # without comments and empty lines
    expect: str
    when: tuple[str, ...] = ()  # reasons of the alert; empty: always

    def is_for(self, reason: str | None) -> bool:
        """Whether the block is meant for an alert of this reason; None: for any."""
        return not self.when or reason is None or reason in self.when


@dataclass(frozen=True, slots=True, kw_only=True)
class Runbook:
    """A runbook as it was read; names and values are those of its front matter."""

    facts: Mapping[str, str]
    sections: Mapping[str, tuple[Prose | Block, ...]]  # in the order of SECTIONS
    source: str  # the file, as a person names it

    @property
    def rule(self) -> str:
        """Return the id of the rule that it is for."""
        return self.facts["rule"]

    def blocks(self) -> Iterator[Block]:
        """Yield all blocks in order."""
        for items in self.sections.values():
            yield from (item for item in items if isinstance(item, Block))


class RunbookError(SettingsError):
    """A runbook that cannot be used; the text names the file and the line."""


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of a file, and how errors name them."""

    source: str
    texts: Sequence[str]

    def error(self, line: int, what: str) -> RunbookError:
        return RunbookError(f"{self.source}:{line}: {what}")


def parse(text: str, source: str, rules: Sequence[str]) -> Runbook:
    """Return the runbook that a text holds; `rules` are the ids of all rules.

    Raises:
        RunbookError: for the first line that is not of the form.
    """
    lines = _Lines(source, text.splitlines())
    facts, start = _front_matter(lines, rules)
    return Runbook(facts=facts, sections=_sections(lines, start), source=source)


def _front_matter(lines: _Lines, rules: Sequence[str]) -> tuple[dict[str, str], int]:
    """Return the facts, and the index of the first line behind them."""
    if not lines.texts or lines.texts[0].rstrip() != "---":
        raise lines.error(1, "front matter is missing: the first line has to be ---")
    facts: dict[str, str] = {}
    for index, line in enumerate(lines.texts[1:], 1):
        if line.rstrip() == "---":
            _check_facts(lines, facts, rules)
            return facts, index + 1
        name, colon, value = line.partition(":")
        if name not in KEYS or not colon:
            raise lines.error(
                index + 1, f"{name!r} is no key of the front matter{_meant(name, KEYS)}"
            )
        if name in facts or not value.strip():
            raise lines.error(index + 1, f"{name} has {'two values' if name in facts else 'none'}")
        facts[name] = value.strip()
    raise lines.error(len(lines.texts), "the front matter has no end: a line ---")


def _check_facts(lines: _Lines, facts: Mapping[str, str], rules: Sequence[str]) -> None:
    rule, severity = facts.get("rule"), facts.get("severity")
    if rule is None:
        raise lines.error(1, "the front matter has no rule")
    if rule not in rules:
        raise lines.error(1, f"there is no rule {rule!r}{_meant(rule, rules)}")
    if severity is not None and severity not in SEVERITIES:
        raise lines.error(1, f"severity {severity!r} is none of {', '.join(SEVERITIES)}")
    if "fault" in facts and "no_fault" in facts:
        raise lines.error(1, "fault and no_fault exclude each other")


def _meant(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _sections(lines: _Lines, start: int) -> dict[str, tuple[Prose | Block, ...]]:
    """Return the items of each section; a title of one # before the first is left out."""
    heads: list[tuple[str, int]] = []
    is_fenced = False
    for index in range(start, len(lines.texts)):
        line = lines.texts[index]
        is_fenced ^= line.startswith(FENCE)
        if line.startswith("## ") and not is_fenced:
            heads.append((line[3:].strip(), index))
    if is_fenced:
        raise lines.error(len(lines.texts), f"a block has no end: a line {FENCE}")
    names = [name for name, _ in heads]
    if tuple(names) != SECTIONS:
        raise lines.error(
            start + 1,
            f"its sections are {', '.join(names) or 'none'}; they have to be {', '.join(SECTIONS)}",
        )
    ends = [index for _, index in heads[1:]] + [len(lines.texts)]
    return {
        name: tuple(_items(lines, index + 1, end))
        for (name, index), end in zip(heads, ends, strict=True)
    }


def _items(lines: _Lines, start: int, end: int) -> Iterator[Prose | Block]:
    index, prose = start, list[str]()
    while index < end:
        tagged = _TAGGED.fullmatch(lines.texts[index])
        if tagged is None:
            prose.append(lines.texts[index])
            if lines.texts[index].startswith(f"{FENCE}sh "):
                raise lines.error(index + 1, "a block is tagged `sh diagnosis` or `sh mitigation`")
            index += 1
            continue
        yield from _prose(prose)
        prose = []
        block, index = _block(lines, index, end, tagged)
        yield block
    yield from _prose(prose)


def _prose(lines: Sequence[str]) -> Iterator[Prose]:
    text = "\n".join(lines).strip("\n")
    if text.strip():
        yield Prose(lines=tuple(text.split("\n")))


def _block(lines: _Lines, index: int, end: int, tagged: re.Match[str]) -> tuple[Block, int]:
    """Return the block whose fence is at an index, and the index behind what it expects."""
    closing = next(at for at in range(index + 1, end) if lines.texts[at].startswith(FENCE))
    body = [line.strip() for line in lines.texts[index + 1 : closing]]
    commands = tuple(line for line in body if line and not line.startswith("#"))
    if not commands:
        raise lines.error(index + 1, "the block has no command")
    after = next((at for at in range(closing + 1, end) if lines.texts[at].strip()), end)
    if after == end or not lines.texts[after].startswith(EXPECT):
        raise lines.error(index + 1, f'what the block shows is missing: a line "{EXPECT} ..."')
    last = next((at for at in range(after, end) if not lines.texts[at].strip()), end)
    expect = " ".join(lines.texts[after:last]).removeprefix(EXPECT).strip()
    return Block(
        kind=BlockKind(tagged[1]),
        line=index + 1,
        commands=commands,
        expect=" ".join(expect.split()),
        when=tuple(tagged[2].split(",")) if tagged[2] else (),
    ), last
