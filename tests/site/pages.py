"""The pages of the repository as the tests read them: prose, links, anchors, fenced blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.site.hooks import FENCE, ROOT, anchor_of, fenced

DOCS: Final = ROOT / "docs"
ROOT_PAGES: Final = tuple(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))
HEADING: Final = re.compile(r"^#{1,6} +(.+?) *#*$")
CODE: Final = re.compile(r"`+[^`]+`+")
LINK: Final = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")
NEEDS: Final = re.compile(r" *<!-- needs: ([a-z, ]+) -->")
MARKUP: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)|[`*]")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, the line on which it begins, and its text without indentation.

    `needs` is what a comment right before the block says of it: `<!-- needs: docker, internet -->`.
    """

    page: str
    line: int
    language: str
    text: str
    needs: frozenset[str] = frozenset()


def pages() -> tuple[Path, ...]:
    """Return every page: those of the root, then those below docs/."""
    return (*ROOT_PAGES, *sorted(DOCS.rglob("*.md")))


def name_of(page: Path) -> str:
    """Return the path of a page in the repository."""
    return page.relative_to(ROOT).as_posix()


def links(page: Path) -> Iterator[tuple[int, str]]:
    """Yield each link of a page's prose, images included, with its line; links may cross lines."""
    for number, text in _paragraphs(page):
        prose = CODE.sub("code", text)
        yield from ((number, match[1]) for match in LINK.finditer(prose))


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    opened: tuple[int, str, str, int] | None = None
    body: list[str] = []
    needs = frozenset[str]()
    for number, (line, is_code) in enumerate(fenced(_text(page).splitlines()), 1):
        match = FENCE.match(line) if is_code else None
        if opened is None and match:
            opened, body = (number, match[3], match[2], len(match[1])), []
        elif opened and match and match[2].startswith(opened[2]) and not match[3]:
            text = "\n".join(body) + "\n"
            yield Block(name_of(page), opened[0], opened[1], text, needs)
            opened, needs = None, frozenset()
        elif opened:
            body.append(line[opened[3] :] if not line[: opened[3]].strip() else line)
        elif line.strip():
            marker = NEEDS.fullmatch(line)
            needs = frozenset(re.split(r", *", marker[1])) if marker else frozenset()


@cache
def anchors(page: Path) -> tuple[str, ...]:
    """Return the anchors of a page's headings, in order, as GitHub makes them."""
    return tuple(
        anchor_of(MARKUP.sub(lambda found: found[1] or "", match[1]))
        for line, is_code in fenced(_text(page).splitlines())
        if not is_code and (match := HEADING.match(line))
    )


@cache
def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _paragraphs(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the text between blank lines and fenced blocks, with the line of its start."""
    start, parts = 1, list[str]()
    for number, (line, is_code) in enumerate(fenced(_text(page).splitlines()), 1):
        if is_code or not line.strip():
            yield start, "\n".join(parts)
            start, parts = number + 1, []
        else:
            parts.append(line)
    yield start, "\n".join(parts)
