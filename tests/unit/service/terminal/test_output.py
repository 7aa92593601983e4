"""A reader that goes away is no error, a full disk is one line: never a traceback."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import click
import pytest

from service.cli.collect.snapshot_table import snapshot_tables
from service.cli.main import run
from service.terminal.exit_codes import ExitCode
from service.terminal.output import OutputClosedError, OutputError, guarded_streams
from service.terminal.screen import console
from tests.factories import snapshot

ROOT: Final = Path(__file__).parents[5]
HELP: Final = [sys.executable, "-m", "service", "--help"]


class Failing(io.StringIO):
    """A stream that cannot be written to."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def write(self, text: str) -> int:
        del text
        raise OSError(self._number, os.strerror(self._number))


def test_a_full_disk_is_one_line_and_its_own_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", Failing(errno.ENOSPC))
    assert run(["--help"]) == ExitCode.OUTPUT
    told = capsys.readouterr().err
    assert told == "tidemark: the output cannot be written: no space left on device\n"


def test_a_closed_pipe_is_a_quiet_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", Failing(errno.EPIPE))
    assert run(["--help"]) == ExitCode.OK
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.EPIPE, OutputClosedError), (errno.EIO, OutputError)]
)
def test_a_table_fails_like_other_output(
    number: int, kind: type[OutputError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", Failing(number))
    with pytest.raises(kind), guarded_streams():
        console().print(snapshot_tables(snapshot()))


def test_a_failure_that_somebody_swallowed_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Failing(errno.ENOSPC)
    monkeypatch.setattr(sys, "stdout", stream)
    with pytest.raises(OutputError), guarded_streams():  # noqa: PT012 - what leaving raises
        with pytest.raises(OutputError):
            sys.stdout.write("x")
        monkeypatch.setattr(stream, "write", lambda _: 1)
    assert sys.stdout is stream


def test_an_error_of_something_else_stays_what_it_is() -> None:
    with pytest.raises(FileNotFoundError), guarded_streams():
        Path("/no/such/file").read_text(encoding="utf-8")


def test_a_stream_that_is_not_there_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert run(["--version"]) == ExitCode.OK


def test_a_terminal_that_lacks_a_character_shows_its_escape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    with guarded_streams():
        click.echo("größe ☃")
    assert raw.getvalue() == "größe \\u2603\n".encode("latin-1")


def test_the_interpreter_says_nothing_at_its_end_about_a_closed_pipe() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            HELP, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (ExitCode.OK, b"")


def test_the_interpreter_says_nothing_at_its_end_about_a_full_disk() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            HELP, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert done.returncode == ExitCode.OUTPUT
    assert len(done.stderr.splitlines()) == 1
