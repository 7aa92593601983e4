"""A service that runs one command as a job: a process for a test to kill."""

from __future__ import annotations

import asyncio
import sys

from service.scheduling.command import RunningCommand
from service.scheduling.job import Command


async def main() -> None:
    running = await RunningCommand.start(Command(tuple(sys.argv[1:]), patience_seconds=0.3))
    await running.ended()


if __name__ == "__main__":
    asyncio.run(main())
