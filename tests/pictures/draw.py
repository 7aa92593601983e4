"""Draws what was recorded: a PNG of every dashboard beside its page in docs/dashboards/."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from dashboards.files import read_files
from tests.pictures.answers import Answers, decode, path_of
from tests.pictures.page import draw_page

PAGES: Final = Path(__file__).parents[2] / "docs/dashboards"


def _answers(uid: str) -> Answers:
    return decode(path_of(uid).read_text(encoding="utf-8"))


def main(uids: list[str]) -> None:
    """Draw the named dashboards or all, and name the panels that have no data."""
    PAGES.mkdir(exist_ok=True)
    for dashboard in read_files({}):
        if uids and dashboard.uid not in uids:
            continue
        canvas, empty = draw_page(dashboard.document, _answers(dashboard.uid))
        path = PAGES / f"{dashboard.uid.removeprefix('tidemark-')}.png"
        canvas.save(path)
        print(f"{path.name}: {path.stat().st_size // 1024} KB; no data: {', '.join(empty) or '-'}")


if __name__ == "__main__":
    main(sys.argv[1:])
