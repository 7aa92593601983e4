"""Every package of the repository is known to the tools that watch it."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
SERVICE: Final = ROOT / "service"
OUTSIDE: Final = {"tests"}  # imported by nothing


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def packages() -> set[str]:
    return {path.parent.name for path in ROOT.glob("*/__init__.py")} - OUTSIDE


def test_there_are_packages_to_watch() -> None:
    assert {"service", "collectors", "rules"} <= packages()


def test_every_package_is_watched_by_the_import_linter() -> None:
    assert set(project()["tool"]["importlinter"]["root_packages"]) == packages()


def test_every_package_is_installed() -> None:
    [folders] = re.findall(r"(?m)^FOLDERS = (\(.*\))$", (ROOT / "setup.py").read_text("utf-8"))
    assert set(ast.literal_eval(folders)) == packages()


def test_the_build_and_the_image_take_the_same_setuptools() -> None:
    """The image's comes by hash from the lock; an isolated build fetches the one that is required."""
    [required] = project()["build-system"]["requires"]
    lock = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert required in re.findall(r"(?m)^(setuptools==\S+)", lock)


def test_the_page_names_what_the_extra_needs() -> None:
    [spark] = project()["project"]["optional-dependencies"]["nightly"]
    assert f"`pip install '{spark}'`" in (ROOT / "docs" / "install.md").read_text(encoding="utf-8")


def test_every_package_is_type_checked_and_sorted_as_ours() -> None:
    tools = project()["tool"]
    assert set(tools["mypy"]["files"]) == packages() | OUTSIDE
    assert set(tools["ruff"]["lint"]["isort"]["known-first-party"]) == packages()


def test_every_package_has_its_place_among_the_layers() -> None:
    contracts = project()["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["id"] == "layers"]
    placed = [name.strip() for layer in layers for name in layer.split("|")]
    assert sorted(placed) == sorted(packages())


def test_nothing_but_the_entry_point_is_loose_in_the_service() -> None:
    assert {path.name for path in SERVICE.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_no_folder_of_the_service_holds_more_than_a_quarter_of_it() -> None:
    lines = {folder.name: lines_of(folder) for folder in SERVICE.iterdir() if folder.is_dir()}
    quarter = sum(lines.values()) / 4
    assert {name for name, count in lines.items() if count > quarter} <= {"sandbox"}


def lines_of(folder: Path) -> int:
    """Return how many lines of Python lie in a folder and below."""
    return sum(len(path.read_bytes().splitlines()) for path in folder.rglob("*.py"))
