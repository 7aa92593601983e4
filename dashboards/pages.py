"""Writes what each panel shows into the page of its dashboard, `docs/dashboards/`: `make golden`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dashboards.panels import Board, Section

BEGIN: Final = "<!-- Generated from dashboards/boards/ by `make golden`; a test compares. -->\n"
END: Final = "<!-- End of what is generated. -->\n"


def page_name(board: Board) -> str:
    """Return the name of a dashboard's page; its picture has the same with `.png`."""
    return f"{board.uid.removeprefix('tidemark-')}.md"


def with_panels(page: str, board: Board) -> str:
    """Return a page whose generated part is that of the dashboard as it is now; the prose stays."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + BEGIN + "\n" + "\n".join(map(_section, board.sections)) + "\n" + END + tail


def _section(section: Section) -> str:
    rows = "".join(_rows(section))
    return f"### {section.title}\n\n| panel | shows |\n|---|---|\n{rows}"


def _rows(section: Section) -> Iterator[str]:
    for panel in section.panels:
        title, description = (text.replace("|", r"\|") for text in (panel.title, panel.description))
        yield f"| {title} | {description} |\n"
