"""Label text as the exposition formats write it.

A sample line is put together from a head (`name{cluster="default",`), the labels of its subject
(`topic="orders",partition="0"} `) and its value. Subjects' labels are shared by all metrics of the
subject, so that a table keeps one piece per partition or commit, not one per series.
Source: prometheus.io/docs/instrumenting/exposition_formats.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

CLOSE: Final = b"} "


def label(name: str, value: str) -> bytes:
    """Return `name="value"`, the value escaped.

    A lone surrogate, which is no valid Unicode, would make the whole page unreadable, so that it
    becomes a question mark.
    """
    escaped = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return f'{name}="{escaped}"'.encode(errors="replace")


def closed(pieces: Iterable[bytes]) -> list[bytes]:
    """Close each piece of labels, so that a value may follow."""
    return [piece + CLOSE for piece in pieces]
