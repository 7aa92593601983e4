"""Fenced blocks are what they say: JSON, YAML, TOML that parses, and shell that a shell reads."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.site.pages import Block, blocks, name_of, pages

PROMPT: Final = re.compile(r"(?m)^\$ ")
LANGUAGES: Final = frozenset(
    {"", "text", "console", "sh", "bash", "shell", "json", "yaml", "toml", "ini", "python", "sql",
     "promql", "html", "conf", "logql", "diff", "nginx", "csv", "js", "go", "markdown"}
)  # fmt: skip


def _check_shell(text: str) -> None:
    shell = subprocess.run(
        ["/bin/bash", "-n"], input=text, capture_output=True, text=True, check=False, timeout=10
    )
    assert shell.returncode == 0, shell.stderr


def _check_console(text: str) -> None:
    """Check the lines behind a prompt; the others are what a program printed."""
    commands = [line.removeprefix("$ ") for line in text.splitlines() if PROMPT.match(line)]
    _check_shell("\n".join(commands))


def _check_yaml(text: str) -> None:
    list(yaml.safe_load_all(text))


CHECKS: Final[Mapping[str, Callable[[str], object]]] = {
    "json": json.loads,
    "yaml": _check_yaml,
    "toml": tomllib.loads,
    "sh": _check_shell,
    "bash": _check_shell,
    "shell": _check_shell,
    "console": _check_console,
}


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_blocks_parse(page: Path) -> None:
    wrong = [error for block in blocks(page) if (error := _error(block)) is not None]
    assert wrong == []


def test_blocks_are_seen_at_all() -> None:
    counted = [block.language for page in pages() for block in blocks(page)]
    assert {"toml", "yaml", "sh", "console"} <= set(counted)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("json", "{'a': 1}\n"),
        ("yaml", "a: b: c\n"),
        ("toml", "[a\n"),
        ("sh", "if true; then\n"),
        ("console", "$ echo 'open\nprinted\n"),
        ("jsno", "{}\n"),
    ],
)
def test_a_broken_block_is_an_error(language: str, text: str) -> None:
    assert _error(Block("page.md", 1, language, text)) is not None


def _error(block: Block) -> str | None:
    place = f"{block.page}:{block.line} ({block.language})"
    if block.language not in LANGUAGES:
        return f"{place}: unknown language"
    check = CHECKS.get(block.language)
    try:
        if check is not None:
            check(block.text)
    except (ValueError, yaml.YAMLError, AssertionError) as error:
        return f"{place}: {error}"
    return None
