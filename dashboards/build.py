"""Writes the dashboards as the JSON that is committed, and that the stack's Grafana reads: `make golden`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards.boards import (
    alerts,
    fleet,
    groups,
    itself,
    losses,
    pipeline,
    replication,
    transactions,
    usual,
)
from dashboards.files import FOLDER, RECORDED_FOLDER
from dashboards.house import to_dashboard
from dashboards.panels import Board
from dashboards.recorded import with_recorded

# In the order of a search: is anything wrong, where, since when, why.
BOARDS: Final[tuple[Board, ...]] = (
    fleet.BOARD,
    pipeline.BOARD,
    groups.BOARD,
    transactions.BOARD,
    losses.BOARD,
    replication.BOARD,
    usual.BOARD,
    alerts.BOARD,
    itself.BOARD,
)


def build_files() -> Mapping[Path, str]:
    """Return the text of every file, those that read recorded series among them."""
    scraped = {FOLDER / file_name(board): encode(board) for board in BOARDS}
    recorded = {
        RECORDED_FOLDER / file_name(board): encode(with_recorded(board)) for board in BOARDS
    }
    return scraped | recorded


def file_name(board: Board) -> str:
    """Return the name of a dashboard's file."""
    return f"{board.uid}.json"


def encode(board: Board) -> str:
    """Return a dashboard as JSON with sorted keys."""
    encoder = JSONEncoder(sort_keys=True, indent=2, ensure_ascii=False)
    # Read and written once more, so that what an encoder makes of a number or a name is final.
    return (
        json.dumps(json.loads(encoder.encode(to_dashboard(board))), sort_keys=True, indent=2) + "\n"
    )


def write_files() -> None:
    """Write all dashboards, and remove the files of those that there are no more."""
    files = build_files()
    for folder in (FOLDER, RECORDED_FOLDER):
        folder.mkdir(exist_ok=True)
        for path in folder.glob("*.json"):
            if path not in files:
                path.unlink()
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
