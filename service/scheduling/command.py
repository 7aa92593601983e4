"""Runs a program under the guard: ended with its children when told so, or when the service dies."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from service.scheduling import guard
from service.scheduling.job import Command, Stats
from service.scheduling.runs import Ended, RunOutcome

KEPT_BYTES: Final = 8192  # of what a program writes: its end
CHUNK_BYTES: Final = 65536
GUARD_SECONDS: Final = 30.0  # to end everything, on a machine that hardly answers


class RunningCommand:
    """A program that was started; made by `start`."""

    def __init__(self, process: subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, command: Command) -> RunningCommand:
        """Start a program; one that cannot be started ends at once, and says so."""
        # -P: the guard's folder holds modules of ours, which must not be taken for Python's.
        program = (sys.executable, "-P", str(Path(guard.__file__)), str(command.patience_seconds))
        process = await asyncio.create_subprocess_exec(
            *program,
            *command.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        return cls(process)

    async def ended(self) -> Ended:
        """Wait for its end; what it wrote last is its detail."""
        written = b""
        output = self._process.stdout
        while output is not None and (chunk := await output.read(CHUNK_BYTES)):
            written = (written + chunk)[-KEPT_BYTES:]
        code = await self._process.wait()
        self.end()  # closes our side of its stdin
        text = written.decode("utf-8", "replace").replace("\0", "").strip()
        if code:
            told = f"it ended with status {code}"
            words = _words(text)
            return Ended(outcome=RunOutcome.FAILED, detail=f"{told}: {words}" if words else told)
        return Ended(outcome=RunOutcome.SUCCEEDED, stats=_stats(text))

    def end(self) -> None:
        """Ask the guard to end it; that goes on when nobody waits for it any more."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill_guard(self) -> None:
        """Kill the guard, and with it the program: for one that does not do as it is asked."""
        if self._process.returncode is None:
            self._process.kill()


def _words(text: str) -> str:
    """Return what is for a person: events as JSON lines would hide why it failed."""
    lines = text.splitlines()
    told = [line for line in lines if not (line.startswith('{"') and line.endswith("}"))]
    return "\n".join(told or lines[-1:])


def _stats(text: str) -> Stats:
    last = text.rpartition("\n")[2]
    try:
        read = json.loads(last)
    except ValueError:
        return {}
    if not isinstance(read, Mapping):
        return {}
    return {str(name): one for name, one in read.items() if isinstance(one, int | str)}
