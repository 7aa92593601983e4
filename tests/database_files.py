"""PostgreSQL's files for tests that are not about making them: made once per run, and copied."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

from service.storage.database.server import EmbeddedServer, has_files


@functools.cache
def _made() -> Path:
    """Make the files in a second or two of a processor's time; a copy takes a tenth of it."""
    folder = Path(tempfile.mkdtemp(prefix="tm-"))
    atexit.register(shutil.rmtree, folder)
    EmbeddedServer.start(folder).stop()
    (folder / "postgres/server.log").unlink()
    return folder / "postgres"


def give_files(directory: Path) -> Path:
    """Fill a data directory as its first start does, unless it is filled; return it."""
    if not has_files(directory):
        directory.mkdir(parents=True, exist_ok=True)
        subprocess.run(["/bin/cp", "-a", _made(), directory / "postgres"], check=True)
    return directory
