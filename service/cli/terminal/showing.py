"""What all tables have in common."""

from __future__ import annotations

from typing import Final

ABSENT: Final = "-"  # what is not known, or is nothing
SHOWN: Final = 200  # rows of a table: more than a person reads; JSON has all
