"""`tidemark posture --client-config`: judges files of clients' settings, without a cluster and without a service.

A value is printed only of settings that are judged, none of which is a secret.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from collectors.client_config.properties import MOST_BYTES, read_properties
from rules.facts.client_config import PropertiesFile
from rules.posture.client_config.clients import Library
from rules.posture.client_config.finding import LATER, PAGE, ConfigLine, Release
from rules.posture.client_config.judging import ClientConfigReport, judge_files
from rules.posture.line import PostureVerdict
from rules.verdict import Severity, Verdict
from service.cli.posture.tables import STYLES
from service.cli.sequence.reading import STANDARD_INPUT
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import Format, chosen_format
from service.terminal.parts import FOLDED_WIDTH, Facts, Line, Part, Row
from service.terminal.words import printable

ORDER: Final = tuple(PostureVerdict)


def report(options: Mapping[str, Any]) -> int:
    """Judge the files that `--client-config` names, print the lines and return the exit code."""
    files = [_read(name) for name in options["client_config"]]
    library = None if options["client"] is None else Library(options["client"])
    judged = judge_files(files, library=library, release=release_of(options["client_release"]))
    document = document_of(files, judged)
    print_answer(document, _render(document, is_all=bool(options["every"])), options)
    for problem in judged.problems:
        click.echo(f"tidemark: {printable(problem)}", err=True)
    return exit_code(document)


def _read(name: str) -> PropertiesFile:
    try:
        if name == STANDARD_INPUT:
            raw = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(name).open("rb") as stream:
                raw = stream.read(MOST_BYTES + 1)
    except OSError as exc:
        why = (exc.strerror or str(exc)).lower()
        return PropertiesFile(source=name, properties=(), problems=(f"{name} cannot be read: {why}",))  # fmt: skip
    return read_properties("stdin" if name == STANDARD_INPUT else name, raw)


def release_of(text: str | None) -> Release | None:
    """Return a release of Kafka as numbers.

    Raises:
        BadParameter: it is none.
    """
    if text is None:
        return None
    parts = text.split(".")
    if not 2 <= len(parts) <= 3 or not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"{text!r} is no release such as 3.9 or 3.9.2", param_hint="--client-release")  # fmt: skip
    major, minor, *patch = (int(part) for part in parts)
    return major, minor, patch[0] if patch else LATER


def document_of(files: Sequence[PropertiesFile], judged: ClientConfigReport) -> Row:
    """Return the JSON document: keys may be added, never renamed."""
    return {
        "files": [file.source for file in files],
        "lines": sorted(map(_row, judged.lines), key=lambda row: ORDER.index(row["verdict"])),
        "assumptions": list(judged.assumptions),
        "problems": list(judged.problems),
    }


def _row(line: ConfigLine) -> Row:
    posture = line.posture
    is_wrong = posture.verdict is Verdict.BREACH
    return {
        "check": posture.check.check_id,
        "name": posture.name,
        "file": line.source,
        "line": line.at,
        "setting": posture.setting,
        "value": posture.value,
        "verdict": str(PostureVerdict.of(posture.verdict)),
        "severity": posture.severity.value if is_wrong else None,
        "reason": str(posture.reason),
        "consequence": posture.consequence,
        "fix": posture.fix,
        "page": PAGE,
    }


def _render(document: Row, *, is_all: bool) -> Iterator[Part]:
    lines = document["lines"]
    yield _head(lines)
    for row in lines:
        if is_all or row["verdict"] != PostureVerdict.RIGHT:
            yield from _line(row)
    if document["assumptions"]:
        yield Line("ASSUMED", "bold")
        for assumption in document["assumptions"]:
            words = _folded(assumption)
            yield Facts([("-" if place == 0 else "", line) for place, line in enumerate(words)])


def _head(lines: Iterable[Row]) -> Line:
    verdicts = [row["verdict"] for row in lines]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in ORDER)
    return Line(f"settings: {counts}", "bold")


def _line(row: Row) -> Iterator[Part]:
    at = row["file"] if row["line"] is None else f"{row['file']}:{row['line']}"
    value = None if row["value"] is None else f"{row['setting']}={row['value']}"
    value = "not set" if row["line"] is None else value
    severity = f" ({row['severity']})" if row["severity"] else ""
    yield Line([(f"{row['verdict']}{severity}", STYLES[row["verdict"]]), f"  {row['setting']}  ", (row["reason"], "bold")])  # fmt: skip
    yield Facts(
        [
            ("where", f"{at}, {row['name'].rsplit(': ', 1)[-1]}"),
            ("value", value),
            *(
                ("what" if place == 0 else "", words)
                for place, words in enumerate(_folded(row["consequence"]))
            ),
            ("set", row["fix"] or None),
        ]
    )


def _folded(text: str) -> list[str]:
    """Return a text as lines of a terminal; programs get it whole."""
    if chosen_format() is not Format.TABLE:
        return [text] if text else []
    return textwrap.wrap(text, FOLDED_WIDTH, break_on_hyphens=False)


def exit_code(document: Row) -> ExitCode:
    """Return whether anything is wrong that is more than information, or not known."""
    lines = document["lines"]
    if any(
        row["verdict"] == PostureVerdict.WRONG and row["severity"] != Severity.INFO for row in lines
    ):
        return ExitCode.FIRING
    is_hidden = any(row["verdict"] == PostureVerdict.UNKNOWN for row in lines)
    return ExitCode.INCOMPLETE if is_hidden or document["problems"] else ExitCode.OK
