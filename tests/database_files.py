"""PostgreSQL's files for tests that are not about making them: made once per run, and copied."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
from pathlib import Path

from service.storage.database.server import EmbeddedServer, has_files
from service.storage.database.superuser import PASSWORD_FILE
from tests.folders import new_folder


@functools.cache
def _made() -> Path:
    """Make the files in a second or two of a processor's time; a copy takes a tenth of it."""
    folder = new_folder()
    atexit.register(shutil.rmtree, folder)
    EmbeddedServer.start(folder).stop()
    (folder / "postgres/server.log").unlink()
    return folder


def give_files(directory: Path) -> Path:
    """Fill a data directory as its first start does, unless it is filled; return it."""
    if not has_files(directory):
        directory.mkdir(parents=True, exist_ok=True)
        files = [_made() / name for name in ("postgres", PASSWORD_FILE)]
        subprocess.run(["/bin/cp", "-a", *files, directory], check=True)
    return directory
