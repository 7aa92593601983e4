"""Order of the texts of `--help`: what a command does, its examples, then the details."""

from __future__ import annotations

import re

import click


def put_examples_first(command: click.Command) -> None:
    """Move the examples of a command, and of those below it, to right after its first sentence."""
    if command.help is not None:
        command.help = with_examples_first(command.help)
    if isinstance(command, click.Group):
        for child in command.commands.values():
            put_examples_first(child)


def with_examples_first(text: str) -> str:
    """Return a help text whose paragraph of examples is the second one; without one, the text as it is."""
    paragraphs = re.split(r"\n[ \t]*\n", text)
    places = [
        n for n, each in enumerate(paragraphs) if each.lstrip("\b\n\t ").startswith("Examples:")
    ]
    if not places or places[0] <= 1:
        return text
    examples = paragraphs.pop(places[0])
    return "\n\n".join([paragraphs[0], examples, *paragraphs[1:]])
