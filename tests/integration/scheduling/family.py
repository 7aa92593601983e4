"""A program with a child and a grandchild that do not want to end; it tells who they are.

Started with the file to write their ids to, and with what the program itself does: `wait` or `end`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

DEAF = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(1, flush=True)\nsignal.pause()"


def main() -> None:
    told, then = Path(sys.argv[1]), sys.argv[2]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", DEAF], stdout=subprocess.PIPE, start_new_session=own
        )
        for own in (False, True)  # the second one is in a session of its own, as a daemon is
    ]
    for one in started:
        if one.stdout is not None:
            one.stdout.readline()  # it is deaf by now
    ids = " ".join(str(pid) for pid in (os.getpid(), *(one.pid for one in started)))
    made = told.with_suffix(".new")
    made.write_text(ids, encoding="utf-8")
    made.rename(told)
    if then == "wait":
        signal.pause()


if __name__ == "__main__":
    main()
