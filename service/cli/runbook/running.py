"""Runs a command of a runbook as an argument list, without a shell and without input.

Each is a session of its own: an interruption ends it with all that it has started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final

from service.runtime.children import FOLDER, child_environment

SECONDS: Final = 120.0  # Kafka's tools wait 60 s for brokers that are down
END_SECONDS: Final = 5.0  # for an interrupted command to end by itself
MAX_LINES: Final = 2000  # of the output; more are counted
MAX_LINE: Final = 4000  # characters

Show = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a command ended."""

    exit_code: int | None  # None: it could not be started
    lines: tuple[str, ...]
    error: str | None = None  # why there is no complete result


def run(words: Sequence[str], show: Show, seconds: float | None = SECONDS) -> Result:
    """Run a command and show each line of its output and of its errors; an interruption ends it.

    None for `seconds` waits for its end: what changes something is never ended halfway.
    """
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            cwd=FOLDER,
            env=_environment(),
            start_new_session=True,  # so that it ends with all that it has started
        )
    except OSError as exc:
        return Result(exit_code=None, lines=(), error=f"cannot be started: {exc.strerror or exc}")
    return _attend(process, show, seconds)


def _attend(process: subprocess.Popen[str], show: Show, seconds: float | None) -> Result:
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        _signal(process, signal.SIGKILL)

    timer = threading.Timer(threading.TIMEOUT_MAX if seconds is None else seconds, end)
    timer.daemon = True
    timer.start()
    try:
        with process:
            lines, left = _read(process.stdout, show)
            code = process.wait()
    except BaseException:
        _end(process)
        raise
    finally:
        timer.cancel()
    if is_late.is_set():
        return Result(exit_code=code, lines=lines, error=f"ended after {seconds:g} s")
    error = f"{left:,} more lines were left out" if left else None
    return Result(exit_code=code, lines=lines, error=error)


def _read(output: IO[str] | None, show: Show) -> tuple[tuple[str, ...], int]:
    """Return the first lines, and how many more there were."""
    lines, left = list[str](), 0
    for line in output or ():
        text = line.rstrip().expandtabs()[:MAX_LINE]
        if len(lines) < MAX_LINES:
            lines.append(text)
            show(text)
        else:
            left += 1
    return tuple(lines), left


def _environment() -> dict[str, str]:
    """Return the environment of a command, whose output is a pipe also where colours are forced."""
    environment = child_environment(os.environ)
    environment.pop("FORCE_COLOR", None)
    return environment


def _end(process: subprocess.Popen[Any]) -> None:
    """End a command whose reader was interrupted."""
    _signal(process, signal.SIGINT)
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
        process.wait()


def _signal(process: subprocess.Popen[Any], number: signal.Signals) -> None:
    """Send a signal to a command and to all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
