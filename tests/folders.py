"""Data directories of tests: with a short path, where the server's user may pass."""

from __future__ import annotations

import tempfile
from pathlib import Path

from service.runtime.data_directory import let_pass


def new_folder() -> Path:
    """Make a folder for whoever has to remove it; pytest's own are closed, and too long for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="tm-"))
    let_pass(folder)
    return folder
