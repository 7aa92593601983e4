"""A revision is frozen history: it imports nothing of ours."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

VERSIONS: Final = Path(__file__).parents[5] / "migrations" / "versions"
ALLOWED: Final = {"__future__", "alembic", "sqlalchemy"}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return names


@pytest.mark.parametrize("path", sorted(VERSIONS.glob("r*.py")), ids=lambda path: path.stem)
def test_a_revision_imports_nothing_of_ours(path: Path) -> None:
    assert imported(path) <= ALLOWED
