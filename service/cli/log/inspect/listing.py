"""`--batches` and `--records`: one line or one document each, printed as they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from rules.facts.log_files import FileProblem
from service.observe.log_directories import Files
from service.terminal.answer import print_json
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import Format, chosen_format
from service.terminal.parts import Row
from service.terminal.words import ABSENT, printable, tab_separated, text, utc
from service.views.log_files.filters import Filter
from service.views.log_files.listed import batch_rows, record_rows

Cell = Callable[[Row], str]
Columns = Sequence[tuple[str, int, Cell]]  # heading, width (negative: to the right), cell


def print_list(paths: Sequence[Path], options: Mapping[str, Any]) -> int:
    """Print the batches or the records below paths; problems are lines of stderr."""
    files, shown = Files(paths, verify=options["verify"]), Filter.of(options)
    columns = RECORD_COLUMNS if options["records"] else BATCH_COLUMNS
    count = 0
    problems = [*files.paths.problems, *(each for log in files.paths.logs for each in log.problems)]
    for row in _rows(files, shown, problems, is_of_records=options["records"]):
        if options["output"] == "json":
            print_json(row)
        else:
            if not count:
                _print_line([heading for heading, _, _ in columns], columns)
            _print_line([cell(row) for _, _, cell in columns], columns)
        count += 1
    for problem in problems:
        click.echo(f"tidemark: {printable(str(problem))}", err=True)
    if problems and not files.has_nothing:
        return ExitCode.INCOMPLETE
    if not count and not problems:
        click.echo("tidemark: no batch matches", err=True)
    return ExitCode.OK if count else ExitCode.NOTHING_MATCHED


def _rows(
    files: Files, shown: Filter, problems: list[FileProblem], *, is_of_records: bool
) -> Iterator[Row]:
    for part in files.parts(lambda _: None):  # the lines themselves show that it goes on
        if isinstance(part, FileProblem):
            problems.append(part)
            continue
        for row in record_rows(part, shown) if is_of_records else batch_rows(part, shown):
            if isinstance(row, FileProblem):
                problems.append(row)
            else:
                yield row


def _print_line(cells: Sequence[str], columns: Columns) -> None:
    if chosen_format() is Format.TSV:
        click.echo(tab_separated(cells))
        return
    padded = [
        cell.rjust(-width) if width < 0 else cell.ljust(width)
        for cell, (_, width, _) in zip(map(printable, cells), columns, strict=True)
    ]
    click.echo("  ".join(padded).rstrip())


def _of(name: str) -> Cell:
    return lambda row: text(row[name])


def _range(first: str, last: str) -> Cell:
    def cell(row: Row) -> str:
        if row[first] is None:
            return ABSENT
        return f"{row[first]}" if row[first] == row[last] else f"{row[first]}-{row[last]}"

    return cell


def _kind(row: Row) -> str:
    if row["control"] is not None:
        epoch = row["control"]["coordinator_epoch"]
        return f"{row['control']['type']}" + ("" if epoch is None else f" (coordinator {epoch})")
    return "transaction" if row["is_transactional"] else "data"


def _time(name: str) -> Cell:
    return lambda row: utc(row[name])


BATCH_COLUMNS: Final[Columns] = (
    ("offsets", 21, _range("base_offset", "last_offset")),
    ("records", -7, _of("record_count")),
    ("producer", -10, _of("producer_id")),
    ("epoch", -5, _of("producer_epoch")),
    ("sequences", 13, _range("base_sequence", "last_sequence")),
    ("leader epoch", -12, _of("leader_epoch")),
    ("time (UTC)", 19, _time("max_timestamp")),
    ("codec", 6, _of("codec")),
    ("position", -11, _of("position")),
    ("size", -8, _of("size")),
    ("kind", 11, _kind),
)
RECORD_COLUMNS: Final[Columns] = (
    ("offset", -12, _of("offset")),
    ("time (UTC)", 19, _time("timestamp")),
    ("producer", -10, _of("producer_id")),
    ("key bytes", -9, _of("key_size")),
    ("value bytes", -11, _of("value_size")),
    ("key", 20, _of("key")),
)
