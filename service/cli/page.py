"""Writes docs/cli.md and docs/cli/: every command's help, from the tree of commands itself.

The text is that of `--help` at a fixed width, so that a page and a terminal never differ, and the terminal
of whoever writes the pages does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import click

from service.cli.main import tidemark

WIDTH: Final = 100  # columns, as much as help takes on a wide terminal
PROGRAM: Final = "tidemark"
INTRODUCTION: Final = """\
# Command line

Generated from the commands by `make golden`; a test compares. `tidemark COMMAND --help` has the same on the
terminal. [Exit codes](exit-codes.md) are the same for all commands.

| command | what it does |
|---|---|
"""


def cli_pages() -> Mapping[str, str]:
    """Return the pages by their paths below docs/: `cli.md`, and one per command in `cli/`."""
    top = _context(tidemark, PROGRAM, None)
    rows = dict(_children(top))
    pages = {f"cli/{name}.md": _page(top, name, command) for name, command in rows.items()}
    index = "".join(
        f"| [`{PROGRAM} {name}`](cli/{name}.md) | {_cell(_summary(command))} |\n"
        for name, command in rows.items()
    )
    whole = f"\n## {PROGRAM} --help\n\n{_block(tidemark, top)}"
    return {"cli.md": f"{INTRODUCTION}{index}{whole}", **pages}


def _page(top: click.Context, name: str, command: click.Command) -> str:
    (whole, context), *below = _tree(command, _context(command, name, top))
    head = f"# {context.command_path}\n\n{_summary(whole)} All commands: [Command line](../cli.md)."
    sections = [f"## {inner.command_path}\n\n{_block(each, inner)}" for each, inner in below]
    return "\n".join([f"{head}\n\n{_block(whole, context)}", *sections])


def _tree(
    command: click.Command, context: click.Context
) -> Iterator[tuple[click.Command, click.Context]]:
    """Yield a command and all below it, each group before its commands."""
    yield command, context
    for name, child in _children(context):
        yield from _tree(child, _context(child, name, context))


def _children(context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Yield the visible commands of a group, by name; none of a command that is no group."""
    if not isinstance(context.command, click.Group):
        return
    for name in sorted(context.command.list_commands(context)):
        child = context.command.get_command(context, name)
        if child is not None and not child.hidden:
            yield name, child


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    return click.Context(command, info_name=name, parent=parent, **settings)


def _block(command: click.Command, context: click.Context) -> str:
    command._help_option = None  # noqa: SLF001 - click keeps the one of the first context, whatever names that had
    lines = (line.rstrip() for line in command.get_help(context).splitlines())
    return "```text\n" + "\n".join(lines).strip() + "\n```\n"


def _summary(command: click.Command) -> str:
    return command.get_short_help_str(limit=10_000)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
