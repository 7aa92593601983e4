"""The commands that pages and helps show, as a shell reads them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

import click

from service.cli.main import tidemark
from tests.site.hooks import ROOT
from tests.site.pages import DOCS, Block, blocks

COMMAND_PAGES: Final = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "cli"),  # made of the helps
)
SHELL: Final = frozenset({"sh", "bash", "shell"})
PIPE: Final = re.compile(r"[|;&]+|\d*[<>]+&?\d*")
NOTE: Final = re.compile(r"\s{3,}\S.*")  # behind an example of a help
COMMENT: Final = re.compile(r"\s{2,}# .*")


@dataclass(frozen=True, slots=True)
class ShellLine:
    """A line for a shell, whole also where it goes on in the next one: where it is shown, and its text.

    `needs` names what the line's block needs beside Kafka, Java and PostgreSQL (`<!-- needs: docker -->`).
    """

    page: str  # of the repository, or "tidemark alerts --help"
    line: int  # of the page; of a help the number of the example
    text: str
    needs: frozenset[str] = frozenset()

    @property
    def place(self) -> str:
        """Return where it is shown, for messages."""
        return f"{self.page}:{self.line}"


def tree(group: click.Group, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield a group and every command below it, each with its path."""
    yield " ".join(path), group
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from tree(command, *path, name)
        else:
            yield " ".join((*path, name)), command


COMMANDS: Final = dict(tree(tidemark))


@cache
def shell_lines() -> tuple[ShellLine, ...]:
    """Return the lines of every page's blocks, then those of every help's examples, in order."""
    of_pages = (
        line for page in COMMAND_PAGES for block in blocks(page) for line in lines_of_block(block)
    )
    of_helps = (line for path in COMMANDS for line in _lines_of_help(path))
    return (*of_pages, *of_helps)


def lines_of_block(block: Block) -> Iterator[ShellLine]:
    """Yield the lines of a block: of sh those that are no comment, of console those behind a prompt."""
    if block.language in SHELL:
        prompt = ""
    elif block.language == "console":
        prompt = "$ "
    else:
        return
    for number, text in _whole_lines(block.text):
        command = COMMENT.sub("", text.removeprefix(prompt)).strip()
        if text.startswith(prompt) and command and not command.startswith("#"):
            yield ShellLine(block.page, block.line + number, command, block.needs)


def _lines_of_help(path: str) -> Iterator[ShellLine]:
    text = COMMANDS[path].help or ""
    examples = text.partition("Examples:\n")[2].partition("\n\n")[0]
    for number, line in _whole_lines(examples):
        if line.strip():
            example = NOTE.sub("", line.strip())
            yield ShellLine(f"tidemark {path} --help".replace("  ", " "), number, example)


def _whole_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with what a backslash at its end continues, and its number from 1."""
    number, rest = 1, ""
    for count, line in enumerate(text.splitlines(), 1):
        if line.endswith("\\"):
            rest += line.removesuffix("\\").rstrip() + " "
            continue
        yield number, rest + (line.strip() if rest else line)
        number, rest = count + 1, ""


def commands_in(text: str) -> Iterator[list[str]]:
    """Yield the arguments of every `tidemark` in lines of a shell."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars="|;&<>()")
        words.whitespace_split = True
        try:
            parts = list(words)
        except ValueError:
            continue  # a quotation that goes on in the next line holds no command of ours
        yield from _commands_in(parts)


def _commands_in(parts: list[str]) -> Iterator[list[str]]:
    for place, word in enumerate(parts):
        begins = place == 0 or PIPE.fullmatch(parts[place - 1]) or "=" in parts[place - 1]
        if word == "tidemark" and begins:
            rest = parts[place + 1 :]
            ends = (n for n, each in enumerate(rest) if PIPE.fullmatch(each) or each in "()")
            end = next(ends, len(rest))
            yield rest[: end - 1] if end < len(rest) and _is_descriptor(rest, end) else rest[:end]


def _is_descriptor(rest: list[str], end: int) -> bool:
    return end > 0 and rest[end].startswith(">") and rest[end - 1] in ("1", "2")
