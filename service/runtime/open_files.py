"""Lets the process open as many files as its connections need.

Many systems set a soft limit of 1,024 for programs that use select(2), which ours do not, and a far higher
hard one that each process may take. Source: getrlimit(2); systemd.exec(5), LimitNOFILE.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

FILES: Final = 4096  # half of them for connections of HTTP


def allow_files(count: int = FILES) -> None:
    """Raise the soft limit of open files to a count, as far as the hard one allows; never lower it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    with suppress(OSError, ValueError):  # a sandbox may forbid it: fewer connections are kept
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
