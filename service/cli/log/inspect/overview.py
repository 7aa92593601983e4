"""The overview of logs: one in full, several with a line each and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from service.cli.log.inspect import tables
from service.cli.log.inspect.progress import Progress
from service.observe.log_directories import Files
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.words import printable
from service.views.log_files.document import document, log_row
from service.views.log_files.filters import Filter


def print_overview(paths: Sequence[Path], options: Mapping[str, Any]) -> int:
    """Print what the logs below paths hold."""
    files, shown = Files(paths, verify=options["verify"]), Filter.of(options)
    with Progress(files.size) as progress:
        logs = [log_row(each, shown) for each in files.inspect(progress.show)]
    answer = document(logs, files.paths.checkpoints, files.paths.problems)
    print_answer(answer, tables.render(answer), options)
    for problem in files.paths.problems:
        click.echo(f"tidemark: {printable(str(problem))}", err=True)
    if files.has_nothing:
        return ExitCode.NOTHING_MATCHED
    return ExitCode.OK if answer["complete"] else ExitCode.INCOMPLETE
