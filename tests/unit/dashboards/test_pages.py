"""Every dashboard has a page with its question, its picture, and what its panels show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from dashboards.build import BOARDS
from dashboards.pages import BEGIN, page_name, with_panels
from dashboards.panels import Board

DOCS: Final = Path(__file__).parents[3] / "docs"

each = pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)


@each
def test_a_page_says_what_the_panels_show_now(board: Board) -> None:
    text = (DOCS / "dashboards" / page_name(board)).read_text(encoding="utf-8")
    assert text == with_panels(text, board), "run `make golden`"
    assert text.startswith(f"# {board.title}\n")
    assert f"*{board.question}*" in text


@each
def test_a_page_speaks_of_panels_by_their_titles(board: Board) -> None:
    prose, _, _ = (DOCS / "dashboards" / page_name(board)).read_text("utf-8").partition(BEGIN)
    titles = {panel.title for section in board.sections for panel in section.panels}
    bold = {" ".join(words.split()) for words in re.findall(r"\*\*(.+?)\*\*", prose, re.DOTALL)}
    assert bold <= titles


@each
def test_a_page_shows_its_picture_and_is_linked(board: Board) -> None:
    name = page_name(board)
    picture = name.replace(".md", ".png")
    assert f"]({picture})" in (DOCS / "dashboards" / name).read_text("utf-8")
    assert (DOCS / "dashboards" / picture).stat().st_size < 250_000
    assert f"(dashboards/{name})" in (DOCS / "dashboards.md").read_text("utf-8")
