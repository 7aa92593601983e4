"""Options that the sandbox's commands share, and the sandbox in the folder that they name."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from service.terminal.formats import output_option

if TYPE_CHECKING:
    from service.sandbox.cluster.cluster import Sandbox

# Add `--dir` to a command, as its argument `directory`.
with_directory: Final = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the sandbox  [env: TIDEMARK_SANDBOX__DIR; "
    "default: ~/.local/state/tidemark/sandbox]",
)
with_output: Final = output_option  # a command gets it as its argument `output`
print_line: Final = partial(click.echo, err=True)


def open_sandbox(directory: Path | None, **arguments: Any) -> Sandbox:
    """Return the sandbox of a folder, None for the default one; `arguments` are those of Sandbox."""
    from service.sandbox.cluster.cluster import Sandbox  # noqa: PLC0415 - help stays fast
    from service.sandbox.cluster.layout import default_directory  # noqa: PLC0415 - same

    return Sandbox(directory or default_directory(), **arguments)
