"""What the image is made of, as far as that shows without building it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from service.storage.database.programs import packaged_programs
from service.storage.database.server import EmbeddedServer
from tests.folders import new_folder

pytestmark = pytest.mark.integration

DOCKERFILE: Final = Path(__file__).parents[2] / "Dockerfile"
GPL: Final = "libreadline"


def commands() -> list[str]:
    """Return what the image's build runs, in order."""
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    return re.findall(r"(?m)^RUN (.*)$", text)


@pytest.fixture
def installed() -> Iterator[Path]:
    """Give a folder with a copy of the packages that hold PostgreSQL, as the build has them."""
    folder = new_folder()
    package = packaged_programs().parents[1]
    packages = folder / ".venv/lib/python3/site-packages"
    for part in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(part, packages / part.name, symlinks=True)
    yield folder
    shutil.rmtree(folder)


def mentions(folder: Path) -> list[str]:
    """Return the files that are the library, or that are linked to it."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [path.name for path in files if GPL in path.name or GPL.encode() in path.read_bytes()]


def test_no_library_under_the_gpl_is_left_and_the_server_starts(installed: Path) -> None:
    assert "psql" in mentions(installed)
    removals = [command for command in commands() if GPL in command]
    for command in removals:
        subprocess.run(["/bin/sh", "-ec", command], cwd=installed, check=True)
    assert mentions(installed) == []
    [programs] = installed.rglob("pginstall18/bin")
    EmbeddedServer.start(installed / "data", programs).stop()


def test_the_check_of_its_health_runs_nothing_of_the_data_directory() -> None:
    """It works there: a module of that folder would come before Python's own."""
    [words] = re.findall(r"(?m)^ +CMD (\[.*\])$", DOCKERFILE.read_text(encoding="utf-8"))
    assert words.startswith('["python", "-P", "-c", ')
