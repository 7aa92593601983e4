"""Which names a rotation gives to a log: server.log.1, server.log.2026-11-21-10, server-1.log.gz.

Only digits with what is between them make one: a copy that a person put beside a log, such as
server.log.keep, is no part of it. Source: log4j's and log4j2's appenders, logrotate's `dateext`
and `extension`, the kubelet's and Docker's names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

SEPARATOR: Final = re.compile(r"[.\-_]")
STAMP: Final = re.compile(r"[.\-_][\d.\-_T:+]*\d")  # a number or a date
COMPRESSED: Final = re.compile(r"\.(?:gz|zst|bz2|xz|lz4|zip|Z)\Z")
NUMBERS: Final = re.compile(r"\d+")


def is_rotated(path: str, log: str) -> bool:
    """Whether a path is that of a rotated file of a log; both are in the same form."""
    return log in _possible_logs(path)


def logs_of(paths: Iterable[str], is_own: Callable[[str], bool] = lambda _: False) -> list[str]:
    """Return the paths that are no rotated files of others among them, ordered.

    `is_own` says whether a path with the name of a rotated file is known to be a log of its own.
    """
    candidates = set(paths)
    return sorted(
        path for path in candidates if candidates.isdisjoint(_possible_logs(path)) or is_own(path)
    )


def plain_name(path: str) -> str:
    """Return what a compressed file was called before."""
    match = COMPRESSED.search(path)
    return path[: match.start()] if match else path


def natural(path: str) -> tuple[tuple[int, ...], str]:
    """Return what orders names as people count: 9 before 10."""
    return tuple(int(number) for number in NUMBERS.findall(path)), path


def _possible_logs(path: str) -> Iterator[str]:
    """Yield every log of which a file of this name may be a rotated one."""
    folder, slash, name = plain_name(path).rpartition("/")
    stem, dot, ending = name.rpartition(".")
    for body, rest in ((name, ""), (stem, dot + ending)):
        for match in SEPARATOR.finditer(body):
            begin = match.start()
            if begin and STAMP.fullmatch(body, begin):
                yield f"{folder}{slash}{body[:begin]}{rest}"
