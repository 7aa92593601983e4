"""Constants of all tables."""

from __future__ import annotations

from typing import Final

ABSENT: Final = "-"  # a value that is unknown or absent
SHOWN: Final = 200  # rows of a table: more than a person reads; JSON has all
