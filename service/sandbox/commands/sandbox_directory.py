"""The option that names the sandbox's folder, and the sandbox that lives there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from service.sandbox.cluster.cluster import Sandbox


def with_directory(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--dir` to a command, as its argument `directory`."""
    return click.option(
        "--dir",
        "directory",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder of the sandbox  [env: TIDEMARK_SANDBOX__DIR; "
        "default: ~/.local/state/tidemark/sandbox]",
    )(function)


def open_sandbox(directory: Path | None) -> Sandbox:
    """Return the sandbox of a folder, None for the default one."""
    from service.sandbox.cluster.cluster import Sandbox  # noqa: PLC0415 - help stays fast
    from service.sandbox.cluster.layout import default_directory  # noqa: PLC0415 - same

    return Sandbox(directory or default_directory())
