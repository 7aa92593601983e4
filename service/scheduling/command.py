"""Runs a program under the guard: it ends with its children on request, or when the service dies."""

from __future__ import annotations

import asyncio
import json
import os
from asyncio import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from service.runtime.children import FOLDER, child_environment, script_command
from service.scheduling import guard
from service.scheduling.job import Command, Ended, RunOutcome, Stats

KEPT_BYTES: Final = 8192  # of what a program writes: its end
CHUNK_BYTES: Final = 65536
GUARD_SECONDS: Final = 30.0  # to end everything, on a machine that hardly answers


class RunningCommand:
    """A running program; made by `start`."""

    def __init__(self, process: subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, command: Command) -> RunningCommand:
        """Start a program; one that cannot be started ends at once, with the reason as its output."""
        process = await asyncio.create_subprocess_exec(
            *script_command(Path(guard.__file__), str(command.patience_seconds)),
            *command.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=FOLDER,
            env={**child_environment(os.environ), **command.environment},
            start_new_session=True,
        )
        return cls(process)

    async def ended(self) -> Ended:
        """Wait for its end; its last output is the detail."""
        written = b""
        output = self._process.stdout
        while output is not None and (chunk := await output.read(CHUNK_BYTES)):
            written = (written + chunk)[-KEPT_BYTES:]
        code = await self._process.wait()
        self.end()  # closes our side of its stdin
        text = written.decode("utf-8", "replace").replace("\0", "").strip()
        if code:
            reason = f"it ended with status {code}"
            words = _words(text)
            return Ended(
                outcome=RunOutcome.FAILED, detail=f"{reason}: {words}" if words else reason
            )
        return Ended(outcome=RunOutcome.SUCCEEDED, stats=_stats(text))

    def end(self) -> None:
        """Have the guard end it; that goes on even if nobody waits for it."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill_guard(self) -> None:
        """Kill the guard, and with it the program, if it does not end on request."""
        if self._process.returncode is None:
            self._process.kill()


def _words(text: str) -> str:
    """Return the lines for a person: JSON events would hide why it failed."""
    lines = text.splitlines()
    readable = [line for line in lines if not (line.startswith('{"') and line.endswith("}"))]
    return "\n".join(readable or lines[-1:])


def _stats(text: str) -> Stats:
    last = text.rpartition("\n")[2]
    try:
        read = json.loads(last)
    except ValueError:
        return {}
    if not isinstance(read, Mapping):
        return {}
    return {str(name): value for name, value in read.items() if isinstance(value, int | str)}
