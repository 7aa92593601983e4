"""Every Python program that the product starts is started by one file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from service.runtime import children

ROOT: Final = Path(children.__file__).parents[2]
PRODUCT: Final = ("collectors", "dashboards", "migrations", "rules", "service", "spark")


def test_nothing_else_of_the_product_names_the_interpreter() -> None:
    """Who names it can forget -P, and run a module of the folder that it is in."""
    named = {
        path
        for package in PRODUCT
        for path in (ROOT / package).rglob("*.py")
        if "sys.executable" in path.read_text(encoding="utf-8")
    }
    assert named == {Path(children.__file__)}
